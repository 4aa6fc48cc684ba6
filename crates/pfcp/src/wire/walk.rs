//! The walk over the elements of a message, which fills an [`Index`](super::Index).
//!
//! Data: `nodes` is one array for everything. Node 0 is the root. The nodes before `free` belong to
//! shapes of earlier messages and are only read; those after it belong to this message. The
//! elements of a group are adjacent in the array, so groups wait in `queue` and are walked
//! breadth-first, one top-level group at a time: a depth-first walk would put the members of one
//! group between the elements of another.
//!
//! States of a top-level element: like the one before (nothing to record), accepted by its row
//! alone, like a known shape (it takes over the nodes of the shape), or examined. Only a group that
//! is not like a known one is walked. Below the top level no shapes are looked up, because a shape
//! always covers a whole top-level element.
//!
//! Invariants:
//!
//! - A node holds its position relative to the value of its group, so the nodes below a shape are
//!   right for each element of that shape, wherever it is.
//! - `SeenElements::floor` never falls within a group: an element with a lower key is out of order
//!   or a repetition.
//! - `valid_on` only shrinks. Where the result of one element is to be stored, it starts again from
//!   all interfaces, and the former value is intersected afterwards.
//! - A missing or unknown element and a forbidden value do not end the walk: they are recorded, and
//!   [`validate`](crate::validate()) finds them again, with their paths. Only bytes whose
//!   boundaries or fields cannot be read end it, and nesting deeper than the tables have.
//!
//! Cost: linear in the number of elements, with one table access for each, and no allocation once
//! the buffers have grown. An element of a known shape costs a comparison of its bytes, sixteen at
//! a time. The path of an error is found by a second walk, so that the first one need not track it.

use std::mem;
use std::ops::Range;

use super::Tlvs;
use super::index::{DEPTH, IndexNode, PLAIN, REPEATED, head, length};
use super::shape::{ByteMask, ElementShape, ShapeCache};
use crate::error::{Error, ErrorKind};
use crate::ie::condition;
use crate::ie::descriptor::{Descriptor, Group, Leaf, Member, NO_SLOT};
use crate::ie::{IeType, Interfaces};
use crate::validate::{self, Deviation};

/// A walk over the elements of a message.
pub(super) struct IndexWalk<'a> {
    pub(super) bytes: &'a [u8],
    /// The nodes, with space for every element that the bytes can contain.
    pub(super) nodes: &'a mut [IndexNode],
    /// The groups that were found and are still to be walked.
    pub(super) queue: &'a mut Vec<PendingGroup>,
    /// The shapes of known elements.
    pub(super) shapes: &'a mut ShapeCache,
    /// The first node that does not belong to a shape.
    pub(super) free: &'a mut usize,
    /// The interfaces on which everything seen so far is valid.
    pub(super) valid_on: Interfaces,
}

/// An element after a closer look.
struct ExaminedElement {
    /// The node without its position.
    node: IndexNode,
    seen: SeenElements,
    /// The table of its members, if it is a group.
    inner: Option<&'static Group>,
}

/// The elements of a group seen so far.
#[derive(Clone, Copy, Default)]
struct SeenElements {
    /// The slots that are filled.
    slots: u64,
    /// The smallest key that keeps the elements in table order.
    floor: u8,
    /// `true` if anything is not as the tables describe it.
    irregular: bool,
}

impl IndexWalk<'_> {
    /// Walks the top-level elements, and then those of each group among them. Returns the
    /// interfaces on which nothing is missing or wrong.
    pub(super) fn run(
        mut self,
        group: &'static Group,
        start: usize,
    ) -> Result<Interfaces, WalkError> {
        let first = *self.free;
        let mut next = first;
        self.queue.clear();
        let seen = self.walk_top_level(group, start, &mut next)?;
        self.close(group, seen, 0, start, first..next);
        for outer in 0..self.queue.len() {
            // `walk_below` removes what it adds to the queue, so the top-level groups keep their
            // indices.
            if let Some(outer) = self.queue.get(outer).copied() {
                self.walk_below(group, outer, start, &mut next)?;
            }
        }
        // Peers repeat whole messages with other numbers. One comparison then replaces the entire
        // walk.
        let have = self.bytes.len() - start;
        if self
            .shapes
            .is_worth_storing(ElementShape::message_pseudo_header(have))
        {
            self.queue.clear();
            self.queue.push(PendingGroup::new(group, start, 0, 0));
            let mask = self.mask(0, start..self.bytes.len());
            let shape =
                ElementShape::message(group, have, self.nodes[0].without_position(), self.valid_on);
            self.shapes.store(shape, self.bytes, &mask);
            // The shape refers to the nodes below it, so later walks must not overwrite them.
            *self.free = next;
        }
        Ok(self.valid_on)
    }

    /// Walks the top-level elements, whose first node is `next`. An element like a known one takes
    /// over its nodes.
    #[inline]
    fn walk_top_level(
        &mut self,
        group: &'static Group,
        start: usize,
        next: &mut usize,
    ) -> Result<SeenElements, WalkError> {
        let mut seen = SeenElements::default();
        // Local copies stay in registers; `next` is written once, at the end.
        let (mut free, end) = (*next, self.bytes.len());
        let mut rest = &self.bytes[start..];
        let mut run: Option<ElementShape> = None;
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            let head = u32::from_be_bytes(*head);
            let Some((value, after)) = tail.split_at_checked((head & 0xffff) as usize) else {
                break;
            };
            // A shape is compared backwards from the end of an element, so the bytes up to that end
            // are needed.
            let (at, ended) = (end - tail.len(), &self.bytes[..end - after.len()]);
            let entry = group.member_index.entry(head);
            let node = if let Some(shape) = &run
                && shape.head == head
                && shape.key >= seen.floor
                && self.shapes.matches(shape, ended)
            {
                // Peers send similar elements in a row. This one fills the same slot with the same
                // result as the one before, so there is nothing to record.
                shape.node
            } else if !entry.is_group() && entry.accepts(head, value) && entry.key >= seen.floor {
                // A leaf that its length and first byte decide. Looking for a shape would cost
                // more. Groups are accepted by their type alone, so they are left to the next
                // branch.
                seen.fill(entry.key)
            } else if let Some(shape) = self.shapes.find(group, head, ended)
                && shape.key >= seen.floor
            {
                // The key was compared too: a shape describes an element in table order, and not
                // one that is out of order.
                seen.fill(shape.key);
                seen.irregular |= shape.irregular;
                self.valid_on = self.valid_on.and(shape.valid_on);
                run = Some(*shape);
                shape.node
            } else {
                // Its members are walked later, when all elements of this level have their nodes.
                let found = self.examine_top_level(group, head, value, at, seen)?;
                if let Some(inner) = found.inner {
                    self.queue.push(PendingGroup::new(inner, at, free, 1));
                }
                seen = found.seen;
                found.node
            };
            // There is a node for every four bytes, so this one exists; `get_mut` only avoids a
            // panic branch.
            if let Some(place) = self.nodes.get_mut(free) {
                *place = node.at(at - start);
            }
            free += 1;
            rest = after;
        }
        // Either the header is incomplete or the value is. The difference matters only for the
        // error.
        if !rest.is_empty() {
            return Err(truncation_error(start, end, rest));
        }
        *next = free;
        Ok(seen)
    }

    /// Examines a top-level element, and stores its shape if it is a leaf.
    // Not inlined, so that the loops around the common cases stay small; also below.
    #[inline(never)]
    fn examine_top_level(
        &mut self,
        group: &'static Group,
        head: u32,
        value: &[u8],
        at: usize,
        seen: SeenElements,
    ) -> Result<ExaminedElement, WalkError> {
        // A shape holds the result of this element alone, whatever came before it in this message.
        let before = mem::replace(&mut self.valid_on, Interfaces::ALL);
        let mut found = self.examine(
            group,
            head,
            value,
            at,
            SeenElements {
                irregular: false,
                ..seen
            },
        )?;
        // Out of order, the result depends on the elements before and not only on these bytes. A
        // further occurrence does not raise the floor either; the first one of a later message is
        // stored instead.
        let (slot, in_order) = (found.node.slot(), found.seen.floor > seen.floor);
        if let Some(member) = group.members.get(usize::from(slot))
            && let Descriptor::Leaf(leaf) = member.descriptor
            && in_order
            && self.shapes.is_worth_storing(head)
        {
            let end = at + value.len();
            // A group is stored by `walk_below`, once its members are known.
            let mut mask = ByteMask::of(at - 4..end);
            mask.leaf(leaf, at, end);
            let (row, irregular) = ((group, key(slot, member)), found.seen.irregular);
            let shape = ElementShape::member(row, head, found.node, irregular, self.valid_on);
            self.shapes.store(shape, &self.bytes[..end], &mask);
        }
        found.seen.irregular |= seen.irregular;
        self.valid_on = self.valid_on.and(before);
        Ok(found)
    }

    /// Walks a top-level group with everything in it, in breadth-first order, unless it is like a
    /// known one.
    fn walk_below(
        &mut self,
        within: &'static Group,
        outer: PendingGroup,
        root: usize,
        next: &mut usize,
    ) -> Result<(), WalkError> {
        let at = outer.start as usize;
        let (head, ended) = (head(self.bytes, at), at + length(self.bytes, at));
        // The shape may have been stored a moment ago, for an earlier rule of this message. The
        // slot and the order were settled on the top level, so the key is not compared again.
        if let Some(shape) = self.shapes.find(within, head, &self.bytes[..ended]) {
            self.valid_on = self.valid_on.and(shape.valid_on);
            if let Some(node) = self.nodes.get_mut(usize::from(outer.node)) {
                *node = shape.node.at(at - root);
            }
            return Ok(());
        }
        // As for a leaf: the shape must not inherit faults of other elements.
        let before = mem::replace(&mut self.valid_on, Interfaces::ALL);
        let bottom = self.queue.len();
        let mut walked = bottom;
        self.queue.push(outer);
        while let Some(pending) = self.queue.get(walked).copied() {
            walked += 1;
            let start = pending.start as usize;
            // The walk does not recurse, but its readers do; this bounds their stack.
            if usize::from(pending.depth) > DEPTH {
                let kind = ErrorKind::Depth { limit: DEPTH };
                return Err(WalkError::of(start, start, kind));
            }
            let (group, end) = (pending.group, start + length(self.bytes, start));
            let first = *next;
            let seen = self.walk_group(group, start, end, next, pending.depth + 1)?;
            self.close(group, seen, pending.node.into(), start, first..*next);
        }
        self.queue.truncate(bottom);
        let node = self.nodes[usize::from(outer.node)].without_position();
        if let Some(member) = within.members.get(usize::from(node.slot()))
            && self.shapes.is_worth_storing(head)
        {
            self.queue.push(outer);
            let mask = self.mask(bottom, at - 4..ended);
            let row = (within, key(node.slot(), member));
            // A group is never irregular for its container: its node says itself whether it is
            // plain.
            let shape = ElementShape::member(row, head, node, false, self.valid_on);
            self.shapes.store(shape, &self.bytes[..ended], &mask);
            // Keeps the nodes below the shape. Nodes of this message before them that no shape
            // refers to are kept as well, until `ShapeCache::trim` drops everything.
            *self.free = *next;
        }
        self.valid_on = self.valid_on.and(before);
        Ok(())
    }

    /// Returns a mask of the bytes that decided the result for the last group in the queue, at
    /// `bottom`, and for the groups below it. Removes the group from the queue.
    #[cold]
    fn mask(&mut self, bottom: usize, bytes: Range<usize>) -> ByteMask {
        let mut mask = ByteMask::of(bytes);
        // The walk has truncated its queue, so the groups are collected again, from the nodes this
        // time.
        let mut next = bottom;
        while let Some(pending) = self.queue.get(next).copied() {
            next += 1;
            let group = pending.group;
            let node = self.nodes[usize::from(pending.node)];
            let (first, count) = node.members();
            for place in first..first + count {
                let node = self.nodes[place].at(pending.start as usize);
                let (slot, at) = (node.slot(), node.start());
                let (head, end) = (head(self.bytes, at), at + length(self.bytes, at));
                let (entry, value) = (group.member_index.entry(head), &self.bytes[at..end]);
                match (group.member_descriptor(slot), value.first()) {
                    (Some(Descriptor::Group(inner)), _) => {
                        // Nothing compares the depth here.
                        self.queue.push(PendingGroup::new(inner, at, place, 0));
                    }
                    (Some(Descriptor::Leaf(_)), Some(first))
                        if entry.accepts(head, value) && slot != group.conditions.watch =>
                    {
                        mask.range(*first, &entry.range(), at, end);
                    }
                    // Flags that a condition depends on are among the deciding bytes.
                    (Some(Descriptor::Leaf(leaf)), _) => mask.leaf(leaf, at, end),
                    // Unknown and repeated elements are compared byte by byte. They are rare, and a
                    // deviation among them depends on its bytes.
                    (None, _) => {}
                }
            }
        }
        self.queue.truncate(bottom);
        mask
    }

    /// Records the elements of a group, and checks whether any is missing.
    #[inline]
    fn close(
        &mut self,
        group: &'static Group,
        seen: SeenElements,
        node: usize,
        start: usize,
        members: Range<usize>,
    ) {
        let flags = if seen.irregular { 0 } else { PLAIN };
        if let Some(node) = self.nodes.get_mut(node) {
            // The bits are added with OR, which is right because the node is new and has no members
            // yet.
            *node = node.with_members(members.start, members.len(), flags);
        }
        self.valid_on = self.valid_on.without(group.interfaces_lacking(seen.slots));
        // Most groups have no conditions; only the others pay for the search of the flags.
        if group.conditions.may_be_unmet(seen.slots) {
            self.check_conditions(group, seen.slots, start, members);
        }
    }

    /// Walks one group, whose first node is `next`.
    #[inline]
    fn walk_group(
        &mut self,
        group: &'static Group,
        start: usize,
        end: usize,
        next: &mut usize,
        depth: u16,
    ) -> Result<SeenElements, WalkError> {
        let mut seen = SeenElements::default();
        // The same loop as on the top level, without shapes.
        let mut free = *next;
        let mut rest = &self.bytes[start..end];
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            let head = u32::from_be_bytes(*head);
            let Some((value, after)) = tail.split_at_checked((head & 0xffff) as usize) else {
                break;
            };
            let at = end - tail.len();
            let entry = group.member_index.entry(head);
            let node = if entry.accepts(head, value) && entry.key >= seen.floor {
                if entry.is_group()
                    && let Some(Descriptor::Group(inner)) = group.member_descriptor(entry.slot())
                {
                    self.queue.push(PendingGroup::new(inner, at, free, depth));
                }
                seen.fill(entry.key)
            } else {
                let found = self.examine(group, head, value, at, seen)?;
                if let Some(inner) = found.inner {
                    self.queue.push(PendingGroup::new(inner, at, free, depth));
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
            return Err(truncation_error(start, end, rest));
        }
        *next = free;
        Ok(seen)
    }

    /// Examines an element that its row alone does not accept.
    #[inline(never)]
    fn examine(
        &mut self,
        group: &'static Group,
        head: u32,
        value: &[u8],
        at: usize,
        mut seen: SeenElements,
    ) -> Result<ExaminedElement, WalkError> {
        let [high, low, ..] = head.to_be_bytes();
        let ie = IeType(u16::from_be_bytes([high, low]));
        let Some((slot, member)) = group.find_by_header(head) else {
            // The Enterprise ID is part of the value, so a shorter length is wrong (TS 29.244
            // §8.1.1).
            if ie.is_vendor() && value.len() < 2 {
                let kind = ErrorKind::Enterprise { have: value.len() };
                return Err(WalkError(Box::new((
                    at,
                    Error::new(at - 4, kind).within(ie, None),
                ))));
            }
            // An unknown element is ignored (§7.6.9). It keeps a node, so that it is displayed and
            // relayed.
            return Ok(ExaminedElement::without_slot(seen, 0));
        };
        let key = key(slot, member);
        if key < seen.floor {
            // A filled slot has raised the floor above its key, so every repetition comes through
            // here. The first occurrence counts and the others are ignored (§7.6.10).
            if !member.many && seen.slots >> slot & 1 == 1 {
                return Ok(ExaminedElement::without_slot(seen, REPEATED));
            }
            seen.irregular = true;
        }
        let inner = match member.descriptor {
            Descriptor::Group(inner) => Some(inner),
            Descriptor::Leaf(leaf) => {
                match self.check_leaf(leaf, value, at) {
                    Ok(plain) => seen.irregular |= !plain,
                    // The fields cannot be decoded, but the elements around it can.
                    Err(_) if Deviation::of_length(ie, value).is_some() => {
                        self.valid_on = Interfaces::NONE;
                        return Ok(ExaminedElement::without_slot(seen, 0));
                    }
                    Err(error) => return Err(error),
                }
                None
            }
        };
        // An element out of order fills its slot, but must not lower the floor for those that
        // follow.
        let floor = seen.floor;
        let node = seen.fill(key);
        seen.floor = seen.floor.max(floor);
        Ok(ExaminedElement { node, seen, inner })
    }

    /// Checks a leaf. Returns `true` if its fields describe it completely.
    fn check_leaf(
        &mut self,
        leaf: &'static Leaf,
        value: &[u8],
        at: usize,
    ) -> Result<bool, WalkError> {
        let plain = (leaf.check)(value).map_err(|kind| WalkError::of(at, at, kind))?;
        if validate::incorrect(leaf.ie, value).is_some() {
            // A forbidden value is forbidden on each interface. `validate` repeats the check to
            // report it.
            self.valid_on = Interfaces::NONE;
        }
        Ok(plain)
    }

    /// Checks the conditions among the members of a group.
    #[inline(never)]
    fn check_conditions(
        &mut self,
        group: &'static Group,
        slots: u64,
        start: usize,
        members: Range<usize>,
    ) {
        let watch = group.conditions.watch;
        let watched = self.nodes[members]
            .iter()
            // Unknown elements have NO_SLOT too, and must not be taken for the watched member.
            .find(|node| node.slot() == watch && watch != NO_SLOT)
            .map(|node| node.at(start).value(self.bytes));
        let flags = condition::flags(watched, watch);
        if !group.conditions.are_met(slots, flags) {
            self.valid_on = Interfaces::NONE;
        }
    }
}

/// Returns the key that orders the members of a group: twice the slot, plus one if the member may
/// occur several times. An element raises the floor to the odd key of its slot, so only a member
/// that may occur several times can follow itself.
fn key(slot: u8, member: &Member) -> u8 {
    slot << 1 | u8::from(member.many)
}

impl SeenElements {
    /// Records an element that is in order, and returns its node without its position.
    #[inline]
    fn fill(&mut self, key: u8) -> IndexNode {
        let slot = key >> 1;
        // Odd for every member: one that may occur several times has that key itself and may
        // follow.
        self.floor = (slot << 1) + 1;
        // A group has at most 64 members, so the mask only keeps the shift from overflowing.
        self.slots |= 1 << (slot & 63);
        IndexNode::new(0, slot, 0)
    }
}

impl ExaminedElement {
    /// Creates the result for an element that fills no slot.
    fn without_slot(mut seen: SeenElements, flags: u32) -> Self {
        seen.irregular = true;
        let node = IndexNode::new(0, NO_SLOT, flags);
        let inner = None;
        Self { node, seen, inner }
    }
}

impl PendingGroup {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "65539 bytes hold fewer than 2^16 elements"
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
pub(super) struct PendingGroup {
    group: &'static Group,
    start: u32,
    node: u16,
    depth: u16,
}

/// The error that stops a walk.
// Boxed, so that the results on the way of a message without faults stay small.
pub(super) struct WalkError(Box<(usize, Error)>);

impl WalkError {
    /// Creates a fault in the value that starts at `value`.
    #[cold]
    fn of(value: usize, at: usize, kind: ErrorKind) -> Self {
        Self(Box::new((value, Error::new(at, kind))))
    }

    /// Adds the path from the group that starts at `start`.
    #[cold]
    pub(super) fn into_error(self, bytes: &[u8], start: usize, group: &'static Group) -> Error {
        let (value, error) = *self.0;
        let mut steps = Vec::new();
        // Descends from the root to the value at fault. All headers before it were readable,
        // because the walk got there.
        let (mut start, mut end, mut group) = (start, bytes.len(), group);
        while start < value {
            let mut tlvs = Tlvs::at(&bytes[start..end], start).map_while(Result::ok);
            let mut before = Vec::new();
            let Some(tlv) = tlvs.find(|tlv| {
                before.push(tlv.ie);
                // Not `>`: the value at fault may be empty.
                tlv.offset + 4 + tlv.value.len() >= value
            }) else {
                break;
            };
            // `find` has added the element itself, which does not count for its index.
            before.pop();
            let Some(member) = group.member(tlv.ie) else {
                break;
            };
            let place = || before.iter().filter(|ie| **ie == tlv.ie).count();
            steps.push((tlv.ie, member.many.then(place)));
            let Descriptor::Group(inner) = member.descriptor else {
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

/// Returns the fault of the element at the start of `rest`, which is the unread part of a group
/// from `start` to `end`.
#[cold]
fn truncation_error(start: usize, end: usize, rest: &[u8]) -> WalkError {
    let at = end - rest.len();
    let Some((head, tail)) = rest.split_first_chunk::<4>() else {
        return WalkError::of(start, at, ErrorKind::ElementHeader { have: rest.len() });
    };
    let ie = IeType(u16::from_be_bytes([head[0], head[1]]));
    let declared = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let have = tail.len();
    let kind = ErrorKind::Overrun { have, declared };
    // The element is incomplete, so `into_error` cannot find it. It is added here, and the path
    // leads to the group around it.
    let error = Error::new(at, kind).within(ie, None);
    WalkError(Box::new((start, error)))
}
