//! The sources of an incarnation.

use std::sync::Arc;

use super::SourceState;
use crate::exit::Exit;

/// A source without the type of its items.
trait ErasedSource: Send + Sync {
    fn is_over(&self) -> bool;
    fn set_exit_reason(&self, exit: &Exit);
    fn end(&self);
}

/// Ends the sources of an incarnation with it, including those that are held elsewhere.
#[derive(Default)]
pub(crate) struct OwnedSources(Option<Box<OwnedSourceList>>);

/// Boxed, because most actors have no sources.
#[derive(Default)]
struct OwnedSourceList {
    sources: Vec<Arc<dyn ErasedSource>>,
}

impl OwnedSources {
    pub(super) fn add<T: Send + 'static>(&mut self, source: Arc<SourceState<T>>) {
        let sources = &mut self.0.get_or_insert_default().sources;
        // Ended sources are removed only when the vector is full, and the capacity is then doubled,
        // so the cost per call is constant on average.
        if sources.len() == sources.capacity() {
            sources.retain(|source| !source.is_over());
            sources.reserve(sources.len() + 1);
        }
        sources.push(source);
    }

    /// Records why the incarnation is ending. Its last hook may still send items.
    pub(crate) fn set_exit_reason(&self, exit: &Exit) {
        let sources = self.0.iter().flat_map(|owned| &owned.sources);
        sources.for_each(|source| source.set_exit_reason(exit));
    }
}

impl Drop for OwnedSources {
    fn drop(&mut self) {
        let sources = self.0.iter().flat_map(|owned| &owned.sources);
        sources.for_each(|source| source.end());
    }
}

impl<T: Send + 'static> ErasedSource for SourceState<T> {
    fn is_over(&self) -> bool {
        self.links.lock().ended
    }

    fn set_exit_reason(&self, exit: &Exit) {
        self.links.lock().cause = Some(exit.clone());
    }

    fn end(&self) {
        let links = self.links.lock();
        if links.ended {
            return;
        }
        // Without an exit, the task of the actor was dropped because the runtime is shutting down.
        let exit = links.cause.clone().unwrap_or(Exit::Killed);
        drop(links);
        self.end(Some(&self.read_error(exit)));
    }
}
