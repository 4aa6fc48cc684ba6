//! One torture: peers, their live sessions, and case after case.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use strowger_pfcp::ie::Cause;
use strowger_pfcp::{IeType, MessageType, Seid, Sequence};

use super::case::{self, TortureCase, TortureSender, element};
use super::peer::{Peer, STARTED, cause_of, f_seid_of};
use super::sound::{APART, OWN, Setting, establishment, node_id, requests, update_pdr};
use super::tree::{Element, written};
use super::{TortureError, TortureFailure, TorturePlan, TortureReport, header, known, mutate};

/// The peers of a torture and what they have.
pub(super) struct Run {
    to: SocketAddr,
    /// Has the sessions.
    owner: Peer,
    /// Has an association of its own, which nothing depends on.
    apart: Peer,
    /// Another host, where there is one.
    other: Option<Peer>,
    setting: Setting,
    /// The session that cases are about, as the node calls it.
    session: Seid,
    /// The session that nothing is to happen to.
    witness: Seid,
    /// Those that are there the whole time.
    held: Vec<Seid>,
    report: TortureReport,
}

/// Numbers of sessions, which tell their addresses apart.
const SESSION: u32 = 1;
const WITNESS: u32 = 2;
const OTHER: u32 = 3;
const HELD: u32 = 1000;

impl Run {
    /// Associates, and establishes what has to be there the whole time.
    pub(super) fn prepare(plan: &TorturePlan) -> Result<Self, TortureError> {
        let to = plan.to;
        let failed = |source: io::Error| TortureError::Socket { to, source };
        let bind = |from| Peer::bind(from, to, plan.wait).map_err(failed);
        let mut owner = bind(plan.from)?;
        let mut apart = bind(Some((owner.address, 0).into()))?;
        // On the loopback every address is ours.
        let other = match owner.address {
            IpAddr::V4(own) if own.is_loopback() => {
                let next = Ipv4Addr::from_bits(own.to_bits() ^ 0x80);
                let mut other = bind(Some((next, 0).into()))?;
                associate(&mut other, &node_id(next.into()), to)?;
                Some(other)
            }
            _ => None,
        };
        let node = node_id(owner.address);
        let features = associate(&mut owner, &node, to)?;
        let setting = Setting {
            address: owner.address,
            chooses: features.first().is_some_and(|first| first & 0x10 != 0),
        };
        associate(&mut apart, &apart_id(), to)?;
        let mut run = Self {
            to,
            owner,
            apart,
            other,
            setting,
            session: Seid(0),
            witness: Seid(0),
            held: Vec::new(),
            report: TortureReport::default(),
        };
        // The first session of a node is often number 1, which cases name as an unknown one.
        if let Some(other) = &mut run.other {
            let theirs = Setting {
                address: other.address,
                ..setting
            };
            establish(other, theirs, OWN, OTHER);
        }
        run.session = run.establish(OWN, SESSION).ok_or_else(|| run.unusable())?;
        let named = Seid(OWN.0 + u64::from(WITNESS));
        run.witness = run
            .establish(named, WITNESS)
            .ok_or_else(|| run.unusable())?;
        for number in HELD..HELD.saturating_add(plan.sessions) {
            let named = Seid(OWN.0 + u64::from(number));
            let seid = run.establish(named, number).ok_or_else(|| run.unusable())?;
            run.held.push(seid);
        }
        run.report.sessions = plan.sessions;
        Ok(run)
    }

    fn unusable(&self) -> TortureError {
        TortureError::Unusable {
            to: self.to,
            what: "accept a sound session",
        }
    }

    /// Sends every case.
    pub(super) fn all(
        mut self,
        more: &[TortureCase],
        mut progress: impl FnMut(&TortureReport),
    ) -> Result<TortureReport, TortureError> {
        let sounds = requests(self.setting);
        let mut cases = more.to_vec();
        cases.extend(known::known(&sounds));
        for sound in &sounds {
            cases.extend(header::headers(sound));
            cases.extend(mutate::elements(sound));
        }
        for mut case in cases {
            if case.sender == TortureSender::Other && self.other.is_none() {
                continue;
            }
            let (answers, fault) = self.case(&mut case);
            self.report.note(&case, fault.is_none());
            if let Some(fault) = fault {
                self.report.failures.push(TortureFailure {
                    case,
                    fault,
                    answers,
                });
            }
            progress(&self.report);
            if self.report.silent {
                break;
            }
        }
        Ok(self.end())
    }

    /// Sends a case; what came, and what was wrong with it.
    fn case(&mut self, case: &mut TortureCase) -> (Vec<Vec<u8>>, Option<String>) {
        if let TortureSender::OfSession | TortureSender::Other = case.sender
            && let Some(place) = case.octets.get_mut(4..12)
        {
            place.copy_from_slice(&self.session.0.to_be_bytes());
        }
        let own = self.own(case);
        let Some(sender) = self.sender(case.sender) else {
            return (Vec::new(), None);
        };
        let numbers = case::renumber(&mut case.octets, || sender.next_sequence());
        let wanted = case.expect.iter().map(|want| want.types.len());
        let count = wanted.clone().min().unwrap_or_default();
        let most = wanted.max().unwrap_or_default();
        sender.send(&case.octets);
        let mut answers = sender.answers(&numbers, count);
        if answers.len() < count {
            // It may have been lost on the way.
            sender.send(&case.octets);
            answers.extend(sender.answers(&numbers, count - answers.len()));
        }
        let harm = self.harm(case, &numbers, &mut answers, most);
        let fault = case::fault(&case.expect, &answers, own);
        self.clear(case, &answers);
        (answers, fault.or(harm))
    }

    /// The SEID that the answer has to have.
    fn own(&self, case: &TortureCase) -> Option<Seid> {
        let kind = MessageType(*case.octets.get(1)?);
        let given = case::given_seid(&case.octets);
        match kind {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                let f_seid = element(&case.octets, IeType::F_SEID);
                match (f_seid, given) {
                    (None, _) => Some(Seid(0)),
                    // What can be read of a wrong one is up to the node.
                    (Some(_), given) => given.filter(|given| *given == OWN),
                }
            }
            // A modification may give the session another name.
            _ if case.sender == TortureSender::OfSession && given.is_none() => {
                element(&case.octets, IeType::F_SEID)
                    .is_none()
                    .then_some(OWN)
            }
            _ => None,
        }
    }

    fn sender(&mut self, sender: TortureSender) -> Option<&mut Peer> {
        match sender {
            TortureSender::Apart => Some(&mut self.apart),
            TortureSender::Owner | TortureSender::OfSession => Some(&mut self.owner),
            TortureSender::Other => self.other.as_mut(),
        }
    }

    /// Says what a case did besides; takes what came for it meanwhile.
    fn harm(
        &mut self,
        case: &TortureCase,
        numbers: &[Sequence],
        answers: &mut Vec<Vec<u8>>,
        most: usize,
    ) -> Option<String> {
        let sender = self.sender(case.sender)?;
        if !sender.is_heard() {
            self.report.silent = !sender.is_heard();
            return Some("no heartbeat was answered after it".to_owned());
        }
        let witness = self.modify(self.witness);
        let sender = self.sender(case.sender)?;
        if answers.len() < most {
            // The node is past the case now; what it answers is on its way.
            sender.is_heard();
        }
        answers.extend(sender.came_for(numbers));
        if witness == Some(Cause::REQUEST_ACCEPTED) {
            return None;
        }
        self.restore();
        let said = witness.map_or_else(|| "nothing".to_owned(), |cause| cause.to_string());
        Some(format!(
            "another session answered a modification with: {said}"
        ))
    }

    /// Makes the associations and the sessions again that a case has ended.
    fn restore(&mut self) {
        self.reassociate();
        let named = Seid(OWN.0 + u64::from(WITNESS));
        if let Some(seid) = self.establish(named, WITNESS) {
            self.witness = seid;
        }
        if self.modify(self.session) != Some(Cause::REQUEST_ACCEPTED)
            && let Some(seid) = self.establish(OWN, SESSION)
        {
            self.session = seid;
        }
    }

    /// Puts things back as they were before a case.
    fn clear(&mut self, case: &TortureCase, answers: &[Vec<u8>]) {
        let accepted = answers
            .iter()
            .any(|answer| cause_of(answer).is_some_and(Cause::is_acceptance));
        if !accepted {
            return;
        }
        let kind = case.octets.get(1).copied().map(MessageType);
        match kind {
            Some(MessageType::SESSION_ESTABLISHMENT_REQUEST) => {
                for seid in answers.iter().filter_map(|answer| f_seid_of(answer)) {
                    let kind = MessageType::SESSION_DELETION_REQUEST;
                    self.owner.ask(kind, Some(seid), &[]);
                }
            }
            Some(
                MessageType::SESSION_MODIFICATION_REQUEST | MessageType::SESSION_DELETION_REQUEST,
            ) => {
                let kind = MessageType::SESSION_DELETION_REQUEST;
                self.owner.ask(kind, Some(self.session), &[]);
                if let Some(seid) = self.establish(OWN, SESSION) {
                    self.session = seid;
                }
            }
            Some(MessageType::ASSOCIATION_SETUP_REQUEST) => {
                if let Some(node) = element(&case.octets, IeType::NODE_ID)
                    && node != APART
                {
                    let node = Element::leaf(IeType::NODE_ID, node);
                    let kind = MessageType::ASSOCIATION_RELEASE_REQUEST;
                    self.apart.ask(kind, None, &written(&[node]));
                }
                self.reassociate();
            }
            Some(
                MessageType::ASSOCIATION_RELEASE_REQUEST | MessageType::ASSOCIATION_UPDATE_REQUEST,
            ) => self.reassociate(),
            _ => {}
        }
    }

    /// Sets up again what a case may have released; the time stamps are the same.
    fn reassociate(&mut self) {
        let (apart, owner) = (apart_id(), node_id(self.owner.address));
        // What is refused shows in the cases that follow.
        let _apart = associate(&mut self.apart, &apart, self.to);
        let _owner = associate(&mut self.owner, &owner, self.to);
    }

    fn establish(&mut self, seid: Seid, number: u32) -> Option<Seid> {
        establish(&mut self.owner, self.setting, seid, number)
    }

    /// Modifies a session by a rule of its own.
    fn modify(&mut self, seid: Seid) -> Option<Cause> {
        let kind = MessageType::SESSION_MODIFICATION_REQUEST;
        let body = written(&[update_pdr()]);
        let answer = self.owner.ask(kind, Some(seid), &body)?;
        cause_of(&answer)
    }

    /// Asks every session that was there the whole time, and deletes what is left.
    fn end(mut self) -> TortureReport {
        let held = std::mem::take(&mut self.held);
        for seid in &held {
            if self.report.silent {
                break;
            }
            let accepted = self.modify(*seid) == Some(Cause::REQUEST_ACCEPTED);
            self.report.unharmed += u32::from(accepted);
        }
        let ends = held.into_iter().chain([self.session, self.witness]);
        for seid in ends {
            if self.report.silent {
                break;
            }
            let kind = MessageType::SESSION_DELETION_REQUEST;
            self.owner.ask(kind, Some(seid), &[]);
        }
        self.report
    }
}

/// Establishes a sound session; how the node calls it.
fn establish(peer: &mut Peer, setting: Setting, seid: Seid, number: u32) -> Option<Seid> {
    let body = written(&establishment(setting, seid, number));
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let answer = peer.ask(kind, Some(Seid(0)), &body)?;
    f_seid_of(&answer).filter(|_| cause_of(&answer) == Some(Cause::REQUEST_ACCEPTED))
}

fn apart_id() -> Element {
    Element::leaf(IeType::NODE_ID, APART)
}

/// Sets an association up; the features of the node.
fn associate(peer: &mut Peer, node: &Element, to: SocketAddr) -> Result<Vec<u8>, TortureError> {
    let time = Element::leaf(IeType::RECOVERY_TIME_STAMP, STARTED.to_be_bytes());
    let features = Element::leaf(IeType::CP_FUNCTION_FEATURES, [3]);
    let body = written(&[node.clone(), time, features]);
    let answer = peer.ask(MessageType::ASSOCIATION_SETUP_REQUEST, None, &body);
    let accepted = answer.filter(|answer| cause_of(answer) == Some(Cause::REQUEST_ACCEPTED));
    let what = "accept a sound association";
    let answer = accepted.ok_or(TortureError::Unusable { to, what })?;
    let features = element(&answer, IeType::UP_FUNCTION_FEATURES);
    Ok(features.unwrap_or_default().to_vec())
}
