//! Forced shutdown of commands that run a node and cannot shut down in order: nothing reads their
//! output, so they would wait forever to print their summary.

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::demo_process::send;
use crate::guarded::Guarded;

/// A command that cannot print anything after its first line; killed when dropped.
struct BlockedProcess {
    child: Guarded,
    _reader: BufReader<PipeReader>,
}

impl BlockedProcess {
    fn start(args: &[&str]) -> Self {
        let (reader, mut writer) = std::io::pipe().expect("there is room");
        let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(writer.try_clone().expect("there is room"))
            .stderr(Stdio::piped());
        let child = Guarded::spawn(&mut command);
        drop(command);
        let mut reader = BufReader::new(reader);
        reader.read_line(&mut String::new()).expect("it exists");
        let (filled, fills) = mpsc::channel();
        // It blocks in a write until the reader is gone.
        thread::spawn(move || {
            while writer.write_all(&[b' '; 4096]).is_ok() {
                if filled.send(()).is_err() {
                    return;
                }
            }
        });
        let second = Duration::from_secs(1);
        while fills.recv_timeout(second) != Err(RecvTimeoutError::Timeout) {}
        Self {
            child,
            _reader: reader,
        }
    }

    /// Waits for the exit; returns the exit code, the time taken, and the text on standard error.
    fn ended(mut self) -> (Option<i32>, Duration, String) {
        let began = Instant::now();
        let status = self.child.wait();
        let took = began.elapsed();
        let said = std::io::read_to_string(self.child.stderr.take().expect("piped"));
        (status.code(), took, said.expect("errors are text"))
    }
}

const DEMO: [&str; 6] = ["demo", "--json", "--port", "0", "--rate", "10"];
const SERVE: [&str; 5] = ["pfcp", "serve", "--json", "--listen", "127.0.0.1:0"];

/// Starts a command with a control socket of its own, if it has one.
fn with_blocked(args: &[&str], program: impl FnOnce(BlockedProcess)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let socket = folder.path().join("control.sock");
    let mut args = args.to_vec();
    if args.first() == Some(&"demo") {
        args.extend(["--control", socket.to_str().expect("text")]);
    }
    program(BlockedProcess::start(&args));
}

#[test]
fn second_signal_ends_every_node_command_at_once() {
    for args in [&DEMO[..], &SERVE] {
        for (signal, status) in [("TERM", 143), ("INT", 130)] {
            with_blocked(args, |command| {
                send(signal, &command.child);
                // The first signal must be delivered before the second one: the system merges two
                // pending ones.
                thread::sleep(Duration::from_secs(1));
                send(signal, &command.child);
                let (code, took, said) = command.ended();
                assert_eq!(code, Some(status), "{args:?}: {said}");
                assert!(said.contains("terminated before"), "{args:?}: {said}");
                assert!(took < Duration::from_secs(4), "{args:?}: {took:?}");
            });
        }
    }
}

#[test]
fn overdue_shutdown_is_forced() {
    // The time limit of the actors, the two seconds of grace, and the same again for a busy
    // machine.
    thread::scope(|scope| {
        for (args, within) in [(&DEMO[..], 34), (&SERVE, 14)] {
            scope.spawn(move || {
                with_blocked(args, |command| {
                    send("TERM", &command.child);
                    let (code, took, said) = command.ended();
                    assert_eq!(code, Some(1), "{args:?}: {said}");
                    assert!(
                        said.contains("shutdown time limit exceeded"),
                        "{args:?}: {said}"
                    );
                    assert!(took < Duration::from_secs(within), "{args:?}: {took:?}");
                });
            });
        }
    });
}
