//! Seeded changes to messages.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use strowger_pfcp::ie::descriptor::{Descriptor, describe};
use strowger_pfcp::ie::{FSeid, NodeId, PdrId, Precedence, UpdatePdr};
use strowger_pfcp::message::{
    AssociationSetupRequest, HeartbeatRequest, SessionDeletionRequest, SessionEstablishmentRequest,
    SessionModificationRequest,
};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{IeType, Message, Seid, Sequence};
use strowger_pfcp_node::SessionRules;

/// Numbers derived from a seed.
#[derive(Debug)]
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`, which must not be 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("a number of few bits");
        usize::try_from(self.next() % limit).expect("below the limit")
    }

    /// An element number below `limit`.
    fn element(&mut self, limit: u16) -> u16 {
        u16::try_from(self.below(limit.into())).expect("below the limit")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        from.get(self.below(from.len()))
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.byte()).collect()
    }
}

/// Messages of one session, used where there are no captures.
pub(super) fn handmade_messages() -> Vec<Vec<u8>> {
    let address = std::net::IpAddr::from([127, 0, 0, 66]);
    let node = || NodeId::from(address);
    let rules = SessionRules::pdu_session([10, 45, 0, 66].into());
    let sequence = Sequence::new(1);
    let establishment = SessionEstablishmentRequest::new(node(), FSeid::new(Seid(1), address))
        .create_pdrs(rules.pdrs().to_vec())
        .create_fars(rules.fars().to_vec());
    let update = UpdatePdr::new(PdrId(1)).precedence(Precedence(7));
    let modification = SessionModificationRequest::new().update_pdrs([update]);
    [
        Message::node(sequence, AssociationSetupRequest::new(node(), 1)),
        Message::node(sequence, HeartbeatRequest::new(1)),
        Message::session(Seid(0), sequence, establishment),
        Message::session(Seid(1), sequence, modification),
        Message::session(Seid(1), sequence, SessionDeletionRequest::new()),
    ]
    .map(|message| message.encode().expect("it fits"))
    .to_vec()
}

/// An element with its content.
#[derive(Clone, Debug)]
struct Element {
    ie: u16,
    inside: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Bytes(Vec<u8>),
    Elements(Vec<Element>),
}

/// Produces messages that are wrong in some way, most of them only slightly.
#[derive(Debug)]
pub(super) struct Mutator {
    random: Random,
    corpus: Vec<Vec<Vec<u8>>>,
    /// Sessions that mutations established.
    own: Vec<Seid>,
    sequence: u32,
}

impl Mutator {
    pub(super) fn new(seed: u64, corpus: Vec<Vec<Vec<u8>>>) -> Self {
        Self {
            random: Random::new(seed),
            corpus,
            own: Vec::new(),
            sequence: 0,
        }
    }

    /// Notes a session of the sender.
    pub(super) fn add_session(&mut self, seid: Option<Seid>) {
        self.own.extend(seid);
    }

    pub(super) fn forget_sessions(&mut self) {
        self.own.clear();
    }

    /// A captured message; each file is equally likely, whatever its length.
    fn original(&mut self) -> Vec<u8> {
        let file = self.random.pick(&self.corpus).expect("there are messages");
        self.random.pick(file).expect("there are messages").clone()
    }

    /// The next message; it may name sessions of the sender, or those of `others`.
    pub(super) fn next(&mut self, others: &[Seid]) -> Vec<u8> {
        let mut bytes = self.original();
        self.name_session(&mut bytes, others);
        // Some messages stay intact, so that there are sessions to mutate.
        if !self.random.one_in(20) {
            for _ in 0..=self.random.below(3) {
                match self.random.below(3) {
                    0 => self.change_bytes(&mut bytes),
                    _ => self.change_elements(&mut bytes),
                }
            }
        }
        if !self.random.one_in(4) {
            self.set_sequence(&mut bytes);
        }
        bytes.truncate(65_507);
        bytes
    }

    /// Puts the SEID of a live session into the header.
    fn name_session(&mut self, bytes: &mut [u8], others: &[Seid]) {
        let seid = match self.random.below(8) {
            0 => Some(Seid(self.random.next())),
            1 => self.random.pick(others).copied(),
            2 => None,
            _ => self.random.pick(&self.own).copied(),
        };
        if let (Some(seid), 1) = (seid, bytes[0] & 1) {
            bytes[4..12].copy_from_slice(&seid.0.to_be_bytes());
        }
    }

    /// Sets a fresh sequence number.
    fn set_sequence(&mut self, bytes: &mut [u8]) {
        self.sequence += 1;
        let at = if bytes.first().is_some_and(|flags| flags & 1 == 1) {
            12
        } else {
            4
        };
        if let Some(place) = bytes.get_mut(at..at + 3) {
            place.copy_from_slice(&self.sequence.to_be_bytes()[1..]);
        }
    }

    /// Changes bytes regardless of their meaning.
    fn change_bytes(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = self.random.below(bytes.len());
        match self.random.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.extend(self.random.bytes(300)),
            2 => bytes[at] = self.random.byte(),
            3 => {
                let other = self.original();
                bytes.truncate(at);
                bytes.extend_from_slice(&other[self.random.below(other.len())..]);
            }
            // The type and the length of the message.
            4 => *bytes.get_mut(1).unwrap_or(&mut 0) = 1 + self.random.byte() % 60,
            5 => *bytes.get_mut(3).unwrap_or(&mut 0) = self.random.byte(),
            _ => {
                for _ in 0..=self.random.below(8) {
                    let at = self.random.below(bytes.len());
                    bytes[at] ^= 1 << self.random.below(8);
                }
            }
        }
        if self.random.one_in(2) {
            set_length(bytes);
        }
    }

    /// Changes elements at any depth; afterwards all lengths are right, or only one is not.
    fn change_elements(&mut self, bytes: &mut Vec<u8>) {
        let start = header_length(bytes);
        let Some(mut elements) = bytes.get(start..).and_then(|body| parse(body, 0)) else {
            return self.change_bytes(bytes);
        };
        let group = self.descend(&mut elements);
        let mut donor = self.original();
        let donor = parse(&donor.split_off(header_length(&donor)), 0).unwrap_or_default();
        self.change_group(group, donor);
        bytes.truncate(start);
        write(&elements, bytes);
        set_length(bytes);
        if self.random.one_in(4) {
            self.wrong_length(bytes, start);
        }
    }

    /// Descends into a group, or stays.
    fn descend<'a>(&mut self, mut group: &'a mut Vec<Element>) -> &'a mut Vec<Element> {
        loop {
            let inner: Vec<usize> = (0..group.len())
                .filter(|&at| matches!(group[at].inside, Content::Elements(_)))
                .collect();
            if self.random.one_in(3) {
                return group;
            }
            let Some(&at) = self.random.pick(&inner) else {
                return group;
            };
            match &mut group[at].inside {
                Content::Elements(elements) => group = elements,
                Content::Bytes(_) => unreachable!("only groups were picked"),
            }
        }
    }

    fn change_group(&mut self, group: &mut Vec<Element>, donor: Vec<Element>) {
        let known = donor.into_iter().nth(self.random.below(6));
        if group.is_empty() {
            group.extend(known);
            return;
        }
        let at = self.random.below(group.len());
        match self.random.below(9) {
            0 => _ = group.remove(at),
            1 => {
                let copies = 1 + self.random.below(3);
                let copy = vec![group[at].clone(); copies];
                group.extend(copy);
            }
            2 => {
                let other = self.random.below(group.len());
                group.swap(at, other);
            }
            3 => group[at].ie = self.random.element(420),
            4 => group[at].ie = u16::from_be_bytes([self.random.byte(), self.random.byte()]),
            5 => group[at].inside = Content::Bytes(self.random.bytes(40)),
            6 => group.extend(known),
            7 => {
                let element = group.remove(at);
                let wrapped = Content::Elements(vec![element]);
                let ie = self.random.element(19);
                group.push(Element {
                    ie,
                    inside: wrapped,
                });
            }
            _ => self.change_value(&mut group[at]),
        }
    }

    fn change_value(&mut self, element: &mut Element) {
        let Content::Bytes(value) = &mut element.inside else {
            element.inside = Content::Elements(Vec::new());
            return;
        };
        match (value.len(), self.random.below(4)) {
            (0, _) | (_, 0) => value.extend(self.random.bytes(8)),
            (length, 1) => value.truncate(self.random.below(length)),
            (_, 2) => value.fill(if self.random.one_in(2) { 0xff } else { 0 }),
            (length, _) => value[self.random.below(length)] = self.random.byte(),
        }
    }

    /// Makes the length of a top-level element wrong.
    fn wrong_length(&mut self, bytes: &mut [u8], start: usize) {
        let tlvs = Tlvs::new(&bytes[start..]).filter_map(Result::ok);
        let places: Vec<usize> = tlvs.map(|tlv| start + tlv.offset).collect();
        let Some(&at) = self.random.pick(&places) else {
            return;
        };
        let before = u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]);
        let after = match self.random.below(4) {
            0 => 0,
            1 => u16::MAX,
            2 => before.wrapping_add(1),
            _ => before.wrapping_sub(1),
        };
        bytes[at + 2..at + 4].copy_from_slice(&after.to_be_bytes());
    }
}

/// The length of a message's header, according to its flags.
fn header_length(bytes: &[u8]) -> usize {
    let with_seid = bytes.first().is_some_and(|flags| flags & 1 == 1);
    if with_seid { 16 } else { 8 }.min(bytes.len())
}

/// Sets the length in the header to that of the datagram.
fn set_length(bytes: &mut [u8]) {
    let length = u16::try_from(bytes.len().saturating_sub(4)).unwrap_or(u16::MAX);
    if let Some(place) = bytes.get_mut(2..4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

fn parse(bytes: &[u8], depth: usize) -> Option<Vec<Element>> {
    let tlvs: Result<Vec<_>, _> = Tlvs::new(bytes).collect();
    let element = |tlv: strowger_pfcp::wire::Tlv<'_>| {
        let grouped = matches!(describe(tlv.ie), Some(Descriptor::Group(_))) && depth < 8;
        let inner = if grouped {
            parse(tlv.value, depth + 1)
        } else {
            None
        };
        let inside = inner.map_or_else(|| Content::Bytes(tlv.value.to_vec()), Content::Elements);
        let IeType(ie) = tlv.ie;
        Element { ie, inside }
    };
    Some(tlvs.ok()?.into_iter().map(element).collect())
}

fn write(elements: &[Element], out: &mut Vec<u8>) {
    for Element { ie, inside } in elements {
        out.extend_from_slice(&ie.to_be_bytes());
        let start = out.len();
        out.extend_from_slice(&[0; 2]);
        match inside {
            Content::Bytes(bytes) => out.extend_from_slice(bytes),
            Content::Elements(elements) => write(elements, out),
        }
        let length = u16::try_from(out.len() - start - 2).unwrap_or(u16::MAX);
        out[start..start + 2].copy_from_slice(&length.to_be_bytes());
    }
}
