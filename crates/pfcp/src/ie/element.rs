use super::descriptor::{Descriptor, Group};
use crate::error::{Error, ErrorKind};
use crate::ie::{GroupRemainder, IeType};
use crate::wire::{Index, IndexNode, Part, Tree, UnreadElements, Writer};

/// A typed information element: a row of the tables.
///
/// Each row defines an owned value (the implementor), a borrowed view and a descriptor.
pub trait Ie: Sized {
    /// The type on the wire.
    const TYPE: IeType;
    /// The description of the element in the specification.
    const DESCRIPTOR: Descriptor;
    /// The borrowed view of the element.
    type View<'a>;

    /// Returns the view of a checked part.
    fn view(part: Part<'_>) -> Option<Self::View<'_>>;

    /// Decodes the owned value of a checked part.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Missing`](crate::ErrorKind::Missing) if a mandatory member is absent.
    fn from_part(part: Part<'_>) -> Result<Self, Error>;

    /// Appends the value, without type and length.
    fn write(&self, out: &mut Writer<'_>);

    /// Decodes the value of an element, without type and length.
    ///
    /// Spare bits and trailing bytes of a single leaf are dropped; those inside of groups are kept.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a valid value. The path starts at the element.
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
    /// Returns an error if the value exceeds 65535 bytes or does not fit its fields. Nothing is
    /// appended in that case.
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

/// The construction of an owned value in place, from a blank value to the content of a checked
/// element, and its encoding as an element.
pub(crate) trait Owned: Sized {
    /// Creates a value in which nothing is set.
    fn blank() -> Self;

    /// Sets a blank value to the content of a checked element.
    fn fill(&mut self, tree: &Tree<'_>, node: IndexNode) -> Result<(), Error>;

    /// Appends type, length and value.
    #[inline]
    fn put_element(&self, out: &mut Writer<'_>)
    where
        Self: Ie,
    {
        out.element(Self::TYPE, |out| self.write(out));
    }
}

/// Decodes a member of a group, together with the directly following elements of the same row.
pub(crate) fn fill_run<T: Owned>(
    values: &mut Vec<T>,
    tree: &Tree<'_>,
    first: IndexNode,
    more: &mut UnreadElements<'_>,
) -> Result<(), Error> {
    let (known, run) = (values.len(), 1 + more.leading_run_len(first.slot()));
    if known == 0 {
        values.reserve_exact(run);
    }
    values.resize_with(known + run, T::blank);
    let mut new = values[known..].iter_mut();
    if let Some(value) = new.next() {
        value.fill(tree, first)?;
    }
    for value in new {
        if let Some(node) = more.next_node() {
            value.fill(tree, node)?;
        }
    }
    Ok(())
}

/// A group without a table. It may contain any element, and all of them are unknown.
pub(crate) static GROUP_WITHOUT_TABLE: Group = Group::new(None, "", &[], |part, out| {
    GroupRemainder::of(part).arrange(out, out.out.len(), &GROUP_WITHOUT_TABLE);
    Ok(())
});

/// Returns the error for the first of the missing members.
#[cold]
pub(crate) fn missing_member_error(group: &Group, slots: u64, node: IndexNode) -> Error {
    let member = group.members.get(slots.trailing_zeros() as usize);
    let ie = member.map_or(IeType::RESERVED, |member| member.ie);
    Error::new(node.start(), ErrorKind::Missing(ie))
}
