//! The end of an actor for good.

use std::mem;
use std::sync::{Arc, Weak};

use super::state::{ActorState, ColdActorState, LinkEnd, Phase};
use super::{ActorCore, ErasedCell, Owner};
use crate::event::Event;
use crate::exit::{Exit, drop_caught};
use crate::mailbox::SystemMessage;
use crate::metric::MetricEvent;
use crate::monitor::{MonitorId, Signal};
use crate::schedule::strand::SpinLockGuard;
use crate::seeded_bug::{Bug, seeded};

/// Ends an actor for good: closes its address, frees its names, and tells all its monitors. If its
/// mailbox was closed before, `lost` is the number of messages that were lost.
pub(crate) fn end_actor(cell: &Arc<dyn ErasedCell>, exit: &Exit, lost: Option<u64>) {
    let node = cell.core();
    node.end_span();
    let state = node.state.lock();
    if !node.is_ending() {
        end_for_good(cell, state, exit, lost);
    }
}

/// Ends an actor for good if its incarnation is down; returns `false` if another incarnation has
/// begun meanwhile.
pub(crate) fn end_if_down(cell: &Arc<dyn ErasedCell>) -> bool {
    let node = cell.core();
    let state = node.state.lock();
    if node.is_ending() {
        return true;
    }
    let down = node.phase() == Phase::Down;
    if down {
        let exit = match node.phase_cell.last_exit_kind() {
            Ok(exit) => exit,
            Err(_) => state.last_exit(),
        };
        end_for_good(cell, state, &exit.unwrap_or(Exit::Shutdown), None);
    }
    down
}

/// Ends an actor for good if it has a supervisor and its incarnation is down.
pub(crate) fn end_supervised_if_down(cell: &Arc<dyn ErasedCell>) {
    if matches!(cell.core().owner, Owner::Supervisor { .. }) {
        end_if_down(cell);
    }
}

fn end_for_good(
    cell: &Arc<dyn ErasedCell>,
    mut state: SpinLockGuard<'_, ActorState>,
    exit: &Exit,
    lost: Option<u64>,
) {
    let node = cell.core();
    node.phase_cell.set_ending();
    // Taken out, because it may lead back to the actor, and so that nothing is told twice. Tasks
    // that wait for the end are woken last.
    let mut cold = state.cold.take();
    if let Some(cold) = &mut cold {
        retain_after_end(&mut state, cold);
    }
    let mut earlier = None;
    state.set_last_exit(&node.phase_cell, exit.clone(), &mut earlier);
    drop(state);
    drop_caught(earlier);
    if let Some(cold) = &mut cold {
        notify_links(node, mem::take(&mut cold.links), exit);
    }
    let lost = lost.unwrap_or_else(|| cell.close());
    let shared = &node.shared;
    // The child table of the parent leads to the table of the system, so the actor leaves it first.
    match node.owner.cell() {
        Some(parent) => parent.core().children.remove(node),
        None => shared.root.remove(node),
    }
    let names = cold.as_ref().map_or(&[][..], |cold| &cold.names);
    shared.remove_actor(node.id, names);
    let mut monitors = Vec::new();
    if let Some(cold) = cold {
        let ColdActorState {
            monitors: watchers,
            memberships,
            extension: attached,
            child_policy: policy,
            last_exit,
            ..
        } = *cold;
        monitors = watchers;
        drop((attached, policy));
        drop_caught(last_exit);
        for membership in memberships.iter().filter_map(Weak::upgrade) {
            membership.on_exit(node.id);
        }
    }
    if lost > 0 {
        shared
            .events
            .emit(MetricEvent::DeadLetters(lost), || Event::DeadLetter {
                path: node.path(),
                count: lost,
                exit: exit.clone(),
            });
    }
    tracing::debug!(target: "strowger", path = %node.path(), %exit, "actor stops");
    shared
        .events
        .emit(MetricEvent::Stopped(exit), || Event::Stopped {
            path: node.path(),
            exit: exit.clone(),
        });
    let told = monitors
        .into_iter()
        .skip(usize::from(seeded(Bug::MonitorNotNotified)));
    for watcher in told {
        if let Some(to) = watcher.cell.upgrade() {
            let down = down_signal(watcher.id, node, exit);
            to.push_system(SystemMessage::Signal(down), Some(watcher.incarnation));
        }
    }
    // Tasks that wait for the end find all of the above done.
    node.enter(Phase::Ended);
}

/// Keeps what is still of use after the end.
fn retain_after_end(state: &mut ActorState, cold: &mut ColdActorState) {
    if cold.phase_waiters.is_empty() && cold.restarts == 0 {
        return;
    }
    let kept = state.cold_mut();
    kept.phase_waiters = mem::take(&mut cold.phase_waiters);
    kept.next_wait = cold.next_wait;
    kept.restarts = cold.restarts;
}

/// Tells the linked actors about the end of an actor.
pub(crate) fn notify_links(node: &ActorCore, links: Vec<LinkEnd>, exit: &Exit) {
    for link in links {
        let Some(other) = link.cell.upgrade() else {
            continue;
        };
        other.core().unlink(node.id);
        let forgotten = matches!(exit, Exit::Panicked(_)) && seeded(Bug::LinkNotNotified);
        if !exit.is_orderly() && !forgotten {
            let linked = Exit::Linked {
                path: node.path(),
                exit: Arc::new(exit.clone()),
            };
            other.push_system(SystemMessage::Stop(linked), Some(link.incarnation));
        }
    }
}

pub(crate) fn down_signal(id: MonitorId, node: &ActorCore, exit: &Exit) -> Signal {
    Signal::Down {
        id,
        actor: node.id,
        path: node.path(),
        exit: exit.clone(),
    }
}
