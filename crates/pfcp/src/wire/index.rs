use crate::error::{Error, ErrorKind};
use crate::ie::IeType;
use crate::ie::descriptor::{Descriptor, Group, Leaf, Member, NO_SLOT};

/// The elements of one message at every depth, found and checked in one walk.
///
/// An index is a buffer: use it again for the next message, and nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct Index {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    start: u32,
    octets: u32,
    /// The nodes below this one, which follow it.
    below: u16,
    ie: IeType,
    slot: u8,
    flags: u8,
}

/// The rows say all about the group: order, no unknown element, no spare bit, no octet more.
const PLAIN: u8 = 1;
/// A further element of a type that may occur once.
const REPEATED: u8 = 2;

/// The groups within groups that are walked; the tables of the specification need five.
pub(crate) const DEPTH: usize = 8;

impl Index {
    /// Makes an empty index.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Walks the elements of `octets[start..]` as members of `group`.
    pub(crate) fn walk<'a>(
        &'a mut self,
        octets: &'a [u8],
        start: usize,
        group: &'static Group,
    ) -> Result<Part<'a>, Error> {
        let ie = group.ie.unwrap_or(IeType::RESERVED);
        self.nodes.clear();
        self.push(ie, NO_SLOT, start, octets.len() - start);
        let mut walk = Walk {
            octets,
            nodes: &mut self.nodes,
        };
        let plain = walk.group(group, start, octets.len(), 0)?;
        walk.close(0, plain);
        let what = Some(Descriptor::Group(group));
        Ok(Part {
            octets,
            nodes: &self.nodes,
            what,
            role: None,
        })
    }

    /// Checks one value.
    pub(crate) fn leaf<'a>(
        &'a mut self,
        octets: &'a [u8],
        leaf: &'static Leaf,
    ) -> Result<Part<'a>, Error> {
        self.nodes.clear();
        (leaf.check)(octets).map_err(|kind| Error::new(0, kind))?;
        self.push(leaf.ie, NO_SLOT, 0, octets.len());
        let what = Some(Descriptor::Leaf(leaf));
        Ok(Part {
            octets,
            nodes: &self.nodes,
            what,
            role: None,
        })
    }

    fn push(&mut self, ie: IeType, slot: u8, start: usize, octets: usize) {
        self.nodes.push(Node::new(ie, slot, start, octets));
    }
}

impl Node {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a message has at most 65539 octets"
    )]
    fn new(ie: IeType, slot: u8, start: usize, octets: usize) -> Self {
        Self {
            start: start as u32,
            octets: octets as u32,
            below: 0,
            ie,
            slot,
            flags: 0,
        }
    }
}

struct Walk<'a> {
    octets: &'a [u8],
    nodes: &'a mut Vec<Node>,
}

impl Walk<'_> {
    /// Walks one group; returns whether the rows say all about it.
    fn group(
        &mut self,
        group: &'static Group,
        start: usize,
        end: usize,
        depth: usize,
    ) -> Result<bool, Error> {
        if depth > DEPTH {
            return Err(Error::new(start, ErrorKind::Depth { limit: DEPTH }));
        }
        let (mut at, mut seen, mut last, mut plain) = (start, 0u64, 0u8, true);
        while at < end {
            let (ie, value, next) = self.element(at, end)?;
            at = next;
            let slot = group.slot(ie);
            let Some(member) = group.members.get(usize::from(slot)) else {
                self.nodes.push(Node::new(ie, NO_SLOT, value, next - value));
                plain = false;
                continue;
            };
            let bit = 1u64 << (slot & 63);
            if seen & bit & group.once != 0 {
                let mut node = Node::new(ie, NO_SLOT, value, next - value);
                node.flags = REPEATED;
                self.nodes.push(node);
                plain = false;
                continue;
            }
            plain &= slot >= last;
            last = slot;
            seen |= bit;
            let index = self.nodes.len();
            self.nodes.push(Node::new(ie, slot, value, next - value));
            let inner = match member.what {
                Descriptor::Leaf(leaf) if leaf.plain == next - value => Ok(true),
                Descriptor::Leaf(leaf) => {
                    (leaf.check)(&self.octets[value..next]).map_err(|kind| Error::new(value, kind))
                }
                Descriptor::Group(group) => {
                    self.group(group, value, next, depth + 1).map(|plain| {
                        self.close(index, plain);
                        true
                    })
                }
            };
            plain &= inner.map_err(|error| self.within(error, member, start, value))?;
        }
        Ok(plain)
    }

    /// Reads the header of an element: its type, where its value starts, where it ends.
    #[inline]
    fn element(&self, at: usize, end: usize) -> Result<(IeType, usize, usize), Error> {
        let octets = &self.octets[at..end];
        let Some(head) = octets.first_chunk::<4>() else {
            return Err(Error::new(
                at,
                ErrorKind::ElementHeader { have: octets.len() },
            ));
        };
        let ie = IeType(u16::from_be_bytes([head[0], head[1]]));
        let declared = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let have = octets.len() - 4;
        if declared > have {
            let kind = ErrorKind::Overrun { have, declared };
            return Err(Error::new(at, kind).within(ie, None));
        }
        if ie.is_vendor() && declared < 2 {
            return Err(Error::new(at, ErrorKind::Enterprise { have: declared }).within(ie, None));
        }
        Ok((ie, at + 4, at + 4 + declared))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "65539 octets hold fewer than 2^16 nodes"
    )]
    fn close(&mut self, index: usize, plain: bool) {
        let below = self.nodes.len() - index - 1;
        let node = &mut self.nodes[index];
        node.below = below as u16;
        node.flags |= if plain { PLAIN } else { 0 };
    }

    /// Adds a member to the path of an error, with its place where there may be several.
    #[cold]
    fn within(&self, error: Error, member: &Member, start: usize, value: usize) -> Error {
        let index = member.many.then(|| {
            super::Tlvs::new(&self.octets[start..value - 4])
                .filter(|tlv| tlv.as_ref().is_ok_and(|tlv| tlv.ie == member.ie))
                .count()
        });
        error.within(member.ie, index)
    }
}

/// One element of a checked message, with those below it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    octets: &'a [u8],
    /// The node of the part and all below it.
    nodes: &'a [Node],
    what: Option<Descriptor>,
    role: Option<&'static Member>,
}

impl<'a> Part<'a> {
    /// Returns the type.
    #[must_use]
    pub fn ie(&self) -> IeType {
        self.nodes[0].ie
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
        let start = self.offset();
        &self.octets[start..start + self.nodes[0].octets as usize]
    }

    /// Returns where the value starts in the octets that were handed in.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.nodes[0].start as usize
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
        self.nodes[0].flags & REPEATED != 0
    }

    /// Says that the rows tell all about the group.
    pub(crate) fn is_plain(&self) -> bool {
        self.nodes[0].flags & PLAIN != 0
    }

    #[inline]
    pub(crate) fn slot(&self) -> u8 {
        self.nodes[0].slot
    }

    /// Walks the elements of a group in the order of the wire.
    #[must_use]
    #[inline]
    pub fn parts(&self) -> Parts<'a> {
        let below = usize::from(self.nodes[0].below);
        let members = match self.what {
            Some(Descriptor::Group(group)) => group.members,
            _ => &[],
        };
        Parts {
            octets: self.octets,
            nodes: &self.nodes[1..=below],
            members,
        }
    }

    /// Returns the first element of a type.
    #[must_use]
    pub fn find(&self, ie: IeType) -> Option<Self> {
        self.parts().find(|part| part.ie() == ie)
    }

    /// Adds this element to the path of an error, given the group that it stands in.
    #[cold]
    pub(crate) fn blame(&self, error: Error, container: Part<'_>) -> Error {
        let many = self.role.is_some_and(|member| member.many);
        let before = |part: &Part<'_>| part.ie() == self.ie() && part.offset() < self.offset();
        error.within(
            self.ie(),
            many.then(|| container.parts().filter(before).count()),
        )
    }
}

/// The elements of a group; see [`Part::parts`].
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    octets: &'a [u8],
    nodes: &'a [Node],
    members: &'static [Member],
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    #[inline]
    fn next(&mut self) -> Option<Part<'a>> {
        let node = self.nodes.first()?;
        let (nodes, rest) = self.nodes.split_at_checked(usize::from(node.below) + 1)?;
        self.nodes = rest;
        let role = self.members.get(usize::from(node.slot));
        let what = role.map(|member| member.what);
        Some(Part {
            octets: self.octets,
            nodes,
            what,
            role,
        })
    }
}
