//! Node processes that a verb starts, queries and stops.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::Outcome;
use crate::process::{self, Running};
use crate::project;

/// Maximum time until a node writes an expected line, on a busy machine.
const LINE_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum time of a shutdown, on a busy machine.
const END_TIMEOUT: Duration = Duration::from_secs(120);

/// A running node, which is ended when dropped.
#[derive(Debug)]
pub(crate) struct NodeProcess {
    running: Running,
    lines: Receiver<String>,
    log: PathBuf,
}

impl NodeProcess {
    /// Starts a node without waiting. Its standard error is appended to a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, String> {
        let err = File::options().append(true).create(true).open(log);
        let err = err.map_err(|error| format!("{}: {error}", log.display()))?;
        let mut running = process::spawn(command.stdout(Stdio::piped()).stderr(err))?;
        let out = BufReader::new(running.take_stdout()?);
        let (said, lines) = mpsc::channel();
        // Ends with the output, which the node closes when it ends.
        thread::spawn(move || {
            let mut lines = out.lines().map_while(Result::ok);
            lines.try_for_each(|line| said.send(line))
        });
        let log = log.to_owned();
        Ok(Self {
            running,
            lines,
            log,
        })
    }

    /// Starts a node with a new log, and waits until it announces itself.
    pub(crate) fn announced(command: &mut Command, log: &Path) -> Result<(Self, Value), String> {
        project::write(log, "")?;
        let node = Self::start(command, log)?;
        let said = node.object()?;
        Ok((node, said))
    }

    /// Waits for the next line of output, and parses it.
    pub(crate) fn object(&self) -> Result<Value, String> {
        let line = self.lines.recv_timeout(LINE_TIMEOUT);
        let line = line.map_err(|error| {
            let why = match error {
                mpsc::RecvTimeoutError::Timeout => format!("wrote nothing for {LINE_TIMEOUT:?}"),
                mpsc::RecvTimeoutError::Disconnected => "ended".to_owned(),
            };
            format!("the node {why}:\n{}", self.end_of_log())
        })?;
        serde_json::from_str(&line).map_err(|error| format!("the node wrote `{line}`: {error}"))
    }

    /// Returns the last lines of the log.
    fn end_of_log(&self) -> String {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let from = said.len().saturating_sub(2000);
        said.get(from..).unwrap_or(&said).to_owned()
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// Returns the resident memory of the node, in KiB.
    pub(crate) fn resident(&self) -> Result<u64, String> {
        let status = project::read(format!("/proc/{}/status", self.id()).as_ref())?;
        let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let size = size.and_then(|line| line.split_whitespace().next()?.parse().ok());
        size.ok_or_else(|| format!("the node has no resident memory:\n{status}"))
    }

    /// Returns an error if the node has exited.
    pub(crate) fn assert_alive(&mut self) -> Outcome {
        match self.running.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the node has ended with {status}")),
        }
    }

    /// Kills the node with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.running.kill();
    }

    /// Shuts the node down in order with a signal, and returns its exit status.
    pub(crate) fn end(&mut self, signal: Signal) -> Result<ExitStatus, String> {
        self.running.signal(signal)?;
        let status = self.running.wait_within(END_TIMEOUT)?;
        status.ok_or_else(|| format!("the node does not end within {END_TIMEOUT:?}"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;

    fn started(script: &str) -> (NodeProcess, PathBuf) {
        let thread = thread::current()
            .name()
            .unwrap_or_default()
            .replace(':', "-");
        let folder = std::env::temp_dir().join(format!("xtask-{}-{thread}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let mut command = Command::new("bash");
        command.args(["-c", script]);
        let node = NodeProcess::start(&mut command, &folder.join("log")).expect("there is bash");
        (node, folder)
    }

    #[test]
    fn failed_start_is_an_error_with_the_end_of_the_log() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let begun = Instant::now();
        // A client instead of a node: it fails like a node that cannot bind its port.
        let taken = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo {port} taken >&2; exit 1");
        let (node, folder) = started(&taken);
        let error = node.object().expect_err("it has no port");
        assert!(error.contains("the node ended"), "{error}");
        assert!(error.contains(&format!("{port} taken")), "{error}");
        assert!(begun.elapsed() < LINE_TIMEOUT / 2);
        drop(node);
        fs::remove_dir_all(folder).expect("the file is accessible");
    }

    #[test]
    fn node_announces_itself_and_ends_on_a_signal() {
        let (mut node, folder) =
            started("trap 'exit 4' TERM; echo '{\"n4\": 1}'; while :; do sleep 0.1; done");
        assert_eq!(node.object().expect("it announces")["n4"], 1);
        node.assert_alive().expect("it runs");
        let status = node.end(Signal::TERM).expect("it ends");
        assert_eq!(status.code(), Some(4));
        drop(node);
        fs::remove_dir_all(folder).expect("the file is accessible");
    }
}
