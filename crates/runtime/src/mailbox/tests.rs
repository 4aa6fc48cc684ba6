use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Wake};

use proptest::prelude::*;

use super::receiver::BUDGET;
use super::*;
use crate::clock;
use crate::schedule::strand::TurnData;
use crate::sync::AtomicU64;

/// Does what a turn would do next.
fn next(
    receiver: &mut Receiver<u32>,
    mailbox: &Mailbox<u32>,
    cx: &Context<'_>,
) -> Poll<Received<u32>> {
    let lanes = (!receiver.is_ready(mailbox)).then(|| mailbox.lanes.lock());
    receiver.poll_next(mailbox, lanes, cx)
}

fn poll(receiver: &mut Receiver<u32>, mailbox: &Mailbox<u32>) -> Option<u32> {
    match next(receiver, mailbox, &Context::from_waker(Waker::noop())) {
        Poll::Ready(Received::Message(message)) => Some(message),
        Poll::Ready(other) => panic!("{other:?} was not sent"),
        Poll::Pending => None,
    }
}

fn is_stop(next: &Poll<Received<u32>>) -> bool {
    matches!(next, Poll::Ready(Received::Stop))
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
    receiver.end(mailbox);
    assert_eq!(mailbox.end_incarnation(mailbox.lanes.lock(), false), None);
}

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn senders_whose_turn_is_not_yet_keep_no_idle_actor_busy() {
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
    assert!(!mailbox.lanes.lock().rest());
    assert_eq!(poll(&mut receiver, &mailbox), None);
    assert!(mailbox.lanes.lock().rest());
    let first = first.expect("it has a place");
    assert!(mailbox.fill(first, 1, None).is_some());
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert_eq!(poll(&mut receiver, &mailbox), None);
    assert_eq!(
        mailbox.poll_reserve(&mut second, Waker::noop()),
        Poll::Ready(true)
    );
}

#[test]
fn capacity_counts_what_was_taken_out_and_not_handled() {
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
fn every_lane_is_weighed_by_its_capacity() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert_eq!(mailbox.stats().bytes, 0);
    assert!(push(&mailbox, 0));
    assert_eq!(mailbox.stats().bytes, size_of::<u32>(), "room for one");
    assert!((1..5).all(|n| push(&mailbox, n)));
    let room = mailbox.stats().bytes;
    assert!((5..=8).contains(&(room / size_of::<u32>())), "{room}");
    assert_eq!(room, mailbox.lanes.lock().user.bytes());
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert_eq!(mailbox.stats().bytes, 4 * size_of::<u32>());
    assert!((5..8).all(|n| push(&mailbox, n)));
    assert!(mailbox.complete(0, 10, None) && mailbox.complete(0, 11, None));
    assert!(mailbox.system(System::TaskEnded(0), None));
    let lanes = mailbox.lanes.lock();
    let rare = lanes.rare.as_ref().expect("it has both now");
    let beside = size_of_val(&**rare)
        + rare.completions.capacity() * size_of::<CompletedItem<u32>>()
        + rare.system.capacity() * size_of::<System>();
    let user = 4 * size_of::<u32>() + lanes.user.bytes();
    drop(lanes);
    assert_eq!(mailbox.stats().bytes, user + beside);
    assert_eq!(mailbox.stats().depth, 7 + 2);
}

#[test]
fn only_what_was_taken_out_counts_as_handled() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(3).overflow(Overflow::DropOldest));
    assert!((0..5).all(|n| push(&mailbox, n)));
    assert_eq!((mailbox.stats().handled, mailbox.progress()), (0, 0));
    mailbox.abandon_message(3);
    assert_eq!(poll(&mut receiver, &mailbox), Some(2));
    let taken = next(&mut receiver, &mailbox, &Context::from_waker(Waker::noop()));
    assert!(
        matches!(taken, Poll::Ready(Received::Expired(1))),
        "{taken:?}"
    );
    assert!(mailbox.complete(0, 10, None));
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
fn signal_overtakes_the_rest_of_a_batch() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!((0..3).all(|n| push(&mailbox, n)));
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    mailbox.system(System::Stop(Exit::Shutdown), None);
    let taken = next(&mut receiver, &mailbox, &Context::from_waker(Waker::noop()));
    assert!(is_stop(&taken));
    assert_eq!(drain(&mut receiver, &mailbox), [1, 2]);
}

#[test]
fn answers_come_before_messages_and_beyond_the_capacity() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(2));
    assert!(push(&mailbox, 1) && push(&mailbox, 2));
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert!(mailbox.complete(0, 10, None) && mailbox.complete(0, 11, None));
    assert!(push(&mailbox, 3), "answers take no place");
    assert_eq!(drain(&mut receiver, &mailbox), [10, 11, 2, 3]);
    assert_eq!(mailbox.stats().handled, 5, "answers are handled, too");
}

#[test]
fn end_of_an_incarnation_keeps_messages_in_order_and_drops_what_was_its_own() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!((0..3).all(|n| push(&mailbox, n)));
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert!(push(&mailbox, 3));
    assert!(mailbox.complete(0, 10, None));
    assert!(mailbox.system(System::Stop(Exit::Shutdown), None));
    end(&mut receiver, &mailbox);
    assert!(!mailbox.complete(0, 11, None), "its answers come too late");
    assert!(!mailbox.system(System::TaskEnded(0), Some(0)));
    assert_eq!(mailbox.stats().depth, 3);
    let mut receiver = Receiver::new(false);
    assert_eq!(drain(&mut receiver, &mailbox), [1, 2, 3]);
}

#[test]
fn all_news_overtakes_what_waits() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 0));
    assert!((1..4).all(|n| mailbox.system(System::TaskEnded(n), None)));
    for number in 1..4 {
        let taken = next(&mut receiver, &mailbox, &Context::from_waker(Waker::noop()));
        let Poll::Ready(Received::System(news)) = taken else {
            panic!("{taken:?} is no news");
        };
        assert!(matches!(*news, System::TaskEnded(n) if n == number));
    }
    assert_eq!(drain(&mut receiver, &mailbox), [0]);
}

#[test]
fn what_is_put_in_reserved_places_counts_for_the_most_that_waited() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 0) && push(&mailbox, 1));
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    for message in [2, 3] {
        let place = mailbox.try_reserve().ok().flatten();
        let place = place.expect("there is room");
        assert!(mailbox.fill(place, message, None).is_some());
    }
    assert_eq!(drain(&mut receiver, &mailbox), [1, 2, 3]);
    assert_eq!(mailbox.stats().high_water, 3);
}

#[test]
fn stop_between_incarnations_reaches_the_next() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    end(&mut receiver, &mailbox);
    mailbox.system(System::Stop(Exit::Shutdown), None);
    let taken = next(
        &mut Receiver::new(false),
        &mailbox,
        &Context::from_waker(Waker::noop()),
    );
    assert!(is_stop(&taken));
}

#[test]
fn overflow_rules_keep_what_they_say() {
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
fn rules_that_drop_reach_all_that_waits() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(2).overflow(Overflow::DropOldest));
    assert!(push(&mailbox, 0) && push(&mailbox, 1) && push(&mailbox, 2));
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert!(push(&mailbox, 3) && push(&mailbox, 4));
    assert_eq!(drain(&mut receiver, &mailbox), [3, 4]);
}

#[test]
fn a_conversion_that_panics_leaves_the_mailbox_as_it_was() {
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
fn closed_mailbox_takes_nothing_and_counts_what_waited() {
    let (mailbox, _) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 1));
    assert_eq!(mailbox.close(), 1);
    let mut message = Some(OpaqueMessage::new(2));
    let pushed = mailbox.push(&mut message, None, |n| n);
    assert_eq!(pushed.err(), Some(Refusal::Closed));
    assert_eq!(
        message.map(OpaqueMessage::into_inner),
        Some(2),
        "the sender has it"
    );
    assert_eq!(mailbox.try_reserve(), Err(Refusal::Closed));
    assert!(!mailbox.complete(0, 3, None));
}

#[test]
fn place_that_was_given_before_a_drain_is_kept_over_it() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(1));
    let place = mailbox.try_reserve().ok().flatten();
    assert!(mailbox.drain().is_some());
    end(&mut receiver, &mailbox);
    mailbox.lanes.lock().begin_incarnation();
    assert!(!push(&mailbox, 9), "the place is another's");
    let place = place.expect("there was room");
    assert!(mailbox.fill(place, 1, None).is_some());
    assert_eq!(drain(&mut Receiver::new(false), &mailbox), [1]);
}

#[test]
fn drain_that_was_given_up_takes_nothing_away() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!((0..3).all(|n| push(&mailbox, n)));
    let given_up = mailbox.drain().expect("it is open");
    assert!(given_up.leave().is_empty(), "it is not over");
    end(&mut receiver, &mailbox);
    let stats = mailbox.stats();
    assert_eq!((stats.depth, stats.handled), (3, 0));
}

#[test]
fn waiting_senders_are_served_in_turn_and_before_newcomers() {
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
    assert!(mailbox.fill(first.unwrap(), 1, None).is_some());
    assert_eq!(poll(&mut receiver, &mailbox), Some(1));
    assert_eq!(
        mailbox.poll_reserve(&mut second, &second_waker),
        Poll::Ready(true)
    );
}

#[test]
fn place_that_nobody_was_given_is_free_to_all() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(3));
    let (mut first, mut second) = (None, None);
    for ticket in [&mut first, &mut second] {
        assert!(mailbox.poll_reserve(ticket, Waker::noop()).is_ready());
    }
    assert!(push(&mailbox, 0), "the third place is free");
    assert!(!push(&mailbox, 9), "the others are given");
    for (ticket, message) in [(first, 1), (second, 2)] {
        let ticket = ticket.expect("it has a place");
        assert!(mailbox.fill(ticket, message, None).is_some());
    }
    assert_eq!(drain(&mut receiver, &mailbox), [0, 1, 2]);
}

#[test]
fn places_are_given_at_once_as_long_as_there_are_any() {
    let (mailbox, mut receiver) = made(MailboxSpec::bounded(2));
    let tickets = [0; 2].map(|_| mailbox.try_reserve().expect("there is room"));
    assert_ne!(tickets[0], tickets[1]);
    assert_eq!(mailbox.try_reserve(), Err(Refusal::Full));
    assert!(!push(&mailbox, 9));
    for (message, ticket) in (0..).zip(tickets) {
        let ticket = ticket.expect("it has a place");
        assert!(mailbox.fill(ticket, message, None).is_some());
    }
    assert_eq!(drain(&mut receiver, &mailbox), [0, 1]);
}

#[test]
fn place_that_is_given_up_goes_to_the_next() {
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
    mailbox.give_up(first.unwrap());
    assert_eq!(
        mailbox.poll_reserve(&mut second, Waker::noop()),
        Poll::Ready(true)
    );
    mailbox.give_up(second.unwrap());
    assert!(push(&mailbox, 1), "nobody waits any more");
    assert_eq!(drain(&mut receiver, &mailbox), [1]);
}

#[test]
fn slow_batch_lets_waiting_senders_in_one_by_one() {
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
fn closing_wakes_those_who_wait_for_room() {
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
    assert!(mailbox.fill(ticket.unwrap(), 1, None).is_none());
}

#[tokio::test]
async fn busy_receiver_lets_others_run() {
    let (mailbox, mut receiver) = made(MailboxSpec::unbounded());
    let all = u32::from(BUDGET) * 4;
    assert!((0..all).all(|n| push(&mailbox, n)));
    let mut pending = 0;
    let mut taken = 0;
    let mut work = pin!(poll_fn(|cx| {
        while let Poll::Ready(Received::Message(_)) = next(&mut receiver, &mailbox, cx) {
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
fn spent_budget_gives_way_whatever_waits() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let cx = Context::from_waker(&waker);
    let gave_way = || count.0.swap(0, Ordering::Relaxed) > 0;
    let spent = || {
        let (mailbox, mut receiver) = made(MailboxSpec::unbounded());
        for n in 0..u32::from(BUDGET) {
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
    assert!(mailbox.complete(0, 8, None));
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
fn message_that_was_not_taken_out_yet_is_more() {
    let (mailbox, mut receiver) = made(MailboxSpec::unbounded());
    assert!(!mailbox.has_more());
    assert!(push(&mailbox, 0) && mailbox.has_more());
    assert_eq!(poll(&mut receiver, &mailbox), Some(0));
    assert!(!mailbox.has_more());
}

#[test]
fn senders_in_threads_keep_their_own_order_and_the_capacity() {
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
    fn nothing_is_lost_and_the_capacity_holds(
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
                        mailbox.fill(waiting.remove(n).unwrap(), next, None);
                        sent.push_back(next);
                    }
                }
                Step::GiveUp(n) if n < waiting.len() => {
                    mailbox.give_up(waiting.remove(n).unwrap());
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
            mailbox.give_up(ticket);
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
        let lanes = Some(mailbox.lanes.lock());
        sources.push(match receiver.take_next(mailbox, lanes, &cx, timers > 0) {
            TakeResult::Item(Received::System(_)) => "signal",
            TakeResult::Item(Received::Stop) => "stop",
            TakeResult::Item(Received::Piped(..)) => "output",
            TakeResult::Item(Received::Message(_)) => "message",
            TakeResult::Item(Received::Expired(_)) => "expired",
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
fn receiver_takes_six_words() {
    assert!(size_of::<Receiver<u32>>() <= 48);
}

fn signal(mailbox: &Mailbox<u32>) {
    assert!(mailbox.system(System::TaskEnded(1), None));
}

#[test]
fn round_serves_signals_outputs_a_timer_and_a_message() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!((0..3).all(|n| push(&mailbox, n)));
    assert!((0..2).all(|n| mailbox.complete(0, n, Some(1))));
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
fn visit_is_bounded_however_many_items_wait() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    assert!(push(&mailbox, 1));
    (0..1000).for_each(|_| signal(&mailbox));
    let sources = sources(&mut receiver, &mailbox, 0);
    assert_eq!(sources.iter().position(|one| *one == "message"), Some(125));
    assert_eq!(sources.len(), 1001);
}

#[test]
fn signal_overtakes_messages_after_a_visit_that_ended_long_ago() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    signal(&mailbox);
    assert!(mailbox.complete(0, 1, Some(1)));
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
fn order_comes_before_signals_and_the_first_order_decides() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    (0..3).for_each(|_| signal(&mailbox));
    assert!(mailbox.system(System::Stop(Exit::Killed), None));
    assert!(mailbox.system(System::Panic("late".into()), None));
    assert!(mailbox.stop().is_none());
    let cx = Context::from_waker(Waker::noop());
    let mut orders = Vec::new();
    for _ in 0..3 {
        match next(&mut receiver, &mailbox, &cx) {
            Poll::Ready(Received::System(system)) => orders.push(system),
            other => panic!("{other:?} is no system message"),
        }
    }
    assert!(matches!(*orders[0], System::Stop(Exit::Killed)));
    assert!(matches!(*orders[1], System::Panic(_)));
    assert!(matches!(*orders[2], System::TaskEnded(_)));
}

#[test]
fn stop_behind_a_panic_is_kept_for_the_next_incarnation_to_see() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    signal(&mailbox);
    assert!(mailbox.system(System::Panic("first".into()), None));
    assert!(mailbox.stop().is_none());
    let cx = Context::from_waker(Waker::noop());
    let first = next(&mut receiver, &mailbox, &cx);
    let Poll::Ready(Received::System(first)) = first else {
        panic!("{first:?} is no system message");
    };
    assert!(matches!(*first, System::Panic(_)));
    assert!(mailbox.is_told_to_stop());
}

#[test]
fn timer_that_is_due_counts_against_the_turn() {
    let (mailbox, mut receiver) = made(MailboxSpec::DEFAULT);
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let cx = Context::from_waker(&waker);
    let mut timers = 0;
    while let TakeResult::Timer = receiver.take_next(&mailbox, None, &cx, true) {
        timers += 1;
    }
    assert_eq!(timers, BUDGET);
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
        match receiver.take_next(&mailbox, Some(mailbox.lanes.lock()), &cx, false) {
            TakeResult::Item(Received::Expired(count)) => {
                assert!(count <= u64::from(BUDGET));
                dropped += count;
            }
            TakeResult::TurnOver => turns += 1,
            TakeResult::Item(other) => panic!("{other:?} has not expired"),
            TakeResult::Timer | TakeResult::Idle => panic!("{dropped} were dropped"),
        }
    }
    assert_eq!(turns, 3);
}
