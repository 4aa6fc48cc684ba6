//! A node as a child process.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of nodes that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A running node, which is killed when this handle is dropped.
pub(crate) struct Node {
    child: Child,
    /// Kept open so that the node can write to it.
    _out: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Node {
    /// Starts the program in `STROWGER_BIN`, and waits until it is ready.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a node with additional arguments.
    pub(crate) fn start_with(more: &[&OsStr]) -> Self {
        let program = std::env::var_os("STROWGER_BIN")
            .expect("STROWGER_BIN names the node: `cargo xtask bench messages` sets it");
        let folder = folder("node");
        let mut child = Command::new(program)
            .args(["run", "--json", "--port", "0", "--conformance", "--control"])
            .arg(folder.join("control"))
            .arg("--gateway")
            .arg(folder.join("gateway"))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program of the node starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut ready = String::new();
        out.read_line(&mut ready).expect("the node says text");
        assert!(ready.contains("gateway"), "the node began with {ready:?}");
        Self {
            child,
            _out: out,
            folder,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("gateway")
    }

    /// Returns the resident memory of the node, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        let kib: u64 = number.and_then(|text| text.parse().ok()).expect("a size");
        kib * 1024
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        end(&mut self.child, &self.folder);
    }
}

/// Creates a new folder for sockets.
pub(crate) fn folder(name: &str) -> PathBuf {
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let own = format!("strowger-bench-{}-{name}{number}", std::process::id());
    let folder = std::env::temp_dir().join(own);
    fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
    folder
}

pub(crate) fn end(child: &mut Child, folder: &Path) {
    // The process has ended already, or ends now.
    let _ = child.kill();
    let _ = child.wait();
    let _ = fs::remove_dir_all(folder);
}
