//! Names that look like globs, directories and links found by name, and searches of one file.

use std::fs;
use std::os::unix::fs::symlink;

use strowger_tools::files::{EntryKind, SearchRequest};

use super::Fixture;

fn fixture() -> Fixture {
    let fixture = Fixture::open(|_| {});
    for dir in ["app/[id]", "app/{b}", "app/plain"] {
        fs::create_dir_all(fixture.root().join(dir)).expect("a directory");
        fs::write(fixture.root().join(dir).join("page.tsx"), "needle\n").expect("a file");
    }
    fs::write(fixture.root().join("i"), "needle\n").expect("a file");
    symlink("app/plain", fixture.root().join("plain-link")).expect("a link");
    fixture
}

async fn found(fixture: &Fixture, search: SearchRequest) -> Vec<String> {
    let found = fixture.ask(search).await.expect("it is found");
    found.matches.into_iter().map(|hit| hit.path).collect()
}

fn named(names: &str) -> SearchRequest {
    SearchRequest {
        names: Some(names.into()),
        ..SearchRequest::default()
    }
}

#[tokio::test]
async fn a_literal_name_is_found_before_it_is_a_glob() {
    let fixture = fixture();
    assert_eq!(found(&fixture, named("**/[id]")).await, ["app/[id]"]);
    assert_eq!(
        found(&fixture, named("app/[id]/*.tsx")).await,
        ["app/[id]/page.tsx"]
    );
    assert_eq!(found(&fixture, named("**/{b}")).await, ["app/{b}"]);
    // Where no such name exists, it is a glob.
    assert_eq!(found(&fixture, named("[ij]")).await, ["i"]);
    assert_eq!(
        found(&fixture, named("app/{plain,none}/*")).await,
        ["app/plain/page.tsx"]
    );
    let text = |names: &str, text: &str| SearchRequest {
        text: Some(text.into()),
        ..named(names)
    };
    let hits = found(&fixture, text("app/[id]/*", "needle")).await;
    assert_eq!(hits, ["app/[id]/page.tsx"]);
    // The name exists, though no line matches: it is no glob.
    let hits = found(&fixture, text("**/[id]/*", "nothing")).await;
    assert_eq!(hits, [""; 0]);
    let leave = SearchRequest {
        exclude: vec!["[id]".into()],
        ..named("**/*.tsx")
    };
    let left = found(&fixture, leave).await;
    assert_eq!(left, ["app/plain/page.tsx", "app/{b}/page.tsx"]);
    let wrong = fixture
        .ask(named("[x"))
        .await
        .expect_err("it is no pattern");
    assert!(
        wrong.to_string().contains(r"a literal `[` or `{` is `\[`"),
        "{wrong}"
    );
}

#[tokio::test]
async fn directories_and_links_are_found_by_name_with_their_kind() {
    let fixture = fixture();
    let found = fixture.ask(named("**/*plain*")).await.expect("it is found");
    let hits: Vec<_> = found
        .matches
        .iter()
        .map(|hit| (&*hit.path, hit.kind))
        .collect();
    assert_eq!(
        hits,
        [
            ("app/plain", Some(EntryKind::Directory)),
            ("plain-link", Some(EntryKind::Link)),
        ]
    );
    assert_eq!((found.files, found.skipped.links), (0, 0));
}

#[tokio::test]
async fn one_file_is_searched() {
    let fixture = fixture();
    let one = |path: &str| SearchRequest {
        path: path.into(),
        text: Some("needle".into()),
        ..SearchRequest::default()
    };
    for path in ["app/plain/page.tsx", "plain-link/page.tsx"] {
        assert_eq!(
            found(&fixture, one(path)).await,
            ["app/plain/page.tsx"],
            "{path}"
        );
    }
    assert_eq!(found(&fixture, one("i")).await, ["i"]);
    let by_name = SearchRequest {
        path: "i".into(),
        ..named("**/*i*")
    };
    assert_eq!(found(&fixture, by_name).await, ["i"]);
    let other = SearchRequest {
        path: "i".into(),
        ..named("**/*x*")
    };
    assert_eq!(found(&fixture, other).await, [""; 0]);
}
