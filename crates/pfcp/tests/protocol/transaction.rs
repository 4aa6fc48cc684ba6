//! Requests that are retransmitted until they are answered, and responses that are repeated.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger_pfcp::endpoint::message;
use strowger_pfcp::transaction::{
    Admission, OutstandingRequest, Requests, ResponseCache, ResponseCacheLimits, Retransmission,
    TimerAction,
};
use strowger_pfcp::{Frame, Header, MessageType, Seid, Sequence};

const T1: Duration = Duration::from_secs(3);

#[expect(
    clippy::disallowed_methods,
    reason = "virtual time has to start somewhere"
)]
fn start() -> Instant {
    Instant::now()
}

fn peer(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 7], port))
}

fn requests(limit: usize, first: u32) -> Requests {
    Requests::new(Retransmission::default(), limit, Sequence::new(first))
}

fn send(requests: &mut Requests, now: Instant, to: SocketAddr) -> Sequence {
    let sequence = requests.sequence(to).expect("room");
    let bytes: Arc<[u8]> = sequence.get().to_be_bytes().to_vec().into();
    let answer = MessageType::SESSION_DELETION_RESPONSE;
    requests.sent(now, (to, sequence), None, answer, bytes);
    sequence
}

fn deletion(sequence: u32, seid: u64) -> Vec<u8> {
    let header = Header::session(
        MessageType::SESSION_DELETION_REQUEST,
        Seid(seid),
        Sequence::new(sequence),
    );
    message(&header, &[]).expect("short")
}

fn admit(answers: &mut ResponseCache, now: Instant, bytes: &[u8]) -> Admission {
    answers.admit(now, peer(1), &Frame::decode(bytes).expect("a message"))
}

fn new(admission: Admission) -> strowger_pfcp::transaction::TransactionId {
    match admission {
        Admission::New(id) => id,
        other => panic!("{other:?} is not new"),
    }
}

#[test]
fn a_request_is_repeated_n1_times_with_identical_bytes_and_then_fails() {
    let (now, mut requests) = (start(), requests(8, 1));
    let sequence = send(&mut requests, now, peer(1));
    assert_eq!(requests.poll_due(now + T1 - Duration::from_nanos(1)), None);
    for round in 1..3 {
        let at = now + T1 * round;
        assert_eq!(requests.poll_timeout(), Some(at));
        let Some(TimerAction::Retransmit {
            bytes, peer: to, ..
        }) = requests.poll_due(at)
        else {
            panic!("round {round} sends again");
        };
        assert_eq!(to, peer(1));
        assert_eq!(*bytes, sequence.get().to_be_bytes());
        assert_eq!(requests.poll_due(at), None);
    }
    let end = now + T1 * 3;
    assert!(matches!(
        requests.poll_due(end),
        Some(TimerAction::Failed { .. })
    ));
    assert_eq!(requests.poll_timeout(), None);
    assert!(requests.is_empty());
}

#[test]
fn only_matching_answer_completes_request() {
    let (now, mut requests) = (start(), requests(8, 1));
    let sequence = send(&mut requests, now, peer(1));
    let right = MessageType::SESSION_DELETION_RESPONSE;
    let wrong = MessageType::SESSION_MODIFICATION_RESPONSE;
    assert_eq!(requests.answered(peer(2), sequence, right), None);
    assert_eq!(requests.answered(peer(1), sequence.next(), right), None);
    assert_eq!(requests.answered(peer(1), sequence, wrong), None);
    assert!(requests.answered(peer(1), sequence, right).is_some());
    assert_eq!(requests.answered(peer(1), sequence, right), None);
    assert_eq!(requests.late(), 4);
}

#[test]
fn another_version_answers_any_request() {
    let (now, mut requests) = (start(), requests(8, 1));
    let sequence = send(&mut requests, now, peer(1));
    let version = MessageType::VERSION_NOT_SUPPORTED_RESPONSE;
    assert!(requests.answered(peer(1), sequence, version).is_some());
}

#[test]
fn late_answers_are_dropped() {
    let (now, mut requests) = (start(), requests(8, 1));
    let sequence = send(&mut requests, now, peer(1));
    for round in 1..=3 {
        requests.poll_due(now + T1 * round);
    }
    let answer = MessageType::SESSION_DELETION_RESPONSE;
    assert_eq!(requests.answered(peer(1), sequence, answer), None);
}

#[test]
fn sequence_numbers_wrap_and_skip_pending() {
    let (now, mut requests) = (start(), requests(8, 0x00ff_fffe));
    let waiting = send(&mut requests, now, peer(1));
    assert_eq!(waiting.get(), 0x00ff_fffe);
    assert_eq!(send(&mut requests, now, peer(1)).get(), 0x00ff_ffff);
    assert_eq!(send(&mut requests, now, peer(1)).get(), 0);
    let answer = MessageType::SESSION_DELETION_RESPONSE;
    for sequence in [0x00ff_ffff, 0] {
        requests.answered(peer(1), Sequence::new(sequence), answer);
    }
    // As after a full cycle: the next number is still in use.
    let answer = MessageType::SESSION_DELETION_RESPONSE;
    requests.sent(
        now,
        (peer(1), Sequence::new(1)),
        None,
        answer,
        vec![].into(),
    );
    assert_eq!(send(&mut requests, now, peer(1)).get(), 2);
}

#[test]
fn withdrawn_request_is_not_retransmitted_and_answer_ignored() {
    let (now, mut requests) = (start(), requests(8, 1));
    let answer = MessageType::SESSION_DELETION_RESPONSE;
    let sequence = requests.sequence(peer(1)).expect("room");
    let bytes: Arc<[u8]> = vec![1, 2, 3].into();
    let sent = Arc::clone(&bytes);
    let outstanding = OutstandingRequest {
        request: requests.sent(now, (peer(1), sequence), None, answer, sent),
        peer: peer(1),
        sequence,
    };
    let other = send(&mut requests, now, peer(1));
    let withdrawn = requests.withdraw(outstanding).expect("it waits");
    assert!(Arc::ptr_eq(&withdrawn, &bytes));
    assert_eq!(requests.withdraw(outstanding), None, "once");
    assert_eq!(requests.len(), 1);
    assert!(requests.is_withdrawn(peer(1), sequence));
    assert_eq!(requests.answered(peer(1), sequence, answer), None);

    let due = now + Retransmission::default().t1;
    let again = std::iter::from_fn(|| requests.poll_due(due));
    let again: Vec<_> = again.collect();
    assert!(
        matches!(again[..], [TimerAction::Retransmit { .. }]),
        "{again:?}"
    );
    assert!(
        !requests.is_withdrawn(peer(1), sequence),
        "its number is free"
    );
    assert!(requests.answered(peer(1), other, answer).is_some());
    assert!(requests.is_empty());
}

#[test]
fn requests_in_flight_are_bounded() {
    let (now, mut requests) = (start(), requests(2, 1));
    send(&mut requests, now, peer(1));
    send(&mut requests, now, peer(2));
    let full = requests.sequence(peer(3)).expect_err("two wait already");
    assert_eq!(full.limit, 2);
}

#[test]
fn answered_requests_free_all_state() {
    let (now, mut requests) = (start(), requests(8, 1));
    let answer = MessageType::SESSION_DELETION_RESPONSE;
    for _ in 0..10_000 {
        let sequence = send(&mut requests, now, peer(1));
        requests
            .answered(peer(1), sequence, answer)
            .expect("it waits");
    }
    assert_eq!(requests.poll_timeout(), None);
    assert!(requests.is_empty());
}

#[test]
fn a_repeated_request_gets_identical_bytes() {
    let (now, mut answers) = (
        start(),
        ResponseCache::new(ResponseCacheLimits::default(), 1),
    );
    let request = deletion(5, 9);
    let id = new(admit(&mut answers, now, &request));
    assert_eq!(admit(&mut answers, now, &request), Admission::Working);
    let bytes: Arc<[u8]> = vec![1, 2, 3].into();
    assert_eq!(answers.answer(now, id, Arc::clone(&bytes)), Some(peer(1)));
    for _ in 0..3 {
        let again = admit(&mut answers, now, &request);
        assert_eq!(again, Admission::Retransmitted(Arc::clone(&bytes)));
    }
    assert_eq!(answers.repeated(), 4);
    assert_eq!(answers.answer(now, id, bytes), None, "answered once");
}

#[test]
fn reused_sequence_with_other_content_is_new_request() {
    let (now, mut answers) = (
        start(),
        ResponseCache::new(ResponseCacheLimits::default(), 1),
    );
    let first = new(admit(&mut answers, now, &deletion(5, 9)));
    let second = new(admit(&mut answers, now, &deletion(5, 10)));
    let bytes = deletion(5, 9);
    let frame = Frame::decode(&bytes).expect("a message");
    let third = new(answers.admit(now, peer(2), &frame));
    assert!(first != second && second != third && first != third);
}

#[test]
fn answers_are_held_as_long_as_requests_may_be_repeated() {
    let limits = ResponseCacheLimits::default();
    let (now, mut answers) = (start(), ResponseCache::new(limits, 1));
    let id = new(admit(&mut answers, now, &deletion(5, 9)));
    answers.answer(now, id, vec![1].into());
    let last = now + limits.hold - Duration::from_nanos(1);
    assert!(matches!(
        admit(&mut answers, last, &deletion(5, 9)),
        Admission::Retransmitted(_)
    ));
    let over = now + limits.hold;
    new(admit(&mut answers, over, &deletion(5, 9)));
    assert_eq!(answers.bytes(), 0);
}

#[test]
fn cached_answers_are_bounded_by_count_and_bytes() {
    for limits in [
        ResponseCacheLimits {
            entries: 4,
            ..ResponseCacheLimits::default()
        },
        ResponseCacheLimits {
            bytes: 400,
            ..ResponseCacheLimits::default()
        },
    ] {
        let (now, mut answers) = (start(), ResponseCache::new(limits, 1));
        for sequence in 0..10 {
            let id = new(admit(&mut answers, now, &deletion(sequence, 9)));
            answers.answer(now, id, vec![0; 100].into());
            assert!(answers.len() <= 4 && answers.bytes() <= 400);
        }
        assert_eq!(answers.evicted(), 6);
        // The oldest response was evicted; the newest is present.
        new(admit(&mut answers, now, &deletion(0, 9)));
        let newest = admit(&mut answers, now, &deletion(9, 9));
        assert!(matches!(newest, Admission::Retransmitted(_)));
    }
}

#[test]
fn requests_being_worked_on_are_bounded() {
    let limits = ResponseCacheLimits {
        entries: 2,
        ..ResponseCacheLimits::default()
    };
    let (now, mut answers) = (start(), ResponseCache::new(limits, 1));
    new(admit(&mut answers, now, &deletion(1, 9)));
    new(admit(&mut answers, now, &deletion(2, 9)));
    assert_eq!(admit(&mut answers, now, &deletion(3, 9)), Admission::Full);
    assert_eq!(
        admit(&mut answers, now, &deletion(2, 9)),
        Admission::Working
    );
}

#[test]
fn abandoned_request_reruns_then_fails_third_time() {
    let (now, mut answers) = (
        start(),
        ResponseCache::new(ResponseCacheLimits::default(), 1),
    );
    let first = new(admit(&mut answers, now, &deletion(5, 9)));
    assert_eq!(answers.abandon(now, first), None);
    let second = new(admit(&mut answers, now, &deletion(5, 9)));
    assert_ne!(first, second);
    assert_eq!(answers.answer(now, first, vec![1].into()), None, "a stray");
    assert_eq!(answers.abandon(now, second), None);
    let third = new(admit(&mut answers, now, &deletion(5, 9)));
    let header = answers.abandon(now, third).expect("it failed");
    assert_eq!(header.sequence, Sequence::new(5));
    assert_eq!(answers.answer(now, third, vec![1].into()), Some(peer(1)));
}
