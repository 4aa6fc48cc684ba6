//! Values generated from the descriptors alone: every leaf, every group, every message.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use strowger_pfcp::ie::descriptor::{
    Descriptor, FieldExtent, FieldKind, FieldPresence, Group, Leaf, ListItemKind, Presence,
    canonical, describe,
};
use strowger_pfcp::{IeType, MessageType};

use crate::bytes::{node_message, session_message, tlv};

/// Choices, byte by byte; zeros when they are used up.
pub(crate) struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
    /// If set, texts look as if people had written them.
    readable: bool,
}

impl<'a> Choices<'a> {
    /// Takes the bytes as they come.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
            readable: false,
        }
    }

    /// Makes texts of letters, names of labels and numbers of digits.
    pub(crate) fn readable(bytes: &'a [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
            readable: true,
        }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// A length that is short most of the time.
    fn length(&mut self) -> u8 {
        self.byte() % 9
    }

    fn letters(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| b'a' + self.byte() % 26).collect()
    }

    fn labels(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..=self.byte() % 3 {
            let length = 1 + self.length();
            bytes.push(length);
            bytes.extend(self.letters(usize::from(length)));
        }
        bytes
    }

    /// The digits of a number with 15 of them, two in a byte.
    fn digits(&mut self) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..8)
            .map(|_| self.byte() % 10 + 16 * (self.byte() % 10))
            .collect();
        bytes[7] |= 0xf0;
        bytes
    }
}

/// Bytes that look random and are the same in every run.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_be_bytes()[3]
        })
        .collect()
}

/// Makes bytes with a format that the specification defines and no row describes.
fn sensible(ie: IeType, field: &str, choices: &mut Choices<'_>) -> Option<Vec<u8>> {
    let bytes = match (ie, field) {
        (IeType::MAC_ADDRESSES_DETECTED | IeType::MAC_ADDRESSES_REMOVED, "c_tag" | "s_tag") => {
            3 * usize::from(choices.byte() & 1)
        }
        (IeType::DL_BUFFERING_SUGGESTED_PACKET_COUNT, _) => 1 + usize::from(choices.byte() & 1),
        (IeType::LNS_ADDRESS, _) | (IeType::TRACE_INFORMATION, "trace_collection_entity") => {
            [4, 16][usize::from(choices.byte() & 1)]
        }
        (IeType::REMOTE_GTPU_PEER, "destination_interface") => {
            return Some(vec![choices.byte() & 0xf]);
        }
        (IeType::PMF_CONTROL_INFORMATION, "qfis") => {
            let count = usize::from(choices.length());
            let bytes = choices.bytes(count);
            return Some(bytes.iter().map(|byte| byte & 0x3f).collect());
        }
        _ => return None,
    };
    Some(choices.bytes(bytes))
}

/// Makes the bytes of a list of texts.
fn texts(field: &str, choices: &mut Choices<'_>) -> Vec<u8> {
    // Each domain name is followed by its protocol.
    let each = if field.ends_with("protocol") { 2 } else { 1 };
    let texts = (0..each * (choices.byte() % 3)).flat_map(|_| {
        let length = 1 + choices.length();
        [vec![0, length], choices.letters(usize::from(length))].concat()
    });
    texts.collect()
}

/// Makes the bytes of a list of byte strings, after their count.
fn counted(choices: &mut Choices<'_>) -> Vec<u8> {
    let count = choices.byte() % 3;
    let each = (0..count).flat_map(|_| {
        let length = choices.length();
        [vec![0, length], choices.bytes(usize::from(length))].concat()
    });
    let each: Vec<u8> = each.collect();
    [vec![count], each].concat()
}

fn span(
    kind: FieldKind,
    span: FieldExtent,
    value: Option<Vec<u8>>,
    choices: &mut Choices<'_>,
) -> Vec<u8> {
    let length = match span {
        FieldExtent::Fixed(bytes) => return choices.bytes(usize::from(bytes)),
        FieldExtent::RestButLast
        | FieldExtent::Rest
        | FieldExtent::Length8
        | FieldExtent::Length16 => choices.length(),
        FieldExtent::Address => [4, 16][usize::from(choices.byte() & 1)],
        FieldExtent::MacAddresses => 6 * (choices.byte() & 3),
        // It is present already, with a count of its own if it has one.
        FieldExtent::Counted | FieldExtent::CountedItems => 0,
    };
    let value = match kind {
        _ if value.is_some() => value.unwrap_or_default(),
        FieldKind::Text(_) if choices.readable => choices.letters(1 + usize::from(length)),
        FieldKind::Labels(_) if choices.readable => choices.labels(),
        FieldKind::Digits(_) if choices.readable => choices.digits(),
        _ => choices.bytes(usize::from(length)),
    };
    let length = u8::try_from(value.len()).expect("short");
    let before = match span {
        FieldExtent::Length8 => vec![length],
        FieldExtent::Length16 => vec![0, length],
        FieldExtent::Address if length == 16 => vec![0x50],
        FieldExtent::Address => vec![4],
        FieldExtent::MacAddresses => vec![length / 6],
        _ => Vec::new(),
    };
    [before, value].concat()
}

/// Makes a well-formed value: any bits of the head, then the fields that they announce.
pub(crate) fn leaf(leaf: &Leaf, choices: &mut Choices<'_>) -> Vec<u8> {
    let head = choices.bytes(leaf.head);
    leaf_after(leaf, head, choices)
}

/// Makes a well-formed value after a head.
fn leaf_after(leaf: &Leaf, mut value: Vec<u8>, choices: &mut Choices<'_>) -> Vec<u8> {
    let mut head = [0; 16];
    head[..leaf.head].copy_from_slice(&value);
    let head = u128::from_le_bytes(head);
    let mut more = true;
    for field in leaf.fields {
        let there = match field.when {
            FieldPresence::Always => true,
            FieldPresence::Flag { shift, .. } => head >> shift & 1 == 1,
            FieldPresence::Head { holds, .. } => holds(head),
            // Both lengths are present, even for an absent tag.
            FieldPresence::IfBytesRemain if choices.readable && field.name.ends_with("_tag") => {
                true
            }
            FieldPresence::IfBytesRemain => {
                more &= choices.byte() & 1 == 1;
                more
            }
        };
        if there {
            value.extend(match field.kind {
                FieldKind::Number { bytes, .. } | FieldKind::Signed { bytes } => {
                    choices.bytes(bytes)
                }
                FieldKind::Time | FieldKind::Ipv4 => choices.bytes(4),
                FieldKind::Ipv6 => choices.bytes(16),
                FieldKind::Mac => choices.bytes(6),
                FieldKind::Text(at)
                | FieldKind::Bytes(at)
                | FieldKind::Labels(at)
                | FieldKind::Digits(at)
                | FieldKind::List(_, at) => {
                    let sensible = choices
                        .readable
                        .then(|| sensible(leaf.ie, field.name, choices));
                    let listed = match (field.kind, at) {
                        (_, FieldExtent::Counted) => {
                            Some(choices.bytes(2 * usize::from(value[0] & 0xf)))
                        }
                        (FieldKind::List(ListItemKind::Text, _), _) => {
                            Some(texts(field.name, choices))
                        }
                        (_, FieldExtent::CountedItems) => Some(counted(choices)),
                        _ => None,
                    };
                    span(
                        field.kind,
                        at,
                        listed.or_else(|| sensible.flatten()),
                        choices,
                    )
                }
                _ => Vec::new(),
            });
        }
    }
    value
}

/// Makes values of a leaf: each bit of its head alone, none and all of them, each number of the
/// head, then some at random.
pub(crate) fn leaf_variety(what: &Leaf, seed: u64) -> Vec<Vec<u8>> {
    let bits = 8 * what.head;
    let mut heads: Vec<u128> = (0..bits).map(|bit| 1 << bit).collect();
    if bits > 0 {
        heads.extend([0, u128::MAX]);
    }
    for field in what.fields {
        if let FieldKind::Bits { shift, width, .. } = field.kind
            && width > 1
        {
            heads.extend((0..1 << width.min(4)).map(|value: u128| value << shift));
        }
    }
    let mut values = Vec::new();
    for (place, head) in (0..).zip(heads) {
        let bytes = noise(seed + place, 256);
        let head = head.to_le_bytes()[..what.head].to_vec();
        values.push(leaf_after(what, head, &mut Choices::readable(&bytes)));
    }
    for place in 0..8 {
        let bytes = noise(!seed - place, 256);
        values.push(leaf(what, &mut Choices::readable(&bytes)));
    }
    values
}

/// Number of optional members that a group gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// As the choices decide.
    Some,
    /// None.
    Least,
}

/// Makes the members of a table: the mandatory ones, and some of the others.
pub(crate) fn group(table: &Group, choices: &mut Choices<'_>) -> Vec<u8> {
    group_of(table, &leaf, choices)
}

/// Makes the members of a table, with leaves made by the caller.
pub(crate) fn group_of(table: &Group, leaf: Leaves<'_>, choices: &mut Choices<'_>) -> Vec<u8> {
    members(table, Fill::Some, &[], leaf, choices)
}

/// A function that makes the leaves of a group.
type Leaves<'a> = &'a dyn Fn(&Leaf, &mut Choices<'_>) -> Vec<u8>;

/// Makes the members of a table, and those on `way`: each type is a member of the one before.
fn members(
    table: &Group,
    fill: Fill,
    way: &[IeType],
    leaf: Leaves<'_>,
    choices: &mut Choices<'_>,
) -> Vec<u8> {
    let mut members = Vec::new();
    for member in table.members {
        let wanted = match fill {
            Fill::Some => choices.byte(),
            Fill::Least => 0,
        };
        let mandatory = member.presence == Presence::Mandatory || way.first() == Some(&member.ie);
        let count = match (mandatory, member.many) {
            (true, false) => 1,
            (true, true) => 1 + wanted % 2,
            (false, true) => wanted % 3,
            (false, false) => wanted % 2,
        };
        for _ in 0..count {
            let value = match member.descriptor {
                Descriptor::Leaf(what) => leaf(what, choices),
                Descriptor::Group(what) => match way.split_first() {
                    Some((next, rest)) if *next == member.ie => {
                        let fill = if rest.is_empty() { Fill::Some } else { fill };
                        self::members(what, fill, rest, leaf, choices)
                    }
                    _ => self::members(what, fill, &[], leaf, choices),
                },
            };
            members.push(tlv(member.ie.0, &value));
        }
    }
    if !members.is_empty() && fill == Fill::Some {
        let start = usize::from(choices.byte()) % members.len();
        members.rotate_left(start);
    }
    members.concat()
}

/// Makes a message of any of its members.
pub(crate) fn message(message: MessageType, choices: &mut Choices<'_>) -> Vec<u8> {
    message_of(message, &leaf, choices)
}

/// Makes a message of any of its members, with leaves made by the caller.
pub(crate) fn message_of(
    message: MessageType,
    leaf: Leaves<'_>,
    choices: &mut Choices<'_>,
) -> Vec<u8> {
    let table = message.table().expect("a table");
    framed(message, &members(table, Fill::Some, &[], leaf, choices))
}

/// Makes a message with its mandatory members, and a group on a path through its members.
pub(crate) fn message_with(
    message: MessageType,
    way: &[IeType],
    leaf: Leaves<'_>,
    choices: &mut Choices<'_>,
) -> Vec<u8> {
    let table = message.table().expect("a table");
    framed(message, &members(table, Fill::Least, way, leaf, choices))
}

/// The shortest value of zeros that an element may have.
pub(crate) fn zeros(ie: u16) -> Vec<u8> {
    let zeros = [0; 64];
    let fits =
        |bytes: &usize| canonical(IeType(ie), &zeros[..*bytes]).is_some_and(|value| value.is_ok());
    zeros[..(0..64).find(fits).unwrap_or(0)].to_vec()
}

/// Puts the header before the elements of a message.
pub(crate) fn framed(message: MessageType, body: &[u8]) -> Vec<u8> {
    if message.is_session() {
        session_message(message.0, body)
    } else {
        node_message(message.0, body)
    }
}

/// Every leaf that a table or the registry knows.
pub(crate) fn leaves() -> BTreeMap<IeType, &'static Leaf> {
    let known = IeType::ALL.iter().filter_map(|ie| match describe(*ie) {
        Some(Descriptor::Leaf(leaf)) => Some((*ie, leaf)),
        _ => None,
    });
    known.collect()
}

/// Every group with a message that may contain it and the shortest path to it.
pub(crate) fn groups() -> BTreeMap<IeType, (MessageType, Vec<IeType>)> {
    let mut found = BTreeMap::new();
    let mut next: Vec<(MessageType, &'static Group, Vec<IeType>)> = MessageType::ALL
        .iter()
        .filter_map(|message| Some((*message, message.table()?, Vec::new())))
        .collect();
    while !next.is_empty() {
        for (message, table, way) in std::mem::take(&mut next) {
            for member in table.members {
                let Descriptor::Group(inner) = member.descriptor else {
                    continue;
                };
                if let Entry::Vacant(free) = found.entry(member.ie) {
                    let way = [&way[..], &[member.ie]].concat();
                    free.insert((message, way.clone()));
                    next.push((message, inner, way));
                }
            }
        }
    }
    found
}

/// Every table: the message, the path to a group with it, and the table.
pub(crate) fn tables() -> impl Iterator<Item = (MessageType, Vec<IeType>, &'static Group)> {
    let messages = MessageType::ALL.iter().filter_map(|message| {
        let table = message.table()?;
        Some((*message, Vec::new(), table))
    });
    let groups = groups().into_iter().filter_map(|(_, (message, way))| {
        let table = way.iter().try_fold(message.table()?, |table, ie| {
            match table.member(*ie)?.descriptor {
                Descriptor::Group(inner) => Some(inner),
                Descriptor::Leaf(_) => None,
            }
        })?;
        Some((message, way, table))
    });
    messages.chain(groups)
}
