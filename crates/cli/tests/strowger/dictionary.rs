//! `strowger pfcp decode --dictionary`, and the commands related to it.

use std::fs;

use crate::binary::{strowger, strowger_with_input};

const ACME: &str = r#"
[[vendor]]
enterprise = 35818
name = "Acme"

[[vendor.element]]
type = 0x8001
name = "Acme Slice"
fields = [
  { name = "slice", kind = "u16", values = { 1 = "gold" } },
  { name = "label", kind = "text" },
]
"#;

/// A heartbeat with an Acme Slice: 1, "video".
const SLICED: &str = "2001001900000100006000040a0b0c0d800100098bea0001766964656f";

fn dictionary(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, text).expect("written");
    file
}

fn path(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().expect("a name that is text")
}

#[test]
fn vendor_element_is_shown_by_name_and_field() {
    let acme = dictionary(ACME);
    let ran = strowger([
        "pfcp",
        "decode",
        "--dictionary",
        path(&acme),
        "--hex",
        SLICED,
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let expected = "  Acme Slice (32769) of Acme (35818): slice gold (1), label video";
    assert_eq!(ran.out.lines().last(), Some(expected));
}

#[test]
fn json_with_vendor_names_encodes_to_the_same_bytes() {
    let acme = dictionary(ACME);
    let option = ["--dictionary", path(&acme)];
    let decode = ["pfcp", "decode", "--json", "--hex", SLICED]
        .into_iter()
        .chain(option);
    let mut object = strowger(decode).last_object();
    assert_eq!(object["ies"][1]["name"], "Acme Slice");
    assert_eq!(object["ies"][1]["value"]["slice_name"], "gold");
    let encode = || ["pfcp", "encode"].into_iter().chain(option);
    let ran = strowger_with_input(encode(), object.to_string().as_bytes());
    assert_eq!((ran.code, ran.out.trim()), (0, SLICED), "{}", ran.err);

    object["ies"][1]["value"]["slice"] = 70_000.into();
    let ran = strowger_with_input(encode(), object.to_string().as_bytes());
    let expected = "slice: expected a number up to 65535, found 70000";
    assert!(ran.code == 2 && ran.err.contains(expected), "{}", ran.err);
}

#[test]
fn difference_names_the_vendor_field() {
    let acme = dictionary(ACME);
    let other = SLICED.replace("8bea0001", "8bea0002");
    let ran = strowger(["pfcp", "diff", SLICED, &other, "--dictionary", path(&acme)]);
    let expected = "Heartbeat Request / Acme Slice: slice gold (1) -> 2";
    assert!(ran.code == 1 && ran.out.contains(expected), "{}", ran.out);
}

#[test]
fn invalid_dictionary_is_refused_with_its_position() {
    let wrong = dictionary(&ACME.replace("u16", "u17"));
    let run = |file: &str| strowger(["pfcp", "decode", "--dictionary", file, "--hex", SLICED]);
    let ran = run(path(&wrong));
    assert_eq!((ran.code, &*ran.out), (2, ""));
    assert!(
        ran.err.contains(":10:28: unknown variant `u17`"),
        "{}",
        ran.err
    );
    let big = dictionary(&"#".repeat((1 << 20) + 1));
    let ran = run(path(&big));
    assert!(
        ran.code == 2 && ran.err.contains("limit of 1048576 bytes"),
        "{}",
        ran.err
    );
    let ran = run("/nowhere/acme.toml");
    assert!(
        ran.code != 0 && ran.err.contains("/nowhere/acme.toml"),
        "{}",
        ran.err
    );
}
