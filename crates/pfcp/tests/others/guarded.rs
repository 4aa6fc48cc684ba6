//! Programs that do not outlive the test that started them, and do not let it wait for ever: they
//! run on the real clock.

use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest time for which a program runs. No test takes a tenth of it on an idle machine.
const LIFE: Duration = Duration::from_secs(600);

/// A child process. It is killed when dropped, also by a panic, and when it has run for too long:
/// then each wait for it and for its output ends.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// Locked for moments only, so that it can be killed while others wait for it.
    child: Arc<Mutex<Child>>,
    id: u32,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
    /// Dropped when the child needs no guard any more.
    _guard: Sender<()>,
}

impl Guarded {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::spawn_for(LIFE, command)
    }

    fn spawn_for(life: Duration, command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the program is there");
        let (id, stdin) = (child.id(), child.stdin.take());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        let (guard, is_over) = mpsc::channel();
        let (late, shown) = (Arc::clone(&child), format!("{command:?}"));
        thread::spawn(move || {
            if is_over.recv_timeout(life) == Err(RecvTimeoutError::Timeout) {
                eprintln!("killed after {life:?}: {shown}");
                // It may have ended in this moment.
                let _ = locked(&late).kill();
            }
        });
        Self {
            child,
            id,
            stdin,
            stdout,
            stderr,
            _guard: guard,
        }
    }

    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&self) {
        // A process that has ended is no error.
        let _ = locked(&self.child).kill();
    }

    pub(crate) fn is_running(&self) -> bool {
        self.ended().is_none()
    }

    fn ended(&self) -> Option<ExitStatus> {
        locked(&self.child).try_wait().expect("it is ours")
    }

    /// Waits for the end.
    pub(crate) fn wait(&self) -> ExitStatus {
        let status = self.wait_within(Duration::MAX);
        status.expect("it is killed before that")
    }

    /// Waits for the end for this long.
    pub(crate) fn wait_within(&self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            let ended = self.ended();
            if ended.is_some() || begun.elapsed() > limit {
                return ended;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for the end, and returns what the program wrote into the pipes that are not taken.
    pub(crate) fn output(mut self) -> Output {
        let stdout = drain(self.stdout.take());
        let stderr = drain(self.stderr.take());
        let status = self.wait();
        Output {
            status,
            stdout: stdout.join().expect("it reads"),
            stderr: stderr.join().expect("it reads"),
        }
    }
}

/// Runs a command to its end, without input, and returns what it wrote.
pub(crate) fn output(command: &mut Command) -> Output {
    let command = command.stdin(Stdio::null());
    Guarded::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped())).output()
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
        self.wait();
    }
}

fn locked(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    // A test that panicked with the lock has not changed the child.
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).expect("it is a pipe");
        }
        bytes
    })
}

#[test]
fn program_of_a_test_that_panics_is_killed() {
    let (tell, told) = mpsc::channel();
    let failed = thread::spawn(move || {
        let sleeping = Guarded::spawn(Command::new("sleep").arg("1000"));
        tell.send(Arc::clone(&sleeping.child)).expect("it listens");
        panic!("on purpose");
    });
    let child = told.recv().expect("it starts");
    assert!(failed.join().is_err());
    let status = locked(&child).try_wait().expect("it is ours");
    assert!(status.is_some_and(|status| !status.success()), "{status:?}");
}

#[test]
fn program_that_runs_for_too_long_is_killed_and_its_output_ends() {
    let begun = Instant::now();
    let mut sleep = Command::new("sleep");
    let command = sleep.arg("1000").stdout(Stdio::piped());
    let sleeping = Guarded::spawn_for(Duration::from_millis(50), command);
    assert!(!sleeping.output().status.success());
    assert!(begun.elapsed() < LIFE / 10);
}
