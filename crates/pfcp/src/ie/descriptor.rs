//! Descriptions of elements and messages as data: [`describe`] returns that of an element type, and
//! [`MessageType::table`](crate::MessageType::table) that of a message.

use std::ops::RangeInclusive;

use crate::error::{Error, ErrorKind};
use crate::ie::condition::Conditions;
use crate::ie::{IeType, Release};
use crate::wire::{Part, Writer};

pub use super::describe::{canonical, describe};
pub use super::interfaces::Interfaces;
pub use super::list::ListItemKind;

/// The description of an element or a message, as data.
#[derive(Clone, Copy, Debug)]
pub enum Descriptor {
    /// An element with fields.
    Leaf(&'static Leaf),
    /// An element that consists of elements.
    Group(&'static Group),
}

/// The description of an element with fields.
#[derive(Debug)]
pub struct Leaf {
    /// Type of the element.
    pub ie: IeType,
    /// Minimum number of bytes of a value.
    pub min: usize,
    /// Number of bytes at the start that hold flags and other bit fields. Missing ones are read as
    /// zero.
    pub head: usize,
    /// The fields: those of the head first, then the others in wire order.
    pub fields: &'static [Field],
    /// Checks a value. Returns `true` if its fields describe it completely, without spare bits or
    /// trailing bytes.
    pub(crate) check: fn(&[u8]) -> Result<bool, ErrorKind>,
    /// Decodes a value and appends its fields encoded again.
    pub(crate) reencode: fn(&[u8], &mut Vec<u8>),
    /// The values that need no further check.
    pub(crate) fast_check: FastCheck,
}

/// A fast check of the values of an element by their length and first byte. A value that passes is
/// valid and completely described by its fields. All others go through [`Leaf::check`] and the
/// conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastCheck {
    bytes: u16,
    least: u8,
    most: u8,
}

impl FastCheck {
    /// Accepts no value. A value cannot have this length, because with its header it would exceed
    /// the longest message.
    pub(crate) const NONE: Self = Self {
        bytes: u16::MAX,
        least: 0,
        most: 0,
    };

    /// Accepts a group of any length.
    const GROUP: Self = Self {
        bytes: 0,
        least: 0,
        most: u8::MAX,
    };

    /// Accepts a number of `bytes` bytes, of which the lowest `width` bits are used.
    pub(crate) const fn number((bytes, width): (usize, u32)) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a number has 8 bytes at most"
        )]
        match (bytes, width) {
            (1, 0..8) => Self {
                bytes: 1,
                least: 0,
                most: (1 << width) - 1,
            },
            _ if bytes * 8 == width as usize => Self {
                bytes: bytes as u16,
                least: 0,
                most: u8::MAX,
            },
            _ => Self::NONE,
        }
    }

    /// Accepts a number of one byte that must be one of `values`, up to their first gap from zero.
    pub(crate) const fn named(values: &[u8]) -> Self {
        let mut next = 0;
        while next < values.len() && values[next] as usize == next {
            next += 1;
        }
        if next == 0 {
            return Self::NONE;
        }
        Self {
            bytes: 1,
            least: 0,
            most: values[next - 1],
        }
    }

    /// Accepts a single byte of flags, if `least` is 1 and the `known` flags of the first byte are
    /// its lowest bits.
    pub(crate) const fn flags(least: usize, known: u8) -> Self {
        if least == 1 && known & known.wrapping_add(1) == 0 {
            Self {
                bytes: 1,
                least: 0,
                most: known,
            }
        } else {
            Self::NONE
        }
    }

    /// Restricts the first byte to a range.
    pub(crate) const fn within(self, (least, most): (u8, u8)) -> Self {
        Self {
            bytes: self.bytes,
            least,
            most: if self.most < most { self.most } else { most },
        }
    }
}

/// A field of a [`Leaf`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in JSON and text.
    pub name: &'static str,
    /// The encoding of the field.
    pub kind: FieldKind,
    /// The condition for the presence of the field.
    pub when: FieldPresence,
    /// The release that introduced the field.
    pub since: Release,
    /// Returns the release that introduced a value, for fields with named values.
    pub values: Option<fn(u64) -> Release>,
}

/// The encoding of a field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FieldKind {
    /// Bits of the head, counted from bit 1 of the first byte, byte after byte. If there are more
    /// than eight, the lowest eight are the byte after the one that contains `shift`.
    Bits {
        /// The lowest bit.
        shift: u8,
        /// Number of bits; 1 is a flag.
        width: u32,
        /// The names of the values.
        names: Option<fn(u64) -> Option<&'static str>>,
    },
    /// An unsigned big-endian number.
    Number {
        /// Number of bytes on the wire.
        bytes: usize,
        /// Number of bits in use. The bits above are spare.
        width: u32,
        /// The names of the values.
        names: Option<fn(u64) -> Option<&'static str>>,
    },
    /// A signed big-endian number in two's complement.
    Signed {
        /// Number of bytes on the wire.
        bytes: usize,
    },
    /// Seconds since 1900 in four bytes.
    Time,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A MAC address.
    Mac,
    /// Bytes that are preferably text.
    Text(FieldExtent),
    /// Bytes without further structure.
    Bytes(FieldExtent),
    /// A domain name as labels.
    Labels(FieldExtent),
    /// Decimal digits, two per byte and low half first.
    Digits(FieldExtent),
    /// Several consecutive items of one kind.
    List(ListItemKind, FieldExtent),
}

/// The extent of a field of variable length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldExtent {
    /// Up to the end of the element.
    Rest,
    /// Up to one byte before the end of the element.
    RestButLast,
    /// Preceded by a length of one byte.
    Length8,
    /// Preceded by a length of two bytes.
    Length16,
    /// A fixed number of bytes.
    Fixed(u8),
    /// Preceded by a byte with the length of an IP address in the low bits and its version above: 0
    /// is IPv4, 1 is IPv6.
    Address,
    /// Preceded by the number of MAC addresses in one byte.
    MacAddresses,
    /// Preceded by the number of items in one byte. Each item has a length of two bytes.
    CountedItems,
    /// As many numbers of two bytes as the lowest four bits of the value specify.
    Counted,
}

/// The condition for the presence of a field.
#[derive(Clone, Copy, Debug)]
pub enum FieldPresence {
    /// The field is always present.
    Always,
    /// The field is present if a flag of the head is set, which has no other meaning.
    Flag {
        /// The name of the flag.
        name: &'static str,
        /// The bit of the flag, counted as in [`FieldKind::Bits`].
        shift: u8,
    },
    /// The field is present under a condition on the bits of the head.
    Head {
        /// The condition on the head, where bit 1 of the first byte is the lowest bit.
        holds: fn(u128) -> bool,
        /// The condition as it is written in the row.
        text: &'static str,
    },
    /// The field is present if bytes are left.
    IfBytesRemain,
}

/// The description of an element or a message that consists of elements.
#[derive(Debug)]
pub struct Group {
    /// The type of the element, or `None` for a message.
    pub ie: Option<IeType>,
    /// The table of TS 29.244 that lists the members.
    pub table: &'static str,
    /// The members in table order.
    pub members: &'static [Member],
    pub(crate) member_index: MemberIndex,
    pub(crate) required: [u64; 5],
    /// The interfaces on which at least one member is mandatory, which are those that use the
    /// group.
    pub(crate) used_on: Interfaces,
    /// The slots that are required on any interface.
    pub(crate) required_anywhere: u64,
    /// The further requirements that depend on the values of members.
    pub(crate) conditions: Conditions,
    /// Decodes the group and encodes it again.
    pub(crate) reencode: fn(Part<'_>, &mut Writer<'_>) -> Result<(), Error>,
}

/// The slot of an element that is not a member of the group.
pub(crate) const NO_SLOT: u8 = 255;

/// A hash table by IE type with the facts that a walk needs.
#[derive(Debug)]
pub(crate) struct MemberIndex {
    entries: [MemberEntry; 1 << INDEX_BITS],
    /// The multiplier of the hash, chosen for few collisions among the members.
    factor: u32,
}

/// Number of bits of an index into [`MemberIndex`].
const INDEX_BITS: u32 = 7;

/// The facts about one type in a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberEntry {
    /// The header of the values that need no further check, the smallest value of their first byte,
    /// and the size of the range above it. If there are no such values, the length in the header is
    /// one that no value has.
    head: u32,
    least: u8,
    span: u8,
    /// Twice the slot, plus one if the member may occur several times. Elements are in table order
    /// if each key is at least that of the previous element with its lowest bit set.
    pub(crate) key: u8,
    /// Number of low bits of the header that are ignored: those of the length if the element is a
    /// group.
    ignored_bits: u8,
}

impl MemberEntry {
    const NONE: Self = Self {
        head: u32::MAX,
        least: 0,
        span: 0,
        key: 0,
        ignored_bits: 0,
    };

    const fn of(member: &Member, slot: usize) -> Self {
        let (fast_check, ignored_bits) = match member.descriptor {
            Descriptor::Leaf(leaf) => (leaf.fast_check, 0),
            Descriptor::Group(_) => (FastCheck::GROUP, 16),
        };
        #[expect(clippy::cast_possible_truncation, reason = "at most 64 members")]
        Self {
            head: (member.ie.0 as u32) << 16 | fast_check.bytes as u32,
            least: fast_check.least,
            span: fast_check.most.saturating_sub(fast_check.least),
            key: (slot as u8) << 1 | member.many as u8,
            ignored_bits,
        }
    }

    /// Returns `true` if an element needs no further check, apart from the members of a group.
    #[inline]
    pub(crate) fn accepts(&self, head: u32, value: &[u8]) -> bool {
        (self.head ^ head).wrapping_shr(u32::from(self.ignored_bits)) == 0
            && value
                .first()
                .is_none_or(|first| first.wrapping_sub(self.least) <= self.span)
    }

    /// Returns the range of first bytes that need no further check.
    pub(crate) const fn range(&self) -> RangeInclusive<u8> {
        self.least..=self.least + self.span
    }

    /// Returns `true` if the element is a group.
    #[inline]
    pub(crate) const fn is_group(&self) -> bool {
        self.ignored_bits != 0
    }

    #[inline]
    pub(crate) const fn slot(&self) -> u8 {
        self.key >> 1
    }
}

impl MemberIndex {
    /// Searches for a multiplier with as few collisions as possible. Of colliding members the first
    /// one keeps the entry, and the others are found by [`Group::find`].
    const fn new(members: &[Member]) -> Self {
        let (mut best, mut most, mut factor, mut tries) = (0, 0, 0x9e37_79b1, 0);
        while tries < 64 && most < members.len() {
            let (mut taken, mut alone, mut slot) = (0u128, 0, 0);
            while slot < members.len() {
                let bit = 1 << Self::hash_slot((members[slot].ie.0 as u32) << 16, factor);
                alone += (taken & bit == 0) as usize;
                taken |= bit;
                slot += 1;
            }
            if alone > most {
                (best, most) = (factor, alone);
            }
            factor = factor.wrapping_mul(0x2c92_77b5).wrapping_add(2);
            tries += 1;
        }
        let mut entries = [MemberEntry::NONE; 1 << INDEX_BITS];
        let mut slot = members.len();
        while slot > 0 {
            slot -= 1;
            let entry = MemberEntry::of(&members[slot], slot);
            entries[Self::hash_slot(entry.head, best)] = entry;
        }
        Self {
            entries,
            factor: best,
        }
    }

    #[inline]
    const fn hash_slot(head: u32, factor: u32) -> usize {
        ((head >> 16).wrapping_mul(factor) >> (32 - INDEX_BITS)) as usize
    }

    /// Returns the row for the element with this header. The row may belong to another type.
    #[inline]
    pub(crate) const fn entry(&self, head: u32) -> &MemberEntry {
        &self.entries[Self::hash_slot(head, self.factor)]
    }
}

impl Group {
    pub(crate) const fn new(
        ie: Option<IeType>,
        table: &'static str,
        members: &'static [Member],
        reencode: fn(Part<'_>, &mut Writer<'_>) -> Result<(), Error>,
    ) -> Self {
        assert!(members.len() <= 64, "a group has more than 64 members");
        let mut required = [0u64; 5];
        let used_on = used_on(members, Release::R19);
        let mut slot = 0;
        while slot < members.len() {
            let member = &members[slot];
            assert!(
                matches!(find(members, member.ie), Some(first) if first == slot),
                "a group has two rows for one type"
            );
            let mut interface = 0;
            while interface < 5 {
                if member.required_in(used_on, Release::R19).0 >> interface & 1 == 1 {
                    required[interface] |= 1 << slot;
                }
                interface += 1;
            }
            slot += 1;
        }
        Self {
            ie,
            table,
            members,
            required,
            used_on,
            required_anywhere: required[0] | required[1] | required[2] | required[3] | required[4],
            conditions: Conditions::of(ie, members),
            member_index: MemberIndex::new(members),
            reencode,
        }
    }

    /// Returns the slots that must be filled on any of the interfaces, one bit each.
    pub(crate) fn required_by(&self, on: Interfaces) -> u64 {
        let mut slots = 0;
        for (interface, required) in self.required.iter().enumerate() {
            if on.0 >> interface & 1 == 1 {
                slots |= required;
            }
        }
        slots
    }

    /// Returns the interfaces on which a required slot is not among those that are filled. `filled`
    /// has one bit per slot.
    #[inline]
    pub(crate) const fn interfaces_lacking(&self, filled: u64) -> Interfaces {
        if self.required_anywhere & !filled == 0 {
            Interfaces::NONE
        } else {
            self.compute_interfaces_lacking(filled)
        }
    }

    const fn compute_interfaces_lacking(&self, filled: u64) -> Interfaces {
        let [a, b, c, d, e] = self.required;
        Interfaces(
            (a & !filled != 0) as u8
                | ((b & !filled != 0) as u8) << 1
                | ((c & !filled != 0) as u8) << 2
                | ((d & !filled != 0) as u8) << 3
                | ((e & !filled != 0) as u8) << 4,
        )
    }

    /// Returns the interfaces on which the group has a mandatory member in a release.
    #[inline]
    pub(crate) fn used_in(&self, release: Release) -> Interfaces {
        match release {
            Release::R19 => self.used_on,
            Release::R17 => used_on(self.members, release),
        }
    }

    /// Returns the interfaces on which a member is required in a release.
    pub(crate) fn interfaces_requiring(&self, member: &Member, release: Release) -> Interfaces {
        member.required_in(self.used_on, release)
    }

    /// Returns the slot and the row of a type, which the table must have.
    pub(crate) const fn row(&'static self, ie: IeType) -> (u8, &'static Member) {
        match self.find(ie) {
            Some(row) => row,
            None => panic!("the table has no such row"),
        }
    }

    /// Returns the slot and the row of a type.
    #[expect(clippy::cast_possible_truncation, reason = "at most 64 members")]
    pub(crate) const fn find(&self, ie: IeType) -> Option<(u8, &'static Member)> {
        match find(self.members, ie) {
            Some(slot) => Some((slot as u8, &self.members[slot])),
            None => None,
        }
    }

    /// Returns the slot and the row of the element with this header. The hash table finds nearly
    /// all of them, and the member list the others.
    #[inline]
    pub(crate) fn find_by_header(&self, head: u32) -> Option<(u8, &'static Member)> {
        let [high, low, ..] = head.to_be_bytes();
        let ie = IeType(u16::from_be_bytes([high, low]));
        let slot = self.member_index.entry(head).slot();
        match self.members.get(usize::from(slot)) {
            Some(member) if member.ie == ie => Some((slot, member)),
            _ => self.find(ie),
        }
    }

    /// Returns the description of the member with this slot.
    #[inline]
    pub(crate) fn member_descriptor(&self, slot: u8) -> Option<Descriptor> {
        self.members
            .get(usize::from(slot))
            .map(|member| member.descriptor)
    }

    /// Returns the member with this type.
    #[must_use]
    pub fn member(&self, ie: IeType) -> Option<&'static Member> {
        self.find(ie).map(|(_, member)| member)
    }
}

/// Returns the interfaces on which at least one member is mandatory in a release.
const fn used_on(members: &[Member], release: Release) -> Interfaces {
    let (mut used_on, mut slot) = (Interfaces::NONE, 0);
    while slot < members.len() {
        let member = &members[slot];
        if matches!(member.presence, Presence::Mandatory) {
            used_on = used_on.with(member.interfaces_in_release(release));
        }
        slot += 1;
    }
    used_on
}

/// Returns the index of a type in a table.
pub(crate) const fn find(members: &[Member], ie: IeType) -> Option<usize> {
    let mut slot = 0;
    while slot < members.len() {
        if members[slot].ie.0 == ie.0 {
            return Some(slot);
        }
        slot += 1;
    }
    None
}

/// A row of a [`Group`].
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Type of the element that the group contains.
    pub ie: IeType,
    /// The name in the table, if it differs from the name of the type.
    pub role: Option<&'static str>,
    /// The presence requirement of the member.
    pub presence: Presence,
    /// `true` if the member may occur several times.
    pub many: bool,
    /// The interfaces on which the member may occur.
    pub on: Interfaces,
    /// The interfaces in release 17, or none if that release does not have the member.
    pub on_r17: Interfaces,
    /// The description of the element.
    pub descriptor: Descriptor,
}

impl Member {
    /// Returns the interfaces on which the member is required in a group that is used on the
    /// interfaces `used_on`. On any other interface the group is interpreted as on those, so the
    /// members that are mandatory there are required.
    const fn required_in(&self, used_on: Interfaces, release: Release) -> Interfaces {
        let on = self.interfaces_in_release(release);
        if !matches!(self.presence, Presence::Mandatory) || on.is_empty() {
            return Interfaces::NONE;
        }
        on.with(Interfaces::ALL.without(used_on))
    }

    /// Returns the interfaces on which the member may occur in a release.
    #[must_use]
    pub const fn interfaces_in_release(&self, release: Release) -> Interfaces {
        match release {
            Release::R17 => self.on_r17,
            Release::R19 => self.on,
        }
    }
}

/// The presence requirement of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// The member must be present.
    Mandatory,
    /// The member must be present under conditions that the specification states.
    Conditional,
    /// The sender decides about the presence of the member.
    Optional,
}
