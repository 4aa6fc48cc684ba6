//! Stopping an actor on behalf of its owner: the order to stop, and the wait for the end.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::time::Instant;

use crate::cell::{self, ActorCore, ErasedCell, PhaseGoal};
use crate::clock;
use crate::seeded_bug::{Bug, seeded};
use crate::wait_graph;

/// Ends all children of a node, each within its limit: one after another, the last started first,
/// or all at once.
pub(super) async fn stop_children(node: &ActorCore) {
    let mut children = node.children.close(&node.shared.cells);
    // From here on every actor below waits in vain for an answer of this one.
    wait_graph::on_children_closing(node);
    if node.is_killed() && seeded(Bug::KilledParentLeavesChildren) {
        children.clear();
    }
    for child in &children {
        // This child waits for a restart that will not come, and a sibling that stops may be asking
        // it.
        cell::end_supervised_if_down(child);
    }
    if node.children.stops_together() {
        for child in &children {
            request_stop(&**child, node.is_killed());
        }
    }
    let since = node.shared.now();
    for child in children.iter().rev() {
        if node.children.stops_together() {
            await_down(child, since, || node.is_killed()).await;
            end_stopped_child(node, child).await;
        } else {
            stop_child(node, child).await;
        }
    }
}

/// Ends one child for good: stops it, and kills it when its limit passes or its parent is killed.
pub(crate) async fn stop_child(parent: &ActorCore, child: &Arc<dyn ErasedCell>) {
    stop_incarnation(parent, child).await;
    end_stopped_child(parent, child).await;
}

async fn end_stopped_child(parent: &ActorCore, child: &Arc<dyn ErasedCell>) {
    // When the child ended, its restart may have been decided before its parent stopped taking
    // children.
    while !cell::end_if_down(child) {
        stop_incarnation(parent, child).await;
    }
    // Another caller may be ending it. That takes no await, so it does not matter who waits here.
    child.core().wait_for_phase(PhaseGoal::Ended).await;
}

/// Ends the incarnation of a child, and leaves its cell to its owner.
pub(crate) async fn stop_incarnation(parent: &ActorCore, child: &Arc<dyn ErasedCell>) {
    request_stop(&**child, parent.is_killed());
    await_down(child, parent.shared.now(), || parent.is_killed()).await;
}

/// Ends an actor at the top of the tree.
pub(crate) async fn stop_root_actor(cell: &Arc<dyn ErasedCell>) {
    request_stop(&**cell, false);
    await_down(cell, cell.core().shared.now(), || false).await;
}

pub(super) fn request_stop(cell: &dyn ErasedCell, hurry: bool) {
    let node = cell.core();
    if hurry
        || node
            .shutdown_limit
            .get()
            .is_some_and(|limit| limit.is_zero())
    {
        cell.kill();
    } else {
        cell.stop();
    }
}

/// Waits for the end of an incarnation, and kills it when its limit passes or `hurry` returns
/// `true`.
async fn await_down(cell: &Arc<dyn ErasedCell>, since: Instant, hurry: impl Fn() -> bool) {
    let node = cell.core();
    let mut down = pin!(node.wait_for_phase(PhaseGoal::Down));
    let now = node.shared.now();
    let mut limit = node.shutdown_limit.get().map(|limit| {
        let left = clock::saturating_add(since, limit).saturating_duration_since(now);
        node.shared.alarms.deadline(left)
    });
    let mut killed = false;
    poll_fn(|cx| {
        if down.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if killed {
            return Poll::Pending;
        }
        let late = limit
            .as_mut()
            .is_some_and(|limit| limit.poll(cx).is_ready());
        if late || hurry() {
            killed = true;
            cell.kill();
        }
        Poll::Pending
    })
    .await;
}
