//! Bodies of answers, written element by element.

use crate::association::{NodeName, Recovery};
use crate::error::{Error, ErrorKind};
use crate::ie::{Cause, Ie, IeType};
use crate::message::MessageType;
use crate::session::Refusal;
use crate::wire::{Frame, Header, Seid, Tlvs};

/// A body of elements that is being written.
#[derive(Clone, Debug, Default)]
pub struct Elements(Vec<u8>);

impl Elements {
    /// Makes an empty body.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an element.
    ///
    /// # Panics
    /// When the value has more than 65 535 octets.
    #[must_use]
    pub fn with(mut self, ie: IeType, value: &[u8]) -> Self {
        let length = u16::try_from(value.len()).expect("an element has at most 65535 octets");
        self.0.extend_from_slice(&ie.0.to_be_bytes());
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(value);
        self
    }

    /// Adds a Node ID.
    #[must_use]
    pub fn node(self, node: &NodeName) -> Self {
        self.with(IeType::NODE_ID, node.value())
    }

    /// Adds a Cause.
    #[must_use]
    pub fn cause(self, cause: Cause) -> Self {
        self.with(IeType::CAUSE, &[cause.0])
    }

    /// Adds a Recovery Time Stamp.
    #[must_use]
    pub fn recovery(self, recovery: Recovery) -> Self {
        self.with(IeType::RECOVERY_TIME_STAMP, &recovery.0.to_be_bytes())
    }

    /// Adds what a refusal says: Cause, Offending IE, Failed Rule ID.
    #[must_use]
    pub fn refusal(self, refusal: &Refusal) -> Self {
        let mut body = self.cause(refusal.cause);
        if let Some(ie) = refusal.offending_ie {
            body = body.with(IeType::OFFENDING_IE, &ie.0.to_be_bytes());
        }
        if let Some(rule) = &refusal.failed_rule {
            rule.encode_into(&mut body.0)
                .expect("the name of a rule has a few octets");
        }
        body
    }

    /// Adds elements that are already octets.
    #[must_use]
    pub fn octets(mut self, octets: &[u8]) -> Self {
        self.0.extend_from_slice(octets);
        self
    }

    /// Returns the octets.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

/// Writes a whole message.
///
/// # Errors
/// [`ErrorKind::TooLong`] when the body does not fit a message.
pub fn message(header: &Header, body: &[u8]) -> Result<Vec<u8>, Error> {
    let mut octets = Vec::with_capacity(header.octets() + body.len());
    header.encode(body.len(), &mut octets)?;
    octets.extend_from_slice(body);
    Ok(octets)
}

/// Returns the header of the answer to a request: type of the answer, sequence number and message
/// priority of the request; a session's answer carries the SEID that the peer chose, or 0.
#[must_use]
pub fn answer_header(request: &Header, seid: Option<Seid>) -> Header {
    let answer = request.message_type.response().unwrap_or(MessageType(0));
    let mut header = Header::node(answer, request.sequence);
    header.priority = request.priority;
    if answer.is_session() {
        header.seid = Some(seid.unwrap_or_default());
    }
    header
}

/// The elements at the top of a message that the endpoint itself needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Top<'a> {
    pub(super) node: Option<&'a [u8]>,
    pub(super) recovery: Option<&'a [u8]>,
    pub(super) cause: Option<&'a [u8]>,
}

impl<'a> Top<'a> {
    /// Finds them; the first of each type counts.
    ///
    /// # Errors
    /// When the elements do not fill the message exactly.
    pub(super) fn of(frame: &Frame<'a>) -> Result<Self, Error> {
        let mut top = Self::default();
        for tlv in Tlvs::at(frame.body, frame.header.octets()) {
            let tlv = tlv?;
            let place = match tlv.ie {
                IeType::NODE_ID => &mut top.node,
                IeType::RECOVERY_TIME_STAMP => &mut top.recovery,
                IeType::CAUSE => &mut top.cause,
                _ => continue,
            };
            place.get_or_insert(tlv.value);
        }
        Ok(top)
    }

    /// Reads the Recovery Time Stamp; extendable, so it may have further octets.
    pub(super) fn recovery(&self) -> Result<Recovery, ErrorKind> {
        let value = self
            .recovery
            .ok_or(ErrorKind::Missing(IeType::RECOVERY_TIME_STAMP))?;
        let have = value.len();
        let octets = value
            .first_chunk()
            .ok_or(ErrorKind::Length { have, need: 4 })?;
        Ok(Recovery(u32::from_be_bytes(*octets)))
    }

    /// Reads the Node ID.
    pub(super) fn node(&self) -> Result<NodeName, ErrorKind> {
        let value = self.node.ok_or(ErrorKind::Missing(IeType::NODE_ID))?;
        NodeName::from_value(value).ok_or(ErrorKind::Malformed { field: "Node ID" })
    }

    /// Reads the Cause.
    pub(super) fn cause(&self) -> Option<Cause> {
        self.cause
            .and_then(|value| value.first())
            .map(|&value| Cause(value))
    }
}

/// The cause that answers an element which is not as it has to be.
pub(super) fn cause_of(kind: ErrorKind) -> Cause {
    match kind {
        ErrorKind::Missing(_) => Cause::MANDATORY_IE_MISSING,
        ErrorKind::Length { .. } | ErrorKind::Overrun { .. } => Cause::INVALID_LENGTH,
        _ => Cause::MANDATORY_IE_INCORRECT,
    }
}
