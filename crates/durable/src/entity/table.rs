//! The table of the entities of a kind that are not asleep.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use strowger::{ActorId, ActorRef, Exit};
use tokio::sync::watch;
use tokio::time::Instant;

use super::ActivationLink;
use super::host::HostMessage;
use crate::hash_map::remove_and_shrink;
use crate::seeded_bug::{Bug, seeded};

/// `None` until an entity has left a phase; then the exit of an activation that did not start.
pub(super) type Outcome = Option<Option<Exit>>;

/// The entities that are not asleep, and their host.
pub(super) struct AwakeTable<M: Send + 'static> {
    host: Host<M>,
    entries: HashMap<Arc<str>, Entry<M>>,
    /// The number of awake entities without senders.
    resting: usize,
    /// The keys of awake entities, in the order in which they came to rest. One that has had
    /// senders since then stays at its place until somebody looks there, because nobody does for
    /// most messages.
    idle: BTreeMap<u64, Arc<str>>,
    next_place: u64,
}

enum Host<M> {
    NotStarted,
    Running(ActorRef<HostMessage<M>>),
    Ended,
}

struct Entry<M> {
    phase: EntityPhase<M>,
    senders: usize,
    /// While it is awake and has no senders: its place in the order in which entities came to rest,
    /// and the time.
    rested: Option<(u64, Instant)>,
    /// Its place in the list of idle entities, which may be an earlier one.
    listed: Option<u64>,
    /// Set if the entity is to be passivated as soon as it has no senders.
    wants_sleep: bool,
    /// Its queue of messages is closed with the entry.
    link: Arc<ActivationLink>,
    /// Wakes the senders that wait for the end of the phase, if there are any.
    outcome: Option<watch::Sender<Outcome>>,
}

impl<M> Entry<M> {
    fn new() -> Self {
        Self {
            phase: EntityPhase::Starting,
            senders: 0,
            rested: None,
            listed: None,
            wants_sleep: false,
            link: Arc::new(ActivationLink::new()),
            outcome: None,
        }
    }

    /// Returns a receiver of the end of the phase.
    fn wait(&mut self) -> watch::Receiver<Outcome> {
        let outcome = self.outcome.get_or_insert_with(|| watch::channel(None).0);
        outcome.subscribe()
    }

    /// Tells the senders that wait that the phase has ended.
    fn end_phase(&mut self, failure: Option<Exit>) {
        if let Some(outcome) = self.outcome.take() {
            outcome.send_replace(Some(failure));
        }
    }
}

/// An awake entity without senders.
struct IdleEntity {
    key: Arc<str>,
    place: u64,
    since: Instant,
}

enum EntityPhase<M> {
    Starting,
    Awake(ActorRef<M>),
    Passivating,
}

/// The result of an attempt to enter an entity.
pub(super) enum Entered<M> {
    /// The sender counts, until it leaves.
    Awake(ActorRef<M>),
    /// The entity is starting or passivating.
    Wait(watch::Receiver<Outcome>),
    /// As many are awake as may be.
    NoRoom,
    /// The host has ended.
    Closed,
}

impl<M: Send + 'static> AwakeTable<M> {
    pub(super) fn new() -> Self {
        Self {
            host: Host::NotStarted,
            entries: HashMap::new(),
            resting: 0,
            idle: BTreeMap::new(),
            next_place: 0,
        }
    }

    /// Returns the keys, sorted.
    pub(super) fn keys(&self) -> Vec<Arc<str>> {
        let mut keys: Vec<_> = self.entries.keys().cloned().collect();
        keys.sort();
        keys
    }

    fn is_full(&self, limit: usize) -> bool {
        self.entries.len() >= limit.max(1)
    }

    /// Returns `true` if there is no room for a further entity, and none can be made.
    pub(super) fn is_busy(&self, limit: usize) -> bool {
        self.is_full(limit) && self.resting == 0
    }

    /// Sets the host, and returns the keys of the entities for which senders wait already.
    pub(super) fn open(&mut self, host: ActorRef<HostMessage<M>>) -> Vec<Arc<str>> {
        self.host = Host::Running(host);
        self.keys()
    }

    /// Forgets all entities: their host has ended.
    pub(super) fn close(&mut self) {
        self.host = Host::Ended;
        for (_, entry) in self.entries.drain() {
            entry.link.inbound.close();
        }
        self.idle.clear();
        self.resting = 0;
    }

    /// Returns `true` if the host has ended.
    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.host, Host::Ended)
    }

    /// Counts a sender of an entity that is awake. Requests the activation of one that is asleep.
    pub(super) fn enter(&mut self, key: &Arc<str>, limit: usize) -> Entered<M> {
        if matches!(self.host, Host::Ended) {
            return Entered::Closed;
        }
        if let Some(entry) = self.entries.get_mut(key) {
            match &entry.phase {
                // One that has ended by itself is removed once its host knows.
                EntityPhase::Awake(actor) if actor.is_alive() => {
                    let actor = actor.clone();
                    entry.senders += 1;
                    if entry.rested.take().is_some() {
                        self.resting -= 1;
                    }
                    return Entered::Awake(actor);
                }
                EntityPhase::Passivating if seeded(Bug::TwoActivations) => {}
                _ => return Entered::Wait(entry.wait()),
            }
        } else if self.is_full(limit) {
            return Entered::NoRoom;
        }
        let mut entry = Entry::new();
        let wait = entry.wait();
        self.entries.insert(Arc::clone(key), entry);
        self.tell_host(HostMessage::Activate(Arc::clone(key)));
        Entered::Wait(wait)
    }

    /// Requests the activation of an entity whose wake-up time has come. Returns `false` if there
    /// is no room.
    pub(super) fn wake(&mut self, key: &Arc<str>, limit: usize) -> bool {
        self.entries.contains_key(key) || !matches!(self.enter(key, limit), Entered::NoRoom)
    }

    /// Returns what an entity that is not asleep shares with its activation. That of one that is
    /// asleep takes no messages.
    pub(super) fn link(&self, key: &Arc<str>) -> Arc<ActivationLink> {
        let entry = self.entries.get(key);
        entry.map_or_else(
            || {
                let link = ActivationLink::new();
                link.inbound.close();
                Arc::new(link)
            },
            |entry| Arc::clone(&entry.link),
        )
    }

    /// Marks an entity as awake.
    pub(super) fn started(&mut self, key: &Arc<str>, actor: ActorRef<M>, now: Instant) {
        if let Some(entry) = self.entries.get_mut(key)
            && matches!(entry.phase, EntityPhase::Starting)
        {
            entry.phase = EntityPhase::Awake(actor);
            entry.end_phase(None);
            self.rest(key, now);
        }
    }

    /// Ends the count of a sender. Returns `true` if the entity has no more, and others may wait
    /// for room.
    pub(super) fn leave(
        &mut self,
        key: &Arc<str>,
        actor: ActorId,
        now: Instant,
        limit: usize,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        match &entry.phase {
            EntityPhase::Awake(awake) if awake.id() == actor => entry.senders -= 1,
            _ => return false,
        }
        if entry.senders > 0 {
            return false;
        }
        self.rest(key, now);
        self.is_full(limit)
    }

    /// Lists an awake entity without senders as idle, or passivates it if it is to sleep.
    fn rest(&mut self, key: &Arc<str>, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let place = self.next_place;
        self.next_place += 1;
        entry.rested = Some((place, now));
        self.resting += 1;
        if entry.listed.is_none() {
            entry.listed = Some(place);
            self.idle.insert(place, Arc::clone(key));
        }
        if entry.wants_sleep {
            self.passivate(key);
        }
    }

    /// Passivates an entity as soon as it has no senders.
    pub(super) fn passivate_unused(&mut self, key: &Arc<str>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.wants_sleep = true;
            if entry.rested.is_some() {
                self.passivate(key);
            }
        }
    }

    /// Passivates all entities that have been idle for long enough, unless their wake-up time has
    /// come.
    pub(super) fn passivate_idle(&mut self, after: Duration, now: Instant, wall_clock: Duration) {
        let mut keys = Vec::new();
        let mut last = None;
        while let Some(idle) = self.next_idle(last) {
            if now.saturating_duration_since(idle.since) < after {
                break;
            }
            last = Some(idle.place);
            if !self.is_due(&idle.key, wall_clock) {
                keys.push(idle.key);
            }
        }
        keys.iter().for_each(|key| self.passivate(key));
    }

    /// Passivates the entity that has been idle for longest, whose wake-up time has not come.
    pub(super) fn make_room(&mut self, wall_clock: Duration) {
        let mut last = None;
        while let Some(idle) = self.next_idle(last) {
            if !self.is_due(&idle.key, wall_clock) {
                return self.passivate(&idle.key);
            }
            last = Some(idle.place);
        }
    }

    /// Returns the idle entity behind a place, or the first one. Entities that it finds at a wrong
    /// place are moved to theirs.
    fn next_idle(&mut self, behind: Option<u64>) -> Option<IdleEntity> {
        let start = behind.map_or(0, |place| place + 1);
        loop {
            let (&place, key) = self.idle.range(start..).next()?;
            let entry = self.entries.get_mut(key)?;
            match entry.rested {
                Some((rested, since)) if rested == place => {
                    let key = Arc::clone(key);
                    return Some(IdleEntity { key, place, since });
                }
                rested => {
                    entry.listed = rested.map(|(rested, _)| rested);
                    let key = self.idle.remove(&place)?;
                    if let Some(rested) = entry.listed {
                        self.idle.insert(rested, key);
                    }
                }
            }
        }
    }

    fn is_due(&self, key: &Arc<str>, wall_clock: Duration) -> bool {
        let wake = self
            .entries
            .get(key)
            .and_then(|entry| entry.link.wake.get());
        wake.is_some_and(|wake| wake <= wall_clock)
    }

    /// Passivates an idle entity.
    fn passivate(&mut self, key: &Arc<str>) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.rested.take().is_some() {
            self.resting -= 1;
        }
        if let Some(place) = entry.listed.take() {
            self.idle.remove(&place);
        }
        let phase = std::mem::replace(&mut entry.phase, EntityPhase::Passivating);
        if let EntityPhase::Awake(actor) = phase {
            self.tell_host(HostMessage::Passivate(Arc::clone(key), actor));
        }
    }

    /// Removes an entity whose activation has ended. Returns its wake-up time.
    pub(super) fn ended(&mut self, key: &Arc<str>, exit: Exit) -> Option<Duration> {
        let mut entry = remove_and_shrink(&mut self.entries, key)?;
        entry.link.inbound.close();
        if entry.rested.is_some() {
            self.resting -= 1;
        }
        if let Some(place) = entry.listed {
            self.idle.remove(&place);
        }
        let has_failed = matches!(entry.phase, EntityPhase::Starting) && !exit.is_orderly();
        entry.end_phase(has_failed.then_some(exit));
        entry.link.wake.get()
    }

    fn tell_host(&self, message: HostMessage<M>) {
        if let Host::Running(host) = &self.host {
            // It has room, and closes the table when it ends.
            let _ = host.try_tell(message);
        }
    }
}
