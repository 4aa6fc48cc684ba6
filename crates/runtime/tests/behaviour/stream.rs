//! Streams: credit, order, ends and restarts.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use strowger::testing::{Probe, TestSystem};
use strowger::{
    Accepts, Actor, ActorRef, Ask, BoxError, ChildSpec, Completion, Context, ReadError, Reader,
    Recipient, Request, SendError, SlowReader, Source, SourceSpec, Strategy, Supervisor,
};

const SOON: Duration = Duration::from_secs(1);

/// Runs the given closures on its source.
struct Feed {
    source: Option<Source<u64>>,
    to: Recipient<u64>,
}

type Job = Box<dyn FnOnce(&mut Feed, &mut Context<Feed>) -> Result<(), BoxError> + Send>;

enum Msg {
    Do(Job),
    Read(Ask<Read>),
    Signalled(u64),
}

struct Read;

impl Request for Read {
    type Reply = Reader<u64>;
}

impl Accepts<Ask<Read>> for Msg {
    fn wrap(ask: Ask<Read>) -> Self {
        Self::Read(ask)
    }
}

impl Accepts<Completion<()>> for Msg {
    fn wrap(completion: Completion<()>) -> Self {
        let answered = completion.result.is_ok();
        Self::Signalled(if answered { completion.token } else { 999 })
    }
}

impl Actor for Feed {
    type Msg = Msg;
    type Args = (SourceSpec, Recipient<u64>);
    type Error = BoxError;

    async fn pre_start((spec, to): Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let source = Some(cx.source(spec));
        Ok(Self { source, to })
    }

    async fn handle(&mut self, message: Msg, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match message {
            Msg::Do(job) => job(self, cx)?,
            Msg::Read(ask) => {
                let source = self.source.as_mut().ok_or("no source")?;
                ask.reply.send(source.reader()?);
            }
            Msg::Signalled(token) => self.to.try_tell(token).map_err(|error| error.to_string())?,
        }
        Ok(())
    }
}

struct Stage {
    system: TestSystem,
    feed: ActorRef<Msg>,
    signals: Probe<u64>,
}

impl Stage {
    fn new(seed: u64, spec: SourceSpec) -> Self {
        let system = TestSystem::new(seed);
        let signals = system.probe();
        let feed = system.spawn::<Feed>("feed", (spec, signals.recipient()));
        Self {
            system,
            feed,
            signals,
        }
    }

    fn supervised(seed: u64) -> Self {
        let system = TestSystem::new(seed);
        let signals = system.probe();
        let args = (SourceSpec::DEFAULT, signals.recipient());
        let child = ChildSpec::new::<Feed>("feed", args);
        let top = Supervisor::new(Strategy::OneForOne).child(child);
        let top = system.supervise("top", top);
        let feed = top.child::<Msg>("feed").expect("it was started");
        Self {
            system,
            feed,
            signals,
        }
    }

    fn run(
        &self,
        job: impl FnOnce(&mut Feed, &mut Context<Feed>) -> Result<(), BoxError> + Send + 'static,
    ) {
        let sent = self.feed.try_tell(Msg::Do(Box::new(job)));
        assert!(sent.is_ok());
        self.system.run_until_idle();
    }

    /// Runs a closure on the source, and returns its result.
    fn source<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Source<u64>) -> R + Send + 'static,
    ) -> R {
        let result = Arc::new(parking_lot::Mutex::new(None));
        let to = Arc::clone(&result);
        self.run(move |feed, _| {
            let source = feed.source.as_mut().ok_or("no source")?;
            *to.lock() = Some(job(source));
            Ok(())
        });
        let result = result.lock().take();
        result.expect("the job was done")
    }

    fn send(&self, numbers: std::ops::Range<u64>) {
        self.source(move |source| {
            numbers.for_each(|number| assert!(source.try_send(number).is_ok()));
        });
    }

    fn reader(&self) -> Reader<u64> {
        let reader = self.system.run(self.feed.ask_within(Read, SOON));
        reader.expect("there is room for a reader")
    }
}

/// All items that can be read now: numbers, and other outcomes as text.
fn drain(reader: &mut Reader<u64>) -> Vec<String> {
    let mut seen = Vec::new();
    while let Poll::Ready(item) = reader.try_recv() {
        match item {
            Some(Ok(number)) => seen.push(number.to_string()),
            Some(Err(error)) => seen.push(error.to_string()),
            None => {
                seen.push("end".to_owned());
                break;
            }
        }
    }
    seen
}

fn numbers(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[test]
fn readers_get_all_items_in_order_then_the_end() {
    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let mut readers = [stage.reader(), stage.reader(), stage.reader()];
    stage.send(0..50);
    stage.run(|feed, _| {
        feed.source.take().ok_or("no source")?.finish();
        Ok(())
    });
    for reader in &mut readers {
        let mut expected = numbers(0..50);
        expected.push("end".to_owned());
        assert_eq!(drain(reader), expected);
        assert_eq!(drain(reader), ["end"], "and nothing after it");
    }
}

#[test]
fn new_reader_gets_replayed_and_later_items() {
    let stage = Stage::new(1, SourceSpec::DEFAULT.replay(3));
    assert_eq!(drain(&mut stage.reader()), [""; 0]);
    stage.send(0..2);
    let mut early = stage.reader();
    stage.send(2..10);
    let mut late = stage.reader();
    stage.send(10..11);
    assert_eq!(drain(&mut early), numbers(0..11));
    assert_eq!(drain(&mut late), numbers(7..11));

    let stage = Stage::new(1, SourceSpec::DEFAULT.replay(10).window(2));
    stage.send(0..10);
    let mut narrow = stage.reader();
    assert_eq!(drain(&mut narrow), numbers(8..10), "as its window holds");
}

#[test]
fn waiting_source_is_paced_by_the_slowest_reader() {
    let stage = Stage::new(1, SourceSpec::DEFAULT.window(4));
    let (mut quick, mut slow) = (stage.reader(), stage.reader());
    stage.send(0..4);
    let refused = stage.source(|source| source.try_send(4));
    assert_eq!(refused, Err(SendError::Full(4)));
    assert_eq!(drain(&mut quick), numbers(0..4));
    let refused = stage.source(|source| source.try_send(4));
    assert_eq!(
        refused,
        Err(SendError::Full(4)),
        "the slow one read nothing"
    );
    assert!(matches!(slow.try_recv(), Poll::Ready(Some(Ok(0)))));
    let refused = stage.source(|source| source.try_send(4));
    assert_eq!(refused, Err(SendError::Full(4)), "credit comes at half");
    assert!(matches!(slow.try_recv(), Poll::Ready(Some(Ok(1)))));
    stage.send(4..6);
    assert_eq!(
        stage.source(|source| source.try_send(6)),
        Err(SendError::Full(6))
    );
    assert_eq!(drain(&mut slow), numbers(2..6));
    assert_eq!(drain(&mut quick), numbers(4..6));
    stage.send(6..8);
}

#[test]
fn slow_reader_gets_a_missed_count_in_position() {
    let stage = Stage::new(
        1,
        SourceSpec::DEFAULT.window(4).slow_reader(SlowReader::Miss),
    );
    let (mut quick, mut slow) = (stage.reader(), stage.reader());
    stage.send(0..4);
    assert_eq!(drain(&mut quick), numbers(0..4));
    stage.send(4..7);
    assert_eq!(drain(&mut quick), numbers(4..7));
    assert_eq!(drain(&mut slow), numbers(0..4));
    assert_eq!(slow.missed(), 3);
    stage.send(7..9);
    assert_eq!(drain(&mut slow), ["missed 3 items", "7", "8"]);
    assert_eq!(drain(&mut quick), numbers(7..9));
    stage.send(9..15);
    let info = stage.source(|source| source.info());
    assert_eq!((info.sent, info.missed, info.readers), (15, 8, 2));
    stage.run(|feed, _| {
        feed.source.take().ok_or("no source")?.finish();
        Ok(())
    });
    let all = ["9", "10", "11", "12", "missed 2 items", "end"];
    assert_eq!(drain(&mut slow), all);
    assert_eq!((slow.missed(), quick.missed()), (5, 3));
}

#[test]
fn slow_reader_is_disconnected_without_blocking_others() {
    let stage = Stage::new(
        1,
        SourceSpec::DEFAULT
            .window(4)
            .slow_reader(SlowReader::Disconnect),
    );
    let (mut quick, mut slow) = (stage.reader(), stage.reader());
    for round in 0..3 {
        stage.send(round * 4..round * 4 + 4);
        assert_eq!(drain(&mut quick), numbers(round * 4..round * 4 + 4));
    }
    let mut expected = numbers(0..4);
    let why = "disconnected: the reader is too slow";
    expected.extend([why.to_owned(), "end".to_owned()]);
    assert_eq!(drain(&mut slow), expected);
    let info = stage.source(|source| source.info());
    assert_eq!((info.readers, info.disconnected), (1, 1));
}

#[test]
fn waiting_source_may_disconnect_blocking_readers() {
    let stage = Stage::new(1, SourceSpec::DEFAULT.window(2));
    let (mut quick, mut never) = (stage.reader(), stage.reader());
    stage.send(0..2);
    assert_eq!(drain(&mut quick), numbers(0..2));
    assert_eq!(stage.source(Source::disconnect_slow_readers), 1);
    assert_eq!(stage.source(Source::disconnect_slow_readers), 0);
    stage.send(2..4);
    assert_eq!(drain(&mut quick), numbers(2..4));
    assert_eq!(drain(&mut never).len(), 4, "two items, the reason, the end");
}

#[test]
fn when_ready_sends_a_message_once_credit_returns() {
    let stage = Stage::new(1, SourceSpec::DEFAULT.window(2));
    let mut reader = stage.reader();
    let signal = |token: u64| {
        stage.run(move |feed, cx| {
            let source = feed.source.as_ref().ok_or("no source")?;
            source.notify_when_ready(cx.lane().reply(token));
            Ok(())
        });
    };
    signal(1);
    assert_eq!(stage.signals.drain(), [1], "at once when nobody blocks");
    stage.send(0..2);
    signal(2);
    assert_eq!(stage.signals.drain(), [0; 0]);
    signal(3);
    assert_eq!(stage.signals.drain(), [999], "the first gave way");
    assert_eq!(drain(&mut reader), numbers(0..2));
    assert_eq!(stage.signals.drain(), [3]);
    stage.send(2..4);
    signal(4);
    drop(reader);
    assert_eq!(
        stage.signals.drain(),
        [4],
        "a reader that goes blocks nobody"
    );
}

#[test]
fn when_idle_fires_when_the_last_reader_is_dropped() {
    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let (one, other) = (stage.reader(), stage.reader());
    stage.send(0..5);
    stage.run(|feed, cx| {
        let source = feed.source.as_ref().ok_or("no source")?;
        source.notify_when_idle(cx.lane().reply(7));
        Ok(())
    });
    drop(one);
    assert_eq!(stage.signals.drain(), [0; 0]);
    assert_eq!(stage.source(|source| source.try_send(5)), Ok(1));
    drop(other);
    assert_eq!(stage.signals.drain(), [7]);
    assert_eq!(stage.source(|source| source.try_send(6)), Ok(0));
    assert_eq!(stage.source(|source| source.info().readers), 0);
}

#[test]
fn a_task_feeds_a_stream_and_waits_for_credit() {
    TestSystem::check(0..20, |system| {
        let stage = Stage::new(system.seed(), SourceSpec::DEFAULT.window(3));
        let mut readers = [stage.reader(), stage.reader()];
        stage.run(|feed, cx| {
            let mut source = feed.source.take().ok_or("no source")?;
            cx.task("feeding", async move {
                for number in 0..100 {
                    assert_eq!(source.send(number).await, Ok(2));
                }
                source.finish();
            });
            Ok(())
        });
        stage.system.run(async {
            for number in 0..100 {
                for reader in &mut readers {
                    let item = reader.recv().await;
                    assert!(matches!(item, Some(Ok(got)) if got == number));
                    if number % 7 == 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
            for reader in &mut readers {
                assert!(reader.recv().await.is_none());
            }
        });
    });
}

#[test]
fn readers_get_the_exit_and_can_read_the_next_incarnation() {
    TestSystem::check(0..10, |system| {
        let stage = Stage::supervised(system.seed());
        let mut reader = stage.reader();
        stage.send(0..2);
        stage.run(|_, _| Err("out of paper".into()));
        let why = "/top/feed ended before the stream: failed: out of paper";
        assert_eq!(drain(&mut reader), ["0", "1", why, "end"]);
        stage.system.advance(SOON);
        let mut next = stage.reader();
        stage.send(5..6);
        assert_eq!(drain(&mut next), ["5"]);
        assert_eq!(drain(&mut reader), ["end"]);
        stage.run(|_, _| std::panic::resume_unwind(Box::new("torn")));
        let why = "/top/feed ended before the stream: panicked: torn";
        assert_eq!(drain(&mut next), [why, "end"]);
    });
}

#[test]
fn readers_get_the_panic_of_the_feeding_task() {
    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let mut reader = stage.reader();
    stage.run(|feed, cx| {
        let mut source = feed.source.take().ok_or("no source")?;
        cx.task("feeding", async move {
            assert_eq!(source.send(1).await, Ok(1));
            std::panic::resume_unwind(Box::new("torn"));
        });
        Ok(())
    });
    let why = "/feed ended before the stream: panicked: torn";
    assert_eq!(drain(&mut reader), ["1", why, "end"]);
}

#[test]
fn readers_distinguish_kill_from_stop() {
    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let mut reader = stage.reader();
    stage.feed.kill();
    stage.system.run_until_idle();
    let why = "/feed ended before the stream: killed";
    assert_eq!(drain(&mut reader), [why, "end"]);

    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let mut reader = stage.reader();
    stage.feed.stop();
    stage.system.run_until_idle();
    let why = "/feed ended before the stream: shutdown";
    assert_eq!(drain(&mut reader), [why, "end"]);
}

#[test]
fn source_failure_is_delivered_after_queued_items() {
    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let mut reader = stage.reader();
    stage.send(0..1);
    stage.run(|feed, _| {
        let source = feed.source.take().ok_or("no source")?;
        source.fail("out of paper");
        Ok(())
    });
    assert_eq!(
        drain(&mut reader),
        ["0", "the source failed: out of paper", "end"]
    );

    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let mut reader = stage.reader();
    stage.run(|feed, _| {
        drop(feed.source.take());
        Ok(())
    });
    let why = "the source was dropped before the stream was finished";
    assert_eq!(drain(&mut reader), [why, "end"]);

    // A hook that fails afterwards drops it: at that time the exit is not known yet.
    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let mut reader = stage.reader();
    stage.run(|feed, _| {
        drop(feed.source.take());
        Err("out of paper".into())
    });
    assert_eq!(drain(&mut reader), [why, "end"]);
}

#[test]
fn a_source_that_outlives_its_incarnation_is_closed() {
    let stage = Stage::new(1, SourceSpec::DEFAULT);
    let mut reader = stage.reader();
    let kept = Arc::new(parking_lot::Mutex::new(None));
    let to = Arc::clone(&kept);
    stage.run(move |feed, cx| {
        *to.lock() = feed.source.take();
        cx.stop();
        Ok(())
    });
    let why = "/feed ended before the stream: normal";
    assert_eq!(drain(&mut reader), [why, "end"]);
    let mut source = kept.lock().take().expect("it was kept");
    assert_eq!(source.try_send(1), Err(SendError::Closed(1)));
    assert!(source.reader().is_err());
    let sent = stage.system.run(async { source.send(2).await });
    assert_eq!(sent, Err(SendError::Closed(2)));
}

#[test]
fn reader_limit_is_enforced_and_freed_on_drop() {
    let stage = Stage::new(1, SourceSpec::DEFAULT.readers(2));
    let (one, _other) = (stage.reader(), stage.reader());
    let refused = stage.source(|source| source.reader().map(drop));
    let refused = refused.expect_err("one too many");
    assert_eq!(refused.to_string(), "the limit of 2 readers is reached");
    drop(one);
    assert!(stage.source(|source| source.reader().map(drop)).is_ok());
}

#[test]
fn reader_window_is_clamped_to_the_source_limit() {
    let stage = Stage::new(1, SourceSpec::DEFAULT.window(2).max_window(8));
    let mut reader = stage.reader().with_window(1000);
    assert_eq!(reader.window(), 8);
    stage.send(0..8);
    assert_eq!(
        stage.source(|source| source.try_send(8)),
        Err(SendError::Full(8))
    );
    assert_eq!(reader.len(), 8);
    reader.set_window(0);
    assert_eq!(reader.window(), 1);
    assert_eq!(drain(&mut reader), numbers(0..8), "nothing is taken back");
    stage.send(8..9);
    assert_eq!(
        stage.source(|source| source.try_send(9)),
        Err(SendError::Full(9))
    );
    assert_eq!(drain(&mut reader), ["8"]);
}

#[test]
fn reader_implements_stream() {
    fn is_stream<T>(stream: impl futures_core::Stream<Item = Result<T, ReadError>>) {
        drop(stream);
    }
    let stage = Stage::new(1, SourceSpec::DEFAULT);
    is_stream(stage.reader());
}
