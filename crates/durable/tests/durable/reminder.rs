//! Durable timers: over sleep and restarts, late, replaced and cancelled.

use std::sync::Arc;
use std::time::Duration;

use strowger::testing::{Probe, TestSystem};
use strowger::{ActorSystem, Ask, BoxError, Recipient, Request};
use strowger_durable::store::{FjallOptions, FjallStore, MemoryStore, StoreFault};
use strowger_durable::{
    Durable, DurableActor, DurableArgs, DurableContext, Entities, EntityKind, Reminder,
};

const SECOND: Duration = Duration::from_secs(1);

/// A change of the reminders; the answer is the error, or the names of all.
enum Change {
    Set(&'static str, Duration, u32),
    Cancel(&'static str),
}
impl Request for Change {
    type Reply = Result<Vec<Arc<str>>, String>;
}

/// A reminder as it fired: its name, its payload, its delay in seconds and whether it was late.
type Fired = (String, u32, u64, bool);

struct Clock(Recipient<Fired>);

impl DurableActor for Clock {
    const KIND: &'static str = "clock";
    const IDLE: Duration = Duration::from_millis(20);
    const MAX_REMINDERS: usize = 3;

    /// The number of reminders that fired.
    type State = u32;
    type Msg = Ask<Change>;
    type Args = Recipient<Fired>;
    type Error = BoxError;

    async fn pre_start(
        observer: Recipient<Fired>,
        _: &mut u32,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        Ok(Self(observer))
    }

    async fn handle(
        &mut self,
        ask: Ask<Change>,
        _: &mut u32,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let changed = match ask.request {
            Change::Set(name, after, payload) => cx.set_reminder(name, after, &payload),
            Change::Cancel(name) => {
                cx.cancel_reminder(name);
                Ok(())
            }
        };
        let answer = changed.map(|()| cx.reminders());
        cx.reply(ask.reply, answer.map_err(|error| error.to_string()));
        Ok(())
    }

    async fn remind(
        &mut self,
        reminder: Reminder,
        fired: &mut u32,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        *fired += 1;
        let payload = reminder.decode()?;
        if reminder.name() == "again" && payload > 0 {
            cx.set_reminder("again", SECOND, &(payload - 1))?;
        }
        let name = reminder.name().to_owned();
        let delay = reminder.delay().as_secs();
        cx.tell(self.0.clone(), (name, payload, delay, reminder.is_late()));
        Ok(())
    }
}

fn clocks(system: &TestSystem, store: &MemoryStore) -> (EntityKind<Clock>, Probe<Fired>) {
    let observer = system.probe();
    let entities = Entities::new(Arc::new(store.clone()));
    let clocks = entities.start(system.system(), "clocks", observer.recipient());
    (clocks.expect("the key is free"), observer)
}

fn change(system: &TestSystem, clocks: &EntityKind<Clock>, change: Change) -> Vec<String> {
    let clock = clocks.get("a").expect("a short key");
    let names = system.run(clock.ask(change)).expect("an answer");
    let names = names.expect("it is accepted");
    names.iter().map(ToString::to_string).collect()
}

fn fired(name: &str, payload: u32) -> Fired {
    (name.to_owned(), payload, 0, false)
}

#[test]
fn reminder_activates_a_sleeping_entity_once() {
    let system = TestSystem::new(1);
    let (clocks, observer) = clocks(&system, &MemoryStore::new());
    change(&system, &clocks, Change::Set("tea", 300 * SECOND, 1));
    change(&system, &clocks, Change::Set("egg", 200 * SECOND, 2));
    observer.expect_none(199 * SECOND);
    assert!(clocks.awake().is_empty());
    assert_eq!(observer.expect(2 * SECOND), fired("egg", 2));
    observer.expect_none(98 * SECOND);
    assert!(clocks.awake().is_empty());
    assert_eq!(observer.expect(2 * SECOND), fired("tea", 1));
    observer.expect_none(1000 * SECOND);
}

#[test]
fn reminder_of_an_awake_entity_may_set_itself_again() {
    let system = TestSystem::new(1);
    let store = MemoryStore::seeded(1, Duration::from_millis(5));
    let (clocks, observer) = clocks(&system, &store);
    change(&system, &clocks, Change::Set("again", SECOND, 3));
    system.advance(10 * SECOND);
    assert_eq!(
        observer.drain(),
        [3, 2, 1, 0].map(|payload| fired("again", payload))
    );
}

#[test]
fn reminder_is_replaced_and_cancelled_by_name() {
    let system = TestSystem::new(1);
    let (clocks, observer) = clocks(&system, &MemoryStore::new());
    change(&system, &clocks, Change::Set("a", 10 * SECOND, 1));
    change(&system, &clocks, Change::Set("b", 10 * SECOND, 2));
    // Earlier, and later than before.
    change(&system, &clocks, Change::Set("a", 5 * SECOND, 3));
    let names = change(&system, &clocks, Change::Set("b", 20 * SECOND, 4));
    assert_eq!(names, ["a", "b"]);
    observer.expect_none(4 * SECOND);
    assert_eq!(observer.expect(2 * SECOND), fired("a", 3));
    observer.expect_none(10 * SECOND);
    for name in ["b", "unknown"] {
        assert_eq!(change(&system, &clocks, Change::Cancel(name)), [""; 0]);
    }
    observer.expect_none(100 * SECOND);
}

#[test]
fn reminder_beyond_the_limit_is_refused() {
    let system = TestSystem::new(1);
    let (clocks, _) = clocks(&system, &MemoryStore::new());
    for name in ["a", "b", "c", "c"] {
        change(&system, &clocks, Change::Set(name, SECOND, 1));
    }
    let clock = clocks.get("a").expect("a short key");
    let refused = |name: &'static str| {
        let answer = system.run(clock.ask(Change::Set(name, SECOND, 1)));
        answer.expect("an answer").expect_err("it is too many")
    };
    let error = refused("d");
    for part in ["clock/a", "\"d\"", "3", "MAX_REMINDERS"] {
        assert!(error.contains(part), "{error}");
    }
    let error = refused(Box::leak("x".repeat(256).into_boxed_str()));
    for part in ["clock/a", "256", "255"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(change(&system, &clocks, Change::Cancel("a")), ["b", "c"]);
}

#[test]
fn reminder_that_was_missed_fires_once_and_is_late() {
    let store = MemoryStore::new();
    let system = TestSystem::new(1);
    let (clocks_before, observer) = clocks(&system, &store);
    change(&system, &clocks_before, Change::Set("tea", 100 * SECOND, 1));
    observer.expect_none(50 * SECOND);
    drop(system);
    let mut store = store.reopen();
    store.set_wall_clock(1000 * SECOND);
    for round in 0..2 {
        let system = TestSystem::new(2);
        let (_clocks, observer) = clocks(&system, &store);
        system.advance(100 * SECOND);
        let expected = (round == 0).then(|| ("tea".to_owned(), 1, 900, true));
        assert_eq!(observer.drain(), Vec::from_iter(expected));
        drop(system);
        store = store.reopen();
    }
}

#[test]
fn reminder_whose_write_failed_fires_again() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let (clocks, observer) = clocks(&system, &store);
    change(&system, &clocks, Change::Set("tea", 5 * SECOND, 1));
    store.inject(StoreFault::DiskFull);
    observer.expect_none(10 * SECOND);
    let (name, payload, _, is_late) = observer.expect(10 * SECOND);
    assert_eq!((&*name, payload, is_late), ("tea", 1, true));
    observer.expect_none(100 * SECOND);
}

#[test]
fn step_of_the_wall_clock_is_seen_within_a_minute() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let (clocks, observer) = clocks(&system, &store);
    change(&system, &clocks, Change::Set("tea", 5000 * SECOND, 1));
    observer.expect_none(100 * SECOND);
    store.set_wall_clock(6000 * SECOND);
    assert!(observer.expect(61 * SECOND).3, "it is late");
}

#[test]
fn actor_without_a_host_has_reminders_too() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let observer = system.probe();
    let spawn = |path: &str| {
        let args = DurableArgs::new(Arc::new(store.clone()), "a", observer.recipient());
        system.spawn::<Durable<Clock>>(path, args.expect("a short key"))
    };
    let clock = spawn("first");
    for (name, after) in [("a", 10 * SECOND), ("b", 20 * SECOND)] {
        let answer = system.run(clock.ask(Change::Set(name, after, 1)));
        answer.expect("an answer").expect("it is accepted");
    }
    assert_eq!(observer.expect(11 * SECOND), fired("a", 1));
    clock.stop();
    system.run(clock.stopped());
    observer.expect_none(20 * SECOND);
    spawn("second");
    assert_eq!(observer.expect(SECOND).0, "b");
}

#[tokio::test]
async fn missed_reminder_is_handled_before_the_first_message() {
    let (told, _fired) = tokio::sync::mpsc::unbounded_channel();
    for round in 0..10 {
        let mut store = MemoryStore::new();
        for name in ["tea", "egg"] {
            let system = ActorSystem::new("test").expect("a runtime");
            let observer = system.spawn::<Forwarder>("observer", told.clone());
            let observer = observer.expect("the key is free").recipient();
            let args = DurableArgs::new(Arc::new(store.clone()), "a", observer);
            let clock = system.spawn::<Durable<Clock>>("a", args.expect("a short key"));
            let clock = clock.expect("the key is free");
            let names = clock.ask(Change::Set(name, 500 * SECOND, 1)).await;
            let names = names.expect("an answer").expect("it is accepted");
            assert_eq!(names, [name.into()], "round {round}");
            system.shutdown(SECOND).await;
            store = store.reopen();
            store.set_wall_clock(1000 * SECOND);
        }
    }
}

#[tokio::test]
async fn reminder_is_found_again_by_the_next_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let (told, mut fired) = tokio::sync::mpsc::unbounded_channel();
    for round in 0..2 {
        let store = FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
        let system = ActorSystem::new("test").expect("a runtime");
        let observer = system.spawn::<Forwarder>("observer", told.clone());
        let observer = observer.expect("the key is free");
        let entities = Entities::new(Arc::new(store));
        let clocks = entities.start::<Clock>(&system, "clocks", observer.recipient());
        let clocks = clocks.expect("the key is free");
        if round == 0 {
            let clock = clocks.get("a").expect("a short key");
            let set = clock.ask(Change::Set("tea", Duration::from_millis(200), 1));
            set.await.expect("an answer").expect("it is accepted");
        } else {
            let (name, ..) = fired.recv().await.expect("it fires");
            assert_eq!(name, "tea");
        }
        system.shutdown(SECOND).await;
    }
    assert!(fired.try_recv().is_err(), "it fires once");
}

/// Passes what it is told to a channel.
struct Forwarder(tokio::sync::mpsc::UnboundedSender<Fired>);

impl strowger::Actor for Forwarder {
    type Msg = Fired;
    type Args = tokio::sync::mpsc::UnboundedSender<Fired>;
    type Error = BoxError;

    async fn pre_start(to: Self::Args, _: &mut strowger::Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(to))
    }

    async fn handle(
        &mut self,
        fired: Fired,
        _: &mut strowger::Context<Self>,
    ) -> Result<(), BoxError> {
        Ok(self.0.send(fired)?)
    }
}
