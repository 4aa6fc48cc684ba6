//! Streams from one actor to many readers, with credit-based flow control.
//!
//! ```text
//! Source ── items ──▶ Reader      a queue of at most the reader's window
//!        ◀── credit ──            refilled at half of it
//! ```
//!
//! A reader grants credit, and the source sends no more than that. A reader that stops reading
//! therefore blocks its source, misses items, or is disconnected, as the source's [`SlowReader`]
//! rule says. Memory is bounded by the number of readers and their windows in any case. The flow
//! control of either side is a pure value ([`SenderCredit`], [`ReceiverCredit`]); here both are in
//! one process, with a queue between them.

mod flow;
mod link;
mod owned;
mod reader;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::address::SendError;
use crate::budget::charge_poll;
use crate::cell::ErasedCell;
use crate::exit::{BoxError, Exit, drop_all_caught};
use crate::reply::Reply;
use link::{OfferOutcome, ReaderLink, ReaderSet};

pub use flow::{FlowError, ReceiverCredit, SendDecision, SenderCredit, SlowReader};
pub(crate) use owned::OwnedSources;
pub use reader::{ReadError, Reader};

/// Settings of a source: how it treats its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSpec {
    slow_reader: SlowReader,
    window: u32,
    max_window: u32,
    readers: usize,
    replay: usize,
}

impl SourceSpec {
    /// The default settings: the source waits for the slowest reader; windows of 64 items, and up
    /// to 4096 if readers ask for it; up to 1024 readers; no replay.
    pub const DEFAULT: Self = Self {
        slow_reader: SlowReader::Wait,
        window: 64,
        max_window: 4096,
        readers: 1024,
        replay: 0,
    };

    /// Sets what happens to a reader that is too slow.
    #[must_use]
    pub const fn slow_reader(mut self, lag: SlowReader) -> Self {
        self.slow_reader = lag;
        self
    }

    /// Sets the window of readers that do not ask for another; at least one item.
    #[must_use]
    pub const fn window(mut self, items: u32) -> Self {
        self.window = if items == 0 { 1 } else { items };
        if self.max_window < self.window {
            self.max_window = self.window;
        }
        self
    }

    /// Sets the largest window that a reader may ask for; at least one item.
    #[must_use]
    pub const fn max_window(mut self, items: u32) -> Self {
        self.max_window = if items == 0 { 1 } else { items };
        if self.window > self.max_window {
            self.window = self.max_window;
        }
        self
    }

    /// Sets the maximum number of readers at the same time.
    #[must_use]
    pub const fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// Replays the last `items` items to each new reader, as far as its initial window holds them.
    #[must_use]
    pub const fn replay(mut self, items: usize) -> Self {
        self.replay = items;
        self
    }
}

impl Default for SourceSpec {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The error returned when a source cannot create a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The limit on readers is reached.
    #[error("the limit of {limit} readers is reached")]
    TooManyReaders {
        /// Maximum number of readers of the source.
        limit: usize,
    },
    /// The incarnation that owns the source has ended.
    #[error("the actor of the source has ended")]
    Ended,
}

/// The stats of a source at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceInfo {
    /// Number of connected readers.
    pub readers: usize,
    /// Number of items sent. An item counts once, however many readers get it.
    pub sent: u64,
    /// Number of times a reader missed an item.
    pub missed: u64,
    /// Number of readers that were disconnected because they were too slow.
    pub disconnected: u64,
}

/// The sending end of a stream, created with [`Context::source`](crate::Context::source).
///
/// A source belongs to an incarnation. When the incarnation ends, readers get the items sent before
/// and then [`ReadError::Ended`] with the exit. To end the stream earlier, call [`Source::finish`]
/// when all items have been sent, or [`Source::fail`] on an error.
///
/// # In a handler
/// [`Source::try_send`] never waits. If a reader blocks it, [`Source::notify_when_ready`] sends the
/// actor a message as soon as there is credit again, and the actor can handle other messages
/// meanwhile.
///
/// ```
/// use strowger::testing::TestSystem;
/// use strowger::{
///     Accepts, Actor, Ask, BoxError, Completion, Context, Reader, Request, SendError, Source,
///     SourceSpec,
/// };
///
/// /// Counts up to ten thousand, as fast as the slowest reader.
/// struct Counter {
///     source: Option<Source<u32>>,
///     next: u32,
/// }
///
/// struct Read;
/// impl Request for Read {
///     type Reply = Reader<u32>;
/// }
///
/// enum Msg {
///     Read(Ask<Read>),
///     Ready,
/// }
/// impl Accepts<Ask<Read>> for Msg {
///     fn wrap(ask: Ask<Read>) -> Self {
///         Self::Read(ask)
///     }
/// }
/// impl Accepts<Completion<()>> for Msg {
///     fn wrap(_: Completion<()>) -> Self {
///         Self::Ready
///     }
/// }
///
/// impl Actor for Counter {
///     type Msg = Msg;
///     type Args = ();
///     type Error = BoxError;
///
///     async fn pre_start(_: (), cx: &mut Context<Self>) -> Result<Self, BoxError> {
///         let source = Some(cx.source(SourceSpec::DEFAULT));
///         Ok(Self { source, next: 0 })
///     }
///
///     async fn handle(&mut self, message: Msg, cx: &mut Context<Self>) -> Result<(), BoxError> {
///         let Some(source) = &mut self.source else { return Ok(()) };
///         if let Msg::Read(ask) = message {
///             ask.reply.send(source.reader()?);
///         }
///         while self.next < 10_000 {
///             match source.try_send(self.next) {
///                 Ok(_) => self.next += 1,
///                 Err(SendError::Full(_)) => {
///                     source.notify_when_ready(cx.lane().reply(0));
///                     return Ok(());
///                 }
///                 Err(error) => return Err(error.to_string().into()),
///             }
///         }
///         self.source.take().expect("it was there above").finish();
///         Ok(())
///     }
/// }
///
/// let system = TestSystem::new(1);
/// let counter = system.spawn::<Counter>("counter", ());
/// system.run(async {
///     let mut numbers = counter.ask(Read).await.expect("it answers");
///     let mut expected = 0;
///     while let Some(number) = numbers.recv().await {
///         assert_eq!(number.expect("nothing is missed"), expected);
///         expected += 1;
///     }
///     assert_eq!(expected, 10_000);
/// });
/// ```
pub struct Source<T: Clone + Send + 'static> {
    shared: Arc<SourceState<T>>,
    spec: SourceSpec,
    replay: VecDeque<T>,
    sent: u64,
    missed: u64,
    disconnected: u64,
}

/// The part of a source that is shared with its incarnation, which ends it.
struct SourceState<T> {
    links: Mutex<ReaderLinks<T>>,
    reader_set: Arc<ReaderSet>,
    owner: Arc<dyn ErasedCell>,
}

struct ReaderLinks<T> {
    readers: Vec<Arc<ReaderLink<T>>>,
    ended: bool,
    /// The exit of the incarnation, once it is known.
    cause: Option<Exit>,
}

impl<T: Clone + Send + 'static> Source<T> {
    pub(crate) fn new(
        spec: SourceSpec,
        owner: Arc<dyn ErasedCell>,
        owned: &mut OwnedSources,
    ) -> Self {
        let shared = Arc::new(SourceState {
            links: Mutex::new(ReaderLinks {
                readers: Vec::new(),
                ended: false,
                cause: None,
            }),
            reader_set: Arc::default(),
            owner,
        });
        owned.add(Arc::<SourceState<T>>::clone(&shared));
        Self {
            shared,
            spec,
            replay: VecDeque::new(),
            sent: 0,
            missed: 0,
            disconnected: 0,
        }
    }

    /// Creates a reader, to be passed to its user in a reply or a message.
    ///
    /// The reader gets the items sent from now on, and before them the last items if the source
    /// replays.
    ///
    /// # Errors
    /// Returns an error if the limit on readers is reached or the source has ended.
    pub fn reader(&mut self) -> Result<Reader<T>, SourceError> {
        let mut links = self.shared.links.lock();
        if links.ended {
            return Err(SourceError::Ended);
        }
        if self.shared.reader_set.connected() >= self.spec.readers {
            let limit = self.spec.readers;
            return Err(SourceError::TooManyReaders { limit });
        }
        // Keeps the number of closed links below the number of open ones, at a constant cost on
        // average.
        if links.readers.len() > 2 * self.shared.reader_set.connected() {
            links.readers.retain(|link| !link.is_over());
        }
        let SourceSpec {
            slow_reader: lag,
            window,
            max_window,
            ..
        } = self.spec;
        let link = Arc::new(ReaderLink::new(
            &self.shared.reader_set,
            lag,
            window,
            max_window,
        ));
        let held = usize::try_from(window).unwrap_or(usize::MAX);
        let skip = self.replay.len().saturating_sub(held);
        for item in self.replay.iter().skip(skip) {
            link.offer(item.clone());
        }
        links.readers.push(Arc::clone(&link));
        Ok(Reader::new(link, max_window))
    }

    /// Sends an item to all readers without waiting, and returns the number of readers it was sent
    /// to. Without readers, the item is only kept for the replay.
    ///
    /// # Errors
    /// Returns the item in the error: `Full` if a reader has granted no credit and the rule is to
    /// wait, `Closed` if the incarnation has ended.
    pub fn try_send(&mut self, item: T) -> Result<usize, SendError<T>> {
        let mut links = self.shared.links.lock();
        if links.ended {
            drop(links);
            return Err(SendError::Closed(item));
        }
        if self.spec.slow_reader == SlowReader::Wait && self.shared.reader_set.is_blocked() {
            drop(links);
            return Err(SendError::Full(item));
        }
        self.sent += 1;
        let mut forgotten = None;
        if self.spec.replay > 0 {
            if self.replay.len() == self.spec.replay {
                forgotten = self.replay.pop_front();
            }
            self.replay.push_back(item.clone());
        }
        let count = links.readers.len();
        let (mut reached, mut over) = (0, false);
        let mut item = Some(item);
        for (at, link) in links.readers.iter().enumerate() {
            let last = at + 1 == count;
            let one = if last { item.take() } else { item.clone() };
            let Some(one) = one else { break };
            match link.offer(one) {
                OfferOutcome::Queued => reached += 1,
                OfferOutcome::Missed => self.missed += 1,
                OfferOutcome::Disconnected => {
                    self.disconnected += 1;
                    over = true;
                }
                OfferOutcome::Gone => over = true,
            }
        }
        if over {
            links.readers.retain(|link| !link.is_over());
        }
        drop(links);
        drop_all_caught([item, forgotten]);
        Ok(reached)
    }

    /// Sends an item to all readers, waiting for the slowest if the rule is to wait.
    ///
    /// If the future is dropped before it completes, the item is not sent.
    ///
    /// # Errors
    /// Returns the item in the error if the incarnation has ended.
    pub async fn send(&mut self, item: T) -> Result<usize, SendError<T>> {
        if self.spec.slow_reader == SlowReader::Wait {
            self.ready().await;
        }
        self.try_send(item)
    }

    /// Waits until every reader has granted credit or the source has ended.
    // Exclusive, since there is room for one waker: of two tasks that waited at the same time, one
    // would never be woken.
    pub async fn ready(&mut self) {
        let reader_set = &self.shared.reader_set;
        poll_fn(|cx| charge_poll(cx, |cx| reader_set.poll_ready(cx.waker()))).await;
    }

    /// Sends `reply` once every reader has granted credit. With a reply from
    /// [`Context::lane`](crate::Context::lane), that is a message to the actor. A second reply
    /// replaces the first, which is dropped.
    pub fn notify_when_ready(&self, reply: Reply<()>) {
        self.shared.reader_set.when_ready(reply);
    }

    /// Sends `reply` once there are no readers left: all were dropped or disconnected. A second
    /// reply replaces the first, which is dropped.
    pub fn notify_when_idle(&self, reply: Reply<()>) {
        self.shared.reader_set.when_idle(reply);
    }

    /// Disconnects the readers that have granted no credit, as [`SlowReader::Disconnect`] does
    /// automatically. Returns their number.
    pub fn disconnect_slow_readers(&mut self) -> usize {
        let mut links = self.shared.links.lock();
        let mut count = 0;
        links.readers.retain(|link| {
            let ended = link.is_blocking() && link.end(Some(ReadError::Disconnected));
            count += usize::from(ended);
            !ended
        });
        self.disconnected += count as u64;
        count
    }

    /// Returns the stats of the source at this moment.
    #[must_use]
    pub fn info(&self) -> SourceInfo {
        SourceInfo {
            readers: self.shared.reader_set.connected(),
            sent: self.sent,
            missed: self.missed,
            disconnected: self.disconnected,
        }
    }

    /// Ends the stream: readers get the items sent before, and then `None`.
    pub fn finish(self) {
        self.shared.end(None);
    }

    /// Ends the stream with an error: readers get the items sent before, and then
    /// [`ReadError::Failed`].
    pub fn fail(self, error: impl Into<BoxError>) {
        let error = Arc::from(error.into());
        self.shared.end(Some(&ReadError::Failed { error }));
    }
}

impl<T: Clone + Send + 'static> Drop for Source<T> {
    fn drop(&mut self) {
        let cause = self.shared.links.lock().cause.clone();
        if let Some(exit) = cause {
            self.shared.end(Some(&self.shared.read_error(exit)));
        } else if !std::thread::panicking() && !self.shared.owner.core().is_killed() {
            self.shared.end(Some(&ReadError::Dropped));
        }
        // Otherwise the incarnation is ending, and it ends this source as soon as the exit is
        // known.
    }
}

impl<T: Clone + Send + 'static> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("readers", &self.shared.reader_set.connected())
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl<T> SourceState<T> {
    fn read_error(&self, exit: Exit) -> ReadError {
        ReadError::Ended {
            path: self.owner.core().path(),
            exit,
        }
    }

    fn end(&self, why: Option<&ReadError>) {
        let mut links = self.links.lock();
        links.ended = true;
        let readers = std::mem::take(&mut links.readers);
        drop(links);
        for link in &readers {
            link.end(why.cloned());
        }
        self.reader_set.close();
    }
}
