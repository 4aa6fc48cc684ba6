//! The table of the entities of a kind that are not asleep.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use strowger::{ActorId, ActorRef, Exit};
use tokio::sync::watch;
use tokio::time::Instant;

use super::WakeTime;
use super::host::HostMessage;
use crate::outbox::InboundQueue;
use crate::seeded_bug::{Bug, seeded};

/// `None` until an entity has left a phase; then the exit of an activation that did not start.
pub(super) type Outcome = Option<Option<Exit>>;

/// The entities that are not asleep, and their host.
pub(super) struct AwakeTable<M: Send + 'static> {
    host: Host<M>,
    entries: HashMap<Arc<str>, Entry<M>>,
    /// The keys of awake entities without senders, the one that has been idle for longest first.
    idle: BTreeMap<u64, Arc<str>>,
    next_idle: u64,
}

enum Host<M> {
    NotStarted,
    Running(ActorRef<HostMessage<M>>),
    Ended,
}

struct Entry<M> {
    phase: EntityPhase<M>,
    senders: usize,
    /// The place in the list of idle entities, and the time since when it is there.
    idle: Option<(u64, Instant)>,
    /// Set if the entity is to be passivated as soon as it has no senders.
    wants_sleep: bool,
    wake: Arc<WakeTime>,
    /// Messages of other entities, which are closed with the entry.
    inbound: Arc<InboundQueue>,
    /// Wakes the senders that wait for the end of the phase.
    outcome: watch::Sender<Outcome>,
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
            idle: BTreeMap::new(),
            next_idle: 0,
        }
    }

    /// Returns the keys, sorted.
    pub(super) fn keys(&self) -> Vec<Arc<str>> {
        let mut keys: Vec<_> = self.entries.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// Returns `true` if there is no room for a further entity.
    pub(super) fn is_busy(&self, limit: usize) -> bool {
        self.entries.len() >= limit.max(1) && self.idle.is_empty()
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
            entry.inbound.close();
        }
        self.idle.clear();
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
                    if let Some((number, _)) = entry.idle.take() {
                        self.idle.remove(&number);
                    }
                    return Entered::Awake(actor);
                }
                EntityPhase::Passivating if seeded(Bug::TwoActivations) => {}
                _ => return Entered::Wait(entry.outcome.subscribe()),
            }
        } else if self.entries.len() >= limit.max(1) {
            return Entered::NoRoom;
        }
        let (outcome, wait) = watch::channel(None);
        let entry = Entry {
            phase: EntityPhase::Starting,
            senders: 0,
            idle: None,
            wants_sleep: false,
            wake: Arc::new(WakeTime::new()),
            inbound: Arc::new(InboundQueue::new()),
            outcome,
        };
        self.entries.insert(Arc::clone(key), entry);
        self.tell_host(HostMessage::Activate(Arc::clone(key)));
        Entered::Wait(wait)
    }

    /// Requests the activation of an entity whose wake-up time has come. Returns `false` if there
    /// is no room.
    pub(super) fn wake(&mut self, key: &Arc<str>, limit: usize) -> bool {
        self.entries.contains_key(key) || !matches!(self.enter(key, limit), Entered::NoRoom)
    }

    /// Returns the wake-up time of an entity that is not asleep.
    pub(super) fn wake_time(&self, key: &Arc<str>) -> Arc<WakeTime> {
        let entry = self.entries.get(key);
        entry.map_or_else(
            || Arc::new(WakeTime::new()),
            |entry| Arc::clone(&entry.wake),
        )
    }

    /// Returns the queue of an entity that is not asleep for messages of other entities.
    pub(super) fn inbound(&self, key: &Arc<str>) -> Arc<InboundQueue> {
        let entry = self.entries.get(key);
        entry.map_or_else(
            || {
                let queue = InboundQueue::new();
                queue.close();
                Arc::new(queue)
            },
            |entry| Arc::clone(&entry.inbound),
        )
    }

    /// Marks an entity as awake.
    pub(super) fn started(&mut self, key: &Arc<str>, actor: ActorRef<M>, now: Instant) {
        if let Some(entry) = self.entries.get_mut(key)
            && matches!(entry.phase, EntityPhase::Starting)
        {
            entry.phase = EntityPhase::Awake(actor);
            entry.outcome.send_replace(Some(None));
            entry.outcome = watch::channel(None).0;
            self.rest(key, now);
        }
    }

    /// Ends the count of a sender. Returns `true` if the entity has no more.
    pub(super) fn leave(&mut self, key: &Arc<str>, actor: ActorId, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        match &entry.phase {
            EntityPhase::Awake(awake) if awake.id() == actor => entry.senders -= 1,
            _ => return false,
        }
        entry.senders == 0 && {
            self.rest(key, now);
            true
        }
    }

    /// Lists an awake entity without senders as idle, or passivates it if it is to sleep.
    fn rest(&mut self, key: &Arc<str>, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let number = self.next_idle;
        self.next_idle += 1;
        entry.idle = Some((number, now));
        self.idle.insert(number, Arc::clone(key));
        if entry.wants_sleep {
            self.passivate(key);
        }
    }

    /// Passivates an entity as soon as it has no senders.
    pub(super) fn passivate_unused(&mut self, key: &Arc<str>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.wants_sleep = true;
            if entry.idle.is_some() {
                self.passivate(key);
            }
        }
    }

    /// Passivates all entities that have been idle for long enough, unless their wake-up time has
    /// come.
    pub(super) fn passivate_idle(&mut self, after: Duration, now: Instant, wall_clock: Duration) {
        let is_idle = |entry: &&Entry<M>| {
            let since = entry.idle.map(|(_, since)| since);
            since.is_some_and(|since| now.saturating_duration_since(since) >= after)
        };
        let idle = self.idle.values();
        let idle = idle.take_while(|key| self.entries.get(*key).as_ref().is_some_and(is_idle));
        let keys: Vec<_> = idle
            .filter(|key| !self.is_due(key, wall_clock))
            .cloned()
            .collect();
        keys.iter().for_each(|key| self.passivate(key));
    }

    /// Passivates the entity that has been idle for longest, whose wake-up time has not come.
    pub(super) fn make_room(&mut self, wall_clock: Duration) {
        let mut idle = self.idle.values();
        if let Some(key) = idle.find(|key| !self.is_due(key, wall_clock)).cloned() {
            self.passivate(&key);
        }
    }

    fn is_due(&self, key: &Arc<str>, wall_clock: Duration) -> bool {
        let wake = self.entries.get(key).and_then(|entry| entry.wake.get());
        wake.is_some_and(|wake| wake <= wall_clock)
    }

    /// Passivates an idle entity.
    fn passivate(&mut self, key: &Arc<str>) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if let Some((number, _)) = entry.idle.take() {
            self.idle.remove(&number);
        }
        let phase = std::mem::replace(&mut entry.phase, EntityPhase::Passivating);
        if let EntityPhase::Awake(actor) = phase {
            self.tell_host(HostMessage::Passivate(Arc::clone(key), actor));
        }
    }

    /// Removes an entity whose activation has ended. Returns its wake-up time.
    pub(super) fn ended(&mut self, key: &Arc<str>, exit: Exit) -> Option<Duration> {
        let entry = self.entries.remove(key)?;
        entry.inbound.close();
        if let Some((number, _)) = entry.idle {
            self.idle.remove(&number);
        }
        let has_failed = matches!(entry.phase, EntityPhase::Starting) && !exit.is_orderly();
        entry.outcome.send_replace(Some(has_failed.then_some(exit)));
        entry.wake.get()
    }

    fn tell_host(&self, message: HostMessage<M>) {
        if let Host::Running(host) = &self.host {
            // It has room, and closes the table when it ends.
            let _ = host.try_tell(message);
        }
    }
}
