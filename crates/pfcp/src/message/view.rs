use std::fmt;

use super::{Body, BodyView, Message, MessageType, table};
use crate::error::{Error, ErrorKind};
use crate::ie::Interfaces;
use crate::validate;
use crate::wire::{Frame, Header, Index, Part};

/// A message that borrows its octets; every length at every depth was checked.
///
/// ```
/// use strowger_pfcp::message::BodyView;
/// use strowger_pfcp::{Index, MessageView};
///
/// let octets = [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0xe8, 0x1f, 0xe7, 0xb4];
/// let mut index = Index::new();
/// let view = MessageView::decode(&octets, &mut index)?;
/// let BodyView::HeartbeatRequest(heartbeat) = view.body() else { unreachable!() };
/// assert_eq!(heartbeat.recovery_time_stamp().map(|time| time.0), Some(0xe81f_e7b4));
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    header: Header,
    root: Part<'a>,
    fit: Interfaces,
}

impl<'a> MessageView<'a> {
    /// Reads the only message of `octets`.
    ///
    /// # Errors
    /// When the octets are not one well-formed message. That nothing mandatory is missing is
    /// a matter of validation.
    #[inline]
    pub fn decode(octets: &'a [u8], index: &'a mut Index) -> Result<Self, Error> {
        Self::of(&Frame::decode(octets)?, index)
    }

    /// Reads a message of a datagram; offsets in errors count from the start of the message.
    ///
    /// # Errors
    /// When the elements are not well-formed.
    #[inline]
    pub fn of(frame: &Frame<'a>, index: &'a mut Index) -> Result<Self, Error> {
        let header = frame.header;
        let message_type = header.message_type;
        if message_type.name().is_some() && message_type.is_session() != header.seid.is_some() {
            return Err(Error::new(0, ErrorKind::SeidFlag).in_message(message_type));
        }
        let table = table(message_type);
        let mut fit = index
            .check(frame.octets, header.octets(), table)
            .map_err(|error| error.in_message(message_type))?;
        fit = fit.and(message_type.interfaces());
        let root = index.root(frame.octets, table);
        validate::of_message(root, message_type, |_, _| fit = Interfaces::NONE);
        Ok(Self { header, root, fit })
    }

    /// Returns the interfaces for which nothing is missing or wrong.
    #[inline]
    pub(crate) const fn fit(&self) -> Interfaces {
        self.fit
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

    /// Returns the typed elements.
    #[must_use]
    #[inline]
    pub const fn body(&self) -> BodyView<'a> {
        BodyView::new(self.header.message_type, self.root)
    }

    /// Returns the untyped elements.
    #[must_use]
    pub const fn root(&self) -> Part<'a> {
        self.root
    }

    /// Makes the owned value.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`] when a mandatory element is not there.
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
