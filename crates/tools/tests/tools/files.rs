//! Files below one directory, through the actor.

use std::fs;
use std::path::{Path, PathBuf};

use strowger::{ActorRef, ActorSystem, Request};
use strowger_tools::files::{
    AppendRequest, CreateDirectoryRequest, DeleteRequest, EditRequest, EntryKind, FileError,
    FileLimits, FileRule, Files, FilesMessage, FilesSpec, FilesUsageRequest, ListRequest,
    ReadManyRequest, ReadMediaRequest, ReadRequest, RenameRequest, RootRequest, SearchRequest,
    StatRequest, TextChange, TreeRequest, WriteMode, WriteRequest,
};
use tempfile::TempDir;

mod attack;
mod edits;
mod external;
mod find;
mod folder;
mod keep;
mod leftover;
mod limit;
mod naive;
mod names;
mod pieces;
mod protocol;
mod refusals;
mod scan;

/// A files actor over a directory `data`, with a secret beside it.
struct Fixture {
    /// Contains `data`, and the secret that must not be reached.
    folder: TempDir,
    system: ActorSystem,
    files: ActorRef<FilesMessage>,
}

const SECRET: &[u8] = b"the secret";

impl Fixture {
    fn open(change: impl FnOnce(&mut FilesSpec)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("data")).expect("the root");
        fs::create_dir(folder.path().join("data-secret")).expect("its sibling");
        fs::write(folder.path().join("data-secret/key"), SECRET).expect("a secret");
        fs::write(folder.path().join("secret"), SECRET).expect("a secret");
        let system = ActorSystem::new("office").expect("it starts");
        let mut spec = FilesSpec::new(folder.path().join("data"));
        change(&mut spec);
        let files = system.spawn::<Files>("files", spec).expect("it starts");
        Self {
            folder,
            system,
            files,
        }
    }

    fn limited(change: impl FnOnce(&mut FileLimits)) -> Self {
        Self::open(|spec| change(&mut spec.limits))
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn outside(&self) -> &Path {
        self.folder.path()
    }

    async fn ask<R>(&self, request: R) -> R::Reply
    where
        R: Request,
        FilesMessage: strowger::Accepts<strowger::Ask<R>>,
    {
        self.files.ask(request).await.expect("it answers")
    }

    async fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.ask(ReadRequest::new(path)).await.map(Vec::from)
    }

    async fn write(&self, path: &str, bytes: &str) -> Result<(), FileError> {
        self.ask(WriteRequest::new(path, bytes.to_owned())).await
    }
}

/// The rule that refused the request.
fn rule<T: std::fmt::Debug>(outcome: Result<T, FileError>) -> FileRule {
    match outcome {
        Err(FileError::Refused { rule, .. } | FileError::Limit { rule, .. }) => rule,
        other => panic!("{other:?} is not refused"),
    }
}

#[tokio::test]
async fn written_bytes_are_read_back() {
    let fixture = Fixture::open(|_| {});
    let bytes: Vec<u8> = (0..=255).cycle().take(700_000).collect();
    for mode in [WriteMode::InPlace, WriteMode::Atomic, WriteMode::Durable] {
        for length in [700_000, 3, 0, 300_000] {
            let part = bytes[..length].to_vec();
            let write = WriteRequest::new("octets", part.clone()).with_mode(mode);
            fixture.ask(write).await.expect("there is room");
            assert_eq!(fixture.read("octets").await.expect("it is there"), part);
        }
    }
    let part = ReadRequest {
        path: "octets".into(),
        offset: 257,
        length: Some(3),
    };
    assert_eq!(
        fixture.ask(part.clone()).await.expect("it is there"),
        [1, 2, 3][..]
    );
    let behind = ReadRequest {
        offset: 1 << 40,
        ..part
    };
    assert_eq!(
        fixture.ask(behind).await.expect("nothing is no error"),
        b""[..]
    );
    let left = fs::read_dir(fixture.root()).expect("a folder").count();
    assert_eq!(left, 1, "nothing is left beside the file");
}

#[tokio::test]
async fn atomic_write_keeps_the_mode_and_follows_links() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::open(|_| {});
    let at = fixture.root().join("script");
    fs::write(&at, "old").expect("a file");
    fs::set_permissions(&at, fs::Permissions::from_mode(0o750)).expect("ours");
    std::os::unix::fs::symlink("script", fixture.root().join("link")).expect("a link");
    let write = WriteRequest::new("link", "new").with_mode(WriteMode::Atomic);
    fixture
        .ask(write)
        .await
        .expect("it leads to a file below the root");
    assert_eq!(fs::read(&at).expect("it is there"), b"new");
    let mode = fs::metadata(&at).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert!(fixture.root().join("link").is_symlink());
}

#[tokio::test]
async fn append_adds_at_the_end() {
    let fixture = Fixture::open(|_| {});
    for part in ["one, ", "two"] {
        let append = AppendRequest {
            path: "log".into(),
            bytes: part.into(),
        };
        fixture.ask(append).await.expect("there is room");
    }
    assert_eq!(fixture.read("log").await.expect("it is there"), b"one, two");
}

#[tokio::test]
async fn read_many_fails_per_file() {
    let fixture = Fixture::limited(|limits| limits.file = 10);
    fixture.write("a", "123456").await.expect("there is room");
    fixture.write("b", "1234567").await.expect("there is room");
    let paths = ["a", "gone", "b", "../secret"].map(str::to_owned).to_vec();
    let read = fixture
        .ask(ReadManyRequest { paths })
        .await
        .expect("they are read");
    assert_eq!(read[0].as_deref(), Ok(&b"123456"[..]));
    assert!(matches!(read[1], Err(FileError::NotFound { .. })));
    assert_eq!(
        rule(read[2].clone()),
        FileRule::Size,
        "both are more than one file may be"
    );
    assert_eq!(rule(read[3].clone()), FileRule::Outside);
}

#[tokio::test]
async fn list_pages_cover_the_directory() {
    let fixture = Fixture::limited(|limits| limits.page = 300);
    for number in 0..1000 {
        fs::write(fixture.root().join(format!("{number:04}")), "").expect("a file");
    }
    let mut list = ListRequest::default();
    let mut names = Vec::new();
    loop {
        let page = fixture.ask(list.clone()).await.expect("it is a directory");
        assert!(page.entries.len() <= 300);
        names.extend(page.entries.into_iter().map(|entry| entry.name));
        if !page.more {
            break;
        }
        list.after = names.last().cloned();
    }
    let all: Vec<String> = (0..1000).map(|number| format!("{number:04}")).collect();
    assert_eq!(names, all);
}

#[tokio::test]
async fn list_stat_and_tree_describe_entries() {
    let fixture = Fixture::open(|_| {});
    fixture.write("file", "four").await.expect("there is room");
    let made = CreateDirectoryRequest {
        path: "deep/er".into(),
    };
    fixture.ask(made.clone()).await.expect("there is room");
    fixture.ask(made).await.expect("it is left as it is");
    std::os::unix::fs::symlink("/etc", fixture.root().join("link")).expect("a link");
    let list = ListRequest {
        details: true,
        ..ListRequest::default()
    };
    let entries = fixture.ask(list).await.expect("it is a directory").entries;
    let kinds: Vec<_> = entries
        .iter()
        .map(|entry| (&*entry.name, entry.kind))
        .collect();
    let wanted = [
        ("deep", EntryKind::Directory),
        ("file", EntryKind::File),
        ("link", EntryKind::Link),
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(entries[1].size, Some(4));
    let stat = fixture
        .ask(StatRequest {
            path: "file".into(),
        })
        .await
        .expect("it is there");
    assert_eq!(stat, entries[1]);

    let tree = fixture
        .ask(TreeRequest::default())
        .await
        .expect("it is a directory");
    assert_eq!(tree.entries[0].entries[0].name, "er");
    let shallow = TreeRequest {
        depth: Some(1),
        ..TreeRequest::default()
    };
    let tree = fixture.ask(shallow).await.expect("it is a directory");
    assert!(tree.entries[0].cut && tree.entries[0].entries.is_empty());
}

#[tokio::test]
async fn edit_applies_all_changes_or_none() {
    let fixture = Fixture::open(|_| {});
    fixture
        .write("poem", "roses are red\nviolets are red\n")
        .await
        .expect("there is room");
    let change = |old: &str, new: &str, all| TextChange {
        old: old.into(),
        new: new.into(),
        all,
    };
    let mut edit = EditRequest {
        path: "poem".into(),
        changes: vec![change("violets are red", "violets are blue", false)],
        dry_run: true,
    };
    let edited = fixture.ask(edit.clone()).await.expect("it is there once");
    assert!(
        edited
            .diff
            .contains("-violets are red\n+violets are blue\n"),
        "{}",
        edited.diff
    );
    assert_eq!(edited.replacements, 1);
    let text = fixture.read("poem").await.expect("it is there");
    assert_eq!(
        text, b"roses are red\nviolets are red\n",
        "it was to be said only"
    );

    edit.dry_run = false;
    edit.changes.push(change("are", "were", false));
    let twice = fixture
        .ask(edit.clone())
        .await
        .expect_err("it is there twice");
    assert_eq!(
        twice.to_string(),
        "`poem`: edit 1 matches 2 times instead of once, at lines 1, 2: include more of the lines \
         around it in the text to replace, or set `all`"
    );
    assert_eq!(fixture.read("poem").await.expect("it is there"), text);
    edit.changes[1].all = true;
    assert_eq!(
        fixture.ask(edit).await.expect("all are meant").replacements,
        3
    );
    let text = fixture.read("poem").await.expect("it is there");
    assert_eq!(text, b"roses were red\nviolets were blue\n");
}

#[tokio::test]
async fn search_finds_lines_by_pattern_and_files_by_name() {
    let fixture = Fixture::open(|_| {});
    fixture
        .ask(CreateDirectoryRequest {
            path: "src/deep".into(),
        })
        .await
        .expect("there is room");
    fixture
        .write("src/a.rs", "fn one() {}\nfn two() {}\n")
        .await
        .expect("there is room");
    fixture
        .write("src/deep/b.rs", "// fn three\n")
        .await
        .expect("there is room");
    fixture
        .write("src/c.txt", "fn four")
        .await
        .expect("there is room");
    fixture
        .ask(WriteRequest::new("src/x.rs", b"fn \0 \xff".to_vec()))
        .await
        .expect("there is room");
    let search = SearchRequest {
        path: "src".into(),
        names: Some("**/*.rs".into()),
        text: Some(r"^fn t".into()),
        ..SearchRequest::default()
    };
    let found = fixture
        .ask(search.clone())
        .await
        .expect("it is a directory");
    let hits: Vec<_> = found
        .matches
        .iter()
        .map(|hit| (&*hit.path, hit.line))
        .collect();
    assert_eq!(hits, [("src/a.rs", Some(2))]);
    assert_eq!((found.files, found.skipped.binary, found.cut), (2, 1, None));

    let by_name = SearchRequest {
        text: None,
        ..search.clone()
    };
    let found = fixture.ask(by_name).await.expect("it is a directory");
    let paths: Vec<_> = found.matches.iter().map(|hit| &*hit.path).collect();
    assert_eq!(paths, ["src/a.rs", "src/deep/b.rs", "src/x.rs"]);

    for (left_out, expected) in [
        (["deep"].as_slice(), ["src/a.rs", "src/x.rs"].as_slice()),
        (&["deep/", "x.*"], &["src/a.rs"]),
        (&["**/b.rs", "a.rs"], &["src/x.rs"]),
        (&["deep/b.rs", "src"], &["src/a.rs", "src/x.rs"]),
        (&["*"], &[]),
    ] {
        let search = SearchRequest {
            text: None,
            exclude: left_out.iter().map(|&pattern| pattern.to_owned()).collect(),
            ..search.clone()
        };
        let found = fixture.ask(search).await.expect("it is a directory");
        let paths: Vec<_> = found.matches.iter().map(|hit| &*hit.path).collect();
        assert_eq!(paths, expected, "{left_out:?}");
    }
    for exclude in [vec!["[".to_owned()], vec!["x".to_owned(); 65]] {
        let search = SearchRequest {
            exclude,
            ..search.clone()
        };
        let error = fixture.ask(search).await.expect_err("it is no pattern");
        assert!(
            error.to_string().starts_with("invalid pattern `"),
            "{error}"
        );
    }

    let wrong = SearchRequest {
        text: Some("(".into()),
        ..search
    };
    let error = fixture.ask(wrong).await.expect_err("it is no pattern");
    assert!(
        error.to_string().starts_with("invalid pattern `(`"),
        "{error}"
    );
}

#[tokio::test]
async fn rename_replaces_only_on_request() {
    let fixture = Fixture::open(|_| {});
    fixture.write("a", "a").await.expect("there is room");
    fixture.write("b", "bb").await.expect("there is room");
    let mut rename = RenameRequest {
        from: "a".into(),
        to: "b".into(),
        replace: false,
    };
    let there = fixture.ask(rename.clone()).await.expect_err("it is there");
    assert_eq!(there, FileError::Exists { path: "b".into() });
    rename.replace = true;
    fixture.ask(rename).await.expect("it was told to");
    assert_eq!(fixture.read("b").await.expect("it is there"), b"a");
    let usage = fixture.ask(FilesUsageRequest).await;
    assert_eq!((usage.bytes, usage.entries), (1, 1));
}

#[tokio::test]
async fn delete_is_recursive_only_on_request() {
    let fixture = Fixture::open(|_| {});
    fixture
        .ask(CreateDirectoryRequest { path: "a/b".into() })
        .await
        .expect("there is room");
    fixture
        .write("a/b/c", "12345")
        .await
        .expect("there is room");
    assert_eq!(fixture.ask(FilesUsageRequest).await.entries, 3);
    let mut delete = DeleteRequest {
        path: "a".into(),
        recursive: false,
    };
    let full = fixture
        .ask(delete.clone())
        .await
        .expect_err("there is something in it");
    assert_eq!(full, FileError::NotEmpty { path: "a".into() });
    delete.recursive = true;
    fixture.ask(delete).await.expect("it was told to");
    let usage = fixture.ask(FilesUsageRequest).await;
    assert_eq!((usage.bytes, usage.entries), (0, 0));
}

#[tokio::test]
async fn media_type_is_guessed_from_the_name() {
    let fixture = Fixture::open(|_| {});
    fixture
        .write("a.png", "pixels")
        .await
        .expect("there is room");
    let media = fixture
        .ask(ReadMediaRequest {
            path: "a.png".into(),
        })
        .await
        .expect("it is there");
    assert_eq!(
        (&*media.mime, &media.bytes[..]),
        ("image/png", &b"pixels"[..])
    );
}

#[tokio::test]
async fn usage_counts_each_call() {
    let fixture = Fixture::open(|_| {});
    fixture.write("a", "123").await.expect("there is room");
    fixture.read("a").await.expect("it is there");
    fixture.read("gone").await.expect_err("it is not");
    fixture.read("../secret").await.expect_err("it is outside");
    fixture
        .ask(SearchRequest::default())
        .await
        .expect("it is a directory");
    let usage = fixture.ask(FilesUsageRequest).await;
    let read = usage.verbs["read"];
    assert_eq!(
        (read.calls, read.refused, read.failed, read.bytes),
        (3, 1, 1, 3)
    );
    assert_eq!(usage.verbs["write"].bytes, 3);
    let root = fixture.ask(RootRequest).await.expect("there is one");
    assert!(root.path.ends_with("/data") && !root.read_only);
}

#[tokio::test]
async fn missing_root_is_named_in_the_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = ActorSystem::new("office").expect("it starts");
    let gone = folder.path().join("gone");
    let files = system
        .spawn::<Files>("files", FilesSpec::new(&gone))
        .expect("it is tried");
    let exit = files.stopped().await.to_string();
    assert!(exit.contains(gone.to_str().expect("UTF-8")), "{exit}");
}
