use std::ops::Range;

use super::index::{DEPTH, Node, PLAIN, REPEATED, length};
use super::{Part, Tlvs};
use crate::error::{Error, ErrorKind};
use crate::ie::condition;
use crate::ie::descriptor::{Descriptor, Group, Leaf, NO_SLOT};
use crate::ie::{IeType, Interfaces};
use crate::validate;

/// One walk over the elements of a message.
pub(super) struct Walk<'a> {
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

impl<'a> Walk<'a> {
    pub(super) const fn new(
        octets: &'a [u8],
        nodes: &'a mut [Node],
        queue: &'a mut Vec<Pending>,
    ) -> Self {
        Self {
            octets,
            nodes,
            queue,
            fit: Interfaces::ALL,
        }
    }

    /// Walks the groups in the order in which they are found; says for which interfaces nothing
    /// is missing or wrong.
    pub(super) fn run(mut self, group: &'static Group, start: usize) -> Result<Interfaces, Fault> {
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
                return Ok(self.fit);
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
