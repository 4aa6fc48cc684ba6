//! What elements were like, so that those that are alike need no walk.
//!
//! Peers send the same elements over and over: fifty rules of a message, and those of the next
//! message, differ in numbers and addresses only. A [`Shape`] is an element of a message that was
//! walked, or all of them: its octets, and a mask of those that decided what the walk found, which
//! are all headers at every depth, flags, spare bits, and values that a condition looks at. What
//! has the same octets there has the same nodes, is as complete and as right.

use std::ops::{Range, RangeInclusive};
use std::ptr;

use super::index::Node;
use crate::ie::Interfaces;
use crate::ie::descriptor::{Field, Group, Kind, Leaf, Span};
use crate::validate;

/// The shapes that were met, in all messages that an index walked.
#[derive(Clone, Debug)]
pub(super) struct Shapes {
    met: Vec<Shape>,
    blocks: Vec<Block>,
    /// Found by header: which were noted last, and the headers that were met last.
    places: [Place; 1 << PLACES],
}

/// An element without what may differ in those like it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// What it is a member of, or consists of if it is the whole.
    group: &'static Group,
    whole: bool,
    /// Its type and length.
    pub(super) head: u32,
    /// Its node without its place.
    pub(super) node: Node,
    /// Twice the slot, and one more where there may be several.
    pub(super) key: u8,
    /// Whether the rows do not say all about a leaf.
    pub(super) odd: bool,
    /// The interfaces for which it is right.
    pub(super) fit: Interfaces,
    from: u32,
    to: u32,
}

/// Sixteen octets, and the bits of them that have to be the same.
#[derive(Clone, Copy, Debug)]
struct Block {
    octets: u128,
    mask: u128,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// The two that were noted last, from one on.
    shapes: [u16; 2],
    /// Two, so that a message and its only rule may share a place.
    heads: [u32; 2],
}

const PLACES: u32 = 5;

/// How much is kept from message to message.
const MOST_SHAPES: usize = 256;
const MOST_BLOCKS: usize = 2048;
const MOST_NODES: usize = 2048;

/// What is longer is not kept.
const LONGEST: usize = 4096;

const BLOCK: usize = 16;

/// The octets of an element that have to be the same in those like it.
pub(super) struct Mask {
    octets: Vec<u8>,
    /// Where the first of them stands.
    start: usize,
}

impl Mask {
    /// All octets.
    pub(super) fn of(octets: Range<usize>) -> Self {
        Self {
            octets: vec![u8::MAX; octets.len()],
            start: octets.start,
        }
    }

    /// Frees the octets of a leaf that do not decide whether it is right.
    pub(super) fn leaf(&mut self, leaf: &Leaf, value: usize, end: usize) {
        let decided = value.saturating_add(deciding(leaf)).min(end);
        for octet in &mut self.octets[decided - self.start..end - self.start] {
            *octet = 0;
        }
    }

    /// Frees a value that is right as long as its first octet is in a range.
    pub(super) fn range(
        &mut self,
        first: u8,
        right: &RangeInclusive<u8>,
        value: usize,
        end: usize,
    ) {
        let octets = &mut self.octets[value - self.start..end - self.start];
        let Some((head, rest)) = octets.split_first_mut() else {
            return;
        };
        // The most ones that are in the range, if it begins at zero.
        let free = (u16::from(*right.end()) + 1).ilog2();
        let free = u8::try_from((1u16 << free) - 1).unwrap_or(u8::MAX);
        *head = if *right.start() == 0 && first <= free {
            !free
        } else {
            u8::MAX
        };
        rest.fill(0);
    }
}

impl Default for Shapes {
    fn default() -> Self {
        Self::new()
    }
}

impl Shapes {
    pub(super) const fn new() -> Self {
        let place = Place {
            shapes: [0; 2],
            heads: [0; 2],
        };
        Self {
            met: Vec::new(),
            blocks: Vec::new(),
            places: [place; 1 << PLACES],
        }
    }

    /// Forgets all where too much is kept; says whether it did.
    #[inline]
    pub(super) fn trim(&mut self, nodes: usize) -> bool {
        let full = self.met.len() >= MOST_SHAPES
            || self.blocks.len() >= MOST_BLOCKS
            || nodes >= MOST_NODES;
        if full {
            *self = Self::new();
        }
        full
    }

    fn place(head: u32) -> usize {
        (head.wrapping_mul(0x9e37_79b1) >> (32 - PLACES)) as usize
    }

    /// Returns what an element is like that ends the octets.
    #[inline]
    pub(super) fn find(&self, within: &'static Group, head: u32, octets: &[u8]) -> Option<&Shape> {
        self.like(within, head, false, octets)
    }

    /// Returns what the elements of a message are like that end the octets.
    #[inline]
    pub(super) fn whole(
        &self,
        group: &'static Group,
        have: usize,
        octets: &[u8],
    ) -> Option<&Shape> {
        self.like(group, Shape::head_of(have), true, octets)
    }

    #[inline]
    fn like(&self, group: &'static Group, head: u32, whole: bool, octets: &[u8]) -> Option<&Shape> {
        let place = &self.places[Self::place(head)];
        place.shapes.iter().find_map(|shape| {
            let shape = self.met.get(usize::from(*shape).wrapping_sub(1))?;
            let same = shape.head == head && shape.whole == whole && ptr::eq(shape.group, group);
            (same && self.is_like(shape, octets)).then_some(shape)
        })
    }

    /// Says that an element that ends the octets, and has the same header, is like another.
    #[inline]
    pub(super) fn is_like(&self, shape: &Shape, octets: &[u8]) -> bool {
        let Some(blocks) = self.blocks.get(shape.from as usize..shape.to as usize) else {
            return false;
        };
        let (_, octets) = octets.as_rchunks::<BLOCK>();
        let Some(first) = octets.len().checked_sub(blocks.len()) else {
            return false;
        };
        let same = |(block, octets): (&Block, &[u8; BLOCK])| {
            (u128::from_ne_bytes(*octets) ^ block.octets) & block.mask == 0
        };
        blocks.iter().zip(&octets[first..]).all(same)
    }

    /// Says that an element is worth noting: not what is met once.
    pub(super) fn is_met_again(&mut self, head: u32) -> bool {
        let Place { heads, .. } = &mut self.places[Self::place(head)];
        let again = heads.contains(&head);
        if heads[0] != head {
            *heads = [head, heads[0]];
        }
        again && (head & 0xffff) as usize <= LONGEST && self.met.len() < MOST_SHAPES
    }

    /// Notes the element that ends the octets.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "few shapes, and as many blocks as elements"
    )]
    pub(super) fn note(&mut self, mut shape: Shape, octets: &[u8], mask: &Mask) {
        let count = mask.octets.len().div_ceil(BLOCK);
        let (_, octets) = octets.as_rchunks::<BLOCK>();
        let Some(first) = octets.len().checked_sub(count) else {
            return;
        };
        let before = count * BLOCK - mask.octets.len();
        let mut padded = vec![0; before];
        padded.extend_from_slice(&mask.octets);
        let (masks, _) = padded.as_chunks::<BLOCK>();
        shape.from = self.blocks.len() as u32;
        let blocks = octets[first..]
            .iter()
            .zip(masks)
            .map(|(octets, mask)| Block {
                octets: u128::from_ne_bytes(*octets),
                mask: u128::from_ne_bytes(*mask),
            });
        self.blocks.extend(blocks);
        shape.to = self.blocks.len() as u32;
        self.met.push(shape);
        let place = &mut self.places[Self::place(shape.head)];
        place.shapes = [self.met.len() as u16, place.shapes[0]];
    }
}

impl Shape {
    /// Makes the shape of a member.
    pub(super) fn member(
        (group, key): (&'static Group, u8),
        head: u32,
        node: Node,
        odd: bool,
        fit: Interfaces,
    ) -> Self {
        Self {
            group,
            whole: false,
            head,
            node,
            key,
            odd,
            fit,
            from: 0,
            to: 0,
        }
    }

    /// What all elements of a message have for a header.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "at most 65535 octets")]
    pub(super) fn head_of(have: usize) -> u32 {
        have as u32
    }

    /// Makes the shape of all elements of a message.
    pub(super) fn whole(group: &'static Group, have: usize, node: Node, fit: Interfaces) -> Self {
        let head = Self::head_of(have);
        let mut shape = Self::member((group, 0), head, node, false, fit);
        shape.whole = true;
        shape
    }
}

/// Counts the octets at the start of a value of some length on which it depends whether it is
/// right and whether its fields say all.
fn deciding(leaf: &Leaf) -> usize {
    let by_head = |field: &Field| match field.kind {
        Kind::Bits { .. }
        | Kind::Signed { .. }
        | Kind::Time
        | Kind::Ipv4
        | Kind::Ipv6
        | Kind::Mac => true,
        Kind::Number { octets, width, .. } => octets * 8 == width as usize,
        // Texts in a list have lengths of their own.
        Kind::List(..) => false,
        Kind::Text(span) | Kind::Octets(span) | Kind::Labels(span) | Kind::Digits(span) => {
            matches!(span, Span::Rest | Span::RestButLast | Span::Fixed(_))
        }
    };
    let judged = validate::is_judged(leaf.ie) && !validate::is_judged_by_head(leaf.ie);
    if !judged && leaf.fields.iter().all(by_head) {
        leaf.head
    } else {
        usize::MAX
    }
}

#[cfg(test)]
mod tests;
