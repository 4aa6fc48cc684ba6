//! The guarantees of durable actors, on virtual time and a store in memory.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strowger::testing::TestSystem;
use strowger::{
    ActorRef, ActorSystem, Ask, AskError, BoxError, ChildSpec, Exit, Strategy, Supervisor,
};
use strowger_durable::store::{
    FjallOptions, FjallStore, MemoryStore, StoreError, StoreEvent, StoreFault,
};
use strowger_durable::{Durable, DurableActor, DurableArgs, DurableContext, DurableError};

use crate::counter::{
    AddThen, CounterMessage, DurableCounter, Get, Increment, Outcome, counter, key,
};

const SECOND: Duration = Duration::from_secs(1);

/// Starts a counter that a supervisor restarts.
fn supervised(
    system: &TestSystem,
    args: DurableArgs<crate::counter::Counter>,
) -> ActorRef<CounterMessage> {
    let child = ChildSpec::new::<DurableCounter>("counter", args);
    let top = system.supervise("top", Supervisor::new(Strategy::OneForOne).child(child));
    top.child("counter").expect("it was started")
}

fn appends(store: &MemoryStore) -> usize {
    let history = store.history().into_iter();
    history
        .filter(|event| matches!(event, StoreEvent::Appended { .. }))
        .count()
}

fn durable_error(exit: &Exit) -> &DurableError {
    match exit {
        Exit::Failed(error) => error.downcast_ref().expect("an error of this crate"),
        exit => panic!("{exit}"),
    }
}

#[tokio::test]
async fn state_and_answers_survive_a_restart_of_system_and_store() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 1..=3 {
        let store = FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
        let system = ActorSystem::new("test").expect("a runtime");
        let args = counter(&store, "a", None);
        let counter = system.spawn::<DurableCounter>("a", args).expect("free");
        assert_eq!(counter.ask(Get).await.ok(), Some(round - 1));
        let new = Increment(key(&round.to_string()));
        assert_eq!(counter.ask(new.clone()).await.ok(), Some(round));
        assert_eq!(counter.ask(new).await.ok(), Some(round));
        let first = Increment(key("1"));
        assert_eq!(counter.ask(first).await.ok(), Some(1), "kept in round 1");
        let report = system.shutdown(SECOND).await;
        drop((report, counter, system));
    }
}

#[test]
fn outputs_leave_only_after_the_write() {
    TestSystem::check(0..50, |system| {
        let store = MemoryStore::seeded(system.seed(), Duration::from_millis(5));
        let observer = system.probe::<u64>();
        let args = counter(&store, "a", Some(observer.recipient()));
        let counter = system.spawn::<DurableCounter>("a", args);
        for value in 1..=5 {
            let (recorded, told) = system.run(async {
                let answer = counter.ask(Increment(key(&value.to_string()))).await;
                assert_eq!(answer.ok(), Some(value));
                (appends(&store) as u64, value)
            });
            assert!(recorded >= told, "answered before it was appended");
            assert_eq!(observer.expect(SECOND), value);
        }
    });
}

#[test]
fn failed_write_drops_outputs_and_ends_the_actor() {
    for fault in [StoreFault::DiskFull, StoreFault::SyncFailed] {
        let system = TestSystem::new(1);
        let store = MemoryStore::new();
        let observer = system.probe::<u64>();
        let args = counter(&store, "a", Some(observer.recipient()));
        let counter = system.spawn::<DurableCounter>("a", args);
        assert_eq!(system.run(counter.ask(Increment(key("1")))).ok(), Some(1));
        assert_eq!(observer.expect(SECOND), 1);
        store.inject(fault);
        let later = AddThen(1, Outcome::AddLater(SECOND));
        system.run(counter.tell(later)).expect("there is room");
        let exit = system.run(counter.stopped());
        match durable_error(&exit) {
            DurableError::NotSaved {
                entity,
                sequence,
                source: StoreError::DiskFull { .. } | StoreError::Failed { .. },
            } => assert_eq!(
                (entity.to_string(), sequence.0),
                ("counter/a".to_owned(), 2)
            ),
            error => panic!("{error}"),
        }
        assert!(exit.to_string().contains("entity counter/a"), "{exit}");
        observer.expect_none(10 * SECOND);
    }
}

#[test]
fn asker_learns_of_a_failed_write_and_repeats_without_a_second_effect() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let counter = supervised(&system, counter(&store, "a", None));
    store.inject(StoreFault::DiskFull);
    let answer = system.run(counter.ask(Increment(key("1"))));
    assert!(matches!(answer, Err(AskError::Dropped)), "{answer:?}");
    for _ in 0..2 {
        assert_eq!(system.run(counter.ask(Increment(key("1")))).ok(), Some(1));
    }
    assert_eq!(system.run(counter.ask(Get)).ok(), Some(1));
}

#[test]
fn failed_hook_leaves_no_trace_of_its_message() {
    for outcome in [Outcome::Fail, Outcome::Panic] {
        let system = TestSystem::new(1);
        let store = MemoryStore::new();
        let observer = system.probe::<u64>();
        let args = counter(&store, "a", Some(observer.recipient()));
        let counter = supervised(&system, args);
        for (more, outcome) in [
            (1, Outcome::Succeed),
            (10, outcome),
            (100, Outcome::Succeed),
        ] {
            let told = counter.tell(AddThen(more, outcome));
            system.run(told).expect("there is room");
        }
        assert_eq!(system.run(counter.ask(Get)).ok(), Some(101));
        assert_eq!(observer.drain(), [1, 101]);
    }
}

#[test]
fn messages_wait_for_the_write_before_them() {
    TestSystem::check(0..50, |system| {
        let store = MemoryStore::seeded(system.seed(), 5 * SECOND);
        let counter = system.spawn::<DurableCounter>("a", counter(&store, "a", None));
        let told = counter.try_tell(AddThen(1, Outcome::Succeed));
        told.expect("there is room");
        let seen = system.run(counter.ask_within(Get, 60 * SECOND));
        assert_eq!((seen.ok(), appends(&store)), (Some(1), 1));
    });
}

#[test]
fn unchanged_state_is_not_written() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let counter = system.spawn::<DurableCounter>("a", counter(&store, "a", None));
    counter
        .try_tell(AddThen(1, Outcome::Succeed))
        .expect("there is room");
    system.run_until_idle();
    let before = appends(&store);
    for _ in 0..5 {
        assert_eq!(system.run(counter.ask(Get)).ok(), Some(1));
        let told = counter.try_tell(AddThen(0, Outcome::Succeed));
        told.expect("there is room");
    }
    system.run_until_idle();
    assert_eq!(appends(&store), before);
}

#[test]
fn timer_starts_after_the_write_and_fires() {
    let system = TestSystem::new(1);
    let store = MemoryStore::seeded(1, Duration::from_millis(5));
    let counter = system.spawn::<DurableCounter>("a", counter(&store, "a", None));
    let later = AddThen(1, Outcome::AddLater(SECOND));
    counter.try_tell(later).expect("there is room");
    assert_eq!(system.run(counter.ask(Get)).ok(), Some(1));
    system.advance(2 * SECOND);
    assert_eq!(system.run(counter.ask(Get)).ok(), Some(2));
}

#[test]
fn second_activation_takes_the_entity_over() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let [first, second] = ["first", "second"].map(|path| {
        let actor = system.spawn::<DurableCounter>(path, counter(&store, "a", None));
        system.run_until_idle();
        actor
    });
    assert_eq!(system.run(second.ask(Increment(key("1")))).ok(), Some(1));
    let refused = system.run(first.ask(Increment(key("2"))));
    assert!(matches!(refused, Err(AskError::Dropped)), "{refused:?}");
    let exit = system.run(first.stopped());
    match durable_error(&exit) {
        DurableError::NotSaved {
            source: StoreError::StaleFence { fence, current, .. },
            ..
        } => assert_eq!((fence.0, current.0), (1, 2)),
        error => panic!("{error}"),
    }
    assert_eq!(system.run(second.ask(Increment(key("2")))).ok(), Some(2));
}

#[test]
fn repeated_request_is_handled_again_once_its_answer_has_left_the_window() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let counter = system.spawn::<DurableCounter>("a", counter(&store, "a", None));
    let count = |name: &str| system.run(counter.ask(Increment(key(name)))).ok();
    assert_eq!((count("first"), count("first")), (Some(1), Some(1)));
    store.set_wall_clock(Duration::from_secs(24 * 3600));
    assert_eq!(count("first"), Some(1));
    store.set_wall_clock(Duration::from_secs(24 * 3600 + 1));
    assert_eq!((count("first"), count("first")), (Some(2), Some(2)));
    for number in 0..100 {
        count(&number.to_string());
    }
    assert_eq!(count("first"), Some(103), "100 answers came after it");
}

#[test]
fn damaged_entity_does_not_start_and_others_do() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let damaged = system.spawn::<DurableCounter>("damaged", counter(&store, "damaged", None));
    store.inject(StoreFault::Damage);
    assert_eq!(system.run(damaged.ask(Increment(key("1")))).ok(), Some(1));
    damaged.stop();
    system.run(damaged.stopped());
    let again = system.spawn::<DurableCounter>("again", counter(&store, "damaged", None));
    let exit = system.run(again.stopped()).to_string();
    for part in ["counter/damaged", "sequence 1", "restore"] {
        assert!(exit.contains(part), "{exit}");
    }
    let sound = system.spawn::<DurableCounter>("sound", counter(&store, "sound", None));
    assert_eq!(system.run(sound.ask(Increment(key("1")))).ok(), Some(1));
}

/// A later version of the counter, with a field more or of another type.
struct NextVersion<S>(std::marker::PhantomData<fn() -> S>);

#[derive(Default, Serialize, Deserialize)]
struct WithStep {
    value: u64,
    #[serde(default)]
    step: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct WithText {
    value: String,
}

impl<S> DurableActor for NextVersion<S>
where
    S: Serialize + for<'a> Deserialize<'a> + Default + Send + Sync + 'static,
{
    const KIND: &'static str = "counter";
    type State = S;
    type Msg = Ask<Get>;
    type Args = fn(&S) -> u64;
    type Error = BoxError;

    async fn pre_start(
        value: fn(&S) -> u64,
        state: &mut S,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        assert_eq!(value(state), 1);
        Ok(Self(std::marker::PhantomData))
    }

    async fn handle(
        &mut self,
        ask: Ask<Get>,
        _: &mut S,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        cx.reply(ask.reply, 1);
        Ok(())
    }
}

#[test]
fn added_field_is_defaulted_and_another_type_is_refused() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let first = system.spawn::<DurableCounter>("first", counter(&store, "a", None));
    assert_eq!(system.run(first.ask(Increment(key("1")))).ok(), Some(1));
    let args = DurableArgs::new(
        Arc::new(store.clone()),
        "a",
        (|state: &WithStep| state.value + state.step) as fn(&WithStep) -> u64,
    );
    let next = system.spawn::<Durable<NextVersion<WithStep>>>("next", args.expect("short"));
    assert_eq!(system.run(next.ask(Get)).ok(), Some(1));
    let args = DurableArgs::new(
        Arc::new(store),
        "a",
        (|state: &WithText| state.value.len() as u64) as fn(&WithText) -> u64,
    );
    let other = system.spawn::<Durable<NextVersion<WithText>>>("other", args.expect("short"));
    let exit = system.run(other.stopped());
    assert!(
        matches!(durable_error(&exit), DurableError::Unreadable { .. }),
        "{exit}"
    );
    assert!(exit.to_string().contains("sequence 2"), "{exit}");
}
