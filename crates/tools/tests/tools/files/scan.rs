//! Searches that end early or skip files report how far they came.

use std::fs;

use strowger_tools::files::{FilesUsage, SearchRequest};

use super::Fixture;

fn search(text: &str) -> SearchRequest {
    SearchRequest {
        text: Some(text.into()),
        ..SearchRequest::default()
    }
}

#[tokio::test]
async fn search_skips_and_reports_deep_directories() {
    let fixture = Fixture::limited(|limits| limits.depth = 2);
    for dir in ["a/b/c/d", "z"] {
        fs::create_dir_all(fixture.root().join(dir)).expect("a directory");
    }
    for file in ["a/b/c/d/x", "a/b/x", "z/x"] {
        fs::write(fixture.root().join(file), "needle").expect("a file");
    }
    let found = fixture.ask(search("needle")).await.expect("it is found");
    let paths: Vec<_> = found.matches.iter().map(|hit| &*hit.path).collect();
    assert_eq!((paths, found.cut), (vec!["a/b/x", "z/x"], None));
    let skipped = &found.skipped;
    assert_eq!((skipped.deep, skipped.paths.len()), (1, 1));
    let deep = &skipped.paths[0];
    assert_eq!((&*deep.path, deep.why), ("a/b/c", "deep"));
}

#[tokio::test]
async fn cut_search_names_limit_and_remedy() {
    let fixture = Fixture::limited(|limits| {
        limits.scan = 4;
        limits.searched = 30;
        limits.matches = 2;
    });
    for name in ["a", "b", "c"] {
        fs::write(fixture.root().join(name), "a long line\n").expect("a file");
    }
    let cut = async |search: SearchRequest| {
        let found = fixture.ask(search).await.expect("it is a directory");
        let remedy = found.remedy.expect("it is cut");
        (
            found.cut.expect("it is cut"),
            found.limit.expect("it is cut"),
            remedy,
        )
    };
    let (key, limit, remedy) = cut(search("nothing")).await;
    assert_eq!((&*key, limit), ("searched", 30));
    assert!(remedy.contains("--limit searched=N"), "{remedy}");
    let (key, limit, remedy) = cut(search("long")).await;
    assert_eq!((&*key, limit), ("matches", 2));
    assert!(remedy.contains("--limit matches=N"), "{remedy}");
    let most = SearchRequest {
        max_matches: Some(1),
        ..search("long")
    };
    let (key, limit, remedy) = cut(most).await;
    assert_eq!((&*key, limit), ("matches", 1));
    assert!(remedy.contains("`most`"), "{remedy}");
    for name in ["d", "e"] {
        fs::write(fixture.root().join(name), "").expect("a file");
    }
    let names = SearchRequest {
        names: Some("x".into()),
        ..SearchRequest::default()
    };
    let (key, limit, remedy) = cut(names).await;
    assert_eq!((&*key, limit), ("scan", 4));
    assert!(remedy.contains("--limit scan=N"), "{remedy}");
    let usage: FilesUsage = fixture.ask(strowger_tools::files::FilesUsageRequest).await;
    assert_eq!(usage.scanned, 3 * 3 + 4);
}

#[tokio::test]
async fn long_line_is_searched_to_its_end() {
    let fixture = Fixture::open(|_| {});
    let mut line = "x".repeat(5 << 20);
    line.push_str("needle\nneedle\n");
    fs::write(fixture.root().join("wide"), line).expect("a file");
    let found = fixture.ask(search("needle$")).await.expect("it is found");
    let lines: Vec<_> = found.matches.iter().map(|hit| hit.line).collect();
    assert_eq!(lines, [Some(1), Some(2)]);
    let text = found.matches[0].text.as_deref().expect("it has one");
    assert!(text.len() < 400 && text.ends_with("xneedle"), "{text}");
    assert_eq!(found.skipped.long_lines, 1);
}

#[tokio::test]
async fn crlf_ends_lines() {
    let fixture = Fixture::open(|_| {});
    fs::write(fixture.root().join("text"), "one\r\n\r\ntwo one\r\none two").expect("a file");
    for (pattern, expected) in [
        ("one$", [1, 3].as_slice()),
        ("^one", &[1, 4]),
        ("^$", &[2]),
        (r"one\s", &[4]),
    ] {
        let found = fixture.ask(search(pattern)).await.expect("it is found");
        let lines: Vec<_> = found.matches.iter().filter_map(|hit| hit.line).collect();
        assert_eq!(lines, expected, "{pattern}");
    }
}
