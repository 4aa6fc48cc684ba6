//! Lists in a field: consecutive numbers, addresses or texts.

use std::fmt::{self, Debug};
use std::marker::PhantomData;

use crate::error::ErrorKind;

/// Several items of one kind in a field, stored in their wire format.
///
/// ```
/// use strowger_pfcp::ie::{FqCsid, PfdContents};
///
/// let sets = FqCsid::of([192, 0, 2, 1].into(), &[7, 9]);
/// assert_eq!(sets.csids.iter().collect::<Vec<_>>(), [7, 9]);
///
/// let mut contents = PfdContents::url("example.org/a");
/// contents.additional_url = Some(["example.org/b", "example.org/c"].into_iter().collect());
/// assert_eq!(contents.additional_url.map(|urls| urls.iter().count()), Some(2));
/// ```
pub struct List<E: ?Sized, T = Box<[u8]>> {
    bytes: T,
    each: PhantomData<fn(&E)>,
}

/// The item type of a [`List`]: numbers of one or two bytes, MAC addresses, texts, or bytes.
pub trait ListItem {
    /// The value of an item. A text is returned as bytes, which need not be UTF-8.
    type Value<'a>: Debug;

    /// Splits the first item off. Fails if the bytes are too few for it.
    ///
    /// # Errors
    /// Returns the number of bytes that the item needs.
    fn first(bytes: &[u8]) -> Result<(Self::Value<'_>, &[u8]), usize>;
}

/// The item type of a [list](crate::ie::descriptor::FieldKind::List), as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListItemKind {
    /// Unsigned big-endian numbers of one or two bytes each.
    Number(usize),
    /// A MAC address of six bytes.
    Mac,
    /// Texts, each after a length of two bytes.
    Text,
    /// Bytes, each item after a length of two bytes.
    Bytes,
}

impl ListItem for u8 {
    type Value<'a> = Self;

    fn first(bytes: &[u8]) -> Result<(Self, &[u8]), usize> {
        bytes
            .split_first()
            .map_or(Err(1), |(one, rest)| Ok((*one, rest)))
    }
}

impl ListItem for u16 {
    type Value<'a> = Self;

    fn first(bytes: &[u8]) -> Result<(Self, &[u8]), usize> {
        let (number, rest) = bytes.split_first_chunk().ok_or(2usize)?;
        Ok((Self::from_be_bytes(*number), rest))
    }
}

impl ListItem for [u8; 6] {
    type Value<'a> = Self;

    fn first(bytes: &[u8]) -> Result<(Self, &[u8]), usize> {
        let (address, rest) = bytes.split_first_chunk().ok_or(6usize)?;
        Ok((*address, rest))
    }
}

/// Texts or bytes, each item after a length of two bytes.
impl ListItem for [u8] {
    type Value<'a> = &'a [u8];

    fn first(bytes: &[u8]) -> Result<(&[u8], &[u8]), usize> {
        let (length, rest) = u16::first(bytes)?;
        let length = usize::from(length);
        rest.split_at_checked(length).ok_or(2 + length)
    }
}

impl<E: ListItem + ?Sized, T> List<E, T> {
    /// Decodes bytes, which must consist of complete items.
    #[inline]
    pub(crate) fn read<'a>(bytes: &'a [u8]) -> Result<Self, ErrorKind>
    where
        T: From<&'a [u8]>,
    {
        let mut rest = bytes;
        while !rest.is_empty() {
            let have = rest.len();
            (_, rest) = E::first(rest).map_err(|need| ErrorKind::Length { have, need })?;
        }
        Ok(Self::of(T::from(bytes)))
    }
}

impl<E: ?Sized, T> List<E, T> {
    const fn of(bytes: T) -> Self {
        let each = PhantomData;
        Self { bytes, each }
    }
}

impl<E: ListItem + ?Sized, T: AsRef<[u8]>> List<E, T> {
    /// Returns an iterator over the items.
    pub fn iter(&self) -> impl Iterator<Item = E::Value<'_>> {
        let mut rest = self.bytes.as_ref();
        std::iter::from_fn(move || {
            let (one, after) = E::first(rest).ok()?;
            rest = after;
            Some(one)
        })
    }

    /// Returns the bytes in wire format, without the length or count before them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl FromIterator<u8> for List<u8> {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        Self::of(numbers.into_iter().collect())
    }
}

impl FromIterator<u16> for List<u16> {
    fn from_iter<I: IntoIterator<Item = u16>>(numbers: I) -> Self {
        Self::of(numbers.into_iter().flat_map(u16::to_be_bytes).collect())
    }
}

impl FromIterator<[u8; 6]> for List<[u8; 6]> {
    fn from_iter<I: IntoIterator<Item = [u8; 6]>>(addresses: I) -> Self {
        Self::of(addresses.into_iter().flatten().collect())
    }
}

/// A text of more than 65535 bytes results in a list that no element can hold, so encoding it
/// fails.
impl<A: AsRef<[u8]>> FromIterator<A> for List<[u8]> {
    fn from_iter<I: IntoIterator<Item = A>>(texts: I) -> Self {
        let mut bytes = Vec::new();
        for text in texts {
            let text = text.as_ref();
            let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text);
        }
        Self::of(bytes.into())
    }
}

impl<E: ?Sized, T: Default> Default for List<E, T> {
    fn default() -> Self {
        Self::of(T::default())
    }
}

impl<E: ?Sized, T: Clone> Clone for List<E, T> {
    fn clone(&self) -> Self {
        Self::of(self.bytes.clone())
    }
}

impl<E: ?Sized, T: PartialEq> PartialEq for List<E, T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<E: ?Sized, T: Eq> Eq for List<E, T> {}

impl<E: ?Sized, T: Debug> Debug for List<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("List").field(&self.bytes).finish()
    }
}
