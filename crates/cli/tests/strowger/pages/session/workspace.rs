//! The workspace in which the commands of a page run: a folder that looks like a clone, and free
//! ports.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::agent::cache;
use crate::pages::root;

/// The folder in which the commands of a page run.
pub(super) struct Workspace {
    folder: TempDir,
    /// Ports named on pages, with the free ports that replace them.
    ports: Vec<(&'static str, String)>,
}

/// Parts of a clone that commands only read.
const LINKED: [&str; 6] = ["docs", "examples", "fixtures", "interop", "packages", "wit"];
/// The time limit of code and programs of agents in tests, long enough for a slow machine.
const CODE_TIME_LIMIT: &str = "20s";

/// The first request of an agent to the program that it starts.
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": "#,
    r#"{"protocolVersion": "2025-06-18", "capabilities": {}, "#,
    r#""clientInfo": {"name": "page", "version": "1"}}}"#,
);

impl Workspace {
    pub(super) fn create() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let workspace = folder.path();
        for name in LINKED {
            symlink(root().join(name), workspace.join(name)).expect("the folder is writable");
        }
        copy_sources(&root().join("components"), &workspace.join("components"));
        for name in ["bin", "target/release", "tmp", "run"] {
            fs::create_dir_all(workspace.join(name)).expect("the folder is writable");
        }
        let private = Permissions::from_mode(0o700);
        fs::set_permissions(workspace.join("run"), private).expect("the folder is writable");
        let binary = env!("CARGO_BIN_EXE_strowger");
        for name in ["bin/strowger", "target/release/strowger"] {
            symlink(binary, workspace.join(name)).expect("the folder is writable");
        }
        let ports = vec![
            ("8805", free_port().to_string()),
            ("9464", free_port().to_string()),
            ("7700", free_port().to_string()),
            ("7701", free_port().to_string()),
        ];
        Self { folder, ports }
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a shell command that runs a script in the workspace.
    pub(super) fn shell(&self, script: &str) -> process::Command {
        let mut shell = process::Command::new("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.at("bin").display());
        shell.args(["-c", script]).current_dir(self.folder.path());
        shell
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .env_remove("STROWGER_LOG");
        shell
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.at("tmp"));
        shell.env("XDG_RUNTIME_DIR", self.at("run"));
        shell
    }

    /// Replaces the ports in a text by free ones.
    pub(super) fn with_ports(&self, text: &str) -> String {
        self.ports
            .iter()
            .fold(text.to_owned(), |text, (named, ours)| {
                replace_number(&text, named, ours)
            })
    }

    /// Replaces the ports in the output that a page shows.
    pub(super) fn lines_with_ports(&self, lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| self.with_ports(line)).collect()
    }

    /// Adapts a command for a test: free ports, and a rate that a debug build can sustain.
    pub(super) fn adapted(&self, command: &str) -> String {
        let command = command.replace("cargo run --release --no-default-features -- ", "strowger ");
        let mut command = self.with_ports(&command);
        let n4 = &self.ports[0].1;
        let mut add = |verb: &str, option: &str, value: &str| {
            let at = format!("strowger {verb}");
            if command.contains(&at) && !command.contains(option) {
                command = command.replace(&at, &format!("{at} {option} {value}"));
            }
        };
        add("ask", "--deadline", "2m");
        add("tell", "--deadline", "2m");
        for verb in ["demo", "run"] {
            add(verb, "--port", n4);
        }
        add("pfcp serve", "--listen", &format!("127.0.0.1:{n4}"));
        for verb in ["pfcp decode", "pfcp diff"] {
            add(verb, "--port", n4);
        }
        add("demo", "--rate", "20");
        // Without optimisation, the simulated traffic of a thousand sessions takes both processors,
        // and then the node answers no request in time.
        add("demo", "--sessions", "100");
        if command.contains("strowger demo") || command.contains("strowger pfcp load") {
            command = cap_option(&command, "--rate", 20);
            command = cap_option(&command, "--for", 2);
        }
        if command.starts_with("strowger mcp") {
            command = format!("printf '%s\\n' '{INITIALIZE}' | {command}");
        }
        if let Some((_, file)) = command
            .split_once("strowger run")
            .and_then(|(_, rest)| rest.split_once("--config "))
        {
            self.raise_time_limits(file.split_whitespace().next().unwrap_or_default());
        }
        command
    }

    /// Raises the time limits of code in a configuration, because tests run without optimisation.
    fn raise_time_limits(&self, file: &str) {
        let path = self.at(file);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let Ok(mut config) = text.parse::<toml::Table>() else {
            return;
        };
        let cache = cache().display().to_string();
        set_default(&mut config, &["components", "cache"], &cache);
        for tool in ["code", "programs"] {
            if config
                .get("tools")
                .is_some_and(|tools| tools.get(tool).is_some())
            {
                set_default(
                    &mut config,
                    &["tools", tool, "limits", "time"],
                    CODE_TIME_LIMIT,
                );
            }
        }
        fs::write(path, config.to_string()).expect("the folder is writable");
    }
}

/// Returns `true` if a command runs a node until it is stopped.
pub(super) fn runs_a_node(command: &str) -> bool {
    let verbs = ["strowger run", "strowger demo", "strowger pfcp serve"];
    let starts = verbs.iter().any(|verb| command.starts_with(verb));
    starts && !command.contains("--for") && !command.contains("--help")
}

/// Sets a key that has no value yet.
fn set_default(table: &mut toml::Table, way: &[&str], value: &str) {
    match way {
        [] => {}
        [key] => {
            table.entry(*key).or_insert_with(|| value.into());
        }
        [first, rest @ ..] => {
            let inner = table
                .entry(*first)
                .or_insert_with(|| toml::Table::new().into());
            if let Some(inner) = inner.as_table_mut() {
                set_default(inner, rest, value);
            }
        }
    }
}

/// Caps the value of an option in a command.
fn cap_option(command: &str, option: &str, most: u64) -> String {
    let words = command.split(' ');
    let mut is_next = false;
    let words = words.map(|word| {
        let is_value = std::mem::replace(&mut is_next, word == option);
        let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
        match digits.parse::<u64>() {
            Ok(number) if is_value && number > most => word.replacen(&digits, &most.to_string(), 1),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<String>>().join(" ")
}

/// Replaces a number in a text, but not where it is a part of a longer one.
fn replace_number(text: &str, number: &str, by: &str) -> String {
    let is_digit = |next: char| next.is_ascii_digit();
    let mut replaced = String::with_capacity(text.len());
    let mut end = 0;
    for (at, _) in text.match_indices(number) {
        let behind = at + number.len();
        if !text[..at].ends_with(is_digit) && !text[behind..].starts_with(is_digit) {
            replaced.push_str(&text[end..at]);
            replaced.push_str(by);
            end = behind;
        }
    }
    replaced.push_str(&text[end..]);
    replaced
}

/// Returns a port that nothing uses. It is below those that the system gives to sockets without a
/// port of their own, so that no socket of another test takes it before the node does.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = process::id().wrapping_mul(37);
    let free = std::iter::repeat_with(|| {
        let number = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        20_000 + u16::try_from(number).expect("it is below 12 000")
    })
    .take(12_000)
    .find(|port| {
        let at = (Ipv4Addr::LOCALHOST, *port);
        UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok()
    });
    free.expect("a port is free")
}

/// Copies a folder without its build results.
fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder is writable");
    for entry in fs::read_dir(from).expect("the file is accessible") {
        let entry = entry.expect("the file is accessible");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            if entry.file_name() != "target" {
                copy_sources(&from, &to);
            }
        } else {
            fs::copy(from, to).expect("the folder is writable");
        }
    }
}
