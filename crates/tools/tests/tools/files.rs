//! Files below one directory, through the actor.

use std::fs;
use std::path::{Path, PathBuf};

use strowger::{ActorRef, ActorSystem, Request};
use strowger_tools::{
    Append, Change, Delete, Edit, EntryKind, FileError, FileLimits, Files, FilesMessage, FilesSpec,
    GetMedia, GetRoot, GetUsage, List, Make, Read, ReadMany, Rename, Rule, Search, Stat, Tree,
    Write, WriteMode,
};
use tempfile::TempDir;

mod attack;
mod edits;
mod find;
mod folder;
mod keep;
mod leftover;
mod limit;
mod naive;
mod names;
mod outside;
mod protocol;
mod refusals;
mod scan;

/// A files actor over a directory `data`, with a secret beside it.
struct Office {
    /// Contains `data`, and the secret that must not be reached.
    folder: TempDir,
    system: ActorSystem,
    files: ActorRef<FilesMessage>,
}

const SECRET: &[u8] = b"the secret";

impl Office {
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
        self.ask(Read::new(path)).await.map(Vec::from)
    }

    async fn write(&self, path: &str, octets: &str) -> Result<(), FileError> {
        self.ask(Write::new(path, octets.to_owned())).await
    }
}

/// The rule that refused the request.
fn rule<T: std::fmt::Debug>(outcome: Result<T, FileError>) -> Rule {
    match outcome {
        Err(FileError::Refused { rule, .. } | FileError::Limit { rule, .. }) => rule,
        other => panic!("{other:?} is not refused"),
    }
}

#[tokio::test]
async fn octets_come_back_as_they_were_written() {
    let office = Office::open(|_| {});
    let octets: Vec<u8> = (0..=255).cycle().take(700_000).collect();
    for mode in [WriteMode::Inplace, WriteMode::Atomic, WriteMode::Durable] {
        for length in [700_000, 3, 0, 300_000] {
            let part = octets[..length].to_vec();
            let write = Write::new("octets", part.clone()).with_mode(mode);
            office.ask(write).await.expect("there is room");
            assert_eq!(office.read("octets").await.expect("it is there"), part);
        }
    }
    let part = Read {
        path: "octets".into(),
        offset: 257,
        length: Some(3),
    };
    assert_eq!(
        office.ask(part.clone()).await.expect("it is there"),
        [1, 2, 3][..]
    );
    let behind = Read {
        offset: 1 << 40,
        ..part
    };
    assert_eq!(
        office.ask(behind).await.expect("nothing is no error"),
        b""[..]
    );
    let left = fs::read_dir(office.root()).expect("a folder").count();
    assert_eq!(left, 1, "nothing is left beside the file");
}

#[tokio::test]
async fn a_replaced_file_keeps_its_mode_and_what_a_link_leads_to() {
    use std::os::unix::fs::PermissionsExt as _;
    let office = Office::open(|_| {});
    let at = office.root().join("script");
    fs::write(&at, "old").expect("a file");
    fs::set_permissions(&at, fs::Permissions::from_mode(0o750)).expect("ours");
    std::os::unix::fs::symlink("script", office.root().join("link")).expect("a link");
    let write = Write::new("link", "new").with_mode(WriteMode::Atomic);
    office
        .ask(write)
        .await
        .expect("it leads to a file below the root");
    assert_eq!(fs::read(&at).expect("it is there"), b"new");
    let mode = fs::metadata(&at).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert!(office.root().join("link").is_symlink());
}

#[tokio::test]
async fn what_is_appended_comes_behind() {
    let office = Office::open(|_| {});
    for part in ["one, ", "two"] {
        let append = Append {
            path: "log".into(),
            octets: part.into(),
        };
        office.ask(append).await.expect("there is room");
    }
    assert_eq!(office.read("log").await.expect("it is there"), b"one, two");
}

#[tokio::test]
async fn several_are_read_and_one_that_fails_spoils_no_other() {
    let office = Office::limited(|limits| limits.file = 10);
    office.write("a", "123456").await.expect("there is room");
    office.write("b", "1234567").await.expect("there is room");
    let paths = ["a", "gone", "b", "../secret"].map(str::to_owned).to_vec();
    let read = office.ask(ReadMany { paths }).await.expect("they are read");
    assert_eq!(read[0].as_deref(), Ok(&b"123456"[..]));
    assert!(matches!(read[1], Err(FileError::NotFound { .. })));
    assert_eq!(
        rule(read[2].clone()),
        Rule::Size,
        "both are more than one file may be"
    );
    assert_eq!(rule(read[3].clone()), Rule::Outside);
}

#[tokio::test]
async fn a_page_follows_the_one_before() {
    let office = Office::limited(|limits| limits.page = 300);
    for number in 0..1000 {
        fs::write(office.root().join(format!("{number:04}")), "").expect("a file");
    }
    let mut list = List::default();
    let mut names = Vec::new();
    loop {
        let page = office.ask(list.clone()).await.expect("it is a directory");
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
async fn a_list_says_what_entries_are() {
    let office = Office::open(|_| {});
    office.write("file", "four").await.expect("there is room");
    let made = Make {
        path: "deep/er".into(),
    };
    office.ask(made.clone()).await.expect("there is room");
    office.ask(made).await.expect("it is left as it is");
    std::os::unix::fs::symlink("/etc", office.root().join("link")).expect("a link");
    let list = List {
        details: true,
        ..List::default()
    };
    let entries = office.ask(list).await.expect("it is a directory").entries;
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
    let stat = office
        .ask(Stat {
            path: "file".into(),
        })
        .await
        .expect("it is there");
    assert_eq!(stat, entries[1]);

    let tree = office
        .ask(Tree::default())
        .await
        .expect("it is a directory");
    assert_eq!(tree.entries[0].entries[0].name, "er");
    let shallow = Tree {
        depth: Some(1),
        ..Tree::default()
    };
    let tree = office.ask(shallow).await.expect("it is a directory");
    assert!(tree.entries[0].cut && tree.entries[0].entries.is_empty());
}

#[tokio::test]
async fn changes_are_made_all_or_none() {
    let office = Office::open(|_| {});
    office
        .write("poem", "roses are red\nviolets are red\n")
        .await
        .expect("there is room");
    let change = |old: &str, new: &str, all| Change {
        old: old.into(),
        new: new.into(),
        all,
    };
    let mut edit = Edit {
        path: "poem".into(),
        changes: vec![change("violets are red", "violets are blue", false)],
        dry_run: true,
    };
    let edited = office.ask(edit.clone()).await.expect("it is there once");
    assert!(
        edited
            .diff
            .contains("-violets are red\n+violets are blue\n"),
        "{}",
        edited.diff
    );
    assert_eq!(edited.places, 1);
    let text = office.read("poem").await.expect("it is there");
    assert_eq!(
        text, b"roses are red\nviolets are red\n",
        "it was to be said only"
    );

    edit.dry_run = false;
    edit.changes.push(change("are", "were", false));
    let twice = office
        .ask(edit.clone())
        .await
        .expect_err("it is there twice");
    assert_eq!(
        twice.to_string(),
        "`poem`: edit 1 matches 2 times instead of once, at lines 1, 2: include more of the lines \
         around it in the text to replace, or set `all`"
    );
    assert_eq!(office.read("poem").await.expect("it is there"), text);
    edit.changes[1].all = true;
    assert_eq!(office.ask(edit).await.expect("all are meant").places, 3);
    let text = office.read("poem").await.expect("it is there");
    assert_eq!(text, b"roses were red\nviolets were blue\n");
}

#[tokio::test]
async fn lines_are_found_by_pattern_and_files_by_name() {
    let office = Office::open(|_| {});
    office
        .ask(Make {
            path: "src/deep".into(),
        })
        .await
        .expect("there is room");
    office
        .write("src/a.rs", "fn one() {}\nfn two() {}\n")
        .await
        .expect("there is room");
    office
        .write("src/deep/b.rs", "// fn three\n")
        .await
        .expect("there is room");
    office
        .write("src/c.txt", "fn four")
        .await
        .expect("there is room");
    office
        .ask(Write::new("src/x.rs", b"fn \0 \xff".to_vec()))
        .await
        .expect("there is room");
    let search = Search {
        path: "src".into(),
        names: Some("**/*.rs".into()),
        text: Some(r"^fn t".into()),
        ..Search::default()
    };
    let found = office.ask(search.clone()).await.expect("it is a directory");
    let hits: Vec<_> = found
        .matches
        .iter()
        .map(|hit| (&*hit.path, hit.line))
        .collect();
    assert_eq!(hits, [("src/a.rs", Some(2))]);
    assert_eq!((found.files, found.skipped.binary, found.cut), (2, 1, None));

    let by_name = Search {
        text: None,
        ..search.clone()
    };
    let found = office.ask(by_name).await.expect("it is a directory");
    let paths: Vec<_> = found.matches.iter().map(|hit| &*hit.path).collect();
    assert_eq!(paths, ["src/a.rs", "src/deep/b.rs", "src/x.rs"]);

    for (left_out, expected) in [
        (["deep"].as_slice(), ["src/a.rs", "src/x.rs"].as_slice()),
        (&["deep/", "x.*"], &["src/a.rs"]),
        (&["**/b.rs", "a.rs"], &["src/x.rs"]),
        (&["deep/b.rs", "src"], &["src/a.rs", "src/x.rs"]),
        (&["*"], &[]),
    ] {
        let search = Search {
            text: None,
            exclude: left_out.iter().map(|&pattern| pattern.to_owned()).collect(),
            ..search.clone()
        };
        let found = office.ask(search).await.expect("it is a directory");
        let paths: Vec<_> = found.matches.iter().map(|hit| &*hit.path).collect();
        assert_eq!(paths, expected, "{left_out:?}");
    }
    for exclude in [vec!["[".to_owned()], vec!["x".to_owned(); 65]] {
        let search = Search {
            exclude,
            ..search.clone()
        };
        let error = office.ask(search).await.expect_err("it is no pattern");
        assert!(
            error.to_string().starts_with("invalid pattern `"),
            "{error}"
        );
    }

    let wrong = Search {
        text: Some("(".into()),
        ..search
    };
    let error = office.ask(wrong).await.expect_err("it is no pattern");
    assert!(
        error.to_string().starts_with("invalid pattern `(`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_rename_replaces_only_if_told() {
    let office = Office::open(|_| {});
    office.write("a", "a").await.expect("there is room");
    office.write("b", "bb").await.expect("there is room");
    let mut rename = Rename {
        from: "a".into(),
        to: "b".into(),
        replace: false,
    };
    let there = office.ask(rename.clone()).await.expect_err("it is there");
    assert_eq!(there, FileError::Exists { path: "b".into() });
    rename.replace = true;
    office.ask(rename).await.expect("it was told to");
    assert_eq!(office.read("b").await.expect("it is there"), b"a");
    let usage = office.ask(GetUsage).await;
    assert_eq!((usage.octets, usage.entries), (1, 1));
}

#[tokio::test]
async fn a_directory_goes_with_what_is_in_it_only_if_told() {
    let office = Office::open(|_| {});
    office
        .ask(Make { path: "a/b".into() })
        .await
        .expect("there is room");
    office.write("a/b/c", "12345").await.expect("there is room");
    assert_eq!(office.ask(GetUsage).await.entries, 3);
    let mut delete = Delete {
        path: "a".into(),
        recursive: false,
    };
    let full = office
        .ask(delete.clone())
        .await
        .expect_err("there is something in it");
    assert_eq!(full, FileError::NotEmpty { path: "a".into() });
    delete.recursive = true;
    office.ask(delete).await.expect("it was told to");
    let usage = office.ask(GetUsage).await;
    assert_eq!((usage.octets, usage.entries), (0, 0));
}

#[tokio::test]
async fn a_file_says_what_it_holds_by_its_name() {
    let office = Office::open(|_| {});
    office
        .write("a.png", "pixels")
        .await
        .expect("there is room");
    let media = office
        .ask(GetMedia {
            path: "a.png".into(),
        })
        .await
        .expect("it is there");
    assert_eq!(
        (&*media.mime, &media.octets[..]),
        ("image/png", &b"pixels"[..])
    );
}

#[tokio::test]
async fn each_call_is_counted() {
    let office = Office::open(|_| {});
    office.write("a", "123").await.expect("there is room");
    office.read("a").await.expect("it is there");
    office.read("gone").await.expect_err("it is not");
    office.read("../secret").await.expect_err("it is outside");
    office
        .ask(Search::default())
        .await
        .expect("it is a directory");
    let usage = office.ask(GetUsage).await;
    let read = usage.verbs["read"];
    assert_eq!(
        (read.calls, read.refused, read.failed, read.octets),
        (3, 1, 1, 3)
    );
    assert_eq!(usage.verbs["write"].octets, 3);
    let root = office.ask(GetRoot).await.expect("there is one");
    assert!(root.path.ends_with("/data") && !root.read_only);
}

#[tokio::test]
async fn a_root_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = ActorSystem::new("office").expect("it starts");
    let gone = folder.path().join("gone");
    let files = system
        .spawn::<Files>("files", FilesSpec::new(&gone))
        .expect("it is tried");
    let exit = files.stopped().await.to_string();
    assert!(exit.contains(gone.to_str().expect("UTF-8")), "{exit}");
}
