//! Messages: a header and the information elements of a message type.

mod body;
mod node;
mod number;
mod session;
mod view;

use std::cell::RefCell;
use std::fmt;

use crate::error::Error;
use crate::ie::{Interfaces, Release};
use crate::validate::{Rejection, Scope, refuse_newer, validate};
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

/// An owned message.
///
/// It keeps everything that its bytes contained: unknown elements, the order of the elements, and
/// spare bits. Encoding it yields the same bytes.
///
/// ```
/// use strowger_pfcp::message::HeartbeatRequest;
/// use strowger_pfcp::{Message, Sequence};
///
/// let message = Message::node(Sequence::new(1), HeartbeatRequest::new(0xe81f_e7b4));
/// let bytes = message.encode()?;
/// assert_eq!(bytes, [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0xe8, 0x1f, 0xe7, 0xb4]);
/// assert_eq!(Message::decode(&bytes)?, message);
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The header. Its message type is that of the body.
    pub header: Header,
    /// The information elements.
    pub body: Body,
}

impl Message {
    /// Creates a node-related message.
    #[must_use]
    pub fn node(sequence: Sequence, body: impl Into<Body>) -> Self {
        let body = body.into();
        Self {
            header: Header::node(body.message_type(), sequence),
            body,
        }
    }

    /// Creates a session-related message.
    #[must_use]
    pub fn session(seid: Seid, sequence: Sequence, body: impl Into<Body>) -> Self {
        let body = body.into();
        Self {
            header: Header::session(body.message_type(), seid, sequence),
            body,
        }
    }

    /// Decodes `bytes`, which must hold exactly one message.
    ///
    /// # Errors
    /// Returns an error if the bytes are not one well-formed message, or a mandatory element is
    /// missing.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        with_thread_index(bytes.len(), |index| {
            MessageView::decode(bytes, index)?.to_message()
        })
    }

    /// Appends the encoded message. A buffer that is cleared and reused needs no further
    /// allocation.
    ///
    /// # Errors
    /// Returns an error if a value does not fit its field
    /// ([`ErrorKind::Range`](crate::ErrorKind::Range)), if it claims that an absent field is
    /// present ([`ErrorKind::Contradiction`](crate::ErrorKind::Contradiction)), or if an element or
    /// the message is too long for its length field
    /// ([`ErrorKind::TooLong`](crate::ErrorKind::TooLong)). The error contains the path, and
    /// nothing is appended.
    ///
    /// ```
    /// use strowger_pfcp::ie::{CreateQer, GateStatus, Qfi};
    /// use strowger_pfcp::message::SessionModificationRequest;
    /// use strowger_pfcp::{Message, Seid, Sequence};
    ///
    /// let qer = CreateQer::new(1, GateStatus::default()).qos_flow_identifier(Qfi(64));
    /// let body = SessionModificationRequest::new().create_qers([qer]);
    /// let mut buffer = Vec::new();
    /// let error = Message::session(Seid(1), Sequence::new(1), body)
    ///     .encode_into(&mut buffer)
    ///     .expect_err("a QFI has 6 bits");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "Session Modification Request / Create QER[0] / QFI: qfi is out of range"
    /// );
    /// assert!(buffer.is_empty());
    /// ```
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
        writer.finish_in(Some(table(header.message_type)))?;
        header.patch(start, out)
    }

    /// Appends the encoded message if a peer on one of the interfaces accepts it, and returns the
    /// interfaces on which it is acceptable.
    ///
    /// Constructors take the members that every interface requires:
    ///
    /// ```compile_fail
    /// // A Create PDR has a PDI.
    /// let pdr = strowger_pfcp::ie::CreatePdr::new(1);
    /// ```
    ///
    /// This method finds members that only one of the interfaces requires, members that a condition
    /// requires, and empty lists.
    ///
    /// # Errors
    /// Returns the errors of [`encode_into`](Self::encode_into) and of
    /// [`validate`](crate::validate()). Nothing is appended in that case.
    ///
    /// ```
    /// use strowger_pfcp::ie::{ApplyAction, CreateFar};
    /// use strowger_pfcp::message::SessionModificationRequest;
    /// use strowger_pfcp::{Interfaces, Message, Seid, Sequence};
    ///
    /// let far = CreateFar::new(1, ApplyAction::FORW);
    /// let body = SessionModificationRequest::new().create_fars([far]);
    /// let error = Message::session(Seid(1), Sequence::new(1), body)
    ///     .encode_for(Interfaces::N4, &mut Vec::new())
    ///     .expect_err("forwards without saying where to");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "Session Modification Request / Create FAR[0]: \
    ///      Forwarding Parameters is missing (§7.5.2.3)"
    /// );
    /// ```
    ///
    /// For an older release, anything that the release does not define is an error as well:
    ///
    /// ```
    /// use strowger_pfcp::ie::UpFunctionFeatures;
    /// use strowger_pfcp::message::AssociationSetupRequest;
    /// use strowger_pfcp::{Interfaces, Message, Release, Sequence};
    ///
    /// let node: std::net::IpAddr = [127, 0, 0, 1].into();
    /// let features = UpFunctionFeatures::MOQ;
    /// let body = AssociationSetupRequest::new(node, 1).up_function_features(features);
    /// let message = Message::node(Sequence::new(1), body);
    /// let old = Interfaces::N4.in_release(Release::R17);
    /// let error = message.encode_for(old, &mut Vec::new()).expect_err("a feature of release 19");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "Association Setup Request / UP Function Features: MOQ is newer than R17"
    /// );
    /// ```
    pub fn encode_for(
        &self,
        scope: impl Into<Scope>,
        out: &mut Vec<u8>,
    ) -> Result<Interfaces, EncodeForError> {
        let (start, scope) = (out.len(), scope.into());
        self.encode_into(out)?;
        let mut index = Index::new();
        let judged = MessageView::decode(&out[start..], &mut index)
            .map_err(EncodeForError::from)
            .and_then(|view| {
                if scope.release != Release::R19 {
                    refuse_newer(&view, scope.release)?;
                }
                validate(&view, scope).map_err(EncodeForError::from)
            });
        if judged.is_err() {
            out.truncate(start);
        }
        judged
    }

    /// Returns the encoded message.
    ///
    /// # Errors
    /// Returns the errors of [`encode_into`](Self::encode_into).
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.encode_into(&mut out)?;
        Ok(out)
    }
}

thread_local! {
    /// The index of this thread; see [`with_thread_index`].
    static INDEX: RefCell<Index> = const { RefCell::new(Index::new()) };
}

/// Maximum length in bytes of a message that is decoded with the reused index. A longer one gets a
/// temporary index.
const MAX_REUSED_INDEX_LEN: usize = 8192;

/// Calls `decode` with the index of this thread, which knows the shapes of earlier messages.
///
/// A message of more than [`MAX_REUSED_INDEX_LEN`] bytes uses a temporary index, so that no large
/// one stays allocated; so does a call from within `decode`.
pub(crate) fn with_thread_index<T>(length: usize, decode: impl Fn(&mut Index) -> T) -> T {
    let with = |index: &RefCell<Index>| match index.try_borrow_mut() {
        Ok(mut index) if length <= MAX_REUSED_INDEX_LEN => decode(&mut index),
        _ => decode(&mut Index::new()),
    };
    let reused = INDEX.try_with(with);
    reused.unwrap_or_else(|_| decode(&mut Index::new()))
}

/// The error returned for a message that no peer would accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeForError {
    /// The message cannot be encoded.
    #[error(transparent)]
    NotEncodable(#[from] Error),
    /// The message lacks an element that the interface requires, or has one that it forbids.
    #[error(transparent)]
    Rejected(#[from] Rejection),
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.encode() {
            Ok(bytes) => match MessageView::decode(&bytes, &mut Index::new()) {
                Ok(view) => view.fmt(f),
                Err(error) => write!(f, "{error}"),
            },
            Err(error) => write!(f, "{error}"),
        }
    }
}
