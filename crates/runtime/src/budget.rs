//! The budget of a task. Everything that the task awaits here, and everything that it
//! starts, is charged to the cooperative budget that tokio gives each task for a poll.
//!
//! Otherwise a loop over waits that complete at once, such as asks of an actor that has ended,
//! would keep the worker forever, and a `timeout` around it would never fire.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker, ready};

use tokio::task::coop::{self, RestoreOnPending};

use crate::seeded_bug::{Bug, seeded};

/// Polls within the budget of the task, which is charged if the poll is ready.
#[inline]
pub(crate) fn charge_poll<T>(
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let budget = ready!(coop::poll_proceed(cx));
    let polled = poll(cx);
    if polled.is_ready() && !seeded(Bug::ReadyWaitNotCharged) {
        budget.made_progress();
    }
    polled
}

/// Charges the task for something that completes at once, such as a refusal.
pub(crate) async fn charge_ready() {
    poll_fn(|cx| charge_poll(cx, |_| Poll::Ready(()))).await;
}

/// Charges the task for something that it did without a wait, so that a later wait yields.
#[inline]
pub(crate) fn charge() {
    if coop::has_budget_remaining()
        && let Poll::Ready(budget) = coop::poll_proceed(&mut Context::from_waker(Waker::noop()))
        && !seeded(Bug::SpawnNotCharged)
    {
        budget.made_progress();
    }
}

/// Counts a message that is about to be sent; returns `true` for every sixteenth on each thread,
/// which is charged.
///
/// A task that does nothing but tell thus yields now and then: it does not keep its worker, and the
/// receiver handles messages that are still in the caches of its processor.
#[inline(always)]
pub(crate) fn should_charge_tell() -> bool {
    thread_local! {
        static SENT_SINCE_CHARGE: Cell<u8> = const { Cell::new(0) };
    }
    let count = |told: &Cell<u8>| {
        told.set(told.get().wrapping_add(1));
        told.get().is_multiple_of(TELLS_PER_UNIT)
    };
    SENT_SINCE_CHARGE.try_with(count).unwrap_or(false)
}

/// Number of messages that cost as much as one wait.
const TELLS_PER_UNIT: u8 = 16;

/// The budget of a task that runs actors: each turn of an actor has as much budget as a task has
/// for a poll.
///
/// To tokio a dispatcher is one task, but it runs many actors in a poll, for as long as its beat
/// lasts. If they shared one budget, it would be spent after a hundred asks, and the worker would
/// look for work elsewhere, wake another worker to do the same, and poll its driver.
pub(crate) struct TurnBudget {
    /// Restores the budget with which the poll began.
    restore: Option<RestoreOnPending>,
}

impl TurnBudget {
    /// Takes over the budget at the beginning of a poll.
    pub(crate) fn begin() -> Self {
        Self {
            restore: take_unit(),
        }
    }

    /// Refills the budget.
    #[inline]
    pub(crate) fn renew(&mut self) {
        if self.restore.take().is_some() {
            self.restore = take_unit();
        }
    }
}

impl Drop for TurnBudget {
    fn drop(&mut self) {
        // What was spent stays spent.
        if let Some(restore) = &self.restore {
            restore.made_progress();
        }
    }
}

/// Takes a unit of the budget, which is given back unless progress is recorded.
#[inline]
fn take_unit() -> Option<RestoreOnPending> {
    if !coop::has_budget_remaining() {
        return None;
    }
    match coop::poll_proceed(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(unit) => Some(unit),
        Poll::Pending => None,
    }
}

thread_local! {
    /// A guard that restores a budget of one unit.
    static LAST_UNIT: Cell<Option<RestoreOnPending>> = const { Cell::new(None) };
}

/// Gives up the rest of the task's budget, as the last thing that the task does in a poll.
///
/// A tokio worker runs tasks that wake each other one after the other, but only three times in a
/// row: the next task that is woken then goes through the worker's queue, and a sleeping worker is
/// woken through the kernel to look for it. If no budget is left, the task that was woken last goes
/// to the queue as well, but no other worker is woken: it is the next task that this worker runs.
pub(crate) fn exhaust() {
    let spend = |last: &Cell<Option<RestoreOnPending>>| {
        if !coop::has_budget_remaining() {
            return;
        }
        // When it is dropped, the guard restores the one unit that it was made for; the guard that
        // then takes this unit is like it. Only the first call takes as many steps as there are
        // units.
        drop(last.take());
        for _ in 0..MAX_UNITS {
            let Some(unit) = take_unit() else {
                return;
            };
            if !coop::has_budget_remaining() {
                last.set(Some(unit));
                return;
            }
            unit.made_progress();
        }
    };
    // A thread that is ending runs no more tasks.
    let _ended = LAST_UNIT.try_with(spend);
}

/// More units than tokio gives a task for a poll.
const MAX_UNITS: u32 = 1024;

#[cfg(all(test, not(strowger_loom)))]
mod tests {
    use super::*;

    /// Returns the number of waits that a task has left in this poll.
    fn left() -> u32 {
        let mut units = Vec::new();
        while let Some(unit) = take_unit() {
            units.push(unit);
        }
        let left = u32::try_from(units.len()).expect("a budget is small");
        // The guard that was made first restores the most.
        units.into_iter().rev().for_each(drop);
        left
    }

    async fn in_task(checked: impl FnOnce() + Send + 'static) {
        tokio::spawn(async { checked() }).await.expect("no panic");
    }

    #[tokio::test]
    async fn exhausted_budget_is_full_in_the_next_poll() {
        for _ in 0..3 {
            in_task(|| {
                assert!(left() > 100, "a poll begins with a whole budget");
                exhaust();
                assert_eq!(left(), 0);
                exhaust();
                assert_eq!(left(), 0);
            })
            .await;
        }
    }

    #[tokio::test]
    async fn renewed_turn_budget_stays_charged_to_the_task() {
        in_task(|| {
            let whole = left();
            let mut budget = TurnBudget::begin();
            for _ in 0..5 {
                for _ in 0..whole / 2 {
                    charge();
                }
                assert!(left() < whole / 2 + 1);
                budget.renew();
                assert_eq!(left(), whole - 1);
            }
            charge();
            drop(budget);
            assert_eq!(left(), whole - 2);
        })
        .await;
    }

    #[tokio::test]
    async fn turn_budget_of_an_exhausted_task_is_empty() {
        in_task(|| {
            exhaust();
            let mut budget = TurnBudget::begin();
            budget.renew();
            assert_eq!(left(), 0);
        })
        .await;
    }
}
