//! Expiry: messages that nobody waits for any longer are not handled.

use std::time::Duration;

use strowger::testing::{Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem};
use strowger::{
    Accepts, Actor, ActorRef, Ask, AskError, BoxError, ChildSpec, Context, Event, EventStream,
    MailboxSpec, Overflow, Recipient, Request, SendError, Strategy, Supervisor,
};

const SECOND: Duration = Duration::from_secs(1);

fn scripted(
    system: &TestSystem,
    mailbox: MailboxSpec,
) -> (Probe<RecordedEvent>, ActorRef<ScriptCommand>) {
    let probe = system.probe::<RecordedEvent>();
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient()).mailbox(mailbox);
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise("s", supervisor);
    let scripted = supervisor.child::<ScriptCommand>("p").expect("it started");
    let _started = probe.event_lines();
    (probe, scripted)
}

fn busy(scripted: &ActorRef<ScriptCommand>, time: Duration) {
    scripted
        .try_tell(ScriptCommand::Sleep(time))
        .expect("there is room");
}

fn within(scripted: &ActorRef<ScriptCommand>, number: u64, ttl: Duration) {
    let sent = scripted.try_tell_within(ScriptCommand::Note(number), ttl);
    sent.expect("there is room");
}

fn expired(events: &mut EventStream) -> u64 {
    let mut sum = 0;
    while let Some(event) = events.try_next() {
        if let Event::Expired { path, count } = event {
            assert_eq!(path.as_str(), "/s/p");
            sum += count;
        }
    }
    sum
}

#[test]
fn message_not_started_before_expiry_is_dropped() {
    let system = TestSystem::new(1);
    let (probe, scripted) = scripted(&system, MailboxSpec::DEFAULT);
    let mut events = system.events();
    busy(&scripted, 5 * SECOND);
    for (number, seconds) in [(1, 9), (2, 4), (3, 3), (4, 9), (5, 4)] {
        within(&scripted, number, seconds * SECOND);
    }
    scripted.try_tell(ScriptCommand::Note(6)).unwrap();
    system.advance(5 * SECOND);
    assert_eq!(
        probe.event_lines(),
        ["/s/p noted 1", "/s/p noted 4", "/s/p noted 6"]
    );
    assert_eq!(expired(&mut events), 3);
    let info = scripted.erase().info();
    assert_eq!((info.expired, info.mailbox_len, info.dropped), (3, 0, 0));
}

#[test]
fn message_started_before_expiry_is_handled() {
    let system = TestSystem::new(1);
    let (probe, scripted) = scripted(&system, MailboxSpec::DEFAULT);
    scripted
        .try_tell_within(ScriptCommand::Sleep(9 * SECOND), SECOND)
        .unwrap();
    within(&scripted, 1, 10 * SECOND);
    system.advance(9 * SECOND);
    assert_eq!(probe.event_lines(), ["/s/p noted 1"]);
}

#[test]
fn expiry_continues_across_restarts() {
    TestSystem::check(0..20, |system| {
        let (probe, scripted) = scripted(system, MailboxSpec::DEFAULT);
        busy(&scripted, SECOND);
        scripted.try_tell(ScriptCommand::Error).unwrap();
        busy(&scripted, SECOND);
        within(&scripted, 1, SECOND * 3 / 2);
        within(&scripted, 2, SECOND * 5 / 2);
        scripted.try_tell(ScriptCommand::Error).unwrap();
        within(&scripted, 3, SECOND * 3 / 2);
        within(&scripted, 4, SECOND * 5 / 2);
        system.advance(5 * SECOND);
        let mut noted = probe.event_lines();
        noted.retain(|line| line.contains("noted"));
        assert_eq!(noted, ["/s/p noted 2", "/s/p noted 4"]);
    });
}

#[test]
fn dropping_overflow_rules_keep_expiries_with_their_messages() {
    for rule in [
        Overflow::DropOldest,
        Overflow::KeepLatest,
        Overflow::DropNewest,
    ] {
        let system = TestSystem::new(1);
        let (probe, scripted) = scripted(&system, MailboxSpec::bounded(3).overflow(rule));
        busy(&scripted, 5 * SECOND);
        system.run_until_idle();
        for number in 0..50 {
            let ttl = if number % 2 == 0 { 4 } else { 6 };
            within(&scripted, number, ttl * SECOND);
        }
        system.advance(6 * SECOND);
        let expected: &[&str] = match rule {
            Overflow::DropOldest => &["/s/p noted 47", "/s/p noted 49"],
            Overflow::KeepLatest => &["/s/p noted 49"],
            _ => &["/s/p noted 1"],
        };
        assert_eq!(probe.event_lines(), expected, "{rule:?}");
    }
}

#[test]
fn expiry_includes_wait_for_mailbox_space() {
    let system = TestSystem::new(1);
    let (probe, scripted) = scripted(&system, MailboxSpec::bounded(1));
    busy(&scripted, 5 * SECOND);
    system.run_until_idle();
    scripted.try_tell(ScriptCommand::Note(1)).unwrap();
    let recipient = scripted.recipient::<ScriptCommand>();
    let result = system.run(async {
        tokio::join!(
            scripted.tell_within(ScriptCommand::Note(2), SECOND),
            recipient.tell_within(ScriptCommand::Note(3), SECOND),
            recipient.tell_within(ScriptCommand::Note(4), 6 * SECOND),
        )
    });
    assert!(matches!(
        result.0,
        Err(SendError::Expired(ScriptCommand::Note(2)))
    ));
    assert!(matches!(
        result.1,
        Err(SendError::Expired(ScriptCommand::Note(3)))
    ));
    assert!(result.2.is_ok());
    assert_eq!(probe.event_lines(), ["/s/p noted 1", "/s/p noted 4"]);
}

#[test]
fn recipients_preserve_the_expiry() {
    let system = TestSystem::new(1);
    let (probe, scripted) = scripted(&system, MailboxSpec::DEFAULT);
    let mapped = scripted
        .recipient::<ScriptCommand>()
        .contramap(ScriptCommand::Note);
    busy(&scripted, 5 * SECOND);
    mapped.try_tell_within(1, SECOND).unwrap();
    mapped.try_tell_within(2, 9 * SECOND).unwrap();
    system.advance(5 * SECOND);
    assert_eq!(probe.event_lines(), ["/s/p noted 2"]);
}

#[test]
fn unlimited_ttl_is_accepted() {
    let system = TestSystem::new(1);
    let (probe, scripted) = scripted(&system, MailboxSpec::DEFAULT);
    within(&scripted, 1, Duration::MAX);
    within(&scripted, 2, Duration::ZERO);
    assert_eq!(probe.event_lines(), ["/s/p noted 1", "/s/p noted 2"]);
}

/// Reports each request that it handles, one second after it arrives.
struct Clerk(Recipient<u32>);

struct Number(u32);

impl Request for Number {
    type Reply = u32;
}

enum ClerkMsg {
    Number(Ask<Number>),
    Fail,
}

impl Accepts<Ask<Number>> for ClerkMsg {
    fn wrap(ask: Ask<Number>) -> Self {
        Self::Number(ask)
    }
}

impl Actor for Clerk {
    type Msg = ClerkMsg;
    type Args = Recipient<u32>;
    type Error = BoxError;

    async fn pre_start(to: Self::Args, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(to))
    }

    async fn handle(&mut self, msg: ClerkMsg, _: &mut Context<Self>) -> Result<(), BoxError> {
        let ClerkMsg::Number(ask) = msg else {
            return Err("as ordered".into());
        };
        self.0.try_tell(ask.request.0)?;
        tokio::time::sleep(SECOND).await;
        ask.reply.send(ask.request.0);
        Ok(())
    }
}

#[test]
fn cancelled_ask_is_not_handled() {
    let system = TestSystem::new(1);
    let probe = system.probe::<u32>();
    let clerk = system.spawn::<Clerk>("clerk", probe.recipient());
    let ask = |number, within| clerk.ask_within(Number(number), within);
    let (handled, late, given_up, patient) = system.run(async {
        tokio::join!(
            ask(1, SECOND / 2),
            ask(2, SECOND / 2),
            tokio::time::timeout(SECOND / 2, ask(3, 9 * SECOND)),
            ask(4, 9 * SECOND),
        )
    });
    assert_eq!(
        (handled, late),
        (Err(AskError::TimedOut), Err(AskError::TimedOut))
    );
    assert!(given_up.is_err());
    assert_eq!(patient, Ok(4));
    assert_eq!(probe.drain(), [1, 4], "the first was begun, the others not");
    assert_eq!(clerk.erase().info().expired, 2);
}

#[test]
fn ask_cancelled_before_a_restart_is_not_handled_after_it() {
    TestSystem::check(0..20, |system| {
        let probe = system.probe::<u32>();
        let child = ChildSpec::new::<Clerk>("clerk", probe.recipient());
        let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
        let supervisor = system.supervise("s", supervisor);
        let clerk = supervisor.child::<ClerkMsg>("clerk").expect("it started");
        let answers = system.run(async {
            let fail = async { clerk.tell(ClerkMsg::Fail).await.is_ok() };
            tokio::join!(
                clerk.ask(Number(1)),
                clerk.ask_within(Number(2), SECOND / 2),
                fail,
                clerk.ask_within(Number(3), SECOND / 2),
                clerk.ask(Number(4)),
            )
        });
        let late = || Err(AskError::TimedOut);
        assert_eq!(answers, (Ok(1), late(), true, late(), Ok(4)));
        assert_eq!(probe.drain(), [1, 4]);
    });
}
