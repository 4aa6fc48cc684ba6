//! Encoding of elements into a growing buffer.
//!
//! The length of an element is written after its value, so nothing is computed twice and nothing is
//! moved. A value that cannot be encoded does not stop the caller: the first fault is remembered,
//! the bytes after it are garbage, and [`Writer::finish`] returns the error. Encoding code is
//! therefore free of error branches.
//!
//! The path to the fault is not tracked. `WriteFault::locate` finds it by reading the output again,
//! which works because all elements that are complete have right lengths.

use crate::error::{Error, ErrorKind};
use crate::ie::IeType;
use crate::ie::descriptor::{Descriptor, Group, describe};

use super::Tlvs;

/// Appends elements to a buffer, and sets the length of each when its value is complete.
#[derive(Debug)]
pub struct Writer<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    start: usize,
    /// The first value that cannot be encoded.
    fault: Option<Box<WriteFault>>,
}

#[derive(Debug)]
struct WriteFault {
    kind: ErrorKind,
    at: usize,
    /// The elements that are too long for their length fields, innermost first, and their offsets.
    too_long: Vec<(IeType, usize)>,
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends to `out`.
    #[must_use]
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            start: out.len(),
            out,
            fault: None,
        }
    }

    /// Appends an element whose value `write` appends.
    #[inline]
    pub(crate) fn element(&mut self, ie: IeType, write: impl FnOnce(&mut Self)) {
        let start = self.begin(ie);
        write(self);
        self.patch(ie, start);
    }

    #[inline]
    fn begin(&mut self, ie: IeType) -> usize {
        let [high, low] = ie.0.to_be_bytes();
        let start = self.out.len();
        // Stays zero if the value turns out to be too long. `locate` depends on that.
        self.out.extend_from_slice(&[high, low, 0, 0]);
        start
    }

    /// Appends an element that consists of the lowest `width` bits of a number. `N` is its number
    /// of bytes, including type and length. Returns `true` if the number has no higher bits.
    #[inline]
    pub(crate) fn number<const N: usize>(&mut self, ie: IeType, number: u64, width: u32) -> bool {
        let counted = number & (u64::MAX >> (64 - width));
        // One array of known length, so that a single copy checks the capacity once.
        let mut bytes = [0; N];
        let (head, value) = bytes.split_at_mut(4);
        let [high, low] = ie.0.to_be_bytes();
        // A number has at most eight bytes, so the high byte of the length is zero.
        let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
        head.copy_from_slice(&[high, low, 0, length]);
        value.copy_from_slice(&counted.to_be_bytes()[8 - value.len()..]);
        self.out.extend_from_slice(&bytes);
        counted == number
    }

    /// Sets the length of the element that starts at `start`.
    #[inline]
    pub(crate) fn patch(&mut self, ie: IeType, start: usize) {
        let bytes = self.out.len() - start - 4;
        // A failure is not returned: the elements around this one fail in turn, and add themselves.
        if let Ok(length) = u16::try_from(bytes) {
            self.out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        } else {
            self.exceed(ie, start, bytes);
        }
    }

    /// Returns `true` if a value could not be encoded, so that the output will be discarded.
    #[inline]
    pub(crate) const fn has_fault(&self) -> bool {
        self.fault.is_some()
    }

    /// Records that the value being written cannot be encoded.
    #[cold]
    pub(crate) fn refuse(&mut self, kind: ErrorKind) {
        let at = self.out.len();
        // The first fault stays, because later ones may only follow from it.
        self.fault.get_or_insert_with(|| {
            Box::new(WriteFault {
                kind,
                at,
                too_long: Vec::new(),
            })
        });
    }

    #[cold]
    fn exceed(&mut self, ie: IeType, start: usize, have: usize) {
        self.refuse(ErrorKind::TooLong { have });
        let Some(WriteFault { at, too_long, .. }) = self.fault.as_deref_mut() else {
            return;
        };
        // An element that contains one that is too long is too long itself. Elements after it are
        // not affected.
        // At first the offset of the fault: an element that starts after it does not contain it.
        let inner = too_long.last().map_or(*at, |(_, inner)| *inner);
        if start < inner {
            too_long.push((ie, start));
        }
    }

    /// Finishes the elements of no particular group.
    ///
    /// # Errors
    /// Returns the error of the first value that cannot be encoded: [`ErrorKind::TooLong`],
    /// [`ErrorKind::Range`] or [`ErrorKind::Contradiction`].
    pub fn finish(self) -> Result<(), Error> {
        self.finish_in(None)
    }

    /// Finishes the members of a group.
    #[inline]
    pub(crate) fn finish_in(self, group: Option<&'static Group>) -> Result<(), Error> {
        match self.fault {
            None => Ok(()),
            Some(fault) => Err(fault.locate(self.out, self.start, group)),
        }
    }
}

impl WriteFault {
    /// Finds the path to the value that could not be encoded.
    #[cold]
    fn locate(&self, bytes: &[u8], start: usize, group: Option<&'static Group>) -> Error {
        let mut steps = Vec::new();
        let (mut start, mut group) = (start, group);
        let mut open = self.too_long.iter().rev();
        loop {
            // An element that is too long has length zero, so its members look like its siblings.
            // Its index is therefore counted up to its known offset. Any other fault is in the
            // element whose end reaches it.
            let next = match open.next() {
                Some((_, at)) => Tlvs::at(&bytes[start..*at], start)
                    .map_while(Result::ok)
                    .count(),
                // The innermost element that is too long is the last step.
                None if matches!(self.kind, ErrorKind::TooLong { .. }) => break,
                None => usize::MAX,
            };
            let mut elements = Tlvs::at(&bytes[start..], start).map_while(Result::ok);
            let mut before = Vec::new();
            // A length that does not fit its field is zero, but the element can be found anyway.
            let found = elements.by_ref().enumerate().find(|(place, element)| {
                let end = element.offset + 4 + raw_length(bytes, element.offset);
                let is_it = *place == next || (next == usize::MAX && end >= self.at);
                if !is_it {
                    before.push(element.ie);
                }
                is_it
            });
            let Some((_, element)) = found else { break };
            let member = group.and_then(|group| group.member(element.ie));
            let same = before.iter().filter(|ie| **ie == element.ie).count();
            let many = member.is_some_and(|member| member.many);
            steps.push((element.ie, many.then_some(same)));
            // A member that the table does not have is described by its type alone.
            let what = member
                .map(|member| member.descriptor)
                .or_else(|| describe(element.ie));
            let Some(Descriptor::Group(inner)) = what else {
                break;
            };
            (start, group) = (element.offset + 4, Some(inner));
        }
        steps
            .into_iter()
            .rev()
            .fold(Error::new(0, self.kind), |error, (ie, index)| {
                error.within(ie, index)
            })
    }
}

/// Reads the length of the element that starts at `at`.
fn raw_length(bytes: &[u8], at: usize) -> usize {
    let length = bytes.get(at + 2..).and_then(|rest| rest.first_chunk());
    length.map_or(0, |length| usize::from(u16::from_be_bytes(*length)))
}
