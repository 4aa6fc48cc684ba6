//! The messages of a datagram. A peer may bundle several: all but the last have the follow-on flag,
//! TS 29.244 §7.2.2.1.
//!
//! States of the iterator: another message must follow (at the start, and after a follow-on flag),
//! or none may. Both mistakes are errors, because bytes that no header announces have no meaning.

use std::iter::FusedIterator;

use super::{Header, Tlvs};
use crate::error::{Error, ErrorKind};

/// A message of a datagram: its header, its body and all its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The decoded header.
    pub header: Header,
    /// Elements of the message, still encoded.
    pub body: &'a [u8],
    /// The encoded message, including its header.
    pub bytes: &'a [u8],
    /// The offset of the message in the datagram.
    pub offset: usize,
}

impl<'a> Frame<'a> {
    /// Decodes `bytes`, which must hold exactly one message.
    ///
    /// # Errors
    /// Returns the errors of [`frames`], and [`ErrorKind::Trailing`] if a second message follows.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut frames = frames(bytes);
        let frame = frames.frame()?;
        match frames.rest {
            [] => Ok(frame),
            rest => {
                let kind = ErrorKind::Trailing { bytes: rest.len() };
                Err(Error::new(frames.offset, kind).in_message(frame.header.message_type))
            }
        }
    }

    /// Returns an iterator over the elements of the body. Their offsets count from the start of the
    /// message.
    #[must_use]
    pub fn tlvs(&self) -> Tlvs<'a> {
        Tlvs::at(self.body, self.header.encoded_len())
    }
}

/// Splits a datagram into its messages.
///
/// The length in each header must agree with the datagram: a message without the follow-on flag is
/// the last one, and a message with the flag is not. The iterator ends after its first error.
///
/// ```
/// let heartbeats = [
///     0x24, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 1, 2, 3, 4, //
///     0x20, 1, 0, 12, 0, 0, 2, 0, 0, 96, 0, 4, 1, 2, 3, 4,
/// ];
/// let sequences: Vec<u32> = strowger_pfcp::frames(&heartbeats)
///     .map(|frame| frame.map(|frame| frame.header.sequence.get()))
///     .collect::<Result<_, _>>()?;
/// assert_eq!(sequences, [1, 2]);
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[must_use]
pub fn frames(datagram: &[u8]) -> Frames<'_> {
    Frames {
        rest: datagram,
        offset: 0,
        // An empty datagram is an error as well, and not an iterator without messages.
        expected: true,
    }
}

/// An iterator over the messages of a datagram; see [`frames`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
    offset: usize,
    /// `true` if another message must follow.
    expected: bool,
}

impl<'a> Frames<'a> {
    #[inline]
    fn frame(&mut self) -> Result<Frame<'a>, Error> {
        let (header, length) = Header::decode(self.rest)?;
        // A message that is longer than its datagram is discarded (§7.6.3).
        let Some((bytes, rest)) = self.rest.split_at_checked(length) else {
            let kind = ErrorKind::MessageLength {
                have: self.rest.len(),
                declared: length,
            };
            return Err(Error::new(2, kind).in_message(header.message_type));
        };
        // Either the flag or the length is wrong, so the message itself cannot be trusted.
        if !header.follow_on && !rest.is_empty() {
            let kind = ErrorKind::Trailing { bytes: rest.len() };
            return Err(Error::new(length, kind).in_message(header.message_type));
        }
        let frame = Frame {
            header,
            body: &bytes[header.encoded_len()..],
            bytes,
            offset: self.offset,
        };
        self.rest = rest;
        self.offset += length;
        // A flag on the last message shows at the next call, which finds no header.
        self.expected = header.follow_on;
        Ok(frame)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.expected {
            return None;
        }
        let offset = self.offset;
        Some(self.frame().map_err(|error| {
            // Where the next message starts is unknown.
            self.expected = false;
            error.shifted(offset)
        }))
    }
}

impl FusedIterator for Frames<'_> {}
