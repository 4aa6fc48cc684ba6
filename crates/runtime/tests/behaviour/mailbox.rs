//! Mailboxes: capacity, turns, overflow, recipients.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use strowger::testing::{ScriptCommand, ScriptedActor, TestSystem};
use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, ChildSpec, Context, Event, Exit, MailboxSpec, Overflow,
    Recipient, SendError, Strategy, Supervisor,
};

const SECOND: Duration = Duration::from_secs(1);

/// Forwards numbers; spends one second on each.
struct Slow(Recipient<u32>);

#[derive(Debug, PartialEq)]
struct Number(u32);

struct SlowMsg(u32);

impl Accepts<Number> for SlowMsg {
    fn wrap(number: Number) -> Self {
        Self(number.0)
    }
}

impl Actor for Slow {
    type Msg = SlowMsg;
    type Args = Recipient<u32>;
    type Error = Infallible;

    async fn pre_start(to: Recipient<u32>, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(to))
    }

    async fn handle(
        &mut self,
        SlowMsg(n): SlowMsg,
        _: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        tokio::time::sleep(SECOND).await;
        let _told = self.0.try_tell(n);
        Ok(())
    }
}

/// Does nothing with each message.
struct Swift;

impl Actor for Swift {
    type Msg = ();
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Reports the length of its mailbox after each message.
struct Queue(Recipient<(usize, bool)>);

impl Actor for Queue {
    type Msg = ();
    type Args = Recipient<(usize, bool)>;
    type Error = Infallible;

    async fn pre_start(to: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(to))
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), Infallible> {
        let _told = self.0.try_tell((cx.mailbox_len(), cx.has_messages()));
        Ok(())
    }
}

#[test]
fn context_reports_queued_messages() {
    for spec in [MailboxSpec::unbounded(), MailboxSpec::bounded(8)] {
        let system = TestSystem::new(1);
        let probe = system.probe();
        let child = ChildSpec::new::<Queue>("queue", probe.recipient()).mailbox(spec);
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
        let queue: ActorRef<()> = supervisor.child("queue").expect("it was started");
        for _ in 0..5 {
            queue.try_tell(()).expect("there is room");
        }
        system.run_until_idle();
        let seen = [(4, true), (3, true), (2, true), (1, true), (0, false)];
        assert_eq!(probe.drain(), seen);
        queue.try_tell(()).expect("there is room");
        system.run_until_idle();
        assert_eq!(probe.drain(), [(0, false)]);
    }
}

/// Sends numbers from zero to a slow actor with this mailbox; returns the numbers that it forwarded
/// within ten seconds, and its statistics.
fn passed_on(spec: MailboxSpec, numbers: u32) -> (Vec<u32>, strowger::ActorInfo) {
    let system = TestSystem::new(1);
    let (slow, probe) = slow(&system, spec);
    slow.try_tell(Number(100)).expect("there is room");
    system.run_until_idle();
    for n in 0..numbers {
        let _refused = slow.try_tell(Number(n));
    }
    system.advance(10 * SECOND);
    (probe.drain(), slow.erase().info())
}

fn slow(
    system: &TestSystem,
    spec: MailboxSpec,
) -> (ActorRef<SlowMsg>, strowger::testing::Probe<u32>) {
    let probe = system.probe();
    let child = ChildSpec::new::<Slow>("slow", probe.recipient()).mailbox(spec);
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
    (supervisor.child("slow").expect("it was started"), probe)
}

#[test]
fn each_overflow_rule_keeps_the_right_messages() {
    let bounded = MailboxSpec::bounded(2);
    let cases: [(Overflow, &[u32], u64); 5] = [
        (Overflow::Wait, &[100, 0, 1], 0),
        (Overflow::Fail, &[100, 0, 1], 0),
        (Overflow::DropNewest, &[100, 0, 1], 3),
        (Overflow::DropOldest, &[100, 3, 4], 3),
        (Overflow::KeepLatest, &[100, 4], 4),
    ];
    for (rule, passed, dropped) in cases {
        let (numbers, info) = passed_on(bounded.overflow(rule), 5);
        assert_eq!(numbers, passed, "{rule:?}");
        assert_eq!((info.dropped, info.high_water), (dropped, 2), "{rule:?}");
    }
    let (numbers, info) = passed_on(MailboxSpec::unbounded(), 9);
    assert_eq!(numbers.len(), 10);
    assert_eq!(info.capacity, None);
}

#[test]
fn tell_does_not_wait_under_the_fail_rule() {
    let system = TestSystem::new(1);
    let (slow, _) = slow(&system, MailboxSpec::bounded(1).overflow(Overflow::Fail));
    slow.try_tell(Number(1)).unwrap();
    // One message is being handled, one waits.
    system.run_until_idle();
    slow.try_tell(Number(1)).unwrap();
    let numbers = slow.recipient::<Number>();
    system.run(async {
        let full = Err(SendError::Full(Number(2)));
        assert_eq!(slow.tell(Number(2)).await, full);
        assert_eq!(numbers.tell(Number(2)).await, full);
    });
}

#[test]
fn turns_handle_a_full_budget_and_none_is_empty() {
    let system = TestSystem::new(1);
    let swift = system.spawn::<Swift>("swift", ());
    system.run_until_idle();
    let turns = |messages: u32| {
        let before = system.trace().turns();
        for _ in 0..messages {
            swift.try_tell(()).unwrap();
        }
        system.run_until_idle();
        system.trace().turns() - before
    };
    let one = turns(1);
    let first_beyond = |turns_more: u64| {
        let beyond = (1..).find(|&messages| turns(messages) > one + turns_more);
        beyond.expect("turns have a limit") - 1
    };
    let in_one = first_beyond(0);
    assert_eq!(first_beyond(1), 2 * in_one);
}

#[test]
fn refused_message_is_returned_unconverted() {
    let system = TestSystem::new(1);
    let (slow, _) = slow(&system, MailboxSpec::bounded(1));
    slow.try_tell(Number(1)).unwrap();
    assert_eq!(slow.try_tell(Number(2)), Err(SendError::Full(Number(2))));
    let doubled = slow.recipient::<Number>().contramap(|text: &'static str| {
        assert_ne!(text, "refused", "what finds no room is not converted");
        Number(u32::try_from(text.len()).unwrap())
    });
    assert_eq!(doubled.try_tell("refused"), Err(SendError::Full("refused")));
    slow.kill();
    system.run_until_idle();
}

#[test]
fn overflow_event_carries_the_count() {
    let system = TestSystem::new(1);
    let (slow, _) = slow(
        &system,
        MailboxSpec::bounded(1).overflow(Overflow::DropOldest),
    );
    let mut events = system.events();
    slow.try_tell(Number(1)).unwrap();
    slow.try_tell(Number(2)).unwrap();
    let event = events.try_next().unwrap();
    assert!(matches!(event, Event::Overflow { path, count: 1 } if path.as_str() == "/s/slow"));
}

#[test]
fn waiting_senders_are_served_in_order() {
    let system = TestSystem::new(1);
    let (slow, probe) = slow(&system, MailboxSpec::bounded(1));
    system.run(async {
        let (a, b, c) = (
            slow.tell(Number(1)),
            slow.tell(Number(2)),
            slow.tell(Number(3)),
        );
        let (a, b, c) = tokio::join!(a, b, c);
        a.and(b).and(c).unwrap();
    });
    system.advance(5 * SECOND);
    assert_eq!(probe.drain(), [1, 2, 3]);
}

#[test]
fn dropped_tell_sends_nothing_and_frees_its_place() {
    let system = TestSystem::new(1);
    let (slow, probe) = slow(&system, MailboxSpec::bounded(1));
    slow.try_tell(Number(1)).unwrap();
    {
        let mut given_up = pin!(slow.tell(Number(2)));
        let mut cx = TaskContext::from_waker(Waker::noop());
        assert!(given_up.as_mut().poll(&mut cx).is_pending());
        system.run_until_idle();
        // By now it has a slot, and is dropped nevertheless.
    }
    assert_eq!(slow.try_tell(Number(3)), Ok(()));
    system.advance(5 * SECOND);
    assert_eq!(probe.drain(), [1, 3]);
}

#[test]
fn tell_is_lazy() {
    let system = TestSystem::new(1);
    let (slow, probe) = slow(&system, MailboxSpec::bounded(2));
    let second = slow.tell(Number(2));
    drop(slow.tell(Number(3)));
    slow.try_tell(Number(1)).unwrap();
    system.run(second).unwrap();
    system.advance(5 * SECOND);
    assert_eq!(probe.drain(), [1, 2]);
}

#[test]
fn waiting_senders_get_their_message_back_when_the_actor_ends() {
    let system = TestSystem::new(1);
    let (slow, _) = slow(&system, MailboxSpec::bounded(1));
    slow.try_tell(Number(1)).unwrap();
    let mut waits = pin!(slow.tell(Number(2)));
    let mut cx = TaskContext::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    system.run(system.system().shutdown(SECOND / 2));
    let result = waits.as_mut().poll(&mut cx);
    assert_eq!(result, Poll::Ready(Err(SendError::Closed(Number(2)))));
}

#[test]
fn recipient_waits_and_converts() {
    let system = TestSystem::new(1);
    let (slow, probe) = slow(&system, MailboxSpec::bounded(1));
    let lengths = slow
        .recipient::<Number>()
        .contramap(|text: String| Number(u32::try_from(text.len()).unwrap()));
    assert_eq!(lengths.actor().path(), slow.path());
    system.run(async {
        for text in ["a", "bb", "ccc"] {
            lengths.tell(text.to_owned()).await.unwrap();
        }
    });
    system.advance(5 * SECOND);
    assert_eq!(probe.drain(), [1, 2, 3]);
}

#[test]
fn stop_overtakes_queued_messages() {
    let system = TestSystem::new(1);
    let (slow, probe) = slow(&system, MailboxSpec::DEFAULT);
    let mut events = system.events();
    for n in 0..10 {
        slow.try_tell(Number(n)).unwrap();
    }
    system.advance(SECOND / 2);
    let info = slow.erase().info();
    assert_eq!((info.mailbox_len, info.high_water), (9, 10));
    system.system().find("/s").unwrap().stop();
    assert!(matches!(system.run(slow.stopped()), Exit::Shutdown));
    assert_eq!(probe.drain(), [0], "it finished what it was at");
    let lost = std::iter::from_fn(|| events.try_next()).find_map(|event| match event {
        Event::DeadLetter { count, .. } => Some(count),
        _ => None,
    });
    assert_eq!(lost, Some(9));
}

#[test]
fn info_reports_busy_and_waiting_time() {
    let system = TestSystem::new(1);
    let (slow, _) = slow(&system, MailboxSpec::DEFAULT);
    for n in 0..40 {
        slow.try_tell(Number(n)).unwrap();
        system.advance(SECOND);
    }
    let info = slow.erase().info();
    assert_eq!(info.handled, 40);
    assert!(
        info.busy_time >= 20 * SECOND && info.busy_time <= 40 * SECOND,
        "{:?}",
        info.busy_time
    );
}

#[test]
fn scripted_actor_keeps_message_order_across_restart() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
    let scripted = supervisor.child::<ScriptCommand>("p").unwrap();
    let _ = probe.event_lines();
    for order in [
        ScriptCommand::Note(1),
        ScriptCommand::Panic,
        ScriptCommand::Note(2),
        ScriptCommand::Note(3),
    ] {
        scripted.try_tell(order).unwrap();
    }
    let story = ["noted 1", "dropped", "started", "noted 2", "noted 3"];
    assert_eq!(
        probe.event_lines(),
        story.map(|what| format!("/s/p {what}"))
    );
}

/// Checks that the numbers of each sender arrive in order.
struct Checker {
    next: Vec<u64>,
    done: Option<tokio::sync::mpsc::Sender<()>>,
    left: u64,
}

impl Actor for Checker {
    type Msg = (usize, u64);
    type Args = (usize, u64, tokio::sync::mpsc::Sender<()>);
    type Error = String;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(16);

    async fn pre_start(
        (senders, left, done): Self::Args,
        _: &mut Context<Self>,
    ) -> Result<Self, String> {
        Ok(Self {
            next: vec![0; senders],
            done: Some(done),
            left,
        })
    }

    async fn handle(
        &mut self,
        (sender, number): (usize, u64),
        _: &mut Context<Self>,
    ) -> Result<(), String> {
        if self.next[sender] != number {
            return Err(format!(
                "{number} of {sender} came before {}",
                self.next[sender]
            ));
        }
        self.next[sender] += 1;
        self.left -= 1;
        if self.left == 0 {
            self.done = None;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_senders_order_is_kept_under_contention() {
    const SENDERS: usize = 4;
    const EACH: u64 = 5_000;
    let system = ActorSystem::new("test").unwrap();
    let (done, mut all) = tokio::sync::mpsc::channel(1);
    let args = (SENDERS, EACH * SENDERS as u64, done);
    let checker = system.spawn::<Checker>("checker", args).unwrap();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let checker = checker.clone();
            tokio::spawn(async move {
                for number in 0..EACH {
                    checker.tell((sender, number)).await.unwrap();
                }
            })
        })
        .collect();
    for sender in senders {
        sender.await.unwrap();
    }
    assert!(all.recv().await.is_none());
    let info = checker.erase().info();
    assert_eq!(info.last_exit.map(|exit| exit.to_string()), None);
    assert!(info.high_water <= 16);
    system.shutdown(SECOND).await;
}

#[test]
fn busy_actor_yields_to_other_actors() {
    const MUCH: u32 = 10_000;

    /// Counts its messages in a shared counter.
    struct Counts(Arc<AtomicU32>);

    impl Actor for Counts {
        type Msg = ();
        type Args = Arc<AtomicU32>;
        type Error = Infallible;
        const MAILBOX: MailboxSpec = MailboxSpec::unbounded();

        async fn pre_start(count: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
            Ok(Self(count))
        }

        async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    /// Reads how far the other actor has come.
    struct Looks(Arc<AtomicU32>, Recipient<u32>);

    impl Actor for Looks {
        type Msg = ();
        type Args = (Arc<AtomicU32>, Recipient<u32>);
        type Error = Infallible;

        async fn pre_start(args: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
            Ok(Self(args.0, args.1))
        }

        async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
            let _told = self.1.try_tell(self.0.load(Ordering::Relaxed));
            Ok(())
        }
    }

    // Virtual time does not advance here: only the number of messages ends a turn.
    TestSystem::check(0..20, |system| {
        let probe = system.probe::<u32>();
        let count = Arc::new(AtomicU32::new(0));
        let counts = system.spawn::<Counts>("counts", Arc::clone(&count));
        let looks = system.spawn::<Looks>("looks", (count, probe.recipient()));
        system.run_until_idle();
        for _ in 0..MUCH {
            counts.try_tell(()).expect("there is room");
        }
        looks.try_tell(()).expect("there is room");
        system.run_until_idle();
        let before = probe.try_next().expect("it had its turn");
        assert!(before < MUCH, "it had its turn after all {before}");
    });
}
