use std::mem;
use std::ops::Range;

use super::Tlvs;
use super::index::{DEPTH, Node, PLAIN, REPEATED, head, length};
use super::shape::{Mask, Shape, Shapes};
use crate::error::{Error, ErrorKind};
use crate::ie::condition;
use crate::ie::descriptor::{Descriptor, Group, Leaf, Member, NO_SLOT};
use crate::ie::{IeType, Interfaces};
use crate::validate::{self, Deviation};

/// One walk over the elements of a message.
pub(super) struct Walk<'a> {
    pub(super) octets: &'a [u8],
    /// Room for every element that the octets can hold.
    pub(super) nodes: &'a mut [Node],
    /// The groups that were found and have to be walked.
    pub(super) queue: &'a mut Vec<Pending>,
    /// What elements were like.
    pub(super) shapes: &'a mut Shapes,
    /// The first node that no shape has.
    pub(super) free: &'a mut usize,
    /// The interfaces for which all that was seen is right.
    pub(super) fit: Interfaces,
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
    /// Walks the elements and then those of each group among them; says for which interfaces
    /// nothing is missing or wrong.
    pub(super) fn run(mut self, group: &'static Group, start: usize) -> Result<Interfaces, Fault> {
        let first = *self.free;
        let mut next = first;
        self.queue.clear();
        let seen = self.outer(group, start, &mut next)?;
        self.close(group, seen, 0, start, first..next);
        for outer in 0..self.queue.len() {
            if let Some(outer) = self.queue.get(outer).copied() {
                self.inner(group, outer, start, &mut next)?;
            }
        }
        let have = self.octets.len() - start;
        if self.shapes.is_met_again(Shape::head_of(have)) {
            self.queue.clear();
            self.queue.push(Pending::new(group, start, 0, 0));
            let mask = self.mask(0, start..self.octets.len());
            let shape = Shape::whole(group, have, self.nodes[0].anywhere(), self.fit);
            self.shapes.note(shape, self.octets, &mask);
            *self.free = next;
        }
        Ok(self.fit)
    }

    /// Walks the elements of the whole, whose first node is `next`; what is like an element that
    /// was met before has its nodes.
    #[inline]
    fn outer(
        &mut self,
        group: &'static Group,
        start: usize,
        next: &mut usize,
    ) -> Result<Seen, Fault> {
        let mut seen = Seen::default();
        let (mut free, end) = (*next, self.octets.len());
        let mut rest = &self.octets[start..];
        let mut run: Option<Shape> = None;
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            let head = u32::from_be_bytes(*head);
            let Some((value, after)) = tail.split_at_checked((head & 0xffff) as usize) else {
                break;
            };
            let (at, ended) = (end - tail.len(), &self.octets[..end - after.len()]);
            let row = group.rows.of(head);
            let node = if let Some(like) = &run
                && like.head == head
                && like.key >= seen.floor
                && self.shapes.is_like(like, ended)
            {
                like.node
            } else if !row.is_group() && row.takes(head, value) && row.key >= seen.floor {
                seen.fill(row.key)
            } else if let Some(like) = self.shapes.find(group, head, ended)
                && like.key >= seen.floor
            {
                seen.fill(like.key);
                seen.odd |= like.odd;
                self.fit = self.fit.and(like.fit);
                run = Some(*like);
                like.node
            } else {
                let found = self.stranger(group, head, value, at, seen)?;
                if let Some(inner) = found.inner {
                    self.queue.push(Pending::new(inner, at, free, 1));
                }
                seen = found.seen;
                found.node
            };
            if let Some(place) = self.nodes.get_mut(free) {
                *place = node.at(at - start);
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

    /// Looks at an element of the whole, and notes what it is like if it is a leaf.
    #[inline(never)]
    fn stranger(
        &mut self,
        group: &'static Group,
        head: u32,
        value: &[u8],
        at: usize,
        seen: Seen,
    ) -> Result<Found, Fault> {
        let before = mem::replace(&mut self.fit, Interfaces::ALL);
        let mut found = self.closer(group, head, value, at, Seen { odd: false, ..seen })?;
        let (slot, in_order) = (found.node.slot(), found.seen.floor > seen.floor);
        if let Some(member) = group.members.get(usize::from(slot))
            && let Descriptor::Leaf(leaf) = member.what
            && in_order
            && self.shapes.is_met_again(head)
        {
            let end = at + value.len();
            let mut mask = Mask::of(at - 4..end);
            mask.leaf(leaf, at, end);
            let (row, odd) = ((group, key(slot, member)), found.seen.odd);
            let shape = Shape::member(row, head, found.node, odd, self.fit);
            self.shapes.note(shape, &self.octets[..end], &mask);
        }
        found.seen.odd |= seen.odd;
        self.fit = self.fit.and(before);
        Ok(found)
    }

    /// Walks a group of the whole with all that is in it, in the order in which its groups are
    /// found, unless it is like one that was met before.
    fn inner(
        &mut self,
        within: &'static Group,
        outer: Pending,
        root: usize,
        next: &mut usize,
    ) -> Result<(), Fault> {
        let at = outer.start as usize;
        let (head, ended) = (head(self.octets, at), at + length(self.octets, at));
        if let Some(like) = self.shapes.find(within, head, &self.octets[..ended]) {
            self.fit = self.fit.and(like.fit);
            if let Some(node) = self.nodes.get_mut(usize::from(outer.node)) {
                *node = like.node.at(at - root);
            }
            return Ok(());
        }
        let before = mem::replace(&mut self.fit, Interfaces::ALL);
        let bottom = self.queue.len();
        let mut walked = bottom;
        self.queue.push(outer);
        while let Some(pending) = self.queue.get(walked).copied() {
            walked += 1;
            let start = pending.start as usize;
            if usize::from(pending.depth) > DEPTH {
                let kind = ErrorKind::Depth { limit: DEPTH };
                return Err(Fault::of(start, start, kind));
            }
            let (group, end) = (pending.group, start + length(self.octets, start));
            let first = *next;
            let seen = self.group(group, start, end, next, pending.depth + 1)?;
            self.close(group, seen, pending.node.into(), start, first..*next);
        }
        self.queue.truncate(bottom);
        let node = self.nodes[usize::from(outer.node)].anywhere();
        if let Some(member) = within.members.get(usize::from(node.slot()))
            && self.shapes.is_met_again(head)
        {
            self.queue.push(outer);
            let mask = self.mask(bottom, at - 4..ended);
            let row = (within, key(node.slot(), member));
            let shape = Shape::member(row, head, node, false, self.fit);
            self.shapes.note(shape, &self.octets[..ended], &mask);
            *self.free = *next;
        }
        self.fit = self.fit.and(before);
        Ok(())
    }

    /// Says which octets decided what was found in the group that is last in the queue, which is
    /// at `bottom`, and in those below it; takes it from there.
    #[cold]
    fn mask(&mut self, bottom: usize, octets: Range<usize>) -> Mask {
        let mut mask = Mask::of(octets);
        let mut next = bottom;
        while let Some(pending) = self.queue.get(next).copied() {
            next += 1;
            let group = pending.group;
            let node = self.nodes[usize::from(pending.node)];
            let (first, count) = node.members();
            for place in first..first + count {
                let node = self.nodes[place].at(pending.start as usize);
                let (slot, at) = (node.slot(), node.start());
                let (head, end) = (head(self.octets, at), at + length(self.octets, at));
                let (row, value) = (group.rows.of(head), &self.octets[at..end]);
                match (group.what(slot), value.first()) {
                    (Some(Descriptor::Group(inner)), _) => {
                        self.queue.push(Pending::new(inner, at, place, 0));
                    }
                    (Some(Descriptor::Leaf(_)), Some(first))
                        if row.takes(head, value) && slot != group.conditions.watch =>
                    {
                        mask.range(*first, &row.range(), at, end);
                    }
                    // Flags that a condition looks at are among what decides.
                    (Some(Descriptor::Leaf(leaf)), _) => mask.leaf(leaf, at, end),
                    (None, _) => {}
                }
            }
        }
        self.queue.truncate(bottom);
        mask
    }

    /// Notes what the elements of a group are, and whether any is missing.
    #[inline]
    fn close(
        &mut self,
        group: &'static Group,
        seen: Seen,
        node: usize,
        start: usize,
        members: Range<usize>,
    ) {
        let flags = if seen.odd { 0 } else { PLAIN };
        if let Some(node) = self.nodes.get_mut(node) {
            *node = node.hold(members.start, members.len(), flags);
        }
        if group.wanted & !seen.slots != 0 {
            self.fit = self.fit.without(group.lacking(seen.slots));
        }
        if group.conditions.may_be_unmet(seen.slots) {
            self.judge(group, seen.slots, start, members);
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
                    && let Some(Descriptor::Group(inner)) = group.what(row.slot())
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
                *place = node.at(at - start);
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
        let key = key(slot, member);
        if key < seen.floor {
            if !member.many && seen.slots >> slot & 1 == 1 {
                return Ok(Found::other(seen, REPEATED));
            }
            seen.odd = true;
        }
        let inner = match member.what {
            Descriptor::Group(inner) => Some(inner),
            Descriptor::Leaf(leaf) => {
                match self.leaf(leaf, value, at) {
                    Ok(plain) => seen.odd |= !plain,
                    // Its fields cannot be read, but what is around it can.
                    Err(_) if Deviation::of_length(ie, value).is_some() => {
                        self.fit = Interfaces::NONE;
                        return Ok(Found::other(seen, 0));
                    }
                    Err(fault) => return Err(fault),
                }
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
        if validate::incorrect(leaf.ie, value).is_some() {
            self.fit = Interfaces::NONE;
        }
        Ok(plain)
    }

    /// Notes whether a group lacks what its members ask for.
    #[inline(never)]
    fn judge(&mut self, group: &'static Group, slots: u64, start: usize, members: Range<usize>) {
        let watch = group.conditions.watch;
        let watched = self.nodes[members]
            .iter()
            .find(|node| node.slot() == watch && watch != NO_SLOT)
            .map(|node| node.at(start).value(self.octets));
        let flags = condition::flags(watched, watch);
        if !group.conditions.are_met(slots, flags) {
            self.fit = Interfaces::NONE;
        }
    }
}

/// What orders the members of a group.
fn key(slot: u8, member: &Member) -> u8 {
    slot << 1 | u8::from(member.many)
}

impl Seen {
    /// Notes an element that is in order; returns its node without its place.
    #[inline]
    fn fill(&mut self, key: u8) -> Node {
        let slot = key >> 1;
        self.floor = (slot << 1) + 1;
        self.slots |= 1 << (slot & 63);
        Node::new(0, slot, 0)
    }
}

impl Found {
    /// An element that fills no row.
    fn other(mut seen: Seen, flags: u32) -> Self {
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
    fn new(group: &'static Group, start: usize, node: usize, depth: u16) -> Self {
        Self {
            group,
            start: start as u32,
            node: node as u16,
            depth,
        }
    }
}

/// A group whose elements are still to be walked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    group: &'static Group,
    start: u32,
    node: u16,
    depth: u16,
}

/// What stops a walk.
pub(super) struct Fault(Box<(usize, Error)>);

impl Fault {
    /// Something in the value that starts at `value`.
    #[cold]
    fn of(value: usize, at: usize, kind: ErrorKind) -> Self {
        Self(Box::new((value, Error::new(at, kind))))
    }

    /// Adds the path from the group that starts at `start`.
    #[cold]
    pub(super) fn error(self, octets: &[u8], start: usize, group: &'static Group) -> Error {
        let (value, error) = *self.0;
        let mut steps = Vec::new();
        let (mut start, mut end, mut group) = (start, octets.len(), group);
        while start < value {
            let mut tlvs = Tlvs::at(&octets[start..end], start).map_while(Result::ok);
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
    let have = tail.len();
    let kind = ErrorKind::Overrun { have, declared };
    let error = Error::new(at, kind).within(ie, None);
    Fault(Box::new((start, error)))
}
