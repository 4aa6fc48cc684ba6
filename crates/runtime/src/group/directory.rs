//! Who is in which group.

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
use crate::choice::weight;
use crate::exit::{discard, discard_one, panic_text};
use crate::planted::{Bug, planted};
use crate::recipient::Recipient;
use crate::tie::{Leave, Tie};

/// The groups of one type of message.
pub(crate) struct Directory<T>(Mutex<Table<T>>);

struct Table<T> {
    groups: FxHashMap<Arc<str>, Row<T>>,
    /// The groups that an actor is in, or watches.
    by_actor: FxHashMap<ActorId, FxHashSet<Arc<str>>>,
    last: u64,
    /// What watchers are still to be told. One thread tells, in the order of this queue.
    news: VecDeque<News>,
    telling: bool,
}

struct Row<T> {
    /// By a number that grows: who joined earlier has a lower one.
    members: BTreeMap<u64, Recipient<T>>,
    numbers: FxHashMap<ActorId, u64>,
    /// All members, made when somebody asks, until one joins or leaves.
    all: Option<Arc<[Recipient<T>]>>,
    /// Who had the last turn.
    turn: u64,
    watchers: Vec<Arc<Watcher>>,
}

struct Watcher {
    actor: ActorId,
    to: Recipient<GroupEvent>,
    /// Written by the one that tells.
    missed: Mutex<u64>,
}

struct News {
    event: GroupEvent,
    watchers: Vec<Arc<Watcher>>,
}

impl<T> Default for Row<T> {
    fn default() -> Self {
        Self {
            members: BTreeMap::new(),
            numbers: FxHashMap::default(),
            all: None,
            turn: 0,
            watchers: Vec::new(),
        }
    }
}

impl<T> Row<T> {
    fn holds(&self, actor: ActorId) -> bool {
        self.numbers.contains_key(&actor) || self.watchers.iter().any(|one| one.actor == actor)
    }

    fn unwatch(&mut self, actor: ActorId) -> Option<Arc<Watcher>> {
        let place = self.watchers.iter().position(|one| one.actor == actor)?;
        Some(self.watchers.remove(place))
    }
}

impl<T: Send + 'static> Table<T> {
    fn row(&mut self, group: &Arc<str>, actor: ActorId) -> &mut Row<T> {
        let groups = self.by_actor.entry(actor).or_default();
        groups.insert(Arc::clone(group));
        self.groups.entry(Arc::clone(group)).or_default()
    }

    fn announce(&mut self, group: &str, event: GroupEvent) {
        if let Some(row) = self.groups.get(group)
            && !row.watchers.is_empty()
        {
            let watchers = row.watchers.clone();
            self.news.push_back(News { event, watchers });
        }
    }

    /// Takes a member out, and tells.
    fn remove(&mut self, group: &Arc<str>, actor: ActorId) -> Option<Recipient<T>> {
        let row = self.groups.get_mut(group)?;
        let number = row.numbers.remove(&actor)?;
        let removed = row.members.remove(&number)?;
        row.all = None;
        let (group, member) = (Arc::clone(group), removed.actor());
        self.announce(&Arc::clone(&group), GroupEvent::Left { group, member });
        Some(removed)
    }

    /// Forgets what nobody needs of a group, and of an actor in it.
    fn tidy(&mut self, group: &str, actor: ActorId) {
        let row = self.groups.get(group);
        if !row.is_some_and(|row| row.holds(actor))
            && let Some(groups) = self.by_actor.get_mut(&actor)
        {
            groups.remove(group);
            if groups.is_empty() {
                self.by_actor.remove(&actor);
            }
        }
        if row_is_empty(self.groups.get(group)) {
            self.groups.remove(group);
        }
    }
}

fn row_is_empty<T>(row: Option<&Row<T>>) -> bool {
    row.is_some_and(|row| row.members.is_empty() && row.watchers.is_empty())
}

impl<T: Send + 'static> Directory<T> {
    fn new() -> Self {
        Self(Mutex::new(Table {
            groups: FxHashMap::default(),
            by_actor: FxHashMap::default(),
            last: 0,
            news: VecDeque::new(),
            telling: false,
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
        let row = table.row(group, actor);
        let number = *row.numbers.entry(actor).or_insert(last);
        row.all = None;
        let old = row.members.insert(number, recipient);
        if old.is_none() {
            let event = GroupEvent::Joined {
                group: Arc::clone(group),
                member: member.clone(),
            };
            table.announce(group, event);
        }
        drop(table);
        discard(old);
        self.tell();
        self.tie(group, &member)
    }

    /// Sees to it that the actor leaves at its end.
    fn tie(self: &Arc<Self>, group: &Arc<str>, actor: &AnyRef) -> Result<(), GroupError> {
        // An actor ends by noting so first and leaving then, so nothing of it is left behind.
        let tie: Tie = Arc::<Self>::downgrade(self);
        if actor.0.node().tie(tie) {
            return Ok(());
        }
        self.leave(actor.id());
        Err(GroupError::Ended {
            path: actor.path(),
            group: Arc::clone(group),
        })
    }

    pub(super) fn part(&self, group: &Arc<str>, actor: ActorId) -> bool {
        let mut table = self.0.lock();
        let removed = table.remove(group, actor);
        table.tidy(group, actor);
        drop(table);
        self.tell();
        let found = removed.is_some();
        discard(removed);
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
        let row = table.row(group, actor);
        let old = row.unwatch(actor);
        row.watchers.push(Arc::new(Watcher {
            actor,
            to,
            missed: Mutex::new(0),
        }));
        let members = row.members.values().map(Recipient::actor).collect();
        drop(table);
        discard(old);
        self.tie(group, &watcher)?;
        Ok(members)
    }

    pub(super) fn unwatch(&self, group: &str, actor: ActorId) -> bool {
        let mut table = self.0.lock();
        let row = table.groups.get_mut(group);
        let removed = row.and_then(|row| row.unwatch(actor));
        table.tidy(group, actor);
        drop(table);
        let found = removed.is_some();
        discard(removed);
        found
    }

    pub(super) fn all(&self, group: &str) -> Arc<[Recipient<T>]> {
        let mut table = self.0.lock();
        let Some(row) = table.groups.get_mut(group) else {
            return Arc::default();
        };
        let members = &row.members;
        let all = row
            .all
            .get_or_insert_with(|| members.values().cloned().collect());
        Arc::clone(all)
    }

    pub(super) fn count(&self, group: &str) -> usize {
        let table = self.0.lock();
        table.groups.get(group).map_or(0, |row| row.members.len())
    }

    /// The member that is next in turn. `tried` are the first and the last of a round that were
    /// asked before; `None` when the round is over.
    pub(super) fn next(
        &self,
        group: &str,
        tried: Option<(u64, u64)>,
    ) -> Option<(u64, Recipient<T>)> {
        let mut table = self.0.lock();
        let row = table.groups.get_mut(group)?;
        let after = tried.map_or(row.turn, |(_, last)| last);
        let later = (Bound::Excluded(after), Bound::Unbounded);
        let mut round = row.members.range(later).chain(row.members.range(..=after));
        let (number, member) = round.next()?;
        let (number, member) = (*number, member.clone());
        // Numbers of a round, which begins anywhere, grow when they are counted from its first.
        let over =
            |(first, last): (u64, u64)| number.wrapping_sub(first) <= last.wrapping_sub(first);
        if tried.is_some_and(over) {
            return None;
        }
        row.turn = number;
        Some((number, member))
    }

    /// Of those who live, the member to whom a key belongs.
    pub(super) fn owner(&self, group: &str, key: u64) -> Option<Recipient<T>> {
        let table = self.0.lock();
        let members = table.groups.get(group)?.members.iter();
        let (_, member) = members
            .filter(|(_, member)| member.actor().is_alive())
            .max_by_key(|(number, _)| weight(key, **number))?;
        Some(member.clone())
    }

    /// Tells watchers what happened, unless another thread is at it.
    fn tell(&self) {
        let mut table = self.0.lock();
        if table.telling {
            return;
        }
        table.telling = true;
        while let Some(News { event, watchers }) = table.news.pop_front() {
            MutexGuard::unlocked(&mut table, || {
                watchers.iter().for_each(|watcher| watcher.tell(&event));
                discard(watchers);
            });
        }
        table.telling = false;
    }
}

impl Watcher {
    fn tell(&self, event: &GroupEvent) {
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

    /// Whether there was room. A conversion that panics costs its watcher the event, and nobody
    /// else anything.
    fn send(&self, event: GroupEvent) -> bool {
        match catch_unwind(AssertUnwindSafe(|| self.to.try_tell(event))) {
            Ok(sent) => !matches!(sent, Err(SendError::Full(_))),
            Err(payload) => {
                let panic = panic_text(payload.as_ref());
                let path = self.to.actor().path();
                tracing::error!(%path, %panic, "panic in a conversion");
                discard_one(payload);
                true
            }
        }
    }
}

impl<T: Send + 'static> Leave for Directory<T> {
    fn leave(&self, actor: ActorId) {
        if planted(Bug::MemberOutlivesItsEnd) {
            return;
        }
        let mut table = self.0.lock();
        let groups = table.by_actor.remove(&actor).unwrap_or_default();
        let mut removed = Vec::new();
        let mut watchers = Vec::new();
        for group in &groups {
            let row = table.groups.get_mut(group);
            watchers.extend(row.and_then(|row| row.unwatch(actor)));
            removed.extend(table.remove(group, actor));
            table.tidy(group, actor);
        }
        drop(table);
        self.tell();
        discard(removed);
        discard(watchers);
    }
}

/// The directories of a system, by the type of their messages.
#[derive(Default)]
pub(crate) struct Directories(Mutex<FxHashMap<TypeId, Arc<dyn AnyDirectory>>>);

trait AnyDirectory: Send + Sync {
    fn infos(&self) -> Vec<GroupInfo>;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Send + 'static> AnyDirectory for Directory<T> {
    fn infos(&self) -> Vec<GroupInfo> {
        let table = self.0.lock();
        let held = table
            .groups
            .iter()
            .filter(|(_, row)| !row.members.is_empty());
        held.map(|(name, row)| GroupInfo {
            name: Arc::clone(name),
            kind: type_name::<T>(),
            members: row.members.len(),
        })
        .collect()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Directories {
    pub(crate) fn group<T: Send + 'static>(&self, name: Arc<str>) -> Group<T> {
        let mut directories = self.0.lock();
        let directory = directories
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(Directory::<T>::new()));
        let any = Arc::clone(directory).into_any();
        drop(directories);
        let directory = any.downcast().expect("stored under its own type");
        Group::new(name, directory)
    }

    /// The groups that have members, by name and type.
    pub(crate) fn infos(&self) -> Vec<GroupInfo> {
        let directories: Vec<_> = self.0.lock().values().cloned().collect();
        let mut infos: Vec<_> = directories.iter().flat_map(|one| one.infos()).collect();
        infos.sort_unstable_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
        infos
    }
}
