//! Entities by key: activation, passivation, limits and damage.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use strowger::testing::TestSystem;
use strowger::{
    Accepts, ActorSystem, Ask, AskError, BoxError, CallReply, CallSink, Delivery, Export, Fault,
    FaultCode, Payload, Request,
};
use strowger_durable::store::{EntityId, FjallOptions, FjallStore, MemoryStore, StoreFault};
use strowger_durable::{
    DurableActor, DurableContext, Entities, EntityError, EntityKind, IdempotencyKey,
};

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// A tell: adds one visit.
#[derive(Deserialize)]
struct Visit;

/// Adds one visit and returns their number.
#[derive(Deserialize)]
struct CountVisit;
impl Request for CountVisit {
    type Reply = u64;
}

/// Returns the number of visits after a while.
struct SlowlyGet(Duration);
impl Request for SlowlyGet {
    type Reply = u64;
}

/// Puts the entity to sleep, or ends it with an error.
enum Leave {
    Stop,
    Fail,
}

enum PlaceMessage {
    Visit,
    Count(Ask<CountVisit>),
    SlowlyGet(Ask<SlowlyGet>),
    Leave(Leave),
}

impl Accepts<Visit> for PlaceMessage {
    fn wrap(_: Visit) -> Self {
        Self::Visit
    }
}

impl Accepts<Ask<CountVisit>> for PlaceMessage {
    fn wrap(ask: Ask<CountVisit>) -> Self {
        Self::Count(ask)
    }
}

impl Accepts<Ask<SlowlyGet>> for PlaceMessage {
    fn wrap(ask: Ask<SlowlyGet>) -> Self {
        Self::SlowlyGet(ask)
    }
}

impl Accepts<Leave> for PlaceMessage {
    fn wrap(leave: Leave) -> Self {
        Self::Leave(leave)
    }
}

/// The number of activations that run now, by key, and of all that ever ran.
#[derive(Debug, Clone, Default)]
struct Activations(Arc<Mutex<(HashMap<EntityId, usize>, usize)>>);

impl Activations {
    fn total(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

/// An activation, which must be the only one of its entity.
struct Activation(Activations, EntityId);

impl Activation {
    fn begin(activations: Activations, id: &EntityId) -> Self {
        let mut counts = activations.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.1 += 1;
        let running = counts.0.entry(id.clone()).or_default();
        *running += 1;
        assert_eq!(*running, 1, "two activations of {id} run at once");
        drop(counts);
        Self(activations, id.clone())
    }
}

impl Drop for Activation {
    fn drop(&mut self) {
        let mut counts = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.0.entry(self.1.clone()).or_default() -= 1;
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Visits {
    count: u64,
}

struct Place {
    /// Counts while it exists.
    _activation: Activation,
}

impl DurableActor for Place {
    const KIND: &'static str = "place";
    const IDLE: Duration = Duration::from_millis(20);
    const MAX_AWAKE: usize = 3;

    type State = Visits;
    type Msg = PlaceMessage;
    type Args = Activations;
    type Error = BoxError;

    async fn pre_start(
        activations: Activations,
        _: &mut Visits,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        let _activation = Activation::begin(activations, cx.entity());
        Ok(Self { _activation })
    }

    async fn handle(
        &mut self,
        message: PlaceMessage,
        state: &mut Visits,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match message {
            PlaceMessage::Visit => state.count += 1,
            PlaceMessage::Count(ask) => {
                state.count += 1;
                cx.reply(ask.reply, state.count);
            }
            PlaceMessage::SlowlyGet(ask) => {
                tokio::time::sleep(ask.request.0).await;
                cx.reply(ask.reply, state.count);
            }
            PlaceMessage::Leave(Leave::Stop) => cx.stop(),
            PlaceMessage::Leave(Leave::Fail) => return Err("as told".into()),
        }
        Ok(())
    }
}

fn places(system: &TestSystem, store: &MemoryStore) -> (EntityKind<Place>, Activations) {
    let activations = Activations::default();
    let entities = Entities::new(Arc::new(store.clone()));
    let places = entities.start(system.system(), "places", activations.clone());
    (places.expect("the key is free"), activations)
}

fn awake(places: &EntityKind<Place>) -> Vec<String> {
    let awake = places.awake();
    awake.iter().map(ToString::to_string).collect()
}

#[test]
fn message_activates_and_idleness_puts_to_sleep() {
    let system = TestSystem::new(1);
    let (places, activations) = places(&system, &MemoryStore::new());
    let keys = ["", "a", "a/b", "%", "a%2Fb"];
    for round in 1..=3 {
        for key in keys {
            let place = places.get(key).expect("a short key");
            assert_eq!(system.run(place.ask(CountVisit)).ok(), Some(round));
            assert_eq!(awake(&places), [key]);
            system.advance(30 * MILLISECOND);
            assert_eq!(awake(&places), [""; 0]);
        }
    }
    assert_eq!(activations.total(), 15);
    let stored = system.run(places.stored(None, 10)).expect("it is listed");
    assert_eq!(stored.len(), keys.len());
}

/// Collects the answers to calls from outside the process.
#[derive(Default)]
struct Outside(Mutex<Vec<Result<CallReply, Fault>>>);

impl CallSink for Outside {
    fn answer(&self, _: u64, result: Result<CallReply, Fault>) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push(result);
    }

    fn is_waiting(&self, _: u64) -> bool {
        true
    }
}

/// Asks an entity by its address, and returns the answer.
fn ask_outside(system: &TestSystem, address: &str, message: &str) -> Result<u64, Fault> {
    let entry = system.system().remote_entry(&address.parse()?, message)?;
    let outside = Arc::new(Outside::default());
    let sink = Arc::clone(&outside) as Arc<dyn CallSink>;
    system.run(async {
        match entry.call(&Payload::EMPTY, 1, sink) {
            Delivery::Settled(delivered) => delivered.map(drop),
            Delivery::Queued(turn) => turn.await.map(drop),
        }
    })?;
    // The reply leaves after its write.
    system.advance(5 * MILLISECOND);
    let answer = outside
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop();
    match answer.expect("it has answered")? {
        CallReply::Single(payload) => payload.decode(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn exported_entities_are_reached_by_address() {
    let system = TestSystem::new(1);
    let store = MemoryStore::seeded(1, 2 * MILLISECOND);
    let (places, activations) = places(&system, &store);
    let visit = || Export::new().ask::<CountVisit>("visit");
    let exported = places.export(system.system(), "town/places", visit());
    assert_eq!(exported.expect("the name is free").path(), "town/places");
    for round in 1..=3 {
        for key in ["a", "acc-42"] {
            let address = format!("@(town/places/{key})");
            assert_eq!(ask_outside(&system, &address, "visit"), Ok(round));
        }
        system.advance(30 * MILLISECOND);
        assert_eq!(awake(&places), [""; 0]);
    }
    assert_eq!(activations.total(), 6);
    let place = places.get("acc-42").expect("a short key");
    assert_eq!(system.run(place.ask(CountVisit)).ok(), Some(4));

    // A damaged entity fails alone, and its sender learns why.
    store.inject(StoreFault::Damage);
    assert_eq!(ask_outside(&system, "@(town/places/b)", "visit"), Ok(1));
    system.advance(30 * MILLISECOND);
    let fault = ask_outside(&system, "@(town/places/b)", "visit").expect_err("it is damaged");
    assert_eq!(fault.code, FaultCode::Failed);
    assert!(fault.message.contains("place/b"), "{fault}");
    assert_eq!(ask_outside(&system, "@(town/places/a)", "visit"), Ok(4));

    let fault = ask_outside(&system, "@(town/places/a)", "leave").expect_err("not exported");
    assert_eq!(fault.code, FaultCode::BadRequest);
    let taken = places.export(system.system(), "town/places", visit());
    assert!(taken.is_err(), "{taken:?}");
    system.system().find("/places").expect("the host").kill();
    system.run_until_idle();
    let fault = ask_outside(&system, "@(town/places/a)", "visit").expect_err("it has ended");
    assert_eq!(fault.code, FaultCode::UnknownTarget);
}

#[test]
fn entity_that_is_used_stays_awake() {
    let system = TestSystem::new(1);
    let (places, activations) = places(&system, &MemoryStore::new());
    let place = places.get("a").expect("a short key");
    for _ in 0..20 {
        system.run(place.tell(Visit)).expect("it is delivered");
        system.advance(15 * MILLISECOND);
    }
    let waited = system.run(place.ask(SlowlyGet(SECOND)));
    assert_eq!((waited.ok(), activations.total()), (Some(20), 1));
}

#[test]
fn message_around_passivation_is_not_lost() {
    TestSystem::check(0..100, |system| {
        let store = MemoryStore::seeded(system.seed(), 2 * MILLISECOND);
        let (places, activations) = places(system, &store);
        let client = |number: u64| {
            let mut random = SplitMix64::seed_from_u64(system.seed() ^ (number << 32));
            let place = places.get("a").expect("a short key");
            async move {
                for _ in 0..30 {
                    let wait = match random.next_u64() % 3 {
                        0 => 0,
                        1 => random.next_u64() % 5_000,
                        // About the time at which it goes to sleep.
                        _ => 18_000 + random.next_u64() % 12_000,
                    };
                    tokio::time::sleep(Duration::from_micros(wait)).await;
                    match random.next_u64() % 3 {
                        0 => _ = place.ask(CountVisit).await.expect("an answer"),
                        1 => place.tell(Visit).await.expect("it is delivered"),
                        _ => {
                            place.tell(Leave::Stop).await.expect("it is delivered");
                            place.tell(Visit).await.expect("it is delivered");
                        }
                    }
                }
            }
        };
        system.run(async { tokio::join!(client(1), client(2), client(3)) });
        let place = places.get("a").expect("a short key");
        let visits = system.run(place.ask(SlowlyGet(Duration::ZERO)));
        assert_eq!(visits.ok(), Some(90), "a message is lost or doubled");
        assert!(activations.total() > 5, "it hardly slept");
    });
}

#[test]
fn number_awake_is_bounded() {
    let system = TestSystem::new(1);
    let (places, _) = places(&system, &MemoryStore::new());
    let place = |key: u64| places.get(key.to_string()).expect("a short key");
    for round in 1..=2 {
        for key in 0..10 {
            let visited = system.run(place(key).ask(CountVisit));
            assert_eq!(visited.ok(), Some(round), "the longest idle makes room");
            assert!(awake(&places).len() <= 3);
        }
    }
    let all = system.run(async {
        let busy = async |key| {
            let slow = SlowlyGet(3 * SECOND);
            place(key).ask_within(slow, 9 * SECOND).await
        };
        let refused = async {
            tokio::time::sleep(SECOND).await;
            place(7).ask_within(CountVisit, SECOND).await
        };
        let waits = async {
            tokio::time::sleep(SECOND).await;
            place(8).ask(CountVisit).await
        };
        tokio::join!(busy(0), busy(1), busy(2), refused, waits)
    });
    assert!(all.0.is_ok() && all.1.is_ok() && all.2.is_ok());
    let refused = all.3.expect_err("there is no room").to_string();
    for part in ["place/7", "3 entities", "MAX_AWAKE"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert_eq!(all.4.ok(), Some(3), "it waited for room");
}

#[test]
fn damaged_entity_fails_alone() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let (places, _) = places(&system, &store);
    let [damaged, sound] = ["damaged", "sound"].map(|key| places.get(key).expect("short"));
    store.inject(StoreFault::Damage);
    assert_eq!(system.run(damaged.ask(CountVisit)).ok(), Some(1));
    system.advance(SECOND);
    for _ in 0..2 {
        let failed = system.run(damaged.tell(Visit)).expect_err("it is damaged");
        assert!(
            matches!(failed, EntityError::NotActivated { .. }),
            "{failed}"
        );
        for part in ["place/damaged", "sequence 1", "restore"] {
            assert!(failed.to_string().contains(part), "{failed}");
        }
        assert_eq!(awake(&places), [""; 0]);
    }
    assert_eq!(system.run(sound.ask(CountVisit)).ok(), Some(1));
}

#[test]
fn failed_entity_is_activated_again_by_the_next_message() {
    let system = TestSystem::new(1);
    let (places, activations) = places(&system, &MemoryStore::new());
    let place = places.get("a").expect("a short key");
    for round in 1..=3 {
        assert_eq!(system.run(place.ask(CountVisit)).ok(), Some(round));
        system
            .run(place.tell(Leave::Fail))
            .expect("it is delivered");
    }
    assert_eq!(activations.total(), 3);
}

#[test]
fn deadline_of_an_ask_includes_the_activation() {
    let system = TestSystem::new(1);
    let store = MemoryStore::seeded(1, 1000 * SECOND);
    let (places, _) = places(&system, &store);
    let place = places.get("a").expect("a short key");
    let before = system.elapsed();
    let late = system.run(place.ask_within(CountVisit, SECOND));
    assert!(
        matches!(
            late,
            Err(EntityError::Unanswered {
                source: AskError::TimedOut,
                ..
            })
        ),
        "{late:?}"
    );
    assert!(system.elapsed() - before < 2 * SECOND);
}

#[test]
fn messages_wait_for_a_supervised_host_and_fail_after_its_end() {
    let system = TestSystem::new(1);
    let entities = Entities::new(Arc::new(MemoryStore::new()));
    let (host, places) = entities.supervised::<Place>("places", Activations::default());
    let place = places.get("a").expect("a short key");
    let mut early = Box::pin(place.ask(CountVisit));
    let pending = system.run(async {
        tokio::select! {
            _ = &mut early => false,
            () = tokio::time::sleep(SECOND) => true,
        }
    });
    assert!(pending, "there is no host");
    let strategy = strowger::Strategy::OneForOne;
    let top = system.supervise("top", strowger::Supervisor::new(strategy).child(host));
    assert_eq!(system.run(early).ok(), Some(1));
    top.any_child("places").expect("it runs").kill();
    system.run_until_idle();
    assert_eq!(system.run(place.ask(CountVisit)).ok(), Some(2));
    top.stop();
    system.run(top.stopped());
    let closed = system.run(place.ask(CountVisit));
    assert!(matches!(closed, Err(EntityError::Closed { .. })));
}

#[tokio::test]
async fn entities_survive_a_restart_of_system_and_store() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 1..=2 {
        let store = FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
        let system = ActorSystem::new("test").expect("a runtime");
        let entities = Entities::new(Arc::new(store));
        let places = entities.start::<Place>(&system, "places", Activations::default());
        let places = places.expect("the key is free");
        for key in 0..20 {
            let place = places.get(key.to_string()).expect("a short key");
            assert_eq!(place.ask(CountVisit).await.ok(), Some(round));
        }
        assert_eq!(places.stored(None, 100).await.map(|all| all.len()), Ok(20));
        system.shutdown(SECOND).await;
    }
}

#[test]
fn idempotency_key_counts_across_activations() {
    // The window of answers belongs to the entity, not to the activation.
    let system = TestSystem::new(1);
    let entities = Entities::new(Arc::new(MemoryStore::new()));
    let counters = entities.start::<crate::counter::Counter>(system.system(), "counters", None);
    let counter = counters.expect("the key is free").get("a").expect("short");
    let increment = crate::counter::Increment(IdempotencyKey::new("1").expect("short"));
    for _ in 0..3 {
        assert_eq!(system.run(counter.ask(increment.clone())).ok(), Some(1));
        system.advance(120 * SECOND);
    }
}
