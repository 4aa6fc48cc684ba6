//! The receiving end of a stream.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::link::ReaderLink;
use crate::budget::charge_poll;
use crate::exit::Exit;
use crate::path::ActorPath;

/// An error that a reader gets in place of an item. Every error except [`ReadError::Missed`] ends
/// the stream.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The reader was too slow and missed items. The stream continues.
    #[error("missed {count} items")]
    Missed {
        /// Number of items missed at this point.
        count: u64,
    },
    /// The reader was too slow and was disconnected.
    #[error("disconnected: the reader is too slow")]
    Disconnected,
    /// The source ended the stream with an error.
    #[error("the source failed: {error}")]
    Failed {
        /// The error passed to [`Source::fail`](crate::Source::fail).
        error: Arc<dyn Error + Send + Sync>,
    },
    /// The incarnation that owns the source ended before the stream did. The next incarnation has
    /// another source.
    #[error("{path} ended before the stream: {exit}")]
    Ended {
        /// The path of the source's actor.
        path: ActorPath,
        /// The exit of the incarnation.
        exit: Exit,
    },
    /// The source was dropped before the stream was finished. This is also the error if a hook
    /// drops the source and fails afterwards, as with a [`Reply`](crate::Reply); to give a reason,
    /// call [`Source::fail`](crate::Source::fail).
    #[error("the source was dropped before the stream was finished")]
    Dropped,
}

/// The receiving end of a stream, created with [`Source::reader`](crate::Source::reader). It may be
/// read on any thread or task.
///
/// The reader grants credit by itself: its window at first, and enough to fill the window whenever
/// half of it has been read. Dropping the reader cancels the stream: the source is informed and
/// sends it no more items.
pub struct Reader<T> {
    link: Arc<ReaderLink<T>>,
    max_window: u32,
}

impl<T> Reader<T> {
    pub(super) const fn new(link: Arc<ReaderLink<T>>, max_window: u32) -> Self {
        Self { link, max_window }
    }

    /// Changes the window, which is the number of items that may be queued for this reader. It is
    /// at least one and at most what the source allows.
    #[must_use]
    pub fn with_window(self, items: u32) -> Self {
        self.set_window(items);
        self
    }

    /// Changes the window in the middle of a stream, as [`Reader::with_window`] does. If the window
    /// shrinks, no item is dropped: less credit is granted until the items fit.
    pub fn set_window(&self, items: u32) {
        self.link.resize(items, self.max_window);
    }

    /// Returns the number of items that may be queued for this reader.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.link.window()
    }

    /// Returns the number of queued items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.link.counts().0
    }

    /// Returns `true` if no items are queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total number of items that the reader missed.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.link.counts().1
    }

    /// Waits for the next item; returns `None` after the last. Dropping the future loses no item.
    pub async fn recv(&mut self) -> Option<Result<T, ReadError>> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Returns the next item if one is queued, `Ready(None)` after the last, and `Pending` if
    /// nothing is queued at present. No waker is registered.
    pub fn try_recv(&mut self) -> Poll<Option<Result<T, ReadError>>> {
        self.link.poll(None)
    }

    /// Polls for the next item and registers the waker if none is queued.
    pub fn poll_recv(&mut self, cx: &Context<'_>) -> Poll<Option<Result<T, ReadError>>> {
        let cx = &mut Context::from_waker(cx.waker());
        charge_poll(cx, |cx| self.link.poll(Some(cx.waker())))
    }
}

impl<T> Stream for Reader<T> {
    type Item = Result<T, ReadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        charge_poll(cx, |cx| self.link.poll(Some(cx.waker())))
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
