//! `strowger component`: what a component wants, and what it answers.

use std::path::{Path, PathBuf};

use crate::binary::{command, fed, run, strowger};

fn path(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path: PathBuf = root.join(name);
    path.to_str().expect("text").to_owned()
}

#[test]
fn a_component_answers_each_line_and_goes_on_after_a_panic() {
    let (wasm, manifest) = (
        path("fixtures/components/counter.wasm"),
        path("components/counter/counter.toml"),
    );
    let ran = fed(
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
    assert!(lines[2].contains("gave up"), "{}", ran.out);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("1 request has no answer"), "{}", ran.err);
}

#[test]
fn figures_come_last_with_json() {
    let ran = fed(
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
fn what_is_not_granted_is_shown_with_what_would_grant_it() {
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

#[test]
fn a_module_of_any_compiler_becomes_a_component() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let place = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (module, component) = (place("core.wasm"), place("it.wasm"));
    std::fs::write(&module, wat::parse_str(SILENT).expect("it parses")).expect("it is ours");
    let build = ["component", "build", &module, "--out", &component, "--json"];
    let ran = strowger(build);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = fed(["component", "run", &component, "--json"], b"hello\n");
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
    std::fs::write(&module, "no module").expect("it is ours");
    let ran = strowger(build);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("core.wasm: "), "{}", ran.err);
}

/// A cargo that has built already: what it is asked where it puts things is where they are.
const CARGO: &str = r#"#!/bin/sh
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
fn a_package_is_built_where_the_caller_wants_builds_to_be() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder of our own");
    let folder = folder.path().canonicalize().expect("it is there");
    let write = |name: &str, text: &[u8]| {
        let place = folder.join(name);
        std::fs::create_dir_all(place.parent().expect("inside")).expect("it is ours");
        std::fs::write(&place, text).expect("it is ours");
        place
    };
    let module = wat::parse_str("(module)").expect("it parses");
    write("package/core.wasm", &module);
    write("package/Cargo.toml", b"");
    let programs = [
        write("bin/cargo", CARGO.as_bytes()),
        // It has every target.
        write("bin/rustc", b"#!/bin/sh\necho /\n"),
    ];
    for program in &programs {
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(program, all).expect("it is ours");
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

/// Does nothing well: every result is at address 16, where all is 0.
const SILENT: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "strowger:component/actor@0.1.0#init")
    (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#handle")
    (param i32 i64 i32 i32) (result i32) (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#stop"))
  (func (export "strowger:component/actor@0.1.0#health") (result i32) (i32.const 16)))"#;

#[test]
fn a_bad_manifest_is_shown_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[component]\nname = \"a\"\n[limits]\nmemroy = 1\n").expect("it is ours");
    let ran = strowger(["component", "inspect", file.to_str().expect("text")]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("line 4") && ran.err.contains("memroy"),
        "{}",
        ran.err
    );
}

#[test]
fn a_new_package_has_a_manifest_that_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder of our own");
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
