//! The bodies of answers, written element by element.

use std::net::IpAddr;
use std::time::Duration;

use crate::association::{NodeName, Recovery};
use crate::error::{Error, ErrorKind};
use crate::ie::{Cause, Ie, IeType, PfcpSessionRetentionInformation};
use crate::message::MessageType;
use crate::session::Refusal;
use crate::wire::{Frame, Header, Seid, Tlvs};

/// A builder for the elements of a message body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyBuilder(Vec<u8>);

impl BodyBuilder {
    /// Creates an empty body.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an element.
    ///
    /// # Panics
    /// Panics if the value has more than 65 535 bytes.
    #[must_use]
    pub fn with(mut self, ie: IeType, value: &[u8]) -> Self {
        let length = u16::try_from(value.len()).expect("an element has at most 65535 bytes");
        self.0.extend_from_slice(&ie.0.to_be_bytes());
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(value);
        self
    }

    /// Appends a Node ID.
    #[must_use]
    pub fn node(self, node: &NodeName) -> Self {
        self.with(IeType::NODE_ID, node.value())
    }

    /// Appends a Cause.
    #[must_use]
    pub fn cause(self, cause: Cause) -> Self {
        self.with(IeType::CAUSE, &[cause.0])
    }

    /// Appends a Recovery Time Stamp.
    #[must_use]
    pub fn recovery(self, recovery: Recovery) -> Self {
        self.with(IeType::RECOVERY_TIME_STAMP, &recovery.0.to_be_bytes())
    }

    /// Appends the elements of a refusal: Cause, Offending IE and Failed Rule ID.
    #[must_use]
    pub fn refusal(self, refusal: &Refusal) -> Self {
        let mut body = self.cause(refusal.cause);
        if let Some(ie) = refusal.offending_ie {
            body = body.with(IeType::OFFENDING_IE, &ie.0.to_be_bytes());
        }
        if let Some(rule) = &refusal.failed_rule {
            rule.encode_into(&mut body.0)
                .expect("the name of a rule has a few bytes");
        }
        body
    }

    /// Appends encoded elements.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Returns the encoded body.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

/// Encodes a message.
///
/// # Errors
/// Returns [`ErrorKind::TooLong`] if the body does not fit into a message.
pub fn message(header: &Header, body: &[u8]) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(header.encoded_len() + body.len());
    header.encode(body.len(), &mut bytes)?;
    bytes.extend_from_slice(body);
    Ok(bytes)
}

/// Returns the header of the answer to a request: the type of the answer, and the sequence number
/// and message priority of the request. The answer to a session-related request carries the SEID
/// that the peer chose, or 0.
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

/// The top-level elements that the endpoint itself needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TopLevelElements<'a> {
    pub(super) node: Option<&'a [u8]>,
    pub(super) recovery: Option<&'a [u8]>,
    pub(super) cause: Option<&'a [u8]>,
    /// UP or CP Function Features.
    pub(super) features: Option<&'a [u8]>,
    /// PFCP Session Retention Information.
    pub(super) retention: Option<&'a [u8]>,
    /// PFCP Association Release Request.
    pub(super) release: Option<&'a [u8]>,
    /// Graceful Release Period.
    pub(super) period: Option<&'a [u8]>,
}

impl<'a> TopLevelElements<'a> {
    /// Finds the elements. The first one of each type counts.
    ///
    /// # Errors
    /// Returns an error if the elements do not fill the message exactly.
    pub(super) fn of(frame: &Frame<'a>) -> Result<Self, Error> {
        let mut top = Self::default();
        for tlv in Tlvs::at(frame.body, frame.header.encoded_len()) {
            let tlv = tlv?;
            let place = match tlv.ie {
                IeType::NODE_ID => &mut top.node,
                IeType::RECOVERY_TIME_STAMP => &mut top.recovery,
                IeType::CAUSE => &mut top.cause,
                IeType::UP_FUNCTION_FEATURES | IeType::CP_FUNCTION_FEATURES => &mut top.features,
                IeType::PFCP_SESSION_RETENTION_INFORMATION => &mut top.retention,
                IeType::PFCP_ASSOCIATION_RELEASE_REQUEST => &mut top.release,
                IeType::GRACEFUL_RELEASE_PERIOD => &mut top.period,
                _ => continue,
            };
            place.get_or_insert(tlv.value);
        }
        Ok(top)
    }

    /// Parses the Recovery Time Stamp. The element is extendable, so it may have further bytes.
    pub(super) fn recovery(&self) -> Result<Recovery, ErrorKind> {
        let value = self
            .recovery
            .ok_or(ErrorKind::Missing(IeType::RECOVERY_TIME_STAMP))?;
        let have = value.len();
        let bytes = value
            .first_chunk()
            .ok_or(ErrorKind::Length { have, need: 4 })?;
        Ok(Recovery(u32::from_be_bytes(*bytes)))
    }

    /// Parses the Node ID.
    pub(super) fn node(&self) -> Result<NodeName, ErrorKind> {
        let value = self.node.ok_or(ErrorKind::Missing(IeType::NODE_ID))?;
        NodeName::from_value(value).ok_or(ErrorKind::Malformed { field: "Node ID" })
    }

    /// Returns `true` if the peer kept its sessions although it restarted, TS 29.244 §6.2.6: those
    /// of all its addresses, or of the one that it sends from.
    pub(super) fn retains_sessions(&self, peer: IpAddr) -> bool {
        let Some(value) = self.retention else {
            return false;
        };
        let Ok(retained) = PfcpSessionRetentionInformation::decode(value) else {
            return false;
        };
        let entities = retained.cp_pfcp_entity_ip_addresses;
        let of_peer = |ipv4, ipv6| match peer {
            IpAddr::V4(address) => ipv4 == Some(address),
            IpAddr::V6(address) => ipv6 == Some(address),
        };
        entities.is_empty() || entities.iter().any(|one| of_peer(one.ipv4, one.ipv6))
    }

    /// Returns `Some` if the peer wants the association released, with the time that this may take,
    /// if given.
    pub(super) fn wants_release(&self) -> Option<Option<Duration>> {
        let wanted = self.release.and_then(|value| value.first());
        let period = self.period.and_then(|value| value.first());
        wanted
            .is_some_and(|flags| flags & 1 != 0)
            .then(|| period.and_then(|byte| timer(*byte)))
    }

    /// Parses the Cause. The value 0 is reserved, and makes the element invalid, TS 29.244 §8.2.1.
    pub(super) fn cause(&self) -> Result<Cause, ErrorKind> {
        let value = self.cause.ok_or(ErrorKind::Missing(IeType::CAUSE))?;
        match value.first() {
            None => Err(ErrorKind::Length { have: 0, need: 1 }),
            Some(0) => Err(ErrorKind::Malformed { field: "Cause" }),
            Some(&value) => Ok(Cause(value)),
        }
    }
}

/// Decodes a Graceful Release Period, TS 29.244 §8.2.78. Returns `None` for an infinite one.
fn timer(byte: u8) -> Option<Duration> {
    let unit = match byte >> 5 {
        0 => 2,
        2 => 600,
        3 => 3600,
        4 => 36_000,
        7 => return None,
        // Minutes. Values that a later release may define count as minutes, too.
        _ => 60,
    };
    Some(Duration::from_secs(unit * u64::from(byte & 0x1f)))
}

/// Encodes a time span in the smallest unit that can express it, rounded up.
pub(super) fn timer_byte(span: Duration) -> u8 {
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    let units = [(0u8, 2), (1, 60), (2, 600), (3, 3600), (4, 36_000)];
    let fits = |(unit, size): (u8, u64)| {
        let count = u8::try_from(seconds.div_ceil(size)).ok()?;
        (count < 32).then_some(unit << 5 | count)
    };
    units.into_iter().find_map(fits).unwrap_or(0xe0)
}

/// Returns the cause for an answer to an element that is missing or malformed.
pub(super) fn cause_of(kind: ErrorKind) -> Cause {
    match kind {
        ErrorKind::Missing(_) => Cause::MANDATORY_IE_MISSING,
        ErrorKind::Length { .. } | ErrorKind::Overrun { .. } => Cause::INVALID_LENGTH,
        _ => Cause::MANDATORY_IE_INCORRECT,
    }
}
