//! Limits on the amount of data read and written. Each test has a twin with the limit raised.

use std::fs::{self, File};

use strowger_tools::files::{
    AppendRequest, CreateDirectoryRequest, EditRequest, FileLimits, FileRule, FilesUsageRequest,
    ListRequest, ReadRequest, RenameRequest, SearchRequest, TextChange, TreeRequest, WriteRequest,
};

use super::{Fixture, rule};

#[tokio::test]
async fn file_limit_applies_to_reads_and_writes() {
    for (limit, refused) in [(10, true), (11, false)] {
        let fixture = Fixture::limited(|limits| limits.file = limit);
        fs::write(fixture.root().join("large"), "12345678901").expect("a file");
        let outcomes = [
            fixture.read("large").await.map(|_| ()),
            fixture.write("new", "12345678901").await,
            fixture
                .ask(AppendRequest {
                    path: "fresh".into(),
                    bytes: "12345678901".into(),
                })
                .await,
        ];
        for outcome in outcomes {
            match refused {
                true => assert_eq!(rule(outcome), FileRule::Size),
                false => outcome.expect("it is not too large"),
            }
        }
        assert_eq!(fixture.root().join("new").exists(), !refused);
    }
}

#[tokio::test]
async fn part_of_a_large_file_can_be_read() {
    let fixture = Fixture::limited(|limits| limits.file = 4);
    fs::write(fixture.root().join("large"), "12345678901").expect("a file");
    let part = ReadRequest {
        path: "large".into(),
        offset: 2,
        length: Some(4),
    };
    assert_eq!(
        fixture.ask(part).await.expect("the part is small"),
        b"3456"[..]
    );
}

#[tokio::test]
async fn sparse_file_counts_with_its_length() {
    let fixture = Fixture::open(|_| {});
    let file = File::create(fixture.root().join("sparse")).expect("a file");
    file.set_len(1 << 40).expect("it takes no room");
    assert_eq!(rule(fixture.read("sparse").await), FileRule::Size);
}

#[tokio::test]
async fn byte_quota_covers_all_files() {
    for (limit, refused) in [(10, true), (11, false)] {
        let fixture = Fixture::limited(|limits| limits.bytes = limit);
        fixture.write("a", "123456").await.expect("there is room");
        let more = fixture.write("b", "12345").await;
        match refused {
            true => assert_eq!(rule(more), FileRule::Bytes),
            false => more.expect("there is room"),
        }
        fixture
            .write("a", "1")
            .await
            .expect("less is always possible");
        fixture
            .write("b", "12345")
            .await
            .expect("there is room now");
        let usage = fixture.ask(FilesUsageRequest).await;
        assert_eq!((usage.bytes, usage.entries), (6, 2));
    }
}

#[tokio::test]
async fn concurrent_writers_stay_within_the_quota() {
    let fixture = Fixture::limited(|limits| limits.bytes = 1000);
    let writes = (0..100).map(|number| {
        let files = fixture.files.clone();
        let write = WriteRequest::new(format!("file-{number}"), vec![b'x'; 30]);
        tokio::spawn(async move { files.ask(write).await.expect("it answers") })
    });
    let mut done = 0;
    for write in writes.collect::<Vec<_>>() {
        match write.await.expect("it ends") {
            Ok(()) => done += 1,
            outcome => assert_eq!(rule(outcome), FileRule::Bytes),
        }
    }
    assert_eq!(done, 33);
    let sizes = fs::read_dir(fixture.root())
        .expect("a folder")
        .map(|entry| {
            entry
                .and_then(|entry| entry.metadata())
                .expect("it is there")
                .len()
        });
    assert_eq!(sizes.sum::<u64>(), 990);
}

#[tokio::test]
async fn entry_quota_is_enforced() {
    for (limit, refused) in [(3, true), (4, false)] {
        let fixture = Fixture::limited(|limits| limits.entries = limit);
        fixture
            .ask(CreateDirectoryRequest { path: "a/b".into() })
            .await
            .expect("there is room");
        fixture.write("a/c", "").await.expect("there is room");
        let more = fixture.write("a/d", "").await;
        match refused {
            true => assert_eq!(rule(more), FileRule::Entries),
            false => more.expect("there is room"),
        }
    }
}

#[tokio::test]
async fn scan_limit_refuses_large_directories() {
    for (limit, refused) in [(2999, true), (3000, false)] {
        let fixture = Fixture::limited(|limits| limits.scan = limit);
        for number in 0..3000 {
            File::create(fixture.root().join(number.to_string())).expect("a file");
        }
        let list = fixture.ask(ListRequest::default()).await;
        match refused {
            true => assert_eq!(rule(list), FileRule::Scan),
            false => assert_eq!(list.expect("it is listed").entries.len(), 1000),
        }
        let tree = fixture
            .ask(TreeRequest::default())
            .await
            .expect("as far as it goes");
        assert!(tree.cut && tree.entries.len() == 1000);
        let found = fixture
            .ask(SearchRequest::default())
            .await
            .expect("as far as it goes");
        assert_eq!(
            found.cut.as_deref(),
            Some(if refused { "scan" } else { "matches" })
        );
    }
}

#[tokio::test]
async fn cut_tree_names_limits_and_remedies() {
    let deep = TreeRequest {
        depth: Some(1),
        ..TreeRequest::default()
    };
    type Limit = fn(&mut FileLimits);
    let cases: [(Limit, TreeRequest, &str, u64, &str); 4] = [
        (
            |limits| limits.page = 3,
            TreeRequest::default(),
            "page",
            3,
            "--limit page=N",
        ),
        (
            |limits| limits.scan = 4,
            TreeRequest::default(),
            "scan",
            4,
            "--limit scan=N",
        ),
        (
            |limits| limits.depth = 2,
            TreeRequest::default(),
            "depth",
            2,
            "--limit depth=N",
        ),
        (|_| {}, deep, "depth", 1, "raise `depth`"),
    ];
    for (change, ask, by, limit, helps) in cases {
        let fixture = Fixture::limited(change);
        fs::create_dir_all(fixture.root().join("a/b/c")).expect("directories");
        for number in 0..3 {
            File::create(fixture.root().join(format!("a/{number}"))).expect("a file");
        }
        let tree = fixture.ask(ask).await.expect("as far as it goes");
        let [cut] = &tree.cuts[..] else {
            panic!("one limit cut it: {:?}", tree.cuts);
        };
        assert_eq!((cut.by, cut.limit), (by, limit));
        assert!(cut.remedy.contains(helps), "{}", cut.remedy);
        assert!(tree.entries.iter().all(|entry| entry.cuts.is_empty()));
    }
    let fixture = Fixture::limited(|_| {});
    let tree = fixture
        .ask(TreeRequest::default())
        .await
        .expect("it is whole");
    assert!(tree.cuts.is_empty());
}

#[tokio::test]
async fn search_stops_at_its_limits() {
    let fixture = Fixture::limited(|limits| {
        limits.searched = 10;
        limits.matches = 2;
    });
    for name in ["a", "b", "c"] {
        fixture.write(name, "xxxx\n").await.expect("there is room");
    }
    let mut search = SearchRequest {
        text: Some("x".into()),
        ..SearchRequest::default()
    };
    let found = fixture
        .ask(search.clone())
        .await
        .expect("it is a directory");
    assert_eq!(
        (found.matches.len(), found.cut.as_deref()),
        (2, Some("searched"))
    );
    search.max_matches = Some(1);
    let found = fixture.ask(search).await.expect("it is a directory");
    assert_eq!(
        (found.matches.len(), found.cut.as_deref()),
        (1, Some("matches"))
    );
}

#[tokio::test]
async fn hostile_patterns_are_searched_in_linear_time() {
    let fixture = Fixture::open(|_| {});
    fixture
        .write("text", &"a".repeat(100_000))
        .await
        .expect("there is room");
    let search = |text: &str| SearchRequest {
        text: Some(text.into()),
        ..SearchRequest::default()
    };
    let found = fixture.ask(search("(a+)+$")).await.expect("it is linear");
    assert_eq!(found.matches.len(), 1);
    let large = fixture
        .ask(search("(a{1000}){1000}"))
        .await
        .expect_err("too large");
    assert!(large.to_string().ends_with("too large"), "{large}");
}

#[tokio::test]
async fn depth_limit_applies_to_new_and_moved_directories() {
    let fixture = Fixture::limited(|limits| limits.depth = 4);
    fixture
        .ask(CreateDirectoryRequest {
            path: "a/b/c/d".into(),
        })
        .await
        .expect("it is deep enough");
    assert_eq!(
        rule(
            fixture
                .ask(CreateDirectoryRequest {
                    path: "a/b/c/d/e".into()
                })
                .await
        ),
        FileRule::Depth
    );
    fixture
        .ask(CreateDirectoryRequest { path: "x/y".into() })
        .await
        .expect("there is room");
    let rename = RenameRequest {
        from: "a".into(),
        to: "x/y/a".into(),
        replace: false,
    };
    assert_eq!(
        rule(fixture.ask(rename).await),
        FileRule::Depth,
        "by parts neither"
    );
}

#[tokio::test]
async fn edit_result_stays_within_the_file_limit() {
    let fixture = Fixture::limited(|limits| limits.file = 1000);
    fixture
        .write("a", &"x".repeat(100))
        .await
        .expect("there is room");
    let change = TextChange {
        old: "x".into(),
        new: "x".repeat(100),
        all: true,
    };
    let edit = EditRequest {
        path: "a".into(),
        changes: vec![change],
        dry_run: false,
    };
    assert_eq!(rule(fixture.ask(edit).await), FileRule::Size);
}

#[tokio::test]
async fn edit_limit_applies_to_the_result_alone() {
    let fixture = Fixture::limited(|limits| limits.file = 1000);
    let full = "x".repeat(1000);
    fixture.write("a", &full).await.expect("there is room");
    let change = TextChange {
        old: "x".into(),
        new: "y".into(),
        all: true,
    };
    let edit = EditRequest {
        path: "a".into(),
        changes: vec![change],
        dry_run: false,
    };
    fixture
        .ask(edit)
        .await
        .expect("it is no longer than before");
}
