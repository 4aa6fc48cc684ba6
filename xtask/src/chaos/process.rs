//! The processes of a round: runs of the node, a load, an audit.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::Outcome;

/// The folder of a round, the binary, and the port of the node.
#[derive(Debug)]
pub(super) struct ChaosSetup {
    folder: PathBuf,
    binary: PathBuf,
    port: u16,
}

impl ChaosSetup {
    pub(super) fn new(folder: &Path, binary: &Path) -> Result<Self, String> {
        let socket = UdpSocket::bind("127.0.0.1:0");
        let address = socket.and_then(|socket| socket.local_addr());
        let address = address.map_err(|error| format!("no port: {error}"))?;
        Ok(Self {
            folder: folder.to_owned(),
            binary: binary.to_owned(),
            port: address.port(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates an empty store, and a configuration with which the store writes tables all the time.
    /// Answers are kept for as long as the load repeats its requests.
    pub(super) fn clean(&self, durability: &str) -> Outcome {
        let store = self.store();
        if store.exists() {
            fs::remove_dir_all(&store).map_err(|error| failed(&store, &error))?;
        }
        let text = format!(
            "[n4]\nlisten = [\"127.0.0.1:{}\"]\n[n4.timers]\nt1 = \"6s\"\nn1 = 100\n\
             [n4.store]\npath = {store:?}\n\
             durability = \"{durability}\"\nbuffer = \"64KiB\"\nreserve = \"1MiB\"\n",
            self.port
        );
        let config = self.config();
        fs::write(&config, text).map_err(|error| failed(&config, &error))?;
        let log = self.folder.join("node.log");
        File::create(&log).map_err(|error| failed(&log, &error))?;
        let journal = self.journal();
        match fs::remove_file(&journal) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&journal, &error)),
            _ => Ok(()),
        }
    }

    pub(super) fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    fn config(&self) -> PathBuf {
        self.folder.join("node.toml")
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("control.sock")
    }

    fn journal(&self) -> PathBuf {
        self.folder.join("ledger")
    }

    /// Returns what all runs of the node wrote to standard error.
    pub(super) fn log(&self) -> Result<String, String> {
        let log = self.folder.join("node.log");
        fs::read_to_string(&log).map_err(|error| failed(&log, &error))
    }

    /// Compares the journal with the node.
    pub(super) fn audit(&self) -> Result<Value, String> {
        let mut command = Command::new(&self.binary);
        command.args(["pfcp", "audit", "--json", "--control"]);
        command.args([self.socket(), self.journal()]);
        let ran = command.output();
        let ran = ran.map_err(|error| failed(&self.binary, &error))?;
        let text = String::from_utf8_lossy(&ran.stdout);
        serde_json::from_str(&text).map_err(|error| {
            let said = String::from_utf8_lossy(&ran.stderr);
            format!("the audit printed no object: {error}\n{text}{said}")
        })
    }
}

/// A running node.
#[derive(Debug)]
pub(super) struct NodeProcess {
    child: Child,
    out: BufReader<ChildStdout>,
    log: PathBuf,
}

impl NodeProcess {
    /// Starts the node without waiting.
    pub(super) fn start(setup: &ChaosSetup) -> Result<Self, String> {
        let log = setup.folder.join("node.log");
        let mut options = File::options();
        let err = options.append(true).create(true).open(&log);
        let err = err.map_err(|error| failed(&log, &error))?;
        let mut command = Command::new(&setup.binary);
        command.args(["run", "--json", "--config"]);
        command
            .arg(setup.config())
            .arg("--control")
            .arg(setup.socket());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(err);
        let spawned = command.spawn();
        let mut child = spawned.map_err(|error| failed(&setup.binary, &error))?;
        let out = child.stdout.take().ok_or("the node has no output")?;
        let out = BufReader::new(out);
        Ok(Self { child, out, log })
    }

    /// Waits until the node announces itself.
    pub(super) fn wait(&mut self) -> Outcome {
        let mut line = String::new();
        let read = self.out.read_line(&mut line);
        match read.map(|length| length > 0) {
            Ok(true) => Ok(()),
            _ => {
                let said = fs::read_to_string(&self.log).unwrap_or_default();
                let from = said.len().saturating_sub(2000);
                let end = said.get(from..).unwrap_or(&said);
                Err(format!("the node did not start:\n{end}"))
            }
        }
    }

    /// Kills the node with -9.
    pub(super) fn kill(mut self) -> Outcome {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed
            .map(drop)
            .map_err(|error| format!("cannot kill the node: {error}"))
    }

    /// Shuts the node down in order.
    pub(super) fn end(mut self) -> Outcome {
        signal("TERM", &self.child)?;
        let ended = self.child.wait();
        ended
            .map(drop)
            .map_err(|error| format!("the node does not end: {error}"))
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // The node has ended already, or is not needed.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// A load that continues across restarts of the node.
#[derive(Debug)]
pub(super) struct LoadProcess(Option<Child>);

impl LoadProcess {
    /// Starts the load, and waits until it has sent a request.
    pub(super) fn start(setup: &ChaosSetup) -> Result<Self, String> {
        let to = format!("127.0.0.1:{}", setup.port);
        // It retries for as long as the node may take to restart.
        let patience = ["--wait", "100ms", "--tries", "6000"];
        let much = ["--in-flight", "16", "--sessions", "300", "--modify", "0.7"];
        let mut command = Command::new(&setup.binary);
        command.args(["pfcp", "load", "--json", "--to", &to]);
        command.args(patience).args(much);
        command.arg("--ledger").arg(setup.journal());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let spawned = command.spawn();
        let mut child = spawned.map_err(|error| failed(&setup.binary, &error))?;
        let journal = setup.journal();
        while fs::metadata(&journal).map_or(0, |data| data.len()) < A_REQUEST {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("the load ended with {status}"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self(Some(child)))
    }

    fn child(&self) -> Result<&Child, String> {
        self.0
            .as_ref()
            .ok_or_else(|| "the load has ended".to_owned())
    }

    /// Stops the process, and waits until it has stopped: its threads continue until each receives
    /// the signal, which takes a while on a busy machine.
    pub(super) fn hold(&self) -> Outcome {
        let child = self.child()?;
        signal("STOP", child)?;
        while !is_stopped(child.id())? {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    pub(super) fn go_on(&self) -> Outcome {
        signal("CONT", self.child()?)
    }

    /// Ends the load, which deletes its sessions, and returns its report.
    pub(super) fn end(mut self) -> Result<Value, String> {
        let child = self.0.take().ok_or("the load has ended")?;
        signal("INT", &child)?;
        let ran = child.wait_with_output();
        let ran = ran.map_err(|error| format!("the load does not end: {error}"))?;
        let text = String::from_utf8_lossy(&ran.stdout);
        serde_json::from_str(&text).map_err(|error| {
            let said = String::from_utf8_lossy(&ran.stderr);
            format!("the load printed no object: {error}\n{text}{said}")
        })
    }
}

impl Drop for LoadProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ended = child.kill();
            let _status = child.wait();
        }
    }
}

/// A journal with more bytes than this contains a request.
const A_REQUEST: u64 = 64;

/// Sends a signal, such as `STOP`.
fn signal(name: &str, to: &Child) -> Outcome {
    let mut kill = Command::new("kill");
    let sent = kill
        .args([&format!("-{name}"), &to.id().to_string()])
        .status();
    match sent {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("kill -{name} ended with {status}")),
        Err(error) => Err(format!("cannot start kill: {error}")),
    }
}

/// Returns `true` if all threads of a process have stopped.
fn is_stopped(process: u32) -> Result<bool, String> {
    let tasks = PathBuf::from(format!("/proc/{process}/task"));
    let entries = fs::read_dir(&tasks).map_err(|error| failed(&tasks, &error))?;
    for entry in entries {
        let stat = entry
            .map_err(|error| failed(&tasks, &error))?
            .path()
            .join("stat");
        // A thread that has ended meanwhile counts as stopped.
        let text = fs::read_to_string(stat).unwrap_or_default();
        let state = text.rsplit_once(") ").map(|(_, rest)| rest);
        if state.is_some_and(|state| !state.starts_with(['T', 't', 'Z', 'X'])) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
