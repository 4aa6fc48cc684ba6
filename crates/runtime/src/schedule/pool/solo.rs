//! Threads of actors that block.

use std::io;
use std::sync::Arc;
use std::thread;

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;

use crate::path::Path;
use crate::schedule::strand::Ready;
use crate::sync::{Condvar, Mutex, wait};

/// Marks the places of those who have a thread.
const SOLO: u32 = 1 << 31;

pub(super) const fn is_solo(place: u32) -> bool {
    place & SOLO != 0
}

/// All threads of one pool, by place.
#[derive(Default)]
pub(super) struct Solos {
    all: FxHashMap<u32, Arc<Solo>>,
    next: u32,
}

impl Solos {
    /// Starts a thread that runs whom it is given until its place is given up.
    pub(super) fn start(&mut self, path: &Path, handle: &Handle) -> io::Result<u32> {
        let place = self.next | SOLO;
        let solo = Arc::new(Solo::default());
        let (runner, inside) = (Arc::clone(&solo), handle.clone());
        // Its owner is the incarnation: the thread ends when that gives its place up.
        let thread = thread::Builder::new().name(path.as_str().replace('\0', "?"));
        drop(thread.spawn(move || {
            let _inside = inside.enter();
            runner.run();
        })?);
        self.all.insert(place, solo);
        self.next += 1;
        Ok(place)
    }

    pub(super) fn get(&self, place: u32) -> Option<Arc<Solo>> {
        self.all.get(&place).cloned()
    }

    pub(super) fn end(&mut self, place: u32) {
        if let Some(solo) = self.all.remove(&place) {
            solo.end();
        }
    }

    /// Ends all threads; returns what they would have run, to be dropped outside the lock.
    pub(super) fn end_all(&mut self) -> Vec<Ready> {
        let all = self.all.drain();
        all.filter_map(|(_, solo)| solo.end()).collect()
    }
}

/// One thread, and the actor that it is given again and again.
#[derive(Default)]
pub(super) struct Solo {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    ready: Option<Ready>,
    over: bool,
}

impl Solo {
    /// Has the thread run the actor. One that comes when the thread has ended is dropped.
    pub(super) fn push(&self, ready: Ready) {
        let mut state = self.state.lock();
        if state.over {
            drop(state);
            drop(ready);
            return;
        }
        state.ready = Some(ready);
        drop(state);
        self.bell.notify_one();
    }

    pub(super) fn end(&self) -> Option<Ready> {
        let mut state = self.state.lock();
        state.over = true;
        let left = state.ready.take();
        drop(state);
        self.bell.notify_one();
        left
    }

    /// Runs what it is given until it has ended.
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
                state = wait(&self.bell, state);
            };
            drop(state);
            if let Some(again) = ready.run() {
                self.push(again);
            }
        }
    }
}
