//! The end of an actor for good.

use std::mem;
use std::sync::{Arc, Weak};

use super::life::{Life, Link, More, Phase};
use super::{AnyCell, Node, Owner};
use crate::event::Event;
use crate::exit::{Exit, discard_one};
use crate::mailbox::System;
use crate::metric::Count;
use crate::monitor::{MonitorId, Signal};
use crate::planted::{Bug, planted};
use crate::schedule::strand::Guard;

/// Ends an actor for good: its address is closed, its names are free, all who watch are told. If
/// its mailbox was closed before, with so many messages lost, that is said.
pub(crate) fn finish(cell: &Arc<dyn AnyCell>, exit: &Exit, lost: Option<u64>) {
    let node = cell.node();
    node.leave_span();
    let life = node.life.lock();
    if !node.is_over() {
        conclude(cell, life, exit, lost);
    }
}

/// Ends an actor for good whose incarnation is down; false when another has begun meanwhile.
pub(crate) fn finish_down(cell: &Arc<dyn AnyCell>) -> bool {
    let node = cell.node();
    let life = node.life.lock();
    if node.is_over() {
        return true;
    }
    let down = node.phase() == Phase::Down;
    if down {
        let exit = match node.stand.last() {
            Ok(exit) => exit,
            Err(_) => life.last_exit(),
        };
        conclude(cell, life, &exit.unwrap_or(Exit::Shutdown), None);
    }
    down
}

/// Ends an actor for good if its incarnation is down.
pub(crate) fn finish_if_down(cell: &Arc<dyn AnyCell>) {
    if matches!(cell.node().owner, Owner::Supervisor { .. }) {
        finish_down(cell);
    }
}

fn conclude(cell: &Arc<dyn AnyCell>, mut life: Guard<'_, Life>, exit: &Exit, lost: Option<u64>) {
    let node = cell.node();
    node.stand.set_over();
    // What it held may lead back to it; and nobody is told twice. Those who wait are told last.
    let mut more = life.more.take();
    if let Some(more) = &mut more {
        keep(&mut life, more);
    }
    let mut earlier = None;
    life.set_last_exit(&node.stand, exit.clone(), &mut earlier);
    drop(life);
    discard_one(earlier);
    if let Some(more) = &mut more {
        part(node, mem::take(&mut more.links), exit);
    }
    let lost = lost.unwrap_or_else(|| cell.close());
    let shared = &node.shared;
    // Its parent's table leads to that of the system.
    match node.owner.cell() {
        Some(parent) => parent.node().children.remove(node),
        None => shared.root.remove(node),
    }
    let names = more.as_ref().map_or(&[][..], |more| &more.names);
    shared.forget(node.id, names);
    let mut monitors = Vec::new();
    if let Some(more) = more {
        let More {
            monitors: watchers,
            ties,
            attached,
            overseer,
            last_exit,
            ..
        } = *more;
        monitors = watchers;
        drop((attached, overseer));
        discard_one(last_exit);
        for tie in ties.iter().filter_map(Weak::upgrade) {
            tie.leave(node.id);
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
        .skip(usize::from(planted(Bug::DownForgotten)));
    for watcher in told {
        if let Some(to) = watcher.cell.upgrade() {
            let down = down(watcher.id, node, exit);
            to.system(System::Signal(down), Some(watcher.incarnation));
        }
    }
    // Those who wait for the end find all of the above done.
    node.enter(Phase::Ended);
}

/// Keeps what is of use after the end.
fn keep(life: &mut Life, more: &mut More) {
    if more.waiting.is_empty() && more.restarts == 0 {
        return;
    }
    let kept = life.more();
    kept.waiting = mem::take(&mut more.waiting);
    kept.next_wait = more.next_wait;
    kept.restarts = more.restarts;
}

/// Tells those who were linked to an actor of its end.
pub(crate) fn part(node: &Node, links: Vec<Link>, exit: &Exit) {
    for link in links {
        let Some(other) = link.cell.upgrade() else {
            continue;
        };
        other.node().unlink(node.id);
        let forgotten = matches!(exit, Exit::Panicked(_)) && planted(Bug::LinkForgotten);
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
