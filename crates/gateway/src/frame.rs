//! Frames: a header of 24 bytes and a payload.
//!
//! The crate's documentation draws the header. All numbers are big-endian.
//!
//! | field | meaning |
//! |---|---|
//! | length | bytes of the payload, without the header |
//! | kind | one of [`FrameKind`] |
//! | content | the type of the payload, one of [`ContentType`] |
//! | flags | none is defined: zero |
//! | id | a call on this connection, chosen by the client, not zero; zero is the connection |
//! | target | a number that an earlier [`FrameKind::Name`] frame bound to a name |
//! | deadline | milliseconds that the call may take; zero leaves it to the server |
//! | credit | number of additional items that the other side may send |
//!
//! | kind | from | payload |
//! |---|---|---|
//! | 1 hello | server, first | JSON: `protocol`, `frame`, `in_flight`, `names` and `token` |
//! | 2 name | client | text: the name that `target` stands for from now on |
//! | 3 call | client | the parameters of a method, or the payload of an ask or a stream |
//! | 4 item | server | one row or item; takes one credit |
//! | 5 done | server | the answer; no content after items |
//! | 6 error | server | JSON: `code`, `message`, `retryable`; with id 0 the connection ends |
//! | 7 cancel | client | none; the call is answered with an error, unless it was answered before |
//! | 8 credit | client | none |
//! | 9 tell | client | the payload of a tell |
//! | 10 token | client, first, if `hello` asks for it | text: a token of the endpoint |
//!
//! A [`FrameDecoder`] takes bytes as they arrive. It never reserves memory for a length that was
//! only announced.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strowger::{ContentType, Payload};

/// Length of the header of a frame, in bytes.
pub const HEADER_LEN: usize = 24;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum FrameKind {
    /// The first frame of the server.
    Hello = 1,
    /// Binds a target number to a name.
    Name = 2,
    /// Calls a method, or asks an actor.
    Call = 3,
    /// One row of a listing, or one item of a stream.
    Item = 4,
    /// The answer, or the end of a listing or stream.
    Done = 5,
    /// The call failed, or the connection is closing.
    Error = 6,
    /// Cancels a call.
    Cancel = 7,
    /// Grants credit for more items.
    Credit = 8,
    /// Sends a tell to an actor.
    Tell = 9,
    /// Authenticates the client, if required.
    Token = 10,
}

impl FrameKind {
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

    fn from_byte(byte: u8) -> Option<Self> {
        let index = usize::from(byte).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// A header and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The type of the payload.
    pub content: ContentType,
    /// The identifier of the call; zero is the connection.
    pub id: u32,
    /// The target of the call, a number bound before.
    pub target: u32,
    /// Milliseconds that the call may take; zero leaves it to the server.
    pub deadline: u32,
    /// Number of additional items that the other side may send.
    pub credit: u32,
    /// The payload; at most `u32::MAX` bytes.
    pub payload: Bytes,
}

impl Frame {
    /// Creates a frame without payload; all other fields are zero.
    #[must_use]
    pub const fn new(kind: FrameKind, id: u32) -> Self {
        Self {
            kind,
            content: ContentType::None,
            id,
            target: 0,
            deadline: 0,
            credit: 0,
            payload: Bytes::new(),
        }
    }

    /// Sets the payload.
    #[must_use]
    pub fn with_payload(mut self, content: ContentType, payload: impl Into<Bytes>) -> Self {
        self.content = content;
        self.payload = payload.into();
        self
    }

    /// Sets a JSON payload.
    #[must_use]
    pub fn with_json(self, value: &serde_json::Value) -> Self {
        self.with_payload(ContentType::Json, value.to_string())
    }

    /// Returns the payload with its content type.
    #[must_use]
    pub fn into_payload(self) -> Payload {
        Payload::new(self.content, self.payload)
    }

    /// Appends the encoded frame to `out`.
    ///
    /// # Errors
    /// Returns an error if the payload is longer than `limit`; nothing is appended then.
    pub fn encode_into(&self, limit: usize, out: &mut BytesMut) -> Result<(), FrameError> {
        let too_long = || FrameError {
            offset: 0,
            kind: FrameErrorKind::TooLong {
                length: u64::try_from(self.payload.len()).unwrap_or(u64::MAX),
                limit,
            },
        };
        if self.payload.len() > limit {
            return Err(too_long());
        }
        let length = u32::try_from(self.payload.len()).map_err(|_| too_long())?;
        out.reserve(HEADER_LEN + self.payload.len());
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

/// The error returned for bytes that are not a valid frame, with their position in the stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("frame at byte {offset}: {kind}")]
#[non_exhaustive]
pub struct FrameError {
    /// Offset of the frame from the start of the connection, in bytes.
    pub offset: u64,
    /// The kind of the error.
    pub kind: FrameErrorKind,
}

/// The kind of a [`FrameError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameErrorKind {
    /// The payload exceeds the limit of the receiver.
    #[error("payload of {length} bytes, limit is {limit}")]
    TooLong {
        /// The announced length.
        length: u64,
        /// The limit.
        limit: usize,
    },
    /// The kind of the frame is unknown.
    #[error("unknown kind {0}")]
    UnknownKind(u8),
    /// The content type is unknown.
    #[error("unknown content type {0}")]
    UnknownContentType(u8),
    /// An undefined flag is set.
    #[error("unknown flags {0:#06x}")]
    UnknownFlags(u16),
    /// The frame has a payload, but its content type says that it has none.
    #[error("payload of {0} bytes without a content type")]
    Untyped(u32),
    /// The stream ended inside a frame.
    #[error("the stream ended after {have} of {need} bytes")]
    Truncated {
        /// Number of bytes received.
        have: usize,
        /// Length of the frame, or of its header if that is incomplete.
        need: usize,
    },
}

/// A decoder that turns bytes into frames.
///
/// An error is permanent: after it, every call returns the same error.
///
/// ```
/// use bytes::BytesMut;
/// use strowger_gateway::frame::{Frame, FrameDecoder, FrameKind};
///
/// let mut bytes = BytesMut::new();
/// Frame::new(FrameKind::Cancel, 7).encode_into(1024, &mut bytes)?;
/// let mut decoder = FrameDecoder::new(1024);
/// decoder.feed(&bytes[..10]);
/// assert_eq!(decoder.next_frame()?, None);
/// decoder.feed(&bytes[10..]);
/// assert_eq!(decoder.next_frame()?, Some(Frame::new(FrameKind::Cancel, 7)));
/// # Ok::<(), strowger_gateway::frame::FrameError>(())
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    limit: usize,
    offset: u64,
    error_state: Option<FrameError>,
}

impl FrameDecoder {
    /// Creates a decoder for payloads of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            limit,
            offset: 0,
            error_state: None,
        }
    }

    /// Sets the maximum payload of the frames that follow.
    pub(crate) const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Appends received bytes. They are buffered until the frames are taken out.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.error_state.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns the buffer, with spare capacity, for a reader to fill instead of
    /// [`FrameDecoder::feed`].
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_SIZE);
        &mut self.buffer
    }

    /// Takes the next frame, if it is complete.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a frame, or the frame is too long; the header is
    /// enough to detect that.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = &self.error_state {
            return Err(error.clone());
        }
        match self.parse() {
            Ok(frame) => Ok(frame),
            Err(kind) => {
                let error = FrameError {
                    offset: self.offset,
                    kind,
                };
                self.buffer = BytesMut::new();
                self.error_state = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Checks that the stream does not end inside a frame.
    ///
    /// # Errors
    /// Returns [`FrameErrorKind::Truncated`] if it does, or the error of an earlier frame.
    pub fn finish(&mut self) -> Result<(), FrameError> {
        if let Some(error) = &self.error_state {
            return Err(error.clone());
        }
        let have = self.buffer.len();
        if have == 0 {
            return Ok(());
        }
        let need = self.buffer.first_chunk().map_or(HEADER_LEN, |length| {
            HEADER_LEN.saturating_add(u32::from_be_bytes(*length) as usize)
        });
        let need = if have < HEADER_LEN { HEADER_LEN } else { need };
        let kind = FrameErrorKind::Truncated { have, need };
        Err(FrameError {
            offset: self.offset,
            kind,
        })
    }

    fn parse(&mut self) -> Result<Option<Frame>, FrameErrorKind> {
        let Some(mut header) = self.buffer.get(..HEADER_LEN) else {
            return Ok(None);
        };
        let announced = header.get_u32();
        let (kind, content, flags) = (header.get_u8(), header.get_u8(), header.get_u16());
        let kind = FrameKind::from_byte(kind).ok_or(FrameErrorKind::UnknownKind(kind))?;
        let content =
            ContentType::from_byte(content).ok_or(FrameErrorKind::UnknownContentType(content))?;
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
        if content == ContentType::None && length != 0 {
            return Err(FrameErrorKind::Untyped(announced));
        }
        let mut frame = Frame::new(kind, header.get_u32());
        frame.content = content;
        frame.target = header.get_u32();
        frame.deadline = header.get_u32();
        frame.credit = header.get_u32();
        if self.buffer.len() - HEADER_LEN < length {
            return Ok(None);
        }
        self.buffer.advance(HEADER_LEN);
        frame.payload = self.buffer.split_to(length).freeze();
        self.offset += (HEADER_LEN + length) as u64;
        Ok(Some(frame))
    }
}

/// Minimum spare capacity of the buffer for a read, in bytes.
const READ_SIZE: usize = 8 * 1024;

#[cfg(test)]
mod tests;
