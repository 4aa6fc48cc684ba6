//! A case: octets, and which answers are right.

use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, IeType, MessageType, Seid};

use super::peer::{cause_of, header_of};

/// Octets to send to a node, and what it may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TortureCase {
    /// What is the same about several cases.
    pub family: String,
    /// What is wrong with this one.
    pub name: String,
    /// The clause of TS 29.244 that says what to do.
    pub clause: String,
    /// One datagram. The sequence numbers in it are replaced by ones that are new.
    pub octets: Vec<u8>,
    /// Who sends it.
    pub sender: TortureSender,
    /// What may come; one of these has to.
    pub expect: Vec<TortureAnswer>,
}

/// Who sends a case, and what its header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TortureSender {
    /// A peer with an association that nothing depends on.
    Apart,
    /// The peer with the live session; the SEID stays as it is.
    Owner,
    /// The peer with the live session; the SEID becomes that of the session.
    OfSession,
    /// Another peer; the SEID becomes that of the session, which is not its own.
    Other,
}

/// What a node may answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TortureAnswer {
    /// The types of the messages that come, in this order; empty for none.
    pub types: Vec<u8>,
    /// The causes of which it has one; empty for any.
    pub causes: Vec<u8>,
    /// The elements of which it names one as offending; empty for any.
    pub offending: Vec<u16>,
    /// The SEID in its header.
    pub seid: Option<u64>,
    /// Whether it names the rule that failed.
    pub rule: bool,
}

impl TortureAnswer {
    /// Nothing comes.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// One message comes, and says whatever is right for its type.
    #[must_use]
    pub fn one(answer: u8) -> Self {
        Self {
            types: vec![answer],
            ..Self::default()
        }
    }

    /// With one of these causes.
    #[must_use]
    pub fn causes(mut self, causes: &[u8]) -> Self {
        self.causes = causes.to_vec();
        self
    }

    /// With one of these as Offending IE, if the request is refused.
    #[must_use]
    pub fn offending(mut self, elements: impl IntoIterator<Item = IeType>) -> Self {
        self.offending = elements.into_iter().map(|ie| ie.0).collect();
        self
    }

    /// With this SEID.
    #[must_use]
    pub fn seid(mut self, seid: u64) -> Self {
        self.seid = Some(seid);
        self
    }

    /// With a Failed Rule ID.
    #[must_use]
    pub fn rule(mut self) -> Self {
        self.rule = true;
        self
    }

    /// Says what is wrong with what came; nothing if it is as it should be. `own` is the SEID that
    /// the sender gave the session.
    pub(super) fn fault(&self, answers: &[Vec<u8>], own: Option<Seid>) -> Option<String> {
        let types: Vec<u8> = answers
            .iter()
            .filter_map(|one| one.get(1).copied())
            .collect();
        if types != self.types {
            return Some(format!("{}, not {}", said(&types), said(&self.types)));
        }
        answers.iter().find_map(|answer| self.wrong(answer, own))
    }

    fn wrong(&self, answer: &[u8], own: Option<Seid>) -> Option<String> {
        let Some(header) = header_of(answer) else {
            return Some("octets that are no message".to_owned());
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
            // Nobody has a session that is not there.
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
        self.unnamed(answer, cause, table.member(IeType::OFFENDING_IE).is_some())
    }

    /// Says what a refusal should name and does not.
    fn unnamed(&self, answer: &[u8], cause: Cause, names: bool) -> Option<String> {
        let offending = element(answer, IeType::OFFENDING_IE)
            .and_then(|value| value.first_chunk())
            .map(|octets| u16::from_be_bytes(*octets));
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

/// The value of the first element of a type at the top of a message.
pub(super) fn element(octets: &[u8], ie: IeType) -> Option<&[u8]> {
    let (header, _) = strowger_pfcp::Header::decode(octets).ok()?;
    let body = octets.get(header.octets()..)?;
    strowger_pfcp::wire::Tlvs::new(body)
        .map_while(Result::ok)
        .find(|tlv| tlv.ie == ie)
        .map(|tlv| tlv.value)
}

fn said(types: &[u8]) -> String {
    let names: Vec<String> = types
        .iter()
        .map(|one| MessageType(*one).to_string())
        .collect();
    match names.is_empty() {
        true => "no answer".to_owned(),
        false => names.join(" and "),
    }
}

/// What is right for any of the wants; the fault of the last one if none holds.
pub(super) fn fault(
    expect: &[TortureAnswer],
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

/// Gives each message of a datagram a number that was not used, and returns the numbers.
pub(super) fn renumber(
    octets: &mut [u8],
    mut next: impl FnMut() -> strowger_pfcp::Sequence,
) -> Vec<strowger_pfcp::Sequence> {
    let (mut start, mut numbers) = (0, Vec::new());
    while let Some(rest) = octets.get_mut(start..).filter(|rest| rest.len() >= 4) {
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

/// The SEID that a request gives a new or a changed session, if it can be read.
pub(super) fn given_seid(octets: &[u8]) -> Option<Seid> {
    Frame::decode(octets).ok()?;
    let seid = element(octets, IeType::F_SEID)?.get(1..9)?.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*seid)))
}
