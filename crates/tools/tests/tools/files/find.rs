//! Names that look like globs, directories and links found by name, and searches of one file.

use std::fs;
use std::os::unix::fs::symlink;

use strowger_tools::{EntryKind, Search};

use super::Office;

fn office() -> Office {
    let office = Office::open(|_| {});
    for dir in ["app/[id]", "app/{b}", "app/plain"] {
        fs::create_dir_all(office.root().join(dir)).expect("a directory");
        fs::write(office.root().join(dir).join("page.tsx"), "needle\n").expect("a file");
    }
    fs::write(office.root().join("i"), "needle\n").expect("a file");
    symlink("app/plain", office.root().join("plain-link")).expect("a link");
    office
}

async fn found(office: &Office, search: Search) -> Vec<String> {
    let found = office.ask(search).await.expect("it is found");
    found.matches.into_iter().map(|hit| hit.path).collect()
}

fn named(names: &str) -> Search {
    Search {
        names: Some(names.into()),
        ..Search::default()
    }
}

#[tokio::test]
async fn a_literal_name_is_found_before_it_is_a_glob() {
    let office = office();
    assert_eq!(found(&office, named("**/[id]")).await, ["app/[id]"]);
    assert_eq!(
        found(&office, named("app/[id]/*.tsx")).await,
        ["app/[id]/page.tsx"]
    );
    assert_eq!(found(&office, named("**/{b}")).await, ["app/{b}"]);
    // Where no such name exists, it is a glob.
    assert_eq!(found(&office, named("[ij]")).await, ["i"]);
    assert_eq!(
        found(&office, named("app/{plain,none}/*")).await,
        ["app/plain/page.tsx"]
    );
    let text = |names: &str, text: &str| Search {
        text: Some(text.into()),
        ..named(names)
    };
    let hits = found(&office, text("app/[id]/*", "needle")).await;
    assert_eq!(hits, ["app/[id]/page.tsx"]);
    // The name exists, though no line matches: it is no glob.
    let hits = found(&office, text("**/[id]/*", "nothing")).await;
    assert_eq!(hits, [""; 0]);
    let leave = Search {
        exclude: vec!["[id]".into()],
        ..named("**/*.tsx")
    };
    let left = found(&office, leave).await;
    assert_eq!(left, ["app/plain/page.tsx", "app/{b}/page.tsx"]);
    let wrong = office.ask(named("[x")).await.expect_err("it is no pattern");
    assert!(
        wrong.to_string().contains(r"a literal `[` or `{` is `\[`"),
        "{wrong}"
    );
}

#[tokio::test]
async fn directories_and_links_are_found_by_name_with_their_kind() {
    let office = office();
    let found = office.ask(named("**/*plain*")).await.expect("it is found");
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
    let office = office();
    let one = |path: &str| Search {
        path: path.into(),
        text: Some("needle".into()),
        ..Search::default()
    };
    for path in ["app/plain/page.tsx", "plain-link/page.tsx"] {
        assert_eq!(
            found(&office, one(path)).await,
            ["app/plain/page.tsx"],
            "{path}"
        );
    }
    assert_eq!(found(&office, one("i")).await, ["i"]);
    let by_name = Search {
        path: "i".into(),
        ..named("**/*i*")
    };
    assert_eq!(found(&office, by_name).await, ["i"]);
    let other = Search {
        path: "i".into(),
        ..named("**/*x*")
    };
    assert_eq!(found(&office, other).await, [""; 0]);
}
