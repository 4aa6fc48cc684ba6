use super::descriptor::Descriptor;
use crate::error::Error;
use crate::ie::IeType;
use crate::wire::{Index, Part, Writer};

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
            Descriptor::Group(group) => index.walk(value, 0, group).map(|(part, _)| part),
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
        put(self, &mut writer);
        let written = writer.finish();
        if written.is_err() {
            out.truncate(start);
        }
        written
    }
}

/// Appends one element.
#[inline]
pub(crate) fn put<T: Ie>(value: &T, out: &mut Writer<'_>) {
    out.element(T::TYPE, |out| value.write(out));
}
