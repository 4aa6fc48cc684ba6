//! A case: a datagram, and the responses that are correct.

use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, IeType, MessageType, Seid};

use super::peer::{cause_of, header_of};

/// A datagram to send to a node, and the responses that are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobustnessCase {
    /// The family of similar cases.
    pub family: String,
    /// The fault of this case.
    pub name: String,
    /// The clause of TS 29.244 that defines the correct behaviour.
    pub clause: String,
    /// The datagram. The sequence numbers in it are replaced with unused ones.
    pub bytes: Vec<u8>,
    /// The sender of the datagram.
    pub sender: CaseSender,
    /// The allowed responses, of which one must be received.
    pub expect: Vec<ExpectedAnswer>,
}

/// The sender of a case, and the SEID in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaseSender {
    /// A peer with an association that no other case depends on.
    Disposable,
    /// The peer with the live session; the SEID is not changed.
    Owner,
    /// The peer with the live session; the SEID is replaced with that of the session.
    OfSession,
    /// Another peer; the SEID is replaced with that of the session, which belongs to the first
    /// peer.
    Other,
}

/// A response that a node may send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpectedAnswer {
    /// The types of the messages, in this order; empty for no response.
    pub types: Vec<u8>,
    /// The allowed causes; empty for any.
    pub causes: Vec<u8>,
    /// The allowed Offending IEs; empty for any.
    pub offending: Vec<u16>,
    /// The SEID in the header.
    pub seid: Option<u64>,
    /// Set if the response has to contain a Failed Rule ID.
    pub rule: bool,
}

impl ExpectedAnswer {
    /// Expects no response.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Expects one message with any contents that are valid for its type.
    #[must_use]
    pub fn one(answer: u8) -> Self {
        Self {
            types: vec![answer],
            ..Self::default()
        }
    }

    /// Expects one of these causes.
    #[must_use]
    pub fn causes(mut self, causes: &[u8]) -> Self {
        self.causes = causes.to_vec();
        self
    }

    /// Expects one of these as Offending IE, if the request is refused.
    #[must_use]
    pub fn offending(mut self, elements: impl IntoIterator<Item = IeType>) -> Self {
        self.offending = elements.into_iter().map(|ie| ie.0).collect();
        self
    }

    /// Expects this SEID.
    #[must_use]
    pub fn seid(mut self, seid: u64) -> Self {
        self.seid = Some(seid);
        self
    }

    /// Expects a Failed Rule ID.
    #[must_use]
    pub fn rule(mut self) -> Self {
        self.rule = true;
        self
    }

    /// Returns a description of the fault in the received messages, or `None` if they are correct.
    /// `own` is the SEID that the sender assigned to the session.
    pub(super) fn fault(&self, answers: &[Vec<u8>], own: Option<Seid>) -> Option<String> {
        let types: Vec<u8> = answers
            .iter()
            .filter_map(|one| one.get(1).copied())
            .collect();
        if types != self.types {
            return Some(format!(
                "{}, not {}",
                type_names(&types),
                type_names(&self.types)
            ));
        }
        answers.iter().find_map(|answer| self.wrong(answer, own))
    }

    fn wrong(&self, answer: &[u8], own: Option<Seid>) -> Option<String> {
        let Some(header) = header_of(answer) else {
            return Some("bytes that are no message".to_owned());
        };
        let table = header.message_type.table()?;
        let has = |ie| element(answer, ie).is_some();
        for ie in [IeType::NODE_ID, IeType::CAUSE, IeType::RECOVERY_TIME_STAMP] {
            let needed = table.member(ie).is_some_and(is_mandatory);
            if needed && !has(ie) {
                return Some(format!("an answer without {ie}"));
            }
        }
        let cause = cause_of(answer)?;
        if !self.causes.is_empty() && !self.causes.contains(&cause.0) {
            return Some(format!(
                "cause {} ({cause}), not {:?}",
                cause.0, self.causes
            ));
        }
        if header.message_type.is_session() {
            let found = header.seid.unwrap_or_default();
            let wanted = self.seid.map(Seid).or(own);
            // An unknown session has no SEID.
            let unknown = cause == Cause::SESSION_CONTEXT_NOT_FOUND;
            if unknown && found != Seid(0) {
                return Some(format!("SEID {found} of a session that is not there"));
            }
            if !unknown && wanted.is_some_and(|wanted| wanted != found) {
                return Some(format!("SEID {found}, not {}", wanted.unwrap_or_default()));
            }
        }
        if cause.is_acceptance() {
            return None;
        }
        self.missing_offending_ie(answer, cause, table.member(IeType::OFFENDING_IE).is_some())
    }

    /// Returns a description of the IE that a rejection should contain but does not.
    fn missing_offending_ie(&self, answer: &[u8], cause: Cause, names: bool) -> Option<String> {
        let offending = element(answer, IeType::OFFENDING_IE)
            .and_then(|value| value.first_chunk())
            .map(|bytes| u16::from_be_bytes(*bytes));
        let faulty = (66..=69).contains(&cause.0);
        match offending {
            None if faulty && names => return Some(format!("cause {cause} without Offending IE")),
            Some(ie) if faulty && !self.offending.is_empty() && !self.offending.contains(&ie) => {
                let wanted: Vec<String> = self
                    .offending
                    .iter()
                    .map(|ie| IeType(*ie).to_string())
                    .collect();
                let found = IeType(ie);
                return Some(format!(
                    "{found} as Offending IE, not {}",
                    wanted.join(", ")
                ));
            }
            _ => {}
        }
        let ruled = element(answer, IeType::FAILED_RULE_ID).is_some();
        (self.rule && !ruled).then(|| "no Failed Rule ID".to_owned())
    }
}

fn is_mandatory(member: &strowger_pfcp::ie::descriptor::Member) -> bool {
    use strowger_pfcp::ie::descriptor::Presence;

    member.presence == Presence::Mandatory
}

/// Returns the value of the first IE of a type at the top level of a message.
pub(super) fn element(bytes: &[u8], ie: IeType) -> Option<&[u8]> {
    let (header, _) = strowger_pfcp::Header::decode(bytes).ok()?;
    let body = bytes.get(header.encoded_len()..)?;
    strowger_pfcp::wire::Tlvs::new(body)
        .map_while(Result::ok)
        .find(|tlv| tlv.ie == ie)
        .map(|tlv| tlv.value)
}

fn type_names(types: &[u8]) -> String {
    let names: Vec<String> = types
        .iter()
        .map(|one| MessageType(*one).to_string())
        .collect();
    match names.is_empty() {
        true => "no answer".to_owned(),
        false => names.join(" and "),
    }
}

/// Returns `None` if one of the expected responses matches, and otherwise the faults of all of
/// them.
pub(super) fn fault(
    expect: &[ExpectedAnswer],
    answers: &[Vec<u8>],
    own: Option<Seid>,
) -> Option<String> {
    let mut faults = Vec::new();
    for want in expect {
        faults.push(want.fault(answers, own)?);
    }
    faults.dedup();
    Some(faults.join("; or "))
}

/// Replaces the sequence number of each message in a datagram with an unused one, and returns the
/// numbers.
pub(super) fn renumber(
    bytes: &mut [u8],
    mut next: impl FnMut() -> strowger_pfcp::Sequence,
) -> Vec<strowger_pfcp::Sequence> {
    let (mut start, mut numbers) = (0, Vec::new());
    while let Some(rest) = bytes.get_mut(start..).filter(|rest| rest.len() >= 4) {
        let length = 4 + usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        let bundled = rest[0] & 4 == 4;
        let at = if rest[0] & 1 == 1 { 12 } else { 4 };
        let sequence = next();
        numbers.push(sequence);
        if let Some(place) = rest.get_mut(at..at + 3) {
            place.copy_from_slice(&sequence.get().to_be_bytes()[1..]);
        }
        if !bundled {
            break;
        }
        start += length;
    }
    numbers
}

/// Returns the SEID that a request assigns to a new or modified session, if it can be decoded.
pub(super) fn assigned_seid(bytes: &[u8]) -> Option<Seid> {
    Frame::decode(bytes).ok()?;
    let seid = element(bytes, IeType::F_SEID)?.get(1..9)?.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*seid)))
}
