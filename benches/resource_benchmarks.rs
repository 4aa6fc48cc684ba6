//! Heap bytes instead of times: the memory of live actors, and of messages in their mailboxes.

use std::sync::Arc;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use strowger::{Actor, ActorRef, Context, MailboxSpec};
use strowger_benches::{Bench, CountingAllocator, Latch, LiveBytes, Spawner, criterion, stop};
use tokio::sync::{Notify, mpsc};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A Criterion measurement in bytes. The benchmark returns the values; nothing is measured around
/// it. The bytes are counted inside `iter_custom`, whose time ends Criterion's warm-up.
struct BytesMeasurement;

impl Measurement for BytesMeasurement {
    type Intermediate = ();
    type Value = f64;

    fn start(&self) {}

    fn end(&self, (): ()) -> f64 {
        0.0
    }

    fn add(&self, one: &f64, other: &f64) -> f64 {
        one + other
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &Self
    }
}

impl ValueFormatter for BytesMeasurement {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let (by, unit) = match typical {
            small if small < 10_000.0 => (1.0, "B"),
            middle if middle < 10_000_000.0 => (1e3, "kB"),
            _ => (1e6, "MB"),
        };
        for value in values {
            *value /= by;
        }
        unit
    }

    fn scale_throughputs(
        &self,
        typical: f64,
        _throughput: &Throughput,
        values: &mut [f64],
    ) -> &'static str {
        self.scale_values(typical, values)
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "B"
    }
}

/// Returns the bytes in use once they are stable: a worker releases an actor a moment after its
/// exit.
async fn settled(bytes: &LiveBytes) -> i64 {
    loop {
        let before = bytes.now();
        tokio::time::sleep(Duration::from_millis(2)).await;
        if bytes.now() == before {
            return before;
        }
    }
}

/// Returns the bytes of this number of actors that have answered and are idle.
async fn idle(spawner: Spawner, bytes: Arc<LiveBytes>, count: usize) -> f64 {
    let latch = Arc::new(Latch::default());
    let mut actors = Vec::with_capacity(count);
    let before = settled(&bytes).await;
    actors.extend(spawner.counters(count, &latch).await);
    let held = settled(&bytes).await - before;
    assert_eq!(actors.len(), count, "all of them run");
    stop(actors).await;
    held as f64
}

/// An actor that reports that it has a message, and then is held until it is released.
struct HoldingActor<const ROOM: usize>(Args);

type Args = (mpsc::UnboundedSender<()>, Arc<Notify>);

impl<const ROOM: usize> Actor for HoldingActor<ROOM> {
    type Msg = u64;
    type Args = Args;
    type Error = std::convert::Infallible;

    const MAILBOX: MailboxSpec = if ROOM == 0 {
        MailboxSpec::unbounded()
    } else {
        MailboxSpec::bounded(ROOM)
    };

    async fn pre_start(args: Args, _: &mut Context<Self>) -> Result<Self, Self::Error> {
        Ok(Self(args))
    }

    async fn handle(&mut self, number: u64, _: &mut Context<Self>) -> Result<(), Self::Error> {
        if number == 0 {
            // The receiver may be gone.
            let _ = self.0.0.send(());
            self.0.1.notified().await;
        }
        Ok(())
    }
}

/// Returns the bytes of ten actors that are held at a message, with `waiting` more messages in each
/// mailbox.
async fn mailbox<const ROOM: usize>(spawner: Spawner, bytes: Arc<LiveBytes>, waiting: u64) -> f64 {
    let (sender, mut holds) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let mut actors: Vec<ActorRef<u64>> = Vec::with_capacity(10);
    let before = settled(&bytes).await;
    for _ in 0..10 {
        let args = (sender.clone(), Arc::clone(&gate));
        let started = spawner
            .system
            .spawn::<HoldingActor<ROOM>>(spawner.key(), args);
        let actor = started.expect("the key is unused");
        assert!(actor.tell(0).await.is_ok(), "it runs");
        holds.recv().await.expect("it is held");
        for number in 1..=waiting {
            assert!(actor.try_tell(number).is_ok(), "there is room");
        }
        actors.push(actor);
    }
    let held = settled(&bytes).await - before;
    for actor in actors {
        actor.kill();
        actor.stopped().await;
    }
    held as f64
}

fn resources(c: &mut Criterion<BytesMeasurement>) {
    let bench = Bench::start();
    // The tables of the system grow by doubling; this makes them large enough before anything is
    // measured.
    let bytes = Arc::new(LiveBytes::watch());
    let watch = || Arc::clone(&bytes);
    bench.run(idle(bench.spawner(), watch(), 100_000));
    let mut group = c.benchmark_group("resource_memory_per_actor");
    for count in [1, 10, 50, 1000, 100_000] {
        if count > 10_000 {
            group.sample_size(10);
        }
        group.bench_function(BenchmarkId::from_parameter(count), |b| {
            b.iter_custom(|n| {
                n as f64 * bench.run(idle(bench.spawner(), watch(), count)) / count as f64
            });
        });
    }
    group.finish();
    let mut group = c.benchmark_group("resource_mailbox_memory");
    for (suffix, waiting) in [("", 0), ("_with_100", 100)] {
        group.bench_function(format!("bounded_mailbox_100{suffix}"), |b| {
            b.iter_custom(|n| {
                n as f64 * bench.run(mailbox::<100>(bench.spawner(), watch(), waiting)) / 10.0
            });
        });
        group.bench_function(format!("unbounded_mailbox{suffix}"), |b| {
            b.iter_custom(|n| {
                n as f64 * bench.run(mailbox::<0>(bench.spawner(), watch(), waiting)) / 10.0
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = group;
    // The counts repeat exactly, so plots would show no spread.
    config = criterion!().with_measurement(BytesMeasurement).without_plots();
    targets = resources
}
criterion_main!(group);
