//! Signed numbers: two's complement on the wire, negative in text, JSON and values.

use serde_json::json;
use strowger_pfcp::ie::descriptor::FieldKind;
use strowger_pfcp::ie::{
    CumulativeRateratioMeasurement, CumulativeRateratioThreshold, Multiplier,
    TimeOffsetMeasurement, TimeOffsetThreshold, Value,
};
use strowger_pfcp::{Ie, IeType, Index, Message, MessageView, from_json, to_json};

use crate::bytes::{hex, node_message, tlv};
use crate::values::leaves;

/// An element with a signed number: its field, the bytes before the number, the size of the number,
/// and the bytes after it.
struct Signed {
    ie: IeType,
    field: &'static str,
    before: &'static [u8],
    size: usize,
    after: usize,
}

const fn signed(
    ie: IeType,
    field: &'static str,
    before: &'static [u8],
    size: usize,
    after: usize,
) -> Signed {
    Signed {
        ie,
        field,
        before,
        size,
        after,
    }
}

/// Time Offset and rateRatio are defined in TS 29.244 §8.2.147 to §8.2.150, the exponent in
/// §8.2.84, and the jitter, whose bounds are before and after the expected time of a packet, in
/// §8.2.222.
const SIGNED: [Signed; 7] = [
    signed(
        IeType::TIME_OFFSET_THRESHOLD,
        "time_offset_threshold",
        &[],
        8,
        0,
    ),
    signed(
        IeType::TIME_OFFSET_MEASUREMENT,
        "time_offset_measurement",
        &[],
        8,
        0,
    ),
    signed(
        IeType::CUMULATIVE_RATERATIO_THRESHOLD,
        "cumulative_rate_ratio_threshold",
        &[],
        4,
        0,
    ),
    signed(
        IeType::CUMULATIVE_RATERATIO_MEASUREMENT,
        "cumulative_rate_ratio_measurement",
        &[],
        4,
        0,
    ),
    signed(IeType::MULTIPLIER, "exponent", &[0; 8], 4, 0),
    signed(
        IeType::N6_JITTER_MEASUREMENT,
        "lower_dl_jitter_measurement",
        &[1, 0, 0, 0, 9],
        4,
        4,
    ),
    signed(
        IeType::N6_JITTER_MEASUREMENT,
        "higher_dl_jitter_measurement",
        &[1, 0, 0, 0, 9, 0, 0, 0, 0],
        4,
        0,
    ),
];

impl Signed {
    /// A message with only this element, and with the last bytes of the number as its value.
    fn message(&self, number: i64) -> Vec<u8> {
        let number = &number.to_be_bytes()[8 - self.size..];
        let value = [self.before, number, &vec![0; self.after]].concat();
        message(self.ie, &value)
    }
}

/// A message with one element.
fn message(ie: IeType, value: &[u8]) -> Vec<u8> {
    node_message(1, &[tlv(96, &[0; 4]), tlv(ie.0, value)].concat())
}

#[test]
fn slow_clock_has_negative_offset() {
    let bytes = hex("200100100000010000d10008ffffffffffffffff");
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("a message");
    let text = view.to_string();
    assert!(text.contains("-1 ns"), "{text}");
    assert_eq!(
        to_json(&view)["ies"][0]["value"],
        json!({ "time_offset_measurement": -1 })
    );
    assert_eq!(from_json(&to_json(&view)).expect("JSON"), bytes);
}

#[test]
fn signed_fields_round_trip_their_range() {
    for row in SIGNED {
        let Signed { ie, field, .. } = row;
        let most = i64::MAX >> (64 - 8 * row.size);
        for number in [-1 - most, -most, -1, 0, 1, most] {
            let bytes = row.message(number);
            let mut index = Index::new();
            let view = MessageView::decode(&bytes, &mut index).expect("a message");
            let json = to_json(&view);
            assert_eq!(json["ies"][1]["value"][field], json!(number), "{ie}");
            assert_eq!(from_json(&json).expect("JSON"), bytes, "{ie} {number}");
            assert!(view.to_string().contains(&number.to_string()), "{ie}");
            let owned = Message::decode(&bytes).expect("a message");
            assert_eq!(owned.encode().expect("octets"), bytes, "{ie} {number}");
        }
    }
}

#[test]
fn json_refuses_signed_value_out_of_range() {
    for row in SIGNED {
        let Signed { ie, field, .. } = row;
        let bytes = row.message(0);
        let mut index = Index::new();
        let view = MessageView::decode(&bytes, &mut index).expect("a message");
        let most = i128::from(i64::MAX >> (64 - 8 * row.size));
        for number in [most + 1, -most - 2] {
            let mut json = to_json(&view);
            let text = number.to_string();
            json["ies"][1]["value"][field] = serde_json::from_str(&text).expect("a number of JSON");
            assert!(from_json(&json).is_err(), "{ie} {number}");
        }
    }
}

#[test]
fn signed_fields_read_negative_values() {
    fn again<T: Ie + PartialEq + std::fmt::Debug>(value: &T, bytes: &str) {
        let mut out = Vec::new();
        let message = Message::decode(&message(T::TYPE, &hex(bytes)));
        let message = message.expect("a message");
        message.encode_into(&mut out).expect("octets");
        let mut index = Index::new();
        let view = MessageView::decode(&out, &mut index).expect("a message");
        let part = view.root().parts().nth(1).expect("an element");
        assert_eq!(T::from_part(part).expect("a value"), *value);
    }
    again(&TimeOffsetThreshold(-2), "fffffffffffffffe");
    again(&TimeOffsetMeasurement(i64::MIN), "8000000000000000");
    again(&CumulativeRateratioThreshold(-2), "fffffffe");
    again(&CumulativeRateratioMeasurement(i32::MIN), "80000000");
    let a_tenth = Multiplier {
        value_digits: 1,
        exponent: -1,
    };
    again(&a_tenth, "0000000000000001ffffffff");
}

#[test]
fn no_other_row_is_signed() {
    for (ie, leaf) in leaves() {
        let is_signed = |kind| matches!(kind, FieldKind::Signed { .. });
        let signed = leaf.fields.iter().any(|field| is_signed(field.kind));
        assert_eq!(signed, SIGNED.iter().any(|row| row.ie == ie), "{ie}");
        let ones = [0xff; 16];
        let says = signed.then(|| leaf.read(&ones).last()).flatten();
        assert!(
            says.is_none_or(|(.., value)| value == Value::Signed(-1)),
            "{ie}"
        );
    }
}
