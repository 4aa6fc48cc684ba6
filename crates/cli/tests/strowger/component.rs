//! `strowger component`: the grants that a component asks for, and its answers.

use std::path::{Path, PathBuf};

use crate::binary::{command, run, strowger, strowger_with_input};

fn path(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path: PathBuf = root.join(name);
    path.to_str().expect("text").to_owned()
}

#[test]
fn component_answers_each_line_and_continues_after_a_panic() {
    let (wasm, manifest) = (
        path("fixtures/components/counter.wasm"),
        path("components/counter/counter.toml"),
    );
    let ran = strowger_with_input(
        ["component", "run", &wasm, "--manifest", &manifest],
        b"a\nb\npanic\nc\n",
    );
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(
        (lines[0], lines[1], lines[3]),
        ("1", "2", "3"),
        "{}",
        ran.out
    );
    assert!(lines[2].contains("aborted"), "{}", ran.out);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("1 request failed"), "{}", ran.err);
}

#[test]
fn json_output_ends_with_statistics() {
    let ran = strowger_with_input(
        [
            "component",
            "run",
            &path("fixtures/components/echo.wasm"),
            "--json",
        ],
        b"hello\n",
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    let objects = ran.objects();
    assert_eq!(objects[0]["answer"], "hello");
    assert_eq!(
        (&objects[1]["calls"], &objects[1]["faults"]),
        (&1.into(), &0.into())
    );
}

#[test]
fn missing_grants_are_shown_with_the_setting_that_adds_them() {
    let wasm = path("fixtures/components/qos-cap.wasm");
    let ran = strowger(["component", "inspect", &wasm, "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let seen = ran.last_object();
    let import = &seen["imports"][0];
    assert_eq!(import["import"], "strowger:component/config@0.1.0");
    assert_eq!(
        (&import["granted"], &import["needs"]),
        (&false.into(), &"a section [config]".into())
    );
    let ran = strowger(["component", "run", &wasm]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("not granted"), "{}", ran.err);
    let manifest = path("components/qos-cap/qos-cap.toml");
    let ran = strowger(["component", "inspect", &wasm, "--manifest", &manifest]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// The request of a manifest, the cap that it exceeds, the message about it, and a cap that allows
/// it.
const BEYOND_CAPS: [(&str, &str, &str, &str); 9] = [
    (
        "[limits]\nhandles = 5000",
        "handles",
        "5000, but the node allows at most 4096",
        "5000",
    ),
    (
        "[limits]\nstreams = 300",
        "streams",
        "300, but the node allows at most 256",
        "300",
    ),
    (
        "[limits]\nwindow = 5000",
        "window",
        "5000, but the node allows at most 4096",
        "5000",
    ),
    (
        "[limits]\nanswer = 61",
        "answer",
        "61s, but the node allows at most 60s",
        "\"61s\"",
    ),
    (
        "[run]\nbatch = 5000",
        "batch",
        "5000, but the node allows at most 4096",
        "5000",
    ),
    (
        "[restart]\nperiod = 0.5",
        "period",
        "500ms, but the node allows at least 1s",
        "0.5",
    ),
    (
        "[restart]\nbackoff = 0",
        "backoff",
        "0ns, but the node allows at least 1ms",
        "0",
    ),
    (
        "[grant.kv]\nsize = \"65MiB\"",
        "kv.size",
        "65MiB, but the node allows at most 64MiB",
        "\"65MiB\"",
    ),
    (
        "[grant.kv]\nrate = 10001",
        "kv.rate",
        "10001, but the node allows at most 10000",
        "10001",
    ),
];

#[test]
fn exceeded_caps_are_named_with_a_hint() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [manifest, node] = ["it.toml", "node.toml"].map(|name| {
        let path = folder.path().join(name);
        path.to_str().expect("text").to_owned()
    });
    let wasm = path("fixtures/components/counter.wasm");
    let inspect = |asks: &str, caps: &str| {
        let text = format!("[component]\nname = \"counter\"\nfile = {wasm:?}\n{asks}\n");
        std::fs::write(&manifest, text).expect("the file is accessible");
        std::fs::write(&node, format!("[components.caps]\n{caps}\n"))
            .expect("the file is accessible");
        strowger(["component", "inspect", &manifest, "--config", &node])
    };
    for (asks, key, says, caps) in BEYOND_CAPS {
        let ran = inspect(asks, "");
        assert_eq!(ran.code, 2, "{asks}: {}", ran.err);
        let cap = format!("(`components.caps.{key}`)");
        assert!(
            ran.err.contains(says) && ran.err.contains(&cap),
            "{}",
            ran.err
        );
        let hint = format!("`{key}` in [components.caps] of the node's configuration");
        assert!(
            ran.err.contains("\nhint: ") && ran.err.contains(&hint),
            "{}",
            ran.err
        );
        let ran = inspect(asks, &format!("{key} = {caps}"));
        assert_eq!(ran.code, 0, "{asks}: {}", ran.err);
    }
}

#[test]
fn hints_for_foreign_imports_name_a_remedy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inspect = |name: &str, text: &str| {
        let place = folder.path().join(name);
        std::fs::write(&place, wat::parse_str(text).expect("it parses"))
            .expect("the file is accessible");
        strowger(["component", "inspect", place.to_str().expect("text")])
    };
    let import = |name: &str| format!("(component (import \"{name}\" (instance)))");
    let ran = inspect("wasi.wasm", &import("wasi:cli/environment@0.2.0"));
    assert_eq!(ran.code, 1, "{}", ran.err);
    for said in ["the host does not provide WASI", "durable", "--stub-wasi"] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    assert!(!ran.err.contains("grant it"), "{}", ran.err);
    let ran = inspect("foreign.wasm", &import("acme:things/thing"));
    assert!(
        ran.err.contains("the host provides only the interfaces"),
        "{}",
        ran.err
    );
    let place = folder.path().join("wasi.wasm");
    let ran = strowger(["component", "run", place.to_str().expect("text")]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err.contains("hint: the host does not provide WASI"),
        "{}",
        ran.err
    );
    let ran = inspect("core.wasm", EMPTY_GUEST);
    assert_eq!(ran.code, 2, "{}", ran.err);
    let hint = format!(
        "component build {}",
        folder.path().join("core.wasm").display()
    );
    assert!(ran.err.contains(&hint), "{}", ran.err);
    let many = format!(
        "(component (core module $m) {})",
        "(core instance (instantiate $m))".repeat(17)
    );
    let ran = inspect("many.wasm", &many);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("17 core module instances"), "{}", ran.err);
    assert!(ran.err.contains("maximum of 16"), "{}", ran.err);
}

#[test]
fn core_module_of_any_compiler_becomes_a_component() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (module, component) = (place("core.wasm"), place("it.wasm"));
    std::fs::write(&module, wat::parse_str(EMPTY_GUEST).expect("it parses"))
        .expect("the file is accessible");
    let build = ["component", "build", &module, "--out", &component, "--json"];
    let ran = strowger(build);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = strowger_with_input(["component", "run", &component, "--json"], b"hello\n");
    assert_eq!(
        (ran.code, &ran.objects()[0]["answer"]),
        (0, &"".into()),
        "{}",
        ran.err
    );
    let ran = strowger(build.into_iter().chain(["--world", "durable"]));
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("snapshot"), "{}", ran.err);
    let ran = strowger(build.into_iter().chain(["--world", "flat"]));
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("flat"), "{}", ran.err);
    std::fs::write(&module, "no module").expect("the file is accessible");
    let ran = strowger(build);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("core.wasm: "), "{}", ran.err);
}

/// A stub of cargo that has already built: the directory that it is asked for holds the files.
const CARGO_STUB: &str = r#"#!/bin/sh
target="${CARGO_TARGET_DIR:-$PWD/target}"
case " $* " in
*" metadata "*)
  package="{\"name\": \"it\", \"manifest_path\": \"$PWD/Cargo.toml\"}"
  echo "{\"packages\": [$package], \"target_directory\": \"$target\"}" ;;
*" build "*)
  mkdir -p "$target/wasm32-unknown-unknown/release"
  cp core.wasm "$target/wasm32-unknown-unknown/release/it.wasm" ;;
esac
"#;

#[cfg(unix)]
#[test]
fn package_is_built_in_the_target_directory_of_the_caller() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path().canonicalize().expect("it exists");
    let write = |name: &str, text: &[u8]| {
        let place = folder.join(name);
        std::fs::create_dir_all(place.parent().expect("inside")).expect("the file is accessible");
        std::fs::write(&place, text).expect("the file is accessible");
        place
    };
    let module = wat::parse_str("(module)").expect("it parses");
    write("package/core.wasm", &module);
    write("package/Cargo.toml", b"");
    let programs = [
        write("bin/cargo", CARGO_STUB.as_bytes()),
        // A stub of rustc that has every target.
        write("bin/rustc", b"#!/bin/sh\necho /\n"),
    ];
    for program in &programs {
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(program, all).expect("the file is accessible");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder.join("bin").display());
    for target in [None, Some(folder.join("elsewhere"))] {
        let mut command = command(["component", "build", "package"]);
        command.current_dir(&folder).env("PATH", &path);
        command
            .env("RUSTC", &programs[1])
            .env_remove("CARGO_TARGET_DIR");
        command.envs(target.map(|target| ("CARGO_TARGET_DIR", target)));
        let ran = run(&mut command, b"");
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.starts_with("package/it.wasm: "), "{}", ran.out);
    }
}

/// Does nothing, successfully: every result is at address 16, where all bytes are 0.
const EMPTY_GUEST: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "strowger:component/actor@0.1.0#init")
    (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#handle")
    (param i32 i64 i32 i32) (result i32) (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#stop"))
  (func (export "strowger:component/actor@0.1.0#health") (result i32) (i32.const 16)))"#;

#[test]
fn manifest_error_is_shown_with_its_position() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[component]\nname = \"a\"\n[limits]\nmemroy = 1\n")
        .expect("the file is accessible");
    let ran = strowger(["component", "inspect", file.to_str().expect("text")]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("line 4") && ran.err.contains("memroy"),
        "{}",
        ran.err
    );
}

#[test]
fn new_package_has_a_valid_manifest() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = folder.path().join("hello");
    let made = made.to_str().expect("text");
    let ran = strowger(["component", "new", made]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = std::fs::read_to_string(format!("{made}/hello.toml")).expect("it was written");
    assert!(text.contains("name = \"hello\""), "{text}");
    let ran = strowger(["component", "inspect", &format!("{made}/hello.toml")]);
    assert!(
        ran.err.contains("hello.wasm"),
        "it is not built yet: {}",
        ran.err
    );
    let ran = strowger(["component", "new", made]);
    assert_eq!(ran.code, 3, "what is there is not written over");
}

/// Runs `cargo metadata` on a package without a network.
fn metadata(folder: &Path, more: &[&str]) -> std::process::Output {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--offline", "--format-version", "1"])
        .args(more);
    crate::guarded::output(cargo.current_dir(folder))
}

#[test]
fn new_package_builds_without_a_clone_of_the_repository() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut new = command(["component", "new", "hello"]);
    let ran = run(new.current_dir(&folder), b"");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let made = folder.path().join("hello");
    for file in [
        "Cargo.lock",
        "sdk/wit/component.wit",
        "sdk/LICENSE-MIT",
        "sdk/LICENSE-APACHE",
    ] {
        assert!(made.join(file).is_file(), "{file}");
    }
    for file in ["Cargo.toml", "sdk/Cargo.toml"] {
        let text = std::fs::read_to_string(made.join(file)).expect("it was written");
        assert!(!text.contains("git = "), "{file}: {text}");
    }
    let ran = metadata(&made, &["--no-deps"]);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    let seen: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("it is JSON");
    let names = seen["packages"].as_array().expect("packages").iter();
    let names: Vec<_> = names.map(|one| one["name"].as_str()).collect();
    assert_eq!(names, [Some("hello"), Some("strowger-component")]);
    // If the dependencies were fetched from crates.io before, all of them are found at their locked
    // versions.
    let ran = metadata(&made, &["--locked"]);
    let errors = String::from_utf8_lossy(&ran.stderr);
    let away = errors.contains("--offline was specified") || errors.contains("offline mode");
    assert!(ran.status.success() || away, "{errors}");
    let mut new = command(["component", "new", "strowger-component"]);
    let ran = run(new.current_dir(&folder), b"");
    assert_eq!(ran.code, 2, "{}", ran.err);
}

#[test]
fn guest_packages_resolve_outside_the_repository() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("components");
    let copied = std::process::Command::new("cp")
        .args(["-R", &path("components")])
        .arg(&copy)
        .status();
    assert!(copied.expect("there is cp").success());
    let ran = metadata(&copy, &["--no-deps"]);
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    // Cargo does not know the files that a macro reads.
    let source = std::fs::read_to_string(copy.join("sdk/src/lib.rs")).expect("it is text");
    let read = source
        .split("path: \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let read = copy.join("sdk").join(read.expect("the contract"));
    let read = read.canonicalize().expect("it exists");
    let copy = copy.canonicalize().expect("it exists");
    assert!(read.starts_with(&copy), "{read:?}");
}
