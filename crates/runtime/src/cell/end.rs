//! The end of an actor for good.

use std::mem;
use std::sync::{Arc, Weak};

use super::node_state::{LinkEnd, NodeState, Phase, RareNodeState};
use super::{AnyCell, Node, Owner};
use crate::event::Event;
use crate::exit::{Exit, discard_one};
use crate::mailbox::System;
use crate::metric::Count;
use crate::monitor::{MonitorId, Signal};
use crate::schedule::strand::Guard;
use crate::seeded_bug::{Bug, seeded};

/// Ends an actor for good: closes its address, frees its names, and tells all its monitors. If its
/// mailbox was closed before, `lost` is the number of messages that were lost.
pub(crate) fn finish(cell: &Arc<dyn AnyCell>, exit: &Exit, lost: Option<u64>) {
    let node = cell.node();
    node.leave_span();
    let state = node.state.lock();
    if !node.is_over() {
        end_for_good(cell, state, exit, lost);
    }
}

/// Ends an actor for good if its incarnation is down; returns `false` if another incarnation has
/// begun meanwhile.
pub(crate) fn finish_down(cell: &Arc<dyn AnyCell>) -> bool {
    let node = cell.node();
    let state = node.state.lock();
    if node.is_over() {
        return true;
    }
    let down = node.phase() == Phase::Down;
    if down {
        let exit = match node.phase_cell.last() {
            Ok(exit) => exit,
            Err(_) => state.last_exit(),
        };
        end_for_good(cell, state, &exit.unwrap_or(Exit::Shutdown), None);
    }
    down
}

/// Ends an actor for good if it has a supervisor and its incarnation is down.
pub(crate) fn finish_if_down(cell: &Arc<dyn AnyCell>) {
    if matches!(cell.node().owner, Owner::Supervisor { .. }) {
        finish_down(cell);
    }
}

fn end_for_good(
    cell: &Arc<dyn AnyCell>,
    mut state: Guard<'_, NodeState>,
    exit: &Exit,
    lost: Option<u64>,
) {
    let node = cell.node();
    node.phase_cell.set_over();
    // Taken out, because it may lead back to the actor, and so that nothing is told twice. Tasks
    // that wait for the end are woken last.
    let mut rare = state.rare.take();
    if let Some(rare) = &mut rare {
        keep(&mut state, rare);
    }
    let mut earlier = None;
    state.set_last_exit(&node.phase_cell, exit.clone(), &mut earlier);
    drop(state);
    discard_one(earlier);
    if let Some(rare) = &mut rare {
        notify_links(node, mem::take(&mut rare.links), exit);
    }
    let lost = lost.unwrap_or_else(|| cell.close());
    let shared = &node.shared;
    // The child table of the parent leads to the table of the system, so the actor leaves it first.
    match node.owner.cell() {
        Some(parent) => parent.node().children.remove(node),
        None => shared.root.remove(node),
    }
    let names = rare.as_ref().map_or(&[][..], |rare| &rare.names);
    shared.forget(node.id, names);
    let mut monitors = Vec::new();
    if let Some(rare) = rare {
        let RareNodeState {
            monitors: watchers,
            memberships,
            attached,
            overseer,
            last_exit,
            ..
        } = *rare;
        monitors = watchers;
        drop((attached, overseer));
        discard_one(last_exit);
        for membership in memberships.iter().filter_map(Weak::upgrade) {
            membership.on_exit(node.id);
        }
    }
    if lost > 0 {
        shared
            .events
            .emit(Count::DeadLetters(lost), || Event::DeadLetter {
                path: node.path(),
                count: lost,
                exit: exit.clone(),
            });
    }
    tracing::debug!(target: "strowger", path = %node.path(), %exit, "actor stops");
    shared.events.emit(Count::Stopped(exit), || Event::Stopped {
        path: node.path(),
        exit: exit.clone(),
    });
    let told = monitors
        .into_iter()
        .skip(usize::from(seeded(Bug::DownForgotten)));
    for watcher in told {
        if let Some(to) = watcher.cell.upgrade() {
            let down = down(watcher.id, node, exit);
            to.system(System::Signal(down), Some(watcher.incarnation));
        }
    }
    // Tasks that wait for the end find all of the above done.
    node.enter(Phase::Ended);
}

/// Keeps what is still of use after the end.
fn keep(state: &mut NodeState, rare: &mut RareNodeState) {
    if rare.waiting.is_empty() && rare.restarts == 0 {
        return;
    }
    let kept = state.rare();
    kept.waiting = mem::take(&mut rare.waiting);
    kept.next_wait = rare.next_wait;
    kept.restarts = rare.restarts;
}

/// Tells the linked actors about the end of an actor.
pub(crate) fn notify_links(node: &Node, links: Vec<LinkEnd>, exit: &Exit) {
    for link in links {
        let Some(other) = link.cell.upgrade() else {
            continue;
        };
        other.node().unlink(node.id);
        let forgotten = matches!(exit, Exit::Panicked(_)) && seeded(Bug::LinkForgotten);
        if !exit.is_orderly() && !forgotten {
            let linked = Exit::Linked {
                path: node.path(),
                exit: Arc::new(exit.clone()),
            };
            other.system(System::Stop(linked), Some(link.incarnation));
        }
    }
}

pub(crate) fn down(id: MonitorId, node: &Node, exit: &Exit) -> Signal {
    Signal::Down {
        id,
        actor: node.id,
        path: node.path(),
        exit: exit.clone(),
    }
}
