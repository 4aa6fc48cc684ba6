//! Commands that are waited for, and commands that are not.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::place::Place;

/// The time after which a command counts as hung.
const GUARD: Duration = Duration::from_secs(120);

/// The exit code and the output of a command.
#[derive(Debug)]
pub(super) struct Ended {
    /// None if it was killed.
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ended {
    /// Describes an end that differs from the expected exit code.
    pub(super) fn told(&self, command: &str, wanted: i32) -> String {
        let code = self
            .code
            .map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        let last = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(20)..].join("\n")
        };
        let (out, err) = (last(&self.out), last(&self.err));
        format!("`{command}` ended with {code}, not {wanted}\n{out}\n{err}")
    }
}

/// Runs a command to its end, with nothing to read.
pub(super) fn run(place: &Place, prelude: &str, command: &str) -> Ended {
    match Background::start(place, prelude, command, None) {
        Ok(job) => job.finished(),
        Err(ended) => ended,
    }
}

/// A command that runs.
pub(super) struct Background {
    pub(super) command: String,
    child: Group,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
    is_over: Receiver<()>,
}

impl Background {
    /// Starts a command, and waits until a line that it prints has a text in it.
    ///
    /// # Errors
    /// It ended before that.
    pub(super) fn start(
        place: &Place,
        prelude: &str,
        command: &str,
        until: Option<&str>,
    ) -> Result<Self, Ended> {
        // What is ended by a signal takes the place of the shell, whose end it would be else.
        let script = match until {
            Some(_) => format!("exec {command}"),
            None => format!("{prelude}{command}"),
        };
        Self::spawn(&mut place.shell(&script), command, until)
    }

    fn spawn(shell: &mut Command, command: &str, until: Option<&str>) -> Result<Self, Ended> {
        let shell = shell.stdin(Stdio::null()).stdout(Stdio::piped());
        // A group of its own is ended as a whole.
        let mut child = shell
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map(Group)
            .expect("there is sh");
        let (printed, seen) = mpsc::channel();
        let (over, is_over) = mpsc::channel();
        let stdout = child.0.stdout.take().expect("piped");
        let until = until.map(str::to_owned);
        let waits = until.is_some();
        let out = thread::spawn(move || {
            let mut all = Vec::new();
            let mut lines = BufReader::new(stdout);
            while lines.read_until(b'\n', &mut all).unwrap_or(0) > 0 {
                let is_there = |until: &String| String::from_utf8_lossy(&all).contains(until);
                if until.as_ref().is_some_and(is_there) {
                    // Nobody waits any more if it is not the first time.
                    let _ = printed.send(());
                }
            }
            drop((printed, over));
            String::from_utf8_lossy(&all).into_owned()
        });
        let mut stderr = child.0.stderr.take().expect("piped");
        let err = thread::spawn(move || {
            let mut all = Vec::new();
            // What came until an error is shown.
            let _ = stderr.read_to_end(&mut all);
            String::from_utf8_lossy(&all).into_owned()
        });
        let command = command.to_owned();
        let job = Self {
            command,
            child,
            out,
            err,
            is_over,
        };
        if waits && seen.recv_timeout(GUARD).is_err() {
            return Err(job.finished());
        }
        Ok(job)
    }

    /// Ends it as ctrl-c does.
    pub(super) fn stop(self) -> Ended {
        self.signal("TERM");
        self.finished()
    }

    /// Waits for its end, or kills it.
    pub(super) fn finished(mut self) -> Ended {
        if self.is_over.recv_timeout(GUARD) == Err(mpsc::RecvTimeoutError::Timeout) {
            self.signal("KILL");
        }
        let status = self.child.0.wait().expect("it ends");
        let out = self.out.join().expect("it reads");
        let err = self.err.join().expect("it reads");
        let code = status.code().filter(|_| status.signal().is_none());
        Ended { code, out, err }
    }

    fn signal(&self, name: &str) {
        self.child.signal(name);
    }
}

/// The leader of a process group, which is killed with it when dropped.
struct Group(Child);

impl Group {
    fn signal(&self, name: &str) {
        let group = format!("-{}", self.0.id());
        let mut kill = Command::new("kill");
        // It may be over already.
        let _ = kill.args([&format!("-{name}"), "--", &group]).status();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group whose leader has been waited for may be that of others.
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal("KILL");
            let _ = self.0.wait();
        }
    }
}
