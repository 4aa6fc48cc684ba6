//! Requests of the node end with the session or association that they concern.
//!
//! The peer reuses its identifiers as soon as it may, so a report of an ended session would be
//! attributed to the next session with that identifier.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::{
    Cause, FSeid, FqCsid, Ie, NodeId, NodeReportType, PdrId, Precedence, RemoteGtpuPeer, UpdatePdr,
    UrrId, UserPlanePathFailureReport,
};
use strowger_pfcp::message::{NodeReportRequest, SessionModificationRequest};
use strowger_pfcp::usage::{DetectionRule, PacketBurst, ReportArrival, UsageTotals};
use strowger_pfcp::{Frame, IeType, Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::{DataPath, Durability, NodeRequestError, SessionFilter, TimeSpan};

use crate::peer::{Bench, N1, Peer, T1, cause, packet_of};

/// A node, and a peer that received a report of 1000 bytes of its session 7 and has not answered.
async fn unanswered() -> (Bench, Peer, Seid, UsageTotals) {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let session = peer.establish(7, 600).await;
    let (_, tally) = peer.report(7).await;
    assert_eq!(tally.bytes(UrrId(1)), (1000, 0));
    (bench, peer, session, tally)
}

#[tokio::test]
async fn deleted_session_report_is_not_resent_and_usage_counts_once() {
    let (bench, mut peer, session, mut heard) = unanswered().await;
    let answer = peer.delete(session).await;
    assert_eq!(answer.cause, Cause::REQUEST_ACCEPTED);
    // A receiver of the first report recognizes the same one by its number; otherwise it has it
    // now.
    let (mut unheard, mut arrivals) = (UsageTotals::default(), Vec::new());
    for usage in &answer.usage_reports {
        unheard.add(usage);
        arrivals.push(heard.add(usage));
    }
    assert_eq!(arrivals, [ReportArrival::Repeated, ReportArrival::New]);
    for tally in [heard, unheard] {
        assert_eq!((tally.bytes(UrrId(1)), tally.missing()), ((1000, 0), 0));
    }
    assert_eq!(answer.pfcpsdrsp_flags, None, "nothing more follows");
    peer.establish(7, 1_000_000).await;
    peer.hears_nothing().await;
    assert_eq!(bench.node.stats().usage.metered, 1);
    bench.end().await;
}

#[tokio::test]
async fn deletion_omits_acknowledged_report() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let session = peer.establish(7, 600).await;
    let (report, mut tally) = peer.report(7).await;
    peer.answer(&report, session, Cause::REQUEST_ACCEPTED).await;
    while bench.node.stats().usage.reports == 0 {
        tokio::task::yield_now().await;
    }
    let answer = peer.delete(session).await;
    let arrivals: Vec<_> = answer
        .usage_reports
        .iter()
        .map(|usage| tally.add(usage))
        .collect();
    assert_eq!(arrivals, [ReportArrival::New]);
    assert_eq!(tally.bytes(UrrId(1)), (1000, 0));
    bench.end().await;
}

#[tokio::test]
async fn released_association_stops_report_retransmission() {
    let (bench, mut peer, _, _) = unanswered().await;
    peer.release().await;
    peer.hears_nothing().await;
    peer.set_up(1).await;
    peer.establish(7, 1_000_000).await;
    peer.hears_nothing().await;
    bench.end().await;
}

#[tokio::test]
async fn replaced_association_stops_report_retransmission() {
    let (bench, mut peer, _, _) = unanswered().await;
    peer.set_up(2).await;
    peer.asked.clear();
    assert_eq!(bench.node.sessions(&SessionFilter::default()), []);
    peer.establish(7, 1_000_000).await;
    peer.hears_nothing().await;
    bench.end().await;
}

#[tokio::test]
async fn deleted_session_set_stops_report_retransmission() {
    let (bench, mut peer, _, _) = unanswered().await;
    let mut body = BodyBuilder::new()
        .node(&peer.name.into())
        .as_slice()
        .to_vec();
    let set = FqCsid::of(Ipv4Addr::LOCALHOST.into(), &[7]);
    set.encode_into(&mut body).unwrap();
    let kind = MessageType::SESSION_SET_DELETION_REQUEST;
    let answer = peer.ask(kind, Seid(0), &body).await;
    assert_eq!(cause(&answer), Cause::REQUEST_ACCEPTED);
    peer.asked.clear();
    peer.establish(7, 1_000_000).await;
    peer.hears_nothing().await;
    bench.end().await;
}

/// The peer gives its session another identifier, and the first one to another session.
#[tokio::test]
async fn pending_report_follows_changed_peer_seid() {
    let (bench, mut peer, session, first) = unanswered().await;
    let update = UpdatePdr::new(PdrId(1)).precedence(Precedence(9));
    let body = SessionModificationRequest::new()
        .cp_f_seid(FSeid::new(Seid(8), peer.name))
        .update_pdrs([update]);
    let bytes = Message::session(session, Sequence::new(0), body)
        .encode()
        .unwrap();
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    let answer = peer.ask(kind, session, &bytes[16..]).await;
    assert_eq!(cause(&answer), Cause::REQUEST_ACCEPTED);
    peer.asked.clear();
    peer.establish(7, 1_000_000).await;
    let (_, again) = peer.report(8).await;
    assert_eq!(again, first);
    for bytes in peer.hears().await {
        let seid = Frame::decode(&bytes).unwrap().header.seid;
        assert_eq!(seid, Some(Seid(8)));
    }
    bench.end().await;
}

/// Session 7 moves to another CP function, and the first one uses its identifier for a new session.
#[tokio::test]
async fn pending_report_follows_session_to_new_peer() {
    let (bench, mut peer, _, first) = unanswered().await;
    let mut heir = bench.peer(3).await;
    heir.set_up(1).await;
    let mut change = Vec::new();
    let set = FqCsid::of(Ipv4Addr::LOCALHOST.into(), &[7]);
    set.encode_into(&mut change).unwrap();
    let change = BodyBuilder::new()
        .bytes(&change)
        .with(IeType::ALTERNATIVE_SMF_IP_ADDRESS, &[2, 127, 0, 0, 3]);
    let info = IeType::PFCP_SESSION_CHANGE_INFO;
    let body = BodyBuilder::new()
        .node(&peer.name.into())
        .with(info, change.as_slice());
    let kind = MessageType::SESSION_SET_MODIFICATION_REQUEST;
    let answer = peer.ask(kind, Seid(0), body.as_slice()).await;
    assert_eq!(cause(&answer), Cause::REQUEST_ACCEPTED);
    peer.asked.clear();
    peer.establish(7, 1_000_000).await;
    let (_, told) = heir.report(7).await;
    assert_eq!(told, first);
    peer.hears_nothing().await;
    bench.end().await;
}

#[tokio::test]
async fn node_report_ends_with_its_association() {
    for restarts in [false, true] {
        let bench = Bench::new().await;
        let mut peer = bench.peer(2).await;
        peer.set_up(1).await;
        let failed = UserPlanePathFailureReport::new()
            .remote_gtpu_peers([RemoteGtpuPeer::from(Ipv4Addr::new(10, 0, 0, 9))]);
        let report = NodeReportRequest::new(NodeId::fqdn("replaced"), NodeReportType::UPFR)
            .user_plane_path_failure_report(failed);
        let node = bench.node.clone();
        let told = tokio::spawn(async move { node.report("127.0.0.2", report).await });
        let asked = peer.asked().await;
        let kind = Frame::decode(&asked).unwrap().header.message_type;
        assert_eq!(kind, MessageType::NODE_REPORT_REQUEST);
        match restarts {
            true => peer.set_up(2).await,
            false => peer.release().await,
        }
        peer.asked.clear();
        let told = told.await.unwrap();
        assert!(
            matches!(told, Err(NodeRequestError::AssociationEnded)),
            "{told:?}"
        );
        peer.hears_nothing().await;
        bench.end().await;
    }
}

/// The twin of the tests above: nothing ends, so the report is retransmitted as often as it may be,
/// and later sent again with the same number.
#[tokio::test]
async fn live_session_report_is_retransmitted() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    peer.establish(7, 600).await;
    let (first, tally) = peer.report(7).await;
    // Repeating the same setup keeps the sessions and their reports.
    peer.set_up(1).await;
    for _ in 1..N1 {
        let (again, _) = peer.report(7).await;
        assert_eq!(again, first, "a repetition has the same bytes");
    }
    let (later, told) = peer.report(7).await;
    assert_ne!(later, first, "it is a request of its own");
    assert_eq!(told, tally);
    bench.end().await;
}

/// A node whose session 7 is deleted with more usage than fits the answer; returns the reports that
/// the answer announced, in order.
async fn announced() -> (Bench, Peer, Vec<Vec<u8>>) {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let session = peer.establish_with(7, 1_000_000, 300).await;
    let answer = peer.delete(session).await;
    let more = answer.additional_usage_reports_information.unwrap();
    let (mut left, mut reports) = (usize::from(more.number), Vec::new());
    assert!(!more.auri && left > 0);
    while left > 0 {
        let report = peer.asked().await;
        let header = Frame::decode(&report).unwrap().header;
        assert_eq!(header.seid, Some(Seid(7)));
        if !reports.contains(&report) {
            let frame = Frame::decode(&report).unwrap();
            let usage = frame.tlvs().map(Result::unwrap);
            let usage = usage.filter(|tlv| tlv.ie == IeType::USAGE_REPORT_REQUEST);
            left -= usage.count();
            reports.push(report);
        }
    }
    (bench, peer, reports)
}

/// The peer was told that reports follow, so it keeps the session until it has them (TS 29.244
/// §5.2.2.3.1), and they are retransmitted like any request.
#[tokio::test]
async fn announced_final_reports_are_retransmitted() {
    let (bench, peer, reports) = announced().await;
    let heard = peer.hears().await;
    let last = reports.last().unwrap();
    let again = heard.iter().filter(|one| *one == last).count();
    assert_eq!(again, usize::try_from(N1).unwrap() - 1);
    assert_eq!(bench.node.stats().usage.withdrawn, 0);
    bench.end().await;
}

#[tokio::test]
async fn announced_final_reports_end_when_seid_is_reused() {
    let (bench, mut peer, reports) = announced().await;
    peer.establish(7, 1_000_000).await;
    peer.asked.clear();
    peer.hears_nothing().await;
    let withdrawn = bench.node.stats().usage.withdrawn;
    assert_eq!(usize::try_from(withdrawn).unwrap(), reports.len());
    bench.end().await;
}

#[tokio::test]
async fn announced_final_reports_end_with_association() {
    for restarts in [false, true] {
        let (bench, mut peer, _) = announced().await;
        match restarts {
            true => peer.set_up(2).await,
            false => peer.release().await,
        }
        peer.asked.clear();
        peer.hears_nothing().await;
        bench.end().await;
    }
}

/// A data path with one packet of 1000 bytes for each session, soon after it is established. As
/// soon as the armed session is asked for anything, the supervisor of its peer ends.
#[derive(Debug)]
struct Cut {
    system: ActorSystem,
    first: Mutex<HashMap<Seid, Instant>>,
    armed: Mutex<Option<(Seid, String)>>,
}

impl Cut {
    fn packet(&self, seid: Seid, after: Instant) -> Instant {
        let soon = after + Duration::from_millis(20);
        *self.first.lock().unwrap().entry(seid).or_insert(soon)
    }
}

impl DataPath for Cut {
    fn traffic(
        &self,
        seid: Seid,
        detectors: &[DetectionRule],
        span: TimeSpan,
    ) -> Vec<(Instant, PacketBurst)> {
        let armed = self.armed.lock().unwrap().take_if(|(one, _)| *one == seid);
        if let Some((_, path)) = armed {
            self.system.find(path.as_str()).unwrap().kill();
        }
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

/// The session is killed while its deletion is being written to disk. Because the endpoint is
/// writing another association meanwhile, it learns of the supervisor's exit before it receives the
/// request. Not every round happens in this order, but most do.
#[tokio::test]
async fn supervisor_exit_during_deletion_stops_report_retransmission() {
    let system = ActorSystem::new("test").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cut = Arc::new(Cut {
        system: system.clone(),
        first: Mutex::default(),
        armed: Mutex::default(),
    });
    let bench = Bench::over(system, Arc::clone(&cut) as _, |config| {
        config.store.path = Some(folder.path().join("store"));
        config.store.durability = Durability::Disk;
        // Requests that are not withdrawn are retransmitted until after the test.
        config.timers.n1 = 100;
    })
    .await;
    let (mut peer, mut other) = (bench.peer(2).await, bench.peer(3).await);
    peer.set_up(1).await;
    // The twin: its supervisor ends as well, and its report is retransmitted.
    peer.establish(1, 600).await;
    peer.report(1).await;
    let path = bench.node.associations()[0].path.clone();
    for round in 1..=ROUNDS {
        let session = peer.establish(1 + round, 600).await;
        while peer.next_reported().await != Seid(1 + round) {}
        *cut.armed.lock().unwrap() = Some((session, path.clone()));
        let stamp = u32::try_from(round).unwrap();
        let (answer, ()) = tokio::join!(peer.delete(session), other.set_up(stamp));
        assert_eq!(answer.cause, Cause::REQUEST_ACCEPTED);
        assert_eq!(*cut.armed.lock().unwrap(), None);
    }
    let heard = peer.hears().await;
    let reported = heard.iter().map(|bytes| Frame::decode(bytes).unwrap());
    let reported: HashSet<_> = reported.filter_map(|frame| frame.header.seid).collect();
    assert_eq!(reported, [Seid(1)].into());
    bench.end().await;
}

const ROUNDS: u64 = 20;

/// A node with a patient timer, and a peer that received a report of 1000 bytes of its session 7.
async fn reporting(n1: u32) -> (Bench, Peer, Seid, Vec<u8>) {
    let system = ActorSystem::new("test").unwrap();
    // Each session sees its packet soon after it is established.
    let packets = Arc::new(Cut {
        system: system.clone(),
        first: Mutex::default(),
        armed: Mutex::default(),
    });
    let bench = Bench::over(system, packets, |config| config.timers.n1 = n1).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let session = peer.establish(7, 600).await;
    let (report, _) = peer.report(7).await;
    (bench, peer, session, report)
}

/// The answers of other sessions, and answers without a Cause, acknowledge nothing.
#[tokio::test]
async fn report_is_resent_until_its_own_session_acknowledges_it() {
    let (bench, mut peer, session, report) = reporting(100).await;
    let request = Frame::decode(&report).unwrap().header;
    let nothing = message(&answer_header(&request, Some(session)), &[]).unwrap();
    peer.socket.send(&nothing).await.unwrap();
    for seid in [Seid(0), Seid(session.0 + 1)] {
        peer.answer(&report, seid, Cause::REQUEST_ACCEPTED).await;
    }
    for _ in 0..3 {
        let (repeated, _) = peer.report(7).await;
        assert_eq!(repeated, report);
    }
    assert_eq!(bench.node.stats().usage.reports, 0);
    peer.answer(&report, session, Cause::REQUEST_ACCEPTED).await;
    while bench.node.stats().usage.reports == 0 {
        tokio::task::yield_now().await;
    }
    bench.end().await;
}

/// The peer does not know the session, so it will never delete it. It may still wait for the
/// response that establishes the session, and a heartbeat asks whether the peer has restarted.
#[tokio::test]
async fn session_that_its_peer_does_not_know_ends() {
    let (bench, mut peer, session, first) = reporting(100).await;
    let unknown = Cause::SESSION_CONTEXT_NOT_FOUND;
    peer.answer(&first, Seid(0), unknown).await;
    peer.answers_heartbeat_before_report(1).await;
    assert!(
        bench.node.session(session).is_some(),
        "one answer proves nothing"
    );
    let second = peer.report_after(&first).await;
    // The twin: what the peer knows by now stays.
    peer.answer(&second, session, Cause::REQUEST_ACCEPTED).await;
    while bench.node.stats().usage.reports == 0 {
        tokio::task::yield_now().await;
    }
    assert!(bench.node.session(session).is_some());
    bench.end().await;

    let (bench, mut peer, session, first) = reporting(N1).await;
    let (start, mut last, mut answers) = (Instant::now(), Vec::new(), 0);
    let mut request = first;
    loop {
        if Frame::decode(&request).unwrap().header.message_type == MessageType::HEARTBEAT_REQUEST {
            peer.asked.insert(0, request);
            peer.answers(1).await;
        } else {
            peer.answer(&request, Seid(0), unknown).await;
            answers += u32::from(request != last);
            last = request;
        }
        let is_over = async {
            while bench.node.session(session).is_some() {
                tokio::task::yield_now().await;
            }
        };
        request = tokio::select! {
            () = is_over => break,
            next = peer.asked() => next,
        };
    }
    assert!(answers > 1 && start.elapsed() >= T1 * N1, "{answers}");
    peer.hears_nothing().await;
    assert_eq!(bench.node.stats().usage.metered, 0);
    bench.end().await;
}

impl Peer {
    /// The next report of session 7 that is not a repetition of `first`.
    async fn report_after(&mut self, first: &[u8]) -> Vec<u8> {
        loop {
            let (report, _) = self.report(7).await;
            if report != first {
                return report;
            }
        }
    }

    /// Answers the heartbeat that the node sends before it repeats a report.
    async fn answers_heartbeat_before_report(&mut self, stamp: u32) {
        loop {
            let asked = self.asked().await;
            let header = Frame::decode(&asked).unwrap().header;
            if header.message_type == MessageType::HEARTBEAT_REQUEST {
                self.asked.insert(0, asked);
                return self.answers(stamp).await;
            }
        }
    }
}

#[tokio::test]
async fn refused_usage_is_in_the_deletion_response() {
    for refusal in [
        Cause::REQUEST_REJECTED,
        Cause::MANDATORY_IE_MISSING,
        Cause::RULE_FAILURE,
        Cause::NO_RESOURCES_AVAILABLE,
        Cause::SERVICE_NOT_SUPPORTED,
    ] {
        let (bench, mut peer, session, report) = reporting(100).await;
        peer.answer(&report, session, refusal).await;
        while bench.node.stats().usage.refused == 0 {
            tokio::task::yield_now().await;
        }
        peer.hears_nothing().await;
        let answer = peer.delete(session).await;
        let mut tally = UsageTotals::default();
        for usage in &answer.usage_reports {
            tally.add(usage);
        }
        let counted = (tally.bytes(UrrId(1)), tally.missing());
        assert_eq!(counted, ((1000, 0), 0), "{refusal}");
        bench.end().await;
    }
}
