//! Releases: a peer that is asked to release its association, and the report to the node's owner.

use std::time::Duration;

use strowger_pfcp::Seid;
use strowger_pfcp::ie::Cause;
use strowger_pfcp_node::{NodeRequestError, ReleaseOutcome};

use crate::peer::{Bench, GUARD};

/// Shorter than the time after which a request counts as unanswered.
const SOON: Duration = Duration::from_millis(150);

#[tokio::test]
async fn unanswered_release_request_keeps_association_and_reports_silence() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    peer.establish(1, 1_000_000).await;
    for within in [Some(SOON), None, Some(GUARD), Some(Duration::MAX)] {
        let report = bench
            .node
            .request_release("127.0.0.2", within)
            .await
            .unwrap();
        assert_eq!(report.outcome, ReleaseOutcome::Unanswered, "{within:?}");
        assert_eq!(report.sessions, 1);
    }
    assert_eq!(bench.node.associations().len(), 1);
    assert_eq!(bench.node.stats().sessions, 1);
    bench.end().await;
}

/// Asks for a release within some time, and makes the peer answer with a cause.
async fn answered(cause: Cause, within: Option<Duration>) -> (ReleaseOutcome, usize) {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    peer.establish(1, 1_000_000).await;
    let node = bench.node.clone();
    let asked = tokio::spawn(async move { node.request_release("127.0.0.2", within).await });
    let request = peer.asked().await;
    peer.answer(&request, Seid(0), cause).await;
    let report = asked.await.unwrap().unwrap();
    assert_eq!(bench.node.associations().len(), 1, "it is still there");
    bench.end().await;
    (report.outcome, report.sessions)
}

#[tokio::test]
async fn refused_release_request_returns_cause() {
    let cause = Cause::SERVICE_NOT_SUPPORTED;
    let told = answered(cause, Some(GUARD)).await;
    assert_eq!(told, (ReleaseOutcome::Refused(cause), 1));
}

#[tokio::test]
async fn agreed_release_is_overdue_after_its_period() {
    let agreed = answered(Cause::REQUEST_ACCEPTED, None).await;
    assert_eq!(agreed, (ReleaseOutcome::Agreed, 1));
    let long = Duration::from_secs(2);
    let overdue = answered(Cause::REQUEST_ACCEPTED, Some(long)).await;
    assert_eq!(overdue, (ReleaseOutcome::Overdue, 1));
}

#[tokio::test]
async fn completed_release_returns_ended_session_count() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    for number in 1..=3 {
        peer.establish(number, 1_000_000).await;
    }
    let node = bench.node.clone();
    let asked = tokio::spawn(async move { node.request_release("127.0.0.2", Some(GUARD)).await });
    let request = peer.asked().await;
    peer.answer(&request, Seid(0), Cause::REQUEST_ACCEPTED)
        .await;
    peer.release().await;
    let report = asked.await.unwrap().unwrap();
    let told = (report.outcome, report.sessions);
    assert_eq!(told, (ReleaseOutcome::Released, 3));
    assert_eq!(bench.node.stats().sessions, 0);
    bench.end().await;
}

#[tokio::test]
async fn peer_restart_ends_release_request() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let node = bench.node.clone();
    let asked = tokio::spawn(async move { node.request_release("127.0.0.2", Some(GUARD)).await });
    peer.asked().await;
    peer.set_up(2).await;
    assert_eq!(
        asked.await.unwrap(),
        Err(NodeRequestError::AssociationEnded)
    );
    bench.end().await;
}

#[tokio::test]
async fn forced_release_ends_association_of_silent_peer() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    peer.establish(1, 1_000_000).await;
    let node = bench.node.clone();
    let waits = tokio::spawn(async move { node.request_release("127.0.0.2", Some(GUARD)).await });
    peer.asked().await;
    let released = bench.node.force_release("127.0.0.2").await.unwrap();
    let told = (released.outcome, released.sessions);
    assert_eq!(told, (ReleaseOutcome::Released, 1));
    assert_eq!(
        waits.await.unwrap().unwrap(),
        released,
        "the one that waits is told"
    );
    assert_eq!(bench.node.associations(), []);
    assert_eq!(bench.node.stats().sessions, 0);
    let node = "127.0.0.2".to_owned();
    assert_eq!(
        bench.node.force_release(&node).await,
        Err(NodeRequestError::UnknownPeer { node })
    );
    // The peer is still there.
    peer.set_up(1).await;
    peer.establish(1, 1_000_000).await;
    bench.end().await;
}
