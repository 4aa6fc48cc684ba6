use std::fmt;

use super::{Body, BodyView, Message, MessageType, table};
use crate::error::{Error, ErrorKind};
use crate::ie::{Interfaces, Release};
use crate::validate;
use crate::wire::{Frame, Header, Index, Part};

/// A message that borrows its bytes. Every length at every depth has been checked.
///
/// ```
/// use strowger_pfcp::message::BodyView;
/// use strowger_pfcp::{Index, MessageView};
///
/// let bytes = [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0xe8, 0x1f, 0xe7, 0xb4];
/// let mut index = Index::new();
/// let view = MessageView::decode(&bytes, &mut index)?;
/// let BodyView::HeartbeatRequest(heartbeat) = view.body() else { unreachable!() };
/// assert_eq!(heartbeat.recovery_time_stamp().map(|time| time.0), Some(0xe81f_e7b4));
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    header: Header,
    root: Part<'a>,
    valid_on: Interfaces,
}

impl<'a> MessageView<'a> {
    /// Decodes `bytes`, which must hold exactly one message.
    ///
    /// # Errors
    /// Returns an error if the bytes are not one well-formed message. Missing mandatory elements
    /// are reported by validation instead.
    #[inline]
    pub fn decode(bytes: &'a [u8], index: &'a mut Index) -> Result<Self, Error> {
        Self::of(&Frame::decode(bytes)?, index)
    }

    /// Decodes a message of a datagram. Offsets in errors count from the start of the message.
    ///
    /// # Errors
    /// Returns an error if the elements are not well-formed.
    #[inline]
    pub fn of(frame: &Frame<'a>, index: &'a mut Index) -> Result<Self, Error> {
        let header = frame.header;
        let message_type = header.message_type;
        if message_type.name().is_some() && message_type.is_session() != header.seid.is_some() {
            return Err(Error::new(0, ErrorKind::SeidFlag).in_message(message_type));
        }
        let table = table(message_type);
        let mut valid_on = index
            .check(frame.bytes, header.encoded_len(), table)
            .map_err(|error| error.in_message(message_type))?;
        valid_on = valid_on.and(message_type.interfaces_of(table, Release::R19));
        let root = index.root(frame.bytes, table);
        validate::of_message(root, message_type, |_, _| valid_on = Interfaces::NONE);
        Ok(Self {
            header,
            root,
            valid_on,
        })
    }

    /// Returns the interfaces on which the message has no missing or invalid element.
    #[inline]
    pub(crate) const fn valid_on(&self) -> Interfaces {
        self.valid_on
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the type.
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        self.header.message_type
    }

    /// Returns the elements as typed values.
    #[must_use]
    #[inline]
    pub const fn body(&self) -> BodyView<'a> {
        BodyView::new(self.header.message_type, self.root)
    }

    /// Returns the elements as an untyped tree.
    #[must_use]
    pub const fn root(&self) -> Part<'a> {
        self.root
    }

    /// Converts the view into an owned message.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Missing`] if a mandatory element is absent.
    pub fn to_message(&self) -> Result<Message, Error> {
        let body = Body::from_parts(self.header.message_type, self.root)
            .map_err(|error| error.in_message(self.header.message_type))?;
        Ok(Message {
            header: self.header,
            body,
        })
    }
}

impl fmt::Display for MessageView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::message(f, self, &crate::vendor::NONE)
    }
}
