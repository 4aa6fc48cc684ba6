//! Elements of a checked message as a caller sees them: a node together with its rows in the
//! tables.
//!
//! A [`Part`] is a copy of a node with an absolute position, and borrows the bytes and the nodes.
//! Nothing is decoded before a caller asks, and nothing can fail on the way there: the walk has
//! checked each length. A search in a group is linear in its members, which are adjacent.

use std::slice;

use super::Tree;
use super::index::{IndexNode, PLAIN, REPEATED, ROOT};
use crate::error::ErrorKind;
use crate::ie::IeType;
use crate::ie::descriptor::{Descriptor, Member};

/// An element of a checked message, with the elements below it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    bytes: &'a [u8],
    /// The nodes of the whole message.
    nodes: &'a [IndexNode],
    node: IndexNode,
    descriptor: Option<Descriptor>,
    member: Option<&'static Member>,
}

impl<'a> Part<'a> {
    /// Creates a part that has no row in a table.
    #[inline]
    pub(super) const fn from_node(
        bytes: &'a [u8],
        nodes: &'a [IndexNode],
        node: IndexNode,
        descriptor: Option<Descriptor>,
    ) -> Self {
        Self {
            bytes,
            nodes,
            node,
            descriptor,
            member: None,
        }
    }

    /// Returns the first `N` bytes of a checked value.
    #[inline]
    pub(crate) fn array<const N: usize>(&self) -> Result<[u8; N], ErrorKind> {
        let at = self.node.start();
        // Reads from the start of the value without its length, because the check has made sure of
        // `N` bytes. One comparison with the end of the input remains.
        let bytes = self.bytes.get(at..at + N).and_then(<[u8]>::first_chunk);
        bytes.copied().ok_or_else(|| ErrorKind::Length {
            have: self.raw().len(),
            need: N,
        })
    }

    /// Returns the type.
    #[must_use]
    #[inline]
    pub fn ie(&self) -> IeType {
        // The bytes before the root are those of the message header, or there are none.
        if self.node.is(ROOT) {
            return match self.descriptor {
                Some(Descriptor::Group(group)) => group.ie.unwrap_or(IeType::RESERVED),
                Some(Descriptor::Leaf(leaf)) => leaf.ie,
                None => IeType::RESERVED,
            };
        }
        let head = self.bytes[self.offset() - 4..].first_chunk();
        head.map_or(IeType::RESERVED, |ie| IeType(u16::from_be_bytes(*ie)))
    }

    /// Returns the value, without the enterprise number of a vendor-specific element.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        let value = self.raw();
        if self.ie().is_vendor() {
            // The Enterprise ID is the start of the value (TS 29.244 §8.1.1).
            value.get(2..).unwrap_or_default()
        } else {
            value
        }
    }

    /// Returns the enterprise number of a vendor-specific element.
    #[must_use]
    pub fn enterprise(&self) -> Option<u16> {
        if !self.ie().is_vendor() {
            return None;
        }
        self.raw()
            .first_chunk()
            .map(|number| u16::from_be_bytes(*number))
    }

    /// Returns everything after the length field.
    #[inline]
    pub(crate) fn raw(&self) -> &'a [u8] {
        if self.node.is(ROOT) {
            &self.bytes[self.node.start()..]
        } else {
            self.node.value(self.bytes)
        }
    }

    /// Returns the offset of the value in the input.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.node.start()
    }

    /// Returns the description of the element in the specification, or `None` if the group does not
    /// define the element.
    #[must_use]
    pub fn descriptor(&self) -> Option<Descriptor> {
        self.descriptor
    }

    /// Returns the row of the element in the table of its group.
    #[must_use]
    pub fn member(&self) -> Option<&'static Member> {
        self.member
    }

    /// Returns `true` if the element may occur only once in the group and is a further occurrence.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.node.is(REPEATED)
    }

    /// Returns `true` if the tables describe the group completely.
    pub(crate) fn is_plain(&self) -> bool {
        self.node.is(PLAIN)
    }

    #[inline]
    pub(crate) fn slot(&self) -> u8 {
        self.node.slot()
    }

    /// Returns the nodes below.
    #[inline]
    fn below(&self) -> slice::Iter<'a, IndexNode> {
        self.node.below(self.nodes).iter()
    }

    /// Returns an iterator over the elements of a group in wire order.
    #[must_use]
    #[inline]
    pub fn parts(&self) -> Parts<'a> {
        let members = match self.descriptor {
            Some(Descriptor::Group(group)) => group.members,
            _ => &[],
        };
        Parts {
            bytes: self.bytes,
            nodes: self.nodes,
            start: self.node.start(),
            below: self.below(),
            members,
        }
    }

    /// Returns the first element of a type.
    #[must_use]
    pub fn find(&self, ie: IeType) -> Option<Self> {
        self.parts().find(|part| part.ie() == ie)
    }

    /// Returns an iterator over the elements that fill a row of the group's table.
    #[inline]
    pub(crate) fn member_parts(&self, member: &'static Member, slot: u8) -> MemberParts<'a> {
        MemberParts {
            bytes: self.bytes,
            nodes: self.nodes,
            start: self.node.start(),
            below: self.below(),
            member,
            slot,
        }
    }

    /// Returns the element that fills a row of the group's table, which allows at most one.
    #[inline]
    pub(crate) fn single_member(&self, member: &'static Member, slot: u8) -> Option<Self> {
        // In table order it is at the index of its slot, or before that if others are missing.
        let below = self.node.below(self.nodes);
        let (before, after) = below.split_at(below.len().min(usize::from(slot) + 1));
        let is_it = |node: &&IndexNode| node.slot() == slot;
        // Backwards: if no member before it is missing, the element is the last one of `before`.
        let node = before.iter().rev().find(is_it);
        // It is here only if a member before it occurs several times, an element is unknown, or the
        // order is another.
        let node = node.or_else(|| after.iter().find(is_it))?;
        Some(Self {
            bytes: self.bytes,
            nodes: self.nodes,
            node: node.at(self.node.start()),
            descriptor: Some(member.descriptor),
            member: Some(member),
        })
    }

    /// Returns the element without its table entries.
    #[inline]
    pub(crate) const fn tree_and_node(&self) -> (Tree<'a>, IndexNode) {
        (Tree::new(self.bytes, self.nodes), self.node)
    }
}

/// An iterator over the elements of a group; see [`Part::parts`].
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    bytes: &'a [u8],
    nodes: &'a [IndexNode],
    /// The offset of the group's value.
    start: usize,
    below: slice::Iter<'a, IndexNode>,
    members: &'static [Member],
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    #[inline]
    fn next(&mut self) -> Option<Part<'a>> {
        let node = self.below.next()?.at(self.start);
        // NO_SLOT is beyond the longest table, so an unknown or repeated element has no row.
        let member = self.members.get(usize::from(node.slot()));
        Some(Part {
            bytes: self.bytes,
            nodes: self.nodes,
            node,
            descriptor: member.map(|member| member.descriptor),
            member,
        })
    }
}

/// An iterator over the elements that fill a row of a group's table.
#[derive(Clone, Debug)]
pub(crate) struct MemberParts<'a> {
    bytes: &'a [u8],
    nodes: &'a [IndexNode],
    /// The offset of the group's value.
    start: usize,
    below: slice::Iter<'a, IndexNode>,
    member: &'static Member,
    slot: u8,
}

impl<'a> Iterator for MemberParts<'a> {
    type Item = Part<'a>;

    #[inline]
    fn next(&mut self) -> Option<Part<'a>> {
        let slot = self.slot;
        let node = self.below.find(|node| node.slot() == slot)?.at(self.start);
        Some(Part {
            bytes: self.bytes,
            nodes: self.nodes,
            node,
            descriptor: Some(self.member.descriptor),
            member: Some(self.member),
        })
    }
}
