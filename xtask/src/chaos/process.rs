//! The processes of a round: runs of the node, a load, an audit.

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::Outcome;
use crate::node::NodeProcess;
use crate::process::{self, Running};
use crate::project;

/// The files of a round, the binary, and the port of the node.
#[derive(Debug)]
pub(super) struct ChaosSetup {
    binary: PathBuf,
    port: u16,
    pub(super) store: PathBuf,
    config: PathBuf,
    socket: PathBuf,
    journal: PathBuf,
    log: PathBuf,
}

impl ChaosSetup {
    pub(super) fn new(folder: &Path, binary: &Path) -> Result<Self, String> {
        let socket = UdpSocket::bind("127.0.0.1:0");
        let address = socket.and_then(|socket| socket.local_addr());
        let address = address.map_err(|error| format!("no port: {error}"))?;
        Ok(Self {
            binary: binary.to_owned(),
            port: address.port(),
            store: folder.join("store"),
            config: folder.join("node.toml"),
            socket: folder.join("control.sock"),
            journal: folder.join("journal"),
            log: folder.join("node.log"),
        })
    }

    /// Creates an empty store, and a configuration with which the store writes tables all the time.
    /// Answers are kept for as long as the load repeats its requests.
    pub(super) fn clean(&self, durability: &str) -> Outcome {
        if self.store.exists() {
            fs::remove_dir_all(&self.store).map_err(|error| failed(&self.store, &error))?;
        }
        let text = format!(
            "[n4]\nlisten = [\"127.0.0.1:{}\"]\n[n4.timers]\nt1 = \"6s\"\nn1 = 100\n\
             [n4.store]\npath = {:?}\n\
             durability = \"{durability}\"\nbuffer = \"64KiB\"\nreserve = \"1MiB\"\n",
            self.port, self.store
        );
        project::write(&self.config, text)?;
        project::write(&self.log, "")?;
        project::write(&self.journal, "")
    }

    /// Returns what all runs of the node wrote to standard error.
    pub(super) fn log(&self) -> Result<String, String> {
        project::read(&self.log)
    }

    /// Compares the journal with the node.
    pub(super) fn audit(&self) -> Result<Value, String> {
        let mut command = Command::new(&self.binary);
        command.args(["pfcp", "audit", "--json", "--control"]);
        command.args([&self.socket, &self.journal]);
        process::json(&mut command)
    }
}

/// Starts the node without waiting.
pub(super) fn start(setup: &ChaosSetup) -> Result<NodeProcess, String> {
    let mut command = Command::new(&setup.binary);
    command.args(["run", "--json", "--config"]);
    command.arg(&setup.config);
    command.arg("--control").arg(&setup.socket);
    NodeProcess::start(&mut command, &setup.log)
}

/// A load that continues across restarts of the node.
#[derive(Debug)]
pub(super) struct LoadProcess(Running);

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
        command.arg("--journal").arg(&setup.journal);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut load = process::spawn(piped)?;
        wait_until("the load did not send a request", || {
            match load.try_wait()? {
                Some(status) => Err(format!("the load ended with {status}")),
                None => {
                    Ok(fs::metadata(&setup.journal)
                        .is_ok_and(|data| data.len() >= MIN_JOURNAL_BYTES))
                }
            }
        })?;
        Ok(Self(load))
    }

    /// Stops the process, and waits until it has stopped: its threads continue until each receives
    /// the signal, which takes a while on a busy machine.
    pub(super) fn pause(&self) -> Outcome {
        self.0.signal(Signal::STOP)?;
        wait_until("the load did not stop", || is_stopped(self.0.id()))
    }

    pub(super) fn resume(&self) -> Outcome {
        self.0.signal(Signal::CONT)
    }

    /// Ends the load, which deletes its sessions, and returns its report.
    pub(super) fn end(self) -> Result<Value, String> {
        self.0.signal(Signal::INT)?;
        self.0.json()
    }
}

/// Longest time for what takes milliseconds, on a busy machine.
const STEP_LIMIT: Duration = Duration::from_secs(120);

fn wait_until(failure: &str, mut is_so: impl FnMut() -> Result<bool, String>) -> Outcome {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > STEP_LIMIT {
            return Err(format!("{failure} within {STEP_LIMIT:?}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A journal with more bytes than this contains a request.
const MIN_JOURNAL_BYTES: u64 = 64;

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
