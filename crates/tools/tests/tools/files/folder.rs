//! Directories as users have them: already full, with large files, and with names of any kind.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;

use strowger::{ActorSystem, ChildSpec, Strategy, Supervisor};
use strowger_tools::files::{
    AppendRequest, DeleteRequest, FileRule, Files, FilesMessage, FilesSpec, FilesUsageRequest,
    ListOrder, ListRequest, ReadLinesRequest, ReadRequest, RenameRequest, SearchRequest,
    StatRequest, TreeRequest, WriteRequest,
};

use super::{Fixture, rule};

#[tokio::test]
async fn existing_files_do_not_use_quota() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..20 {
        fs::write(folder.path().join(number.to_string()), "1234567890").expect("a file");
    }
    let sparse = File::create(folder.path().join("sparse")).expect("a file");
    sparse.set_len(1 << 40).expect("it takes no room");
    let mut spec = FilesSpec::new(folder.path());
    spec.limits.bytes = 10;
    spec.limits.entries = 3;
    let system = ActorSystem::new("office").expect("it starts");
    let files = system.spawn::<Files>("files", spec).expect("it starts");
    let ask = async |path: &str, text: &str| {
        let write = WriteRequest::new(path, text.to_owned());
        files.ask(write).await.expect("it answers")
    };
    ask("new", "12345").await.expect("it is the first");
    let longer = AppendRequest {
        path: "sparse".into(),
        bytes: "12345".into(),
    };
    let longer = files.ask(longer).await.expect("it answers");
    longer.expect("only what is added counts");
    let full = ask("newer", "1").await.expect_err("it is full");
    assert_eq!(
        full.to_string(),
        "`newer` needs 1 more bytes, but 10 of the limit of 10 added below this directory are \
         used: delete unneeded files, or raise `octets` in [[tools.files]] or with \
         --limit octets=N (rule: octets)"
    );
    ask("0", "123").await.expect("it is shorter than before");
    ask("newer", "1").await.expect("there is room now");
    ask("newest", "").await.expect("there is room");
    assert_eq!(rule(ask("one more", "").await), FileRule::Entries);
    let usage = files.ask(FilesUsageRequest).await.expect("it answers");
    assert_eq!((usage.bytes, usage.entries), (4, 3));
}

#[tokio::test]
async fn deleting_a_hard_link_frees_no_quota() {
    let fixture = Fixture::limited(|limits| limits.bytes = 5);
    fs::write(fixture.root().join("a"), "12345").expect("a file");
    fs::hard_link(fixture.root().join("a"), fixture.root().join("b")).expect("another name");
    fixture.write("new", "12345").await.expect("there is room");
    let delete = |path: &str| DeleteRequest {
        path: path.into(),
        recursive: false,
    };
    fixture.ask(delete("a")).await.expect("it is there");
    assert_eq!(rule(fixture.write("newer", "12345").await), FileRule::Bytes);
    // Now there is room.
    fixture.ask(delete("b")).await.expect("it is there");
    fixture
        .write("newer", "12345")
        .await
        .expect("there is room");
}

#[tokio::test]
async fn renaming_an_entry_to_itself_frees_no_quota() {
    let fixture = Fixture::limited(|limits| limits.bytes = 10);
    fixture
        .write("a", "1234567890")
        .await
        .expect("there is room");
    fs::hard_link(fixture.root().join("a"), fixture.root().join("b")).expect("a link");
    for to in ["a", "./a", "b"] {
        let rename = RenameRequest {
            from: "a".into(),
            to: to.into(),
            replace: true,
        };
        fixture.ask(rename).await.expect("nothing is to be done");
        let usage = fixture.ask(FilesUsageRequest).await;
        assert_eq!((usage.bytes, usage.entries), (10, 1), "{to}");
    }
    assert_eq!(rule(fixture.write("c", "1").await), FileRule::Bytes);
}

#[tokio::test]
async fn quota_survives_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spec = FilesSpec::new(folder.path());
    spec.limits.bytes = 10;
    let system = ActorSystem::new("office").expect("it starts");
    let tools = Supervisor::new(Strategy::OneForOne).child(ChildSpec::new::<Files>("files", spec));
    let tools = system.supervise("tools", tools).await.expect("it starts");
    let files = tools.child::<FilesMessage>("files").expect("it is there");
    let write = async |name: &str| files.ask(WriteRequest::new(name, "12345")).await;
    write("a")
        .await
        .expect("it answers")
        .expect("there is room");
    write("b")
        .await
        .expect("it answers")
        .expect("there is room");
    files.kill();
    let outcome = loop {
        // A request that waits during the restart may be lost with the old incarnation.
        if let Ok(outcome) = write("c").await {
            break outcome;
        }
    };
    assert_eq!(rule(outcome), FileRule::Bytes);
}

/// A text of ten thousand lines, with a much smaller limit.
fn long() -> (Fixture, String) {
    let fixture = Fixture::limited(|limits| limits.file = 1000);
    let lines = (1..=10_000).map(|number| format!("line {number}\n"));
    let text: String = lines.collect();
    fs::write(fixture.root().join("long"), &text).expect("a file");
    (fixture, text)
}

#[tokio::test]
async fn read_lines_accepts_files_of_any_size() {
    let (fixture, text) = long();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ask = async |from: Option<u64>, head: Option<u64>, tail: Option<u64>| {
        let path = "long".into();
        let ask = ReadLinesRequest {
            path,
            from,
            head,
            tail,
            ..ReadLinesRequest::default()
        };
        let bytes = fixture.ask(ask).await?;
        Ok(String::from_utf8(bytes.into()).expect("it is text"))
    };
    let is = |outcome: Result<String, _>, lines: &[&str]| {
        let outcome: Result<String, strowger_tools::files::FileError> = outcome;
        assert_eq!(outcome.expect("they are few"), lines.concat());
    };
    is(ask(None, Some(3), None).await, &lines[..3]);
    is(ask(Some(5000), Some(2), None).await, &lines[4999..5001]);
    is(ask(Some(9999), None, None).await, &lines[9998..]);
    is(ask(Some(10_001), None, None).await, &[]);
    is(ask(None, None, Some(3)).await, &lines[9997..]);
    is(ask(None, Some(0), None).await, &[]);
    is(ask(None, None, Some(0)).await, &[]);
    for (from, head, tail) in [
        (None, None, None),
        (None, Some(1000), None),
        (None, None, Some(1000)),
        (Some(1), None, None),
        (Some(2), None, None),
    ] {
        assert_eq!(rule(ask(from, head, tail).await), FileRule::Size);
    }
    for (from, head, tail) in [
        (Some(1), None, Some(1)),
        (None, Some(1), Some(1)),
        (Some(0), None, None),
    ] {
        let wrong = ask(from, head, tail).await.expect_err("it says nothing");
        assert_eq!(wrong.name(), "arguments");
    }
    // A last line without a line end counts as a line.
    fs::write(fixture.root().join("long"), "a\nb").expect("a file");
    is(ask(None, None, Some(1)).await, &["b"]);
    is(ask(None, None, Some(9)).await, &["a\n", "b"]);
    is(ask(Some(2), None, None).await, &["b"]);
}

#[tokio::test]
async fn large_file_is_appended_and_read_in_parts() {
    let (fixture, text) = long();
    let append = AppendRequest {
        path: "long".into(),
        bytes: "the end".into(),
    };
    fixture.ask(append).await.expect("little is added");
    let part = ReadRequest {
        path: "long".into(),
        offset: text.len() as u64,
        length: None,
    };
    assert_eq!(
        fixture.ask(part).await.expect("it is short"),
        b"the end"[..]
    );
}

fn search(text: &str) -> SearchRequest {
    SearchRequest {
        text: Some(text.into()),
        ..SearchRequest::default()
    }
}

#[tokio::test]
async fn search_reads_large_files() {
    let (fixture, _) = long();
    let found = fixture
        .ask(search("line 9999$"))
        .await
        .expect("it is found");
    let [hit] = &*found.matches else {
        panic!("{found:?}");
    };
    assert_eq!(
        (hit.line, hit.text.as_deref()),
        (Some(9999), Some("line 9999"))
    );
    assert!(found.skipped.is_none() && found.files == 1, "{found:?}");
}

#[tokio::test]
async fn search_reports_skipped_files() {
    let fixture = Fixture::limited(|limits| limits.file = 1000);
    let root = fixture.root();
    let sparse = File::create(root.join("sparse")).expect("a file");
    sparse.write_all_at(b"needle\n", 0).expect("it is ours");
    sparse.set_len(1 << 40).expect("it takes no room");
    fs::write(root.join("latin"), b"caf\xe9\nneedle\n").expect("a file");
    let wide = "x".repeat(2 << 20) + "needle\nneedle\n";
    fs::write(root.join("wide"), wide).expect("a file");
    std::os::unix::fs::symlink("latin", root.join("link")).expect("a link");
    let found = fixture.ask(search("needle")).await.expect("it is found");
    let at: Vec<_> = found
        .matches
        .iter()
        .map(|hit| (&*hit.path, hit.line))
        .collect();
    assert_eq!(
        at,
        [
            ("latin", Some(2)),
            ("sparse", Some(1)),
            ("wide", Some(1)),
            ("wide", Some(2))
        ]
    );
    let skipped = &found.skipped;
    assert_eq!(
        (skipped.binary, skipped.long_lines, skipped.links),
        (1, 1, 1)
    );
    let paths: Vec<_> = skipped
        .paths
        .iter()
        .map(|one| (&*one.path, one.why))
        .collect();
    assert_eq!(paths, [("sparse", "binary"), ("wide", "long_lines")]);
    assert_eq!((found.files, found.cut), (1, None));
}

#[tokio::test]
async fn search_reports_the_byte_limit() {
    let (fixture, text) = long();
    for (limit, cut) in [
        (text.len() as u64, None),
        (text.len() as u64 - 1, Some("searched")),
    ] {
        let fixture = Fixture::limited(|limits| limits.searched = limit);
        fs::write(fixture.root().join("long"), &text).expect("a file");
        let found = fixture.ask(search("line 1$")).await.expect("it is found");
        assert_eq!((found.matches.len(), found.cut.as_deref()), (1, cut));
    }
    drop(fixture);
}

#[tokio::test]
async fn non_utf8_names_are_distinct_and_reachable() {
    let fixture = Fixture::open(|_| {});
    let names: [&[u8]; 2] = [b"caf\xe9", b"caf\xe8"];
    for name in names {
        let path = fixture.root().join(OsStr::from_bytes(name));
        fs::write(path, name).expect("a file");
    }
    fs::create_dir(fixture.root().join(OsStr::from_bytes(b"d\xff"))).expect("a directory");
    let inner = fixture.root().join(OsStr::from_bytes(b"d\xff/in"));
    fs::write(inner, "in").expect("a file");

    let mut uris = Vec::new();
    let mut page = ListRequest {
        max_entries: Some(1),
        ..ListRequest::default()
    };
    loop {
        let listing = fixture.ask(page.clone()).await.expect("it is listed");
        let uri = listing.entries[0].uri.clone().expect("it is no text");
        page.after = Some(uri.clone());
        uris.push(uri);
        if !listing.more {
            break;
        }
    }
    let root = fixture.root().canonicalize().expect("it is there");
    let uri = |name: &str| format!("file://{}/{name}", root.display());
    assert_eq!(uris, [uri("caf%E8"), uri("caf%E9"), uri("d%FF")]);

    assert_eq!(fixture.read(&uris[1]).await.expect("it is there"), names[0]);
    let stat = StatRequest {
        path: uris[0].clone(),
    };
    let stat = fixture.ask(stat).await.expect("it is there");
    assert_eq!(
        (stat.name.as_str(), stat.uri),
        ("caf\u{fffd}", Some(uris[0].clone()))
    );
    let found = fixture.ask(search("in")).await.expect("it is found");
    assert_eq!(found.matches[0].uri, Some(uri("d%FF/in")));
    let tree = fixture
        .ask(TreeRequest::default())
        .await
        .expect("it is listed");
    assert_eq!(tree.entries[2].uri, Some(uri("d%FF")));
    assert_eq!(tree.entries[2].entries[0].name, "in");
    let rename = RenameRequest {
        from: uris[0].clone(),
        to: "cafe".into(),
        replace: false,
    };
    fixture.ask(rename).await.expect("it is there");
    assert!(root.join("cafe").exists());
    // A URI reaches nothing that a path does not reach.
    let outside = uri("../secret");
    assert_eq!(rule(fixture.read(&outside).await), FileRule::Outside);
    assert_eq!(
        rule(fixture.read("file:///etc/passwd").await),
        FileRule::Absolute
    );
    assert_eq!(rule(fixture.read(&uri("a%00b")).await), FileRule::Name);
}

#[tokio::test]
async fn list_by_size_starts_with_the_largest() {
    let fixture = Fixture::open(|_| {});
    for (name, size) in [("a", 1), ("b", 3), ("c", 2), ("d", 3)] {
        fixture
            .write(name, &"x".repeat(size))
            .await
            .expect("there is room");
    }
    let mut list = ListRequest {
        order: ListOrder::Size,
        max_entries: Some(3),
        ..ListRequest::default()
    };
    let listing = fixture.ask(list.clone()).await.expect("it is listed");
    let names: Vec<_> = listing.entries.iter().map(|entry| &*entry.name).collect();
    assert_eq!((names.concat(), listing.more), ("bdc".to_owned(), true));
    list.after = Some("c".into());
    let wrong = fixture.ask(list).await.expect_err("there is one page");
    assert_eq!(wrong.name(), "arguments");
}

#[tokio::test]
async fn tree_applies_excludes() {
    let fixture = Fixture::open(|_| {});
    for name in ["src/a", "target/b", "src/target/c"] {
        let path = fixture.root().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, "").expect("a file");
    }
    let mut tree = TreeRequest::default();
    for (exclude, left) in [("target", 2), ("src/target", 4), ("nothing", 6)] {
        tree.exclude = vec![exclude.into()];
        let shown = fixture.ask(tree.clone()).await.expect("it is listed");
        let text = serde_json::to_string(&shown).expect("it is JSON");
        assert_eq!(text.matches("\"name\"").count() - 1, left, "{text}");
    }
}
