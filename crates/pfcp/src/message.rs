//! Messages: the header and the elements that a type of message takes.

mod body;
mod node;
mod number;
mod session;
mod view;

use std::fmt;

use crate::error::Error;
use crate::wire::{Header, Index, Seid, Sequence, Writer};

pub use body::{Body, BodyView};
pub use node::{
    AssociationReleaseRequest, AssociationReleaseRequestView, AssociationReleaseResponse,
    AssociationReleaseResponseView, AssociationSetupRequest, AssociationSetupRequestView,
    AssociationSetupResponse, AssociationSetupResponseView, AssociationUpdateRequest,
    AssociationUpdateRequestView, AssociationUpdateResponse, AssociationUpdateResponseView,
    HeartbeatRequest, HeartbeatRequestView, HeartbeatResponse, HeartbeatResponseView,
    NodeReportRequest, NodeReportRequestView, NodeReportResponse, NodeReportResponseView,
    PfdManagementRequest, PfdManagementRequestView, PfdManagementResponse,
    PfdManagementResponseView, SessionSetDeletionRequest, SessionSetDeletionRequestView,
    SessionSetDeletionResponse, SessionSetDeletionResponseView, SessionSetModificationRequest,
    SessionSetModificationRequestView, SessionSetModificationResponse,
    SessionSetModificationResponseView, VersionNotSupportedResponse,
    VersionNotSupportedResponseView,
};
pub use number::MessageType;
pub use session::{
    SessionDeletionRequest, SessionDeletionRequestView, SessionDeletionResponse,
    SessionDeletionResponseView, SessionEstablishmentRequest, SessionEstablishmentRequestView,
    SessionEstablishmentResponse, SessionEstablishmentResponseView, SessionModificationRequest,
    SessionModificationRequestView, SessionModificationResponse, SessionModificationResponseView,
    SessionReportRequest, SessionReportRequestView, SessionReportResponse,
    SessionReportResponseView,
};
pub use view::MessageView;

pub(crate) use body::table;

/// A message as an owned value.
///
/// It keeps everything that its octets said: unknown elements, their order, spare bits. Encoding
/// it gives the same octets.
///
/// ```
/// use strowger_pfcp::message::HeartbeatRequest;
/// use strowger_pfcp::{Message, Sequence};
///
/// let message = Message::node(Sequence::new(1), HeartbeatRequest::new(0xe81f_e7b4));
/// let octets = message.encode()?;
/// assert_eq!(octets, [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0xe8, 0x1f, 0xe7, 0xb4]);
/// assert_eq!(Message::decode(&octets)?, message);
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The header; its type is that of the body.
    pub header: Header,
    /// The elements.
    pub body: Body,
}

impl Message {
    /// Makes a message between nodes.
    #[must_use]
    pub fn node(sequence: Sequence, body: impl Into<Body>) -> Self {
        let body = body.into();
        Self {
            header: Header::node(body.message_type(), sequence),
            body,
        }
    }

    /// Makes a message of a session.
    #[must_use]
    pub fn session(seid: Seid, sequence: Sequence, body: impl Into<Body>) -> Self {
        let body = body.into();
        Self {
            header: Header::session(body.message_type(), seid, sequence),
            body,
        }
    }

    /// Reads the only message of `octets`.
    ///
    /// # Errors
    /// When the octets are not one well-formed message, or a mandatory element is missing.
    pub fn decode(octets: &[u8]) -> Result<Self, Error> {
        MessageView::decode(octets, &mut Index::new())?.to_message()
    }

    /// Appends the octets.
    ///
    /// # Errors
    /// [`ErrorKind::TooLong`](crate::ErrorKind::TooLong) when a length cannot say how long an
    /// element or the message is; nothing is appended then.
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        self.write(out).map_err(|error| {
            out.truncate(start);
            error.in_message(self.header.message_type)
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let header = Header {
            message_type: self.body.message_type(),
            ..self.header
        };
        header.encode(0, out)?;
        let mut writer = Writer::new(out);
        self.body.write(&mut writer);
        writer.finish()?;
        header.patch(start, out)
    }

    /// Returns the octets.
    ///
    /// # Errors
    /// Those of [`encode_into`](Self::encode_into).
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.encode_into(&mut out)?;
        Ok(out)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.encode() {
            Ok(octets) => match MessageView::decode(&octets, &mut Index::new()) {
                Ok(view) => view.fmt(f),
                Err(error) => write!(f, "{error}"),
            },
            Err(error) => write!(f, "{error}"),
        }
    }
}
