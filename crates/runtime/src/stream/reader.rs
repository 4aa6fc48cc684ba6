//! The receiving end of a stream.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::link::Link;
use crate::budget::charged;
use crate::exit::Exit;
use crate::path::Path;

/// What a reader gets in the place of an item. All but [`ReadError::Missed`] are the last.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The reader was too slow and missed items; the stream goes on.
    #[error("missed {count} items")]
    Missed {
        /// How many, just here.
        count: u64,
    },
    /// The reader was too slow and was disconnected.
    #[error("disconnected because it read too slowly")]
    Disconnected,
    /// The source failed.
    #[error("the source failed: {error}")]
    Failed {
        /// What it said.
        error: Arc<dyn Error + Send + Sync>,
    },
    /// The incarnation of the source's actor ended before the stream did. Its next incarnation
    /// has another source.
    #[error("{path} ended before the stream: {exit}")]
    Ended {
        /// The source's actor.
        path: Path,
        /// Why it ended.
        exit: Exit,
    },
    /// The source was dropped before the stream was finished; also by a hook that fails after
    /// that, as with a [`Reply`](crate::Reply). [`Source::fail`](crate::Source::fail) says why.
    #[error("the source was dropped before the stream was finished")]
    Dropped,
}

/// The receiving end of a stream; made with [`Source::reader`](crate::Source::reader), read
/// wherever it is taken.
///
/// It grants credit by itself: its window at first, and what fills that up once half of it was
/// read. Dropping it cancels: the source sends no more to it, and learns of it.
pub struct Reader<T> {
    link: Arc<Link<T>>,
    max_window: u32,
}

impl<T> Reader<T> {
    pub(super) const fn new(link: Arc<Link<T>>, max_window: u32) -> Self {
        Self { link, max_window }
    }

    /// Asks for another window: how many items may wait for this reader. At least one, and at most
    /// what the source allows.
    #[must_use]
    pub fn with_window(self, items: u32) -> Self {
        self.set_window(items);
        self
    }

    /// As [`Reader::with_window`], in the middle of a stream. A smaller window drops nothing: less
    /// is granted until it fits.
    pub fn set_window(&self, items: u32) {
        self.link.resize(items, self.max_window);
    }

    /// How many items may wait for this reader.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.link.window()
    }

    /// How many items wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.link.figures().0
    }

    /// Whether no item waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items it missed in all.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.link.figures().1
    }

    /// Waits for the next item; `None` after the last. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Result<T, ReadError>> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The next item, if it is there: `Ready(None)` after the last, `Pending` when nothing is
    /// there now, of which nobody is woken.
    pub fn try_recv(&mut self) -> Poll<Option<Result<T, ReadError>>> {
        self.link.poll(None)
    }

    /// The next item, or a wake-up when it is there.
    pub fn poll_recv(&mut self, cx: &Context<'_>) -> Poll<Option<Result<T, ReadError>>> {
        let cx = &mut Context::from_waker(cx.waker());
        charged(cx, |cx| self.link.poll(Some(cx.waker())))
    }
}

impl<T> Stream for Reader<T> {
    type Item = Result<T, ReadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        charged(cx, |cx| self.link.poll(Some(cx.waker())))
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        self.link.cancel();
    }
}

impl<T> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("waiting", &self.len())
            .field("window", &self.window())
            .finish_non_exhaustive()
    }
}
