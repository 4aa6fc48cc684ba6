//! The order in which an actor serves its sources.
//!
//! Sources are served in rounds. A round visits them in this order, and ends with a message:
//!
//! 1. *signals*: exits of monitored actors and of children, ends of tasks, panics in pipes. A visit
//!    serves those that wait when it begins, at most the share.
//! 2. *completions*: answers through lanes and outputs of pipes, in the same way.
//! 3. *timers* that are due: one.
//! 4. *messages*, in the order in which they were sent: one.
//!
//! Before each of these come *orders*: stop, an injected panic, the exit of a linked actor, the
//! panic of a task. The first of them ends the incarnation.
//!
//! The share is 16 items, or an eighth of those that wait if that is more. A source that refills
//! itself thus gets one item for each item of the others, but what one message causes is usually
//! served before the next message: otherwise an actor that asks more than once for each message
//! would collect answers without a bound, while its mailbox keeps its senders waiting for room.
//!
//! A visit that has not begun in this round is made as soon as something waits for it: a signal
//! that arrives while a message is handled comes next.
//!
//! If only messages wait, there are no rounds: the receiver takes them in batches.

use std::mem;

use super::MailboxState;
use crate::seeded_bug::{Bug, seeded};

/// Number of signals or completions that one visit serves, unless very many wait.
const MIN_QUOTA: usize = 16;

/// A visit serves one in this many if that is more than the share.
const QUOTA_DIVISOR: usize = 8;

/// A source of things to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceKind {
    Stop,
    Signals,
    Completions,
    Timers,
    Messages,
}

/// The round at which a receiver is. Every receiver has one, so it is small.
pub(super) struct SourceRotation {
    signals: SourceQuota,
    completions: SourceQuota,
    /// Number of messages that had been taken when the round began, modulo 256. Messages that were
    /// taken in batches since then have ended it. If exactly 256 were, that goes unnoticed, and a
    /// signal may come one message late.
    began_at: u8,
    timer_served: bool,
}

/// A visit to a source that holds several items: the number of items that it may still serve.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SourceQuota(u16);

impl SourceQuota {
    const NOT_BEGUN: Self = Self(u16::MAX);
    const MAX: u16 = u16::MAX - 1;

    /// Takes one of the items that wait. Returns `false` if there is none, or if the visit is over.
    fn take(&mut self, waiting: usize) -> bool {
        if waiting == 0 {
            return false;
        }
        let left = match *self {
            // The quota is fixed when the visit begins: what arrives during the visit waits for the
            // next round.
            Self::NOT_BEGUN => {
                let all = waiting.min(MIN_QUOTA.max(waiting / QUOTA_DIVISOR));
                u16::try_from(all).map_or(Self::MAX, |all| all.min(Self::MAX))
            }
            Self(left) => left,
        };
        let Some(left) = left.checked_sub(1) else {
            return false;
        };
        *self = Self(left);
        true
    }
}

impl SourceRotation {
    pub(super) const fn new() -> Self {
        Self::begin(0)
    }

    const fn begin(began_at: u8) -> Self {
        Self {
            signals: SourceQuota::NOT_BEGUN,
            completions: SourceQuota::NOT_BEGUN,
            began_at,
            timer_served: false,
        }
    }

    /// Returns the source to serve next, and counts the item as served. Returns `None` if nothing
    /// waits. `taken` is the number of messages that the receiver has taken so far.
    pub(super) fn next<M>(
        &mut self,
        state: &MailboxState<M>,
        taken: u64,
        timer_due: bool,
        has_messages: bool,
    ) -> Option<SourceKind> {
        // Orders come before everything else, so that `stop` is bounded by one handler under any
        // flood.
        if state.has_stop_request() {
            return Some(SourceKind::Stop);
        }
        #[expect(clippy::cast_possible_truncation, reason = "modulo 256")]
        let taken = taken as u8;
        if self.began_at != taken {
            *self = Self::begin(taken);
        }
        let (signals, completions) = state.control_lens();
        // The second pass is a new round: only sources whose visit is over wait.
        let pick = |round: &mut Self| round.pick(signals, completions, timer_due, has_messages);
        let picked = pick(self).or_else(|| {
            *self = Self::begin(taken);
            pick(self)
        })?;
        // A round ends with a message, or when no other source waits for its visit: otherwise a
        // signal that arrives much later would find its visit over. A timer has had its visit also
        // if nothing waited yet, so that a message never waits for two of them.
        let waiting = [signals > 0, completions > 0, timer_due, has_messages];
        let is_alone =
            waiting.into_iter().filter(|waits| *waits).count() == 1 && picked != SourceKind::Timers;
        let starves = match picked {
            SourceKind::Signals => seeded(Bug::SignalsStarveMessages),
            SourceKind::Completions => seeded(Bug::CompletionsStarveMessages),
            SourceKind::Timers => seeded(Bug::TimersStarveMessages),
            SourceKind::Stop | SourceKind::Messages => false,
        };
        if picked == SourceKind::Messages || is_alone || starves {
            *self = Self::begin(taken);
        }
        Some(picked)
    }

    /// Returns the first source whose visit is not over, and counts an item of it.
    fn pick(
        &mut self,
        signals: usize,
        completions: usize,
        timer_due: bool,
        has_messages: bool,
    ) -> Option<SourceKind> {
        if self.signals.take(signals) {
            Some(SourceKind::Signals)
        } else if self.completions.take(completions) {
            Some(SourceKind::Completions)
        } else if timer_due && !mem::replace(&mut self.timer_served, true) {
            Some(SourceKind::Timers)
        } else {
            has_messages.then_some(SourceKind::Messages)
        }
    }
}
