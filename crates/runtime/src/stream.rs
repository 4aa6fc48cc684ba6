//! Streams from one actor to many readers, with credit.
//!
//! ```text
//! Source ── items ──▶ Reader      a queue of at most the reader's window
//!        ◀── credit ──            refilled at half of it
//! ```
//!
//! A reader grants credit, a source sends no more than that. So a reader that stops reading stops
//! its source, or misses items, or is disconnected, as the source's rule says; and memory is
//! bounded by readers and windows, whatever they do. The books of both sides are pure values
//! ([`Outlet`], [`Inlet`]); here they sit in one process, with a queue between them.

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
use crate::budget::charged;
use crate::cell::AnyCell;
use crate::exit::{BoxError, Exit, discard};
use crate::reply::Reply;
use link::{Delivered, Hub, Link};

pub use flow::{FlowError, Inlet, Lag, Offer, Outlet};
pub(crate) use owned::OwnedSources;
pub use reader::{ReadError, Reader};

/// How a source treats its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSpec {
    lag: Lag,
    window: u32,
    max_window: u32,
    readers: usize,
    replay: usize,
}

impl SourceSpec {
    /// Waits for the slowest; windows of 64 items, and up to 4096 where readers ask for it; up to
    /// 1024 readers; no replay.
    pub const DEFAULT: Self = Self {
        lag: Lag::Wait,
        window: 64,
        max_window: 4096,
        readers: 1024,
        replay: 0,
    };

    /// Says what happens to a reader that is too slow.
    #[must_use]
    pub const fn lag(mut self, lag: Lag) -> Self {
        self.lag = lag;
        self
    }

    /// Sets how many items wait for a reader that asks for no other window; at least one.
    #[must_use]
    pub const fn window(mut self, items: u32) -> Self {
        self.window = if items == 0 { 1 } else { items };
        if self.max_window < self.window {
            self.max_window = self.window;
        }
        self
    }

    /// Sets the largest window that a reader may ask for; at least one.
    #[must_use]
    pub const fn max_window(mut self, items: u32) -> Self {
        self.max_window = if items == 0 { 1 } else { items };
        if self.window > self.max_window {
            self.window = self.max_window;
        }
        self
    }

    /// Sets how many readers there may be at once.
    #[must_use]
    pub const fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// Gives each new reader the last so many items, as far as its first window holds them.
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

/// Why a source gave no reader away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// It has as many readers as it may.
    #[error("the source has its {limit} readers")]
    TooManyReaders {
        /// How many it may have.
        limit: usize,
    },
    /// The incarnation to which it belongs has ended.
    #[error("the actor of the source has ended")]
    Ended,
}

/// The figures of a source at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceInfo {
    /// How many readers it has.
    pub readers: usize,
    /// How many items it sent, to however many readers.
    pub sent: u64,
    /// How many times a reader missed an item.
    pub missed: u64,
    /// How many readers were disconnected because they were too slow.
    pub disconnected: u64,
}

/// The sending end of a stream; made with [`Context::source`](crate::Context::source).
///
/// It belongs to an incarnation: when that ends, readers get what was sent before, and then
/// [`ReadError::Ended`] with the reason. Before that, [`Source::finish`] says that all was sent,
/// and [`Source::fail`] that something went wrong.
///
/// # In a handler
/// [`Source::try_send`] never waits. Where a reader blocks it, [`Source::when_ready`] brings a
/// message when credit has come back, so that the actor is free meanwhile.
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
///                     source.when_ready(cx.lane().reply(0));
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
    shared: Arc<Shared<T>>,
    spec: SourceSpec,
    replay: VecDeque<T>,
    sent: u64,
    missed: u64,
    disconnected: u64,
}

/// What a source shares with its incarnation, which ends it.
struct Shared<T> {
    links: Mutex<Links<T>>,
    hub: Arc<Hub>,
    owner: Arc<dyn AnyCell>,
}

struct Links<T> {
    readers: Vec<Arc<Link<T>>>,
    ended: bool,
    /// Why the incarnation is ending, once that is known.
    cause: Option<Exit>,
}

impl<T: Clone + Send + 'static> Source<T> {
    pub(crate) fn new(spec: SourceSpec, owner: Arc<dyn AnyCell>, owned: &mut OwnedSources) -> Self {
        let shared = Arc::new(Shared {
            links: Mutex::new(Links {
                readers: Vec::new(),
                ended: false,
                cause: None,
            }),
            hub: Arc::default(),
            owner,
        });
        owned.add(Arc::<Shared<T>>::clone(&shared));
        Self {
            shared,
            spec,
            replay: VecDeque::new(),
            sent: 0,
            missed: 0,
            disconnected: 0,
        }
    }

    /// Makes a reader, to be handed to whoever reads: in a reply, or in a message.
    ///
    /// It gets what is sent from now on, and the last items before where the source replays.
    ///
    /// # Errors
    /// When there are as many readers as there may be, or the source has ended.
    pub fn reader(&mut self) -> Result<Reader<T>, SourceError> {
        let mut links = self.shared.links.lock();
        if links.ended {
            return Err(SourceError::Ended);
        }
        if self.shared.hub.connected() >= self.spec.readers {
            let limit = self.spec.readers;
            return Err(SourceError::TooManyReaders { limit });
        }
        // Of those that went, no more are kept than of those that stay.
        if links.readers.len() > 2 * self.shared.hub.connected() {
            links.readers.retain(|link| !link.is_over());
        }
        let SourceSpec {
            lag,
            window,
            max_window,
            ..
        } = self.spec;
        let link = Arc::new(Link::new(&self.shared.hub, lag, window, max_window));
        let held = usize::try_from(window).unwrap_or(usize::MAX);
        let skip = self.replay.len().saturating_sub(held);
        for item in self.replay.iter().skip(skip) {
            link.offer(item.clone());
        }
        links.readers.push(Arc::clone(&link));
        Ok(Reader::new(link, max_window))
    }

    /// Sends an item to all readers without waiting; to how many it went. Without readers, it goes
    /// to none, and is kept for the replay only.
    ///
    /// # Errors
    /// Hands the item back: `Full` while a reader has granted no credit and the rule is to wait,
    /// `Closed` after the end of the incarnation.
    pub fn try_send(&mut self, item: T) -> Result<usize, SendError<T>> {
        let mut links = self.shared.links.lock();
        if links.ended {
            drop(links);
            return Err(SendError::Closed(item));
        }
        if self.spec.lag == Lag::Wait && self.shared.hub.is_blocked() {
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
                Delivered::Yes => reached += 1,
                Delivered::Missed => self.missed += 1,
                Delivered::Disconnected => {
                    self.disconnected += 1;
                    over = true;
                }
                Delivered::Gone => over = true,
            }
        }
        if over {
            links.readers.retain(|link| !link.is_over());
        }
        drop(links);
        discard([item, forgotten]);
        Ok(reached)
    }

    /// Sends an item to all readers; waits for the slowest if the rule is to wait.
    ///
    /// Dropping the future before it is done sends nothing.
    ///
    /// # Errors
    /// Hands the item back after the end of the incarnation.
    pub async fn send(&mut self, item: T) -> Result<usize, SendError<T>> {
        if self.spec.lag == Lag::Wait {
            self.ready().await;
        }
        self.try_send(item)
    }

    /// Waits until every reader has granted credit, or the source has ended.
    pub async fn ready(&self) {
        let hub = &self.shared.hub;
        poll_fn(|cx| charged(cx, |cx| hub.poll_ready(cx.waker()))).await;
    }

    /// Answers once every reader has granted credit: with a reply of
    /// [`Context::lane`](crate::Context::lane), that is a message to the actor. A second reply
    /// takes the place of the first, which is dropped.
    pub fn when_ready(&self, reply: Reply<()>) {
        self.shared.hub.when_ready(reply);
    }

    /// Answers once no reader is left: all dropped theirs, or were disconnected. A second reply
    /// takes the place of the first, which is dropped.
    pub fn when_idle(&self, reply: Reply<()>) {
        self.shared.hub.when_idle(reply);
    }

    /// Disconnects the readers that have granted no credit, as [`Lag::Disconnect`] does by
    /// itself; how many.
    pub fn disconnect_laggards(&mut self) -> usize {
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

    /// The source's figures at this moment.
    #[must_use]
    pub fn info(&self) -> SourceInfo {
        SourceInfo {
            readers: self.shared.hub.connected(),
            sent: self.sent,
            missed: self.missed,
            disconnected: self.disconnected,
        }
    }

    /// Ends the stream in order: readers get what was sent, and then the end.
    pub fn finish(self) {
        self.shared.end(None);
    }

    /// Ends the stream with an error: readers get what was sent, and then
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
            self.shared.end(Some(&self.shared.why(exit)));
        } else if !std::thread::panicking() && !self.shared.owner.node().is_killed() {
            self.shared.end(Some(&ReadError::Dropped));
        }
        // Else the incarnation is ending, and ends this with the reason as soon as it is known.
    }
}

impl<T: Clone + Send + 'static> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("readers", &self.shared.hub.connected())
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl<T> Shared<T> {
    fn why(&self, exit: Exit) -> ReadError {
        ReadError::Ended {
            path: self.owner.node().path(),
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
        self.hub.close();
    }
}
