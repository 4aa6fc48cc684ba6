//! A node that runs as a process of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{Ran, strowger};

/// Where a node writes its standard error, in its folder.
const LOG: &str = "log";

/// A running `strowger run --json`; killed if it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) n4: String,
    pub(crate) control: String,
    pub(crate) http: Option<String>,
    folder: TempDir,
}

impl Running {
    /// Starts a node with this configuration on a port of its own, and waits until it is there.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_on(0, config)
    }

    /// The same on a given port.
    pub(crate) fn start_on(port: u16, config: &str) -> Self {
        Self::start_by(&[], port, config)
    }

    /// The same, started by another program that is given the command line.
    pub(crate) fn start_by(program: &[&str], port: u16, config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder of our own");
        let file = folder.path().join("node.toml");
        fs::write(&file, config).expect("the folder is ours");
        let socket = folder.path().join("control.sock");
        let line = program.iter().chain([&env!("CARGO_BIN_EXE_strowger")]);
        let mut words = line.copied();
        let mut command = Command::new(words.next().expect("the binary at least"));
        command
            .args(words)
            .args(["run", "--json", "--port", &port.to_string(), "--control"])
            .args([socket.as_path(), Path::new("--config"), &file]);
        Self::spawn(command, folder)
    }

    /// Starts a node that puts its socket where nodes do, below `place`.
    pub(crate) fn start_in(place: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder of our own");
        let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
        command.args(["run", "--json", "--port", "0"]);
        Self::spawn(within(command, place), folder)
    }

    fn spawn(mut command: Command, folder: TempDir) -> Self {
        let log = File::create(folder.path().join(LOG)).expect("the folder is ours");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary is built");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let first = object(&mut out);
        let text = |key: &str| first[key].as_str().expect("text").to_owned();
        Self {
            child,
            n4: text("n4"),
            control: text("control"),
            http: first["http"].as_str().map(str::to_owned),
            folder,
            out,
        }
    }

    /// Where its configuration is.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("node.toml")
    }

    /// Runs a command that asks this node.
    pub(crate) fn ask<'a>(&'a self, args: impl IntoIterator<Item = &'a str>) -> Ran {
        strowger(args.into_iter().chain(["--control", &self.control]))
    }

    /// Sends a signal, such as `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status()
            .expect("there is a kill command");
        assert!(sent.success());
    }

    /// Reads the next object that it prints.
    pub(crate) fn object(&mut self) -> Value {
        object(&mut self.out)
    }

    /// Ends it with -9, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it ends");
    }

    /// Waits for its end; its exit code, and what it wrote to standard error.
    pub(crate) fn ended(mut self) -> (i32, String) {
        let status = self.child.wait().expect("it ends");
        (status.code().expect("it is not killed"), self.log())
    }

    /// Ends it in order; its summary.
    pub(crate) fn end(mut self) -> Value {
        self.signal("TERM");
        let summary = self.object();
        let (code, errors) = self.ended();
        assert_eq!(code, 0, "{errors}");
        summary
    }

    /// What it wrote to standard error.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join(LOG)).expect("errors are text")
    }

    /// All actors, as `ps` lists them.
    pub(crate) fn actors(&self) -> Vec<Value> {
        let ran = self.ask(["ps", "--json"]);
        assert_eq!(ran.code, 0, "{}\n{}", ran.err, self.log());
        ran.objects()
    }

    /// The root of the file system as it sees it.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.child.id()))
    }

    /// How many KiB of memory it has in use.
    pub(crate) fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|text| text.parse().ok()).expect("a size")
    }

    /// Fails unless it runs, nothing panicked and nothing was restarted.
    pub(crate) fn assert_unharmed(&mut self) {
        let ended = self.child.try_wait().expect("it is ours");
        assert_eq!(ended, None, "{}", self.log());
        let actors = self.actors();
        let restarted = |row: &&Value| row["restarts"] != 0;
        let restarted: Vec<&Value> = actors.iter().filter(restarted).collect();
        assert!(restarted.is_empty(), "{restarted:?}\n{}", self.log());
        assert!(!self.log().contains("panicked"), "{}", self.log());
    }
}

/// Lets a command take `place` for the folder of temporary files.
pub(crate) fn within(mut command: Command, place: &Path) -> Command {
    command.env("TMPDIR", place).env_remove("XDG_RUNTIME_DIR");
    command
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn object(out: &mut impl BufRead) -> Value {
    let mut line = String::new();
    out.read_line(&mut line).expect("output is text");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}
