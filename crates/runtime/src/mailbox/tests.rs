use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Wake};

use proptest::prelude::*;

use super::receiver::TURN_BUDGET;
use super::*;
use crate::clock;
use crate::schedule::strand::TurnData;
use crate::sync::AtomicU64;

/// Does what a turn would do next.
fn next(
    receiver: &mut Receiver<u32>,
    mailbox: &Mailbox<u32>,
    cx: &Context<'_>,
) -> Poll<ReceivedItem<u32>> {
    let state = (!receiver.is_ready(mailbox)).then(|| mailbox.strand.lock());
    receiver.poll_next(mailbox, state, cx)
}

fn poll(receiver: &mut Receiver<u32>, mailbox: &Mailbox<u32>) -> Option<u32> {
    match next(receiver, mailbox, &Context::from_waker(Waker::noop())) {
        Poll::Ready(ReceivedItem::Message(message)) => Some(message),
        Poll::Ready(other) => panic!("{other:?} was not sent"),
        Poll::Pending => None,
    }
}

fn is_stop(next: &Poll<ReceivedItem<u32>>) -> bool {
    matches!(next, Poll::Ready(ReceivedItem::Stop))
}

fn push(mailbox: &Mailbox<u32>, message: u32) -> bool {
    mailbox
        .push(&mut Some(OpaqueMessage::new(message)), None, |message| {
            message
        })
        .is_ok()
}

fn drain(receiver: &mut Receiver<u32>, mailbox: &Mailbox<u32>) -> Vec<u32> {
    std::iter::from_fn(|| poll(receiver, mailbox)).collect()
}

fn made(spec: MailboxSpec) -> (Mailbox<u32>, Receiver<u32>) {
    let mailbox = Mailbox::new(spec);
    let receiver = Receiver::new(false);
    (mailbox, receiver)
}

/// Does what the end of an incarnation does.
fn end(receiver: &mut Receiver<u32>, mailbox: &Mailbox<u32>) {
    receiver.return_batch(mailbox);
    assert_eq!(mailbox.end_incarnation(mailbox.strand.lock(), false), None);
}

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn waiting_senders_do_not_keep_an_idle_actor_running() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(1));
    let (mut first, mut second) = (None, None);
    assert!(mailbox.poll_reserve(&mut first, Waker::noop()).is_ready());
    assert_eq!(poll(&mut receiver, &mailbox), None);
    assert!(
        mailbox
            .poll_reserve(&mut second, Waker::noop())
            .is_pending()
    );
    // One look for each newcomer.
    assert!(!mailbox.strand.lock().try_park());
    assert_eq!(poll(&mut receiver, &mailbox), None);
    assert!(mailbox.strand.lock().try_park());
    let first = first.expect("it has a place");
    assert!(mailbox.fill_reserved(first, 1, None).is_some());
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert_eq!(poll(&mut receiver, &mailbox), None);
    assert_eq!(
        mailbox.poll_reserve(&mut second, Waker::noop()),
        Poll::Ready(true)
    );
}

#[test]
fn capacity_includes_unhandled_batch() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(4));
    assert!((0..4).all(|n| push(&mailbox, n)));
    assert!(!push(&mailbox, 4));
    // All four are taken out now; one is being handled.
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert!(push(&mailbox, 4));
    assert!(!push(&mailbox, 5));
    assert_eq!(mailbox.stats().depth, 4);
    assert_eq!(drain(&mut receiver, &mailbox), [1, 2, 3, 4]);
    assert_eq!(mailbox.stats().high_water, 4);
    assert_eq!(mailbox.stats().handled, 5);
}

#[test]
fn memory_counts_every_lane_by_capacity() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert_eq!(mailbox.stats().bytes, 0);
    assert!(push(&mailbox, 0));
    assert_eq!(mailbox.stats().bytes, size_of::<u32>(), "room for one");
    assert!((1..5).all(|n| push(&mailbox, n)));
    let room = mailbox.stats().bytes;
    assert!((5..=8).contains(&(room / size_of::<u32>())), "{room}");
    assert_eq!(room, mailbox.strand.lock().messages.bytes());
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert_eq!(mailbox.stats().bytes, 4 * size_of::<u32>());
    assert!((5..8).all(|n| push(&mailbox, n)));
    assert!(mailbox.push_completion(0, 10, None) && mailbox.push_completion(0, 11, None));
    assert!(mailbox.push_system(SystemMessage::TaskEnded(0), None));
    let state = mailbox.strand.lock();
    let cold = state.cold.as_ref().expect("it has both now");
    let beside = size_of_val(&**cold)
        + cold.completions.capacity() * size_of::<CompletedItem<u32>>()
        + cold.system.capacity() * size_of::<SystemMessage>();
    let user = 4 * size_of::<u32>() + state.messages.bytes();
    drop(state);
    assert_eq!(mailbox.stats().bytes, user + beside);
    assert_eq!(mailbox.stats().depth, 7 + 2);
}

#[test]
fn handled_counts_only_taken_messages() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(3).overflow(Overflow::DropOldest));
    assert!((0..5).all(|n| push(&mailbox, n)));
    assert_eq!((mailbox.stats().handled, mailbox.progress()), (0, 0));
    mailbox.cancel_message(3);
    assert_eq!(poll(&mut receiver, &mailbox), Some(2));
    let taken = next(&mut receiver, &mailbox, &Context::from_waker(Waker::noop()));
    assert!(
        matches!(taken, Poll::Ready(ReceivedItem::Expired(1))),
        "{taken:?}"
    );
    assert!(mailbox.push_completion(0, 10, None));
    assert_eq!(drain(&mut receiver, &mailbox), [10, 4]);
    let MailboxStats {
        handled,
        dropped,
        expired,
        depth,
        ..
    } = mailbox.stats();
    assert_eq!((handled, dropped, expired, depth), (3, 2, 1, 0));
    assert_eq!(mailbox.progress(), 3);
}

#[test]
fn signal_interrupts_a_batch() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!((0..3).all(|n| push(&mailbox, n)));
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    mailbox.push_system(SystemMessage::Stop(Exit::Shutdown), None);
    let taken = next(&mut receiver, &mailbox, &Context::from_waker(Waker::noop()));
    assert!(is_stop(&taken));
    assert_eq!(drain(&mut receiver, &mailbox), [1, 2]);
}

#[test]
fn completions_precede_messages_and_bypass_capacity() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(2));
    assert!(push(&mailbox, 1) && push(&mailbox, 2));
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert!(mailbox.push_completion(0, 10, None) && mailbox.push_completion(0, 11, None));
    assert!(push(&mailbox, 3), "answers take no place");
    assert_eq!(drain(&mut receiver, &mailbox), [10, 11, 2, 3]);
    assert_eq!(mailbox.stats().handled, 5, "answers are handled, too");
}

#[test]
fn incarnation_end_keeps_messages_and_drops_its_completions() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!((0..3).all(|n| push(&mailbox, n)));
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert!(push(&mailbox, 3));
    assert!(mailbox.push_completion(0, 10, None));
    assert!(mailbox.push_system(SystemMessage::Stop(Exit::Shutdown), None));
    end(&mut receiver, &mailbox);
    assert!(
        !mailbox.push_completion(0, 11, None),
        "its answers come too late"
    );
    assert!(!mailbox.push_system(SystemMessage::TaskEnded(0), Some(0)));
    assert_eq!(mailbox.stats().depth, 3);
    let mut receiver = Receiver::new(false);
    assert_eq!(drain(&mut receiver, &mailbox), [1, 2, 3]);
}

#[test]
fn system_messages_overtake_queued_messages() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 0));
    assert!((1..4).all(|n| mailbox.push_system(SystemMessage::TaskEnded(n), None)));
    for number in 1..4 {
        let taken = next(&mut receiver, &mailbox, &Context::from_waker(Waker::noop()));
        let Poll::Ready(ReceivedItem::System(news)) = taken else {
            panic!("{taken:?} is no news");
        };
        assert!(matches!(*news, SystemMessage::TaskEnded(n) if n == number));
    }
    assert_eq!(drain(&mut receiver, &mailbox), [0]);
}

#[test]
fn reserved_messages_count_in_high_water() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 0) && push(&mailbox, 1));
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    for message in [2, 3] {
        let place = mailbox.try_reserve().ok().flatten();
        let place = place.expect("there is room");
        assert!(mailbox.fill_reserved(place, message, None).is_some());
    }
    assert_eq!(drain(&mut receiver, &mailbox), [1, 2, 3]);
    assert_eq!(mailbox.stats().high_water, 3);
}

#[test]
fn stop_between_incarnations_reaches_the_next() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    end(&mut receiver, &mailbox);
    mailbox.push_system(SystemMessage::Stop(Exit::Shutdown), None);
    let taken = next(
        &mut Receiver::new(false),
        &mailbox,
        &Context::from_waker(Waker::noop()),
    );
    assert!(is_stop(&taken));
}

#[test]
fn overflow_rules_keep_the_right_messages() {
    let cases: [(Overflow, &[u32], u64); 3] = [
        (Overflow::DropNewest, &[0, 1, 2], 2),
        (Overflow::DropOldest, &[2, 3, 4], 2),
        (Overflow::KeepLatest, &[3, 4], 3),
    ];
    for (rule, left, dropped) in cases {
        let (mailbox, mut receiver) = made(MailboxSpec::bounded(3).overflow(rule));
        assert!((0..5).all(|n| push(&mailbox, n)), "{rule:?} takes all");
        assert_eq!(drain(&mut receiver, &mailbox), left, "{rule:?}");
        assert_eq!(mailbox.stats().dropped, dropped, "{rule:?}");
    }
}

#[test]
fn dropping_rules_reach_the_whole_queue() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(2).overflow(Overflow::DropOldest));
    assert!(push(&mailbox, 0) && push(&mailbox, 1) && push(&mailbox, 2));
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert!(push(&mailbox, 3) && push(&mailbox, 4));
    assert_eq!(drain(&mut receiver, &mailbox), [3, 4]);
}

#[test]
fn panicking_conversion_leaves_the_mailbox_unchanged() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 1));
    let fails = || {
        mailbox.push(&mut Some(OpaqueMessage::new(2)), None, |_| {
            panic!("planted")
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
    let stats = mailbox.stats();
    assert_eq!((stats.depth, stats.handled), (1, 0));
    assert!(push(&mailbox, 3));
    assert_eq!(drain(&mut receiver, &mailbox), [1, 3]);
    assert_eq!(mailbox.stats().handled, 2);
}

#[test]
fn closed_mailbox_refuses_and_counts_dropped_messages() {
    let (mailbox, _) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 1));
    assert_eq!(mailbox.close(), 1);
    let mut message = Some(OpaqueMessage::new(2));
    let pushed = mailbox.push(&mut message, None, |n| n);
    assert_eq!(pushed.err(), Some(PushError::Closed));
    assert_eq!(
        message.map(OpaqueMessage::into_inner),
        Some(2),
        "the sender has it"
    );
    assert_eq!(mailbox.try_reserve(), Err(PushError::Closed));
    assert!(!mailbox.push_completion(0, 3, None));
}

#[test]
fn reserved_place_survives_a_drain() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(1));
    let place = mailbox.try_reserve().ok().flatten();
    assert!(mailbox.drain().is_some());
    end(&mut receiver, &mailbox);
    mailbox.strand.lock().begin_incarnation();
    assert!(!push(&mailbox, 9), "the place is another's");
    let place = place.expect("there was room");
    assert!(mailbox.fill_reserved(place, 1, None).is_some());
    assert_eq!(drain(&mut Receiver::new(false), &mailbox), [1]);
}

#[test]
fn cancelled_drain_takes_no_messages() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!((0..3).all(|n| push(&mailbox, n)));
    let given_up = mailbox.drain().expect("it is open");
    assert!(given_up.remove_waiter().is_empty(), "it is not over");
    end(&mut receiver, &mailbox);
    let stats = mailbox.stats();
    assert_eq!((stats.depth, stats.handled), (3, 0));
}

#[test]
fn waiting_senders_precede_new_ones_in_order() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(1));
    assert!(push(&mailbox, 0));
    let (count, other) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let (first_waker, second_waker) = (Waker::from(Arc::clone(&count)), Waker::from(other));
    let (mut first, mut second) = (None, None);
    assert!(mailbox.poll_reserve(&mut first, &first_waker).is_pending());
    assert!(
        mailbox
            .poll_reserve(&mut second, &second_waker)
            .is_pending()
    );
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(!push(&mailbox, 9), "the place is another's");
    assert!(
        mailbox
            .poll_reserve(&mut second, &second_waker)
            .is_pending()
    );
    assert_eq!(
        mailbox.poll_reserve(&mut first, &first_waker),
        Poll::Ready(true)
    );
    assert!(mailbox.fill_reserved(first.unwrap(), 1, None).is_some());
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert_eq!(
        mailbox.poll_reserve(&mut second, &second_waker),
        Poll::Ready(true)
    );
}

#[test]
fn ungranted_place_is_free_for_all() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(3));
    let (mut first, mut second) = (None, None);
    for ticket in [&mut first, &mut second] {
        assert!(mailbox.poll_reserve(ticket, Waker::noop()).is_ready());
    }
    assert!(push(&mailbox, 0), "the third place is free");
    assert!(!push(&mailbox, 9), "the others are given");
    for (ticket, message) in [(first, 1), (second, 2)] {
        let ticket = ticket.expect("it has a place");
        assert!(mailbox.fill_reserved(ticket, message, None).is_some());
    }
    assert_eq!(drain(&mut receiver, &mailbox), [0, 1, 2]);
}

#[test]
fn places_are_granted_while_available() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(2));
    let tickets = [0; 2].map(|_| mailbox.try_reserve().expect("there is room"));
    assert_ne!(tickets[0], tickets[1]);
    assert_eq!(mailbox.try_reserve(), Err(PushError::Full));
    assert!(!push(&mailbox, 9));
    for (message, ticket) in (0..).zip(tickets) {
        let ticket = ticket.expect("it has a place");
        assert!(mailbox.fill_reserved(ticket, message, None).is_some());
    }
    assert_eq!(drain(&mut receiver, &mailbox), [0, 1]);
}

#[test]
fn released_place_goes_to_the_next_sender() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(1));
    assert!(push(&mailbox, 0));
    let (mut first, mut second) = (None, None);
    assert!(mailbox.poll_reserve(&mut first, Waker::noop()).is_pending());
    assert!(
        mailbox
            .poll_reserve(&mut second, Waker::noop())
            .is_pending()
    );
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    mailbox.release_place(first.unwrap());
    assert_eq!(
        mailbox.poll_reserve(&mut second, Waker::noop()),
        Poll::Ready(true)
    );
    mailbox.release_place(second.unwrap());
    assert!(push(&mailbox, 1), "nobody waits any more");
    assert_eq!(drain(&mut receiver, &mailbox), [1]);
}

#[test]
fn handling_a_batch_admits_waiting_senders_one_by_one() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(3));
    assert!((0..3).all(|n| push(&mailbox, n)));
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert!(push(&mailbox, 3));
    let mut ticket = None;
    assert!(
        mailbox
            .poll_reserve(&mut ticket, Waker::noop())
            .is_pending()
    );
    // The batch still holds messages when the next one of it makes room.
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert_eq!(
        mailbox.poll_reserve(&mut ticket, Waker::noop()),
        Poll::Ready(true)
    );
}

#[test]
fn close_wakes_waiting_senders() {
    let (mailbox, _) = made(MailboxSpec::bounded(1));
    assert!(push(&mailbox, 0));
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut ticket = None;
    assert!(mailbox.poll_reserve(&mut ticket, &waker).is_pending());
    mailbox.close();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(
        mailbox.poll_reserve(&mut ticket, &waker),
        Poll::Ready(false)
    );
    assert!(mailbox.fill_reserved(ticket.unwrap(), 1, None).is_none());
}

#[tokio::test]
async fn busy_receiver_yields() {
    let (mailbox, mut receiver) = made(MailboxSpec::unbounded());
    let all = u32::from(TURN_BUDGET) * 4;
    assert!((0..all).all(|n| push(&mailbox, n)));
    let mut pending = 0;
    let mut taken = 0;
    let mut work = pin!(poll_fn(|cx| {
        while let Poll::Ready(ReceivedItem::Message(_)) = next(&mut receiver, &mailbox, cx) {
            taken += 1;
        }
        pending += 1;
        if taken == all {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    work.as_mut().await;
    assert_eq!(pending, 4);
}

#[test]
fn spent_budget_ends_the_turn() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let cx = Context::from_waker(&waker);
    let gave_way = || count.0.swap(0, Ordering::Relaxed) > 0;
    let spent = || {
        let (mailbox, mut receiver) = made(MailboxSpec::unbounded());
        for n in 0..u32::from(TURN_BUDGET) {
            assert!(push(&mailbox, n));
            assert_eq!(poll(&mut receiver, &mailbox), Some(n));
        }
        (mailbox, receiver)
    };
    let (mailbox, mut receiver) = spent();
    assert!(next(&mut receiver, &mailbox, &cx).is_pending());
    assert!(!gave_way(), "nothing waits");

    let (mailbox, mut receiver) = spent();
    assert!(push(&mailbox, 7));
    assert!(next(&mut receiver, &mailbox, &cx).is_pending());
    assert!(gave_way());
    assert_eq!(poll(&mut receiver, &mailbox), Some(7));

    let (mailbox, mut receiver) = spent();
    assert!(mailbox.push_completion(0, 8, None));
    assert!(next(&mut receiver, &mailbox, &cx).is_pending());
    assert!(gave_way());
    assert_eq!(poll(&mut receiver, &mailbox), Some(8));

    let (mailbox, mut receiver) = spent();
    assert!(mailbox.stop().is_none());
    assert!(next(&mut receiver, &mailbox, &cx).is_pending());
    assert!(gave_way());
    assert!(is_stop(&next(&mut receiver, &mailbox, &cx)));
}

#[test]
fn has_more_sees_untaken_messages() {
    let (mailbox, mut receiver) = made(MailboxSpec::unbounded());
    assert!(!mailbox.has_more());
    assert!(push(&mailbox, 0) && mailbox.has_more());
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert!(!mailbox.has_more());
}

#[test]
fn threaded_senders_keep_order_and_capacity() {
    const SENDERS: u32 = 4;
    const EACH: u32 = if cfg!(miri) { 20 } else { 2_000 };
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(8));
    let mut last = [None; SENDERS as usize];
    let mut taken = 0;
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let mailbox = &mailbox;
            scope.spawn(move || {
                for n in 0..EACH {
                    while !push(mailbox, sender * EACH + n) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        while taken < SENDERS * EACH {
            let Some(message) = poll(&mut receiver, &mailbox) else {
                std::thread::yield_now();
                continue;
            };
            let before = last[(message / EACH) as usize].replace(message);
            assert!(before.is_none_or(|before| before < message));
            taken += 1;
        }
    });
    assert!(mailbox.stats().high_water <= 8);
}

#[derive(Debug, Clone)]
enum Step {
    Push,
    Take,
    Wait,
    Retry(usize),
    GiveUp(usize),
    NextIncarnation,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Push),
        4 => Just(Step::Take),
        2 => Just(Step::Wait),
        2 => (0..4_usize).prop_map(Step::Retry),
        1 => (0..4_usize).prop_map(Step::GiveUp),
        1 => Just(Step::NextIncarnation),
    ]
}

proptest! {
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    #[test]
    fn no_loss_and_capacity_is_respected(
        capacity in 1_usize..5,
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let (mailbox, mut receiver) = made(MailboxSpec::bounded(capacity));
        let mut sent = VecDeque::new();
        let mut waiting: Vec<Option<u64>> = Vec::new();
        for (next, step) in (0..).zip(steps) {
            match step {
                Step::Push => if push(&mailbox, next) { sent.push_back(next) },
                Step::Take => prop_assert_eq!(poll(&mut receiver, &mailbox), sent.pop_front()),
                Step::Wait => {
                    let mut ticket = None;
                    let _ = mailbox.poll_reserve(&mut ticket, Waker::noop());
                    waiting.push(ticket);
                }
                Step::Retry(n) if n < waiting.len() => {
                    if mailbox.poll_reserve(&mut waiting[n], Waker::noop()).is_ready() {
                        mailbox.fill_reserved(waiting.remove(n).unwrap(), next, None);
                        sent.push_back(next);
                    }
                }
                Step::GiveUp(n) if n < waiting.len() => {
                    mailbox.release_place(waiting.remove(n).unwrap());
                }
                Step::Retry(_) | Step::GiveUp(_) => {}
                Step::NextIncarnation => {
                    end(&mut receiver, &mailbox);
                    receiver = Receiver::new(false);
                }
            }
            prop_assert_eq!(mailbox.stats().depth, sent.len());
            prop_assert!(sent.len() <= capacity);
        }
        for ticket in waiting.into_iter().flatten() {
            mailbox.release_place(ticket);
        }
        prop_assert_eq!(drain(&mut receiver, &mailbox), Vec::from(sent));
        prop_assert!((0..capacity).all(|_| push(&mailbox, 0)), "no place was lost");
    }
}

/// Returns the sources of the next items, until nothing waits.
fn sources(
    receiver: &mut Receiver<u32>,
    mailbox: &Mailbox<u32>,
    mut timers: usize,
) -> Vec<&'static str> {
    let mut sources = Vec::new();
    loop {
        let cx = Context::from_waker(Waker::noop());
        let state = Some(mailbox.strand.lock());
        sources.push(match receiver.take_next(mailbox, state, &cx, timers > 0) {
            TakeResult::Item(ReceivedItem::System(_)) => "signal",
            TakeResult::Item(ReceivedItem::Stop) => "stop",
            TakeResult::Item(ReceivedItem::PipeOutput(..)) => "output",
            TakeResult::Item(ReceivedItem::Message(_)) => "message",
            TakeResult::Item(ReceivedItem::Expired(_)) => "expired",
            TakeResult::Timer => {
                timers -= 1;
                "timer"
            }
            TakeResult::TurnOver => continue,
            TakeResult::Idle => return sources,
        });
    }
}

/// Every actor has a receiver, in the space in which small actors are stored without a box.
#[cfg(target_pointer_width = "64")]
#[test]
fn receiver_size_is_six_words() {
    assert!(size_of::<Receiver<u32>>() <= 48);
}

fn signal(mailbox: &Mailbox<u32>) {
    assert!(mailbox.push_system(SystemMessage::TaskEnded(1), None));
}

#[test]
fn round_serves_signals_outputs_a_timer_and_a_message() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!((0..3).all(|n| push(&mailbox, n)));
    assert!((0..2).all(|n| mailbox.push_completion(0, n, Some(1))));
    (0..2).for_each(|_| signal(&mailbox));
    assert_eq!(
        sources(&mut receiver, &mailbox, 2),
        [
            "signal", "signal", "output", "output", "timer", "message", "timer", "message",
            "message"
        ]
    );
}

#[test]
fn source_quota_is_bounded() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 1));
    (0..1000).for_each(|_| signal(&mailbox));
    let sources = sources(&mut receiver, &mailbox, 0);
    assert_eq!(sources.iter().position(|one| *one == "message"), Some(125));
    assert_eq!(sources.len(), 1001);
}

#[test]
fn signal_overtakes_messages_after_an_old_rotation() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    signal(&mailbox);
    assert!(mailbox.push_completion(0, 1, Some(1)));
    assert_eq!(sources(&mut receiver, &mailbox, 0), ["signal", "output"]);
    assert!((0..5).all(|n| push(&mailbox, n)));
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    signal(&mailbox);
    assert_eq!(
        sources(&mut receiver, &mailbox, 0)[..2],
        ["signal", "message"]
    );
}

#[test]
fn signal_overtakes_messages_after_the_actor_was_idle() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    signal(&mailbox);
    assert_eq!(sources(&mut receiver, &mailbox, 0), ["signal"]);
    assert!(push(&mailbox, 1));
    signal(&mailbox);
    assert_eq!(sources(&mut receiver, &mailbox, 0), ["signal", "message"]);
}

#[test]
fn stop_precedes_signals_and_the_first_stop_decides_the_exit() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    (0..3).for_each(|_| signal(&mailbox));
    assert!(mailbox.push_system(SystemMessage::Stop(Exit::Killed), None));
    assert!(mailbox.push_system(SystemMessage::Panic("late".into()), None));
    assert!(mailbox.stop().is_none());
    let cx = Context::from_waker(Waker::noop());
    let mut orders = Vec::new();
    for _ in 0..3 {
        match next(&mut receiver, &mailbox, &cx) {
            Poll::Ready(ReceivedItem::System(system)) => orders.push(system),
            other => panic!("{other:?} is no system message"),
        }
    }
    assert!(matches!(*orders[0], SystemMessage::Stop(Exit::Killed)));
    assert!(matches!(*orders[1], SystemMessage::Panic(_)));
    assert!(matches!(*orders[2], SystemMessage::TaskEnded(_)));
}

#[test]
fn stop_behind_an_injected_panic_reaches_the_next_incarnation() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    signal(&mailbox);
    assert!(mailbox.push_system(SystemMessage::Panic("first".into()), None));
    assert!(mailbox.stop().is_none());
    let cx = Context::from_waker(Waker::noop());
    let first = next(&mut receiver, &mailbox, &cx);
    let Poll::Ready(ReceivedItem::System(first)) = first else {
        panic!("{first:?} is no system message");
    };
    assert!(matches!(*first, SystemMessage::Panic(_)));
    assert!(mailbox.is_told_to_stop());
}

#[test]
fn due_timer_counts_against_the_turn() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let cx = Context::from_waker(&waker);
    let mut timers = 0;
    while let TakeResult::Timer = receiver.take_next(&mailbox, None, &cx, true) {
        timers += 1;
    }
    assert_eq!(timers, TURN_BUDGET);
    assert_eq!(woken.0.load(Ordering::Relaxed), 1, "there is more to do");
}

#[tokio::test(start_paused = true)]
async fn expired_messages_count_against_the_turn() {
    let (mailbox, mut receiver) = made(MailboxSpec::unbounded());
    let until = Some(clock::now());
    for number in 0..1000 {
        let pushed = mailbox.push(&mut Some(OpaqueMessage::new(number)), until, |one| one);
        assert!(pushed.is_ok());
    }
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let cx = Context::from_waker(Waker::noop());
    let (mut dropped, mut turns) = (0, 0);
    while dropped < 1000 {
        match receiver.take_next(&mailbox, Some(mailbox.strand.lock()), &cx, false) {
            TakeResult::Item(ReceivedItem::Expired(count)) => {
                assert!(count <= u64::from(TURN_BUDGET));
                dropped += count;
            }
            TakeResult::TurnOver => turns += 1,
            TakeResult::Item(other) => panic!("{other:?} has not expired"),
            TakeResult::Timer | TakeResult::Idle => panic!("{dropped} were dropped"),
        }
    }
    assert_eq!(turns, 3);
}
