//! A node in a process of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{Ran, strowger};
use crate::guarded::Guarded;

/// The file to which a node writes its standard error, in its directory.
const LOG: &str = "log";

/// A running `strowger run --json`; killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Guarded,
    out: BufReader<ChildStdout>,
    pub(crate) n4: String,
    pub(crate) control: String,
    pub(crate) http: Option<String>,
    pub(crate) tcp: Option<String>,
    folder: TempDir,
}

impl Running {
    /// Starts a node with this configuration on a port of its own, and waits until it is ready.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_on(0, config)
    }

    /// Does the same on a given port.
    pub(crate) fn start_on(port: u16, config: &str) -> Self {
        Self::start_by(&[], port, config)
    }

    /// Does the same by means of another program, which is given the command line.
    pub(crate) fn start_by(program: &[&str], port: u16, config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("node.toml");
        fs::write(&file, config).expect("the folder is writable");
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

    /// Starts a node that puts its socket at the default place, below `place`.
    pub(crate) fn start_in(place: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
        command.args(["run", "--json", "--port", "0"]);
        Self::spawn(within(command, place), folder)
    }

    fn spawn(mut command: Command, folder: TempDir) -> Self {
        let log = File::create(folder.path().join(LOG)).expect("the folder is writable");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = Guarded::spawn(&mut command);
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let first = object(&mut out);
        let text = |key: &str| first[key].as_str().expect("text").to_owned();
        Self {
            child,
            n4: text("n4"),
            control: text("control"),
            http: first["http"].as_str().map(str::to_owned),
            tcp: first["tcp"].as_str().map(str::to_owned),
            folder,
            out,
        }
    }

    /// The path of its configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("node.toml")
    }

    /// Runs a command against this node.
    pub(crate) fn ask<'a>(&'a self, args: impl IntoIterator<Item = &'a str>) -> Ran {
        strowger(args.into_iter().chain(["--control", &self.control]))
    }

    /// Sends a signal, such as `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status()
            .expect("kill is installed");
        assert!(sent.success());
    }

    /// Reads the next object that the node prints.
    pub(crate) fn object(&mut self) -> Value {
        object(&mut self.out)
    }

    /// Kills the node with SIGKILL, and waits until it is gone.
    pub(crate) fn kill(self) {
        self.child.kill();
        self.child.wait();
    }

    /// Waits for the exit; returns the exit code and the text on standard error.
    pub(crate) fn ended(self) -> (i32, String) {
        let status = self.child.wait();
        (status.code().expect("it is not killed"), self.log())
    }

    /// Shuts the node down in order; returns its summary.
    pub(crate) fn end(mut self) -> Value {
        self.signal("TERM");
        let summary = self.object();
        let (code, errors) = self.ended();
        assert_eq!(code, 0, "{errors}");
        summary
    }

    /// The text that the node wrote to standard error.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join(LOG)).expect("errors are text")
    }

    /// All actors, as `ps` lists them.
    pub(crate) fn actors(&self) -> Vec<Value> {
        let ran = self.ask(["ps", "--json"]);
        assert_eq!(ran.code, 0, "{}\n{}", ran.err, self.log());
        ran.objects()
    }

    /// The root of the file system as the node sees it.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.child.id()))
    }

    /// The memory in use, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|text| text.parse().ok()).expect("a size")
    }

    /// The processor time used by the node, including that of the system on its behalf.
    pub(crate) fn cpu(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(path).expect("it runs");
        // The name of the program, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let mut fields = fields.split_whitespace().skip(11);
        let mut ticks = || fields.next().and_then(|text| text.parse::<u64>().ok());
        let ticks = ticks().zip(ticks()).map(|(user, system)| user + system);
        Duration::from_millis(10 * ticks.expect("two times"))
    }

    /// Fails unless the node runs, and nothing in it panicked or was restarted.
    pub(crate) fn assert_unharmed(&self) {
        assert!(self.child.is_running(), "{}", self.log());
        let actors = self.actors();
        let restarted = |row: &&Value| row["restarts"] != 0;
        let restarted: Vec<&Value> = actors.iter().filter(restarted).collect();
        assert!(restarted.is_empty(), "{restarted:?}\n{}", self.log());
        assert!(!self.log().contains("panicked"), "{}", self.log());
    }
}

/// Makes a command use `place` as the directory for temporary files.
pub(crate) fn within(mut command: Command, place: &Path) -> Command {
    command.env("TMPDIR", place).env_remove("XDG_RUNTIME_DIR");
    command
}

fn object(out: &mut impl BufRead) -> Value {
    let mut line = String::new();
    out.read_line(&mut line).expect("output is text");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}
