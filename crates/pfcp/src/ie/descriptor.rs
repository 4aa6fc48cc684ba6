//! What the specification says about elements and messages, as data: [`describe`] gives it for a
//! type of element, [`MessageType::table`](crate::MessageType::table) for a message.

use std::ops::RangeInclusive;

use crate::error::{Error, ErrorKind};
use crate::ie::condition::Conditions;
use crate::ie::{IeType, Release};
use crate::wire::{Part, Writer};

pub use super::describe::{canonical, describe};
pub use super::interfaces::Interfaces;
pub use super::list::Listed;

/// What the specification says about an element or a message, as data.
#[derive(Clone, Copy, Debug)]
pub enum Descriptor {
    /// An element with fields.
    Leaf(&'static Leaf),
    /// An element of elements.
    Group(&'static Group),
}

/// An element with fields.
#[derive(Debug)]
pub struct Leaf {
    /// The type.
    pub ie: IeType,
    /// The octets that a value has at least.
    pub min: usize,
    /// The octets at the start that hold flags and other bit fields; missing ones read as zero.
    pub head: usize,
    /// The fields: those of the head first, then one after another.
    pub fields: &'static [Field],
    /// Checks a value and says whether its fields tell it all (no spare bit, no octet more).
    pub(crate) check: fn(&[u8]) -> Result<bool, ErrorKind>,
    /// Appends what encoding the decoded fields gives.
    pub(crate) again: fn(&[u8], &mut Vec<u8>),
    /// The values that need no further check.
    pub(crate) quick: Quick,
}

/// The values of an element that are known to be right, and to say no more than its fields do, by
/// their length and first octet. All others are for [`Leaf::check`] and the conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quick {
    octets: u16,
    least: u8,
    most: u8,
}

impl Quick {
    /// Every value has to be looked at. No value is that long: with its header it would exceed
    /// the longest message.
    pub(crate) const NONE: Self = Self {
        octets: u16::MAX,
        least: 0,
        most: 0,
    };

    /// A group of any length.
    const GROUP: Self = Self {
        octets: 0,
        least: 0,
        most: u8::MAX,
    };

    /// A number of `octets`, of which the lowest `width` bits count.
    pub(crate) const fn number((octets, width): (usize, u32)) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a number has 8 octets at most"
        )]
        match (octets, width) {
            (1, 0..8) => Self {
                octets: 1,
                least: 0,
                most: (1 << width) - 1,
            },
            _ if octets * 8 == width as usize => Self {
                octets: octets as u16,
                least: 0,
                most: u8::MAX,
            },
            _ => Self::NONE,
        }
    }

    /// A number of one octet that has to be one of `values`.
    pub(crate) const fn named(values: &[u8]) -> Self {
        let mut next = 0;
        while next < values.len() && values[next] as usize == next {
            next += 1;
        }
        if next == 0 {
            return Self::NONE;
        }
        Self {
            octets: 1,
            least: 0,
            most: values[next - 1],
        }
    }

    /// Flags of one octet at least; `known` are those of the first.
    pub(crate) const fn flags(least: usize, known: u8) -> Self {
        if least == 1 && known & known.wrapping_add(1) == 0 {
            Self {
                octets: 1,
                least: 0,
                most: known,
            }
        } else {
            Self::NONE
        }
    }

    /// Leaves those values whose first octet is in a range.
    pub(crate) const fn within(self, (least, most): (u8, u8)) -> Self {
        Self {
            octets: self.octets,
            least,
            most: if self.most < most { self.most } else { most },
        }
    }
}

/// One field of a [`Leaf`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in JSON and text.
    pub name: &'static str,
    /// How it stands on the wire.
    pub kind: Kind,
    /// When it is there.
    pub when: When,
    /// The release that brought it.
    pub since: Release,
    /// The release that brought a value, for fields whose values have names.
    pub values: Option<fn(u64) -> Release>,
}

/// How a field stands on the wire.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Bits of the head, counted from bit 1 of the first octet, octet after octet. Of more than
    /// eight, the lowest eight are the octet after those from `shift` on.
    Bits {
        /// The lowest bit.
        shift: u8,
        /// How many bits; 1 is a flag.
        width: u32,
        /// Names of the values.
        names: Option<fn(u64) -> Option<&'static str>>,
    },
    /// An unsigned number, big endian.
    Number {
        /// Octets on the wire.
        octets: usize,
        /// The bits that count; those above are spare.
        width: u32,
        /// Names of the values.
        names: Option<fn(u64) -> Option<&'static str>>,
    },
    /// A signed number, big endian, two's complement.
    Signed {
        /// Octets on the wire.
        octets: usize,
    },
    /// Seconds since 1900, four octets.
    Time,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A MAC address.
    Mac,
    /// Octets that are text where they can be.
    Text(Span),
    /// Octets.
    Octets(Span),
    /// A domain name as labels.
    Labels(Span),
    /// Decimal digits, two in an octet, low half first.
    Digits(Span),
    /// Several things of a kind, one after another.
    List(Listed, Span),
}

/// Where a field of variable length ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// At the end of the element.
    Rest,
    /// One octet before the end of the element.
    RestButLast,
    /// After a length of one octet.
    Length8,
    /// After a length of two octets.
    Length16,
    /// After so many octets.
    Fixed(u8),
    /// After an octet with the length of an IP address below and its version above: 0 is
    /// IPv4, 1 is IPv6.
    Address,
    /// After a count of MAC addresses of one octet.
    MacAddresses,
    /// After as many numbers of two octets as the lowest four bits of the value say.
    Counted,
}

/// When a field is there.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// Always.
    Always,
    /// When a flag of the head is set that says nothing else.
    Flag {
        /// The name of the flag.
        name: &'static str,
        /// Its bit, counted as in [`Kind::Bits`].
        shift: u8,
    },
    /// When the bits of the head say so.
    Head {
        /// The condition on the head, bit 1 of the first octet lowest.
        holds: fn(u128) -> bool,
        /// The condition as it is written in the row.
        text: &'static str,
    },
    /// When octets are left.
    More,
}

/// An element or a message that consists of elements.
#[derive(Debug)]
pub struct Group {
    /// The type of the element; `None` for a message.
    pub ie: Option<IeType>,
    /// The table of TS 29.244 that lists the members.
    pub table: &'static str,
    /// The members in the order of the table.
    pub members: &'static [Member],
    pub(crate) rows: Rows,
    pub(crate) required: [u64; 5],
    /// The interfaces on which anything is mandatory: those that have the group.
    pub(crate) home: Interfaces,
    /// What is required on any interface.
    pub(crate) wanted: u64,
    /// What the values of members ask for besides.
    pub(crate) conditions: Conditions,
    /// Reads the group and writes it again.
    pub(crate) again: fn(Part<'_>, &mut Writer<'_>) -> Result<(), Error>,
}

/// What an element of no member has for a slot.
pub(crate) const NO_SLOT: u8 = 255;

/// What a walk asks about the type of an element, found by the type.
#[derive(Debug)]
pub(crate) struct Rows {
    rows: [Row; 1 << ROWS],
    /// What spreads the types of the members over the rows.
    factor: u32,
}

/// The bits of a place in [`Rows`].
const ROWS: u32 = 7;

/// What a group says about one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The header of those values that need no further check, the least that their first octet may
    /// be, and how much more. No value is as long as this header says for the others.
    head: u32,
    least: u8,
    span: u8,
    /// Twice the slot, and one more where there may be several: what follows in order has no
    /// lesser key than that of the last element with its lowest bit set.
    pub(crate) key: u8,
    /// What each octet of the length may be besides: anything if the element is a group.
    besides: u8,
}

impl Row {
    const NONE: Self = Self {
        head: u32::MAX,
        least: 0,
        span: 0,
        key: 0,
        besides: 0,
    };

    const fn of(member: &Member, slot: usize) -> Self {
        let (quick, besides) = match member.what {
            Descriptor::Leaf(leaf) => (leaf.quick, 0),
            Descriptor::Group(_) => (Quick::GROUP, u8::MAX),
        };
        #[expect(clippy::cast_possible_truncation, reason = "at most 64 members")]
        Self {
            head: (member.ie.0 as u32) << 16 | quick.octets as u32,
            least: quick.least,
            span: quick.most.saturating_sub(quick.least),
            key: (slot as u8) << 1 | member.many as u8,
            besides,
        }
    }

    /// Says that an element needs no further check, but for what a group consists of.
    #[inline]
    pub(crate) fn takes(&self, head: u32, value: &[u8]) -> bool {
        self.head ^ head <= u32::from(u16::from_ne_bytes([self.besides; 2]))
            && value
                .first()
                .is_none_or(|first| first.wrapping_sub(self.least) <= self.span)
    }

    /// The range that the first octet of a value is in that needs no further check.
    pub(crate) const fn range(&self) -> RangeInclusive<u8> {
        self.least..=self.least + self.span
    }

    /// Says that the element is a group.
    #[inline]
    pub(crate) const fn is_group(&self) -> bool {
        self.besides != 0
    }

    #[inline]
    pub(crate) const fn slot(&self) -> u8 {
        self.key >> 1
    }
}

impl Rows {
    /// Spreads the members so that as few as possible share a place; a place holds the first.
    const fn new(members: &[Member]) -> Self {
        let (mut best, mut most, mut factor, mut tries) = (0, 0, 0x9e37_79b1, 0);
        while tries < 64 && most < members.len() {
            let (mut taken, mut alone, mut slot) = (0u128, 0, 0);
            while slot < members.len() {
                let bit = 1 << Self::place((members[slot].ie.0 as u32) << 16, factor);
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
        let mut rows = [Row::NONE; 1 << ROWS];
        let mut slot = members.len();
        while slot > 0 {
            slot -= 1;
            let row = Row::of(&members[slot], slot);
            rows[Self::place(row.head, best)] = row;
        }
        Self { rows, factor: best }
    }

    #[inline]
    const fn place(head: u32, factor: u32) -> usize {
        ((head >> 16).wrapping_mul(factor) >> (32 - ROWS)) as usize
    }

    /// Returns the row that tells about the element with this header, if any does.
    #[inline]
    pub(crate) const fn of(&self, head: u32) -> &Row {
        &self.rows[Self::place(head, self.factor)]
    }
}

impl Group {
    pub(crate) const fn new(
        ie: Option<IeType>,
        table: &'static str,
        members: &'static [Member],
        again: fn(Part<'_>, &mut Writer<'_>) -> Result<(), Error>,
    ) -> Self {
        assert!(members.len() <= 64, "a group has more than 64 members");
        let mut required = [0u64; 5];
        let home = home(members, Release::R19);
        let mut slot = 0;
        while slot < members.len() {
            let member = &members[slot];
            assert!(
                matches!(find(members, member.ie), Some(first) if first == slot),
                "a group has two rows for one type"
            );
            let mut interface = 0;
            while interface < 5 {
                if member.required_in(home, Release::R19).0 >> interface & 1 == 1 {
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
            home,
            wanted: required[0] | required[1] | required[2] | required[3] | required[4],
            conditions: Conditions::of(ie, members),
            rows: Rows::new(members),
            again,
        }
    }

    /// Returns the slots that have to be filled on any of the interfaces, a bit each.
    pub(crate) fn required_by(&self, on: Interfaces) -> u64 {
        let mut slots = 0;
        for (interface, required) in self.required.iter().enumerate() {
            if on.0 >> interface & 1 == 1 {
                slots |= required;
            }
        }
        slots
    }

    /// Returns the interfaces on which a slot has to be filled that is none of those given, a bit
    /// each.
    #[inline]
    pub(crate) const fn lacking(&self, filled: u64) -> Interfaces {
        let [a, b, c, d, e] = self.required;
        Interfaces(
            (a & !filled != 0) as u8
                | ((b & !filled != 0) as u8) << 1
                | ((c & !filled != 0) as u8) << 2
                | ((d & !filled != 0) as u8) << 3
                | ((e & !filled != 0) as u8) << 4,
        )
    }

    /// Returns the interfaces on which a release has anything mandatory in the group.
    #[inline]
    pub(crate) fn home_in(&self, release: Release) -> Interfaces {
        match release {
            Release::R19 => self.home,
            Release::R17 => home(self.members, release),
        }
    }

    /// Returns the interfaces on which a release asks for a member.
    pub(crate) fn requiring(&self, member: &Member, release: Release) -> Interfaces {
        member.required_in(self.home, release)
    }

    /// Returns the slot and the row of a type that the table has.
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

    /// Returns what fills a slot.
    #[inline]
    pub(crate) fn what(&self, slot: u8) -> Option<Descriptor> {
        self.members
            .get(usize::from(slot))
            .map(|member| member.what)
    }

    /// Returns the member of a type.
    #[must_use]
    pub fn member(&self, ie: IeType) -> Option<&'static Member> {
        self.find(ie).map(|(_, member)| member)
    }
}

/// Returns the interfaces on which any member is mandatory in a release.
const fn home(members: &[Member], release: Release) -> Interfaces {
    let (mut home, mut slot) = (Interfaces::NONE, 0);
    while slot < members.len() {
        let member = &members[slot];
        if matches!(member.presence, Presence::Mandatory) {
            home = home.with(member.on_in(release));
        }
        slot += 1;
    }
    home
}

/// Returns the place of a type in a table.
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

/// One row of a [`Group`].
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The type.
    pub ie: IeType,
    /// The name that the table gives it, where that is not the name of the type.
    pub role: Option<&'static str>,
    /// Whether it has to be there.
    pub presence: Presence,
    /// Whether there may be several.
    pub many: bool,
    /// The interfaces on which it may occur.
    pub on: Interfaces,
    /// Those of release 17: none where that does not have the member.
    pub on_r17: Interfaces,
    /// What it consists of.
    pub what: Descriptor,
}

impl Member {
    /// Returns the interfaces on which a group at home on some has to have the member. A group on
    /// an interface that does not have it is read as what it is elsewhere, and is nothing without
    /// what it has to have there.
    const fn required_in(&self, home: Interfaces, release: Release) -> Interfaces {
        let on = self.on_in(release);
        if !matches!(self.presence, Presence::Mandatory) || on.is_empty() {
            return Interfaces::NONE;
        }
        on.with(Interfaces::ALL.without(home))
    }

    /// Returns the interfaces on which the member may occur in a release.
    #[must_use]
    pub const fn on_in(&self, release: Release) -> Interfaces {
        match release {
            Release::R17 => self.on_r17,
            Release::R19 => self.on,
        }
    }
}

/// Whether a member has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// Always.
    Mandatory,
    /// Under conditions of the specification.
    Conditional,
    /// As the sender likes.
    Optional,
}
