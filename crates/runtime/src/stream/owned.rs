//! The sources of an incarnation.

use std::sync::Arc;

use super::Shared;
use crate::exit::Exit;

/// A source without the type of its items.
trait Ending: Send + Sync {
    fn is_over(&self) -> bool;
    fn explain(&self, exit: &Exit);
    fn end(&self);
}

/// Ends the sources of an incarnation with it, also those that others hold.
#[derive(Default)]
pub(crate) struct OwnedSources(Option<Box<Owned>>);

/// Apart, because most actors have no sources.
#[derive(Default)]
struct Owned {
    sources: Vec<Arc<dyn Ending>>,
}

impl OwnedSources {
    pub(super) fn add<T: Send + 'static>(&mut self, source: Arc<Shared<T>>) {
        let sources = &mut self.0.get_or_insert_default().sources;
        // Looked for when there is no room, and then room is made: little on average.
        if sources.len() == sources.capacity() {
            sources.retain(|source| !source.is_over());
            sources.reserve(sources.len() + 1);
        }
        sources.push(source);
    }

    /// Says why the incarnation is ending; its last hook may still send.
    pub(crate) fn explain(&self, exit: &Exit) {
        let sources = self.0.iter().flat_map(|owned| &owned.sources);
        sources.for_each(|source| source.explain(exit));
    }
}

impl Drop for OwnedSources {
    fn drop(&mut self) {
        let sources = self.0.iter().flat_map(|owned| &owned.sources);
        sources.for_each(|source| source.end());
    }
}

impl<T: Send + 'static> Ending for Shared<T> {
    fn is_over(&self) -> bool {
        self.links.lock().ended
    }

    fn explain(&self, exit: &Exit) {
        self.links.lock().cause = Some(exit.clone());
    }

    fn end(&self) {
        let links = self.links.lock();
        if links.ended {
            return;
        }
        // Without a reason its task was dropped: the runtime is going down.
        let exit = links.cause.clone().unwrap_or(Exit::Killed);
        drop(links);
        self.end(Some(&self.why(exit)));
    }
}
