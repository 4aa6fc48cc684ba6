//! What a source and one of its readers share.
//!
//! Locks are taken in one order: the links of a source, a link, the hub. Wakers and replies are
//! called, and items dropped, when none is held that a reader needs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use super::ReadError;
use super::flow::{Inlet, Lag, Offer, Outlet};
use crate::exit::discard;
use crate::reply::Reply;

/// A reader's queue with the books of both sides.
pub(super) struct Link<T> {
    state: Mutex<State<T>>,
    pub(super) hub: Arc<Hub>,
}

struct State<T> {
    outlet: Outlet,
    inlet: Inlet,
    /// Each item with how many were missed before it.
    queue: VecDeque<(u64, T)>,
    end: Option<End>,
    /// Whether the reader is gone.
    cancelled: bool,
    waker: Option<Waker>,
}

/// The end of a stream, after what still waits for the reader.
struct End {
    missed: u64,
    /// `None` where the source said that all was sent.
    why: Option<ReadError>,
}

/// What a source learns of its readers.
#[derive(Default)]
pub(super) struct Hub(Mutex<Readers>);

#[derive(Default)]
struct Readers {
    connected: usize,
    /// Those without credit, for whom a source that waits has to wait.
    blocking: usize,
    waker: Option<Waker>,
    ready: Option<Reply<()>>,
    idle: Option<Reply<()>>,
}

/// Whom a change concerns, to be told without a lock.
#[derive(Default)]
#[must_use = "those who wait are to be told"]
pub(super) struct Calls {
    wakers: [Option<Waker>; 2],
    replies: [Option<Reply<()>>; 2],
}

impl Calls {
    pub(super) fn make(self) {
        self.wakers.into_iter().flatten().for_each(Waker::wake);
        let replies = self.replies.into_iter().flatten();
        replies.for_each(|reply| reply.send(()));
    }
}

impl Hub {
    pub(super) fn connected(&self) -> usize {
        self.0.lock().connected
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.0.lock().blocking > 0
    }

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

    /// Answers when no reader blocks; the reply that waited before is dropped.
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

    /// Answers when no reader is left; the reply that waited before is dropped.
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

    fn unblock(&self) -> Calls {
        self.0.lock().unblock()
    }

    fn disconnect(&self, blocking: bool) -> Calls {
        let mut readers = self.0.lock();
        readers.connected -= 1;
        let mut calls = if blocking {
            readers.unblock()
        } else {
            Calls::default()
        };
        if readers.connected == 0 {
            calls.replies[1] = readers.idle.take();
        }
        calls
    }

    /// Nobody waits for a source that is gone; its replies are dropped.
    pub(super) fn close(&self) {
        let mut readers = self.0.lock();
        let replies = [readers.ready.take(), readers.idle.take()];
        drop(readers);
        drop(replies);
    }
}

impl Readers {
    fn unblock(&mut self) -> Calls {
        self.blocking -= 1;
        let mut calls = Calls::default();
        if self.blocking == 0 {
            calls.wakers[0] = self.waker.take();
            calls.replies[0] = self.ready.take();
        }
        calls
    }
}

/// What became of an item for one reader.
pub(super) enum Delivered {
    Yes,
    Missed,
    Disconnected,
    /// The reader had gone.
    Gone,
}

impl<T> Link<T> {
    pub(super) fn new(hub: &Arc<Hub>, lag: Lag, window: u32, limit: u32) -> Self {
        let mut outlet = Outlet::new(lag, limit);
        let mut inlet = Inlet::new(window.min(limit));
        let granted = outlet.grant(inlet.refill());
        debug_assert!(granted.is_ok(), "a window is at most the limit");
        hub.connect();
        Self {
            state: Mutex::new(State {
                outlet,
                inlet,
                queue: VecDeque::new(),
                end: None,
                cancelled: false,
                waker: None,
            }),
            hub: Arc::clone(hub),
        }
    }

    /// Offers an item. It is cloned by the caller, who holds no lock that foreign code may want.
    pub(super) fn offer(&self, item: T) -> Delivered {
        let mut state = self.state.lock();
        if state.cancelled || state.end.is_some() {
            return Delivered::Gone;
        }
        let missed = match state.outlet.offer() {
            Offer::Send { missed } => missed,
            Offer::Miss => return Delivered::Missed,
            // The source asked before that nobody blocks it, and is the only one that sends.
            Offer::Wait => return Delivered::Gone,
            Offer::Disconnect => {
                let calls = state.finish(&self.hub, Some(ReadError::Disconnected));
                drop(state);
                calls.make();
                return Delivered::Disconnected;
            }
        };
        let arrived = state.inlet.arrived();
        debug_assert!(arrived.is_ok(), "both books are in one place");
        state.queue.push_back((missed, item));
        if state.outlet.credit() == 0 {
            self.hub.block();
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Delivered::Yes
    }

    /// Whether nothing can come of it for the source any more.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.cancelled || state.end.is_some()
    }

    pub(super) fn is_blocking(&self) -> bool {
        let state = self.state.lock();
        !state.cancelled && state.end.is_none() && state.outlet.credit() == 0
    }

    /// Ends the stream for this reader, after what waits for it; false when it had ended.
    pub(super) fn end(&self, why: Option<ReadError>) -> bool {
        let mut state = self.state.lock();
        if state.cancelled || state.end.is_some() {
            return false;
        }
        let calls = state.finish(&self.hub, why);
        drop(state);
        calls.make();
        true
    }

    /// The reader's next item.
    pub(super) fn poll(&self, waker: Option<&Waker>) -> Poll<Option<Result<T, ReadError>>> {
        let mut state = self.state.lock();
        if let Some((missed, _)) = state.queue.front_mut() {
            let count = std::mem::take(missed);
            if count > 0 {
                return Poll::Ready(Some(Err(ReadError::Missed { count })));
            }
        }
        if let Some((_, item)) = state.queue.pop_front() {
            state.inlet.taken();
            let calls = state.refill(&self.hub);
            drop(state);
            calls.make();
            return Poll::Ready(Some(Ok(item)));
        }
        if let Some(End { missed, why }) = &mut state.end {
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

    /// Changes the reader's window.
    pub(super) fn resize(&self, window: u32, limit: u32) {
        let mut state = self.state.lock();
        state.inlet.resize(window.min(limit));
        let calls = state.refill(&self.hub);
        drop(state);
        calls.make();
    }

    pub(super) fn window(&self) -> u32 {
        self.state.lock().inlet.window()
    }

    /// How many items wait for the reader, and how many it missed in all.
    pub(super) fn figures(&self) -> (usize, u64) {
        let state = self.state.lock();
        (state.queue.len(), state.outlet.missed())
    }

    /// The reader is gone.
    pub(super) fn cancel(&self) {
        let mut state = self.state.lock();
        state.cancelled = true;
        let queue = std::mem::take(&mut state.queue);
        let calls = if state.end.is_none() {
            self.hub.disconnect(state.outlet.credit() == 0)
        } else {
            Calls::default()
        };
        drop(state);
        calls.make();
        discard(queue);
    }
}

impl<T> State<T> {
    fn finish(&mut self, hub: &Hub, why: Option<ReadError>) -> Calls {
        let missed = self.outlet.report();
        self.end = Some(End { missed, why });
        let mut calls = hub.disconnect(self.outlet.credit() == 0);
        calls.wakers[1] = self.waker.take();
        calls
    }

    fn refill(&mut self, hub: &Hub) -> Calls {
        let credit = self.inlet.refill();
        if credit == 0 || self.end.is_some() {
            return Calls::default();
        }
        let blocked = self.outlet.credit() == 0;
        let granted = self.outlet.grant(credit);
        debug_assert!(granted.is_ok(), "a window is at most the limit");
        if blocked {
            hub.unblock()
        } else {
            Calls::default()
        }
    }
}
