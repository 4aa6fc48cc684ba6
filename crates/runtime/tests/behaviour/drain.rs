//! Draining: refuses new messages, handles waiting ones, and returns those that are left over.

use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use strowger::testing::{
    Hook, InjectedFault, Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem,
};
use strowger::{
    ActorRef, AskError, Backoff, ChildSpec, Event, Exit, MailboxSpec, Overflow, Restart, SendError,
    Strategy, Supervisor, SupervisorRef,
};

const SECOND: Duration = Duration::from_secs(1);

struct Scene {
    system: TestSystem,
    probe: Probe<RecordedEvent>,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let system = TestSystem::new(seed);
        let probe = system.probe();
        Self { system, probe }
    }

    fn scripted(&self) -> ActorRef<ScriptCommand> {
        self.system
            .spawn::<ScriptedActor>("p", self.probe.recipient())
    }

    fn child(
        &self,
        spec: impl FnOnce(ChildSpec) -> ChildSpec,
    ) -> (SupervisorRef, ActorRef<ScriptCommand>) {
        let child = spec(ChildSpec::new::<ScriptedActor>("p", self.probe.recipient()));
        let backoff = Backoff::new(10 * SECOND, 10 * SECOND);
        let supervisor = Supervisor::new(Strategy::OneForOne).backoff(backoff);
        let supervisor = self.system.supervise("s", supervisor.child(child));
        let child = supervisor.child::<ScriptCommand>("p").expect("it started");
        (supervisor, child)
    }
}

fn numbers(orders: &[ScriptCommand]) -> Vec<u64> {
    let number = |order: &ScriptCommand| match order {
        ScriptCommand::Note(number) => *number,
        other => panic!("{other:?} was not a note"),
    };
    orders.iter().map(number).collect()
}

fn note(scripted: &ActorRef<ScriptCommand>, orders: impl IntoIterator<Item = ScriptCommand>) {
    for order in orders {
        scripted.try_tell(order).expect("there is room");
    }
}

#[test]
fn drain_handles_queued_messages_then_stops() {
    let scene = Scene::new(1);
    let scripted = scene.scripted();
    note(
        &scripted,
        [
            ScriptCommand::Note(1),
            ScriptCommand::Sleep(SECOND),
            ScriptCommand::Note(2),
        ],
    );
    let left = scene.system.run(scripted.drain(5 * SECOND));
    assert!(left.is_empty());
    assert_eq!(
        scene.system.elapsed(),
        SECOND,
        "it does not wait for the limit"
    );
    let story = [
        "/p started",
        "/p noted 1",
        "/p noted 2",
        "/p stopped: shutdown",
    ];
    assert_eq!(scene.probe.event_lines(), story);
    assert!(!scripted.is_alive());
    assert!(matches!(
        scripted.try_tell(ScriptCommand::Stop),
        Err(SendError::Closed(ScriptCommand::Stop))
    ));
}

#[test]
fn drain_timeout_returns_unhandled_messages_in_order() {
    let scene = Scene::new(1);
    let mut events = scene.system.events();
    let scripted = scene.scripted();
    note(
        &scripted,
        [ScriptCommand::Note(0), ScriptCommand::Sleep(3 * SECOND)],
    );
    note(&scripted, (1..=500).map(ScriptCommand::Note));
    let left = scene.system.run(scripted.drain(2 * SECOND));
    assert_eq!(numbers(&left), (1..=500).collect::<Vec<_>>());
    assert_eq!(
        scene.system.elapsed(),
        3 * SECOND,
        "the message it was at is finished"
    );
    assert_eq!(
        scene.probe.event_lines(),
        ["/p started", "/p noted 0", "/p stopped: shutdown"]
    );
    while let Some(event) = events.try_next() {
        assert!(!matches!(event, Event::DeadLetter { .. }), "{event:?}");
    }
}

#[test]
fn draining_actor_refuses_and_returns_new_messages() {
    let scene = Scene::new(1);
    let scripted = scene.scripted();
    note(
        &scripted,
        [ScriptCommand::Sleep(SECOND), ScriptCommand::Note(1)],
    );
    scene.system.run_until_idle();
    let result = scene.system.run(async {
        let late = async {
            tokio::task::yield_now().await;
            let order = scripted.try_tell(ScriptCommand::Note(2));
            let recipient = scripted
                .recipient::<ScriptCommand>()
                .tell(ScriptCommand::Note(3))
                .await;
            let mapped = scripted
                .recipient::<ScriptCommand>()
                .contramap(ScriptCommand::Note);
            (order, recipient, mapped.try_tell(4))
        };
        tokio::join!(scripted.drain(5 * SECOND), late)
    });
    let (left, (order, recipient, mapped)) = result;
    assert!(left.is_empty());
    assert!(matches!(
        order,
        Err(SendError::Draining(ScriptCommand::Note(2)))
    ));
    assert!(matches!(
        recipient,
        Err(SendError::Draining(ScriptCommand::Note(3)))
    ));
    assert!(matches!(mapped, Err(SendError::Draining(4))));
    assert_eq!(
        scene.probe.event_lines(),
        ["/p started", "/p noted 1", "/p stopped: shutdown"]
    );
}

#[test]
fn drain_refuses_senders_that_wait_for_space() {
    let scene = Scene::new(1);
    let (_supervisor, scripted) = scene.child(|child| {
        child
            .restart(Restart::Transient)
            .mailbox(MailboxSpec::bounded(1))
    });
    note(&scripted, [ScriptCommand::Sleep(SECOND)]);
    scene.system.run_until_idle();
    note(&scripted, [ScriptCommand::Note(1)]);
    let result = scene.system.run(async {
        let drain = async {
            tokio::task::yield_now().await;
            scripted.drain(5 * SECOND).await
        };
        tokio::join!(
            scripted.tell(ScriptCommand::Note(2)),
            scripted.tell(ScriptCommand::Note(3)),
            drain
        )
    });
    assert!(matches!(
        result.0,
        Err(SendError::Draining(ScriptCommand::Note(2)))
    ));
    assert!(matches!(
        result.1,
        Err(SendError::Draining(ScriptCommand::Note(3)))
    ));
    assert!(result.2.is_empty());
    assert_eq!(
        scene.probe.event_lines(),
        ["/s/p started", "/s/p noted 1", "/s/p stopped: shutdown"]
    );
}

#[test]
fn permanent_child_restarts_after_drain_and_accepts_messages() {
    let scene = Scene::new(1);
    let (_supervisor, scripted) = scene.child(|child| child.restart(Restart::Permanent));
    note(
        &scripted,
        [ScriptCommand::Sleep(2 * SECOND), ScriptCommand::Note(1)],
    );
    let left = scene.system.run(scripted.drain(SECOND));
    assert_eq!(numbers(&left), [1]);
    scene.system.run_until_idle();
    note(&scripted, [ScriptCommand::Note(2)]);
    let story = scene.probe.event_lines();
    let expected = [
        "/s/p started",
        "/s/p stopped: shutdown",
        "/s/p started",
        "/s/p noted 2",
    ];
    assert_eq!(story, expected);
}

#[test]
fn transient_child_is_not_restarted_after_drain() {
    let scene = Scene::new(1);
    let (_supervisor, scripted) = scene.child(|child| child.restart(Restart::Transient));
    assert!(scene.system.run(scripted.drain(SECOND)).is_empty());
    scene.system.run_until_idle();
    assert!(!scripted.is_alive());
}

#[test]
fn panic_ends_the_drain_and_returns_queued_messages() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe::<RecordedEvent>();
        let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
        let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
        let supervisor = system.supervise("s", supervisor);
        let scripted = supervisor.child::<ScriptCommand>("p").expect("it started");
        note(
            &scripted,
            [
                ScriptCommand::Note(1),
                ScriptCommand::Sleep(SECOND),
                ScriptCommand::Panic,
            ],
        );
        note(&scripted, [ScriptCommand::Note(2), ScriptCommand::Note(3)]);
        let left = system.run(scripted.drain(2 * SECOND));
        assert_eq!(numbers(&left), [2, 3]);
        let story = [
            "/s/p started",
            "/s/p noted 1",
            "/s/p dropped",
            "/s/p started",
        ];
        assert_eq!(probe.event_lines(), story);
        note(&scripted, [ScriptCommand::Note(4)]);
        assert_eq!(probe.event_lines(), ["/s/p noted 4"]);
    });
}

#[test]
fn drain_of_a_child_in_backoff_returns_all_messages() {
    let scene = Scene::new(1);
    let (_supervisor, scripted) = scene.child(|child| child);
    // The first restart is immediate, the second comes after the backoff.
    note(
        &scripted,
        [
            ScriptCommand::Error,
            ScriptCommand::Error,
            ScriptCommand::Note(1),
            ScriptCommand::Note(2),
        ],
    );
    scene.system.run_until_idle();
    let left = scene.system.run(scripted.drain(SECOND));
    assert_eq!(numbers(&left), [1, 2]);
    assert_eq!(scene.system.elapsed(), SECOND);
    scene.system.advance(60 * SECOND);
    note(&scripted, [ScriptCommand::Note(3)]);
    assert_eq!(scene.probe.event_lines().last().unwrap(), "/s/p noted 3");
}

#[test]
fn children_end_before_the_drained_actor() {
    let scene = Scene::new(1);
    let scripted = scene.scripted();
    note(
        &scripted,
        [ScriptCommand::Spawn("c".into()), ScriptCommand::Note(1)],
    );
    assert!(scene.system.run(scripted.drain(SECOND)).is_empty());
    let mut story = scene.probe.event_lines();
    assert_eq!(
        story.split_off(story.len() - 2),
        ["/p/c stopped: shutdown", "/p stopped: shutdown"]
    );
}

#[test]
fn actor_that_does_not_stop_is_killed_after_its_shutdown_time() {
    let scene = Scene::new(1);
    let scripted = scene.scripted();
    note(
        &scripted,
        [ScriptCommand::Sleep(3600 * SECOND), ScriptCommand::Note(1)],
    );
    let left = scene.system.run(scripted.drain(SECOND));
    assert_eq!(numbers(&left), [1]);
    assert_eq!(
        scene.system.elapsed(),
        6 * SECOND,
        "one, and the five to stop"
    );
    assert!(matches!(scene.system.run(scripted.stopped()), Exit::Killed));
}

#[test]
fn drain_returns_all_messages_if_the_start_fails() {
    let scene = Scene::new(1);
    scene
        .system
        .inject("/p", Hook::PreStart, 1, InjectedFault::error("no start"));
    let left = scene.system.run(async {
        let (system, story) = (scene.system.system(), scene.probe.recipient());
        let scripted = system.spawn::<ScriptedActor>("p", story).unwrap();
        note(&scripted, [ScriptCommand::Note(1)]);
        scripted.drain(SECOND).await
    });
    assert_eq!(numbers(&left), [1]);
}

#[test]
fn only_one_of_two_drains_gets_unhandled_messages() {
    let scene = Scene::new(1);
    let scripted = scene.scripted();
    note(
        &scripted,
        [ScriptCommand::Sleep(2 * SECOND), ScriptCommand::Note(1)],
    );
    let (one, two) = scene
        .system
        .run(async { tokio::join!(scripted.drain(SECOND), scripted.drain(SECOND)) });
    assert_eq!(one.len() + two.len(), 1);
    assert!(
        scene.system.run(scripted.drain(SECOND)).is_empty(),
        "it has ended"
    );
}

#[test]
fn dropped_drain_continues_and_reports_lost_messages() {
    let scene = Scene::new(1);
    let mut events = scene.system.events();
    let scripted = scene.scripted();
    note(
        &scripted,
        [
            ScriptCommand::Sleep(2 * SECOND),
            ScriptCommand::Note(1),
            ScriptCommand::Panic,
            ScriptCommand::Note(2),
        ],
    );
    let drain = scripted.drain(10 * SECOND);
    let given_up = scene
        .system
        .run(async { tokio::time::timeout(SECOND, drain).await });
    assert!(given_up.is_err());
    assert!(matches!(
        scripted.try_tell(ScriptCommand::Stop),
        Err(SendError::Draining(_))
    ));
    scene.system.advance(5 * SECOND);
    assert_eq!(
        scene.probe.event_lines(),
        ["/p started", "/p noted 1", "/p dropped"]
    );
    let mut lost = 0;
    while let Some(event) = events.try_next() {
        if let Event::DeadLetter { count, .. } = event {
            lost += count;
        }
    }
    assert_eq!(lost, 2, "the one that panicked, and the one after it");
}

#[test]
fn drain_refuses_messages_under_dropping_overflow_rules() {
    for rule in [
        Overflow::DropNewest,
        Overflow::DropOldest,
        Overflow::KeepLatest,
    ] {
        let scene = Scene::new(1);
        let mailbox = MailboxSpec::bounded(2).overflow(rule);
        let (_supervisor, scripted) =
            scene.child(|child| child.restart(Restart::Temporary).mailbox(mailbox));
        note(&scripted, [ScriptCommand::Sleep(2 * SECOND)]);
        scene.system.run_until_idle();
        note(&scripted, [ScriptCommand::Note(1)]);
        let (left, refused) = scene.system.run(async {
            let late = async {
                tokio::task::yield_now().await;
                scripted.tell(ScriptCommand::Note(2)).await
            };
            tokio::join!(scripted.drain(SECOND), late)
        });
        assert_eq!(numbers(&left), [1]);
        assert!(matches!(
            refused,
            Err(SendError::Draining(ScriptCommand::Note(2)))
        ));
    }
}

#[test]
fn ask_of_a_draining_actor_returns_draining() {
    use std::convert::Infallible;
    use strowger::{Actor, Ask, Context, Request};

    struct Ping;
    impl Request for Ping {
        type Reply = ();
    }
    struct Busy;
    impl Actor for Busy {
        type Msg = Ask<Ping>;
        type Args = ();
        type Error = Infallible;
        async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
            Ok(Self)
        }
        async fn handle(
            &mut self,
            ask: Ask<Ping>,
            _: &mut Context<Self>,
        ) -> Result<(), Infallible> {
            tokio::time::sleep(SECOND).await;
            ask.reply.send(());
            Ok(())
        }
    }
    let system = TestSystem::new(1);
    let busy = system.spawn::<Busy>("b", ());
    let (first, left, late) = system.run(async {
        let late = async {
            tokio::task::yield_now().await;
            busy.ask(Ping).await
        };
        tokio::join!(busy.ask(Ping), busy.drain(2 * SECOND), late)
    });
    assert_eq!((first, late), (Ok(()), Err(AskError::Draining)));
    assert!(left.is_empty());
}

/// Polls once with a waker that does nothing.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut TaskContext::from_waker(Waker::noop()))
}

/// A child with room for one message, which waits while the child is busy.
fn full(scene: &Scene) -> ActorRef<ScriptCommand> {
    let child = ChildSpec::new::<ScriptedActor>("p", scene.probe.recipient());
    let child = child.mailbox(MailboxSpec::bounded(1));
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = scene.system.supervise("s", supervisor);
    let scripted = supervisor.child::<ScriptCommand>("p").expect("it started");
    fill(scene, &scripted, 1);
    scripted
}

fn fill(scene: &Scene, scripted: &ActorRef<ScriptCommand>, number: u64) {
    note(scripted, [ScriptCommand::Sleep(SECOND)]);
    scene.system.run_until_idle();
    note(scripted, [ScriptCommand::Note(number)]);
}

#[test]
fn waiting_sender_is_refused_even_after_fast_restart() {
    let scene = Scene::new(1);
    let scripted = full(&scene);
    let mut waits = pin!(scripted.tell(ScriptCommand::Note(2)));
    assert!(poll_once(waits.as_mut()).is_pending());
    assert!(scene.system.run(scripted.drain(5 * SECOND)).is_empty());
    scene.system.run_until_idle();
    assert!(scripted.try_tell(ScriptCommand::Note(3)).is_ok());
    let refused = poll_once(waits.as_mut());
    assert!(matches!(
        refused,
        Poll::Ready(Err(SendError::Draining(ScriptCommand::Note(2))))
    ));
}

#[test]
fn stale_ticket_from_before_a_drain_takes_no_later_place() {
    let scene = Scene::new(1);
    let scripted = full(&scene);
    let mut before = Box::pin(scripted.tell(ScriptCommand::Note(2)));
    assert!(poll_once(before.as_mut()).is_pending());
    scene.system.run(scripted.drain(5 * SECOND));
    scene.system.run_until_idle();
    fill(&scene, &scripted, 3);
    let mut after = pin!(scripted.tell(ScriptCommand::Note(4)));
    assert!(poll_once(after.as_mut()).is_pending());
    drop(before);
    assert!(scene.system.run(after).is_ok());
    scene.system.advance(SECOND);
    let story = scene.probe.event_lines();
    assert_eq!(story[story.len() - 2..], ["/s/p noted 3", "/s/p noted 4"]);
}
