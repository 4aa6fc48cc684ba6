//! The span of an incarnation.

use tracing::level_filters::LevelFilter;

use super::{ActorCore, SPANNED};

impl ActorCore {
    /// Creates the span of an incarnation, if a subscriber listens. It is a root; otherwise spans
    /// would nest for as long as actors start actors.
    #[inline]
    pub(crate) fn open_span(&self) {
        // Checked first: without a subscriber, this is all there is to do.
        if LevelFilter::current() >= LevelFilter::DEBUG {
            self.make_span();
        }
    }

    #[cold]
    fn make_span(&self) {
        let span = tracing::debug_span!(
            target: "strowger",
            parent: None,
            "actor",
            path = %self.path(),
            id = %self.id,
            restarts = self.restarts(),
        );
        if !span.is_disabled() {
            self.state.lock().cold_mut().span = Some(span);
            self.flags.set(SPANNED);
        }
    }

    /// Returns `true` if the incarnation has a span.
    pub(crate) fn has_span(&self) -> bool {
        self.flags.intersects(SPANNED)
    }

    /// Returns the span to enter while the incarnation runs. Without a subscriber, this costs a
    /// look at a word that is read anyway.
    #[inline(always)]
    pub(crate) fn span(&self) -> Option<tracing::Span> {
        match self.flags.intersects(SPANNED) {
            false => None,
            true => self.stored_span(),
        }
    }

    #[cold]
    fn stored_span(&self) -> Option<tracing::Span> {
        self.state.lock().cold.as_ref()?.span.clone()
    }

    /// Ends the span together with its incarnation.
    pub(super) fn end_span(&self) {
        if self.flags.intersects(SPANNED) {
            drop(self.close_span());
        }
    }

    fn close_span(&self) -> Option<tracing::Span> {
        self.flags.clear(SPANNED);
        self.state.lock().cold.as_mut()?.span.take()
    }
}
