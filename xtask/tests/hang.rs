//! `cargo xtask test` on a small project whose tests hang, fail and leave programs running.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Time in which everything here ends, with a build on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Tests of the project. Each writes the numbers of the processes that it starts to a file.
const TESTS: &str = r#"
use std::process::{Child, Command};

fn sleeper(name: &str) -> Child {
    let child = Command::new("sleep").arg("1000").spawn().unwrap();
    let file = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(file, child.id().to_string()).unwrap();
    child
}

#[test]
fn a_passes() {}

#[test]
fn b_never_ends() {
    sleeper("hung").wait().unwrap();
}

#[test]
fn c_fails_and_leaves_its_program() {
    let _child = sleeper("left");
    panic!("on purpose");
}

#[test]
fn d_binds_a_port() {
    let Ok(port) = std::env::var("TAKEN_PORT") else { return };
    let _child = sleeper("bound");
    std::net::TcpListener::bind(("127.0.0.1", port.parse().unwrap())).unwrap();
}
"#;

/// Runs of `xtask` in a project of its own, which is removed at the end.
struct SmallProject {
    folder: PathBuf,
}

impl SmallProject {
    fn new(name: &str) -> Self {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = tmp.join(format!("hang-{name}-{}", std::process::id()));
        for inside in ["xtask", "tests", "src"] {
            fs::create_dir_all(folder.join(inside)).expect("a temporary folder");
        }
        let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
        let lock = "version = 4\n\n[[package]]\nname = \"small\"\nversion = \"0.0.0\"\n";
        for (file, text) in [
            ("Cargo.toml", manifest),
            ("Cargo.lock", lock),
            ("src/lib.rs", ""),
            ("tests/sleepy.rs", TESTS),
        ] {
            fs::write(folder.join(file), text).expect("the file is accessible");
        }
        Self { folder }
    }

    /// Starts `xtask test` with a filter of tests.
    fn start(&self, filter: &[&str], limits: &[(&str, &str)]) -> Run {
        self.start_with(Command::new(env!("CARGO_BIN_EXE_xtask")), filter, limits)
    }

    /// Starts `xtask test` through a command that ends with the program.
    fn start_with(&self, mut command: Command, filter: &[&str], limits: &[(&str, &str)]) -> Run {
        command
            .args(["test", "--offline", "--test", "sleepy", "--"])
            .args(filter);
        command
            .env("CARGO_MANIFEST_DIR", self.folder.join("xtask"))
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("CI", "false")
            .envs(limits.iter().copied())
            // Settings of an outer run are not ours.
            .env_remove("RUST_TEST_THREADS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        Run::new(command.spawn().expect("xtask is built"))
    }

    /// Returns `true` if the program that a test started has ended.
    fn is_ended(&self, name: &str) -> bool {
        let pid = fs::read_to_string(self.folder.join(name)).expect("the test wrote it");
        let begun = Instant::now();
        loop {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
            if state.is_none_or(|state| state.starts_with(['Z', 'X'])) {
                return true;
            }
            if begun.elapsed() > TEST_TIMEOUT {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for SmallProject {
    fn drop(&mut self) {
        // A folder that stays is in the target folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A run of `xtask`, which is killed with its group when dropped.
struct Run {
    child: Child,
    output: mpsc::Receiver<String>,
}

impl Run {
    fn new(mut child: Child) -> Self {
        let (tell, output) = mpsc::channel();
        let stdout = child.stdout.take().expect("piped");
        let mut stderr = child.stderr.take().expect("piped");
        let tell_too = tell.clone();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.for_each(|line| drop(tell.send(line)));
        });
        thread::spawn(move || {
            let mut text = String::new();
            let _read = stderr.read_to_string(&mut text);
            drop(tell_too.send(text));
        });
        Self { child, output }
    }

    /// Returns whether it passed, and all that it wrote.
    fn end(mut self) -> (bool, String) {
        let begun = Instant::now();
        let mut all = String::new();
        while let Ok(line) = self
            .output
            .recv_timeout(TEST_TIMEOUT.saturating_sub(begun.elapsed()))
        {
            all.push_str(&line);
            all.push('\n');
        }
        while self
            .child
            .try_wait()
            .expect("the file is accessible")
            .is_none()
        {
            assert!(begun.elapsed() < TEST_TIMEOUT, "it does not end:\n{all}");
            thread::sleep(Duration::from_millis(20));
        }
        let status = self.child.wait().expect("it has ended");
        (status.success(), all)
    }

    fn signal(&self, name: &str, to: &str) {
        let sent = Command::new("kill").args([name, "--", to]).status();
        assert!(sent.expect("there is kill").success());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal("-KILL", &group);
            let _ = self.child.wait();
        }
    }
}

#[test]
fn hung_test_is_named_and_ended_with_its_programs() {
    let project = SmallProject::new("limit");
    let run = project.start(&["a_", "b_"], &[("XTASK_TEST_LIMIT", "2s")]);
    let (passed, output) = run.end();
    assert!(!passed, "{output}");
    let hung = "hung: sleepy, not over after 2.0 s; still running: b_never_ends";
    assert!(output.contains(hung), "{output}");
    assert!(output.contains("test a_passes ... ok"), "{output}");
    assert!(
        output.contains("more time: XTASK_TEST_LIMIT=1h"),
        "{output}"
    );
    assert!(project.is_ended("hung"));
}

#[test]
fn program_left_by_a_failed_test_does_not_block_the_run() {
    let project = SmallProject::new("left");
    let run = project.start(&["a_", "c_"], &[]);
    let (passed, output) = run.end();
    assert!(!passed, "{output}");
    let left = "left running: sleepy ended without `sleep 1000`";
    assert!(output.contains(left), "{output}");
    assert!(
        output.contains("c_fails_and_leaves_its_program"),
        "{output}"
    );
    assert!(project.is_ended("left"));
}

#[test]
fn step_limit_names_the_step_and_the_test() {
    let project = SmallProject::new("step");
    // The build is within the step.
    let (passed, _) = project.start(&["a_"], &[]).end();
    assert!(passed);
    let run = project.start(&["a_", "b_"], &[("XTASK_STEP_LIMIT", "8s")]);
    let (passed, output) = run.end();
    assert!(!passed, "{output}");
    assert!(
        output.contains("step `tests`: `tests` hung: not over after"),
        "{output}"
    );
    assert!(output.contains("XTASK_STEP_LIMIT="), "{output}");
    assert!(output.contains("still running: b_never_ends"), "{output}");
    assert!(project.is_ended("hung"));
}

#[test]
fn run_limit_ends_the_run() {
    let project = SmallProject::new("run");
    let (passed, _) = project.start(&["a_"], &[]).end();
    assert!(passed);
    let (passed, output) = project.start(&["b_"], &[("XTASK_LIMIT", "8s")]).end();
    assert!(!passed, "{output}");
    assert!(output.contains("`cargo xtask test` hung"), "{output}");
    assert!(project.is_ended("hung"));
}

#[test]
fn invalid_limit_is_refused() {
    let project = SmallProject::new("no-time");
    let (passed, output) = project.start(&["a_"], &[("XTASK_LIMIT", "soon")]).end();
    assert!(!passed, "{output}");
    assert!(
        output.contains("XTASK_LIMIT: invalid duration \"soon\""),
        "{output}"
    );
}

#[test]
fn interrupted_run_ends_all_its_programs() {
    for (signal, whole) in [("-INT", true), ("-TERM", false)] {
        let project = SmallProject::new(&format!("interrupt{signal}"));
        let run = project.start(&["b_"], &[]);
        let file = project.folder.join("hung");
        let begun = Instant::now();
        while fs::read_to_string(&file).unwrap_or_default().is_empty() {
            assert!(begun.elapsed() < TEST_TIMEOUT, "the test does not begin");
            thread::sleep(Duration::from_millis(20));
        }
        // A terminal sends ctrl-c to the group, `kill` only to the process.
        let id = run.child.id();
        let to = if whole {
            format!("-{id}")
        } else {
            id.to_string()
        };
        run.signal(signal, &to);
        let (passed, output) = run.end();
        assert!(!passed, "{output}");
        assert!(
            output.contains("interrupted in cargo xtask test > tests"),
            "{output}"
        );
        assert!(output.contains("still running: b_never_ends"), "{output}");
        assert!(project.is_ended("hung"));
    }
}

#[test]
fn missing_program_is_named_with_advice() {
    let project = SmallProject::new("missing");
    let run = project.start(&["a_"], &[("PATH", "/nowhere")]);
    let (passed, output) = run.end();
    assert!(!passed, "{output}");
    assert!(
        output.contains("step `tests`: cannot start `cargo "),
        "{output}"
    );
    assert!(output.contains("is it installed?"), "{output}");
    assert!(output.contains("cargo xtask setup"), "{output}");
}

#[test]
fn full_disk_is_reported_with_its_folder() {
    let project = SmallProject::new("disk");
    let target = project.folder.join("target");
    fs::create_dir_all(&target).expect("the file is accessible");
    let mount = "mount -t tmpfs -o size=64k none \"$1\" || exit 77; shift; exec \"$@\"";
    let mut namespace = Command::new("unshare");
    namespace.args([
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        mount,
        "sh",
    ]);
    let probe = Command::new("unshare")
        .args(namespace.get_args())
        .arg(&target)
        .arg("true")
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("not tested: this machine does not let a test mount a small disk");
        return;
    }
    namespace.arg(&target).arg(env!("CARGO_BIN_EXE_xtask"));
    let (passed, output) = project.start_with(namespace, &["a_"], &[]).end();
    assert!(!passed, "{output}");
    let full = format!("the disk of {} is full", target.display());
    assert!(output.contains(&full), "{output}");
    assert!(output.contains("set CARGO_TARGET_DIR"), "{output}");
}

#[test]
fn failed_step_is_named_with_its_error() {
    let project = SmallProject::new("port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let run = project.start(&["d_binds"], &[("TAKEN_PORT", &port)]);
    let (passed, output) = run.end();
    assert!(!passed, "{output}");
    assert!(
        output.contains("step `tests`: 2 failed: d_binds_a_port"),
        "{output}"
    );
    assert!(output.contains("AddrInUse"), "{output}");
    assert!(project.is_ended("bound"));
}
