//! Slow deployments: their progress output, and the behaviour when the caller stops waiting.

use std::fmt::Write;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binary::{Ran, strowger};
use crate::guarded::Guarded;
use crate::running::Running;

/// A guest that does nothing, successfully: every result is at address 16, where all bytes are 0.
fn guest(init: &str, more: &str) -> String {
    format!(
        r#"(module
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "strowger:component/actor@0.1.0#init")
    (param i32 i32 i32 i32 i32 i32) (result i32) (local i64) {init} (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#handle")
    (param i32 i64 i32 i32) (result i32) (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#stop"))
  (func (export "strowger:component/actor@0.1.0#health") (result i32) (i32.const 16))
  {more})"#
    )
}

/// A guest with so much code that its compilation takes seconds. No two guests are the same.
fn slow_guest(number: usize) -> String {
    let mut more = String::new();
    for function in 0..300 {
        let _ = write!(
            more,
            "(func (export \"f{function}\") (param i64) (result i64) (local i64)"
        );
        for step in 0..40 {
            let (add, shift) = (function * 31 + step + number, step % 63 + 1);
            let _ = write!(
                more,
                "(local.set 1 (i64.xor (i64.mul (local.get 1) (i64.const {add}))
                   (i64.rotl (i64.add (local.get 0) (local.get 1)) (i64.const {shift}))))
                 (if (i64.gt_u (local.get 1) (i64.const {add}))
                   (then (local.set 0 (i64.sub (local.get 0) (local.get 1)))))"
            );
        }
        more.push_str("(local.get 1))");
    }
    guest("", &more)
}

/// A manifest of a guest, in a folder of its own.
fn manifest(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (module, component) = (place("core.wasm"), place("it.wasm"));
    fs::write(&module, wat::parse_str(text).expect("it parses")).expect("the file is accessible");
    let built = strowger(["component", "build", &module, "--out", &component]);
    assert_eq!(built.code, 0, "{}", built.err);
    let text = "[component]\nname = \"it\"\nfile = \"it.wasm\"\n[limits]\ninit = \"60s\"\n";
    fs::write(place("it.toml"), text).expect("the file is accessible");
    let manifest = place("it.toml");
    (folder, manifest)
}

const CAPS: &str = "[components.caps]\ninit = \"60s\"\n";

fn deploy(node: &Running, manifest: &str, more: &[&str]) -> Ran {
    let args = ["component", "deploy", manifest, "--json"];
    node.ask(args.into_iter().chain(more.iter().copied()))
}

fn is_listed(node: &Running) -> bool {
    let ran = node.ask(["component", "list", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.contains("\"it\"")
}

#[test]
fn deployment_is_cancelled_at_its_deadline() {
    let node = Running::start(CAPS);
    let (_folder, manifest) = manifest(&slow_guest(1));
    let ran = deploy(&node, &manifest, &["--deadline", "100ms"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert!(
        ran.err.contains("cancelled at its deadline, after 100ms"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("compilation continues"), "{}", ran.err);
    assert_eq!(
        ran.err.lines().count(),
        2,
        "no terminal, no progress: {}",
        ran.err
    );
    // The compiled code is cached as reported, and nothing of it has run so far.
    assert!(!is_listed(&node));
    let ran = deploy(&node, &manifest, &["--progress"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.objects().len(), 1, "{}", ran.out);
    assert_eq!(
        ran.last_object()["lives"],
        1,
        "it was not started twice: {}",
        ran.out
    );
    assert!(is_listed(&node));
    // The same for an upgrade: the previous version stays in service.
    let (_folder, next) = self::manifest(&slow_guest(2));
    let before = ran.last_object()["sha256"].clone();
    let ran = node.ask(["component", "upgrade", &next, "--deadline", "100ms"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(
        ran.err.contains("cancelled at its deadline, after 100ms"),
        "{}",
        ran.err
    );
    let ran = node.ask(["component", "list", "--json"]);
    assert_eq!(ran.last_object()["sha256"], before, "{}", ran.out);
    node.end();
}

#[test]
fn progress_of_a_compilation_is_shown_on_request() {
    let node = Running::start(CAPS);
    let (_folder, manifest) = manifest(&slow_guest(3));
    let ran = deploy(&node, &manifest, &["--progress"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("compiling ") && ran.err.contains(" MiB"),
        "{}",
        ran.err
    );
    assert!(
        !ran.err.contains('\r'),
        "only a terminal is drawn on: {}",
        ran.err
    );
    assert_eq!(ran.objects().len(), 1, "{}", ran.out);
    node.end();
}

#[test]
fn interrupting_a_deployment_cancels_it() {
    let node = Running::start(CAPS);
    let (_folder, manifest) = manifest(&slow_guest(4));
    let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
    command.args(["component", "deploy", &manifest, "--progress"]);
    command
        .args(["--control", &node.control])
        .stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guarded::spawn(&mut command);
    // Once it reports that it compiles, it listens to signals.
    let mut errors = std::io::BufReader::new(child.stderr.take().expect("piped"));
    let mut first = String::new();
    std::io::BufRead::read_line(&mut errors, &mut first).expect("it is text");
    assert!(first.contains("compiling"), "{first}");
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("there is kill").success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut errors, &mut rest).expect("it is text");
    assert_eq!(child.wait().code(), Some(3), "{rest}");
    assert!(
        rest.contains("interrupted: the deployment was cancelled"),
        "{rest}"
    );
    // The message is true: the compiled component could be started, but is not.
    let twin = deploy(&node, &manifest, &["--name", "twin"]);
    assert_eq!(twin.code, 0, "{}", twin.err);
    assert!(!is_listed(&node));
    node.end();
}

#[test]
fn starting_deployment_continues_and_says_so() {
    let node = Running::start(CAPS);
    // Seconds of processor time.
    let init = "(loop $again
        (br_if $again (i64.lt_u (local.tee 6 (i64.add (local.get 6) (i64.const 1)))
          (i64.const 5000000000))))";
    let (_folder, manifest) = manifest(&guest(init, ""));
    let ran = deploy(&node, &manifest, &["--deadline", "300ms"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("no outcome within 300ms"), "{}", ran.err);
    assert!(ran.err.contains("the node continues"), "{}", ran.err);
    let until = Instant::now() + Duration::from_secs(90);
    while !is_listed(&node) {
        assert!(Instant::now() < until, "it went on: {}", node.log());
    }
    node.end();
}
