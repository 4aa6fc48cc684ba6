use super::Part;
use super::shape::Shapes;
use super::walk::{Pending, Walk};
use crate::error::{Error, ErrorKind};
use crate::ie::Interfaces;
use crate::ie::descriptor::{Descriptor, Group, Leaf, NO_SLOT};

/// The elements of one message at every depth, found and checked in one walk.
///
/// An index is a buffer: use it again for the next message, and nothing is allocated. It also keeps
/// what the elements of messages were like: those that differ in numbers and addresses only are
/// compared with what is known, not walked again.
///
/// ```text
/// nodes  | root | below rules met before | of the message: rule rule ... | below its new rules |
///                  ^-------------------------------' like one before        ^ kept if met again
/// ```
///
/// The elements of a group stand side by side. How much is kept has a bound.
#[derive(Clone, Debug)]
pub struct Index {
    nodes: Vec<Node>,
    queue: Vec<Pending>,
    shapes: Shapes,
    /// The first node that no shape has; before it are the root and those of shapes.
    free: usize,
}

/// Where an element stands and what it is in its group; its type and length are read where they
/// are, in the header before its value.
///
/// From the first octet on: where the value starts, counted from the value of the group that it
/// stands in (17 bits), the flags (7 bits), the slot (8 bits), and of the elements of the group
/// that this one is the first (16 bits) and how many (16 bits). As octets, so that a reader looks
/// at the slot alone and a walk writes all at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node([u8; 8]);

/// The rows say all about the group: order, no unknown element, no spare bit, no octet more.
pub(super) const PLAIN: u32 = 1 << 17;
/// A further element of a type that may occur once.
pub(super) const REPEATED: u32 = 1 << 18;
/// What was handed in, without a header of its own.
pub(super) const ROOT: u32 = 1 << 19;

/// The groups within groups that are walked; the tables of the specification need five.
pub(crate) const DEPTH: usize = 8;

impl Node {
    #[inline]
    pub(super) fn new(start: usize, slot: u8, flags: u32) -> Self {
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

    /// Moves the place.
    #[inline]
    pub(super) fn at(self, start: usize) -> Self {
        Self((u64::from_le_bytes(self.0) + start as u64).to_le_bytes())
    }

    /// Takes the place away.
    pub(super) fn anywhere(self) -> Self {
        Self((u64::from_le_bytes(self.0) & !0x1_ffff).to_le_bytes())
    }

    /// Returns the nodes of the elements of a group.
    #[inline]
    pub(super) fn below(self, nodes: &[Self]) -> &[Self] {
        let (first, count) = self.members();
        nodes.get(first..first + count).unwrap_or_default()
    }

    /// Returns where the nodes of the elements of a group start, and how many they are.
    #[inline]
    pub(super) fn members(self) -> (usize, usize) {
        let [.., a, b, c, d] = self.0;
        let (first, count) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        (first as usize, count as usize)
    }

    /// Notes where the elements of a group are.
    #[inline]
    pub(super) fn hold(self, first: usize, count: usize, flags: u32) -> Self {
        let below = (first as u64) << 32 | (count as u64) << 48;
        Self((u64::from_le_bytes(self.0) | below | flags as u64).to_le_bytes())
    }

    /// Returns everything after the length of an element that has one.
    #[inline]
    pub(super) fn value(self, octets: &[u8]) -> &[u8] {
        let at = self.start();
        &octets[at..at + length(octets, at)]
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
    /// Makes an empty index.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            queue: Vec::new(),
            shapes: Shapes::new(),
            free: 1,
        }
    }

    #[cfg(test)]
    pub(super) const fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Counts the nodes that are kept.
    #[cfg(test)]
    pub(super) const fn kept(&self) -> usize {
        self.free
    }

    /// Walks the elements of `octets[start..]` as members of `group`.
    pub(crate) fn walk<'a>(
        &'a mut self,
        octets: &'a [u8],
        start: usize,
        group: &'static Group,
    ) -> Result<Part<'a>, Error> {
        self.check(octets, start, group)?;
        Ok(self.root(octets, group))
    }

    /// Borrows what was checked last.
    #[inline]
    pub(crate) fn root<'a>(&'a self, octets: &'a [u8], group: &'static Group) -> Part<'a> {
        let node = self.nodes.first().copied().unwrap_or_default();
        Part::whole(octets, &self.nodes, node, Some(Descriptor::Group(group)))
    }

    /// Finds and checks the elements of `octets[start..]`; says, of a message, for which interfaces
    /// nothing is missing or wrong.
    #[inline]
    pub(crate) fn check(
        &mut self,
        octets: &[u8],
        start: usize,
        group: &'static Group,
    ) -> Result<Interfaces, Error> {
        let have = octets.len() - start;
        if have > usize::from(u16::MAX) {
            return Err(Error::new(0, ErrorKind::TooLong { have }));
        }
        if let Some(fit) = self.only_one(octets, start, group) {
            return Ok(fit);
        }
        if let Some(like) = self.shapes.whole(group, have, octets)
            && let Some(root) = self.nodes.first_mut()
        {
            *root = like.node.at(start);
            return Ok(like.fit);
        }
        self.walk_all(octets, start, group)
    }

    /// Checks an element that is alone, if its row says that nothing more is to be looked at; that
    /// is what heartbeats are.
    #[inline]
    fn only_one(
        &mut self,
        octets: &[u8],
        start: usize,
        group: &'static Group,
    ) -> Option<Interfaces> {
        let (head, value) = octets[start..].split_first_chunk::<4>()?;
        let head = u32::from_be_bytes(*head);
        let row = group.rows.of(head);
        let is_whole = (head & 0xffff) as usize == value.len();
        // Where one element is enough it is the first of the table; all others are walked.
        if !is_whole || row.slot() != 0 || row.is_group() || !row.takes(head, value) {
            return None;
        }
        *self.nodes.get_mut(self.free)? = Node::new(4, 0, 0);
        self.nodes[0] = Node::new(start, NO_SLOT, ROOT).hold(self.free, 1, PLAIN);
        Some(Interfaces::ALL.without(group.lacking(1)))
    }

    /// Walks the elements at every depth.
    #[inline(never)]
    fn walk_all(
        &mut self,
        octets: &[u8],
        start: usize,
        group: &'static Group,
    ) -> Result<Interfaces, Error> {
        if self.shapes.trim(self.free) {
            self.free = 1;
        }
        // Elements of a header each.
        let most = self.free + (octets.len() - start) / 4;
        if self.nodes.len() < most {
            self.nodes.resize(most, Node::default());
        }
        self.nodes[0] = Node::new(start, NO_SLOT, ROOT);
        let walk = Walk {
            octets,
            nodes: &mut self.nodes,
            queue: &mut self.queue,
            shapes: &mut self.shapes,
            free: &mut self.free,
            fit: Interfaces::ALL,
        };
        walk.run(group, start)
            .map_err(|fault| fault.error(octets, start, group))
    }

    /// Checks one value.
    pub(crate) fn leaf<'a>(octets: &'a [u8], leaf: &'static Leaf) -> Result<Part<'a>, Error> {
        (leaf.check)(octets).map_err(|kind| Error::new(0, kind))?;
        let node = Node::new(0, NO_SLOT, ROOT);
        let what = Some(Descriptor::Leaf(leaf));
        Ok(Part::whole(octets, &[], node, what))
    }
}

/// Reads the header before a value.
#[inline]
pub(super) fn head(octets: &[u8], at: usize) -> u32 {
    let head = octets[at - 4..].first_chunk();
    head.map_or(0, |head| u32::from_be_bytes(*head))
}

/// Reads the length before a value.
#[inline]
pub(super) fn length(octets: &[u8], at: usize) -> usize {
    let length = octets[at - 2..].first_chunk();
    length.map_or(0, |length| usize::from(u16::from_be_bytes(*length)))
}
