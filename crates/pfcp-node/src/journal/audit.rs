//! Reading of a journal, and its comparison with the sessions of a node.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::{Cause, FTeid};
use strowger_pfcp::session::{Allocator, RuleSet, UeAddressRequest};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, Ie, IeType, MessageType, Seid};

use super::{JournalError, TITLE};

/// The sessions that a node must have according to a journal.
#[derive(Debug, Default)]
pub struct JournalAudit {
    acknowledged: u64,
    node: Option<NodeName>,
    /// Expected sessions, by the SEID of the node.
    sessions: BTreeMap<Seid, ExpectedSessionState>,
    deleted: BTreeSet<Seid>,
    /// Establishment requests without a response, by the peer's SEID of the session.
    opening: HashMap<Seid, Vec<u8>>,
    /// Requests without a response.
    asked: HashMap<u64, Vec<u8>>,
    findings: Vec<String>,
    lost: u64,
    wrong: u64,
}

/// A session that was acknowledged.
#[derive(Debug)]
struct ExpectedSessionState {
    peer_seid: Seid,
    rules: RuleSet,
    /// Requests without a response, in the order in which they were sent.
    open: Vec<(u64, Vec<u8>)>,
}

/// A session that exists at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSession {
    /// The node's SEID.
    pub seid: Seid,
    /// The peer's SEID.
    pub peer_seid: Seid,
    /// The rules, as returned by [`NodeHandle::rules`](crate::NodeHandle::rules).
    pub rules: Vec<u8>,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditReport {
    /// Number of establishments that were acknowledged.
    pub acknowledged: u64,
    /// Number of sessions that must exist.
    pub expected: u64,
    /// Number of sessions that exist with all their rules.
    pub whole: u64,
    /// Number of sessions that must exist but do not.
    pub lost: u64,
    /// Number of sessions with the wrong rules, sessions that were not requested, and deleted
    /// sessions that exist again.
    pub wrong: u64,
    /// Number of establishments without a response, and number of their sessions that exist.
    pub unanswered: (u64, u64),
    /// One line for each lost or wrong session.
    pub findings: Vec<String>,
}

impl JournalAudit {
    /// Reads a journal. An incomplete last line is ignored, since it is still being written.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a journal.
    pub fn read(path: &Path) -> Result<Self, JournalError> {
        let text = std::fs::read_to_string(path).map_err(|source| JournalError::Io {
            path: path.to_owned(),
            source,
        })?;
        let mut audit = Self::default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().enumerate();
        let failed = |line: usize, what: &str| JournalError::Line {
            path: path.to_owned(),
            line: line + 1,
            what: what.to_owned(),
        };
        match lines.next() {
            Some((_, TITLE)) => {}
            _ => return Err(failed(0, &format!("the first line is not `{TITLE}`"))),
        }
        for (at, line) in lines {
            audit.line(line).map_err(|what| failed(at, what))?;
        }
        Ok(audit)
    }

    /// Returns the Node ID of the peer that wrote the journal, if it requested a session.
    #[must_use]
    pub fn node(&self) -> Option<String> {
        self.node.as_ref().map(ToString::to_string)
    }

    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let mut words = line.split(' ');
        let (word, number) = (words.next(), words.next());
        let number: u64 = number
            .and_then(|number| number.parse().ok())
            .ok_or("there is no number")?;
        let bytes = hex(words.next().unwrap_or_default()).ok_or("these are no bytes")?;
        match word {
            Some("ask") => self.ask(number, bytes),
            Some("ack") => self.answer(number, Some(&bytes)),
            Some("nak") => self.answer(number, None),
            // The outcome remains unknown, so the request stays open.
            Some("end") => Some(()),
            _ => return Err("a line begins with ask, ack, nak or end"),
        }
        .ok_or("message does not belong to a session in this journal")
    }

    fn ask(&mut self, number: u64, bytes: Vec<u8>) -> Option<()> {
        let frame = Frame::decode(&bytes).ok()?;
        if frame.header.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST {
            self.node = value_of(&frame, IeType::NODE_ID).and_then(NodeName::from_value);
            let peer_seid = f_seid(&frame)?;
            self.opening.insert(peer_seid, bytes.clone());
        } else {
            let seid = frame.header.seid?;
            // No request may address a session whose deletion was acknowledged.
            let session = self.sessions.get_mut(&seid)?;
            session.open.push((number, bytes.clone()));
        }
        self.asked.insert(number, bytes);
        Some(())
    }

    fn answer(&mut self, number: u64, accepted: Option<&[u8]>) -> Option<()> {
        let asked = self.asked.remove(&number)?;
        let request = Frame::decode(&asked).ok()?;
        let answer = accepted.map(Frame::decode).transpose().ok()?;
        if request.header.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST {
            let peer_seid = f_seid(&request)?;
            self.opening.remove(&peer_seid);
            if let Some(answer) = answer {
                let rules = RuleSet::establish(&request, &mut AcknowledgedFteids::of(&answer))
                    .ok()?
                    .rules;
                self.acknowledged += 1;
                let open = Vec::new();
                let expected = ExpectedSessionState {
                    peer_seid,
                    rules,
                    open,
                };
                self.sessions.insert(f_seid(&answer)?, expected);
            }
            return Some(());
        }
        let seid = request.header.seid?;
        let Some(session) = self.sessions.get_mut(&seid) else {
            // The session was deleted in the meantime.
            return Some(());
        };
        session.open.retain(|(open, _)| *open != number);
        let Some(answer) = answer else {
            return Some(());
        };
        if request.header.message_type == MessageType::SESSION_DELETION_REQUEST {
            self.sessions.remove(&seid);
            self.deleted.insert(seid);
        } else {
            let change = session
                .rules
                .modify(&request, &mut AcknowledgedFteids::of(&answer));
            session.rules = change.ok()?.rules;
        }
        Some(())
    }

    /// Compares the journal with the sessions that the node has of the peer.
    #[must_use]
    pub fn compare(mut self, found: impl IntoIterator<Item = NodeSession>) -> AuditReport {
        let (mut whole, mut opened) = (0, 0);
        let (expected, unanswered) = (self.sessions.len() as u64, self.opening.len() as u64);
        for found in found {
            let seid = found.seid;
            let Some(session) = self.sessions.remove(&seid) else {
                match self.opening.remove(&found.peer_seid) {
                    Some(request) if matches_establishment(&request, &found.rules) => opened += 1,
                    Some(_) => self.wrong(seid, "it was not answered and is not whole"),
                    None if self.deleted.contains(&seid) => self.wrong(seid, "it was deleted"),
                    None => self.wrong(seid, "nobody asked for it"),
                }
                continue;
            };
            if session.peer_seid == found.peer_seid && session.is_possible(&found.rules) {
                whole += 1;
            } else {
                self.wrong(seid, "its rules are not those that were acknowledged");
            }
        }
        for (seid, session) in std::mem::take(&mut self.sessions) {
            if !session.may_be_deleted() {
                self.lost += 1;
                self.findings.push(format!("{seid} is lost"));
            }
        }
        AuditReport {
            acknowledged: self.acknowledged,
            expected,
            whole,
            lost: self.lost,
            wrong: self.wrong,
            unanswered: (unanswered, opened),
            findings: self.findings,
        }
    }

    fn wrong(&mut self, seid: Seid, why: &str) {
        self.wrong += 1;
        self.findings.push(format!("{seid} is wrong: {why}"));
    }
}

impl ExpectedSessionState {
    /// Returns `true` if `rules` result from all acknowledged requests and any subset of the
    /// unanswered ones.
    fn is_possible(&self, rules: &[u8]) -> bool {
        let mut states = vec![self.rules.clone()];
        for (_, request) in &self.open {
            let Ok(frame) = Frame::decode(request) else {
                continue;
            };
            let after =
                |rules: &RuleSet| rules.modify(&frame, &mut strowger_pfcp::session::NoAllocator);
            let after: Vec<RuleSet> = states
                .iter()
                .filter_map(|rules| after(rules).ok())
                .map(|change| change.rules)
                .collect();
            states.extend(after);
            states.truncate(MAX_STATES);
        }
        states.iter().any(|state| state.bytes() == rules)
    }

    fn may_be_deleted(&self) -> bool {
        self.open.iter().any(|(_, request)| {
            Frame::decode(request).is_ok_and(|frame| {
                frame.header.message_type == MessageType::SESSION_DELETION_REQUEST
            })
        })
    }
}

/// The maximum number of states that a session is compared with.
const MAX_STATES: usize = 1024;

/// Returns `true` if an establishment results in these rules, whatever the node chose.
fn matches_establishment(request: &[u8], rules: &[u8]) -> bool {
    let (Ok(frame), Ok(found)) = (Frame::decode(request), RuleSet::restore(rules)) else {
        return false;
    };
    // Without a response, the values that the node chose are known only from the rules themselves.
    let mut allocator = AcknowledgedFteids(found.f_teids().into());
    RuleSet::establish(&frame, &mut allocator).is_ok_and(|change| change.rules == found)
}

/// An allocator that returns the F-TEIDs that the node reported as chosen.
#[derive(Debug)]
struct AcknowledgedFteids(std::collections::VecDeque<FTeid>);

impl AcknowledgedFteids {
    fn of(answer: &Frame<'_>) -> Self {
        let created = [IeType::CREATED_PDR, IeType::UPDATED_PDR];
        let rules = answer.tlvs().filter_map(Result::ok);
        let rules = rules.filter(|tlv| created.contains(&tlv.ie));
        let tunnels = rules.flat_map(|tlv| Tlvs::new(tlv.value).filter_map(Result::ok));
        let tunnels = tunnels.filter(|tlv| tlv.ie == IeType::F_TEID);
        Self(
            tunnels
                .filter_map(|tlv| FTeid::decode(tlv.value).ok())
                .collect(),
        )
    }
}

impl Allocator for AcknowledgedFteids {
    fn f_teid(&mut self, _: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        self.0.pop_front().ok_or(Cause::INVALID_F_TEID_ALLOCATION)
    }

    fn ue_address(
        &mut self,
        _: UeAddressRequest,
        _: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        Err(Cause::ALL_DYNAMIC_ADDRESSES_OCCUPIED)
    }
}

fn value_of<'a>(frame: &Frame<'a>, ie: IeType) -> Option<&'a [u8]> {
    let mut tlvs = frame.tlvs().filter_map(Result::ok);
    tlvs.find(|tlv| tlv.ie == ie).map(|tlv| tlv.value)
}

fn f_seid(frame: &Frame<'_>) -> Option<Seid> {
    let value = value_of(frame, IeType::F_SEID)?;
    let seid = value.get(1..9)?.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*seid)))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
