//! The state shared by a source and one of its readers.
//!
//! Locks are taken in a fixed order: the links of a source, then a link, then the reader set.
//! Wakers and replies are called, and items are dropped, while no lock is held that a reader needs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use super::ReadError;
use super::flow::{ReceiverCredit, SendDecision, SenderCredit, SlowReader};
use crate::exit::drop_all_caught;
use crate::reply::Reply;

/// A reader's queue, with the flow-control state of both sides.
pub(super) struct ReaderLink<T> {
    state: Mutex<LinkState<T>>,
    pub(super) reader_set: Arc<ReaderSet>,
}

struct LinkState<T> {
    outlet: SenderCredit,
    inlet: ReceiverCredit,
    /// Each item with the number of items missed before it.
    queue: VecDeque<(u64, T)>,
    end: Option<StreamEnd>,
    /// `true` if the reader was dropped.
    cancelled: bool,
    waker: Option<Waker>,
}

/// The end of a stream, which the reader gets after the queued items.
struct StreamEnd {
    missed: u64,
    /// `None` if the source finished the stream.
    error: Option<ReadError>,
}

/// The state of all readers of a source.
#[derive(Default)]
pub(super) struct ReaderSet(Mutex<ReaderCounts>);

#[derive(Default)]
struct ReaderCounts {
    /// Number of readers that have neither ended nor been dropped.
    connected: usize,
    /// Number of readers without credit, which a source with [`SlowReader::Wait`] has to wait for.
    blocking: usize,
    waker: Option<Waker>,
    ready: Option<Reply<()>>,
    idle: Option<Reply<()>>,
}

/// Wakers and replies to call after a change, once the lock is released.
#[derive(Default)]
#[must_use = "the wakeups must be run after the lock is released"]
pub(super) struct DeferredWakeups {
    wakers: [Option<Waker>; 2],
    replies: [Option<Reply<()>>; 2],
}

impl DeferredWakeups {
    pub(super) fn run(self) {
        self.wakers.into_iter().flatten().for_each(Waker::wake);
        let replies = self.replies.into_iter().flatten();
        replies.for_each(|reply| reply.send(()));
    }
}

impl ReaderSet {
    pub(super) fn connected(&self) -> usize {
        self.0.lock().connected
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.0.lock().blocking > 0
    }

    /// Waits until no reader blocks the source, which waits in one place at a time.
    pub(super) fn poll_ready(&self, waker: &Waker) -> Poll<()> {
        let mut readers = self.0.lock();
        if readers.blocking == 0 {
            return Poll::Ready(());
        }
        let old = readers.waker.replace(waker.clone());
        drop(readers);
        drop(old);
        Poll::Pending
    }

    /// Sends `reply` when no reader blocks the source. A reply that was waiting before is dropped.
    pub(super) fn when_ready(&self, reply: Reply<()>) {
        let mut readers = self.0.lock();
        if readers.blocking == 0 {
            drop(readers);
            reply.send(());
            return;
        }
        let old = readers.ready.replace(reply);
        drop(readers);
        drop(old);
    }

    /// Sends `reply` when no readers are left. A reply that was waiting before is dropped.
    pub(super) fn when_idle(&self, reply: Reply<()>) {
        let mut readers = self.0.lock();
        if readers.connected == 0 {
            drop(readers);
            reply.send(());
            return;
        }
        let old = readers.idle.replace(reply);
        drop(readers);
        drop(old);
    }

    fn connect(&self) {
        self.0.lock().connected += 1;
    }

    fn block(&self) {
        self.0.lock().blocking += 1;
    }

    fn unblock(&self) -> DeferredWakeups {
        self.0.lock().unblock()
    }

    fn disconnect(&self, blocking: bool) -> DeferredWakeups {
        let mut readers = self.0.lock();
        readers.connected -= 1;
        let mut calls = if blocking {
            readers.unblock()
        } else {
            DeferredWakeups::default()
        };
        if readers.connected == 0 {
            calls.replies[1] = readers.idle.take();
        }
        calls
    }

    /// Drops the replies that are waiting: the source is gone.
    pub(super) fn close(&self) {
        let mut readers = self.0.lock();
        let replies = [readers.ready.take(), readers.idle.take()];
        drop(readers);
        drop(replies);
    }
}

impl ReaderCounts {
    fn unblock(&mut self) -> DeferredWakeups {
        self.blocking -= 1;
        let mut calls = DeferredWakeups::default();
        if self.blocking == 0 {
            calls.wakers[0] = self.waker.take();
            calls.replies[0] = self.ready.take();
        }
        calls
    }
}

/// The outcome of offering an item to one reader.
pub(super) enum OfferOutcome {
    Queued,
    Missed,
    Disconnected,
    /// The reader had been dropped, or its stream had ended.
    Gone,
}

impl<T> ReaderLink<T> {
    pub(super) fn new(
        reader_set: &Arc<ReaderSet>,
        lag: SlowReader,
        window: u32,
        limit: u32,
    ) -> Self {
        let mut outlet = SenderCredit::new(lag, limit);
        let mut inlet = ReceiverCredit::new(window.min(limit));
        let granted = outlet.grant(inlet.take_grant());
        debug_assert!(granted.is_ok(), "a window is at most the limit");
        reader_set.connect();
        Self {
            state: Mutex::new(LinkState {
                outlet,
                inlet,
                queue: VecDeque::new(),
                end: None,
                cancelled: false,
                waker: None,
            }),
            reader_set: Arc::clone(reader_set),
        }
    }

    /// Offers an item. The caller clones it beforehand, because cloning runs user code, which must
    /// not run under the lock of a link.
    pub(super) fn offer(&self, item: T) -> OfferOutcome {
        let mut state = self.state.lock();
        if state.cancelled || state.end.is_some() {
            return OfferOutcome::Gone;
        }
        let missed = match state.outlet.decide() {
            SendDecision::Send { missed } => missed,
            SendDecision::Miss => return OfferOutcome::Missed,
            // The source has checked that no reader blocks it, and it is the only sender.
            SendDecision::Wait => return OfferOutcome::Gone,
            SendDecision::Disconnect => {
                let calls = state.finish(&self.reader_set, Some(ReadError::Disconnected));
                drop(state);
                calls.run();
                return OfferOutcome::Disconnected;
            }
        };
        let arrived = state.inlet.on_item();
        debug_assert!(arrived.is_ok(), "both books are in one place");
        state.queue.push_back((missed, item));
        if state.outlet.credit() == 0 {
            self.reader_set.block();
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        OfferOutcome::Queued
    }

    /// Returns `true` if the source has no further use for the link.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.cancelled || state.end.is_some()
    }

    pub(super) fn is_blocking(&self) -> bool {
        let state = self.state.lock();
        !state.cancelled && state.end.is_none() && state.outlet.credit() == 0
    }

    /// Ends the stream for this reader, after the queued items. Returns `false` if it had ended
    /// before.
    pub(super) fn end(&self, why: Option<ReadError>) -> bool {
        let mut state = self.state.lock();
        if state.cancelled || state.end.is_some() {
            return false;
        }
        let calls = state.finish(&self.reader_set, why);
        drop(state);
        calls.run();
        true
    }

    /// Polls for the reader's next item.
    pub(super) fn poll(&self, waker: Option<&Waker>) -> Poll<Option<Result<T, ReadError>>> {
        let mut state = self.state.lock();
        if let Some((missed, _)) = state.queue.front_mut() {
            let count = std::mem::take(missed);
            if count > 0 {
                return Poll::Ready(Some(Err(ReadError::Missed { count })));
            }
        }
        if let Some((_, item)) = state.queue.pop_front() {
            state.inlet.on_taken();
            let calls = state.refill(&self.reader_set);
            drop(state);
            calls.run();
            return Poll::Ready(Some(Ok(item)));
        }
        if let Some(StreamEnd { missed, error: why }) = &mut state.end {
            let count = std::mem::take(missed);
            if count > 0 {
                return Poll::Ready(Some(Err(ReadError::Missed { count })));
            }
            return Poll::Ready(why.take().map(Err));
        }
        if let Some(waker) = waker {
            let old = state.waker.replace(waker.clone());
            drop(state);
            drop(old);
        }
        Poll::Pending
    }

    /// Changes the window of the reader.
    pub(super) fn resize(&self, window: u32, limit: u32) {
        let mut state = self.state.lock();
        state.inlet.resize(window.min(limit));
        let calls = state.refill(&self.reader_set);
        drop(state);
        calls.run();
    }

    pub(super) fn window(&self) -> u32 {
        self.state.lock().inlet.window()
    }

    /// Returns the number of queued items and the total number of missed items.
    pub(super) fn counts(&self) -> (usize, u64) {
        let state = self.state.lock();
        (state.queue.len(), state.outlet.missed())
    }

    /// Records that the reader was dropped.
    pub(super) fn cancel(&self) {
        let mut state = self.state.lock();
        state.cancelled = true;
        let queue = std::mem::take(&mut state.queue);
        let calls = if state.end.is_none() {
            self.reader_set.disconnect(state.outlet.credit() == 0)
        } else {
            DeferredWakeups::default()
        };
        drop(state);
        calls.run();
        drop_all_caught(queue);
    }
}

impl<T> LinkState<T> {
    fn finish(&mut self, reader_set: &ReaderSet, why: Option<ReadError>) -> DeferredWakeups {
        let missed = self.outlet.take_missed();
        self.end = Some(StreamEnd { missed, error: why });
        let mut calls = reader_set.disconnect(self.outlet.credit() == 0);
        calls.wakers[1] = self.waker.take();
        calls
    }

    fn refill(&mut self, reader_set: &ReaderSet) -> DeferredWakeups {
        let credit = self.inlet.take_grant();
        if credit == 0 || self.end.is_some() {
            return DeferredWakeups::default();
        }
        let blocked = self.outlet.credit() == 0;
        let granted = self.outlet.grant(credit);
        debug_assert!(granted.is_ok(), "a window is at most the limit");
        if blocked {
            reader_set.unblock()
        } else {
            DeferredWakeups::default()
        }
    }
}
