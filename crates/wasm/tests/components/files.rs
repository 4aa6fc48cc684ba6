//! Files below a granted directory, and attempts to escape from it.

use std::fs;
use std::os::unix::fs::symlink;

use strowger_wasm::{CallError, LoadError};

use crate::kit::{Guest, Started, Testbed, manifest, text};

/// A guest that treats the path in a message as its first byte says: `?` reads, `=` writes `tea` at
/// the beginning, `-` removes, `*` returns the number of entries as a digit. A refusal is answered
/// with its number as a digit.
fn filer() -> Guest {
    let path = "(i32.const 1024) (i32.const 4)
        (i32.add (local.get $ptr) (i32.const 1)) (i32.sub (local.get $len) (i32.const 1))";
    let refused = |at: u32| {
        format!(
            "(if (i32.load8_u (i32.const 64)) (then
               (i32.store8 (i32.const 80) (i32.add (i32.const 48) (i32.load8_u (i32.const {at}))))
               (return (call $fail (i32.const 80) (i32.const 1)))))"
        )
    };
    let on = |byte: u8, code: String| {
        format!("(if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const {byte})) (then {code}))")
    };
    let read = format!(
        "(call $read {path} (i64.const 0) (i32.const 100) (i32.const 64)) {}
         (return (call $answer (i32.load (i32.const 68)) (i32.load (i32.const 72))))",
        refused(68)
    );
    let write = format!(
        "(call $write {path} (i64.const 0) (i32.const 1028) (i32.const 3) (i32.const 64)) {}",
        refused(65)
    );
    let remove = format!("(call $remove {path} (i32.const 64)) {}", refused(65));
    let list = format!(
        "(call $names {path} (i32.const 0) (i32.const 0) (i32.const 9) (i32.const 64)) {}
         (i32.store8 (i32.const 80) (i32.add (i32.const 48) (i32.load (i32.const 72))))
         (return (call $answer (i32.const 80) (i32.const 1)))",
        refused(68)
    );
    let code = [
        on(b'?', read),
        on(b'=', write),
        on(b'-', remove),
        on(b'*', list),
    ];
    ["read", "write", "remove", "names"]
        .into_iter()
        .fold(Guest::new(), |guest, function| {
            guest.import("files", function)
        })
        .data("datatea")
        .handle(&format!("{} (call $ok)", code.concat()))
}

/// A directory `data` with a file, beside a secret.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("data/in")).expect("it is made");
    fs::write(at("secret"), "secret").expect("it is written");
    fs::write(at("data/file"), "0123456789").expect("it is written");
    folder
}

fn start(testbed: &Testbed, folder: &tempfile::TempDir, more: &str) -> Started {
    let path = folder.path().join("data");
    let more = format!("[grant.files.data]\npath = {path:?}\n{more}");
    testbed.start(&filer(), "filer", &more)
}

fn refusal(testbed: &Testbed, filer: &Started, what: &str) -> String {
    match testbed.ask(filer, what) {
        Err(CallError::Refused(text)) => text,
        other => panic!("{what}: it was not refused: {other:?}"),
    }
}

#[test]
fn component_reads_writes_lists_and_removes_files() {
    let (testbed, folder) = (Testbed::new(), place());
    let filer = start(&testbed, &folder, "write = true");
    assert_eq!(text(testbed.ask(&filer, "?file")), "0123456789");
    assert_eq!(text(testbed.ask(&filer, "=file")), "");
    assert_eq!(text(testbed.ask(&filer, "?file")), "tea3456789");
    assert_eq!(text(testbed.ask(&filer, "=in/new")), "");
    assert_eq!(text(testbed.ask(&filer, "*")), "2");
    assert_eq!(text(testbed.ask(&filer, "*in")), "1");
    assert_eq!(text(testbed.ask(&filer, "-in/new")), "");
    assert_eq!(refusal(&testbed, &filer, "?in/new"), "1", "unknown");
}

#[test]
fn component_cannot_leave_its_directory() {
    let (testbed, folder) = (Testbed::new(), place());
    let at = |name: &str| folder.path().join(name);
    symlink("../secret", at("data/link")).expect("there is room for a link");
    symlink("..", at("data/up")).expect("there is room for a link");
    symlink("/", at("data/all")).expect("there is room for a link");
    let filer = start(&testbed, &folder, "write = true");
    let neighbour = testbed.start(&Guest::new(), "neighbour", "");
    let absolute = at("secret").display().to_string();
    let paths = [
        "../secret",
        "in/../../secret",
        &absolute,
        "link",
        "up/secret",
        &format!("all{absolute}"),
    ];
    for path in paths {
        for verb in ["?", "=", "*"] {
            let said = refusal(&testbed, &filer, &format!("{verb}{path}"));
            assert!(said == "0" || said == "1", "{verb}{path}: {said}");
        }
        assert_eq!(text(testbed.ask(&neighbour, path)), path);
    }
    assert_eq!(refusal(&testbed, &filer, "-../secret"), "0", "denied");
    assert_eq!(
        fs::read_to_string(at("secret")).expect("it is there"),
        "secret"
    );
    assert_eq!(filer.args.info().faults, 0, "a refusal is no fault");
}

#[test]
fn read_only_grant_refuses_writes() {
    let (testbed, folder) = (Testbed::new(), place());
    let filer = start(&testbed, &folder, "");
    assert_eq!(text(testbed.ask(&filer, "?file")), "0123456789");
    for verb in ["=file", "=new", "-file"] {
        assert_eq!(refusal(&testbed, &filer, verb), "0", "denied");
    }
}

#[test]
fn file_quota_limits_writes() {
    for (files, fits) in [(1, false), (2, true)] {
        let (testbed, folder) = (Testbed::new(), place());
        let filer = start(&testbed, &folder, &format!("write = true\nfiles = {files}"));
        assert_eq!(testbed.ask(&filer, "=new").is_ok(), fits);
        assert_eq!(folder.path().join("data/new").exists(), fits);
    }
}

#[test]
fn component_without_the_grant_is_not_loaded() {
    let testbed = Testbed::new();
    let loaded = testbed
        .host
        .load_blocking(&filer().encode(), manifest("filer", ""));
    let refused = loaded.expect_err("it is not granted");
    assert!(matches!(refused, LoadError::Denied(_)), "{refused}");
    assert!(
        refused.to_string().contains("[grant.files.NAME]"),
        "{refused}"
    );
}
