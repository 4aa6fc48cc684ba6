//! The span of an incarnation.

use tracing::level_filters::LevelFilter;

use super::{Node, SPANNED};

impl Node {
    /// Makes the span of an incarnation, if somebody listens: a root, or spans would nest for as
    /// long as actors start actors.
    #[inline]
    pub(crate) fn open_span(&self) {
        // Asked first: with no listener, this is all there is to do.
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
            self.life.lock().more().span = Some(span);
            self.marks.set(SPANNED);
        }
    }

    /// Whether the incarnation has a span.
    pub(crate) fn has_span(&self) -> bool {
        self.marks.has(SPANNED)
    }

    /// The span to be in while the incarnation runs; with no listener it costs a look at a word
    /// that is read anyway.
    #[inline(always)]
    pub(crate) fn span(&self) -> Option<tracing::Span> {
        match self.marks.has(SPANNED) {
            false => None,
            true => self.kept_span(),
        }
    }

    #[cold]
    fn kept_span(&self) -> Option<tracing::Span> {
        self.life.lock().more.as_ref()?.span.clone()
    }

    /// Ends the span with its incarnation.
    pub(super) fn leave_span(&self) {
        if self.marks.has(SPANNED) {
            drop(self.close_span());
        }
    }

    fn close_span(&self) -> Option<tracing::Span> {
        self.marks.clear(SPANNED);
        self.life.lock().more.as_mut()?.span.take()
    }
}
