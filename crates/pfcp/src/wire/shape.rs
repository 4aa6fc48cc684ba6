//! Shapes of known elements, so that similar elements need no walk.
//!
//! Peers send the same elements again and again: the fifty rules of a message, and those of the
//! next message, differ only in numbers and addresses. An [`ElementShape`] is an element of a
//! walked message, or all elements of a message. It consists of the bytes and a mask of those that
//! decided the result of the walk: all headers at every depth, flags, spare bits, and values that a
//! condition depends on. An element with the same bytes under the mask has the same nodes, and is
//! complete and valid to the same extent.
//!
//! Data: `known` and `blocks` only grow, until [`ShapeCache::trim`] drops both. `buckets` is a hash
//! table by type and length with two shapes each. A shape that is displaced from its bucket stays
//! in `known`, unreachable, because the nodes of the message at hand may belong to it.
//!
//! States of a header: unseen, seen (in `heads`), stored. An element is stored when its header
//! comes the second time, so that a message of unique elements costs no copies.
//!
//! Invariants:
//!
//! - The mask covers each byte that the walk looked at. A byte too many only lowers the hit rate; a
//!   byte too few would accept a wrong element.
//! - A shape describes the element in table order, apart from its container and from its position.
//! - A shape is stored only after all nodes below it are written.
//!
//! Cost: at most two candidates for each header, compared sixteen bytes at a time. Memory is
//! bounded by the four limits below, plus the amount that one message adds.

use std::ops::{Range, RangeInclusive};
use std::ptr;

use super::index::IndexNode;
use crate::ie::Interfaces;
use crate::ie::descriptor::{Field, FieldExtent, FieldKind, Group, Leaf};
use crate::validate;

/// The shapes in all messages that an index has walked.
#[derive(Clone, Debug)]
pub(super) struct ShapeCache {
    known: Vec<ElementShape>,
    blocks: Vec<MaskedBlock>,
    /// A hash table by header, with the shapes stored last and the headers seen last.
    buckets: [ShapeBucket; 1 << BUCKET_BITS],
}

/// An element without the parts that may differ in similar ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementShape {
    /// The group that the element is a member of, or the table of the message if `is_message` is
    /// set.
    group: &'static Group,
    is_message: bool,
    /// The type and length.
    pub(super) head: u32,
    /// The node without its position.
    pub(super) node: IndexNode,
    /// Twice the slot, plus one if the element may occur several times.
    pub(super) key: u8,
    /// `true` if the tables do not describe a leaf completely.
    pub(super) irregular: bool,
    /// The interfaces on which the element is valid.
    pub(super) valid_on: Interfaces,
    from: u32,
    to: u32,
}

/// Sixteen bytes, and a mask of the bits that must be equal.
#[derive(Clone, Copy, Debug)]
struct MaskedBlock {
    bytes: u128,
    mask: u128,
}

#[derive(Clone, Copy, Debug)]
struct ShapeBucket {
    /// The two shapes stored last, numbered from one. Zero is empty.
    shapes: [u16; 2],
    /// The two headers seen last. Two, so that a message and its only rule may share an entry.
    heads: [u32; 2],
}

// Thirty-two buckets of two hold rules of all kinds at once, which a test checks. The table is part
// of each index, so it should stay small.
const BUCKET_BITS: u32 = 5;

/// Maximum amounts that are kept from message to message.
const MAX_SHAPES: usize = 256;
const MAX_BLOCKS: usize = 2048;
const MAX_NODES: usize = 2048;

/// Longer elements are not kept.
// This length alone takes an eighth of the blocks.
const MAX_LENGTH: usize = 4096;

// The size of the widest integer.
const BLOCK: usize = 16;

/// The bytes of an element that must be equal in similar ones.
pub(super) struct ByteMask {
    bytes: Vec<u8>,
    /// The offset of the first byte.
    start: usize,
}

impl ByteMask {
    /// Creates a mask of all bytes.
    pub(super) fn of(bytes: Range<usize>) -> Self {
        Self {
            bytes: vec![u8::MAX; bytes.len()],
            start: bytes.start,
        }
    }

    /// Clears the bytes of a leaf that do not decide whether it is valid.
    pub(super) fn leaf(&mut self, leaf: &Leaf, value: usize, end: usize) {
        // Saturating, because the length is `usize::MAX` if the whole value decides.
        let decided = value.saturating_add(significant_prefix_len(leaf)).min(end);
        for byte in &mut self.bytes[decided - self.start..end - self.start] {
            *byte = 0;
        }
    }

    /// Clears a value that is valid as long as its first byte is in a range.
    pub(super) fn range(
        &mut self,
        first: u8,
        right: &RangeInclusive<u8>,
        value: usize,
        end: usize,
    ) {
        let bytes = &mut self.bytes[value - self.start..end - self.start];
        // A value without bytes is decided by its length, which is in the header.
        let Some((head, rest)) = bytes.split_first_mut() else {
            return;
        };
        // The low bits of the first byte are free if all their combinations are in the range, which
        // must start at zero.
        // In 16 bits, because the end may be 255.
        let free = (u16::from(*right.end()) + 1).ilog2();
        let free = u8::try_from((1u16 << free) - 1).unwrap_or(u8::MAX);
        // Otherwise the free bits could lead out of the range, so the byte must be equal.
        *head = if *right.start() == 0 && first <= free {
            !free
        } else {
            u8::MAX
        };
        rest.fill(0);
    }
}

impl Default for ShapeCache {
    fn default() -> Self {
        Self::new()
    }
}

impl ShapeCache {
    pub(super) const fn new() -> Self {
        let bucket = ShapeBucket {
            shapes: [0; 2],
            heads: [0; 2],
        };
        Self {
            known: Vec::new(),
            blocks: Vec::new(),
            buckets: [bucket; 1 << BUCKET_BITS],
        }
    }

    /// Drops everything if too much is kept. Returns `true` if it did.
    #[inline]
    pub(super) fn trim(&mut self, nodes: usize) -> bool {
        let full =
            self.known.len() >= MAX_SHAPES || self.blocks.len() >= MAX_BLOCKS || nodes >= MAX_NODES;
        if full {
            // All at once: shapes refer to blocks and nodes by index, so a single one cannot be
            // removed. Elements that a peer goes on sending are stored again within two messages.
            *self = Self::new();
        }
        full
    }

    fn bucket(head: u32) -> usize {
        // Fibonacci hashing (2^32 / golden ratio): the high bits of the product depend on all of
        // the type and the length.
        (head.wrapping_mul(0x9e37_79b1) >> (32 - BUCKET_BITS)) as usize
    }

    /// Returns the shape that matches the element at the end of `bytes`.
    #[inline]
    pub(super) fn find(
        &self,
        within: &'static Group,
        head: u32,
        bytes: &[u8],
    ) -> Option<&ElementShape> {
        self.find_shape(within, head, false, bytes)
    }

    /// Returns the shape that matches the elements of a message at the end of `bytes`.
    #[inline]
    pub(super) fn find_message(
        &self,
        group: &'static Group,
        have: usize,
        bytes: &[u8],
    ) -> Option<&ElementShape> {
        self.find_shape(
            group,
            ElementShape::message_pseudo_header(have),
            true,
            bytes,
        )
    }

    #[inline]
    fn find_shape(
        &self,
        group: &'static Group,
        head: u32,
        is_message: bool,
        bytes: &[u8],
    ) -> Option<&ElementShape> {
        let bucket = &self.buckets[Self::bucket(head)];
        bucket.shapes.iter().find_map(|shape| {
            // Number zero wraps to an index that does not exist.
            let shape = self.known.get(usize::from(*shape).wrapping_sub(1))?;
            // The hash mixes tables, so all three are compared: the same type has other members in
            // another table, and the length of a message may look like a header.
            let same =
                shape.head == head && shape.is_message == is_message && ptr::eq(shape.group, group);
            (same && self.matches(shape, bytes)).then_some(shape)
        })
    }

    /// Returns `true` if the element at the end of `bytes`, which has the same header, matches the
    /// shape. The blocks may reach into the bytes before the element, where the mask is zero.
    #[inline]
    pub(super) fn matches(&self, shape: &ElementShape, bytes: &[u8]) -> bool {
        let Some(blocks) = self.blocks.get(shape.from as usize..shape.to as usize) else {
            return false;
        };
        // Before an element there are bytes to spare, at least those of the message header; after
        // it there may be none. Whole blocks from the end therefore cover it without a remainder.
        // The blocks are aligned to the end of the element.
        let (_, bytes) = bytes.as_rchunks::<BLOCK>();
        // Too close to the start of the datagram to fill the first block; the element is walked.
        let Some(first) = bytes.len().checked_sub(blocks.len()) else {
            return false;
        };
        let same = |(block, bytes): (&MaskedBlock, &[u8; BLOCK])| {
            // Equal bytes are equal in either byte order, so the native one needs no swap.
            (u128::from_ne_bytes(*bytes) ^ block.bytes) & block.mask == 0
        };
        blocks.iter().zip(&bytes[first..]).all(same)
    }

    /// Returns `true` if an element is worth storing: its header was seen recently, so it is not
    /// unique.
    pub(super) fn is_worth_storing(&mut self, head: u32) -> bool {
        let ShapeBucket { heads, .. } = &mut self.buckets[Self::bucket(head)];
        let again = heads.contains(&head);
        // A header that repeats, as the rules of a message do, must not displace the other one.
        if heads[0] != head {
            *heads = [head, heads[0]];
        }
        // The low half is the length of an element, and also that of a message in its pseudo
        // header.
        again && (head & 0xffff) as usize <= MAX_LENGTH && self.known.len() < MAX_SHAPES
    }

    /// Stores the shape of the element at the end of `bytes`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "few shapes, and as many blocks as elements"
    )]
    pub(super) fn store(&mut self, mut shape: ElementShape, bytes: &[u8], mask: &ByteMask) {
        let count = mask.bytes.len().div_ceil(BLOCK);
        let (_, bytes) = bytes.as_rchunks::<BLOCK>();
        // The same limit as in `matches`: such a shape could not be compared.
        let Some(first) = bytes.len().checked_sub(count) else {
            return;
        };
        let before = count * BLOCK - mask.bytes.len();
        // Bytes before the element get a mask of zero, so they match anything.
        let mut padded = vec![0; before];
        padded.extend_from_slice(&mask.bytes);
        let (masks, _) = padded.as_chunks::<BLOCK>();
        shape.from = self.blocks.len() as u32;
        let blocks = bytes[first..]
            .iter()
            .zip(masks)
            .map(|(bytes, mask)| MaskedBlock {
                bytes: u128::from_ne_bytes(*bytes),
                mask: u128::from_ne_bytes(*mask),
            });
        self.blocks.extend(blocks);
        shape.to = self.blocks.len() as u32;
        self.known.push(shape);
        let bucket = &mut self.buckets[Self::bucket(shape.head)];
        // The number is the index plus one. The older of the two shapes is displaced.
        bucket.shapes = [self.known.len() as u16, bucket.shapes[0]];
    }
}

impl ElementShape {
    /// Creates the shape of a member.
    pub(super) fn member(
        (group, key): (&'static Group, u8),
        head: u32,
        node: IndexNode,
        irregular: bool,
        valid_on: Interfaces,
    ) -> Self {
        Self {
            group,
            is_message: false,
            head,
            node,
            key,
            irregular,
            valid_on,
            from: 0,
            to: 0,
        }
    }

    /// Returns the pseudo header of all elements of a message.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "at most 65535 bytes")]
    pub(super) fn message_pseudo_header(have: usize) -> u32 {
        // As a header it would be type 0, which is reserved (TS 29.244 §8.1.2); `is_message` tells
        // them apart even so.
        have as u32
    }

    /// Creates the shape of all elements of a message.
    pub(super) fn message(
        group: &'static Group,
        have: usize,
        node: IndexNode,
        valid_on: Interfaces,
    ) -> Self {
        let head = Self::message_pseudo_header(have);
        let mut shape = Self::member((group, 0), head, node, false, valid_on);
        shape.is_message = true;
        shape
    }
}

/// Returns the number of leading bytes of a value that, together with its length, decide whether it
/// is valid and whether its fields describe it completely.
fn significant_prefix_len(leaf: &Leaf) -> usize {
    let by_head = |field: &Field| match field.kind {
        FieldKind::Bits { .. }
        | FieldKind::Signed { .. }
        | FieldKind::Time
        | FieldKind::Ipv4
        | FieldKind::Ipv6
        | FieldKind::Mac => true,
        // Spare bits above the number make a value irregular, so those bytes decide too.
        FieldKind::Number { bytes, width, .. } => bytes * 8 == width as usize,
        // Texts in a list have lengths of their own.
        FieldKind::List(..) => false,
        FieldKind::Text(span)
        | FieldKind::Bytes(span)
        | FieldKind::Labels(span)
        | FieldKind::Digits(span) => {
            matches!(
                span,
                FieldExtent::Rest | FieldExtent::RestButLast | FieldExtent::Fixed(_)
            )
        }
    };
    // Some values are checked beyond their head, such as the flow description of an SDF Filter.
    let judged = validate::is_value_checked(leaf.ie) && !validate::is_checked_by_head_only(leaf.ie);
    if !judged && leaf.fields.iter().all(by_head) {
        leaf.head
    } else {
        usize::MAX
    }
}

#[cfg(test)]
mod tests;
