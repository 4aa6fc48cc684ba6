//! Every element has a row, and its shortest value is as long as the specification says.

use strowger_pfcp::IeType;
use strowger_pfcp::ie::descriptor::{Descriptor, Leaf, describe};

use crate::bytes::shared_json;

/// Types without a row, and the reason.
pub(crate) const ROWLESS: &[(u16, &str)] = &[
    (0, "Table 8.1.2-1 reserves it"),
    (273, "Table 8.1.2-1 keeps it spare"),
    (381, "Table 8.1.2-1 gives it to no element yet"),
];

/// Values of zeros whose length differs from the number of bytes in the specification: type, our
/// number, its number, reason.
pub(crate) const LENGTHS: &[(u16, usize, usize, &str)] = &[
    (21, 5, 1, "without CHOOSE there is a TEID (§8.2.3)"),
    (43, 2, 1, "features have two bytes at least (§8.2.25)"),
    (60, 5, 1, "a node named by an IPv4 address (§8.2.38)"),
    (65, 5, 1, "a node named by an IPv4 address (§8.2.43)"),
    (98, 3, 1, "a type, then a length or two (§8.2.67)"),
    (114, 3, 1, "a packet detection rule (§8.2.80)"),
    (115, 5, 1, "the interval has four bytes (§8.2.81)"),
    (144, 1, 7, "no address (§8.2.103)"),
    (145, 1, 7, "no address (§8.2.104)"),
    (
        152,
        10,
        7,
        "three lengths, a depth and an identifier of three bytes (§8.2.108)",
    ),
    (278, 3, 1, "a type and flags come first (§8.2.187)"),
    (
        280,
        0,
        4,
        "the length says which version of IP it is (§8.2.188)",
    ),
    (
        293,
        1,
        2,
        "one byte of flags; tshark and rs-pfcp read it so (§8.2.200)",
    ),
    (306, 7, 5, "two lengths of addresses (§8.2.207)"),
    (308, 3, 1, "without CHOOSE there is a port (§8.2.209)"),
    (317, 1, 2, "no code point (§8.2.214)"),
    (357, 5, 1, "the average is always there (§8.2.247)"),
    (393, 2, 1, "two lengths (§8.2.276)"),
];

#[test]
fn every_element_has_a_row() {
    let rowless: Vec<u16> = IeType::ALL
        .iter()
        .filter(|ie| describe(**ie).is_none())
        .map(|ie| ie.0)
        .collect();
    let expected: Vec<u16> = ROWLESS.iter().map(|(ie, _)| *ie).collect();
    assert_eq!(rowless, expected);
}

#[test]
fn leaf_minimum_lengths_match_specification() {
    let Some(types) = shared_json("pfcp/spec/spec_r19_ie_types.json") else {
        return;
    };
    let mut differences = Vec::new();
    for fact in types["ie_types"].as_array().expect("types") {
        let number = fact["type"]
            .as_u64()
            .and_then(|number| u16::try_from(number).ok());
        let ie = IeType(number.expect("a type"));
        let Some(Descriptor::Leaf(leaf)) = describe(ie) else {
            continue;
        };
        let fixed = fact["min_fixed_octets"]
            .as_str()
            .and_then(|bytes| bytes.parse().ok());
        if fixed.is_some_and(|fixed: usize| fixed != least(leaf)) {
            differences.push((ie.0, least(leaf), fixed.unwrap_or(0)));
        }
    }
    let expected: Vec<(u16, usize, usize)> = LENGTHS
        .iter()
        .map(|(ie, ours, theirs, _)| (*ie, *ours, *theirs))
        .collect();
    assert_eq!(differences, expected);
}

/// Finds the shortest value of zeros that is well-formed.
fn least(leaf: &Leaf) -> usize {
    let zeros = [0; 64];
    let fits = |bytes: &usize| {
        strowger_pfcp::ie::descriptor::canonical(leaf.ie, &zeros[..*bytes])
            .is_some_and(|value| value.is_ok())
    };
    (0..zeros.len()).find(fits).unwrap_or(zeros.len())
}
