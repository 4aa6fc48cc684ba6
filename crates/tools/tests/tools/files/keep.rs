//! Replaced files keep what belongs to them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use strowger_tools::files::{
    AppendRequest, EditRequest, FileRule, TextChange, WriteMode, WriteRequest,
};

use super::{Fixture, rule};

fn mode(bits: u32) -> fs::Permissions {
    fs::Permissions::from_mode(bits)
}

fn edit(path: &str) -> EditRequest {
    let change = TextChange {
        old: "old".into(),
        new: "new".into(),
        all: false,
    };
    EditRequest {
        path: path.into(),
        changes: vec![change],
        dry_run: false,
    }
}

#[tokio::test]
async fn a_replaced_file_keeps_owner_mode_and_attributes() {
    let fixture = Fixture::open(|_| {});
    let at = fixture.root().join("file");
    for step in ["write", "durable", "edit", "pieces"] {
        fs::write(&at, "old").expect("a file");
        // Only root gives files away.
        let is_given = chown(&at, Some(1234), Some(4321)).is_ok();
        fs::set_permissions(&at, mode(0o4711)).expect("ours");
        let flags = XattrFlags::empty();
        let has_attributes = setxattr(&at, "user.note", b"kept", flags).is_ok();
        let before = fs::metadata(&at).expect("it is there");
        match step {
            "edit" => drop(fixture.ask(edit("file")).await.expect("it is there")),
            "pieces" => {
                let written = fixture.write_pieces("file", &["n", "ew"]).await;
                written.expect("it may be written");
            }
            step => {
                let durable = match step {
                    "durable" => WriteMode::Durable,
                    _ => WriteMode::Atomic,
                };
                let write = WriteRequest::new("file", "new").with_mode(durable);
                fixture.ask(write).await.expect("it may be written");
            }
        }
        assert_eq!(fs::read(&at).expect("it is there"), b"new", "{step}");
        let after = fs::metadata(&at).expect("it is there");
        assert_ne!(before.ino(), after.ino(), "{step}: it is replaced");
        assert_eq!(after.mode() & 0o7777, 0o4711, "{step}");
        let owner = (after.uid(), after.gid());
        assert_eq!(owner, (before.uid(), before.gid()), "{step}");
        assert!(!is_given || owner == (1234, 4321), "{step}");
        if has_attributes {
            let mut value = [0; 8];
            let length = getxattr(&at, "user.note", &mut value).expect("it is kept");
            assert_eq!(&value[..length], b"kept", "{step}");
        }
        fs::remove_file(&at).expect("ours");
    }
}

#[tokio::test]
async fn a_file_without_write_permission_is_written_by_no_verb() {
    let fixture = Fixture::open(|_| {});
    let at = fixture.root().join("file");
    fs::write(&at, "old").expect("a file");
    fs::set_permissions(&at, mode(0o444)).expect("ours");
    for way in [WriteMode::InPlace, WriteMode::Atomic, WriteMode::Durable] {
        let refused = fixture
            .ask(WriteRequest::new("file", "x").with_mode(way))
            .await;
        // In place, the kernel refuses others than root before the mode is known.
        let refused = refused.expect_err("it is refused").name();
        assert!(["mode", "io"].contains(&refused), "{way:?}: {refused}");
    }
    assert_eq!(rule(fixture.ask(edit("file")).await), FileRule::Mode);
    let refused = rule(fixture.write_pieces("file", &["x"]).await);
    assert_eq!(refused, FileRule::Mode);
    let append = AppendRequest {
        path: "file".into(),
        bytes: "x".into(),
    };
    assert!(fixture.ask(append).await.is_err());
    assert_eq!(fs::read(&at).expect("it is there"), b"old");
    fs::set_permissions(&at, mode(0o644)).expect("ours");
    fixture.ask(edit("file")).await.expect("it may be written");
}

fn mount(args: &[&Path], program: &str) -> bool {
    let mut command = Command::new(program);
    command.args(args);
    command.output().is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn a_file_in_a_read_only_directory_is_written_in_place() {
    let fixture = Fixture::open(|_| {});
    let locked = fixture.root().join("locked");
    let (at, source) = (locked.join("file"), fixture.outside().join("mounted"));
    fs::create_dir(&locked).expect("a directory");
    fs::write(&at, "below").expect("a file");
    fs::write(&source, "old").expect("a file");
    if !mount(&[Path::new("--bind"), &locked, &locked], "mount") {
        return; // Only root mounts.
    }
    let is_locked = mount(&[Path::new("--bind"), &source, &at], "mount")
        && mount(&[Path::new("-oremount,bind,ro"), &locked], "mount");
    let new = fixture.write_pieces("locked/new", &["x"]).await;
    let written = fixture.write_pieces("locked/file", &["pie", "ces"]).await;
    let now = fs::read(&source);
    let left = fs::read_dir(fixture.root()).expect("a folder").count();
    assert!(mount(&[Path::new("-R"), &locked], "umount") && is_locked);
    assert_eq!(new.expect_err("it cannot be created").name(), "io");
    written.expect("it is written in place");
    assert_eq!(now.expect("it is there"), b"pieces");
    assert_eq!(left, 1, "no temporary file is left");
}

#[tokio::test]
async fn a_mount_point_is_written_in_place() {
    let fixture = Fixture::open(|_| {});
    let (at, source) = (
        fixture.root().join("file"),
        fixture.outside().join("mounted"),
    );
    fs::write(&at, "below").expect("a file");
    fs::write(&source, "old").expect("a file");
    if !mount(&[Path::new("--bind"), &source, &at], "mount") {
        return; // Only root mounts.
    }
    let edited = fixture.ask(edit("file")).await;
    let written = fixture
        .ask(WriteRequest::new("file", "long and new").with_mode(WriteMode::Atomic))
        .await;
    let now = fs::read(&source);
    let pieces = fixture.write_pieces("file", &["pie", "ces"]).await;
    let last = fs::read(&source);
    assert!(mount(&[&at], "umount"));
    edited.expect("it is written in place");
    written.expect("it is written in place");
    pieces.expect("they are written in place");
    assert_eq!(now.expect("it is there"), b"long and new");
    assert_eq!(last.expect("it is there"), b"pieces");
    let left = fs::read_dir(fixture.root()).expect("a folder").count();
    assert_eq!(left, 1, "no temporary file is left");
}
