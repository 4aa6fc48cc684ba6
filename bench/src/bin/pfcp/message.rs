//! The messages that are timed. They are written by hand, so that no codec is checked against its
//! own output.

use std::net::Ipv4Addr;

/// The SEID in the header.
pub const SEID: u64 = 0x1122_3344_5566_7788;
/// The sequence number of every message.
pub const SEQUENCE: u32 = 0x01_0203;
/// The Node ID, and the address of the F-SEID.
pub const NODE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The control plane's SEID in the first variant.
const CP_SEID: u64 = 0x8877_6655_4433_2211;
/// Returns the control plane's SEID in a variant of a message.
pub fn cp_seid(variant: u32) -> u64 {
    CP_SEID + u64::from(variant)
}

/// The Recovery Time Stamp of the heartbeat, in seconds since 1900.
pub const RECOVERY: u32 = 0xe000_0000;
/// The Source Interface of every rule: Core.
pub const INTERFACE: u8 = 1;
/// The Apply Action of every rule: BUFF, which needs no parameters.
pub const ACTION: u8 = 4;

/// The numbers of one pair of rules.
#[derive(Debug, Clone, Copy)]
pub struct RulePair {
    /// Identifier of the PDR.
    pub pdr: u16,
    /// Precedence of the PDR.
    pub precedence: u32,
    /// Identifier of the FAR.
    pub far: u32,
}

/// Number of messages of each size; they have the same rules with different numbers.
pub const VARIANTS: u32 = 16;

/// Returns the pairs of rules of a message.
pub fn pairs(count: usize, variant: u32) -> impl Iterator<Item = RulePair> {
    (1..=count as u32).map(move |n| RulePair {
        pdr: (n + 100 * variant) as u16,
        precedence: 1000 + n + 77 * variant,
        far: 7 * n + 1013 * variant,
    })
}

/// Folds one leaf into a checksum.
pub fn fold(sum: u64, leaf: u64) -> u64 {
    (sum ^ leaf).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Returns the checksum over every leaf of the rules, all PDRs first.
pub fn checksum(count: usize, variant: u32) -> u64 {
    let pdrs = pairs(count, variant).fold(0, |sum, pair| {
        let sum = fold(sum, pair.pdr.into());
        let sum = fold(fold(sum, pair.precedence.into()), INTERFACE.into());
        fold(sum, pair.far.into())
    });
    pairs(count, variant).fold(pdrs, |sum, pair| {
        fold(fold(sum, pair.far.into()), ACTION.into())
    })
}

/// A Session Establishment Request with this number of Create PDR and of Create FAR.
pub fn establishment(count: usize, variant: u32) -> Vec<u8> {
    let mut body = element(60, &[&[0], &NODE.octets()[..]].concat());
    body.extend(element(
        57,
        &[&[2], &cp_seid(variant).to_be_bytes()[..], &NODE.octets()].concat(),
    ));
    for pair in pairs(count, variant) {
        body.extend(element(
            1,
            &pdr(pair, &element(2, &element(20, &[INTERFACE]))),
        ));
    }
    for pair in pairs(count, variant) {
        body.extend(element(3, &far(pair, &element(44, &[ACTION]))));
    }
    message(50, Some(SEID), &body)
}

/// A Heartbeat Request.
pub fn heartbeat() -> Vec<u8> {
    message(1, None, &element(96, &RECOVERY.to_be_bytes()))
}

/// Establishments that each lack one mandatory element, on every level.
pub fn without_mandatory_elements() -> Vec<Vec<u8>> {
    let node = element(60, &[&[0], &NODE.octets()[..]].concat());
    let f_seid = element(
        57,
        &[&[2], &CP_SEID.to_be_bytes()[..], &NODE.octets()].concat(),
    );
    let Some(pair) = pairs(1, 0).next() else {
        return Vec::new();
    };
    let good_pdr = element(1, &pdr(pair, &element(2, &element(20, &[INTERFACE]))));
    let good_far = element(3, &far(pair, &element(44, &[ACTION])));
    let empty_pdi = element(1, &pdr(pair, &element(2, &[])));
    let no_pdi = element(1, &pdr(pair, &[]));
    let no_action = element(3, &far(pair, &[]));
    [
        [&f_seid[..], &good_pdr, &good_far].concat(),
        [&node[..], &good_pdr, &good_far].concat(),
        [&node[..], &f_seid, &empty_pdi, &good_far].concat(),
        [&node[..], &f_seid, &no_pdi, &good_far].concat(),
        [&node[..], &f_seid, &good_pdr, &no_action].concat(),
    ]
    .into_iter()
    .map(|body| message(50, Some(SEID), &body))
    .collect()
}

fn pdr(pair: RulePair, pdi: &[u8]) -> Vec<u8> {
    let id = element(56, &pair.pdr.to_be_bytes());
    let far = element(108, &pair.far.to_be_bytes());
    [
        &id[..],
        &element(29, &pair.precedence.to_be_bytes()),
        pdi,
        &far,
    ]
    .concat()
}

fn far(pair: RulePair, action: &[u8]) -> Vec<u8> {
    [&element(108, &pair.far.to_be_bytes())[..], action].concat()
}

fn element(number: u16, value: &[u8]) -> Vec<u8> {
    let length = value.len() as u16;
    [&number.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

fn message(number: u8, seid: Option<u64>, body: &[u8]) -> Vec<u8> {
    let seid = seid.map_or_else(Vec::new, |seid| seid.to_be_bytes().to_vec());
    let length = (seid.len() + 4 + body.len()) as u16;
    let flags = 0x20 | u8::from(!seid.is_empty());
    let sequence = (SEQUENCE << 8).to_be_bytes();
    [
        &[flags, number][..],
        &length.to_be_bytes(),
        &seid,
        &sequence,
        body,
    ]
    .concat()
}
