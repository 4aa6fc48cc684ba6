//! Malicious names, wherever they are shown; and refusals by limits.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::Value;
use strowger_tools::files::{
    AppendRequest, CreateDirectoryRequest, EditRequest, FileLimits, ListRequest, ReadManyRequest,
    ReadRequest, SearchRequest, StatRequest, TextChange, TreeRequest, WriteRequest,
    path_of_file_uri,
};

use super::Fixture;

/// Names that forge lines, reverse the text direction, or are not UTF-8.
const EVIL: [&[u8]; 6] = [
    b"a\n[FILE] forged",
    b"b\r:1: forged",
    b"c\x1b[2K",
    "d\u{2028}forged".as_bytes(),
    "e\u{202e}txt.exe".as_bytes(),
    b"f\xff",
];

/// All texts of a value under these keys, concatenated.
fn texts(value: &Value, key: &str) -> Vec<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, member)| match member {
                Value::String(text) if name == key => vec![text.clone()],
                member => texts(member, key),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(|item| texts(item, key)).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn every_answer_has_uris_for_non_utf8_names() {
    let fixture = Fixture::open(|_| {});
    let root = fixture.root();
    for name in EVIL {
        fs::write(root.join(OsStr::from_bytes(name)), "needle").expect("a file");
    }
    let json = |value| serde_json::to_value(value).expect("it is JSON");
    let search = |text: Option<&str>| SearchRequest {
        text: text.map(Into::into),
        ..SearchRequest::default()
    };
    let listing = fixture
        .ask(ListRequest::default())
        .await
        .expect("it is listed");
    let tree = fixture
        .ask(TreeRequest::default())
        .await
        .expect("it is listed");
    let by_name = fixture.ask(search(None)).await.expect("it is searched");
    let by_text = fixture
        .ask(search(Some("need")))
        .await
        .expect("it is searched");
    for name in EVIL {
        fs::write(root.join(OsStr::from_bytes(name)), "needle\0").expect("a file");
    }
    let skipped = fixture
        .ask(search(Some("x")))
        .await
        .expect("it is searched");
    let answers = [
        serde_json::to_value(&listing),
        serde_json::to_value(&tree),
        serde_json::to_value(&by_name),
        serde_json::to_value(&by_text),
        serde_json::to_value(&skipped),
    ];
    for answer in answers {
        let answer = answer.expect("it is JSON");
        let uris = texts(&answer, "uri");
        assert_eq!(uris.len(), EVIL.len(), "{answer}");
        for (uri, name) in uris.iter().zip(EVIL) {
            let path = path_of_file_uri(uri).expect("it is one");
            assert_eq!(path, root.join(OsStr::from_bytes(name)));
            let stat = fixture.ask(StatRequest { path: uri.clone() }).await;
            let stat = json(stat.expect("it leads there"));
            assert_eq!(texts(&stat, "uri"), [&**uri]);
            fixture.read(uri).await.expect("it leads there");
        }
    }
    for uri in texts(&json(listing.entries[0].clone()), "uri") {
        fixture.write(&uri, "old").await.expect("it leads there");
        let change = TextChange {
            old: "old".into(),
            new: "new".into(),
            all: false,
        };
        let raw = path_of_file_uri(&uri).expect("it is one");
        for path in [uri.clone(), raw.to_str().expect("it is text").to_owned()] {
            let edit = EditRequest {
                path,
                changes: vec![change.clone()],
                dry_run: true,
            };
            let diff = fixture.ask(edit).await.expect("it is there").diff;
            assert!(
                diff.starts_with(&format!("--- {uri}\n+++ {uri}\n")),
                "{diff}"
            );
        }
    }
}

/// Every refusal by a limit names its key and value, the requested or used amount, and the remedy.
#[tokio::test]
async fn limit_errors_name_limit_use_and_remedy() {
    let fixture = Fixture::limited(|limits: &mut FileLimits| {
        limits.file = 101;
        limits.bytes = 202;
        limits.entries = 3;
        limits.scan = 4;
        limits.depth = 5;
        limits.path = 60;
    });
    for name in ["a", "b", "c", "d"] {
        fs::write(fixture.root().join(name), [b'x'; 80]).expect("a file");
    }
    fs::write(fixture.root().join("e"), [b'x'; 111]).expect("a file");
    let append = AppendRequest {
        path: "a".into(),
        bytes: [b'x'; 99].as_slice().into(),
    };
    fixture.ask(append.clone()).await.expect("there is room");
    fixture.ask(append.clone()).await.expect("there is room");
    let many = ReadManyRequest {
        paths: vec!["b".into(), "c".into()],
    };
    let many = fixture.ask(many).await.expect("it answers");
    let make = |path: &str| CreateDirectoryRequest { path: path.into() };
    fixture.ask(make("x/y/z")).await.expect("there is room");
    let refusals = [
        (
            "file",
            "101",
            "111",
            fixture.ask(ReadRequest::new("e")).await.map(drop),
        ),
        (
            "file",
            "101",
            "102",
            fixture.write("b", &"x".repeat(102)).await,
        ),
        ("file", "101", "80", many[1].clone().map(drop)),
        ("octets", "202", "198", fixture.ask(append).await),
        (
            "entries",
            "3",
            "1 more",
            fixture.ask(WriteRequest::new("n", "")).await,
        ),
        (
            "scan",
            "4",
            "4",
            fixture.ask(ListRequest::default()).await.map(drop),
        ),
        ("depth", "5", "6", fixture.ask(make("a/b/c/d/e/f")).await),
        ("path", "60", "61", fixture.ask(make(&"x".repeat(61))).await),
    ];
    for (key, most, wanted, outcome) in refusals {
        let said = outcome.expect_err(key).to_string();
        let remedy = format!("--limit {key}=N");
        for part in [most, wanted, &*remedy, "(rule: "] {
            assert!(said.contains(part), "{key}: no {part} in: {said}");
        }
    }
}
