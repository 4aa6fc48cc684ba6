//! Vendors' elements described by a dictionary: the same message as text, JSON and fields.

use std::borrow::Cow;

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use serde_json::{Value as Json, json};
use strowger_pfcp::ie::descriptor::FieldExtent;
use strowger_pfcp::ie::{Value, descriptor::FieldKind};
use strowger_pfcp::vendor::{Dictionary, VendorField, VendorRow, VendorRowError, WriteError};
use strowger_pfcp::{Frame, IeType, Ignore, Index, MessageView, from_json, to_json};

use crate::bytes::{node_message, tlv};
use crate::framing::messages;

const ACME: u16 = 35_818;
const SLICE: u16 = 0x8001;
const BUNDLE: u16 = 0x8002;
const TUNNEL: u16 = 0x8003;

static SLICE_FIELDS: [VendorField; 2] = [
    VendorField::number("slice", 3),
    VendorField::text("label", FieldExtent::Rest),
];

static TUNNEL_FIELDS: [VendorField; 6] = [
    VendorField::time("since"),
    VendorField::ipv4("inner"),
    VendorField::ipv6("outer"),
    VendorField::mac("port"),
    VendorField::bytes("key", FieldExtent::Length8),
    VendorField::number("number", 8),
];

static ROWS: [VendorRow; 3] = [
    VendorRow::fields(ACME, IeType(SLICE), "Acme Slice", &SLICE_FIELDS),
    VendorRow::group(ACME, IeType(BUNDLE), "Acme Bundle"),
    VendorRow::fields(ACME, IeType(TUNNEL), "Acme Tunnel", &TUNNEL_FIELDS),
];

fn acme() -> Dictionary {
    let dictionary = Dictionary::new().with_vendor(ACME, "Acme");
    let dictionary = dictionary.and_then(|dictionary| dictionary.with_rows(&ROWS));
    dictionary.expect("rows that can be read back")
}

/// An element of the vendor.
fn of_acme(ie: u16, value: &[u8]) -> Vec<u8> {
    let raw: Vec<u8> = ACME
        .to_be_bytes()
        .into_iter()
        .chain(value.iter().copied())
        .collect();
    tlv(ie, &raw)
}

fn slice(number: u8, label: &str) -> Vec<u8> {
    of_acme(SLICE, &[&[0, 0, number], label.as_bytes()].concat())
}

fn tunnel() -> Vec<u8> {
    let mut value = vec![0, 0, 0, 60, 10, 0, 0, 1];
    value.extend([0; 15]);
    value.extend([
        1, 0, 0, 0x5e, 0, 0x53, 1, 2, 0xab, 0xcd, 0, 0, 0, 0, 0, 0, 1, 0,
    ]);
    of_acme(TUNNEL, &value)
}

fn text(bytes: &[u8], dictionary: &Dictionary) -> Vec<String> {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index).expect("well-formed");
    let text = dictionary.show(&view).to_string();
    text.lines().skip(1).map(ToOwned::to_owned).collect()
}

fn as_json(bytes: &[u8], dictionary: &Dictionary) -> Json {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index).expect("well-formed");
    dictionary.to_json(&view)
}

fn differences(left: &[u8], right: &[u8], ignore: &Ignore) -> Vec<String> {
    let mut indexes = [Index::new(), Index::new()];
    let [first, second] = &mut indexes;
    let left = MessageView::decode(left, first).expect("well-formed");
    let right = MessageView::decode(right, second).expect("well-formed");
    let found = acme().compare(&left, &right, ignore);
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn an_element_shows_its_name_its_vendor_and_its_fields() {
    let bytes = node_message(1, &[slice(7, "gold"), tunnel()].concat());
    assert_eq!(
        text(&bytes, &acme()),
        [
            "  Acme Slice (32769) of Acme (35818): slice 7, label gold",
            "  Acme Tunnel (32771) of Acme (35818): since 2036-02-07T06:29:16Z, inner 10.0.0.1, \
             outer ::1, port 00:00:5e:00:53:01, key 0xabcd, number 256",
        ]
    );
}

#[test]
fn vendor_element_without_row_is_shown_as_hex() {
    let bytes = node_message(1, &slice(7, ""));
    let expected = "  IE 32769 (32769) of enterprise 35818 (unexpected): 0x000007, 3 bytes";
    assert_eq!(text(&bytes, &Dictionary::new()), [expected]);
    let other = tlv(SLICE, &[0, 9, 0, 0, 7]);
    let expected = "  IE 32769 (32769) of enterprise 9 (unexpected): 0x000007, 3 bytes";
    assert_eq!(text(&node_message(1, &other), &acme()), [expected]);
}

#[test]
fn a_group_shows_members_of_every_kind_at_every_depth() {
    let pdr = tlv(1, &[tlv(56, &[0, 1]), slice(1, "in a PDR")].concat());
    let inner = of_acme(BUNDLE, &slice(2, "inner"));
    let members = [
        tlv(96, &[0, 0, 0, 0]),
        pdr,
        inner,
        tlv(999, &[5]),
        tlv(0x8009, &[0, 9, 1]),
    ];
    let bytes = node_message(1, &of_acme(BUNDLE, &members.concat()));
    assert_eq!(
        text(&bytes, &acme()),
        [
            "  Acme Bundle (32770) of Acme (35818)",
            "    Recovery Time Stamp (96): 2036-02-07T06:28:16Z",
            "    Create PDR (1)",
            "      PDR ID (56): 1",
            "      Acme Slice (32769) of Acme (35818): slice 1, label in a PDR",
            "    Acme Bundle (32770) of Acme (35818)",
            "      Acme Slice (32769) of Acme (35818): slice 2, label inner",
            "    IE 999 (999): 0x05, 1 byte",
            "    IE 32777 (32777) of enterprise 9: 0x01, 1 byte",
        ]
    );
    let json = as_json(&bytes, &acme());
    let bundle = &json["ies"][0];
    assert_eq!(bundle["name"], "Acme Bundle");
    assert_eq!(bundle["enterprise_name"], "Acme");
    assert_eq!(bundle["ies"][1]["ies"][1]["value"]["label"], "in a PDR");
    assert_eq!(bundle["ies"][2]["ies"][0]["value"]["slice"], 2);
    assert_eq!(acme().from_json(&json), Ok(bytes));
}

#[test]
fn trailing_bytes_are_kept_and_short_value_is_opaque() {
    let mut long = tunnel();
    long.extend([0xee, 0xff]);
    long[3] += 2;
    let bytes = node_message(1, &[long, of_acme(TUNNEL, &[1, 2])].concat());
    let lines = text(&bytes, &acme());
    assert!(
        lines[0].ends_with("number 256, trailing bytes 0xeeff"),
        "{lines:?}"
    );
    assert!(
        lines[1].ends_with(": shorter than its fields: 0x0102, 2 bytes"),
        "{lines:?}"
    );
    let json = as_json(&bytes, &acme());
    assert_eq!(json["ies"][0]["tail"], "eeff");
    assert_eq!(json["ies"][1]["value"], json!({ "hex": "0102" }));
    assert_eq!(acme().from_json(&json), Ok(bytes));
}

#[test]
fn json_with_names_gives_the_same_bytes() {
    let message = json!({
        "type": 1, "sequence": 1,
        "ies": [
            { "type": SLICE, "enterprise": ACME, "value": { "slice": 7, "label": "gold" } },
            { "type": BUNDLE, "enterprise": ACME, "ies": [
                { "type": 96, "value": { "recovery_time_stamp": 0 } },
            ] },
        ],
    });
    let bundle = of_acme(BUNDLE, &tlv(96, &[0; 4]));
    let bytes = node_message(1, &[slice(7, "gold"), bundle].concat());
    assert_eq!(acme().from_json(&message), Ok(bytes));
    let error = from_json(&message).expect_err("no row").to_string();
    assert_eq!(
        error,
        "Heartbeat Request / IE 32769: hex is missing or malformed"
    );
}

#[test]
fn json_not_matching_row_is_refused_with_field_name() {
    for (value, key) in [
        (json!({ "label": "gold" }), "slice"),
        (json!({ "slice": 0x0100_0000, "label": "" }), "slice"),
        (json!({ "slice": -1, "label": "" }), "slice"),
        (json!({ "slice": 1, "label": 1 }), "label"),
        (json!([]), "value"),
    ] {
        let ies = json!([{ "type": SLICE, "enterprise": ACME, "value": value }]);
        let message = json!({ "type": 1, "sequence": 1, "ies": ies });
        let error = acme().from_json(&message).expect_err("no element");
        let expected = format!("Heartbeat Request / Acme Slice: {key} is missing or malformed");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_difference_names_the_element_and_the_field() {
    let message = |elements: &[Vec<u8>]| node_message(1, &elements.concat());
    let nothing = Ignore::nothing();
    let left = message(&[slice(7, "gold"), tunnel()]);
    let right = message(&[tunnel(), slice(8, "gold")]);
    assert_eq!(
        differences(&left, &right, &nothing),
        ["Heartbeat Request / Acme Slice: slice 7 -> 8"]
    );
    let ignore = Ignore::nothing().ie(IeType(SLICE));
    assert_eq!(differences(&left, &right, &ignore), [""; 0]);
    let gone = message(&[slice(7, "gold")]);
    let removed = differences(&left, &gone, &nothing);
    let expected = "Heartbeat Request / Acme Tunnel: removed since 2036-02-07T06:29:16Z";
    assert!(removed[0].starts_with(expected), "{removed:?}");
}

#[test]
fn members_of_a_vendors_group_are_compared_in_any_order() {
    let bundle = |members: &[Vec<u8>]| node_message(1, &of_acme(BUNDLE, &members.concat()));
    let stamp = |second: u8| tlv(96, &[0, 0, 0, second]);
    let nothing = Ignore::nothing();
    let left = bundle(&[stamp(0), slice(1, "a")]);
    let turned = bundle(&[slice(1, "a"), stamp(0)]);
    assert_eq!(differences(&left, &turned, &nothing), [""; 0]);
    let later = bundle(&[slice(1, "a"), stamp(1)]);
    assert_eq!(
        differences(&left, &later, &nothing),
        [
            "Heartbeat Request / Acme Bundle: Recovery Time Stamp[0] / recovery time \
          stamp 2036-02-07T06:28:16Z -> 2036-02-07T06:28:17Z"
        ]
    );
    assert_eq!(
        differences(&left, &later, &Ignore::nothing().times()),
        [""; 0]
    );
    let less = bundle(&[stamp(0)]);
    let removed = differences(&left, &less, &nothing);
    assert!(
        removed
            .iter()
            .any(|line| line.contains("Acme Slice[0] there -> none")),
        "{removed:?}"
    );
}

#[test]
fn fields_are_read_and_written_by_name() {
    let row = &ROWS[0];
    let value = row.value(&[
        ("label", Value::Bytes(b"gold")),
        ("slice", Value::Number(7)),
    ]);
    let bytes = node_message(1, &tlv(SLICE, &value.expect("a value")));
    assert_eq!(bytes, node_message(1, &slice(7, "gold")));
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let part = view.root().find(IeType(SLICE)).expect("it is there");
    let acme = acme();
    let element = acme.element(part).expect("a row that fits");
    assert_eq!(element.field("label"), Some(Value::Bytes(b"gold")));
    assert_eq!(element.field("color"), None);
    assert!(element.tail().is_empty());

    let label = ("label", Value::Bytes(b""));
    let field = |name: &str| Err(WriteError::Field(name.to_owned()));
    assert_eq!(row.value(&[label]), field("slice"));
    assert_eq!(
        row.value(&[label, ("slice", Value::Number(1 << 24))]),
        field("slice")
    );
    assert_eq!(
        row.value(&[label, ("slice", Value::Flag(true))]),
        field("slice")
    );
    let color = [("color", Value::Number(1))];
    assert_eq!(
        row.value(&color),
        Err(WriteError::Unknown("color".to_owned()))
    );
}

#[test]
fn ambiguous_row_is_refused() {
    let add = |row: VendorRow| Dictionary::new().with_rows(&[row]).map(drop);
    let of = |field: VendorField| {
        add(VendorRow::read(
            1,
            IeType(SLICE),
            "A".into(),
            Some(vec![field]),
        ))
    };
    let field = |kind| of(VendorField::read("a".into(), kind));
    let number = |bytes, width| FieldKind::Number {
        bytes,
        width,
        names: None,
    };
    assert_eq!(field(number(8, 64)), Ok(()));
    for (bytes, width) in [(0, 0), (9, 72), (2, 15), (usize::MAX, 64)] {
        assert_eq!(
            field(number(bytes, width)),
            Err(VendorRowError::Bytes("a".into()))
        );
    }
    assert_eq!(
        of(VendorField::number("a", 0)),
        Err(VendorRowError::Bytes("a".into()))
    );
    assert_eq!(
        of(VendorField::number("a", usize::MAX)),
        Err(VendorRowError::Bytes("a".into()))
    );
    let bits = FieldKind::Bits {
        shift: 0,
        width: 1,
        names: None,
    };
    assert_eq!(field(bits), Err(VendorRowError::Kind("a".into())));
    assert_eq!(
        field(FieldKind::Text(FieldExtent::RestButLast)),
        Err(VendorRowError::Kind("a".into()))
    );
    assert_eq!(
        field(FieldKind::Bytes(FieldExtent::Fixed(0))),
        Err(VendorRowError::Bytes("a".into()))
    );
    let name = |name: &str| add(VendorRow::read(1, IeType(SLICE), name.to_owned(), None));
    assert_eq!(name(&"ä".repeat(64)), Ok(()));
    for wrong in ["", "a\nb", &"a".repeat(65)] {
        assert_eq!(name(wrong), Err(VendorRowError::Name));
    }
    assert_eq!(
        add(VendorRow::group(1, IeType(32_767), "A")),
        Err(VendorRowError::Type(IeType(32_767)))
    );
    let vendor = Dictionary::new()
        .with_vendor(1, Cow::Borrowed(""))
        .map(drop);
    assert_eq!(vendor, Err(VendorRowError::Name));
}

#[test]
fn vendor_group_nesting_is_limited() {
    // As deeply nested as a message can be, with the vendor's groups alone and with tables in
    // between.
    for between in [false, true] {
        let mut bytes = Vec::new();
        while bytes.len() < 65_000 {
            bytes = of_acme(BUNDLE, &bytes);
            if between {
                bytes = tlv(1, &bytes);
            }
        }
        let bytes = node_message(1, &of_acme(BUNDLE, &bytes));
        assert!(text(&bytes, &acme()).len() < 40);
        let json = as_json(&bytes, &acme());
        assert_eq!(acme().from_json(&json).as_deref(), Ok(&*bytes));
        assert_eq!(differences(&bytes, &bytes, &Ignore::nothing()), [""; 0]);
    }
}

proptest! {
    #[test]
    fn dictionary_affects_only_its_elements(bytes in messages()) {
        let (acme, mut index) = (acme(), Index::new());
        let view = Frame::decode(&bytes).and_then(|frame| MessageView::of(&frame, &mut index));
        if let Ok(view) = view && view.root().parts().all(|part| acme.element(part).is_none()) {
            prop_assert_eq!(acme.show(&view).to_string(), view.to_string());
            prop_assert_eq!(acme.to_json(&view), to_json(&view));
        }
    }

    #[test]
    fn json_round_trips_arbitrary_vendor_bytes(
        first in any::<Vec<u8>>(),
        second in any::<Vec<u8>>(),
        third in any::<Vec<u8>>(),
    ) {
        let acme = acme();
        let elements = [of_acme(SLICE, &first), of_acme(TUNNEL, &second), of_acme(BUNDLE, &third)];
        let inner = of_acme(BUNDLE, &elements.concat());
        let bytes = node_message(1, &[elements.concat(), inner].concat());
        let json = as_json(&bytes, &acme);
        prop_assert_eq!(acme.from_json(&json), Ok(bytes.clone()));
        prop_assert!(!text(&bytes, &acme).is_empty());
        let none = differences(&bytes, &bytes, &Ignore::nothing());
        prop_assert!(none.is_empty());
    }

    #[test]
    fn one_byte_change_is_a_difference(
        value in proptest::collection::vec(any::<u8>(), 1..60),
        place in any::<proptest::sample::Index>(),
        bits in 1u8..,
        ie in SLICE..=TUNNEL,
    ) {
        let mut other = value.clone();
        other[place.index(value.len())] ^= bits;
        let [left, right] = [value, other].map(|value| node_message(1, &of_acme(ie, &value)));
        let found = differences(&left, &right, &Ignore::nothing());
        prop_assert!(!found.is_empty());
    }
}
