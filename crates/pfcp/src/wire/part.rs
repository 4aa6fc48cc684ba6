use std::slice;

use super::Tree;
use super::index::{Node, PLAIN, REPEATED, ROOT};
use crate::error::ErrorKind;
use crate::ie::IeType;
use crate::ie::descriptor::{Descriptor, Member};

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
    /// Borrows what was handed in.
    #[inline]
    pub(super) const fn whole(
        octets: &'a [u8],
        nodes: &'a [Node],
        node: Node,
        what: Option<Descriptor>,
    ) -> Self {
        Self {
            octets,
            nodes,
            node,
            what,
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

    /// Walks the elements that fill a row of the group's table.
    #[inline]
    pub(crate) fn filling(&self, role: &'static Member, slot: u8) -> Filling<'a> {
        Filling {
            octets: self.octets,
            nodes: self.nodes,
            start: self.node.start(),
            below: self.below(),
            role,
            slot,
        }
    }

    /// Returns the element that fills a row of the group's table which has one at most.
    #[inline]
    pub(crate) fn only(&self, role: &'static Member, slot: u8) -> Option<Self> {
        // In order it stands at its slot, or before that where others are missing.
        let below = self.node.below(self.nodes);
        let (before, after) = below.split_at(below.len().min(usize::from(slot) + 1));
        let is_it = |node: &&Node| node.slot() == slot;
        let node = before.iter().rev().find(is_it);
        let node = node.or_else(|| after.iter().find(is_it))?;
        Some(Self {
            octets: self.octets,
            nodes: self.nodes,
            node: node.at(self.node.start()),
            what: Some(role.what),
            role: Some(role),
        })
    }

    /// Returns the element without what the tables say about it.
    #[inline]
    pub(crate) const fn bare(&self) -> (Tree<'a>, Node) {
        (Tree::new(self.octets, self.nodes), self.node)
    }
}

/// The elements of a group; see [`Part::parts`].
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    octets: &'a [u8],
    nodes: &'a [Node],
    /// Where the value of the group starts.
    start: usize,
    below: slice::Iter<'a, Node>,
    members: &'static [Member],
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    #[inline]
    fn next(&mut self) -> Option<Part<'a>> {
        let node = self.below.next()?.at(self.start);
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
    /// Where the value of the group starts.
    start: usize,
    below: slice::Iter<'a, Node>,
    role: &'static Member,
    slot: u8,
}

impl<'a> Iterator for Filling<'a> {
    type Item = Part<'a>;

    #[inline]
    fn next(&mut self) -> Option<Part<'a>> {
        let slot = self.slot;
        let node = self.below.find(|node| node.slot() == slot)?.at(self.start);
        Some(Part {
            octets: self.octets,
            nodes: self.nodes,
            node,
            what: Some(self.role.what),
            role: Some(self.role),
        })
    }
}
