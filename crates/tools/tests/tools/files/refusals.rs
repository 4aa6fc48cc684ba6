//! Refusals that name the true reason: the link that a path passes, the size of the file.

use std::fs;
use std::os::unix::fs::symlink;

use strowger_tools::files::{FileRule, ReadLinesRequest};

use super::{Fixture, rule};

#[tokio::test]
async fn an_absolute_link_into_the_root_is_named_with_the_path_to_use() {
    let fixture = Fixture::open(|_| {});
    fs::create_dir_all(fixture.root().join("app/plain")).expect("a directory");
    fs::write(fixture.root().join("app/plain/page.tsx"), "text").expect("a file");
    let root = fixture.root().canonicalize().expect("it is there");
    symlink(root.join("app"), root.join("abs")).expect("a link");
    symlink("abs", root.join("rel")).expect("a link");
    symlink("/etc", root.join("etc")).expect("a link");
    for (path, link, instead) in [
        ("abs/plain/page.tsx", "abs", "app/plain/page.tsx"),
        ("rel/plain/page.tsx", "abs", "app/plain/page.tsx"),
        ("app/../abs", "abs", "app"),
    ] {
        let refused = fixture.read(path).await.expect_err("it is refused");
        assert_eq!(
            refused.to_string(),
            format!(
                "`{path}` passes `{link}`, a link to an absolute path (rule: outside): use \
                 `{instead}`, or make the link relative"
            )
        );
        assert_eq!(refused.name(), "outside");
        let write = fixture.write(path, "x").await.expect_err("it is refused");
        assert_eq!(write, refused);
    }
    assert_eq!(rule(fixture.read("etc/passwd").await), FileRule::Outside);
}

#[tokio::test]
async fn lines_that_are_too_long_to_return_are_refused_with_the_size_of_the_file() {
    let fixture = Fixture::limited(|limits| limits.file = 100);
    fs::write(fixture.root().join("big"), "x".repeat(500)).expect("a file");
    for lines in [(None, Some(1)), (Some(1), None)] {
        let lines = ReadLinesRequest {
            path: "big".into(),
            head: lines.0,
            tail: lines.1,
            ..ReadLinesRequest::default()
        };
        let refused = fixture.ask(lines).await.expect_err("it is too long");
        let said = refused.to_string();
        assert!(
            said.contains("is 500 bytes, but one call reads or writes at most 100"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn bytes_of_selected_lines_are_read_in_parts() {
    let fixture = Fixture::limited(|limits| limits.file = 100);
    let text: String = (0..100).map(|line| format!("line {line:3}\n")).collect();
    fs::write(fixture.root().join("lines"), &text).expect("a file");
    let part = async |from, head, tail, offset, length| {
        let lines = ReadLinesRequest {
            path: "lines".into(),
            from,
            head,
            tail,
            offset,
            length: Some(length),
        };
        let bytes = fixture.ask(lines).await.expect("it is a part");
        String::from_utf8(bytes.into()).expect("text")
    };
    assert_eq!(part(None, None, None, 0, 20).await, text[..20]);
    assert_eq!(part(None, None, None, 880, 50).await, text[880..]);
    assert_eq!(part(None, None, None, 5000, 50).await, "");
    // Lines 11 to 20 are the bytes 90 to 180.
    assert_eq!(part(Some(11), Some(10), None, 5, 20).await, text[95..115]);
    assert_eq!(part(Some(11), Some(10), None, 80, 50).await, text[170..180]);
    assert_eq!(part(None, None, Some(10), 5, 20).await, text[815..835]);
    assert_eq!(part(None, None, Some(10), 500, 20).await, "");
}
