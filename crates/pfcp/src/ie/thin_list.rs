use std::fmt;
use std::ops::{Deref, DerefMut};
use std::slice;
use std::vec;

/// A list of members that is usually empty, and one pointer wide.
///
/// It dereferences to a slice, and grows like a vector.
///
/// ```
/// use strowger_pfcp::ie::{Pdi, Qfi, SourceInterface};
///
/// let mut pdi = Pdi::new(SourceInterface::ACCESS).qfis([1, 2]);
/// pdi.qfis.push(Qfi(9));
/// assert_eq!(pdi.qfis.iter().map(|qfi| qfi.0).collect::<Vec<_>>(), [1, 2, 9]);
/// ```
#[derive(Clone)]
#[expect(clippy::box_collection, reason = "a pointer takes a third of the room")]
pub struct ThinList<T>(Option<Box<Vec<T>>>);

impl<T> ThinList<T> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Appends a value.
    pub fn push(&mut self, value: T) {
        self.list().push(value);
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Returns the underlying vector.
    pub(crate) fn list(&mut self) -> &mut Vec<T> {
        self.0.get_or_insert_default()
    }
}

impl<T> Default for ThinList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for ThinList<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl<T> DerefMut for ThinList<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_deref_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

impl<T> Extend<T> for ThinList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl<T> FromIterator<T> for ThinList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut few = Self::new();
        few.extend(values);
        few
    }
}

impl<T> From<Vec<T>> for ThinList<T> {
    fn from(values: Vec<T>) -> Self {
        Self((!values.is_empty()).then(|| Box::new(values)))
    }
}

impl<T> From<ThinList<T>> for Vec<T> {
    fn from(few: ThinList<T>) -> Self {
        few.0.map_or_else(Self::new, |values| *values)
    }
}

impl<T> IntoIterator for ThinList<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> vec::IntoIter<T> {
        Vec::from(self).into_iter()
    }
}

impl<'a, T> IntoIterator for &'a ThinList<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut ThinList<T> {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn into_iter(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

impl<T: PartialEq> PartialEq for ThinList<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for ThinList<T> {}

impl<T: fmt::Debug> fmt::Debug for ThinList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}
