use super::descriptor::{Descriptor, Group};
use crate::error::{Error, ErrorKind};
use crate::ie::{IeType, Rest};
use crate::wire::{Below, Index, Node, Part, Tree, Writer};

/// A typed element: a row of the tables.
///
/// Each row gives an owned value (the implementor), a borrowed view and a descriptor.
pub trait Ie: Sized {
    /// The type on the wire.
    const TYPE: IeType;
    /// What the specification says about it.
    const DESCRIPTOR: Descriptor;
    /// The borrowed face.
    type View<'a>;

    /// Reads the borrowed face of a checked part.
    fn view(part: Part<'_>) -> Option<Self::View<'_>>;

    /// Reads the owned value of a checked part.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`](crate::ErrorKind::Missing) when a mandatory member is not there.
    fn from_part(part: Part<'_>) -> Result<Self, Error>;

    /// Appends the value, without type and length.
    fn write(&self, out: &mut Writer<'_>);

    /// Reads the value of an element, without type and length.
    ///
    /// Spare bits and further octets of a single leaf are not kept; those inside of groups are.
    ///
    /// # Errors
    /// When the octets are not such a value; the path starts at the element.
    fn decode(value: &[u8]) -> Result<Self, Error> {
        let mut index = Index::new();
        let part = match Self::DESCRIPTOR {
            Descriptor::Leaf(leaf) => Index::leaf(value, leaf),
            Descriptor::Group(group) => index.walk(value, 0, group),
        };
        part.and_then(Self::from_part)
            .map_err(|error| error.within(Self::TYPE, None))
    }

    /// Appends type, length and value.
    ///
    /// # Errors
    /// When the value exceeds 65535 octets or does not fit its fields; nothing is appended then.
    fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let mut writer = Writer::new(out);
        writer.element(Self::TYPE, |out| self.write(out));
        let written = writer.finish();
        if written.is_err() {
            out.truncate(start);
        }
        written
    }
}

/// How an owned value is made, in its place, from nothing to what a checked element says; and how
/// it becomes a whole element.
pub(crate) trait Owned: Sized {
    /// Makes a value in which nothing is set.
    fn blank() -> Self;

    /// Sets what a checked element says in a blank value.
    fn fill(&mut self, tree: &Tree<'_>, node: Node) -> Result<(), Error>;

    /// Appends type, length and value.
    #[inline]
    fn put_element(&self, out: &mut Writer<'_>)
    where
        Self: Ie,
    {
        out.element(Self::TYPE, |out| self.write(out));
    }
}

/// Fills a member of a group and those after it that are of the same row.
pub(crate) fn fill_run<T: Owned>(
    values: &mut Vec<T>,
    tree: &Tree<'_>,
    first: Node,
    more: &mut Below<'_>,
) -> Result<(), Error> {
    let (known, run) = (values.len(), 1 + more.run(first.slot()));
    if known == 0 {
        values.reserve_exact(run);
    }
    values.resize_with(known + run, T::blank);
    let mut new = values[known..].iter_mut();
    if let Some(value) = new.next() {
        value.fill(tree, first)?;
    }
    for value in new {
        if let Some(node) = more.step() {
            value.fill(tree, node)?;
        }
    }
    Ok(())
}

/// A group without a table: each element may be in it, and none is known.
pub(crate) static UNLISTED: Group = Group::new(None, "", &[], |part, out| {
    Rest::of(part).arrange(out, out.out.len(), &UNLISTED);
    Ok(())
});

/// Says which of the members is missing first.
#[cold]
pub(crate) fn lacking(group: &Group, slots: u64, node: Node) -> Error {
    let member = group.members.get(slots.trailing_zeros() as usize);
    let ie = member.map_or(IeType::RESERVED, |member| member.ie);
    Error::new(node.start(), ErrorKind::Missing(ie))
}
