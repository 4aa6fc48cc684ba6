//! Runs the built binary.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::guarded::Guarded;

/// The result of a run of the binary.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `strowger` with `args` and empty input.
pub(crate) fn strowger<'a>(args: impl IntoIterator<Item = &'a str>) -> Ran {
    strowger_with_input(args, b"")
}

/// Runs `strowger` with `args` and `input` on its standard input.
pub(crate) fn strowger_with_input<'a>(
    args: impl IntoIterator<Item = &'a str>,
    input: &[u8],
) -> Ran {
    run(&mut command(args), input)
}

/// A command that runs `strowger` with `args`.
pub(crate) fn command<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
    command.args(args);
    command
}

/// Runs a command with `input` on its standard input.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Ran {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = Guarded::spawn(command);
    let mut stdin = child.stdin.take().expect("piped");
    let Output {
        status,
        stdout,
        stderr,
    } = thread::scope(|scope| {
        // A command that fails early does not read its input.
        scope.spawn(move || stdin.write_all(input));
        child.output()
    });
    Ran {
        code: status.code().expect("the binary is not killed"),
        out: String::from_utf8(stdout).expect("output is text"),
        err: String::from_utf8(stderr).expect("errors are text"),
    }
}

impl Ran {
    /// Reads each line as an object.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let object = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(object).collect()
    }

    /// Reads the last line as an object.
    pub(crate) fn last_object(&self) -> Value {
        let line = self
            .out
            .lines()
            .last()
            .unwrap_or_else(|| panic!("no output: {}", self.err));
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }
}
