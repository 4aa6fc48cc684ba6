//! The share of a task in its worker: what it awaits here, and what it starts, is charged to the
//! cooperative budget that tokio gives each task for a poll.
//!
//! Without that a loop over waits that are over at once, such as asks of an actor that has ended,
//! would keep the worker for ever, and a `timeout` around it would never fire.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker, ready};

use tokio::task::coop;

use crate::planted::{Bug, planted};

/// Polls within the budget of the task, which pays if that ends the wait.
#[inline]
pub(crate) fn charged<T>(
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let budget = ready!(coop::poll_proceed(cx));
    let polled = poll(cx);
    if polled.is_ready() && !planted(Bug::WaitIsFree) {
        budget.made_progress();
    }
    polled
}

/// Pays for what is over at once, as a refusal is.
pub(crate) async fn pay() {
    poll_fn(|cx| charged(cx, |_| Poll::Ready(()))).await;
}

/// Lets the task pay for what it has done without a wait: its next one gives way.
#[inline]
pub(crate) fn charge() {
    if coop::has_budget_remaining()
        && let Poll::Ready(budget) = coop::poll_proceed(&mut Context::from_waker(Waker::noop()))
        && !planted(Bug::StartIsFree)
    {
        budget.made_progress();
    }
}
