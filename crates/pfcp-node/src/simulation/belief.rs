//! What the control plane knows of its sessions, and whether the node agrees.

use std::collections::{BTreeMap, BTreeSet};

use strowger_pfcp::Seid;
use tokio::time::Instant;

use super::wire::Wire;
use super::{N1, T1};
use crate::node::NodeHandle;
use crate::pool::Pool;
use crate::session::claims;
use crate::store::Store;

/// Names a session in every life of everybody: its FARs are numbered from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(pub(super) u32);

/// FARs that a session has room for in its numbers.
pub(super) const FARS: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It was acknowledged and not deleted.
    Up,
    /// It was never there, or was deleted, and that was acknowledged.
    Gone,
    /// A request about it had no outcome.
    Unsure,
}

/// What the control plane knows of one session.
#[derive(Clone, Debug)]
pub(super) struct Belief {
    pub(super) state: State,
    pub(super) remote: Seid,
    /// Rules that were acknowledged.
    pub(super) certain: BTreeSet<u32>,
    /// Rules that may be there.
    pub(super) maybe: BTreeSet<u32>,
    /// When it was refused.
    refused: Option<Instant>,
    /// Rules that were refused, and when.
    refused_fars: Vec<(u32, Instant)>,
}

/// What the control plane knows.
#[derive(Debug, Default)]
pub(super) struct Beliefs {
    pub(super) all: BTreeMap<Mark, Belief>,
    /// How often the node forgot what it refused.
    pub(super) upsets: u32,
}

impl Beliefs {
    /// A session is asked for.
    pub(super) fn begin(&mut self, mark: Mark) {
        let belief = Belief {
            state: State::Unsure,
            remote: Seid(0),
            certain: BTreeSet::new(),
            maybe: BTreeSet::new(),
            refused: None,
            refused_fars: Vec::new(),
        };
        self.all.insert(mark, belief);
    }

    pub(super) fn change(&mut self, mark: Mark, change: impl FnOnce(&mut Belief)) {
        if let Some(belief) = self.all.get_mut(&mark) {
            change(belief);
        }
    }

    /// A session was refused, that was asked for after so many upsets.
    pub(super) fn refused(&mut self, mark: Mark, upsets: u32) {
        if upsets != self.upsets {
            return;
        }
        self.change(mark, |belief| {
            (belief.state, belief.refused) = (State::Gone, Some(Instant::now()));
        });
    }

    /// A rule was refused, that was asked for after so many upsets.
    pub(super) fn refused_far(&mut self, mark: Mark, far: u32, upsets: u32) {
        if upsets != self.upsets {
            return;
        }
        self.change(mark, |belief| {
            belief.maybe.remove(&far);
            belief.refused_fars.push((far, Instant::now()));
        });
    }

    /// The node forgets what it refused: a copy of the request that still comes may be accepted.
    pub(super) fn upset(&mut self) {
        self.upsets += 1;
        let recent = |at: &Instant| at.elapsed() <= T1 * (N1 + 1);
        for belief in self.all.values_mut() {
            if belief.refused.as_ref().is_some_and(recent) {
                belief.state = State::Unsure;
            }
            let fars = belief.refused_fars.iter().filter(|(_, at)| recent(at));
            belief.maybe.extend(fars.map(|(far, _)| *far));
        }
    }

    /// The control plane starts again and knows nothing: what it had must end.
    pub(super) fn restart(&mut self) {
        for belief in self.all.values_mut() {
            if belief.state == State::Up {
                belief.state = State::Gone;
            }
        }
    }

    /// The node lost something: nothing is certain.
    pub(super) fn doubt(&mut self) {
        for belief in self.all.values_mut() {
            belief.state = State::Unsure;
        }
    }

    /// Compares with the sessions of the node.
    pub(super) fn judge(&self, node: &NodeHandle, wire: &Wire) {
        let mut seen = BTreeMap::new();
        for session in node.sessions(&Default::default()) {
            let mark = Mark(session.fars.first().copied().unwrap_or_default() / FARS);
            let Some(belief) = self.all.get(&mark) else {
                wire.wrong(format!("session {} was never asked for", session.seid));
                continue;
            };
            if let Some(twin) = seen.insert(mark, session.seid) {
                let here = session.seid;
                wire.wrong(format!("{mark:?} is there twice: {twin} and {here}"));
            }
            let fars: BTreeSet<u32> = session.fars.iter().copied().collect();
            let missing: Vec<_> = belief.certain.difference(&fars).collect();
            let possible: BTreeSet<u32> = belief.certain.union(&belief.maybe).copied().collect();
            let foreign: Vec<_> = fars.difference(&possible).collect();
            match belief.state {
                State::Gone => {
                    wire.wrong(format!("{mark:?} is gone, and {} is there", session.seid))
                }
                State::Up if belief.remote != session.seid => {
                    let (known, found) = (belief.remote, session.seid);
                    wire.wrong(format!(
                        "{mark:?} is {known} for one and {found} for the other"
                    ));
                }
                State::Up if !missing.is_empty() => {
                    wire.wrong(format!(
                        "{mark:?} lacks FARs {missing:?}, which were accepted"
                    ));
                }
                State::Up if !foreign.is_empty() => {
                    wire.wrong(format!("{mark:?} has FARs {foreign:?}, which were refused"));
                }
                State::Up | State::Unsure => {}
            }
        }
        for (mark, belief) in &self.all {
            if belief.state == State::Up && !seen.contains_key(mark) {
                let seid = belief.remote;
                wire.wrong(format!("{mark:?} was accepted as {seid} and is not there"));
            }
        }
    }
}

/// Every address belongs to a session that names it, and the other way round.
pub(super) fn judge_addresses(store: &dyn Store, pool: &Pool, wire: &Wire) {
    let records = store.sessions(&|_| true);
    let mut wanted = BTreeMap::new();
    for record in &records {
        let mut claims = claims(&record.rules);
        claims.sort_unstable();
        claims.dedup();
        wanted.insert(record.seid, claims);
    }
    let held = pool.all();
    if held != wanted {
        let strange = held
            .iter()
            .find(|(seid, claims)| wanted.get(seid) != Some(claims));
        let missing = wanted.keys().find(|seid| !held.contains_key(seid));
        wire.wrong(format!(
            "addresses are held by {strange:?}, missing for {missing:?}"
        ));
    }
}
