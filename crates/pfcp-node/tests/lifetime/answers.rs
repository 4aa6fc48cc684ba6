//! Every answer that a peer may give to each request that a node sends, in both roles, and what the
//! node does with it.
//!
//! The rows of a request are in [`rows`]. A request type that a role sends and that has no rows
//! fails the tests. Answers with another Recovery Time Stamp are in `restart`.

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_pfcp::endpoint::{BodyBuilder, DiscardReason, Role, answer_header, message};
use strowger_pfcp::ie::{
    Cause, FSeid, Ie as _, NodeId, NodeReportType, RemoteGtpuPeer, UserPlanePathFailureReport,
};
use strowger_pfcp::message::{NodeReportRequest, SessionModificationRequest};
use strowger_pfcp::usage::{DetectionRule, PacketBurst};
use strowger_pfcp::{Frame, Header, IeType, Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::{
    Association, Client, ClientConfig, ClientError, DataPath, NODE_REQUESTS, NodeRequestError,
    ReleaseOutcome, Session, SessionRules, TimeSpan,
};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::peer::{Bench, GUARD, packet_of};

const T1: Duration = Duration::from_millis(100);

/// The answer of a peer to the first transmission of a request. Except in `Late` and `Silence`, the
/// peer also answers the second transmission, then without a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// With all mandatory elements and this Cause.
    Cause(Cause),
    /// With this Cause and no other element.
    Bare(Cause),
    /// Accepted, without a mandatory element.
    Without(IeType),
    /// Accepted, for a SEID that is not that of the session.
    OtherSeid,
    /// With SEID 0 and this Cause.
    SeidZero(Cause),
    /// Accepted, of a type that answers another request.
    OtherType,
    /// Accepted, with a sequence number that no request has.
    OtherSequence,
    /// Accepted, from another port of the peer.
    OtherPort,
    /// Accepted, from another host that is allowed.
    OtherHost,
    /// Accepted, with an element that is longer than the message.
    Truncated,
    /// Version Not Supported Response.
    Version,
    /// Accepted, sent twice.
    Twice,
    /// Accepted, after the request was given up.
    Late,
    /// None.
    Silence,
}

/// The effect of an answer on the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The request has succeeded.
    Accepted,
    /// The request was refused, with this Cause.
    Refused(Cause),
    /// The caller is told that the answer cannot be used.
    Invalid,
    /// Nothing: the request is repeated, and the answer to the repetition counts.
    Ignored,
    /// The request has failed for now: its contents are sent again in another request.
    Again,
    /// The request is given up after its last transmission.
    Unanswered,
}

/// An answer, its outcome, and the kind under which it is counted and logged as a defect.
#[derive(Clone, Copy, Debug)]
struct Row {
    answer: Answer,
    outcome: Outcome,
    discard: Option<DiscardReason>,
}

/// The refusing causes of TS 29.244 §8.2.1, and one that no release defines.
fn refusals() -> impl Iterator<Item = Cause> {
    (64..=92).chain([255]).map(Cause)
}

/// The mandatory elements of the response to a request, besides Cause.
fn mandatory(request: MessageType) -> &'static [IeType] {
    match request {
        MessageType::HEARTBEAT_REQUEST => &[IeType::RECOVERY_TIME_STAMP],
        MessageType::ASSOCIATION_SETUP_REQUEST => &[IeType::NODE_ID, IeType::RECOVERY_TIME_STAMP],
        MessageType::ASSOCIATION_UPDATE_REQUEST
        | MessageType::ASSOCIATION_RELEASE_REQUEST
        | MessageType::NODE_REPORT_REQUEST
        | MessageType::SESSION_SET_DELETION_REQUEST
        | MessageType::SESSION_SET_MODIFICATION_REQUEST => &[IeType::NODE_ID],
        // The UP F-SEID is mandatory in an answer that accepts.
        MessageType::SESSION_ESTABLISHMENT_REQUEST => &[IeType::NODE_ID, IeType::F_SEID],
        MessageType::PFD_MANAGEMENT_REQUEST
        | MessageType::SESSION_MODIFICATION_REQUEST
        | MessageType::SESSION_DELETION_REQUEST
        | MessageType::SESSION_REPORT_REQUEST => &[],
        other => panic!("{other} has no rows"),
    }
}

/// The outcome of an answer with this Cause and all mandatory elements.
fn outcome_of(request: MessageType, cause: Cause) -> Outcome {
    match (request, cause) {
        (_, cause) if cause.is_acceptance() => Outcome::Accepted,
        // The usage stays with the node until the peer can take it, or has deleted the session.
        (
            MessageType::SESSION_REPORT_REQUEST,
            Cause::SESSION_CONTEXT_NOT_FOUND | Cause::CONGESTION | Cause::SYSTEM_FAILURE,
        ) => Outcome::Again,
        // A peer that knows no association has nothing to release.
        (MessageType::ASSOCIATION_RELEASE_REQUEST, Cause::NO_ESTABLISHED_ASSOCIATION) => {
            Outcome::Accepted
        }
        (_, cause) => Outcome::Refused(cause),
    }
}

/// Requests that are sent for a caller who gets the whole response, whatever its Cause is.
fn is_raw(request: MessageType) -> bool {
    matches!(
        request,
        MessageType::PFD_MANAGEMENT_REQUEST
            | MessageType::SESSION_SET_DELETION_REQUEST
            | MessageType::SESSION_SET_MODIFICATION_REQUEST
    )
}

/// The table: all answers to a request.
fn rows(role: Role, request: MessageType) -> Vec<Row> {
    use Answer as A;
    use Outcome as O;
    let malformed = Some(DiscardReason::Malformed);
    let unexpected = Some(DiscardReason::Unexpected);
    let is_heartbeat = request == MessageType::HEARTBEAT_REQUEST;
    let is_report = request == MessageType::SESSION_REPORT_REQUEST;
    let is_raw = is_raw(request) || (role, request) == (Role::ControlPlane, UPDATE);
    let given_up = if is_report { O::Again } else { O::Unanswered };
    let mut rows = vec![
        (A::OtherType, O::Ignored, unexpected),
        (A::OtherSequence, O::Ignored, unexpected),
        (A::OtherPort, O::Ignored, unexpected),
        (A::OtherHost, O::Ignored, unexpected),
        (A::Truncated, O::Ignored, malformed),
        (A::Twice, O::Accepted, unexpected),
        (A::Late, given_up, unexpected),
        (A::Silence, given_up, None),
    ];
    if is_heartbeat {
        // Any answer shows that the peer is there.
        rows.push((A::Cause(Cause::REQUEST_ACCEPTED), O::Accepted, None));
        rows.push((
            A::Without(IeType::RECOVERY_TIME_STAMP),
            O::Accepted,
            malformed,
        ));
        rows.push((A::Version, O::Accepted, malformed));
    } else {
        for cause in [1, 2, 3, 63].map(Cause).into_iter().chain(refusals()) {
            rows.push((A::Cause(cause), outcome_of(request, cause), None));
        }
        // A Cause says what counts, even without the other elements.
        let bare = outcome_of(request, Cause::NO_RESOURCES_AVAILABLE);
        rows.push((A::Bare(Cause::NO_RESOURCES_AVAILABLE), bare, None));
        let version = if is_report { O::Again } else { O::Invalid };
        rows.push((A::Version, version, None));
        for ie in mandatory(request) {
            rows.push((A::Without(*ie), O::Invalid, None));
        }
        let (without, reserved) = match (is_report, is_raw) {
            // Usage is not lost by a defect of its receiver.
            (true, _) => ((O::Ignored, malformed), (O::Ignored, malformed)),
            (_, true) => ((O::Invalid, None), (O::Refused(Cause::RESERVED), None)),
            _ => ((O::Invalid, None), (O::Invalid, None)),
        };
        rows.push((A::Without(IeType::CAUSE), without.0, without.1));
        rows.push((A::Cause(Cause::RESERVED), reserved.0, reserved.1));
    }
    if request.is_session() {
        let unknown = Cause::SESSION_CONTEXT_NOT_FOUND;
        rows.push((A::OtherSeid, O::Ignored, malformed));
        rows.push((A::SeidZero(Cause::REQUEST_ACCEPTED), O::Ignored, malformed));
        rows.push((A::SeidZero(unknown), outcome_of(request, unknown), None));
    }
    let row = |(answer, outcome, discard)| Row {
        answer,
        outcome,
        discard,
    };
    rows.into_iter().map(row).collect()
}

const UPDATE: MessageType = MessageType::ASSOCIATION_UPDATE_REQUEST;
/// The SEID of the sessions of the peer in the UPF role.
const UP_SEID: Seid = Seid(99);

/// The peer: a socket, and the SEID that its answers about a session carry.
struct Respondent {
    socket: UdpSocket,
    node: SocketAddr,
    seid: Seid,
}

impl Respondent {
    fn ip(&self) -> IpAddr {
        self.socket.local_addr().unwrap().ip()
    }

    /// The next datagram.
    async fn receive(&mut self, within: Duration) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 65_535];
        let received = tokio::time::timeout(within, self.socket.recv_from(&mut buffer)).await;
        let (length, from) = received.ok()?.unwrap();
        self.node = from;
        buffer.truncate(length);
        let frame = Frame::decode(&buffer).unwrap();
        if frame.header.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST {
            let mut tlvs = frame.tlvs().map(Result::unwrap);
            let own = tlvs.find(|tlv| tlv.ie == IeType::F_SEID).unwrap();
            self.seid = FSeid::decode(own.value).unwrap().seid.into();
        }
        Some(buffer)
    }

    /// The next request of a type within a time; requests of other types are answered.
    async fn next(&mut self, kind: MessageType, within: Duration) -> Option<Vec<u8>> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let bytes = self.receive(left).await?;
            let header = Frame::decode(&bytes).unwrap().header;
            if header.message_type == kind {
                return Some(bytes);
            } else if header.message_type.is_request() {
                self.answer(&header, ACCEPTED).await;
            }
        }
    }

    async fn request(&mut self, kind: MessageType) -> Vec<u8> {
        let next = self.next(kind, GUARD).await;
        next.unwrap_or_else(|| panic!("no {kind}"))
    }

    /// The elements of an answer with this Cause, all mandatory ones among them.
    fn elements(&self, request: MessageType, cause: Cause) -> Vec<(IeType, Vec<u8>)> {
        let IpAddr::V4(ip) = self.ip() else {
            panic!("an IPv4 address");
        };
        let value = |ie: &IeType| match *ie {
            IeType::NODE_ID => [&[0][..], &ip.octets()].concat(),
            IeType::RECOVERY_TIME_STAMP => vec![0, 0, 0, 1],
            IeType::F_SEID => [&[2][..], &UP_SEID.0.to_be_bytes(), &ip.octets()].concat(),
            other => panic!("no value for {other}"),
        };
        let has_f_seid = cause.is_acceptance();
        let mut elements: Vec<_> = mandatory(request)
            .iter()
            .filter(|ie| **ie != IeType::F_SEID || has_f_seid)
            .map(|ie| (*ie, value(ie)))
            .collect();
        if request != MessageType::HEARTBEAT_REQUEST {
            elements.push((IeType::CAUSE, vec![cause.0]));
        }
        elements
    }

    /// Sends an answer.
    async fn answer(&self, request: &Header, answer: Answer) {
        let kind = request.message_type;
        let cause = match answer {
            Answer::Cause(cause) | Answer::Bare(cause) | Answer::SeidZero(cause) => cause,
            _ => Cause::REQUEST_ACCEPTED,
        };
        let mut header = answer_header(request, Some(self.seid));
        let mut elements = self.elements(kind, cause);
        match answer {
            Answer::Bare(_) => elements.retain(|(ie, _)| *ie == IeType::CAUSE),
            Answer::Without(missing) => elements.retain(|(ie, _)| *ie != missing),
            Answer::OtherSeid => header.seid = Some(Seid(self.seid.0 + 1000)),
            Answer::SeidZero(_) => header.seid = Some(Seid(0)),
            Answer::OtherType => header.message_type = other_response(kind),
            Answer::OtherSequence => {
                header.sequence = Sequence::new(header.sequence.get().wrapping_add(1000));
            }
            Answer::Version => {
                let kind = MessageType::VERSION_NOT_SUPPORTED_RESPONSE;
                header = Header::node(kind, header.sequence);
                elements.clear();
            }
            _ => {}
        }
        let mut body = BodyBuilder::new();
        for (ie, value) in &elements {
            body = body.with(*ie, value);
        }
        if answer == Answer::Truncated {
            body = body.bytes(&[0, 19, 0, 9, 1]);
        }
        let bytes = message(&header, body.as_slice()).unwrap();
        let other = match answer {
            Answer::OtherPort => Some(self.ip()),
            Answer::OtherHost => Some(Ipv4Addr::new(127, 0, 77, 1).into()),
            _ => None,
        };
        match other {
            Some(ip) => {
                let socket = UdpSocket::bind((ip, 0)).await.unwrap();
                socket.send_to(&bytes, self.node).await.unwrap();
            }
            None => _ = self.socket.send_to(&bytes, self.node).await.unwrap(),
        }
        if answer == Answer::Twice {
            self.socket.send_to(&bytes, self.node).await.unwrap();
        }
    }

    /// Answers the next request of a type as the row says. Returns the request.
    async fn play(&mut self, kind: MessageType, row: &Row) -> Vec<u8> {
        let first = self.request(kind).await;
        let header = Frame::decode(&first).unwrap().header;
        if matches!(row.answer, Answer::Late | Answer::Silence) {
            return first;
        }
        self.answer(&header, row.answer).await;
        if row.outcome == Outcome::Ignored {
            let again = self.request(kind).await;
            assert_eq!(again, first, "a repetition has the same bytes");
            self.answer(&header, ACCEPTED).await;
        }
        first
    }

    /// Fulfils the request of a call.
    async fn fulfil<T: Send + 'static>(
        &mut self,
        kind: MessageType,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let call = tokio::spawn(call);
        let request = self.request(kind).await;
        let header = Frame::decode(&request).unwrap().header;
        self.answer(&header, ACCEPTED).await;
        call.await.unwrap()
    }

    /// The outcome of a heartbeat: another one follows, after all repetitions of this one or
    /// without them.
    async fn heartbeat_outcome(&mut self, first: &[u8], n1: u32) -> Outcome {
        let mut sent = 1;
        while self.request(MessageType::HEARTBEAT_REQUEST).await == first {
            sent += 1;
        }
        match sent < n1 {
            true => Outcome::Accepted,
            false => Outcome::Unanswered,
        }
    }
}

const ACCEPTED: Answer = Answer::Cause(Cause::REQUEST_ACCEPTED);

/// A response that does not answer a request of this type.
fn other_response(request: MessageType) -> MessageType {
    match request {
        MessageType::SESSION_DELETION_REQUEST => MessageType::SESSION_MODIFICATION_RESPONSE,
        request if request.is_session() => MessageType::SESSION_DELETION_RESPONSE,
        MessageType::NODE_REPORT_REQUEST => MessageType::HEARTBEAT_RESPONSE,
        _ => MessageType::NODE_REPORT_RESPONSE,
    }
}

/// Number of transmissions: enough for a slow machine, or few where all of them are waited for.
fn transmissions(row: &Row) -> u32 {
    match row.answer {
        Answer::Late | Answer::Silence => 2,
        _ => 100,
    }
}

/// The outcome that the row of an ignored answer ends with.
fn expected(row: &Row) -> Outcome {
    match row.outcome {
        Outcome::Ignored => Outcome::Accepted,
        outcome => outcome,
    }
}

/// Waits until a defect is counted, and fails if another one is.
async fn counted(row: &Row, count: impl Fn() -> [u64; 2]) {
    let is = |reason| u64::from(row.discard == Some(reason));
    let wanted = [DiscardReason::Malformed, DiscardReason::Unexpected].map(is);
    let start = Instant::now();
    while count() != wanted {
        let counts = count();
        assert!(start.elapsed() < GUARD, "{counts:?}, expected {wanted:?}");
        tokio::task::yield_now().await;
    }
}

/// One packet of 1000 bytes soon after each session is established.
#[derive(Debug, Default)]
struct Soon(Mutex<HashMap<Seid, Instant>>);

impl Soon {
    fn packet(&self, seid: Seid, after: Instant) -> Instant {
        let soon = after + Duration::from_millis(10);
        *self.0.lock().unwrap().entry(seid).or_insert(soon)
    }
}

impl DataPath for Soon {
    fn traffic(
        &self,
        seid: Seid,
        detectors: &[DetectionRule],
        span: TimeSpan,
    ) -> Vec<(Instant, PacketBurst)> {
        let at = self.packet(seid, span.after);
        match at > span.after && at <= span.until {
            true => detectors.iter().map(|one| (at, packet_of(one))).collect(),
            false => Vec::new(),
        }
    }

    fn next(&self, seid: Seid, _: &[DetectionRule], after: Instant) -> Option<Instant> {
        let at = self.packet(seid, after);
        (at > after).then_some(at)
    }
}

/// Plays a row against a node in the UPF role.
async fn user_plane(kind: MessageType, row: Row) {
    let n1 = transmissions(&row);
    let system = ActorSystem::new("test").unwrap();
    let bench = Bench::over(system, Arc::new(Soon::default()), |config| {
        (config.timers.t1, config.timers.n1) = (T1, n1);
        if kind == MessageType::HEARTBEAT_REQUEST {
            config.timers.heartbeat = Duration::from_millis(50);
        }
    })
    .await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let seid = match kind.is_session() {
        true => peer.establish(7, 600).await,
        false => Seid(0),
    };
    let mut respondent = Respondent {
        socket: peer.socket,
        node: bench.node.local_addr(),
        seid,
    };
    let node = bench.node.clone();
    let (first, outcome) = match kind {
        MessageType::HEARTBEAT_REQUEST => {
            let first = respondent.play(kind, &row).await;
            let outcome = respondent.heartbeat_outcome(&first, n1).await;
            (first, outcome)
        }
        MessageType::ASSOCIATION_UPDATE_REQUEST => {
            let call = async move { node.request_release("127.0.0.2", None).await };
            let call = tokio::spawn(call);
            let first = respondent.play(kind, &row).await;
            let outcome = match call.await.unwrap() {
                Ok(report) => match report.outcome {
                    ReleaseOutcome::Agreed => Outcome::Accepted,
                    ReleaseOutcome::Refused(cause) => Outcome::Refused(cause),
                    ReleaseOutcome::Unanswered => Outcome::Unanswered,
                    other => panic!("{other:?}"),
                },
                Err(error) => failed(&error),
            };
            assert_eq!(bench.node.associations().len(), 1, "it is still there");
            (first, outcome)
        }
        MessageType::NODE_REPORT_REQUEST => {
            let failure = UserPlanePathFailureReport::new()
                .remote_gtpu_peers([RemoteGtpuPeer::from(Ipv4Addr::new(10, 0, 0, 9))]);
            let report = NodeReportRequest::new(NodeId::fqdn("replaced"), NodeReportType::UPFR)
                .user_plane_path_failure_report(failure);
            let call = tokio::spawn(async move { node.report("127.0.0.2", report).await });
            let first = respondent.play(kind, &row).await;
            let outcome = match call.await.unwrap() {
                Ok(()) => Outcome::Accepted,
                Err(error) => failed(&error),
            };
            (first, outcome)
        }
        MessageType::SESSION_REPORT_REQUEST => {
            let first = respondent.play(kind, &row).await;
            let outcome = report_outcome(&mut respondent, &bench, &row, &first).await;
            (first, outcome)
        }
        other => panic!("{other} has no rows for the UPF role"),
    };
    assert_eq!(outcome, expected(&row), "{kind}: {row:?}");
    if row.answer == Answer::Late {
        let header = Frame::decode(&first).unwrap().header;
        respondent.answer(&header, ACCEPTED).await;
    }
    counted(&row, || {
        let discarded = bench.node.stats().discarded;
        [DiscardReason::Malformed, DiscardReason::Unexpected]
            .map(|reason| discarded.iter().find(|(one, _)| *one == reason).unwrap().1)
    })
    .await;
    if kind == MessageType::SESSION_REPORT_REQUEST {
        // No answer to a report ends its session at once.
        assert_eq!(bench.node.stats().sessions, 1, "{row:?}");
    }
    bench.end().await;
}

fn failed(error: &NodeRequestError) -> Outcome {
    match error {
        NodeRequestError::Refused { cause } => Outcome::Refused(*cause),
        NodeRequestError::NoAnswer => Outcome::Unanswered,
        NodeRequestError::Answer(_)
        | NodeRequestError::InvalidAnswer(_)
        | NodeRequestError::Version => Outcome::Invalid,
        other => panic!("{other:?}"),
    }
}

/// The outcome of a session report. The usage of one that is sent again is accepted then.
async fn report_outcome(
    respondent: &mut Respondent,
    bench: &Bench,
    row: &Row,
    first: &[u8],
) -> Outcome {
    let kind = MessageType::SESSION_REPORT_REQUEST;
    let body = |bytes: &[u8]| bytes[16..].to_vec();
    let start = Instant::now();
    loop {
        let usage = bench.node.stats().usage;
        if usage.refused > 0 {
            let (Answer::Cause(cause) | Answer::Bare(cause) | Answer::SeidZero(cause)) = row.answer
            else {
                panic!("refused without a Cause: {row:?}");
            };
            return Outcome::Refused(cause);
        } else if usage.reports > 0 {
            return Outcome::Accepted;
        }
        assert!(start.elapsed() < GUARD, "{row:?}: {usage:?}");
        let next = respondent.next(kind, Duration::from_millis(5)).await;
        if let Some(again) = next.filter(|bytes| bytes != first) {
            assert_eq!(body(&again), body(first), "the same usage");
            let header = Frame::decode(&again).unwrap().header;
            respondent.answer(&header, ACCEPTED).await;
            while bench.node.stats().usage.reports == 0 {
                assert!(start.elapsed() < GUARD, "{row:?}");
                tokio::task::yield_now().await;
            }
            return Outcome::Again;
        }
    }
}

/// Plays a row against a client, which is a node in the SMF role.
async fn control_plane(system: ActorSystem, kind: MessageType, row: Row) {
    let n1 = transmissions(&row);
    let mut config = ClientConfig::default();
    (config.t1, config.n1, config.heartbeat) = (T1, n1, Duration::ZERO);
    if kind == MessageType::HEARTBEAT_REQUEST {
        config.heartbeat = Duration::from_millis(50);
    }
    let client = Client::bind(&system, config).await.unwrap();
    let socket = UdpSocket::bind("127.0.0.3:0").await.unwrap();
    let upf = socket.local_addr().unwrap();
    let mut respondent = Respondent {
        socket,
        node: client.local_addr(),
        seid: Seid(0),
    };
    let asks = client.clone();
    let associate = async move { asks.associate(upf).await };
    let (first, outcome) = if kind == MessageType::ASSOCIATION_SETUP_REQUEST {
        called(&mut respondent, kind, &row, associate).await
    } else {
        let association = respondent
            .fulfil(MessageType::ASSOCIATION_SETUP_REQUEST, associate)
            .await
            .unwrap();
        about(&mut respondent, association, kind, &row, n1).await
    };
    assert_eq!(outcome, expected(&row), "{kind}: {row:?}");
    if row.answer == Answer::Late {
        let header = Frame::decode(&first).unwrap().header;
        respondent.answer(&header, ACCEPTED).await;
    }
    counted(&row, || {
        let stats = client.stats();
        [stats.malformed, stats.unexpected]
    })
    .await;
}

/// Plays a row that needs an association.
async fn about(
    respondent: &mut Respondent,
    association: Association,
    kind: MessageType,
    row: &Row,
    n1: u32,
) -> (Vec<u8>, Outcome) {
    match kind {
        MessageType::HEARTBEAT_REQUEST => {
            let first = respondent.play(kind, row).await;
            let outcome = respondent.heartbeat_outcome(&first, n1).await;
            (first, outcome)
        }
        MessageType::ASSOCIATION_RELEASE_REQUEST => {
            called(respondent, kind, row, association.release()).await
        }
        MessageType::SESSION_ESTABLISHMENT_REQUEST => {
            let rules = SessionRules::pdu_session([10, 49, 0, 1].into());
            let call = async move { association.establish(rules).await };
            called(respondent, kind, row, call).await
        }
        MessageType::SESSION_MODIFICATION_REQUEST => {
            let session = established(respondent, association).await;
            let call = async move { session.modify(SessionModificationRequest::new()).await };
            called(respondent, kind, row, call).await
        }
        MessageType::SESSION_DELETION_REQUEST => {
            let session = established(respondent, association).await;
            called(respondent, kind, row, session.delete()).await
        }
        MessageType::PFD_MANAGEMENT_REQUEST
        | MessageType::ASSOCIATION_UPDATE_REQUEST
        | MessageType::SESSION_SET_DELETION_REQUEST
        | MessageType::SESSION_SET_MODIFICATION_REQUEST => {
            let call = async move {
                let answer = association.send(kind, Seid(0), &[]).await?;
                match cause_of(&answer) {
                    cause if cause.is_acceptance() => Ok(()),
                    cause => Err(ClientError::Refused {
                        peer: association.peer(),
                        cause,
                        offending_ie: None,
                    }),
                }
            };
            called(respondent, kind, row, call).await
        }
        other => panic!("{other} has no rows for the SMF role"),
    }
}

async fn established(respondent: &mut Respondent, association: Association) -> Session {
    let establish = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let rules = SessionRules::pdu_session([10, 49, 0, 1].into());
    let call = async move { association.establish(rules).await };
    respondent.fulfil(establish, call).await.unwrap()
}

fn cause_of(answer: &Message) -> Cause {
    crate::peer::cause(&answer.encode().unwrap())
}

/// Plays a row of the request that a call sends.
async fn called<T: Send + 'static>(
    respondent: &mut Respondent,
    kind: MessageType,
    row: &Row,
    call: impl Future<Output = Result<T, ClientError>> + Send + 'static,
) -> (Vec<u8>, Outcome) {
    let call = tokio::spawn(call);
    let first = respondent.play(kind, row).await;
    let outcome = match call.await.unwrap() {
        Ok(_) => Outcome::Accepted,
        Err(ClientError::Refused { cause, .. }) => Outcome::Refused(cause),
        Err(ClientError::NoAnswer { .. }) => Outcome::Unanswered,
        Err(
            ClientError::Answer { .. }
            | ClientError::InvalidAnswer { .. }
            | ClientError::Version { .. },
        ) => Outcome::Invalid,
        Err(other) => panic!("{other:?}"),
    };
    (first, outcome)
}

/// Number of rows that are played at a time.
const AT_A_TIME: usize = 8;

/// Plays rows, and fails with the names of all that fail.
async fn all<F>(rows: impl Iterator<Item = F>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (mut playing, mut failures) = (JoinSet::new(), 0);
    for row in rows {
        if playing.len() == AT_A_TIME {
            failures += usize::from(playing.join_next().await.unwrap().is_err());
        }
        playing.spawn(row);
    }
    while let Some(played) = playing.join_next().await {
        failures += usize::from(played.is_err());
    }
    assert_eq!(failures, 0, "rows failed; their panics are above");
}

#[tokio::test]
async fn answers_to_each_request_of_the_upf_role() {
    let role = Role::UserPlane;
    let rows = NODE_REQUESTS
        .iter()
        .flat_map(|&kind| rows(role, kind).into_iter().map(move |row| (kind, row)));
    all(rows.map(|(kind, row)| user_plane(kind, row))).await;
}

#[tokio::test]
async fn answers_to_each_request_of_the_smf_role() {
    let role = Role::ControlPlane;
    let system = ActorSystem::new("smf").unwrap();
    let rows = role
        .requests()
        .iter()
        .flat_map(|&kind| rows(role, kind).into_iter().map(move |row| (kind, row)));
    let clients = system.clone();
    all(rows.map(|(kind, row)| control_plane(clients.clone(), kind, row))).await;
    system.shutdown(Duration::from_secs(10)).await;
}

/// A request whose answers have no rows is not sent.
#[tokio::test]
async fn requests_of_the_other_role_are_not_sent() {
    let system = ActorSystem::new("smf").unwrap();
    let client = Client::bind(&system, ClientConfig::default())
        .await
        .unwrap();
    let socket = UdpSocket::bind("127.0.0.3:0").await.unwrap();
    let upf = socket.local_addr().unwrap();
    let mut respondent = Respondent {
        socket,
        node: client.local_addr(),
        seid: Seid(0),
    };
    let associate = async move { client.associate(upf).await };
    let setup = MessageType::ASSOCIATION_SETUP_REQUEST;
    let association = respondent.fulfil(setup, associate).await.unwrap();
    let requests = MessageType::ALL.iter().copied();
    for kind in requests.filter(|kind| kind.is_request()) {
        if Role::ControlPlane.requests().contains(&kind) {
            continue;
        }
        let error = association.send(kind, Seid(1), &[]).await.unwrap_err();
        assert!(
            matches!(error, ClientError::NotSent { message_type } if message_type == kind),
            "{error:?}"
        );
    }
    system.shutdown(Duration::from_secs(10)).await;
}

/// The user plane still has the session, and reports its usage.
#[tokio::test]
async fn refused_deletion_keeps_the_session() {
    let system = ActorSystem::new("smf").unwrap();
    let client = Client::bind(&system, ClientConfig::default())
        .await
        .unwrap();
    let socket = UdpSocket::bind("127.0.0.3:0").await.unwrap();
    let upf = socket.local_addr().unwrap();
    let mut respondent = Respondent {
        socket,
        node: client.local_addr(),
        seid: Seid(0),
    };
    let associate = async move { client.associate(upf).await };
    let setup = MessageType::ASSOCIATION_SETUP_REQUEST;
    let association = respondent.fulfil(setup, associate).await.unwrap();
    let session = established(&mut respondent, association).await;
    let kind = MessageType::SESSION_DELETION_REQUEST;
    for (cause, is_known) in [
        (Cause::CONGESTION, true),
        (Cause::RESERVED, true),
        (Cause::SESSION_CONTEXT_NOT_FOUND, false),
    ] {
        let row = Row {
            answer: Answer::Cause(cause),
            outcome: Outcome::Invalid,
            discard: None,
        };
        let call = session.clone().delete();
        called(&mut respondent, kind, &row, call).await;
        // A report of inactivity.
        let header = Header::session(
            MessageType::SESSION_REPORT_REQUEST,
            session.seid(),
            Sequence::new(u32::from(cause.0)),
        );
        let body = BodyBuilder::new().with(IeType::REPORT_TYPE, &[8]);
        let report = message(&header, body.as_slice()).unwrap();
        respondent
            .socket
            .send_to(&report, respondent.node)
            .await
            .unwrap();
        let answer = loop {
            let bytes = respondent.receive(GUARD).await.unwrap();
            let kind = Frame::decode(&bytes).unwrap().header.message_type;
            if kind == MessageType::SESSION_REPORT_RESPONSE {
                break bytes;
            }
        };
        let wanted = match is_known {
            true => Cause::REQUEST_ACCEPTED,
            false => Cause::SESSION_CONTEXT_NOT_FOUND,
        };
        assert_eq!(crate::peer::cause(&answer), wanted, "{cause}");
    }
    system.shutdown(Duration::from_secs(10)).await;
}
