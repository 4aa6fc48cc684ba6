//! Frames: a header of 24 octets, and a payload.
//!
//! All numbers are big-endian.
//!
//! ```text
//!  0               4     5     6       8       12      16        20      24
//! ┌───────────────┬─────┬─────┬───────┬───────┬───────┬─────────┬───────┬─────────┐
//! │ length        │kind │cont.│ flags │ id    │target │deadline │credit │ payload │
//! └───────────────┴─────┴─────┴───────┴───────┴───────┴─────────┴───────┴─────────┘
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | length | octets of the payload, without the header |
//! | kind | one of [`Kind`] |
//! | content | what the payload is, one of [`Content`] |
//! | flags | none is defined: zero |
//! | id | names a call on its connection; the client chooses it, not zero; zero is the connection |
//! | target | a number that a [`Kind::Name`] frame bound to a name before |
//! | deadline | milliseconds that the call may take; zero leaves it to the server |
//! | credit | how many items the other side may send, more than it may already |
//!
//! | kind | from | payload |
//! |---|---|---|
//! | 1 hello | server, first | JSON: `protocol`, the limits `frame`, `in_flight`, and `token` |
//! | 2 name | client | text: the name that `target` stands for from now on |
//! | 3 call | client | the parameters of a method, or the payload of an ask or a stream |
//! | 4 item | server | one row or item; takes one credit |
//! | 5 done | server | the answer; no content after items |
//! | 6 error | server | JSON: `code`, `message`, `retryable`; with id 0 the connection ends |
//! | 7 cancel | client | none; the call answers with an error, or has been answered |
//! | 8 credit | client | none |
//! | 9 tell | client | the payload of a message that is told |
//! | 10 token | client, first, where `hello` asks for it | text: the token of the door |
//!
//! A [`Decoder`] takes octets as they come, and never reserves what a header merely announces.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strowger::{Content, Payload};

/// The octets of a header.
pub const HEADER: usize = 24;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// The server's first frame.
    Hello = 1,
    /// Binds a target number to a name.
    Name = 2,
    /// Calls a method.
    Call = 3,
    /// One row of a listing.
    Item = 4,
    /// The answer, or the end of a listing.
    Done = 5,
    /// The call failed, or the connection is over.
    Error = 6,
    /// The client does not want the answer any more.
    Cancel = 7,
    /// The client takes more items.
    Credit = 8,
    /// Tells an actor.
    Tell = 9,
    /// Says who the client is, where that is asked for.
    Token = 10,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Hello,
        Self::Name,
        Self::Call,
        Self::Item,
        Self::Done,
        Self::Error,
        Self::Cancel,
        Self::Credit,
        Self::Tell,
        Self::Token,
    ];

    fn from_octet(octet: u8) -> Option<Self> {
        let place = usize::from(octet).checked_sub(1)?;
        Self::ALL.get(place).copied()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hello => "hello",
            Self::Name => "name",
            Self::Call => "call",
            Self::Item => "item",
            Self::Done => "done",
            Self::Error => "error",
            Self::Cancel => "cancel",
            Self::Credit => "credit",
            Self::Tell => "tell",
            Self::Token => "token",
        })
    }
}

/// A header and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// What the frame is for.
    pub kind: Kind,
    /// What the payload is.
    pub content: Content,
    /// The call; zero is the connection.
    pub id: u32,
    /// What is called, by a number bound before.
    pub target: u32,
    /// Milliseconds that the call may take; zero leaves it to the server.
    pub deadline: u32,
    /// How many more items the other side may send.
    pub credit: u32,
    /// The payload.
    pub payload: Bytes,
}

impl Frame {
    /// A frame without payload; the fields that it does not use are zero.
    #[must_use]
    pub const fn new(kind: Kind, id: u32) -> Self {
        Self {
            kind,
            content: Content::None,
            id,
            target: 0,
            deadline: 0,
            credit: 0,
            payload: Bytes::new(),
        }
    }

    /// Gives the frame a payload.
    #[must_use]
    pub fn with_payload(mut self, content: Content, payload: impl Into<Bytes>) -> Self {
        self.content = content;
        self.payload = payload.into();
        self
    }

    /// Gives the frame a JSON payload.
    #[must_use]
    pub fn with_json(self, value: &serde_json::Value) -> Self {
        self.with_payload(Content::Json, value.to_string())
    }

    /// What the frame carries.
    #[must_use]
    pub fn into_payload(self) -> Payload {
        Payload::new(self.content, self.payload)
    }

    /// Appends the frame's octets.
    ///
    /// # Errors
    /// When the payload is longer than `limit`; then nothing is appended.
    pub fn encode_into(&self, limit: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        let too_long = || FrameError {
            at: 0,
            kind: FrameErrorKind::TooLong {
                length: u64::try_from(self.payload.len()).unwrap_or(u64::MAX),
                limit,
            },
        };
        if self.payload.len() > limit {
            return Err(too_long());
        }
        let length = u32::try_from(self.payload.len()).map_err(|_| too_long())?;
        out.reserve(HEADER + self.payload.len());
        out.put_u32(length);
        out.put_u8(self.kind as u8);
        out.put_u8(self.content as u8);
        out.put_u16(0);
        out.put_u32(self.id);
        out.put_u32(self.target);
        out.put_u32(self.deadline);
        out.put_u32(self.credit);
        out.put_slice(&self.payload);
        Ok(())
    }
}

/// Octets that are not frames: what is wrong, and where in the stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("frame at octet {at}: {kind}")]
#[non_exhaustive]
pub struct FrameError {
    /// Where the frame starts, counted from the first octet of the connection.
    pub at: u64,
    /// What is wrong.
    pub kind: FrameErrorKind,
}

/// What is wrong with a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameErrorKind {
    /// The payload is longer than the reader takes.
    #[error("payload of {length} octets, the limit is {limit}")]
    TooLong {
        /// The octets announced.
        length: u64,
        /// The octets allowed.
        limit: usize,
    },
    /// No such kind of frame.
    #[error("unknown kind {0}")]
    UnknownKind(u8),
    /// No such kind of content.
    #[error("unknown content type {0}")]
    UnknownContent(u8),
    /// A flag is set that is not defined.
    #[error("unknown flags {0:#06x}")]
    UnknownFlags(u16),
    /// The content type says that there is no payload, and there is one.
    #[error("payload of {0} octets without a content type")]
    Untyped(u32),
    /// The stream ended inside the frame.
    #[error("the stream ended after {have} of {need} octets")]
    Truncated {
        /// The octets that came.
        have: usize,
        /// The octets of the frame, or of its header if that is not complete.
        need: usize,
    },
}

/// Makes frames of octets as they come.
///
/// After an error the stream has no frames any more: every later call returns the same error.
///
/// ```
/// use bytes::BytesMut;
/// use strowger_gateway::{Decoder, Frame, Kind};
///
/// let mut octets = BytesMut::new();
/// Frame::new(Kind::Cancel, 7).encode_into(1024, &mut octets)?;
/// let mut decoder = Decoder::new(1024);
/// decoder.feed(&octets[..10]);
/// assert_eq!(decoder.next_frame()?, None);
/// decoder.feed(&octets[10..]);
/// assert_eq!(decoder.next_frame()?, Some(Frame::new(Kind::Cancel, 7)));
/// # Ok::<(), strowger_gateway::FrameError>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    limit: usize,
    at: u64,
    broken: Option<FrameError>,
}

impl Decoder {
    /// A decoder for payloads of at most `limit` octets.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            limit,
            at: 0,
            broken: None,
        }
    }

    /// Takes payloads of up to so many octets from now on.
    pub(crate) const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes octets in. Reads of frames should follow: what is fed is kept.
    pub fn feed(&mut self, octets: &[u8]) {
        if self.broken.is_none() {
            self.buffer.extend_from_slice(octets);
        }
    }

    /// The buffer that a reader fills in place of [`Decoder::feed`].
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ);
        &mut self.buffer
    }

    /// Takes the next frame out, if all of it has come.
    ///
    /// # Errors
    /// When what came is no frame, or one that is too long; the header is enough to know.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        match self.parse() {
            Ok(frame) => Ok(frame),
            Err(kind) => {
                let error = FrameError { at: self.at, kind };
                self.buffer = BytesMut::new();
                self.broken = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// When it ends inside a frame.
    pub fn finish(&mut self) -> Result<(), FrameError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let have = self.buffer.len();
        if have == 0 {
            return Ok(());
        }
        let need = self.buffer.first_chunk().map_or(HEADER, |length| {
            HEADER.saturating_add(u32::from_be_bytes(*length) as usize)
        });
        let need = if have < HEADER { HEADER } else { need };
        let kind = FrameErrorKind::Truncated { have, need };
        Err(FrameError { at: self.at, kind })
    }

    fn parse(&mut self) -> Result<Option<Frame>, FrameErrorKind> {
        let Some(mut header) = self.buffer.get(..HEADER) else {
            return Ok(None);
        };
        let announced = header.get_u32();
        let (kind, content, flags) = (header.get_u8(), header.get_u8(), header.get_u16());
        let kind = Kind::from_octet(kind).ok_or(FrameErrorKind::UnknownKind(kind))?;
        let content =
            Content::from_octet(content).ok_or(FrameErrorKind::UnknownContent(content))?;
        if flags != 0 {
            return Err(FrameErrorKind::UnknownFlags(flags));
        }
        let length = announced as usize;
        if length > self.limit {
            return Err(FrameErrorKind::TooLong {
                length: announced.into(),
                limit: self.limit,
            });
        }
        if content == Content::None && length != 0 {
            return Err(FrameErrorKind::Untyped(announced));
        }
        let mut frame = Frame::new(kind, header.get_u32());
        frame.content = content;
        frame.target = header.get_u32();
        frame.deadline = header.get_u32();
        frame.credit = header.get_u32();
        if self.buffer.len() - HEADER < length {
            return Ok(None);
        }
        self.buffer.advance(HEADER);
        frame.payload = self.buffer.split_to(length).freeze();
        self.at += (HEADER + length) as u64;
        Ok(Some(frame))
    }
}

/// How many octets a reader asks for at a time.
const READ: usize = 8 * 1024;

#[cfg(test)]
mod tests;
