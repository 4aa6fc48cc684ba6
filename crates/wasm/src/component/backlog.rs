//! The messages that an incarnation leaves to the next one, and those that are given up.
//!
//! If the manifest says so, the next incarnation handles a message again. A message that has ended
//! as many incarnations as the manifest allows becomes a dead letter. A message that was taken out
//! of the mailbox and not begun is kept for the next incarnation in any case.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::contract::Envelope;
use crate::manifest::{RestartKind, RestartRule};
use crate::message::MsgBody;

/// A message, and the number of incarnations that ended while handling it.
#[derive(Debug)]
pub(super) struct FailedDelivery {
    pub(super) envelope: Envelope,
    pub(super) failures: u32,
}

/// The messages that are affected if the incarnation ends now.
#[derive(Debug, Default)]
pub(super) struct AtRisk {
    /// Messages that may be handled again.
    pub(super) retryable: Vec<FailedDelivery>,
    /// Number of messages that are lost in any case.
    pub(super) lost: u64,
}

impl AtRisk {
    pub(super) fn clear(&mut self) {
        self.retryable.clear();
        self.lost = 0;
    }
}

/// A message that an incarnation left to the next one.
pub(super) enum Backlogged {
    Failed(FailedDelivery),
    /// Taken out of the mailbox and not begun.
    Unbegun(MsgBody),
}

/// The messages left, in the order of their arrival.
#[derive(Default)]
pub(super) struct Backlog {
    queue: VecDeque<Backlogged>,
    /// Expiry of each counted fault. The supervisor counts in the same way, so messages are not
    /// kept if no further incarnation will handle them.
    faults: VecDeque<Instant>,
}

/// A duration that stands for "never".
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The messages that no incarnation will handle, after one ended.
#[derive(Default)]
pub(super) struct LostMessages {
    /// Number of messages that no incarnation will handle.
    pub(super) lost: u64,
    /// Those of them that ended the maximum number of incarnations.
    pub(super) poison: Vec<FailedDelivery>,
    /// Dropped messages; the caller drops them when it holds no lock.
    pub(super) dropped: VecDeque<Backlogged>,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Backlogged> {
        self.queue.pop_front()
    }

    pub(super) fn put_back(&mut self, backlogged: Backlogged) {
        self.queue.push_front(backlogged);
    }

    /// Records the end of an incarnation: the affected messages, and those it had taken out of the
    /// mailbox.
    pub(super) fn incarnation_failed(
        &mut self,
        rule: &RestartRule,
        now: Instant,
        at_risk: AtRisk,
        waiting: Vec<MsgBody>,
    ) -> LostMessages {
        let mut lost = LostMessages {
            lost: at_risk.lost,
            ..LostMessages::default()
        };
        for mut failed in at_risk.retryable.into_iter().rev() {
            failed.failures += 1;
            if failed.failures < rule.poison {
                self.queue.push_front(Backlogged::Failed(failed));
            } else {
                lost.lost += 1;
                lost.poison.push(failed);
            }
        }
        // Answers, events and timers belong to one incarnation.
        let waiting = waiting.into_iter().filter(MsgBody::survives_restart);
        self.queue.extend(waiting.map(Backlogged::Unbegun));
        if self.is_last(rule, now) {
            lost.dropped = std::mem::take(&mut self.queue);
            lost.lost += lost.dropped.len() as u64;
        }
        lost
    }

    /// Returns `true` if no incarnation follows this fault.
    fn is_last(&mut self, rule: &RestartRule, now: Instant) -> bool {
        if rule.kind == RestartKind::Temporary {
            return true;
        }
        while self.faults.front().is_some_and(|until| now > *until) {
            self.faults.pop_front();
        }
        if self.faults.len() >= rule.intensity as usize {
            return true;
        }
        let until = now.checked_add(rule.period);
        self.faults.push_back(until.unwrap_or(now + NEVER));
        false
    }
}
