//! The TypeScript declarations of files actors: every message, and every member of an answer.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::Value;
use strowger_tools::files::{
    Files, FilesUsageRequest, ListRequest, RootRequest, SearchRequest, TreeRequest,
};

use super::Fixture;

fn members(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                into.insert(key.clone());
                // The keys under `verbs` are data.
                if key != "verbs" {
                    members(value, into);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| members(item, into)),
        _ => {}
    }
}

#[tokio::test]
async fn typescript_declares_every_message_and_member() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packages/strowger/src/files/index.ts"
    );
    let protocol = fs::read_to_string(path).expect("the package is beside");
    let fixture = Fixture::limited(|limits| limits.depth = 1);
    let odd = fixture.root().join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::create_dir_all(odd.join("deep")).expect("a directory");
    fs::write(fixture.root().join("binary"), "\0").expect("a file");
    fs::write(fixture.root().join("text"), "needle\nneedle\n").expect("a file");
    let search = SearchRequest {
        text: Some("needle".into()),
        max_matches: Some(1),
        ..SearchRequest::default()
    };
    let list = ListRequest {
        details: true,
        ..ListRequest::default()
    };
    let answers = [
        serde_json::to_value(fixture.ask(list).await.expect("it is listed")),
        serde_json::to_value(
            fixture
                .ask(TreeRequest::default())
                .await
                .expect("it is listed"),
        ),
        serde_json::to_value(fixture.ask(search).await.expect("it is searched")),
        serde_json::to_value(fixture.ask(RootRequest).await.expect("it is there")),
        serde_json::to_value(fixture.ask(FilesUsageRequest).await),
    ];
    let mut wanted = BTreeSet::new();
    for answer in answers {
        members(&answer.expect("it is JSON"), &mut wanted);
    }
    for member in [
        "uri", "cut_by", "cuts", "skipped", "paths", "limit", "remedy", "looked",
    ] {
        assert!(wanted.contains(member), "{member} is not met: {wanted:?}");
    }
    for member in wanted {
        let has = [format!("{member}: "), format!("{member}?: ")];
        assert!(has.iter().any(|has| protocol.contains(has)), "{member}");
    }
    let export = format!("{:?}", Files::export());
    let names = export.split('"').skip(1).step_by(2);
    let names: Vec<&str> = names.collect();
    assert!(names.contains(&"read-lines"), "{export}");
    for name in names {
        let has = [format!("\n  {name}: {{"), format!("\n  \"{name}\": {{")];
        assert!(has.iter().any(|has| protocol.contains(has)), "{name}");
    }
}
