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
/// of a group stand side by side in it, after those of all groups that begin before.
#[derive(Clone, Debug, Default)]
pub struct Index {
    nodes: Vec<Node>,
    queue: Vec<Pending>,
}

/// Where an element stands and what it is in its group; its type and length are read where they
/// are, in the header before its value.
///
/// From the first octet on: where the value starts (17 bits), the flags (7 bits), the slot (8
/// bits), and of the elements of the group that this one is the first (16 bits) and how many (16
/// bits). As octets, so that a reader looks at the slot alone and a walk writes all at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node([u8; 8]);

/// A group whose elements are still to be walked.
#[derive(Clone, Copy, Debug)]
struct Pending {
    group: &'static Group,
    start: u32,
    node: u16,
    depth: u16,
}

/// The rows say all about the group: order, no unknown element, no spare bit, no octet more.
const PLAIN: u32 = 1 << 17;
/// A further element of a type that may occur once.
const REPEATED: u32 = 1 << 18;
/// What was handed in, without a header of its own.
const ROOT: u32 = 1 << 19;

/// The groups within groups that are walked; the tables of the specification need five.
pub(crate) const DEPTH: usize = 8;

impl Node {
    #[inline]
    const fn new(start: usize, slot: u8, flags: u32) -> Self {
        Self((start as u64 | flags as u64 | (slot as u64) << 24).to_le_bytes())
    }

    #[inline]
    const fn place(self) -> u32 {
        let [a, b, c, ..] = self.0;
        u32::from_le_bytes([a, b, c, 0])
    }

    #[inline]
    const fn start(self) -> usize {
        (self.place() & 0x1_ffff) as usize
    }

    #[inline]
    const fn slot(&self) -> u8 {
        self.0[3]
    }

    /// Puts the place into a node that has none.
    #[inline]
    const fn at(self, start: usize) -> Self {
        Self((u64::from_le_bytes(self.0) | start as u64).to_le_bytes())
    }

    /// Returns the nodes of the elements of a group.
    #[inline]
    fn below(self, nodes: &[Self]) -> &[Self] {
        let [.., a, b, c, d] = self.0;
        let (first, count) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let first = usize::from(first);
        nodes
            .get(first..first + usize::from(count))
            .unwrap_or_default()
    }

    /// Notes where the elements of a group are.
    #[inline]
    const fn hold(self, first: usize, count: usize, flags: u32) -> Self {
        let below = (first as u64) << 32 | (count as u64) << 48;
        Self((u64::from_le_bytes(self.0) | below | flags as u64).to_le_bytes())
    }

    /// Returns everything after the length of an element that has one.
    #[inline]
    fn value(self, octets: &[u8]) -> &[u8] {
        let at = self.start();
        &octets[at..at + length(octets, at)]
    }

    #[inline]
    const fn is(self, flag: u32) -> bool {
        self.place() & flag != 0
    }
}

impl Index {
    /// Makes an empty index.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Walks the elements of `octets[start..]` as members of `group`; says also for which
    /// interfaces nothing is missing or wrong.
    pub(crate) fn walk<'a>(
        &'a mut self,
        octets: &'a [u8],
        start: usize,
        group: &'static Group,
    ) -> Result<(Part<'a>, Interfaces), Error> {
        let fit = self.check(octets, start, group)?;
        Ok((self.root(octets, group), fit))
    }

    /// Borrows what was checked last.
    #[inline]
    pub(crate) fn root<'a>(&'a self, octets: &'a [u8], group: &'static Group) -> Part<'a> {
        Part {
            octets,
            nodes: &self.nodes,
            node: self.nodes.first().copied().unwrap_or_default(),
            what: Some(Descriptor::Group(group)),
            role: None,
        }
    }

    /// Finds and checks the elements of `octets[start..]`; says for which interfaces nothing is
    /// missing or wrong.
    pub(crate) fn check(
        &mut self,
        octets: &[u8],
        start: usize,
        group: &'static Group,
    ) -> Result<Interfaces, Error> {
        let have = octets.len() - start;
        if have > usize::from(u16::MAX) {
            return Err(Error::new(0, ErrorKind::TooLong { have }));
        }
        // The root, and elements of a header each.
        let most = 1 + have / 4;
        if self.nodes.len() < most {
            self.nodes.resize(most, Node::default());
        }
        self.nodes[0] = Node::new(start, NO_SLOT, ROOT);
        let mut walk = Walk {
            octets,
            nodes: &mut self.nodes,
            queue: &mut self.queue,
            fit: Interfaces::ALL,
        };
        walk.run(group, start)
            .map_err(|fault| fault.error(octets, start, group))?;
        Ok(walk.fit)
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
    /// Room for every element that the octets can hold.
    nodes: &'a mut [Node],
    /// The groups that were found, the first of them not walked.
    queue: &'a mut Vec<Pending>,
    /// The interfaces for which all that was seen is right.
    fit: Interfaces,
}

/// An element that was looked at closer.
struct Found {
    /// Its node without its place.
    node: Node,
    seen: Seen,
    /// What it consists of.
    inner: Option<&'static Group>,
}

/// What the elements of a group were so far.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The slots that are filled.
    slots: u64,
    /// The least key that is in order.
    floor: u8,
    /// Whether anything is not as the rows have it.
    odd: bool,
}

impl Walk<'_> {
    /// Walks the groups in the order in which they are found.
    fn run(&mut self, group: &'static Group, start: usize) -> Result<(), Fault> {
        let (mut group, mut start, mut end) = (group, start, self.octets.len());
        let (mut node, mut depth, mut next, mut walked) = (0, 0, 1, 0);
        self.queue.clear();
        loop {
            let first = next;
            let seen = self.group(group, start, end, &mut next, depth + 1)?;
            let flags = if seen.odd { 0 } else { PLAIN };
            if let Some(node) = self.nodes.get_mut(node) {
                *node = node.hold(first, next - first, flags);
            }
            if group.wanted & !seen.slots != 0 {
                self.lacks(group, seen.slots);
            }
            if group.conditions.may_be_unmet(seen.slots) {
                self.judge(group, seen.slots, first..next);
            }
            let Some(pending) = self.queue.get(walked) else {
                return Ok(());
            };
            walked += 1;
            (group, start, node) = (pending.group, pending.start as usize, pending.node.into());
            depth = pending.depth;
            end = start + length(self.octets, start);
            if usize::from(depth) > DEPTH {
                let kind = ErrorKind::Depth { limit: DEPTH };
                return Err(Fault::of(start, start, kind));
            }
        }
    }

    /// Walks one group, whose first node is `next`.
    #[inline]
    fn group(
        &mut self,
        group: &'static Group,
        start: usize,
        end: usize,
        next: &mut usize,
        depth: u16,
    ) -> Result<Seen, Fault> {
        let mut seen = Seen::default();
        let mut free = *next;
        let mut rest = &self.octets[start..end];
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            let head = u32::from_be_bytes(*head);
            let Some((value, after)) = tail.split_at_checked((head & 0xffff) as usize) else {
                break;
            };
            let at = end - tail.len();
            let row = group.rows.of(head);
            let node = if row.takes(head, value) && row.key >= seen.floor {
                if row.is_group()
                    && let Some(inner) = group.group(row.slot())
                {
                    self.queue.push(Pending::new(inner, at, free, depth));
                }
                seen.fill(row.key)
            } else {
                let found = self.closer(group, head, value, at, seen)?;
                if let Some(inner) = found.inner {
                    self.queue.push(Pending::new(inner, at, free, depth));
                }
                seen = found.seen;
                found.node
            };
            if let Some(place) = self.nodes.get_mut(free) {
                *place = node.at(at);
            }
            free += 1;
            rest = after;
        }
        if !rest.is_empty() {
            return Err(fault(start, end, rest));
        }
        *next = free;
        Ok(seen)
    }

    /// Looks at an element of which the row alone does not say that all is right.
    #[inline(never)]
    fn closer(
        &mut self,
        group: &'static Group,
        head: u32,
        value: &[u8],
        at: usize,
        mut seen: Seen,
    ) -> Result<Found, Fault> {
        let [high, low, ..] = head.to_be_bytes();
        let ie = IeType(u16::from_be_bytes([high, low]));
        let Some((slot, member)) = group.find(ie) else {
            if ie.is_vendor() && value.len() < 2 {
                let kind = ErrorKind::Enterprise { have: value.len() };
                return Err(Fault(Box::new((
                    at,
                    Error::new(at - 4, kind).within(ie, None),
                ))));
            }
            return Ok(Found::other(seen, 0));
        };
        let key = slot << 1 | u8::from(member.many);
        if key < seen.floor {
            if !member.many && seen.slots >> slot & 1 == 1 {
                return Ok(Found::other(seen, REPEATED));
            }
            seen.odd = true;
        }
        let inner = match member.what {
            Descriptor::Group(inner) => Some(inner),
            Descriptor::Leaf(leaf) => {
                seen.odd |= !self.leaf(leaf, value, at)?;
                None
            }
        };
        let floor = seen.floor;
        let node = seen.fill(key);
        seen.floor = seen.floor.max(floor);
        Ok(Found { node, seen, inner })
    }

    /// Checks a leaf; returns whether its fields say all about it.
    fn leaf(&mut self, leaf: &'static Leaf, value: &[u8], at: usize) -> Result<bool, Fault> {
        let plain = (leaf.check)(value).map_err(|kind| Fault::of(at, at, kind))?;
        if validate::is_judged(leaf.ie) && validate::incorrect(leaf.ie, Part::bare(value)).is_some()
        {
            self.fit = Interfaces::NONE;
        }
        Ok(plain)
    }

    /// Notes for which interfaces a group lacks what they ask for.
    #[inline]
    fn lacks(&mut self, group: &'static Group, slots: u64) {
        self.fit = self.fit.without(group.lacking(slots));
    }

    /// Notes whether a group lacks what its members ask for.
    #[inline(never)]
    fn judge(&mut self, group: &'static Group, slots: u64, members: Range<usize>) {
        let watch = group.conditions.watch;
        let watched = self.nodes[members]
            .iter()
            .find(|node| node.slot() == watch && watch != NO_SLOT)
            .map(|node| node.value(self.octets));
        let flags = condition::flags(watched, watch);
        if !group.conditions.are_met(slots, flags) {
            self.fit = Interfaces::NONE;
        }
    }
}

impl Seen {
    /// Notes an element that is in order; returns its node without its place.
    #[inline]
    const fn fill(&mut self, key: u8) -> Node {
        let slot = key >> 1;
        self.floor = key | 1;
        self.slots |= 1 << (slot & 63);
        Node::new(0, slot, 0)
    }
}

impl Found {
    /// An element that fills no row.
    const fn other(mut seen: Seen, flags: u32) -> Self {
        seen.odd = true;
        let node = Node::new(0, NO_SLOT, flags);
        let inner = None;
        Self { node, seen, inner }
    }
}

impl Pending {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "65539 octets hold fewer than 2^16 elements"
    )]
    const fn new(group: &'static Group, start: usize, node: usize, depth: u16) -> Self {
        Self {
            group,
            start: start as u32,
            node: node as u16,
            depth,
        }
    }
}

/// Reads the length before a value.
#[inline]
fn length(octets: &[u8], at: usize) -> usize {
    let length = octets[at - 2..].first_chunk();
    length.map_or(0, |length| usize::from(u16::from_be_bytes(*length)))
}

/// What stops a walk.
struct Fault(Box<(usize, Error)>);

impl Fault {
    /// Something in the value that starts at `value`.
    #[cold]
    fn of(value: usize, at: usize, kind: ErrorKind) -> Self {
        Self(Box::new((value, Error::new(at, kind))))
    }

    /// Adds the path from the group that starts at `start`.
    #[cold]
    fn error(self, octets: &[u8], start: usize, group: &'static Group) -> Error {
        let (value, error) = *self.0;
        let mut steps = Vec::new();
        let (mut start, mut end, mut group) = (start, octets.len(), group);
        while start < value {
            let mut tlvs = super::Tlvs::at(&octets[start..end], start).map_while(Result::ok);
            let mut before = Vec::new();
            let Some(tlv) = tlvs.find(|tlv| {
                before.push(tlv.ie);
                tlv.offset + 4 + tlv.value.len() >= value
            }) else {
                break;
            };
            before.pop();
            let Some(member) = group.member(tlv.ie) else {
                break;
            };
            let place = || before.iter().filter(|ie| **ie == tlv.ie).count();
            steps.push((tlv.ie, member.many.then(place)));
            let Descriptor::Group(inner) = member.what else {
                break;
            };
            (start, group) = (tlv.offset + 4, inner);
            end = start + tlv.value.len();
        }
        steps
            .into_iter()
            .rev()
            .fold(error, |error, (ie, index)| error.within(ie, index))
    }
}

/// Says what is wrong with the element that starts `rest` of a group from `start` to `end`.
#[cold]
fn fault(start: usize, end: usize, rest: &[u8]) -> Fault {
    let at = end - rest.len();
    let Some((head, tail)) = rest.split_first_chunk::<4>() else {
        return Fault::of(start, at, ErrorKind::ElementHeader { have: rest.len() });
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
    let error = Error::new(at, kind).within(ie, None);
    Fault(Box::new((start, error)))
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
    /// Borrows a value of which nothing else is known.
    #[inline]
    pub(crate) const fn bare(value: &'a [u8]) -> Self {
        Self {
            octets: value,
            nodes: &[],
            node: Node::new(0, NO_SLOT, ROOT),
            what: None,
            role: None,
        }
    }

    /// Returns the octets at the start of a checked value that has so many.
    #[inline]
    pub(crate) fn array<const N: usize>(&self) -> Result<[u8; N], ErrorKind> {
        let at = self.node.start();
        let octets = self.octets.get(at..at + N).and_then(<[u8]>::first_chunk);
        octets.copied().ok_or_else(|| ErrorKind::Length {
            have: self.raw().len(),
            need: N,
        })
    }

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
        self.node.below(self.nodes).iter()
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
