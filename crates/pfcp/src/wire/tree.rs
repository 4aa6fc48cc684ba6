//! The fast way to read a checked message: nodes alone, for decoders that know the tables.
//!
//! Decoding a whole group compares slots in wire order and needs no row of a table for it, so the
//! references of a [`Part`] would be carried around for nothing. Rows are needed only for errors
//! and irregular groups, which are rare.

use std::slice;

use super::Part;
use super::index::{IndexNode, PLAIN, head};
use crate::error::{Error, ErrorKind};
use crate::ie::IeType;
use crate::ie::descriptor::{Descriptor, Group};

/// The elements of a checked message without their table entries, for a caller that decodes all of
/// them into fields and knows the tables. An element is an [`IndexNode`], which fits into a
/// register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'a> {
    bytes: &'a [u8],
    nodes: &'a [IndexNode],
}

/// The unread elements of a group.
#[derive(Clone, Debug)]
pub(crate) struct UnreadElements<'a> {
    /// The offset of the group's value.
    start: usize,
    nodes: slice::Iter<'a, IndexNode>,
}

impl<'a> Tree<'a> {
    #[inline]
    pub(super) const fn new(bytes: &'a [u8], nodes: &'a [IndexNode]) -> Self {
        Self { bytes, nodes }
    }

    /// Returns everything after the length field of an element.
    #[inline]
    pub(crate) fn value(&self, node: IndexNode) -> &'a [u8] {
        node.value(self.bytes)
    }

    /// Returns the first `N` bytes of a checked value.
    #[inline]
    pub(crate) fn array<const N: usize>(&self, node: IndexNode) -> Result<[u8; N], ErrorKind> {
        // As in `Part::array`: the check has made sure of the length.
        let at = node.start();
        let bytes = self.bytes.get(at..at + N).and_then(<[u8]>::first_chunk);
        bytes.copied().ok_or_else(|| ErrorKind::Length {
            have: self.value(node).len(),
            need: N,
        })
    }

    /// Returns the elements of a group.
    #[inline]
    pub(crate) fn below(&self, group: IndexNode) -> UnreadElements<'a> {
        UnreadElements {
            start: group.start(),
            nodes: group.below(self.nodes).iter(),
        }
    }

    /// Returns the group if the tables do not describe it completely.
    #[inline]
    pub(crate) fn irregular_group(
        &self,
        node: IndexNode,
        group: &'static Group,
    ) -> Option<Part<'a>> {
        let what = Some(Descriptor::Group(group));
        // A plain group has nothing that typed fields would lose, so only the others need the slow
        // path.
        (!node.is(PLAIN)).then(|| Part::from_node(self.bytes, self.nodes, node, what))
    }

    /// Adds an element of a group to the path of an error: the element read last, if `left` are
    /// unread.
    #[cold]
    pub(crate) fn locate(
        &self,
        error: Error,
        (container, group): (IndexNode, &'static Group),
        left: usize,
    ) -> Error {
        let below = container.below(self.nodes);
        // The decoder keeps no count. The number of unread elements, which its iterator has, leads
        // to the element at fault.
        let (read, _) = below.split_at(below.len().saturating_sub(left));
        let Some((last, before)) = read.split_last() else {
            return error;
        };
        let ie = |node: &IndexNode| {
            let [high, low, ..] =
                head(self.bytes, node.at(container.start()).start()).to_be_bytes();
            IeType(u16::from_be_bytes([high, low]))
        };
        // An index is part of the path only where the table allows several elements of the type.
        let member = group.members.get(usize::from(last.slot()));
        let many = member.is_some_and(|member| member.many);
        let same = before.iter().filter(|node| ie(node) == ie(last));
        error.within(ie(last), many.then(|| same.count()))
    }
}

impl UnreadElements<'_> {
    /// Returns the next element.
    #[inline]
    pub(crate) fn next_node(&mut self) -> Option<IndexNode> {
        Some(self.nodes.next()?.at(self.start))
    }

    /// Returns the number of elements that come next and fill the given slot.
    #[inline]
    pub(crate) fn leading_run_len(&self, slot: u8) -> usize {
        let next = self.nodes.as_slice().iter();
        next.take_while(|node| node.slot() == slot).count()
    }

    /// Returns the number of unread elements.
    pub(crate) fn remaining(&self) -> usize {
        self.nodes.len()
    }
}
