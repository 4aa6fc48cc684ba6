//! Files that are written in pieces, through a temporary file of the actor.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use strowger_tools::files::{
    AppendRequest, BeginWriteRequest, CommitWriteRequest, DeleteRequest, FileError, FileRule,
    FilesUsageRequest, WriteMode, WriteRequest,
};

use super::{Fixture, rule};

impl Fixture {
    async fn begin(&self, path: &str) -> Result<String, FileError> {
        let begun = self.ask(BeginWriteRequest { path: path.into() }).await;
        begun.map(|part| part.part)
    }

    async fn append(&self, path: &str, piece: &str) -> Result<(), FileError> {
        let (path, bytes) = (path.to_owned(), piece.to_owned().into());
        self.ask(AppendRequest { path, bytes }).await
    }

    async fn commit(&self, part: &str, path: &str, length: usize) -> Result<(), FileError> {
        let commit = CommitWriteRequest {
            part: part.into(),
            path: path.into(),
            length: length as u64,
            durable: true,
        };
        self.ask(commit).await
    }

    /// Writes a file as a client that streams it does.
    pub(super) async fn write_pieces(&self, path: &str, pieces: &[&str]) -> Result<(), FileError> {
        let part = self.begin(path).await?;
        for piece in pieces {
            self.append(&part, piece).await?;
        }
        self.commit(&part, path, pieces.concat().len()).await
    }

    async fn used(&self) -> (u64, u64) {
        let usage = self.ask(FilesUsageRequest).await;
        (usage.bytes, usage.entries)
    }
}

#[tokio::test]
async fn pieces_are_seen_once_they_are_committed() {
    let fixture = Fixture::open(|_| {});
    fs::create_dir(fixture.root().join("dir")).expect("a directory");
    let file = fixture.root().join("dir/private");
    fs::write(&file, "old").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("ours");
    symlink("dir/private", fixture.root().join("link")).expect("a link");
    let part = fixture.begin("link").await.expect("there is room");
    fixture.append(&part, "new").await.expect("there is room");
    assert_eq!(fs::read(&file).expect("it is there"), b"old");
    let beside = fixture.root().join(&part);
    assert_eq!(
        beside.parent(),
        file.parent(),
        "the rename stays in a directory"
    );
    let metadata = fs::metadata(beside).expect("it is there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    fixture.commit(&part, "link", 3).await.expect("it is whole");
    assert_eq!(fs::read(&file).expect("it is there"), b"new");
    let metadata = fs::metadata(&file).expect("it is there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    assert!(fixture.root().join("link").is_symlink());
    let long = format!("dir/{}", "n".repeat(255));
    let written = fixture.write_pieces(&long, &["a", "b"]).await;
    written.expect("there is room");
    let left = fs::read_dir(fixture.root().join("dir")).expect("a directory");
    assert_eq!(left.count(), 2, "no temporary file is left");
}

#[tokio::test]
async fn pieces_reach_directories_whose_names_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt as _;
    let fixture = Fixture::open(|_| {});
    let odd = fixture.root().join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::create_dir(&odd).expect("a directory");
    let path = strowger_tools::files::file_uri(&odd.join("file"));
    let written = fixture.write_pieces(&path, &["a", "b"]).await;
    written.expect("there is room");
    assert_eq!(fs::read(odd.join("file")).expect("it is there"), b"ab");
}

#[tokio::test]
async fn only_a_whole_part_is_committed() {
    let fixture = Fixture::open(|_| {});
    let root = fixture.root();
    fs::write(root.join("file"), "old").expect("a file");
    fs::write(root.join("other"), "no").expect("a file");
    symlink("other", root.join(".strowger-1-1")).expect("a link");
    fs::hard_link(root.join("other"), root.join(".strowger-1-2")).expect("a link");
    let part = fixture.begin("file").await.expect("there is room");
    fixture.append(&part, "new").await.expect("there is room");
    for part in ["other", ".strowger-1-1", ".strowger-1-2", ".strowger-1-3"] {
        assert!(fixture.commit(part, "file", 2).await.is_err(), "{part}");
    }
    let incomplete = fixture.commit(&part, "file", 4).await;
    let incomplete = incomplete.expect_err("a piece is missing");
    assert!(incomplete.to_string().contains("`length`"), "{incomplete}");
    let directory = fixture.begin("").await;
    assert!(matches!(directory, Err(FileError::IsDirectory { .. })));
    assert_eq!(fs::read(root.join("file")).expect("it is there"), b"old");
    fixture.commit(&part, "file", 3).await.expect("it is whole");
    assert_eq!(fs::read(root.join("file")).expect("it is there"), b"new");
}

#[tokio::test]
async fn pieces_use_the_quota_once() {
    let fixture = Fixture::limited(|limits| {
        limits.bytes = 10;
        limits.entries = 2;
    });
    let write = fixture.write_pieces("file", &["12345", "6"]).await;
    write.expect("there is room");
    assert_eq!(fixture.used().await, (6, 1));
    let part = fixture.begin("file").await.expect("there is room");
    assert_eq!(rule(fixture.begin("file").await), FileRule::Entries);
    assert_eq!(rule(fixture.append(&part, "12345").await), FileRule::Bytes);
    fixture.append(&part, "1234").await.expect("there is room");
    assert_eq!(fixture.used().await, (10, 2));
    let itself = fixture.commit(&part, &part, 4).await;
    itself.expect_err("nothing would be replaced");
    assert_eq!(fixture.used().await, (10, 2));
    fixture.commit(&part, "file", 4).await.expect("it is whole");
    assert_eq!(fixture.used().await, (4, 1));
    let path = fixture.begin("file").await.expect("there is room");
    let delete = DeleteRequest {
        path,
        recursive: false,
    };
    fixture.ask(delete).await.expect("it is there");
    assert_eq!(fixture.used().await, (4, 1));
}

#[tokio::test]
async fn part_of_a_killed_writer_is_removed_and_frees_its_quota() {
    let fixture = Fixture::open(|_| {});
    let part = fixture.begin("file").await.expect("there is room");
    fixture.append(&part, "lost").await.expect("there is room");
    let lost = fixture.root().join(part);
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    let file = File::options().append(true).open(&lost);
    file.and_then(|file| file.set_modified(long_ago))
        .expect("ours");
    let write = WriteRequest::new("file", "text").with_mode(WriteMode::Atomic);
    fixture.ask(write).await.expect("there is room");
    let freed = async {
        while fixture.used().await != (4, 1) {
            tokio::task::yield_now().await;
        }
    };
    let freed = tokio::time::timeout(Duration::from_secs(60), freed).await;
    freed.expect("the leftover goes");
    assert!(!lost.exists());
}
