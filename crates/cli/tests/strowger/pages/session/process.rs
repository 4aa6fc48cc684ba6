//! Commands that run to their end, and commands in the background.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::workspace::Workspace;

/// The time after which a command counts as hung.
const HANG_GUARD: Duration = Duration::from_secs(120);

/// The exit code and the output of a command.
#[derive(Debug)]
pub(super) struct CommandResult {
    /// `None` if the command was killed.
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl CommandResult {
    /// Describes an end that differs from the expected exit code.
    pub(super) fn describe(&self, command: &str, wanted: i32) -> String {
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

/// Runs a command to its end, with empty standard input.
pub(super) fn run(workspace: &Workspace, prelude: &str, command: &str) -> CommandResult {
    match Background::start(workspace, prelude, command, None) {
        Ok(job) => job.finished(),
        Err(ended) => ended,
    }
}

/// A command that runs in the background.
pub(super) struct Background {
    pub(super) command: String,
    child: ProcessGroup,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
    is_over: Receiver<()>,
}

impl Background {
    /// Starts a command, and waits until it prints a line that contains a text.
    ///
    /// # Errors
    /// Returns the result of the command if it ended before that.
    pub(super) fn start(
        workspace: &Workspace,
        prelude: &str,
        command: &str,
        until: Option<&str>,
    ) -> Result<Self, CommandResult> {
        // Replace the shell, which would otherwise receive the signals instead of the command.
        let script = match until {
            Some(_) => format!("exec {command}"),
            None => format!("{prelude}{command}"),
        };
        Self::spawn(&mut workspace.shell(&script), command, until)
    }

    fn spawn(
        shell: &mut Command,
        command: &str,
        until: Option<&str>,
    ) -> Result<Self, CommandResult> {
        let shell = shell.stdin(Stdio::null()).stdout(Stdio::piped());
        // A process group of its own can be killed as a whole.
        let mut child = shell
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map(ProcessGroup)
            .expect("sh is installed");
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
                    // The receiver is gone after the first match.
                    let _ = printed.send(());
                }
            }
            drop((printed, over));
            String::from_utf8_lossy(&all).into_owned()
        });
        let mut stderr = child.0.stderr.take().expect("piped");
        let err = thread::spawn(move || {
            let mut all = Vec::new();
            // Output read before an error is still shown.
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
        if waits && seen.recv_timeout(HANG_GUARD).is_err() {
            return Err(job.finished());
        }
        Ok(job)
    }

    /// Stops the command with SIGTERM.
    pub(super) fn stop(self) -> CommandResult {
        self.signal("TERM");
        self.finished()
    }

    /// Waits for the exit of the command, or kills it after the time limit.
    pub(super) fn finished(mut self) -> CommandResult {
        if self.is_over.recv_timeout(HANG_GUARD) == Err(mpsc::RecvTimeoutError::Timeout) {
            self.signal("KILL");
        }
        let status = self.child.0.wait().expect("it ends");
        let out = self.out.join().expect("it reads");
        let err = self.err.join().expect("it reads");
        let code = status.code().filter(|_| status.signal().is_none());
        CommandResult { code, out, err }
    }

    fn signal(&self, name: &str) {
        self.child.signal(name);
    }
}

/// The leader of a process group, which is killed with it when dropped.
struct ProcessGroup(Child);

impl ProcessGroup {
    fn signal(&self, name: &str) {
        let group = format!("-{}", self.0.id());
        let mut kill = Command::new("kill");
        // The process may have exited already.
        let _ = kill.args([&format!("-{name}"), "--", &group]).status();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Once the leader is reaped, its group id may belong to another group.
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal("KILL");
            let _ = self.0.wait();
        }
    }
}
