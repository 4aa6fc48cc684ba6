use std::ops::Range;
use std::slice;

use crate::error::{Error, ErrorKind};
use crate::ie::condition;
use crate::ie::descriptor::{Descriptor, Group, Leaf, Member, NO_SLOT};
use crate::ie::{IeType, Interfaces};
use crate::validate;

/// The elements of one message at every depth, found and checked in one walk.
///
/// An index is a buffer: use it again for the next message, and nothing is allocated. The elements
/// of a group stand side by side in it, after those of the groups around it.
#[derive(Clone, Debug, Default)]
pub struct Index {
    nodes: Vec<Node>,
}

/// Where an element stands and what it is in its group; its type and length are read where they
/// are, in the header before its value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node {
    /// Where the value starts (17 bits), the slot (8 bits), the flags (7 bits).
    place: u32,
    /// The elements of the group that this one is.
    first: u16,
    count: u16,
}

/// The rows say all about the group: order, no unknown element, no spare bit, no octet more.
const PLAIN: u32 = 1 << 25;
/// A further element of a type that may occur once.
const REPEATED: u32 = 1 << 26;
/// What was handed in, without a header of its own.
const ROOT: u32 = 1 << 27;

/// The groups within groups that are walked; the tables of the specification need five.
pub(crate) const DEPTH: usize = 8;

impl Node {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a message has at most 65539 octets"
    )]
    const fn new(start: usize, slot: u8, flags: u32) -> Self {
        Self {
            place: start as u32 | (slot as u32) << 17 | flags,
            first: 0,
            count: 0,
        }
    }

    #[inline]
    const fn start(self) -> usize {
        (self.place & 0x1_ffff) as usize
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a slot has 8 bits")]
    const fn slot(self) -> u8 {
        (self.place >> 17) as u8
    }

    /// Returns everything after the length of an element that has one.
    #[inline]
    fn value(self, octets: &[u8]) -> &[u8] {
        let at = self.start();
        &octets[at..at + length(octets, at)]
    }

    #[inline]
    const fn is(self, flag: u32) -> bool {
        self.place & flag != 0
    }

    /// Notes that the nodes from `first` up to `next` stand below.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "65539 octets hold fewer than 2^16 elements"
    )]
    const fn hold(&mut self, first: usize, next: usize, plain: bool) {
        self.first = first as u16;
        self.count = (next - first) as u16;
        if plain {
            self.place |= PLAIN;
        }
    }
}

impl Index {
    /// Makes an empty index.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Walks the elements of `octets[start..]` as members of `group`; says also for which
    /// interfaces nothing is missing or wrong.
    pub(crate) fn walk<'a>(
        &'a mut self,
        octets: &'a [u8],
        start: usize,
        group: &'static Group,
    ) -> Result<(Part<'a>, Interfaces), Error> {
        // An element takes a header at least.
        let most = (octets.len() - start) / 4;
        if self.nodes.len() < most {
            self.nodes.resize(most, Node::default());
        }
        let mut walk = Walk {
            octets,
            nodes: &mut self.nodes,
            next: 0,
            fit: Interfaces::ALL,
        };
        let mut node = Node::new(start, NO_SLOT, ROOT);
        let (next, plain) = walk.group(group, start, octets.len(), 0)?;
        node.hold(0, next, plain);
        let fit = walk.fit;
        let part = Part {
            octets,
            nodes: &self.nodes,
            node,
            what: Some(Descriptor::Group(group)),
            role: None,
        };
        Ok((part, fit))
    }

    /// Checks one value.
    pub(crate) fn leaf<'a>(octets: &'a [u8], leaf: &'static Leaf) -> Result<Part<'a>, Error> {
        (leaf.check)(octets).map_err(|kind| Error::new(0, kind))?;
        Ok(Part {
            octets,
            nodes: &[],
            node: Node::new(0, NO_SLOT, ROOT),
            what: Some(Descriptor::Leaf(leaf)),
            role: None,
        })
    }
}

struct Walk<'a> {
    octets: &'a [u8],
    /// Room for every element that the octets can hold; those before `next` are in use.
    nodes: &'a mut [Node],
    next: usize,
    /// The interfaces for which all that was seen is right.
    fit: Interfaces,
}

impl Walk<'_> {
    /// Walks one group; returns where its nodes end, and whether the rows say all about it.
    fn group(
        &mut self,
        group: &'static Group,
        start: usize,
        end: usize,
        depth: usize,
    ) -> Result<(usize, bool), Error> {
        // The slots that are filled, and whether anything is not as the rows have it.
        let (mut seen, mut odd) = (0u64, 0u64);
        let first = self.next;
        let mut rest = &self.octets[start..end];
        let mut free = self.nodes[first..].iter_mut();
        let room = free.len();
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            let [high, low, length @ ..] = *head;
            let ie = IeType(u16::from_be_bytes([high, low]));
            let length = usize::from(u16::from_be_bytes(length));
            let Some((value, after)) = tail.split_at_checked(length) else {
                break;
            };
            let at = end - tail.len();
            let slot = group.slot(ie);
            let Some(quick) = group.quick.get(usize::from(slot)) else {
                if ie.is_vendor() && length < 2 {
                    break;
                }
                put(&mut free, Node::new(at, NO_SLOT, 0));
                odd = 1;
                rest = after;
                continue;
            };
            let bit = 1u64 << (slot & 63);
            if seen & bit & group.once != 0 {
                put(&mut free, Node::new(at, NO_SLOT, REPEATED));
                odd = 1;
                rest = after;
                continue;
            }
            // A slot above this one was filled before.
            odd |= seen >> (slot & 63) >> 1;
            seen |= bit;
            put(&mut free, Node::new(at, slot, 0));
            rest = after;
            if !quick.takes(value) && group.nested & bit == 0 {
                let member = &group.members[usize::from(slot)];
                let (plain, fit) = leaf(self.octets, member, at, value)
                    .map_err(|error| within(self.octets, error, member, start, at))?;
                odd |= u64::from(!plain);
                self.fit = self.fit.and(fit);
            }
        }
        if !rest.is_empty() {
            return Err(fault(end, rest));
        }
        let next = first + (room - free.len());
        self.next = next;
        if group.wanted & !seen != 0 || group.conditions.may_be_unmet(seen) {
            self.judge(group, seen, &(first..next));
        }
        if group.nested & seen != 0 {
            self.below(group, start, first..next, depth)?;
        }
        Ok((next, odd == 0))
    }

    /// Walks the groups among the members of a group.
    #[inline(never)]
    fn below(
        &mut self,
        group: &'static Group,
        start: usize,
        members: Range<usize>,
        depth: usize,
    ) -> Result<(), Error> {
        for index in members {
            let node = self.nodes[index];
            let Some(member) = group.members.get(usize::from(node.slot())) else {
                continue;
            };
            let Descriptor::Group(inner) = member.what else {
                continue;
            };
            let (at, first) = (node.start(), self.next);
            let end = at + length(self.octets, at);
            let walked = if depth == DEPTH {
                Err(Error::new(at, ErrorKind::Depth { limit: DEPTH }))
            } else {
                self.group(inner, at, end, depth + 1)
            };
            let (next, plain) =
                walked.map_err(|error| within(self.octets, error, member, start, at))?;
            self.nodes[index].hold(first, next, plain);
        }
        Ok(())
    }

    /// Notes for which interfaces a group lacks what it should have.
    #[inline(never)]
    fn judge(&mut self, group: &'static Group, seen: u64, members: &Range<usize>) {
        let watch = group.conditions.watch;
        let watched = self.nodes[members.clone()]
            .iter()
            .find(|node| node.slot() == watch && watch != NO_SLOT)
            .map(|node| node.value(self.octets));
        if !group
            .conditions
            .are_met(seen, condition::flags(watched, watch))
        {
            self.fit = Interfaces::NONE;
        }
        if group.wanted & !seen != 0 {
            for (on, required) in Interfaces::ALL.iter().zip(group.required) {
                if required & !seen != 0 {
                    self.fit = self.fit.without(on);
                }
            }
        }
    }
}

/// Adds a member to the path of an error, with its place where there may be several.
#[cold]
fn within(octets: &[u8], error: Error, member: &Member, start: usize, value: usize) -> Error {
    let index = member.many.then(|| {
        super::Tlvs::new(&octets[start..value - 4])
            .filter(|tlv| tlv.as_ref().is_ok_and(|tlv| tlv.ie == member.ie))
            .count()
    });
    error.within(member.ie, index)
}

#[inline]
fn put(free: &mut slice::IterMut<'_, Node>, node: Node) {
    if let Some(next) = free.next() {
        *next = node;
    }
}

/// Checks a leaf; returns whether its fields say all about it, and for which interfaces its value
/// is right.
#[inline(never)]
fn leaf(
    octets: &[u8],
    member: &'static Member,
    at: usize,
    value: &[u8],
) -> Result<(bool, Interfaces), Error> {
    let Descriptor::Leaf(leaf) = member.what else {
        return Ok((true, Interfaces::ALL));
    };
    let plain = (leaf.check)(value).map_err(|kind| Error::new(at, kind))?;
    let part = Part {
        octets,
        nodes: &[],
        node: Node::new(at, NO_SLOT, 0),
        what: Some(member.what),
        role: Some(member),
    };
    let fit = match validate::incorrect(part) {
        Some(_) => Interfaces::NONE,
        None => Interfaces::ALL,
    };
    Ok((plain, fit))
}

/// Reads the length before a value.
#[inline]
fn length(octets: &[u8], at: usize) -> usize {
    let length = octets[at - 2..].first_chunk();
    length.map_or(0, |length| usize::from(u16::from_be_bytes(*length)))
}

/// Says what is wrong with the element that starts `rest` of a group that ends at `end`.
#[cold]
fn fault(end: usize, rest: &[u8]) -> Error {
    let at = end - rest.len();
    let Some((head, tail)) = rest.split_first_chunk::<4>() else {
        return Error::new(at, ErrorKind::ElementHeader { have: rest.len() });
    };
    let ie = IeType(u16::from_be_bytes([head[0], head[1]]));
    let declared = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let kind = if declared > tail.len() {
        ErrorKind::Overrun {
            have: tail.len(),
            declared,
        }
    } else {
        ErrorKind::Enterprise { have: declared }
    };
    Error::new(at, kind).within(ie, None)
}

/// One element of a checked message, with those below it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    octets: &'a [u8],
    /// The nodes of the whole message.
    nodes: &'a [Node],
    node: Node,
    what: Option<Descriptor>,
    role: Option<&'static Member>,
}

impl<'a> Part<'a> {
    /// Returns the type.
    #[must_use]
    #[inline]
    pub fn ie(&self) -> IeType {
        if self.node.is(ROOT) {
            return match self.what {
                Some(Descriptor::Group(group)) => group.ie.unwrap_or(IeType::RESERVED),
                Some(Descriptor::Leaf(leaf)) => leaf.ie,
                None => IeType::RESERVED,
            };
        }
        let head = self.octets[self.offset() - 4..].first_chunk();
        head.map_or(IeType::RESERVED, |ie| IeType(u16::from_be_bytes(*ie)))
    }

    /// Returns the value, without the enterprise number of a vendor's element.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        let value = self.raw();
        if self.ie().is_vendor() {
            value.get(2..).unwrap_or_default()
        } else {
            value
        }
    }

    /// Returns the enterprise number of a vendor's element.
    #[must_use]
    pub fn enterprise(&self) -> Option<u16> {
        if !self.ie().is_vendor() {
            return None;
        }
        self.raw()
            .first_chunk()
            .map(|number| u16::from_be_bytes(*number))
    }

    /// Returns everything after the length.
    #[inline]
    pub(crate) fn raw(&self) -> &'a [u8] {
        if self.node.is(ROOT) {
            &self.octets[self.node.start()..]
        } else {
            self.node.value(self.octets)
        }
    }

    /// Returns where the value starts in the octets that were handed in.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.node.start()
    }

    /// Returns what the specification says about it; nothing for an element that the group does
    /// not have.
    #[must_use]
    pub fn descriptor(&self) -> Option<Descriptor> {
        self.what
    }

    /// Returns the row of the group that the element belongs to.
    #[must_use]
    pub fn member(&self) -> Option<&'static Member> {
        self.role
    }

    /// Says that an element of this type stood before it in the group, which has only one.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.node.is(REPEATED)
    }

    /// Says that the rows tell all about the group.
    pub(crate) fn is_plain(&self) -> bool {
        self.node.is(PLAIN)
    }

    #[inline]
    pub(crate) fn slot(&self) -> u8 {
        self.node.slot()
    }

    /// The nodes below.
    #[inline]
    fn below(&self) -> slice::Iter<'a, Node> {
        let first = usize::from(self.node.first);
        let below = self.nodes.get(first..first + usize::from(self.node.count));
        below.unwrap_or_default().iter()
    }

    /// Walks the elements of a group in the order of the wire.
    #[must_use]
    #[inline]
    pub fn parts(&self) -> Parts<'a> {
        let members = match self.what {
            Some(Descriptor::Group(group)) => group.members,
            _ => &[],
        };
        Parts {
            octets: self.octets,
            nodes: self.nodes,
            below: self.below(),
            members,
        }
    }

    /// Returns the first element of a type.
    #[must_use]
    pub fn find(&self, ie: IeType) -> Option<Self> {
        self.parts().find(|part| part.ie() == ie)
    }

    /// Walks the elements that fill a row of the group's table.
    #[inline]
    pub(crate) fn filling(&self, role: &'static Member, slot: u8) -> Filling<'a> {
        Filling {
            octets: self.octets,
            nodes: self.nodes,
            below: self.below(),
            role,
            slot,
        }
    }

    /// Adds this element to the path of an error, given the group that it stands in.
    #[cold]
    pub(crate) fn blame(&self, error: Error, container: Part<'_>) -> Error {
        let many = self.role.is_some_and(|member| member.many);
        let before = |part: &Part<'_>| part.ie() == self.ie() && part.offset() < self.offset();
        error.within(
            self.ie(),
            many.then(|| container.parts().filter(before).count()),
        )
    }
}

/// The elements of a group; see [`Part::parts`].
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    octets: &'a [u8],
    nodes: &'a [Node],
    below: slice::Iter<'a, Node>,
    members: &'static [Member],
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    #[inline]
    fn next(&mut self) -> Option<Part<'a>> {
        let node = *self.below.next()?;
        let role = self.members.get(usize::from(node.slot()));
        Some(Part {
            octets: self.octets,
            nodes: self.nodes,
            node,
            what: role.map(|member| member.what),
            role,
        })
    }
}

/// The elements that fill one row of a group's table.
#[derive(Clone, Debug)]
pub(crate) struct Filling<'a> {
    octets: &'a [u8],
    nodes: &'a [Node],
    below: slice::Iter<'a, Node>,
    role: &'static Member,
    slot: u8,
}

impl<'a> Iterator for Filling<'a> {
    type Item = Part<'a>;

    #[inline]
    fn next(&mut self) -> Option<Part<'a>> {
        let slot = self.slot;
        let node = *self.below.find(|node| node.slot() == slot)?;
        Some(Part {
            octets: self.octets,
            nodes: self.nodes,
            node,
            what: Some(self.role.what),
            role: Some(self.role),
        })
    }
}
