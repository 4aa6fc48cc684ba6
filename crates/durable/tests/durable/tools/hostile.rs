//! Exports that are not as they were written.

use std::io::{BufRead, Cursor, Read};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use strowger_durable::store::tools::{ExistingEntities, ToolError, import};

use super::{export, fill, open};

const FIRST: &str = r#"{"store":{"format":"strowger-durable","version":1}}"#;
const ENTITY: &str = r#"{"entity":{"kind":"k","key":"a","sequence":3,"fence":1}}"#;

/// Imports into a new folder, and checks that a refusal leaves nothing.
fn refusal(input: &mut dyn BufRead) -> Option<(u64, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("store");
    let imported = import(&target, input, ExistingEntities::Refuse, &mut |_| {});
    let refused = match imported {
        Ok(_) => return None,
        Err(ToolError::Line { line, detail }) => (line, detail),
        Err(error) => panic!("{error}"),
    };
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "a refused import leaves nothing");
    Some(refused)
}

#[test]
fn invalid_lines_are_refused_with_their_number_and_a_reason() {
    let row = |key: &str, value: &str, sequence: u64| {
        format!(r#"{{"row":{{"table":1,"key":{key},"sequence":{sequence},"value":{value}}}}}"#)
    };
    let good = row(r#""a""#, r#""b""#, 3);
    let long_key = row(&format!("{:?}", "k".repeat(1025)), r#""b""#, 1);
    let long_name = ENTITY.replace(r#""a""#, &format!("{:?}", "k".repeat(1025)));
    let deep = "[".repeat(100_000);
    let cases: &[(&[&str], u64, &str)] = &[
        (&[], 1, "not an export"),
        (&[r#"{"store":7}"#], 1, "not an export"),
        (
            &["{\"store\":{\"format\":\"other\",\"version\":1}}"],
            1,
            "not an export",
        ),
        (
            &[&FIRST.replace(":1", ":2")],
            1,
            "export has version 2, this program reads 1",
        ),
        (&[FIRST, "no JSON"], 2, "export the store again"),
        (&[FIRST, &deep], 2, "export the store again"),
        (&[FIRST, r#"{"other":{}}"#], 2, "unknown variant `other`"),
        (&[FIRST, FIRST], 2, "a second first line"),
        (&[FIRST, &good], 2, "a row without an entity"),
        (&[FIRST, ENTITY, ENTITY], 3, "k/a: a second time"),
        (&[FIRST, ENTITY, &good, &good], 4, "ascending order"),
        (
            &[FIRST, ENTITY, &long_key],
            3,
            "row key is 1025 bytes, limit is 1024",
        ),
        (&[FIRST, &long_name], 2, "is 1025 bytes, limit is 1024"),
        (
            &[FIRST, ENTITY, &row(r#""a""#, "7", 1)],
            3,
            "bytes are neither text nor",
        ),
        (
            &[FIRST, ENTITY, &row(r#""a""#, r#"{"base64":"?"}"#, 1)],
            3,
            "export the store again",
        ),
        (
            &[FIRST, ENTITY, &row(r#""a""#, r#""b""#, 4)],
            3,
            "row has sequence 4, later than 3",
        ),
        (
            &[FIRST, ENTITY, &good.replace("1,", "0,")],
            3,
            "table 0 is not from 1 to 254",
        ),
        (
            &[FIRST, ENTITY, &good.replace("1,", "255,")],
            3,
            "table 255 is not from 1 to 254",
        ),
        (
            &[FIRST, ENTITY, &good.replace("1,", "256,")],
            3,
            "export the store again",
        ),
        (
            &[FIRST, ENTITY, &good],
            4,
            "the file ends before its last line",
        ),
        (
            &[FIRST, ENTITY, r#"{"end":{"entities":2,"rows":0}}"#],
            3,
            "has 2 entities and 0 rows",
        ),
        (
            &[FIRST, r#"{"end":{"entities":0,"rows":0}}"#, FIRST],
            3,
            "a line behind the last one",
        ),
        (
            &[FIRST, r#"{"index":{"key":"k","value":"v"}}"#],
            2,
            "a row of a list that is damaged",
        ),
    ];
    for (lines, number, expected) in cases {
        let text = lines.join("\n");
        let (line, detail) = refusal(&mut Cursor::new(&text)).expect("it is refused");
        let shown: String = text.chars().take(300).collect();
        assert!(detail.contains(expected), "{detail}\n{shown}");
        assert_eq!(line, *number, "{detail}\n{shown}");
    }
}

#[test]
fn lines_and_values_over_the_limit_are_refused_without_reading_them_whole() {
    let mut endless = Cursor::new(format!("{FIRST}\n")).chain(std::io::repeat(b'x'));
    let mut endless = std::io::BufReader::new(&mut endless);
    let (line, detail) = refusal(&mut endless).expect("it is refused");
    assert_eq!(line, 2);
    assert!(detail.contains("line is longer than"), "{detail}");
    let value = "v".repeat((16 << 20) + 1);
    let row = format!(r#"{{"row":{{"table":1,"key":"","sequence":1,"value":"{value}"}}}}"#);
    let text = [FIRST, ENTITY, &row].join("\n");
    let (line, detail) = refusal(&mut Cursor::new(text)).expect("it is refused");
    assert_eq!(line, 3);
    assert!(
        detail.contains("row value is 16777217 bytes, limit is 16777216"),
        "{detail}"
    );
}

#[tokio::test]
async fn damaged_exports_are_refused_or_are_exports() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(&open(folder.path()), 7).await;
    let text = export(folder.path());
    let mut random = SplitMix64::seed_from_u64(1);
    let mut at = || usize::try_from(random.next_u64() % text.len() as u64).expect("an offset");
    let mut refused = 0;
    for round in 0..40 {
        let mut damaged = text.clone();
        match round % 2 {
            0 => damaged.truncate(at()),
            _ => damaged[at()] ^= 1 << (round % 7),
        }
        refused += usize::from(refusal(&mut Cursor::new(&damaged)).is_some());
    }
    // A flipped bit in a text is another text.
    assert!(refused >= 20, "{refused}");
}
