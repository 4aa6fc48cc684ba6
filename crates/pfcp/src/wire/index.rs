//! The index of a message: a node for each element, and the fast paths in front of the walk.
//!
//! Data: `nodes` holds the root, then the nodes of known shapes, then, from `free` on, those of the
//! message that was checked last. Nodes and shapes belong together: dropping the shapes resets
//! `free`, and a walk overwrites nothing before it.
//!
//! A message takes the first of three paths that fits:
//!
//! - one element that its row alone accepts, as in a heartbeat: two nodes are written;
//! - the shape of an earlier message: its root is copied, and all nodes below it are reused;
//! - a walk (`IndexWalk`).
//!
//! Invariants:
//!
//! - Each element that has a node has a readable header before its value and a value inside the
//!   input, so readers of a node check no lengths.
//! - The nodes of a group's members are adjacent and in wire order.
//! - The index says nothing about which bytes it was built from: the caller hands in the same bytes
//!   to read as to check.
//!
//! Cost: eight bytes for each element, and nothing is allocated once the buffers have the size of
//! the longest message.

use super::Part;
use super::shape::ShapeCache;
use super::walk::{IndexWalk, PendingGroup};
use crate::error::{Error, ErrorKind};
use crate::ie::Interfaces;
use crate::ie::descriptor::{Descriptor, Group, Leaf, NO_SLOT};

/// The elements of a message at every depth, found and checked in one pass.
///
/// An index is a buffer. When it is reused for the next message, nothing is allocated. It also
/// remembers the shapes of elements: an element that differs from a known one only in numbers and
/// addresses is compared with it instead of being walked.
///
/// ```text
/// nodes  | root | below rules met before | of the message: rule rule ... | below its new rules |
///                  ^-------------------------------' like one before        ^ kept if met again
/// ```
///
/// The elements of a group are stored contiguously. The amount of remembered data is bounded.
#[derive(Clone, Debug)]
pub struct Index {
    nodes: Vec<IndexNode>,
    queue: Vec<PendingGroup>,
    shapes: ShapeCache,
    /// The first node that does not belong to a shape. Before it are the root and the nodes of
    /// shapes.
    free: usize,
}

/// The position of an element and its role in its group. The type and length are read on demand
/// from the header before the value.
///
/// From the first byte on, it contains: the start of the value relative to the value of the
/// enclosing group (17 bits), the flags (7 bits), the slot (8 bits), the index of the first node of
/// this group's elements (16 bits), and the count of those nodes (16 bits). It is stored as bytes,
/// so that a reader can load the slot alone while the walk writes everything at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IndexNode([u8; 8]);

/// The tables describe the group completely: its elements are in order, none is unknown, and there
/// are no spare bits or trailing bytes.
pub(super) const PLAIN: u32 = 1 << 17;
/// A further occurrence of an element that may occur only once.
pub(super) const REPEATED: u32 = 1 << 18;
/// The whole input, which has no header of its own.
pub(super) const ROOT: u32 = 1 << 19;

/// Maximum nesting depth of groups. The tables of the specification need five levels.
// Readers recurse into groups, so a bound is needed even for tables that would contain themselves.
pub(crate) const DEPTH: usize = 8;

impl IndexNode {
    #[inline]
    pub(super) fn new(start: usize, slot: u8, flags: u32) -> Self {
        // Little-endian on every machine, so that the slot is the byte that `slot` loads.
        Self((start as u64 | flags as u64 | (slot as u64) << 24).to_le_bytes())
    }

    #[inline]
    pub(super) fn place(self) -> u32 {
        let [a, b, c, ..] = self.0;
        u32::from_le_bytes([a, b, c, 0])
    }

    #[inline]
    pub(crate) fn start(self) -> usize {
        (self.place() & 0x1_ffff) as usize
    }

    #[inline]
    pub(crate) fn slot(&self) -> u8 {
        self.0[3]
    }

    /// Adds `start` to the position.
    #[inline]
    pub(super) fn at(self, start: usize) -> Self {
        // Cannot carry into the flags: an input is at most 16 + 65535 bytes long, which 17 bits
        // hold.
        Self((u64::from_le_bytes(self.0) + start as u64).to_le_bytes())
    }

    /// Clears the position.
    pub(super) fn without_position(self) -> Self {
        Self((u64::from_le_bytes(self.0) & !0x1_ffff).to_le_bytes())
    }

    /// Returns the nodes of the elements of a group.
    #[inline]
    pub(super) fn below(self, nodes: &[Self]) -> &[Self] {
        // A leaf has no members: 0..0 is the empty slice.
        let (first, count) = self.members();
        nodes.get(first..first + count).unwrap_or_default()
    }

    /// Returns the index of the first node of a group's elements, and the count of those nodes.
    #[inline]
    pub(super) fn members(self) -> (usize, usize) {
        let [.., a, b, c, d] = self.0;
        let (first, count) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        (first as usize, count as usize)
    }

    /// Sets the nodes of the group's elements, and flags.
    #[inline]
    pub(super) fn with_members(self, first: usize, count: usize, flags: u32) -> Self {
        // Sixteen bits suffice: there are fewer than `MAX_NODES` nodes of shapes, and at most 65535
        // / 4 of a message. The caller has a node without members, so that OR sets them.
        let below = (first as u64) << 32 | (count as u64) << 48;
        Self((u64::from_le_bytes(self.0) | below | flags as u64).to_le_bytes())
    }

    /// Returns everything after the length field. The element must have a header.
    #[inline]
    pub(super) fn value(self, bytes: &[u8]) -> &[u8] {
        let at = self.start();
        &bytes[at..at + length(bytes, at)]
    }

    #[inline]
    pub(super) fn is(self, flag: u32) -> bool {
        self.place() & flag != 0
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// Creates an empty index.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            queue: Vec::new(),
            shapes: ShapeCache::new(),
            // The root is node 0.
            free: 1,
        }
    }

    #[cfg(test)]
    pub(super) const fn shapes(&self) -> &ShapeCache {
        &self.shapes
    }

    /// Returns the number of nodes that are kept.
    #[cfg(test)]
    pub(super) const fn cached_node_count(&self) -> usize {
        self.free
    }

    /// Walks the elements of `bytes[start..]` as members of `group`.
    pub(crate) fn walk<'a>(
        &'a mut self,
        bytes: &'a [u8],
        start: usize,
        group: &'static Group,
    ) -> Result<Part<'a>, Error> {
        self.check(bytes, start, group)?;
        Ok(self.root(bytes, group))
    }

    /// Returns the root of the input that was checked last.
    #[inline]
    pub(crate) fn root<'a>(&'a self, bytes: &'a [u8], group: &'static Group) -> Part<'a> {
        // The vector is empty only if the last check failed before the first walk; there is no part
        // then.
        let node = self.nodes.first().copied().unwrap_or_default();
        Part::from_node(bytes, &self.nodes, node, Some(Descriptor::Group(group)))
    }

    /// Finds and checks the elements of `bytes[start..]`. For a message, returns the interfaces on
    /// which nothing is missing or wrong.
    #[inline]
    pub(crate) fn check(
        &mut self,
        bytes: &[u8],
        start: usize,
        group: &'static Group,
    ) -> Result<Interfaces, Error> {
        let have = bytes.len() - start;
        // The length field of a header cannot say more (TS 29.244 §7.2.2), but the input of
        // `Index::walk` need not have a header.
        if have > usize::from(u16::MAX) {
            return Err(Error::new(0, ErrorKind::TooLong { have }));
        }
        if let Some(valid_on) = self.check_single(bytes, start, group) {
            return Ok(valid_on);
        }
        if let Some(shape) = self.shapes.find_message(group, have, bytes)
            && let Some(root) = self.nodes.first_mut()
        {
            *root = shape.node.at(start);
            return Ok(shape.valid_on);
        }
        self.walk_all(bytes, start, group)
    }

    /// Checks a single element, if its row alone accepts it. This is the fast path for heartbeats.
    #[inline]
    fn check_single(
        &mut self,
        bytes: &[u8],
        start: usize,
        group: &'static Group,
    ) -> Option<Interfaces> {
        let (head, value) = bytes[start..].split_first_chunk::<4>()?;
        let head = u32::from_be_bytes(*head);
        let entry = group.member_index.entry(head);
        let is_only = (head & 0xffff) as usize == value.len();
        // If one element is sufficient for a message, it is the first one of the table. All other
        // cases are walked.
        if !is_only || entry.slot() != 0 || entry.is_group() || !entry.accepts(head, value) {
            return None;
        }
        // A new index has no nodes yet. The walk makes space, so the first message takes that path.
        *self.nodes.get_mut(self.free)? = IndexNode::new(4, 0, 0);
        self.nodes[0] = IndexNode::new(start, NO_SLOT, ROOT).with_members(self.free, 1, PLAIN);
        // Only groups inside messages have conditions on their members, so none is evaluated here.
        Some(Interfaces::ALL.without(group.interfaces_lacking(1)))
    }

    /// Walks the elements at every depth.
    // Not inlined, so that heartbeats and known messages do not pay for its frame.
    #[inline(never)]
    fn walk_all(
        &mut self,
        bytes: &[u8],
        start: usize,
        group: &'static Group,
    ) -> Result<Interfaces, Error> {
        // Only between messages: the nodes of the message at hand may refer to those of shapes.
        if self.shapes.trim(self.free) {
            self.free = 1;
        }
        // Each element takes at least four bytes for its header.
        let most = self.free + (bytes.len() - start) / 4;
        // The walk then always has a node to write. The vector never shrinks.
        if self.nodes.len() < most {
            self.nodes.resize(most, IndexNode::default());
        }
        self.nodes[0] = IndexNode::new(start, NO_SLOT, ROOT);
        let walk = IndexWalk {
            bytes,
            nodes: &mut self.nodes,
            queue: &mut self.queue,
            shapes: &mut self.shapes,
            free: &mut self.free,
            valid_on: Interfaces::ALL,
        };
        walk.run(group, start)
            .map_err(|error| error.into_error(bytes, start, group))
    }

    /// Checks one value.
    pub(crate) fn leaf<'a>(bytes: &'a [u8], leaf: &'static Leaf) -> Result<Part<'a>, Error> {
        (leaf.check)(bytes).map_err(|kind| Error::new(0, kind))?;
        let node = IndexNode::new(0, NO_SLOT, ROOT);
        let what = Some(Descriptor::Leaf(leaf));
        Ok(Part::from_node(bytes, &[], node, what))
    }
}

/// Reads the header before a value.
#[inline]
pub(super) fn head(bytes: &[u8], at: usize) -> u32 {
    let head = bytes[at - 4..].first_chunk();
    head.map_or(0, |head| u32::from_be_bytes(*head))
}

/// Reads the length before a value.
#[inline]
pub(super) fn length(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at - 2..].first_chunk();
    length.map_or(0, |length| usize::from(u16::from_be_bytes(*length)))
}
