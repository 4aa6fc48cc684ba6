//! What a life left to the next one, and which of it is given up.
//!
//! A message that was told may be handled again by the next life, if the manifest says so; after
//! as many lives as it says, the message is a dead letter. What was taken out and not begun waits
//! for the next life in any case.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::contract::Envelope;
use crate::manifest::{RestartKind, RestartRule};
use crate::message::Inside;

/// A message that was told, and how many lives ended while they handled it.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) envelope: Envelope,
    pub(super) kills: u32,
}

/// What a life that ends now ends over.
#[derive(Debug, Default)]
pub(super) struct Stake {
    /// What may be handled again.
    pub(super) again: Vec<Tried>,
    /// How many messages are lost in any case.
    pub(super) lost: u64,
}

impl Stake {
    pub(super) fn clear(&mut self) {
        self.again.clear();
        self.lost = 0;
    }
}

/// What the next life begins with.
pub(super) enum Left {
    Tried(Tried),
    /// Taken out of the mailbox and not begun.
    Waiting(Inside),
}

/// What is left, in the order in which it came.
#[derive(Default)]
pub(super) struct Leftovers {
    queue: VecDeque<Left>,
    /// Until when each fault counts; as the supervisor counts them, so that what nobody will
    /// handle is not kept.
    faults: VecDeque<Instant>,
}

/// Further off than anything.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// What becomes of what was left when a life ended.
#[derive(Default)]
pub(super) struct Ended {
    /// How many messages nobody will handle.
    pub(super) lost: u64,
    /// Of these, how many ended as many lives as they may.
    pub(super) poison: Vec<Tried>,
    /// What was dropped, for the caller to drop where it holds no lock.
    pub(super) dropped: VecDeque<Left>,
}

impl Leftovers {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Left> {
        self.queue.pop_front()
    }

    pub(super) fn put_back(&mut self, left: Left) {
        self.queue.push_front(left);
    }

    /// Notes the end of a life: what it ended over, and what had been taken out for it.
    pub(super) fn end(
        &mut self,
        rule: &RestartRule,
        now: Instant,
        stake: Stake,
        waiting: Vec<Inside>,
    ) -> Ended {
        let mut ended = Ended {
            lost: stake.lost,
            ..Ended::default()
        };
        for mut tried in stake.again.into_iter().rev() {
            tried.kills += 1;
            if tried.kills < rule.poison {
                self.queue.push_front(Left::Tried(tried));
            } else {
                ended.lost += 1;
                ended.poison.push(tried);
            }
        }
        // Answers, events and timers are those of a life.
        let waiting = waiting.into_iter().filter(Inside::outlives);
        self.queue.extend(waiting.map(Left::Waiting));
        if self.is_last(rule, now) {
            ended.dropped = std::mem::take(&mut self.queue);
            ended.lost += ended.dropped.len() as u64;
        }
        ended
    }

    /// Whether no life follows this fault.
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
        self.faults.push_back(until.unwrap_or(now + FAR));
        false
    }
}
