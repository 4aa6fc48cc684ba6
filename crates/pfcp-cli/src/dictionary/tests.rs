//! Unit tests of dictionary files.

use strowger_pfcp::IeType;
use strowger_pfcp::vendor::Dictionary;

use super::parse_into;

/// Returns the line, column and reason for which a text is refused.
fn refused(text: &str) -> String {
    let problem = parse_into(text, &mut Dictionary::new()).expect_err("it is wrong");
    let message = format!("{:?}", problem.to_failure_without_hint(text, "acme.toml"));
    let message = message
        .split("acme.toml")
        .nth(1)
        .unwrap_or(&message)
        .to_owned();
    message.split("\\n").next().unwrap_or_default().to_owned()
}

/// Returns a vendor with one element whose fields are `fields`.
fn with_fields(fields: &str) -> String {
    format!(
        "[[vendor]]\nenterprise = 9\n[[vendor.element]]\ntype = 32769\nname = \"A\"\n\
         fields = [\n  {fields}\n]\n"
    )
}

#[test]
fn file_describes_vendors_elements_fields_and_values() {
    let text = r#"
        [[vendor]]
        enterprise = 35818
        name = "Acme"

        [[vendor.element]]
        type = 0x8001
        name = "Acme Slice"
        fields = [
          { name = "slice", kind = "u24", values = { 1 = "gold", 0x2 = "silver" } },
          { name = "since", kind = "time" },
          { name = "gateway", kind = "ipv4" },
          { name = "backup", kind = "ipv6" },
          { name = "port", kind = "mac" },
          { name = "key", kind = "octets", length = 4 },
          { name = "number", kind = "digits", length = "u8" },
          { name = "domain", kind = "domain", length = "u16" },
          { name = "label", kind = "text" },
        ]

        [[vendor.element]]
        type = 0x8002
        name = "Acme Bundle"
        group = true
    "#;
    let mut dictionary = Dictionary::new();
    parse_into(text, &mut dictionary).expect("a dictionary");
    assert_eq!(dictionary.vendor(35_818), Some("Acme"));
    let slice = dictionary.row(35_818, IeType(0x8001)).expect("a row");
    assert_eq!((slice.name(), slice.layout().len()), ("Acme Slice", 9));
    assert_eq!(slice.layout()[0].value_name(2), Some("silver"));
    let bundle = dictionary.row(35_818, IeType(0x8002)).expect("a row");
    assert!(bundle.is_group());
    assert_eq!(dictionary.rows().count(), 2);
}

fn all_are_refused(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let message = refused(text);
        assert!(
            message.starts_with(expected),
            "{message}\n{expected}\n{text}"
        );
    }
}

#[test]
fn invalid_field_is_refused_with_its_line() {
    let name = |name: &str| with_fields(&format!("{{ name = \"{name}\", kind = \"u8\" }}"));
    all_are_refused(&[
        (&with_fields(""), ":3:1: a row has 1 to 64 fields"),
        (
            &name("Slice"),
            ":3:1: field \\\"Slice\\\": a name has 1 to 64 of a-z",
        ),
        (
            &name("slice_name"),
            ":3:1: field \\\"slice_name\\\": a name has",
        ),
        (&name("hex"), ":3:1: field \\\"hex\\\": a name has"),
        (
            &with_fields("{ name = \"a\", kind = \"u9\" }"),
            ":7:24: unknown variant `u9`",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"u8\", length = 2 }"),
            ":7:3: field",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"text\", length = 256 }"),
            ":7:41: `length` must be a number of bytes from 1 to 255",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"text\", length = 0 }"),
            ":3:1: field \\\"a\\\": a number has 1 to 8 bytes, a fixed length 1 or more",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"text\" }, { name = \"b\", kind = \"u8\" }"),
            ":3:1: field \\\"a\\\" takes the rest of the element and is not the last",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"u8\" }, { name = \"a\", kind = \"u8\" }"),
            ":3:1: field \\\"a\\\" is defined twice",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"u8\", values = { 256 = \"x\" } }"),
            ":3:1: field \\\"a\\\": only numbers have named values",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"u8\", values = { 1 = \"x\", 0x1 = \"y\" } }"),
            ":3:1: field \\\"a\\\": only numbers have named values",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"text\", values = { 1 = \"x\" } }"),
            ":3:1: field \\\"a\\\": only numbers have named values",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"u8\", values = { one = \"x\" } }"),
            ":7:3: field \\\"a\\\": \\\"one\\\" is not a number",
        ),
        (
            &with_fields("{ name = \"a\", kind = \"u8\", name = \"b\" }"),
            ":7:",
        ),
    ]);
}

#[test]
fn invalid_vendor_or_element_is_refused_with_its_line() {
    all_are_refused(&[
        ("x = 1", ":1:1: unknown field `x`"),
        (
            "[[vendor]]\nname = \"A\"",
            ":1:1: missing field `enterprise`",
        ),
        ("[[vendor]]\nenterprise = 65536", ":2:14: "),
        (
            "[[vendor]]\nenterprise = 9\nname = \"\"",
            ":3:8: a name has 1 to 64 characters",
        ),
        (
            "[[vendor]]\nenterprise = 9\n[[vendor.element]]\ntype = 40\nname = \"A\"\ngroup = true",
            ":3:1: type 40 is not vendor-specific; vendor types start at 32768",
        ),
        (
            "[[vendor]]\nenterprise = 9\n[[vendor.element]]\ntype = 40000\nname = \"A\"",
            ":3:1: an element needs either `fields` or `group = true`",
        ),
        ("[[vendor]\n", ":1:"),
        ("vendor = 1", ":1:10: "),
    ]);
}

#[test]
fn repeated_type_or_name_of_a_vendor_is_refused() {
    let vendor = |enterprise: u16, number: u16, name: &str| {
        format!(
            "[[vendor]]\nenterprise = {enterprise}\n[[vendor.element]]\ntype = {number}\n\
             name = \"{name}\"\ngroup = true\n"
        )
    };
    let mut dictionary = Dictionary::new();
    parse_into(&vendor(9, 40_000, "A"), &mut dictionary).expect("the first");
    parse_into(&vendor(10, 40_000, "A"), &mut dictionary).expect("another vendor's");
    for again in [vendor(9, 40_000, "B"), vendor(9, 40_001, "A")] {
        let problem = parse_into(&again, &mut dictionary).expect_err("it exists");
        let message = format!("{:?}", problem.to_failure_without_hint(&again, "acme.toml"));
        assert!(
            message.contains("acme.toml:3:1: type 40000 is"),
            "{message}"
        );
    }
}

#[test]
fn hostile_texts_never_panic() {
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let dotted = format!("{}a = 1", "a.".repeat(50_000));
    let rows: String = (0..4097)
        .map(|place| {
            format!(
                "[[vendor.element]]\ntype = {}\nname = \"{place}\"\ngroup = true\n",
                32_768 + place
            )
        })
        .collect();
    let many = format!("[[vendor]]\nenterprise = 9\n{rows}");
    let fields: String = (0..65)
        .map(|place| format!("{{ name = \"a{place}\", kind = \"u8\" }},\n"))
        .collect();
    let wide = with_fields(&fields);
    let long = with_fields(&format!(
        "{{ name = \"{}\", kind = \"u8\" }}",
        "a".repeat(70_000)
    ));
    let control = "[[vendor]]\nenterprise = 9\nname = \"a\\u001b[31m\"".to_owned();
    for text in [deep, dotted, many, wide, long, control, "\u{0}".to_owned()] {
        parse_into(&text, &mut Dictionary::new()).expect_err("it is refused");
    }
}
