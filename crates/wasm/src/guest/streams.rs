//! The streams of a component: those that it reads, and those that others read from it.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger::{PipeId, Reply, SendError, Source};

use crate::component::OpeningStream;
use crate::contract::{Payload, Refusal};

/// The streams of a component by token.
#[derive(Default)]
pub(crate) struct ComponentStreams {
    /// Streams requested in the current call. The mutex only makes the type `Sync`; it is accessed
    /// through `get_mut` and never locked.
    opening: Mutex<Vec<(u64, OpeningStream)>>,
    /// Streams that the component reads, with the pipe that brings the next item.
    reading: FxHashMap<u64, Option<PipeId>>,
    /// Pipes of streams that were closed.
    closed: Vec<PipeId>,
    /// Streams that others read.
    served: FxHashMap<u64, Source<Payload>>,
    /// Tokens of those that were full in the current call.
    full: Vec<u64>,
}

impl ComponentStreams {
    /// Returns the number of streams.
    pub(crate) fn len(&self) -> usize {
        self.reading.len() + self.served.len()
    }

    /// Returns `true` if the last call left nothing to do.
    pub(crate) fn is_settled(&mut self) -> bool {
        self.opening.get_mut().is_empty() && self.closed.is_empty() && self.full.is_empty()
    }

    pub(super) fn open(&mut self, token: u64, opening: OpeningStream) {
        self.reading.insert(token, None);
        self.opening.get_mut().push((token, opening));
    }

    pub(crate) fn take_opening(&mut self) -> Vec<(u64, OpeningStream)> {
        std::mem::take(self.opening.get_mut())
    }

    pub(crate) fn take_closed(&mut self) -> Vec<PipeId> {
        std::mem::take(&mut self.closed)
    }

    /// Returns `true` if the component reads this stream.
    pub(crate) fn is_reading(&self, token: u64) -> bool {
        self.reading.contains_key(&token)
    }

    /// Records the pipe that brings the next item.
    pub(crate) fn set_pipe(&mut self, token: u64, pipe: PipeId) {
        match self.reading.get_mut(&token) {
            Some(entry) => *entry = Some(pipe),
            // The stream was opened and closed in one call.
            None => self.closed.push(pipe),
        }
    }

    pub(super) fn close(&mut self, token: u64) -> Result<(), Refusal> {
        let pipe = self.reading.remove(&token).ok_or(Refusal::Unknown)?;
        self.closed.extend(pipe);
        Ok(())
    }

    /// Adds a stream that others read.
    pub(crate) fn serve(&mut self, token: u64, source: Source<Payload>) {
        self.served.insert(token, source);
    }

    /// Sets the reply to send when the stream has no reader any more.
    pub(crate) fn notify_when_unread(&self, token: u64, gone: Reply<()>) {
        if let Some(source) = self.served.get(&token) {
            source.notify_when_idle(gone);
        }
    }

    /// Returns `true` if the stream has a reader; `None` if it is not served.
    pub(crate) fn has_reader(&self, token: u64) -> Option<bool> {
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

    /// Requests a notification for each stream that was full, when it has space again.
    pub(crate) fn request_ready(&mut self, mut reply: impl FnMut(u64) -> Reply<()>) {
        for token in self.full.drain(..) {
            if let Some(source) = self.served.get(&token) {
                source.notify_when_ready(reply(token));
            }
        }
    }

    /// Removes a stream that has ended.
    pub(crate) fn end(&mut self, token: u64) {
        self.reading.remove(&token);
        self.served.remove(&token);
    }

    /// Takes over the streams of another version.
    pub(super) fn take_over(&mut self, old: &mut Self) {
        self.reading.extend(old.reading.drain());
        self.served.extend(old.served.drain());
    }
}
