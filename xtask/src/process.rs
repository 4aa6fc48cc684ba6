//! Child processes that do not outlive their starter.
//!
//! Each runs in a process group of its own, so that its descendants can be ended with it. It is
//! ended when its handle is dropped, when a limit that [`within`] set is reached, and when this
//! program is interrupted. Descendants that have left the group are found by their ancestors.

mod tree;
mod watch;

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

pub(crate) use self::watch::{guard, hold_if_interrupted, limit_or, on_interrupt, within};
use crate::{step, term};

/// Time in which descendants of an ended program must be gone: processes that it was about to end
/// are no defect.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Maximum interval between two polls of a child.
const MAX_PAUSE: Duration = Duration::from_millis(20);

/// A child process. Dropping it ends its group.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    shown: String,
    entry: u64,
    /// The status of a child that has been reaped, whose number may be that of another process.
    status: Option<ExitStatus>,
    left: Vec<String>,
}

/// Starts a program in a group of its own, without input.
///
/// # Errors
/// Returns an error if it cannot be started, or may not because its time is over.
pub(crate) fn spawn(command: &mut Command) -> Result<Running, String> {
    let shown = step::display(command);
    command.stdin(Stdio::null()).process_group(0);
    let (child, entry) = watch::start(&shown, || command.spawn())?;
    Ok(Running {
        child,
        shown,
        entry,
        status: None,
        left: Vec::new(),
    })
}

/// Runs a program to its end, with its output passed through unless the command says otherwise.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus, String> {
    spawn(command)?.wait()
}

/// Runs a program to its end and returns what it wrote.
pub(crate) fn output(command: &mut Command) -> Result<Output, String> {
    spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?.output()
}

/// Runs a program to its end and parses the JSON that it wrote to standard output.
pub(crate) fn json(command: &mut Command) -> Result<Value, String> {
    spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?.json()
}

/// Runs a program to its end and returns what it wrote to standard output.
pub(crate) fn stdout(command: &mut Command) -> Result<Output, String> {
    spawn(command.stdout(Stdio::piped()))?.output()
}

/// Runs a program to its end and returns what it wrote, or `None` if it takes too long.
pub(crate) fn output_within(
    command: &mut Command,
    limit: Duration,
) -> Result<Option<Output>, String> {
    spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?.output_within(Some(limit))
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the pipe from its standard output.
    pub(crate) fn take_stdout(&mut self) -> Result<ChildStdout, String> {
        let pipe = self.child.stdout.take();
        pipe.ok_or_else(|| format!("`{}` has no output", self.shown))
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus, String> {
        self.is_over(WaitIdOptions::empty())?;
        self.reap()
    }

    /// Waits for its end, or ends it after this time and returns `None`.
    pub(crate) fn wait_within(&mut self, limit: Duration) -> Result<Option<ExitStatus>, String> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        while !self.is_over(WaitIdOptions::NOHANG)? {
            if begun.elapsed() > limit {
                self.end();
                return Ok(None);
            }
            thread::sleep(pause);
            pause = MAX_PAUSE.min(pause * 2);
        }
        self.reap().map(Some)
    }

    /// Returns its status if it has ended.
    pub(crate) fn try_wait(&mut self) -> Result<Option<ExitStatus>, String> {
        if self.is_over(WaitIdOptions::NOHANG)? {
            return self.reap().map(Some);
        }
        Ok(None)
    }

    /// Waits for its end and returns what it wrote into the pipes that are not taken.
    pub(crate) fn output(self) -> Result<Output, String> {
        let shown = self.shown.clone();
        let output = self.output_within(None)?;
        output.ok_or_else(|| format!("`{shown}` has no end"))
    }

    /// Waits for its end and parses the JSON that it wrote. The status may be that of a failure
    /// which the JSON describes.
    pub(crate) fn json(self) -> Result<Value, String> {
        let shown = self.shown.clone();
        let ran = self.output()?;
        serde_json::from_slice(&ran.stdout).map_err(|error| {
            let [out, err] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes));
            format!("`{shown}` printed no JSON: {error}\n{out}{err}")
        })
    }

    fn output_within(mut self, limit: Option<Duration>) -> Result<Option<Output>, String> {
        let stdout = drain(self.child.stdout.take());
        let stderr = drain(self.child.stderr.take());
        let status = match limit {
            Some(limit) => self.wait_within(limit)?,
            None => Some(self.wait()?),
        };
        // Descendants that held the pipes open have been ended.
        let read = |thread: thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
        let (stdout, stderr) = (read(stdout), read(stderr));
        Ok(status.map(|status| Output {
            status,
            stdout,
            stderr,
        }))
    }

    /// Sends a signal to the process alone.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), String> {
        let sent = match self.status {
            None => kill_process(self.pid(), signal),
            Some(_) => Ok(()),
        };
        sent.map_err(|error| format!("no signal to `{}`: {error}", self.shown))
    }

    /// Ends the process and its descendants: SIGTERM, and after a grace period SIGKILL.
    pub(crate) fn end(&mut self) {
        if self.status.is_none() {
            let group = self.pid();
            watch::end(|| tree::members(group));
            self.status = self.child.wait().ok();
        }
    }

    /// Kills the process and its descendants.
    pub(crate) fn kill(&mut self) {
        if self.status.is_none() {
            let members = tree::members(self.pid());
            // Processes that have exited meanwhile need no signal.
            let _ = kill_process(self.pid(), Signal::KILL);
            for pid in members {
                let _ = kill_process(pid, Signal::KILL);
            }
            self.status = self.child.wait().ok();
        }
    }

    /// Returns the descendants that lived on after its end, and were ended.
    pub(crate) fn left(&self) -> &[String] {
        &self.left
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for its end without reaping it, so that its number stays that of its group.
    fn is_over(&self, how: WaitIdOptions) -> Result<bool, String> {
        if self.status.is_some() {
            return Ok(true);
        }
        let how = how | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.pid()), how) {
                Ok(status) => return Ok(status.is_some()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("lost `{}`: {error}", self.shown)),
            }
        }
    }

    fn reap(&mut self) -> Result<ExitStatus, String> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        self.left = sweep(self.pid());
        if !self.left.is_empty() {
            let left = self.left.join(", ");
            term::note(&format!("`{}` left running, and ended: {left}", self.shown));
        }
        let lost = |error: io::Error| format!("lost `{}`: {error}", self.shown);
        let status = self.child.wait().map_err(lost)?;
        self.status = Some(status);
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
        watch::forget(self.entry);
    }
}

/// Ends what a program whose end is known left running, and returns a description of each process.
fn sweep(group: Pid) -> Vec<String> {
    leftovers(|| tree::members(group))
}

/// Ends all descendants of this process, and returns a description of each.
pub(crate) fn sweep_descendants() -> Vec<String> {
    leftovers(|| tree::descendants(rustix::process::getpid()))
}

fn leftovers(find: impl Fn() -> Vec<Pid>) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let left = find();
        if left.is_empty() {
            return Vec::new();
        }
        if begun.elapsed() > EXIT_GRACE {
            let names = left.into_iter().map(tree::name).collect();
            watch::end(find);
            return names;
        }
        thread::sleep(MAX_PAUSE);
    }
}

/// Reads a pipe on a thread, so that a full pipe does not block the child.
fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Output read before an error is still worth showing.
            let _ended = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time limit of every test here, even on a busy machine.
    const TEST_TIMEOUT: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    /// Returns `true` once no process with this number lives.
    fn is_gone(pid: &str) -> bool {
        let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("not zero");
        let begun = Instant::now();
        while tree::is_alive(pid) {
            if begun.elapsed() > TEST_TIMEOUT {
                return false;
            }
            thread::sleep(MAX_PAUSE);
        }
        true
    }

    #[test]
    fn hung_child_is_ended_with_its_descendants() {
        let begun = Instant::now();
        let mut command = shell("sleep 1000 & echo $!; wait");
        let mut running = spawn(command.stdout(Stdio::piped())).expect("sh is installed");
        let out = drain(Some(running.take_stdout().expect("piped")));
        let status = running.wait_within(Duration::from_millis(300));
        assert_eq!(status, Ok(None));
        let pid = String::from_utf8(out.join().expect("it reads")).expect("text");
        assert!(is_gone(&pid));
        assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", begun.elapsed());
    }

    #[test]
    fn child_that_ignores_sigterm_is_killed() {
        let begun = Instant::now();
        let mut command = shell("trap '' TERM; while :; do sleep 1; done");
        let output = output_within(&mut command, Duration::from_millis(300));
        assert!(output.expect("it starts").is_none());
        assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", begun.elapsed());
    }

    #[test]
    fn stopped_child_is_ended() {
        let begun = Instant::now();
        let mut running = spawn(&mut shell("kill -STOP $$; exit 0")).expect("sh is installed");
        assert_eq!(running.wait_within(Duration::from_millis(300)), Ok(None));
        assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", begun.elapsed());
    }

    #[test]
    fn descendant_in_a_group_of_its_own_is_ended_too() {
        let mut command = shell("setsid sleep 1000 & echo $!; wait");
        let mut running = spawn(command.stdout(Stdio::piped())).expect("sh is installed");
        let out = drain(Some(running.take_stdout().expect("piped")));
        assert_eq!(running.wait_within(Duration::from_millis(300)), Ok(None));
        let pid = String::from_utf8(out.join().expect("it reads")).expect("text");
        assert!(is_gone(&pid));
    }

    #[test]
    fn descendant_with_open_output_does_not_block_the_caller() {
        let begun = Instant::now();
        let mut running = spawn(shell("sleep 1000 & echo $!").stdout(Stdio::piped()));
        let running = running.as_mut().expect("sh is installed");
        let out = drain(Some(running.take_stdout().expect("piped")));
        let status = running.wait().expect("it ends");
        assert!(status.success());
        let left = running.left();
        assert!(
            matches!(left, [one] if one.contains("sleep 1000")),
            "{left:?}"
        );
        let pid = String::from_utf8(out.join().expect("it reads")).expect("text");
        assert!(is_gone(&pid));
        assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", begun.elapsed());
    }

    #[test]
    fn dropped_child_is_ended() {
        let running = spawn(&mut shell("sleep 1000")).expect("sh is installed");
        let pid = running.id().to_string();
        drop(running);
        assert!(is_gone(&pid));
    }

    #[test]
    fn output_and_status_of_the_child_are_returned() {
        let output = output(&mut shell("echo out; echo err >&2; exit 3")).expect("it runs");
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.stderr, b"err\n");
        assert_eq!(output.status.code(), Some(3));
        let error = spawn(&mut Command::new("/nowhere/program")).expect_err("it is not there");
        assert!(error.contains("cannot start `/nowhere/program`"), "{error}");
    }
}
