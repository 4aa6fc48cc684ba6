use std::slice;

use super::Part;
use super::index::{Node, PLAIN, head};
use crate::error::{Error, ErrorKind};
use crate::ie::IeType;
use crate::ie::descriptor::{Descriptor, Group};

/// The elements of a checked message, without what the tables say about them: who reads all of
/// them into fields knows that. An element is a [`Node`], which fits a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'a> {
    octets: &'a [u8],
    nodes: &'a [Node],
}

/// The elements of a group that are still to be read.
#[derive(Clone, Debug)]
pub(crate) struct Below<'a> {
    /// Where the value of the group starts.
    start: usize,
    nodes: slice::Iter<'a, Node>,
}

impl<'a> Tree<'a> {
    #[inline]
    pub(super) const fn new(octets: &'a [u8], nodes: &'a [Node]) -> Self {
        Self { octets, nodes }
    }

    /// Returns everything after the length of an element.
    #[inline]
    pub(crate) fn value(&self, node: Node) -> &'a [u8] {
        node.value(self.octets)
    }

    /// Returns the octets at the start of a checked value that has so many.
    #[inline]
    pub(crate) fn array<const N: usize>(&self, node: Node) -> Result<[u8; N], ErrorKind> {
        let at = node.start();
        let octets = self.octets.get(at..at + N).and_then(<[u8]>::first_chunk);
        octets.copied().ok_or_else(|| ErrorKind::Length {
            have: self.value(node).len(),
            need: N,
        })
    }

    /// Walks the elements of a group.
    #[inline]
    pub(crate) fn below(&self, group: Node) -> Below<'a> {
        Below {
            start: group.start(),
            nodes: group.below(self.nodes).iter(),
        }
    }

    /// Returns a group of which the rows do not say all.
    #[inline]
    pub(crate) fn odd(&self, node: Node, group: &'static Group) -> Option<Part<'a>> {
        let what = Some(Descriptor::Group(group));
        (!node.is(PLAIN)).then(|| Part::whole(self.octets, self.nodes, node, what))
    }

    /// Adds an element of a group to the path of an error: the last one that was read, given how
    /// many are left.
    #[cold]
    pub(crate) fn blame(
        &self,
        error: Error,
        (container, group): (Node, &'static Group),
        left: usize,
    ) -> Error {
        let below = container.below(self.nodes);
        let (read, _) = below.split_at(below.len().saturating_sub(left));
        let Some((last, before)) = read.split_last() else {
            return error;
        };
        let ie = |node: &Node| {
            let [high, low, ..] =
                head(self.octets, node.at(container.start()).start()).to_be_bytes();
            IeType(u16::from_be_bytes([high, low]))
        };
        let role = group.members.get(usize::from(last.slot()));
        let many = role.is_some_and(|member| member.many);
        let same = before.iter().filter(|node| ie(node) == ie(last));
        error.within(ie(last), many.then(|| same.count()))
    }
}

impl Below<'_> {
    /// Takes the next element.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<Node> {
        Some(self.nodes.next()?.at(self.start))
    }

    /// Counts the elements of a row that come next.
    #[inline]
    pub(crate) fn run(&self, slot: u8) -> usize {
        let next = self.nodes.as_slice().iter();
        next.take_while(|node| node.slot() == slot).count()
    }

    /// Counts what is left.
    pub(crate) fn left(&self) -> usize {
        self.nodes.len()
    }
}
