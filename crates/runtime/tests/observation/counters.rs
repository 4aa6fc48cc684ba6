//! Counters for the `metrics` facade.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{
    Counter, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use parking_lot::Mutex;
use strowger::{Actor, ActorSystem, ChildSpec, Context, Restart, Strategy, Supervisor};

/// Fails at every message.
struct Failing;

impl Actor for Failing {
    type Msg = &'static str;
    type Args = ();
    type Error = strowger::BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Self::Error> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        why: &'static str,
        _: &mut Context<Self>,
    ) -> Result<(), Self::Error> {
        Err(why.into())
    }
}

#[derive(Default)]
struct Counting(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

struct Level(Arc<AtomicU64>);

impl GaugeFn for Level {
    fn increment(&self, by: f64) {
        assert!(by == 1.0, "actors come one by one");
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn decrement(&self, by: f64) {
        assert!(by == 1.0, "actors go one by one");
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn set(&self, _: f64) {
        panic!("the number of actors is not known at once");
    }
}

impl Counting {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        let name = [&[key.name()][..], &labels].concat().join(" ");
        Arc::clone(self.0.lock().entry(name).or_default())
    }

    fn value(&self, name: &str) -> u64 {
        let cells = self.0.lock();
        cells
            .get(name)
            .map_or(0, |cell| cell.load(Ordering::Relaxed))
    }
}

impl Recorder for Counting {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Level(self.cell(key))))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime on this thread").block_on(future);
}

#[test]
fn lifecycle_events_are_counted() {
    let counting = Counting::default();
    metrics::with_local_recorder(&counting, || {
        block_on(async {
            let system = ActorSystem::new("test").unwrap();
            let child = ChildSpec::new::<Failing>("failing", ()).restart(Restart::Permanent);
            let supervisor = Supervisor::new(Strategy::OneForOne)
                .intensity(1, Duration::from_secs(60))
                .child(child);
            let supervisor = system.supervise("office", supervisor).await.unwrap();
            let failing = supervisor.child::<&'static str>("failing").unwrap();
            assert_eq!(counting.value("strowger_actors"), 2);
            failing.tell("once").await.unwrap();
            failing.tell("twice").await.unwrap();
            supervisor.stopped().await;
            system.shutdown(Duration::from_secs(5)).await;
        });
    });
    let value = |name| counting.value(name);
    assert_eq!(value("strowger_actors_started_total"), 2);
    assert_eq!(value("strowger_actor_restarts_total"), 1);
    assert_eq!(value("strowger_escalations_total"), 1);
    assert_eq!(value("strowger_dead_letters_total"), 2);
    assert_eq!(value("strowger_actors_stopped_total failed"), 1);
    assert_eq!(value("strowger_actors_stopped_total escalated"), 1);
    assert_eq!(value("strowger_actors"), 0);
}
