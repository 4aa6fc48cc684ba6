//! The dispatcher near a thread: the one that the thread ran last.
//!
//! A task that starts or stops an actor is likely to wait for it. If the dispatcher that this
//! thread ran last also runs the actor, the actor shares its processor and caches with the task
//! that waits.

use std::cell::Cell;

use tokio::runtime::Id;

struct ThreadAffinity {
    /// The runtime for which this thread works.
    runtime: Cell<Option<Id>>,
    /// Number of the dispatcher that this thread ran last.
    dispatcher: Cell<usize>,
}

thread_local! {
    static LAST_DISPATCHER: ThreadAffinity = const {
        ThreadAffinity {
            runtime: Cell::new(None),
            dispatcher: Cell::new(0),
        }
    };
}

/// Records that this thread works for a runtime, and runs this dispatcher now.
pub(super) fn set(runtime: Option<Id>, dispatcher: usize) {
    LAST_DISPATCHER.with(|local| {
        local.runtime.set(runtime);
        local.dispatcher.set(dispatcher);
    });
}

/// Returns the number of the dispatcher that this thread ran last, if it works for this
/// runtime.
pub(super) fn dispatcher(runtime: Option<Id>) -> Option<usize> {
    let dispatcher = LAST_DISPATCHER.try_with(|local| {
        let works = runtime.is_some() && local.runtime.get() == runtime;
        works.then(|| local.dispatcher.get())
    });
    dispatcher.ok().flatten()
}
