//! Streams with hostile readers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{any, proptest};
use strowger::testing::TestSystem;
use strowger::{Actor, ActorSystem, Context, ReadError, Reader, SlowReader, Source, SourceSpec};

/// Hands its source out, and lives as long as its system.
struct Owner;

type Slot<T> = Arc<parking_lot::Mutex<Option<Source<T>>>>;

impl Actor for Owner {
    type Msg = Infallible;
    type Args = (SourceSpec, Slot<Item>);
    type Error = Infallible;

    async fn pre_start(
        (spec, slot): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        *slot.lock() = Some(cx.source(spec));
        Ok(Self)
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Self>) -> Result<(), Infallible> {
        match never {}
    }
}

/// An item that counts the live items of its kind.
#[derive(Debug)]
struct Item(u64, Arc<AtomicUsize>);

impl Item {
    fn new(number: u64, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(number, Arc::clone(alive))
    }
}

impl Clone for Item {
    fn clone(&self) -> Self {
        Self::new(self.0, &self.1)
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

fn source(system: &TestSystem, spec: SourceSpec) -> Source<Item> {
    let slot = Slot::default();
    system.spawn::<Owner>("owner", (spec, Arc::clone(&slot)));
    system.run_until_idle();
    let source = slot.lock().take();
    source.expect("it was made")
}

fn next(reader: &mut Reader<Item>) -> Poll<Option<Result<u64, String>>> {
    let item = reader.try_recv();
    item.map(|item| item.map(|item| item.map(|item| item.0).map_err(|error| error.to_string())))
}

#[test]
fn unread_readers_hold_at_most_their_windows() {
    for lag in [SlowReader::Miss, SlowReader::Disconnect, SlowReader::Wait] {
        let system = TestSystem::new(1);
        let alive = Arc::new(AtomicUsize::new(0));
        let mut source = source(&system, SourceSpec::DEFAULT.window(8).slow_reader(lag));
        let readers: Vec<_> = (0..1000).map(|_| source.reader().expect("room")).collect();
        for number in 0..100 {
            let _sent = source.try_send(Item::new(number, &alive));
        }
        assert_eq!(alive.load(Ordering::SeqCst), 8000);
        let info = source.info();
        let (missed, disconnected) = match lag {
            SlowReader::Miss => (92_000, 0),
            SlowReader::Disconnect => (0, 1000),
            _ => (0, 0),
        };
        assert_eq!((info.missed, info.disconnected), (missed, disconnected));
        drop(readers);
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        assert_eq!(source.info().readers, 0);
    }
}

#[test]
fn dropped_readers_free_their_memory() {
    let system = TestSystem::new(1);
    let alive = Arc::new(AtomicUsize::new(0));
    let mut source = source(&system, SourceSpec::DEFAULT.window(4));
    for number in 0..10_000 {
        let mut reader = source.reader().expect("the others have gone");
        let sent = source.try_send(Item::new(number, &alive));
        assert_eq!(sent.map_err(|_| "refused"), Ok(1));
        if number % 2 == 0 {
            assert_eq!(next(&mut reader), Poll::Ready(Some(Ok(number))));
        }
    }
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn dropped_reader_does_not_block_the_source() {
    let system = TestSystem::new(1);
    let alive = Arc::new(AtomicUsize::new(0));
    let mut source = source(&system, SourceSpec::DEFAULT.window(2));
    let (stays, mut goes) = (source.reader(), source.reader());
    let mut stays = stays.expect("room");
    let mut seen = Vec::new();
    let mut number = 0;
    while number < 10 {
        if source.try_send(Item::new(number, &alive)).is_ok() {
            number += 1;
        } else if number >= 6 {
            goes = Err(strowger::SourceError::Ended);
        }
        while let Poll::Ready(Some(Ok(number))) = next(&mut stays) {
            seen.push(number);
        }
        if let Ok(goes) = &mut goes
            && number < 6
        {
            let _read = next(goes);
        }
    }
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

/// The observations of a reader: `read` is the number that comes next.
struct Model {
    reader: Option<Reader<Item>>,
    missed: u64,
    read: u64,
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(128))]

    /// Each reader sees all items in order, or is told exactly which it missed, whatever the
    /// readers do.
    #[test]
    fn every_loss_is_reported_and_no_item_is_duplicated(
        window in 1_u32..9,
        misses in any::<bool>(),
        steps in vec((0_u8..8, any::<u8>()), 1..300),
    ) {
        let system = TestSystem::new(1);
        let alive = Arc::new(AtomicUsize::new(0));
        let lag = if misses { SlowReader::Miss } else { SlowReader::Wait };
        let spec = SourceSpec::DEFAULT.window(window).slow_reader(lag);
        let mut source = source(&system, spec);
        let mut readers: Vec<Model> = Vec::new();
        let mut number = 0;
        for (step, which) in steps {
            let at = usize::from(which) % readers.len().max(1);
            match (step, readers.get_mut(at)) {
                (0, _) => readers.push(Model {
                    reader: source.reader().ok(),
                    missed: 0,
                    read: number,
                }),
                (1, Some(model)) => model.reader = None,
                (2..=4, Some(model)) => {
                    let Some(reader) = &mut model.reader else { continue };
                    match reader.try_recv() {
                        Poll::Ready(Some(Ok(item))) => {
                            assert_eq!(item.0, model.read);
                            model.read += 1;
                        }
                        Poll::Ready(Some(Err(ReadError::Missed { count }))) => {
                            assert!(misses && count > 0);
                            model.read += count;
                            model.missed += count;
                        }
                        Poll::Ready(other) => panic!("{other:?}"),
                        Poll::Pending => assert!(reader.is_empty()),
                    }
                }
                _ => {
                    let live = readers.iter().filter(|model| model.reader.is_some());
                    let live = live.count();
                    match source.try_send(Item::new(number, &alive)) {
                        Ok(reached) => {
                            assert!(if misses { reached <= live } else { reached == live });
                            number += 1;
                        }
                        Err(_) => assert!(!misses),
                    }
                }
            }
            let bound = readers.len() * window as usize;
            assert!(alive.load(Ordering::SeqCst) <= bound);
        }
        source.finish();
        for model in &mut readers {
            let Some(reader) = &mut model.reader else { continue };
            while let Poll::Ready(Some(item)) = reader.try_recv() {
                match item {
                    Ok(item) => {
                        assert_eq!(item.0, model.read);
                        model.read += 1;
                    }
                    Err(ReadError::Missed { count }) => {
                        model.read += count;
                        model.missed += count;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(model.read, number, "all are accounted for");
            assert_eq!(model.missed, reader.missed());
        }
        drop(readers);
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

/// Sends a fixed sequence of numbers from a task, and waits for the slowest reader.
struct Pump;

type Readers = tokio::sync::oneshot::Sender<Vec<Reader<u64>>>;

impl Actor for Pump {
    type Msg = Infallible;
    type Args = (u64, Arc<parking_lot::Mutex<Option<Readers>>>);
    type Error = strowger::BoxError;

    async fn pre_start(
        (count, to): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, strowger::BoxError> {
        let mut source = cx.source(SourceSpec::DEFAULT.window(16));
        let readers = (0..4).map(|_| source.reader()).collect::<Result<_, _>>()?;
        let to = to.lock().take().ok_or("started twice")?;
        to.send(readers).map_err(|_| "nobody reads")?;
        cx.task("pump", async move {
            for number in 0..count {
                if source.send(number).await.is_err() {
                    return;
                }
            }
            source.finish();
        });
        Ok(Self)
    }

    async fn handle(
        &mut self,
        never: Infallible,
        _: &mut Context<Self>,
    ) -> Result<(), strowger::BoxError> {
        match never {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_stay_in_order_across_threads_when_a_reader_leaves() {
    let system = ActorSystem::new("threads").expect("inside tokio");
    let (to, readers) = tokio::sync::oneshot::channel();
    let to = Arc::new(parking_lot::Mutex::new(Some(to)));
    let pump = system.spawn::<Pump>("pump", (2000, to));
    assert!(pump.is_ok());
    let readers = readers.await.expect("they come");
    let mut tasks = Vec::new();
    for (place, mut reader) in readers.into_iter().enumerate() {
        tasks.push(tokio::spawn(async move {
            let mut expected = 0;
            while let Some(item) = reader.recv().await {
                assert_eq!(item.expect("all goes well"), expected);
                expected += 1;
                if place == 0 && expected == 500 {
                    return expected;
                }
                if expected % 100 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            expected
        }));
    }
    let mut counts = Vec::new();
    for task in tasks {
        counts.push(task.await.expect("no panic"));
    }
    assert_eq!(counts, [500, 2000, 2000, 2000]);
    system.shutdown(Duration::from_secs(5)).await;
}
