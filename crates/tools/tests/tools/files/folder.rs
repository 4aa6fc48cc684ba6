//! Directories as users have them: already full, with large files, and with names of any kind.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;

use strowger::{ActorSystem, ChildSpec, Strategy, Supervisor};
use strowger_tools::{
    Append, Delete, Files, FilesMessage, FilesSpec, GetUsage, List, ListOrder, Read, ReadLines,
    Rename, Rule, Search, Stat, Tree, Write,
};

use super::{Office, rule};

#[tokio::test]
async fn what_the_user_has_does_not_count() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..20 {
        fs::write(folder.path().join(number.to_string()), "1234567890").expect("a file");
    }
    let sparse = File::create(folder.path().join("sparse")).expect("a file");
    sparse.set_len(1 << 40).expect("it takes no room");
    let mut spec = FilesSpec::new(folder.path());
    spec.limits.octets = 10;
    spec.limits.entries = 3;
    let system = ActorSystem::new("office").expect("it starts");
    let files = system.spawn::<Files>("files", spec).expect("it starts");
    let ask = async |path: &str, text: &str| {
        let write = Write::new(path, text.to_owned());
        files.ask(write).await.expect("it answers")
    };
    ask("new", "12345").await.expect("it is the first");
    let longer = Append {
        path: "sparse".into(),
        octets: "12345".into(),
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
    assert_eq!(rule(ask("one more", "").await), Rule::Entries);
    let usage = files.ask(GetUsage).await.expect("it answers");
    assert_eq!((usage.octets, usage.entries), (4, 3));
}

#[tokio::test]
async fn what_has_other_names_makes_no_room() {
    let office = Office::limited(|limits| limits.octets = 5);
    fs::write(office.root().join("a"), "12345").expect("a file");
    fs::hard_link(office.root().join("a"), office.root().join("b")).expect("another name");
    office.write("new", "12345").await.expect("there is room");
    let delete = |path: &str| Delete {
        path: path.into(),
        recursive: false,
    };
    office.ask(delete("a")).await.expect("it is there");
    assert_eq!(rule(office.write("newer", "12345").await), Rule::Octets);
    // Now there is room.
    office.ask(delete("b")).await.expect("it is there");
    office.write("newer", "12345").await.expect("there is room");
}

#[tokio::test]
async fn the_next_incarnation_does_not_begin_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut spec = FilesSpec::new(folder.path());
    spec.limits.octets = 10;
    let system = ActorSystem::new("office").expect("it starts");
    let tools = Supervisor::new(Strategy::OneForOne).child(ChildSpec::new::<Files>("files", spec));
    let tools = system.supervise("tools", tools).await.expect("it starts");
    let files = tools.child::<FilesMessage>("files").expect("it is there");
    let write = async |name: &str| files.ask(Write::new(name, "12345")).await;
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
    assert_eq!(rule(outcome), Rule::Octets);
}

/// A text of ten thousand lines, with a much smaller limit.
fn long() -> (Office, String) {
    let office = Office::limited(|limits| limits.file = 1000);
    let lines = (1..=10_000).map(|number| format!("line {number}\n"));
    let text: String = lines.collect();
    fs::write(office.root().join("long"), &text).expect("a file");
    (office, text)
}

#[tokio::test]
async fn lines_of_a_file_of_any_size_are_read() {
    let (office, text) = long();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ask = async |from: Option<u64>, head: Option<u64>, tail: Option<u64>| {
        let path = "long".into();
        let ask = ReadLines {
            path,
            from,
            head,
            tail,
            ..ReadLines::default()
        };
        let octets = office.ask(ask).await?;
        Ok(String::from_utf8(octets.into()).expect("it is text"))
    };
    let is = |outcome: Result<String, _>, lines: &[&str]| {
        let outcome: Result<String, strowger_tools::FileError> = outcome;
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
        assert_eq!(rule(ask(from, head, tail).await), Rule::Size);
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
    fs::write(office.root().join("long"), "a\nb").expect("a file");
    is(ask(None, None, Some(1)).await, &["b"]);
    is(ask(None, None, Some(9)).await, &["a\n", "b"]);
    is(ask(Some(2), None, None).await, &["b"]);
}

#[tokio::test]
async fn a_large_file_is_appended_to_and_read_in_parts() {
    let (office, text) = long();
    let append = Append {
        path: "long".into(),
        octets: "the end".into(),
    };
    office.ask(append).await.expect("little is added");
    let part = Read {
        path: "long".into(),
        offset: text.len() as u64,
        length: None,
    };
    assert_eq!(office.ask(part).await.expect("it is short"), b"the end"[..]);
}

fn search(text: &str) -> Search {
    Search {
        text: Some(text.into()),
        ..Search::default()
    }
}

#[tokio::test]
async fn a_search_finds_what_is_in_large_files() {
    let (office, _) = long();
    let found = office.ask(search("line 9999$")).await.expect("it is found");
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
async fn a_search_says_what_it_did_not_search() {
    let office = Office::limited(|limits| limits.file = 1000);
    let root = office.root();
    let sparse = File::create(root.join("sparse")).expect("a file");
    sparse.write_all_at(b"needle\n", 0).expect("it is ours");
    sparse.set_len(1 << 40).expect("it takes no room");
    fs::write(root.join("latin"), b"caf\xe9\nneedle\n").expect("a file");
    let wide = "x".repeat(2 << 20) + "needle\nneedle\n";
    fs::write(root.join("wide"), wide).expect("a file");
    std::os::unix::fs::symlink("latin", root.join("link")).expect("a link");
    let found = office.ask(search("needle")).await.expect("it is found");
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
async fn a_search_that_has_read_enough_says_so() {
    let (office, text) = long();
    for (limit, cut) in [
        (text.len() as u64, None),
        (text.len() as u64 - 1, Some("searched")),
    ] {
        let office = Office::limited(|limits| limits.searched = limit);
        fs::write(office.root().join("long"), &text).expect("a file");
        let found = office.ask(search("line 1$")).await.expect("it is found");
        assert_eq!((found.matches.len(), found.cut.as_deref()), (1, cut));
    }
    drop(office);
}

#[tokio::test]
async fn names_that_are_no_text_are_told_apart_and_reached() {
    let office = Office::open(|_| {});
    let names: [&[u8]; 2] = [b"caf\xe9", b"caf\xe8"];
    for name in names {
        let path = office.root().join(OsStr::from_bytes(name));
        fs::write(path, name).expect("a file");
    }
    fs::create_dir(office.root().join(OsStr::from_bytes(b"d\xff"))).expect("a directory");
    let inner = office.root().join(OsStr::from_bytes(b"d\xff/in"));
    fs::write(inner, "in").expect("a file");

    let mut uris = Vec::new();
    let mut page = List {
        most: Some(1),
        ..List::default()
    };
    loop {
        let listing = office.ask(page.clone()).await.expect("it is listed");
        let uri = listing.entries[0].uri.clone().expect("it is no text");
        page.after = Some(uri.clone());
        uris.push(uri);
        if !listing.more {
            break;
        }
    }
    let root = office.root().canonicalize().expect("it is there");
    let uri = |name: &str| format!("file://{}/{name}", root.display());
    assert_eq!(uris, [uri("caf%E8"), uri("caf%E9"), uri("d%FF")]);

    assert_eq!(office.read(&uris[1]).await.expect("it is there"), names[0]);
    let stat = Stat {
        path: uris[0].clone(),
    };
    let stat = office.ask(stat).await.expect("it is there");
    assert_eq!(
        (stat.name.as_str(), stat.uri),
        ("caf\u{fffd}", Some(uris[0].clone()))
    );
    let found = office.ask(search("in")).await.expect("it is found");
    assert_eq!(found.matches[0].uri, Some(uri("d%FF/in")));
    let tree = office.ask(Tree::default()).await.expect("it is listed");
    assert_eq!(tree.entries[2].uri, Some(uri("d%FF")));
    assert_eq!(tree.entries[2].entries[0].name, "in");
    let rename = Rename {
        from: uris[0].clone(),
        to: "cafe".into(),
        replace: false,
    };
    office.ask(rename).await.expect("it is there");
    assert!(root.join("cafe").exists());
    // A URI reaches nothing that a path does not reach.
    let outside = uri("../secret");
    assert_eq!(rule(office.read(&outside).await), Rule::Outside);
    assert_eq!(
        rule(office.read("file:///etc/passwd").await),
        Rule::Absolute
    );
    assert_eq!(rule(office.read(&uri("a%00b")).await), Rule::Name);
}

#[tokio::test]
async fn the_largest_come_first_if_that_is_asked_for() {
    let office = Office::open(|_| {});
    for (name, size) in [("a", 1), ("b", 3), ("c", 2), ("d", 3)] {
        office
            .write(name, &"x".repeat(size))
            .await
            .expect("there is room");
    }
    let mut list = List {
        order: ListOrder::Size,
        most: Some(3),
        ..List::default()
    };
    let listing = office.ask(list.clone()).await.expect("it is listed");
    let names: Vec<_> = listing.entries.iter().map(|entry| &*entry.name).collect();
    assert_eq!((names.concat(), listing.more), ("bdc".to_owned(), true));
    list.after = Some("c".into());
    let wrong = office.ask(list).await.expect_err("there is one page");
    assert_eq!(wrong.name(), "arguments");
}

#[tokio::test]
async fn a_tree_leaves_out_what_it_is_told() {
    let office = Office::open(|_| {});
    for name in ["src/a", "target/b", "src/target/c"] {
        let path = office.root().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, "").expect("a file");
    }
    let mut tree = Tree::default();
    for (exclude, left) in [("target", 2), ("src/target", 4), ("nothing", 6)] {
        tree.exclude = vec![exclude.into()];
        let shown = office.ask(tree.clone()).await.expect("it is listed");
        let text = serde_json::to_string(&shown).expect("it is JSON");
        assert_eq!(text.matches("\"name\"").count() - 1, left, "{text}");
    }
}
