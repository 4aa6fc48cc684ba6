//! The control plane's model of its sessions, and the comparison with the node.

use std::collections::{BTreeMap, BTreeSet};

use strowger_pfcp::Seid;
use tokio::time::Instant;

use super::network::SimulatedNetwork;
use super::{N1, T1};
use crate::node::NodeHandle;
use crate::pool::AddressPool;
use crate::session::claims;
use crate::store::Store;

/// The identity of a session across all restarts: its FARs are numbered from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionMark(pub(super) u32);

/// The number of FAR IDs that are reserved for a session.
pub(super) const FARS: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelState {
    /// The session was acknowledged and not deleted.
    Up,
    /// The session never existed, or its deletion was acknowledged.
    Gone,
    /// A request about the session had no outcome.
    Unsure,
}

/// The control plane's model of one session.
#[derive(Clone, Debug)]
pub(super) struct SessionModel {
    pub(super) state: ModelState,
    pub(super) remote: Seid,
    /// FARs that were acknowledged.
    pub(super) certain: BTreeSet<u32>,
    /// FARs that may exist.
    pub(super) maybe: BTreeSet<u32>,
    /// The time of the request.
    asked: Instant,
    /// The time of the refusal.
    refused: Option<Instant>,
    /// FARs that were refused, and the time of the refusal.
    refused_fars: Vec<(u32, Instant)>,
}

/// The control plane's model of all sessions.
#[derive(Debug, Default)]
pub(super) struct SessionModels {
    pub(super) all: BTreeMap<SessionMark, SessionModel>,
    /// Number of times that the node forgot its refusals.
    pub(super) refusals_forgotten: u32,
}

impl SessionModels {
    /// Records that a session is requested.
    pub(super) fn begin(&mut self, mark: SessionMark) {
        let model = SessionModel {
            state: ModelState::Unsure,
            remote: Seid(0),
            certain: BTreeSet::new(),
            maybe: BTreeSet::new(),
            asked: Instant::now(),
            refused: None,
            refused_fars: Vec::new(),
        };
        self.all.insert(mark, model);
    }

    pub(super) fn update(&mut self, mark: SessionMark, update: impl FnOnce(&mut SessionModel)) {
        if let Some(model) = self.all.get_mut(&mark) {
            update(model);
        }
    }

    /// Records that a session was refused that was requested when `refusals_forgotten` had this
    /// value.
    pub(super) fn refused(&mut self, mark: SessionMark, refusals_forgotten: u32) {
        if refusals_forgotten != self.refusals_forgotten {
            return;
        }
        self.update(mark, |model| {
            (model.state, model.refused) = (ModelState::Gone, Some(Instant::now()));
        });
    }

    /// Records that a FAR was refused that was requested when `refusals_forgotten` had this value.
    pub(super) fn refused_far(&mut self, mark: SessionMark, far: u32, refusals_forgotten: u32) {
        if refusals_forgotten != self.refusals_forgotten {
            return;
        }
        self.update(mark, |model| {
            model.maybe.remove(&far);
            model.refused_fars.push((far, Instant::now()));
        });
    }

    /// Records that the node forgets its refusals: a copy of a refused request that still arrives
    /// may be accepted.
    pub(super) fn forget_refusals(&mut self) {
        self.refusals_forgotten += 1;
        for model in self.all.values_mut() {
            if model.refused.as_ref().is_some_and(recent) {
                model.state = ModelState::Unsure;
            }
            let fars = model.refused_fars.iter().filter(|(_, at)| recent(at));
            model.maybe.extend(fars.map(|(far, _)| *far));
        }
    }

    /// Records that the control plane restarts and forgets its sessions, which therefore have to
    /// end. The node cannot tell a late copy of an establishment from a request of the next
    /// incarnation.
    pub(super) fn restart(&mut self) {
        for model in self.all.values_mut() {
            if recent(&model.asked) {
                model.state = ModelState::Unsure;
            } else if model.state == ModelState::Up {
                model.state = ModelState::Gone;
            }
        }
    }

    /// Records that the node lost state, so that the state of every session is unknown.
    pub(super) fn forget_state(&mut self) {
        for model in self.all.values_mut() {
            model.state = ModelState::Unsure;
        }
    }

    /// Compares the model with the sessions of the node.
    pub(super) fn check(&self, node: &NodeHandle, network: &SimulatedNetwork) {
        let mut seen = BTreeMap::new();
        for session in node.sessions(&Default::default()) {
            let mark = SessionMark(session.fars.first().copied().unwrap_or_default() / FARS);
            let Some(model) = self.all.get(&mark) else {
                network.record_violation(format!("session {} was never asked for", session.seid));
                continue;
            };
            if let Some(twin) = seen.insert(mark, session.seid) {
                let here = session.seid;
                network.record_violation(format!("{mark:?} is there twice: {twin} and {here}"));
            }
            let fars: BTreeSet<u32> = session.fars.iter().copied().collect();
            let missing: Vec<_> = model.certain.difference(&fars).collect();
            let possible: BTreeSet<u32> = model.certain.union(&model.maybe).copied().collect();
            let foreign: Vec<_> = fars.difference(&possible).collect();
            match model.state {
                ModelState::Gone => network
                    .record_violation(format!("{mark:?} is gone, and {} is there", session.seid)),
                ModelState::Up if model.remote != session.seid => {
                    let (known, found) = (model.remote, session.seid);
                    network.record_violation(format!(
                        "{mark:?} is {known} for one and {found} for the other"
                    ));
                }
                ModelState::Up if !missing.is_empty() => {
                    network.record_violation(format!(
                        "{mark:?} lacks FARs {missing:?}, which were accepted"
                    ));
                }
                ModelState::Up if !foreign.is_empty() => {
                    network.record_violation(format!(
                        "{mark:?} has FARs {foreign:?}, which were refused"
                    ));
                }
                ModelState::Up | ModelState::Unsure => {}
            }
        }
        for (mark, model) in &self.all {
            if model.state == ModelState::Up && !seen.contains_key(mark) {
                let seid = model.remote;
                network
                    .record_violation(format!("{mark:?} was accepted as {seid} and is not there"));
            }
        }
    }
}

/// Returns `true` if copies of a request may still arrive.
fn recent(at: &Instant) -> bool {
    at.elapsed() <= T1 * (N1 + 1)
}

/// Checks that each session holds exactly the addresses in its rules.
pub(super) fn check_addresses(store: &dyn Store, pool: &AddressPool, network: &SimulatedNetwork) {
    let records = store.sessions(&|_| true);
    let mut wanted = BTreeMap::new();
    for record in &records {
        let mut claims = claims(record);
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
        network.record_violation(format!(
            "addresses are held by {strange:?}, missing for {missing:?}"
        ));
    }
}
