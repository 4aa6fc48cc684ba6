//! The threads of actors that block.

use std::io;
use std::sync::Arc;
use std::thread;

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;

use crate::path::ActorPath;
use crate::schedule::strand::Runnable;
use crate::sync::{Condvar, Mutex, Weakening, wait, weakened};

/// Marks the places of actors that have a thread of their own.
const BLOCKING_BIT: u32 = 1 << 31;

pub(super) const fn is_blocking(place: u32) -> bool {
    place & BLOCKING_BIT != 0
}

/// All blocking threads of one pool, by place.
#[derive(Default)]
pub(super) struct BlockingThreads {
    all: FxHashMap<u32, Arc<BlockingThread>>,
    next: u32,
}

impl BlockingThreads {
    /// Starts a thread that runs what it is given until its place is released.
    pub(super) fn start(&mut self, path: &ActorPath, handle: &Handle) -> io::Result<u32> {
        let place = self.next | BLOCKING_BIT;
        let thread = Arc::new(BlockingThread::default());
        let (runner, inside) = (Arc::clone(&thread), handle.clone());
        // The incarnation owns it: the thread ends when the incarnation releases its place.
        let builder = thread::Builder::new().name(path.as_str().replace('\0', "?"));
        drop(builder.spawn(move || {
            let _inside = inside.enter();
            runner.run();
        })?);
        self.all.insert(place, thread);
        self.next += 1;
        Ok(place)
    }

    pub(super) fn get(&self, place: u32) -> Option<Arc<BlockingThread>> {
        self.all.get(&place).cloned()
    }

    pub(super) fn end(&mut self, place: u32) {
        if let Some(thread) = self.all.remove(&place) {
            thread.end();
        }
    }

    /// Ends all threads; returns the actors that they would have run, to be dropped outside the
    /// lock.
    pub(super) fn end_all(&mut self) -> Vec<Runnable> {
        let all = self.all.drain();
        all.filter_map(|(_, thread)| thread.end()).collect()
    }
}

/// One thread, and the actor that it runs again and again.
#[derive(Default)]
pub(super) struct BlockingThread {
    state: Mutex<ThreadState>,
    condvar: Condvar,
}

#[derive(Default)]
struct ThreadState {
    ready: Option<Runnable>,
    over: bool,
}

impl BlockingThread {
    /// Lets the thread run the actor. If the thread has ended, the `Runnable` is dropped.
    pub(super) fn push(&self, ready: Runnable) {
        let mut state = self.state.lock();
        if state.over {
            drop(state);
            drop(ready);
            return;
        }
        state.ready = Some(ready);
        drop(state);
        if !weakened(Weakening::PushWakesBlockingThread) {
            self.condvar.notify_one();
        }
    }

    pub(super) fn end(&self) -> Option<Runnable> {
        let mut state = self.state.lock();
        state.over = true;
        let left = state.ready.take();
        drop(state);
        self.condvar.notify_one();
        left
    }

    /// Runs what it is given until it is told to end.
    pub(super) fn run(&self) {
        loop {
            let mut state = self.state.lock();
            let ready = loop {
                if state.over {
                    return;
                }
                if let Some(ready) = state.ready.take() {
                    break ready;
                }
                state = wait(&self.condvar, state);
            };
            drop(state);
            if let Some(again) = ready.run() {
                self.push(again);
            }
        }
    }
}
