use crate::error::{Error, ErrorKind};
use crate::ie::IeType;

/// Appends elements to a buffer, patching each length when its value is there.
#[derive(Debug)]
pub struct Writer<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    too_long: Option<(IeType, usize)>,
}

impl<'a> Writer<'a> {
    /// Makes a writer that appends.
    #[must_use]
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            too_long: None,
        }
    }

    /// Appends one element whose value `write` appends.
    #[inline]
    pub(crate) fn element(&mut self, ie: IeType, write: impl FnOnce(&mut Self)) {
        let [high, low] = ie.0.to_be_bytes();
        let start = self.out.len();
        self.out.extend_from_slice(&[high, low, 0, 0]);
        write(self);
        self.patch(ie, start);
    }

    /// Writes the length of the element that starts at `start`.
    #[inline]
    pub(crate) fn patch(&mut self, ie: IeType, start: usize) {
        let octets = self.out.len() - start - 4;
        if let Ok(length) = u16::try_from(octets) {
            self.out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        } else {
            self.too_long.get_or_insert((ie, octets));
        }
    }

    /// Ends the writing.
    ///
    /// # Errors
    /// [`ErrorKind::TooLong`] when an element exceeded what its length can say.
    pub fn finish(self) -> Result<(), Error> {
        match self.too_long {
            None => Ok(()),
            Some((ie, have)) => Err(Error::new(0, ErrorKind::TooLong { have }).within(ie, None)),
        }
    }
}
