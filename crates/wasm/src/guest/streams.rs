//! The streams of a component: those that it reads, and those that others read from it.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger::{PipeId, Reply, SendError, Source};

use crate::component::Opening;
use crate::contract::{Payload, Refusal};

/// Streams by their tokens.
#[derive(Default)]
pub(crate) struct Streams {
    /// Those that the call under way asked for. Never locked: they are not to be shared.
    opening: Mutex<Vec<(u64, Opening)>>,
    /// Those that it reads, with what brings the next item.
    reading: FxHashMap<u64, Option<PipeId>>,
    /// What brings items that nobody wants any more.
    closed: Vec<PipeId>,
    /// Those that others read.
    served: FxHashMap<u64, Source<Payload>>,
    /// Of these, those that had no room when the call under way wanted some.
    full: Vec<u64>,
}

impl Streams {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.reading.len() + self.served.len()
    }

    /// Whether the last call left nothing to do.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.opening.get_mut().is_empty() && self.closed.is_empty() && self.full.is_empty()
    }

    pub(super) fn open(&mut self, token: u64, opening: Opening) {
        self.reading.insert(token, None);
        self.opening.get_mut().push((token, opening));
    }

    pub(crate) fn take_opening(&mut self) -> Vec<(u64, Opening)> {
        std::mem::take(self.opening.get_mut())
    }

    pub(crate) fn take_closed(&mut self) -> Vec<PipeId> {
        std::mem::take(&mut self.closed)
    }

    /// Whether this one is read.
    pub(crate) fn reads(&self, token: u64) -> bool {
        self.reading.contains_key(&token)
    }

    /// Notes what brings the next item.
    pub(crate) fn reads_by(&mut self, token: u64, pipe: PipeId) {
        match self.reading.get_mut(&token) {
            Some(noted) => *noted = Some(pipe),
            // Opened and closed in one call.
            None => self.closed.push(pipe),
        }
    }

    pub(super) fn close(&mut self, token: u64) -> Result<(), Refusal> {
        let pipe = self.reading.remove(&token).ok_or(Refusal::Unknown)?;
        self.closed.extend(pipe);
        Ok(())
    }

    /// Others may read this one from now on.
    pub(crate) fn serve(&mut self, token: u64, source: Source<Payload>) {
        self.served.insert(token, source);
    }

    /// Says who is told that nobody reads it.
    pub(crate) fn when_unread(&self, token: u64, gone: Reply<()>) {
        if let Some(source) = self.served.get(&token) {
            source.when_idle(gone);
        }
    }

    /// Whether somebody reads it; nothing if it is not there to be read.
    pub(crate) fn is_read(&self, token: u64) -> Option<bool> {
        self.served
            .get(&token)
            .map(|source| source.info().readers > 0)
    }

    pub(super) fn send(&mut self, token: u64, payload: Payload) -> Result<(), Refusal> {
        let source = self.served.get_mut(&token).ok_or(Refusal::Unknown)?;
        match source.try_send(payload) {
            Ok(_) => Ok(()),
            Err(SendError::Closed(_)) => Err(Refusal::Closed),
            Err(_) => {
                if !self.full.contains(&token) {
                    self.full.push(token);
                }
                Err(Refusal::Full)
            }
        }
    }

    pub(super) fn finish(&mut self, token: u64) -> Result<(), Refusal> {
        let source = self.served.remove(&token).ok_or(Refusal::Unknown)?;
        source.finish();
        Ok(())
    }

    /// Asks to be told when there is room where it was missing.
    pub(crate) fn ask_for_room(&mut self, mut reply: impl FnMut(u64) -> Reply<()>) {
        for token in self.full.drain(..) {
            if let Some(source) = self.served.get(&token) {
                source.when_ready(reply(token));
            }
        }
    }

    /// A stream is over.
    pub(crate) fn end(&mut self, token: u64) {
        self.reading.remove(&token);
        self.served.remove(&token);
    }

    /// Takes over those of another version.
    pub(super) fn succeed(&mut self, old: &mut Self) {
        self.reading.extend(old.reading.drain());
        self.served.extend(old.served.drain());
    }
}
