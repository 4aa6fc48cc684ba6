//! The execution of a robustness test: peers, their live sessions, and a sequence of cases.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{IeType, MessageType, Seid, Sequence};

use super::case::{self, CaseSender, RobustnessCase, element};
use super::peer::{RECOVERY_TIME, TestPeer, cause_of, f_seid_of};
use super::tree::{TestElement, written};
use super::valid::{APART, NEW, OWN, TestIdentity, establishment, requests, update_pdr};
use super::{
    RobustnessError, RobustnessFailure, RobustnessPlan, RobustnessReport, header, known, mutate,
};

/// The peers of a test and their sessions.
pub(super) struct TestRun {
    to: SocketAddr,
    /// The peer with the sessions.
    owner: TestPeer,
    /// A peer with its own association, which no session depends on.
    apart: TestPeer,
    /// A peer on another host, if there is one.
    other: Option<TestPeer>,
    identity: TestIdentity,
    /// The node's SEID of the session that cases address.
    session: Seid,
    /// The node's SEID of a session that no case addresses, to detect harm.
    witness: Seid,
    /// The sessions that exist during the whole test.
    held: Vec<Seid>,
    report: RobustnessReport,
}

/// The numbers of sessions, which determine their addresses.
const SESSION: u32 = 1;
const WITNESS: u32 = 2;
const OTHER: u32 = 3;
const HELD: u32 = 1000;

impl TestRun {
    /// Sets up the associations, and establishes the sessions that exist during the whole test.
    pub(super) fn prepare(plan: &RobustnessPlan) -> Result<Self, RobustnessError> {
        let to = plan.to;
        plan.profile
            .check(usize::try_from(plan.sessions).unwrap_or(usize::MAX))?;
        let failed = |source: io::Error| RobustnessError::Socket { to, source };
        let bind = |from| TestPeer::bind(from, to, plan.wait).map_err(failed);
        let mut owner = bind(plan.from)?;
        let node = match &plan.node_id {
            Some(text) => named(text)?,
            None => owner.address.into(),
        };
        let second = derive_second_node_id(plan, &node, owner.address)?;
        // A node may respond only to a certain port, whoever sends the request.
        let port = plan.from.map_or(0, |from| from.port());
        let mut apart = bind(Some(match second.address() {
            Some(address) if address != owner.address => (address, port).into(),
            _ => (owner.address, 0).into(),
        }))?;
        let mut identity = TestIdentity {
            address: owner.address,
            node: node.value().to_vec(),
            apart: second.value().to_vec(),
            chooses: false,
            profile: plan.profile.clone(),
        };
        let mut other = match other_local_address(owner.address, OTHER_HOST) {
            Some(next) => Some(bind(Some((next, port).into()))?),
            None => None,
        };
        if let Some(other) = &mut other {
            associate(other, &identity.at(other.address).node_id(), to)?;
        }
        let features = associate(&mut owner, &identity.node_id(), to)?;
        identity.chooses = features.first().is_some_and(|first| first & 0x10 != 0);
        associate(&mut apart, &identity.apart_id(), to)?;
        let mut run = Self {
            to,
            owner,
            apart,
            other,
            identity,
            session: Seid(0),
            witness: Seid(0),
            held: Vec::new(),
            report: RobustnessReport::default(),
        };
        // The first session of a node often has SEID 1, which cases use as an unknown SEID.
        if let Some(other) = &mut run.other {
            let theirs = run.identity.at(other.address);
            establish(other, &theirs, OWN, OTHER);
        }
        run.session = run
            .establish(OWN, SESSION)
            .ok_or_else(|| run.unusable_peer_error())?;
        let named = Seid(OWN.0 + u64::from(WITNESS));
        run.witness = run
            .establish(named, WITNESS)
            .ok_or_else(|| run.unusable_peer_error())?;
        for number in HELD..HELD.saturating_add(plan.sessions) {
            let named = Seid(OWN.0 + u64::from(number));
            let seid = run
                .establish(named, number)
                .ok_or_else(|| run.unusable_peer_error())?;
            run.held.push(seid);
        }
        run.report.sessions = plan.sessions;
        Ok(run)
    }

    fn unusable_peer_error(&self) -> RobustnessError {
        RobustnessError::Unusable {
            to: self.to,
            what: "accept a sound session",
        }
    }

    /// Sends all cases.
    pub(super) fn all(
        mut self,
        more: &[RobustnessCase],
        mut progress: impl FnMut(&RobustnessReport),
    ) -> Result<RobustnessReport, RobustnessError> {
        let valid_requests = requests(&self.identity);
        let mut cases = more.to_vec();
        cases.extend(known::known(&valid_requests));
        for valid in &valid_requests {
            cases.extend(header::headers(valid));
            cases.extend(mutate::elements(valid));
        }
        for mut case in cases {
            if case.sender == CaseSender::Other && self.other.is_none() {
                continue;
            }
            let (answers, fault) = self.case(&mut case);
            self.report.note(&case, fault.is_none());
            if let Some(fault) = fault {
                self.report.failures.push(RobustnessFailure {
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

    /// Sends a case, and again if it failed while the session of an earlier one was still there.
    /// Returns the received messages, and the fault if there is one.
    fn case(&mut self, case: &mut RobustnessCase) -> (Vec<Vec<u8>>, Option<String>) {
        let sent = self.send(case);
        if sent.1.is_some() && self.delete_late_sessions() {
            return self.send(case);
        }
        sent
    }

    /// Deletes sessions whose establishment was answered only after its case was over: they hold
    /// the addresses that later cases ask for. Returns `true` if there was one.
    fn delete_late_sessions(&mut self) -> bool {
        let session = |bytes: &Vec<u8>| {
            let is_establishment =
                bytes.get(1) == Some(&MessageType::SESSION_ESTABLISHMENT_RESPONSE.0);
            let accepted = cause_of(bytes).is_some_and(Cause::is_acceptance);
            (is_establishment && accepted).then(|| f_seid_of(bytes))?
        };
        let peers = [&mut self.owner, &mut self.apart];
        let peers = peers.into_iter().chain(&mut self.other);
        let responses: Vec<Vec<u8>> = peers.flat_map(TestPeer::take_unclaimed).collect();
        let late: Vec<Seid> = responses.iter().filter_map(session).collect();
        for seid in &late {
            let kind = MessageType::SESSION_DELETION_REQUEST;
            self.owner.ask(kind, Some(*seid), &[]);
        }
        !late.is_empty()
    }

    /// Sends a case once, looks for harm and reverts its effects.
    fn send(&mut self, case: &mut RobustnessCase) -> (Vec<Vec<u8>>, Option<String>) {
        if let CaseSender::OfSession | CaseSender::Other = case.sender
            && let Some(place) = case.bytes.get_mut(4..12)
        {
            place.copy_from_slice(&self.session.0.to_be_bytes());
        }
        let own = self.expected_seid(case);
        let Some(sender) = self.sender(case.sender) else {
            return (Vec::new(), None);
        };
        let numbers = case::renumber(&mut case.bytes, || sender.next_sequence());
        let wanted = case.expect.iter().map(|want| want.types.len());
        let count = wanted.clone().min().unwrap_or_default();
        let most = wanted.max().unwrap_or_default();
        sender.send(&case.bytes);
        let mut answers = sender.answers(&numbers, count);
        if answers.len() < count {
            // The datagram may have been lost on the way.
            sender.send(&case.bytes);
            answers.extend(sender.answers(&numbers, count - answers.len()));
        }
        let harm = self.find_harm(case, &numbers, &mut answers, most);
        let fault = case::fault(&case.expect, &answers, own);
        self.revert_case(case, &answers);
        (answers, fault.or(harm))
    }

    /// Returns the SEID that the response must have.
    fn expected_seid(&self, case: &RobustnessCase) -> Option<Seid> {
        let kind = MessageType(*case.bytes.get(1)?);
        let given = case::assigned_seid(&case.bytes);
        match kind {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                let f_seid = element(&case.bytes, IeType::F_SEID);
                match (f_seid, given) {
                    (None, _) => Some(Seid(0)),
                    // The node may or may not decode the SEID of an invalid F-SEID.
                    (Some(_), given) => given.filter(|given| *given == NEW),
                }
            }
            // A modification may assign a new SEID to the session.
            _ if case.sender == CaseSender::OfSession && given.is_none() => {
                element(&case.bytes, IeType::F_SEID)
                    .is_none()
                    .then_some(OWN)
            }
            _ => None,
        }
    }

    fn sender(&mut self, sender: CaseSender) -> Option<&mut TestPeer> {
        match sender {
            CaseSender::Disposable => Some(&mut self.apart),
            CaseSender::Owner | CaseSender::OfSession => Some(&mut self.owner),
            CaseSender::Other => self.other.as_mut(),
        }
    }

    /// Returns a description of the harm that a case did. Also takes the responses to the case that
    /// arrive meanwhile.
    fn find_harm(
        &mut self,
        case: &RobustnessCase,
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
        if answers.len() < most {
            // Once a later request is answered, the node has finished the case, and its response
            // has arrived. A session responds in its own time, so a heartbeat is not sufficient for
            // it.
            if case.sender == CaseSender::OfSession {
                self.modify(self.session);
            } else {
                self.sender(case.sender)?.is_heard();
            }
        }
        answers.extend(self.sender(case.sender)?.take_responses(numbers));
        if witness == Some(Cause::REQUEST_ACCEPTED) {
            return None;
        }
        self.restore();
        let said = witness.map_or_else(|| "nothing".to_owned(), |cause| cause.to_string());
        Some(format!(
            "another session answered a modification with: {said}"
        ))
    }

    /// Restores the associations and sessions that a case has ended.
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

    /// Reverts the effects of a case.
    fn revert_case(&mut self, case: &RobustnessCase, answers: &[Vec<u8>]) {
        let accepted = answers
            .iter()
            .any(|answer| cause_of(answer).is_some_and(Cause::is_acceptance));
        if !accepted {
            return;
        }
        let kind = case.bytes.get(1).copied().map(MessageType);
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
                if let Some(node) = element(&case.bytes, IeType::NODE_ID)
                    && node != self.identity.apart
                {
                    let node = TestElement::leaf(IeType::NODE_ID, node);
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

    /// Sets up the associations that a case may have released, with unchanged time stamps.
    fn reassociate(&mut self) {
        let (apart, owner) = (self.identity.apart_id(), self.identity.node_id());
        // A failure becomes visible in the following cases.
        let _apart = associate(&mut self.apart, &apart, self.to);
        let _owner = associate(&mut self.owner, &owner, self.to);
    }

    fn establish(&mut self, seid: Seid, number: u32) -> Option<Seid> {
        establish(&mut self.owner, &self.identity, seid, number)
    }

    /// Modifies a session with an update of one of its rules.
    fn modify(&mut self, seid: Seid) -> Option<Cause> {
        let kind = MessageType::SESSION_MODIFICATION_REQUEST;
        let body = written(&[update_pdr()]);
        let answer = self.owner.ask(kind, Some(seid), &body)?;
        cause_of(&answer)
    }

    /// Modifies every session that existed during the whole test, and deletes the remaining
    /// sessions.
    fn end(mut self) -> RobustnessReport {
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

/// Establishes a valid session. Returns the node's SEID.
fn establish(
    peer: &mut TestPeer,
    identity: &TestIdentity,
    seid: Seid,
    number: u32,
) -> Option<Seid> {
    let body = written(&establishment(identity, seid, number));
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let answer = peer.ask(kind, Some(Seid(0)), &body)?;
    f_seid_of(&answer).filter(|_| cause_of(&answer) == Some(Cause::REQUEST_ACCEPTED))
}

fn named(text: &str) -> Result<NodeName, RobustnessError> {
    NodeName::from_text(text).ok_or_else(|| RobustnessError::NodeId(text.to_owned()))
}

/// Returns the Node ID of the peer without sessions: an address if the configured Node ID is one,
/// for a node that cannot resolve names.
fn derive_second_node_id(
    plan: &RobustnessPlan,
    own: &NodeName,
    address: IpAddr,
) -> Result<NodeName, RobustnessError> {
    let is_address = plan.node_id.is_some() && own.address().is_some();
    match (
        &plan.second_node_id,
        other_local_address(address, APART_HOST),
    ) {
        (Some(text), _) => named(text),
        (None, Some(next)) if is_address => Ok(next.into()),
        (None, _) => named(APART),
    }
}

/// Returns the address of another host of ours, if there is one: on the loopback, every address is
/// ours.
fn other_local_address(own: IpAddr, differs: u32) -> Option<IpAddr> {
    match own {
        IpAddr::V4(own) if own.is_loopback() => {
            Some(Ipv4Addr::from_bits(own.to_bits() ^ differs).into())
        }
        _ => None,
    }
}

/// The bits in which the addresses of other hosts differ from ours.
const OTHER_HOST: u32 = 0x80;
const APART_HOST: u32 = 0x40;

/// Sets up an association. Returns the features of the node.
fn associate(
    peer: &mut TestPeer,
    node: &TestElement,
    to: SocketAddr,
) -> Result<Vec<u8>, RobustnessError> {
    let time = TestElement::leaf(IeType::RECOVERY_TIME_STAMP, RECOVERY_TIME.to_be_bytes());
    let features = TestElement::leaf(IeType::CP_FUNCTION_FEATURES, [3]);
    let body = written(&[node.clone(), time, features]);
    let answer = peer.ask(MessageType::ASSOCIATION_SETUP_REQUEST, None, &body);
    let accepted = answer.filter(|answer| cause_of(answer) == Some(Cause::REQUEST_ACCEPTED));
    let what = "accept a sound association";
    let answer = accepted.ok_or(RobustnessError::Unusable { to, what })?;
    let features = element(&answer, IeType::UP_FUNCTION_FEATURES);
    Ok(features.unwrap_or_default().to_vec())
}
