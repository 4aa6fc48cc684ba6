//! The members and monitors of groups.

use std::any::{Any, TypeId, type_name};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Group, GroupError, GroupEvent, GroupInfo};
use crate::address::{AnyRef, SendError};
use crate::cell::ActorId;
use crate::exit::{drop_all_caught, drop_caught, panic_message};
use crate::membership::{Membership, WeakMembership};
use crate::recipient::Recipient;
use crate::rendezvous::rendezvous_weight;
use crate::seeded_bug::{Bug, seeded};

/// The groups for messages of one type.
pub(crate) struct GroupDirectory<T>(Mutex<GroupTable<T>>);

struct GroupTable<T> {
    groups: FxHashMap<Arc<str>, GroupEntry<T>>,
    /// The groups that each actor is a member of or monitors.
    by_actor: FxHashMap<ActorId, FxHashSet<Arc<str>>>,
    last: u64,
    /// Events that watchers have yet to be notified of. One thread at a time delivers them, in the
    /// order of this queue.
    pending_events: VecDeque<PendingEvent>,
    delivering: bool,
}

struct GroupEntry<T> {
    /// By a number that grows: members that joined earlier have lower numbers.
    members: BTreeMap<u64, Recipient<T>>,
    numbers: FxHashMap<ActorId, u64>,
    /// A cached list of all members, built on demand and dropped when a member joins or leaves.
    cached_members: Option<Arc<[Recipient<T>]>>,
    /// The number of the member that had the last turn.
    last_turn: u64,
    watchers: Vec<Arc<GroupWatcher>>,
}

struct GroupWatcher {
    actor: ActorId,
    to: Recipient<GroupEvent>,
    /// Number of events missed since the last report. Only written by the thread that delivers.
    missed: Mutex<u64>,
}

struct PendingEvent {
    event: GroupEvent,
    watchers: Vec<Arc<GroupWatcher>>,
}

impl<T> Default for GroupEntry<T> {
    fn default() -> Self {
        Self {
            members: BTreeMap::new(),
            numbers: FxHashMap::default(),
            cached_members: None,
            last_turn: 0,
            watchers: Vec::new(),
        }
    }
}

impl<T> GroupEntry<T> {
    fn contains(&self, actor: ActorId) -> bool {
        self.numbers.contains_key(&actor) || self.watchers.iter().any(|one| one.actor == actor)
    }

    fn unwatch(&mut self, actor: ActorId) -> Option<Arc<GroupWatcher>> {
        let place = self.watchers.iter().position(|one| one.actor == actor)?;
        Some(self.watchers.remove(place))
    }
}

impl<T: Send + 'static> GroupTable<T> {
    fn entry(&mut self, group: &Arc<str>, actor: ActorId) -> &mut GroupEntry<T> {
        let groups = self.by_actor.entry(actor).or_default();
        groups.insert(Arc::clone(group));
        self.groups.entry(Arc::clone(group)).or_default()
    }

    fn queue_event(&mut self, group: &str, event: GroupEvent) {
        if let Some(entry) = self.groups.get(group)
            && !entry.watchers.is_empty()
        {
            let watchers = entry.watchers.clone();
            self.pending_events
                .push_back(PendingEvent { event, watchers });
        }
    }

    /// Removes a member and queues an event for the watchers.
    fn remove(&mut self, group: &Arc<str>, actor: ActorId) -> Option<Recipient<T>> {
        let entry = self.groups.get_mut(group)?;
        let number = entry.numbers.remove(&actor)?;
        let removed = entry.members.remove(&number)?;
        entry.cached_members = None;
        let (group, member) = (Arc::clone(group), removed.actor());
        self.queue_event(&Arc::clone(&group), GroupEvent::Left { group, member });
        Some(removed)
    }

    /// Removes the entries of a group, and of an actor in it, that are no longer needed.
    fn remove_if_unused(&mut self, group: &str, actor: ActorId) {
        let entry = self.groups.get(group);
        if !entry.is_some_and(|entry| entry.contains(actor))
            && let Some(groups) = self.by_actor.get_mut(&actor)
        {
            groups.remove(group);
            if groups.is_empty() {
                self.by_actor.remove(&actor);
            }
        }
        if entry_is_empty(self.groups.get(group)) {
            self.groups.remove(group);
        }
    }
}

fn entry_is_empty<T>(entry: Option<&GroupEntry<T>>) -> bool {
    entry.is_some_and(|entry| entry.members.is_empty() && entry.watchers.is_empty())
}

impl<T: Send + 'static> GroupDirectory<T> {
    fn new() -> Self {
        Self(Mutex::new(GroupTable {
            groups: FxHashMap::default(),
            by_actor: FxHashMap::default(),
            last: 0,
            pending_events: VecDeque::new(),
            delivering: false,
        }))
    }

    pub(super) fn join(
        self: &Arc<Self>,
        group: &Arc<str>,
        recipient: Recipient<T>,
    ) -> Result<(), GroupError> {
        let member = recipient.actor();
        let actor = member.id();
        let mut table = self.0.lock();
        table.last += 1;
        let last = table.last;
        let entry = table.entry(group, actor);
        let number = *entry.numbers.entry(actor).or_insert(last);
        entry.cached_members = None;
        let old = entry.members.insert(number, recipient);
        if old.is_none() {
            let event = GroupEvent::Joined {
                group: Arc::clone(group),
                member: member.clone(),
            };
            table.queue_event(group, event);
        }
        drop(table);
        drop_all_caught(old);
        self.deliver_events();
        self.add_membership(group, &member)
    }

    /// Makes sure that the actor leaves all groups when it ends.
    fn add_membership(
        self: &Arc<Self>,
        group: &Arc<str>,
        actor: &AnyRef,
    ) -> Result<(), GroupError> {
        // An ending actor first marks itself as ended and then leaves its groups, so either this
        // call fails or the actor's end removes the entries.
        let membership: WeakMembership = Arc::<Self>::downgrade(self);
        if actor.0.core().add_membership(membership) {
            return Ok(());
        }
        self.on_exit(actor.id());
        Err(GroupError::Ended {
            path: actor.path(),
            group: Arc::clone(group),
        })
    }

    pub(super) fn leave(&self, group: &Arc<str>, actor: ActorId) -> bool {
        let mut table = self.0.lock();
        let removed = table.remove(group, actor);
        table.remove_if_unused(group, actor);
        drop(table);
        self.deliver_events();
        let found = removed.is_some();
        drop_all_caught(removed);
        found
    }

    pub(super) fn watch(
        self: &Arc<Self>,
        group: &Arc<str>,
        to: Recipient<GroupEvent>,
    ) -> Result<Vec<AnyRef>, GroupError> {
        let watcher = to.actor();
        let actor = watcher.id();
        let mut table = self.0.lock();
        let entry = table.entry(group, actor);
        let old = entry.unwatch(actor);
        entry.watchers.push(Arc::new(GroupWatcher {
            actor,
            to,
            missed: Mutex::new(0),
        }));
        let members = entry.members.values().map(Recipient::actor).collect();
        drop(table);
        drop_all_caught(old);
        self.add_membership(group, &watcher)?;
        Ok(members)
    }

    pub(super) fn unwatch(&self, group: &str, actor: ActorId) -> bool {
        let mut table = self.0.lock();
        let entry = table.groups.get_mut(group);
        let removed = entry.and_then(|entry| entry.unwatch(actor));
        table.remove_if_unused(group, actor);
        drop(table);
        let found = removed.is_some();
        drop_all_caught(removed);
        found
    }

    pub(super) fn all(&self, group: &str) -> Arc<[Recipient<T>]> {
        let mut table = self.0.lock();
        let Some(entry) = table.groups.get_mut(group) else {
            return Arc::default();
        };
        let members = &entry.members;
        let all = entry
            .cached_members
            .get_or_insert_with(|| members.values().cloned().collect());
        Arc::clone(all)
    }

    pub(super) fn count(&self, group: &str) -> usize {
        let table = self.0.lock();
        table
            .groups
            .get(group)
            .map_or(0, |entry| entry.members.len())
    }

    /// Returns the member that is next in turn. `tried` holds the first and the last member that
    /// were tried in this round; the result is `None` when the round is over.
    pub(super) fn next(
        &self,
        group: &str,
        tried: Option<(u64, u64)>,
    ) -> Option<(u64, Recipient<T>)> {
        let mut table = self.0.lock();
        let entry = table.groups.get_mut(group)?;
        let after = tried.map_or(entry.last_turn, |(_, last)| last);
        let later = (Bound::Excluded(after), Bound::Unbounded);
        let mut round = entry
            .members
            .range(later)
            .chain(entry.members.range(..=after));
        let (number, member) = round.next()?;
        let (number, member) = (*number, member.clone());
        // A round may begin at any number and wraps around. Relative to its first number, the
        // numbers of a round grow until it has come full circle.
        let over =
            |(first, last): (u64, u64)| number.wrapping_sub(first) <= last.wrapping_sub(first);
        if tried.is_some_and(over) {
            return None;
        }
        entry.last_turn = number;
        Some((number, member))
    }

    /// Returns the owner of a key among the members that are alive.
    pub(super) fn owner(&self, group: &str, key: u64) -> Option<Recipient<T>> {
        let table = self.0.lock();
        let members = table.groups.get(group)?.members.iter();
        let (_, member) = members
            .filter(|(_, member)| member.actor().is_alive())
            .max_by_key(|(number, _)| rendezvous_weight(key, **number))?;
        Some(member.clone())
    }

    /// Delivers queued events to the watchers, unless another thread is already doing so.
    fn deliver_events(&self) {
        let mut table = self.0.lock();
        if table.delivering {
            return;
        }
        table.delivering = true;
        while let Some(PendingEvent { event, watchers }) = table.pending_events.pop_front() {
            MutexGuard::unlocked(&mut table, || {
                watchers.iter().for_each(|watcher| watcher.deliver(&event));
                drop_all_caught(watchers);
            });
        }
        table.delivering = false;
    }
}

impl GroupWatcher {
    fn deliver(&self, event: &GroupEvent) {
        let mut missed = self.missed.lock();
        if *missed > 0 {
            let group = Arc::clone(event.group());
            let count = *missed;
            if self.send(GroupEvent::Missed { group, count }) {
                *missed = 0;
            } else {
                *missed += 1;
                return;
            }
        }
        *missed += u64::from(!self.send(event.clone()));
    }

    /// Returns `true` unless the mailbox was full. If a conversion panics, only its own watcher
    /// misses the event.
    fn send(&self, event: GroupEvent) -> bool {
        match catch_unwind(AssertUnwindSafe(|| self.to.try_tell(event))) {
            Ok(sent) => !matches!(sent, Err(SendError::Full(_))),
            Err(payload) => {
                let panic = panic_message(payload.as_ref());
                let path = self.to.actor().path();
                tracing::error!(%path, %panic, "panic in a message conversion");
                drop_caught(payload);
                true
            }
        }
    }
}

impl<T: Send + 'static> Membership for GroupDirectory<T> {
    fn on_exit(&self, actor: ActorId) {
        if seeded(Bug::EndedActorStaysInGroup) {
            return;
        }
        let mut table = self.0.lock();
        let groups = table.by_actor.remove(&actor).unwrap_or_default();
        let mut removed = Vec::new();
        let mut watchers = Vec::new();
        for group in &groups {
            let entry = table.groups.get_mut(group);
            watchers.extend(entry.and_then(|entry| entry.unwatch(actor)));
            removed.extend(table.remove(group, actor));
            table.remove_if_unused(group, actor);
        }
        drop(table);
        self.deliver_events();
        drop_all_caught(removed);
        drop_all_caught(watchers);
    }
}

/// The directories of a system, by the type of their messages.
#[derive(Default)]
pub(crate) struct GroupDirectories(Mutex<FxHashMap<TypeId, Arc<dyn AnyDirectory>>>);

trait AnyDirectory: Send + Sync {
    fn infos(&self) -> Vec<GroupInfo>;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Send + 'static> AnyDirectory for GroupDirectory<T> {
    fn infos(&self) -> Vec<GroupInfo> {
        let table = self.0.lock();
        let held = table
            .groups
            .iter()
            .filter(|(_, entry)| !entry.members.is_empty());
        held.map(|(name, entry)| GroupInfo {
            name: Arc::clone(name),
            message_type: type_name::<T>(),
            members: entry.members.len(),
        })
        .collect()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl GroupDirectories {
    pub(crate) fn group<T: Send + 'static>(&self, name: Arc<str>) -> Group<T> {
        let mut directories = self.0.lock();
        let directory = directories
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(GroupDirectory::<T>::new()));
        let any = Arc::clone(directory).into_any();
        drop(directories);
        let directory = any.downcast().expect("stored under its own type");
        Group::new(name, directory)
    }

    /// Returns the groups that have members, sorted by name and type.
    pub(crate) fn infos(&self) -> Vec<GroupInfo> {
        let directories: Vec<_> = self.0.lock().values().cloned().collect();
        let mut infos: Vec<_> = directories.iter().flat_map(|one| one.infos()).collect();
        infos.sort_unstable_by(|a, b| (&a.name, a.message_type).cmp(&(&b.name, b.message_type)));
        infos
    }
}
