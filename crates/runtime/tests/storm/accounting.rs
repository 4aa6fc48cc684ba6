//! The books of a storm: what its actors report, and the invariants that must hold for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use strowger::testing::{Hook, InjectedFault};
use strowger::{Event, Exit};

use crate::{ASKERS, BLOCKER, CROWD, HOG, IMMEDIATE, INTENSITY, PERIOD, WORKERS};

/// Number of times that each fault was hit.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Accounting {
    /// Letters that a mailbox accepted, by worker.
    accepted: BTreeMap<String, u64>,
    /// Letters whose asker gave up waiting; the mailbox may or may not have accepted them.
    unknown: BTreeMap<String, BTreeSet<(u32, u64)>>,
    /// Letters whose handling began, in this order: worker, sender, number.
    begun: Vec<(String, u32, u64)>,
    /// Letters whose handling finished, by worker.
    done: BTreeMap<String, u64>,
    /// Letters that the system reported as lost, or that a drain returned, by worker.
    reported: BTreeMap<String, u64>,
    /// Messages for subscribers, group members and the blocking actor: the number that was
    /// accepted, the number that was handled, and the number that the system reported as not
    /// handled.
    pub(crate) published: u64,
    pub(crate) heard: u64,
    unheard: u64,
    /// The member that was called for a key, by the number of changes in the group.
    called: BTreeMap<(u64, u64), String>,
    /// Actors that wait for a reply inside a hook.
    waiting: BTreeSet<String>,
    /// Live actor values by path: the serial number of each.
    values: BTreeMap<String, BTreeSet<u64>>,
    /// Actors between their first start and their exit, according to the events.
    alive: BTreeSet<String>,
    /// Reasons why actors ended for good: path and reason.
    pub(crate) ends: BTreeMap<(String, String), u64>,
    /// The times of immediate restarts, by supervisor.
    restarts: BTreeMap<String, VecDeque<Duration>>,
    /// Incarnations of actors that ended abnormally.
    fallen: BTreeSet<u64>,
    next_serial: u64,
    pub(crate) counts: Counts,
    /// Violations found so far.
    wrong: Vec<String>,
}

pub(crate) type Shared = Arc<Mutex<Accounting>>;

pub(crate) fn note<R>(books: &Shared, note: impl FnOnce(&mut Accounting) -> R) -> R {
    note(&mut books.lock().expect("nobody panics with it"))
}

impl Accounting {
    pub(crate) fn accept(&mut self, path: &str) {
        *self.accepted.entry(path.to_owned()).or_default() += 1;
    }

    pub(crate) fn note_unknown_outcome(&mut self, path: &str, sender: u32, number: u64) {
        let unknown = self.unknown.entry(path.to_owned()).or_default();
        unknown.insert((sender, number));
    }

    pub(crate) fn begin(&mut self, path: &str, sender: u32, number: u64) {
        self.begun.push((path.to_owned(), sender, number));
    }

    pub(crate) fn finish(&mut self, path: &str) {
        *self.done.entry(path.to_owned()).or_default() += 1;
    }

    /// Notes letters that a drain returned.
    pub(crate) fn hand_back(&mut self, path: &str, letters: u64) {
        self.count(match letters {
            0 => "drain to the end",
            _ => "drain that handed letters back",
        });
        *self.reported.entry(path.to_owned()).or_default() += letters;
    }

    pub(crate) fn count(&mut self, fault: &'static str) {
        self.count_many(fault, 1);
    }

    pub(crate) fn count_many(&mut self, fault: &'static str, times: u64) {
        *self.counts.entry(fault).or_default() += times;
    }

    /// Notes a violation; a panic in an actor would be part of the storm instead.
    pub(crate) fn note_violation(&mut self, what: String) {
        self.wrong.push(what);
    }

    /// Notes a new incarnation; returns its serial number.
    pub(crate) fn incarnation_started(&mut self, path: &str) -> u64 {
        self.next_serial += 1;
        let values = self.values.entry(path.to_owned()).or_default();
        values.insert(self.next_serial);
        if values.len() > 1 {
            self.note_violation(format!("two incarnations of {path} overlap"));
        }
        self.next_serial
    }

    pub(crate) fn incarnation_ended(&mut self, path: &str, serial: u64, orderly: bool) {
        if let Some(values) = self.values.get_mut(path) {
            values.remove(&serial);
        }
        if !orderly {
            self.fallen.insert(serial);
        }
    }

    /// The live incarnation.
    pub(crate) fn incarnation(&self, path: &str) -> Option<u64> {
        self.values.get(path)?.last().copied()
    }

    pub(crate) fn has_ended(&self, serial: u64) -> bool {
        self.fallen.contains(&serial)
    }

    /// Notes the member that was called for a key; it stays the same until the group changes.
    pub(crate) fn call(&mut self, key: u64, changes: u64, path: &str) {
        let first = self.called.entry((key, changes));
        let first = first.or_insert_with(|| path.to_owned()).clone();
        if first != path {
            self.note_violation(format!("{key} is the key of {first} and of {path}"));
        }
    }

    pub(crate) fn waits(&mut self, path: &str) {
        self.waiting.insert(path.to_owned());
    }

    pub(crate) fn wait_ended(&mut self, path: &str) {
        self.waiting.remove(path);
    }

    /// Notes an ask in a hook that was not answered in time. The callee may be an actor that is not
    /// restarted, because its supervisor is about to end, but it must not be part of a ring.
    pub(crate) fn unanswered(&mut self) {
        if self.waiting.len() == ASKERS.len() {
            self.note_violation(format!("a ring that nobody noticed: {:?}", self.waiting));
        }
    }

    /// Notes a ring of which one asker was told.
    pub(crate) fn ring(&mut self, asker: &str, ring: &[String]) {
        self.count("ring of asks");
        let first = ASKERS.iter().position(|one| *one == asker);
        let all = first.map(|first| ASKERS.iter().cycle().skip(first).take(ASKERS.len() + 1));
        if !all.is_some_and(|all| all.eq(ring)) {
            self.note_violation(format!("{asker} is told of the ring {ring:?}"));
        }
        if !ring.iter().all(|one| self.waiting.contains(one)) {
            self.note_violation(format!("of {ring:?}, only {:?} wait", self.waiting));
        }
    }

    /// Notes an injected fault that was hit.
    pub(crate) fn note_fault(&mut self, hook: Hook, fault: &InjectedFault, slow: Duration) {
        self.count(match (hook, fault) {
            (Hook::PreStart, InjectedFault::Panic(_)) => "panic in pre_start",
            (Hook::PreStart, InjectedFault::Error(_)) => "error in pre_start",
            (Hook::PreStart, InjectedFault::Stall(_)) => "stall in pre_start",
            (Hook::Handle, InjectedFault::Panic(_)) => "panic in handle",
            (Hook::Handle, InjectedFault::Error(_)) => "error in handle",
            (Hook::Handle, InjectedFault::Stall(_)) => "stall in handle",
            (Hook::Signal, InjectedFault::Panic(_)) => "panic in signal",
            (Hook::Signal, InjectedFault::Error(_)) => "error in signal",
            (Hook::Signal, InjectedFault::Stall(_)) => "stall in signal",
            (Hook::PostStop, InjectedFault::Panic(_)) => "panic in post_stop",
            (Hook::PostStop, InjectedFault::Stall(time)) if *time > slow => "stop beyond its limit",
            (Hook::PostStop, InjectedFault::Stall(_)) => "stall in post_stop",
            _ => return,
        });
    }

    pub(crate) fn event(&mut self, event: &Event, at: Duration) {
        let path = event.path().to_string();
        match event {
            Event::Started { .. } => {
                if !self.alive.insert(path.clone()) {
                    self.note_violation(format!("{path} started twice"));
                }
                self.restarts.remove(&path);
            }
            Event::Stopped { exit, .. } => {
                self.end_of(&path, "outlived the end");
                self.alive.remove(&path);
                self.exit(exit);
                *self.ends.entry((path, exit.to_string())).or_default() += 1;
            }
            Event::Restarted { exit, .. } => {
                self.end_of(&path, "outlived an incarnation");
                self.exit(exit);
                self.restarted(&path, at);
            }
            Event::Escalated { .. } => self.escalated(&path, at),
            Event::DeadLetter { count, .. } => self.report(path, *count),
            Event::Expired { count, .. } => {
                self.count_many("message past its time", *count);
                self.report(path, *count);
            }
            Event::Overflow { count, .. } => {
                let rule = match path.as_str() {
                    "/top/rest/newest" => "overflow: newest dropped",
                    "/top/rest/oldest" => "overflow: oldest dropped",
                    _ => "overflow: all but the latest dropped",
                };
                self.count_many(rule, *count);
                self.report(path, *count);
            }
            _ => {}
        }
    }

    fn report(&mut self, path: String, count: u64) {
        if WORKERS.contains(&path.as_str()) {
            *self.reported.entry(path).or_default() += count;
        } else if path.starts_with(CROWD) || path == BLOCKER || path == HOG {
            self.unheard += count;
        }
    }

    fn exit(&mut self, exit: &Exit) {
        match exit {
            Exit::Linked { .. } => self.count("end by a link"),
            Exit::Killed => self.count("killed"),
            _ => {}
        }
    }

    /// Checks that children end before their owner, and before its next incarnation.
    fn end_of(&mut self, owner: &str, what: &str) {
        let below = format!("{owner}/");
        let next = self.alive.range(below.clone()..).next();
        if let Some(left) = next.filter(|path| path.starts_with(&below)).cloned() {
            self.note_violation(format!("{left} {what} of {owner}"));
        }
    }

    fn restarted(&mut self, path: &str, at: Duration) {
        let Some((supervisor, _)) = path.rsplit_once('/') else {
            return;
        };
        if path.matches('/').count() == 2 {
            self.count("restart of a supervisor");
            self.restarts.remove(path);
        }
        if !IMMEDIATE.contains(&supervisor) {
            return;
        }
        let recent = self.recent(supervisor, at);
        recent.push_back(at);
        if recent.len() > INTENSITY {
            let text = format!("{supervisor} carried out {} restarts", recent.len());
            self.note_violation(text);
        }
    }

    fn escalated(&mut self, path: &str, at: Duration) {
        self.count("escalation");
        if !IMMEDIATE.contains(&path) {
            return;
        }
        let carried_out = self.recent(path, at).len();
        if carried_out != INTENSITY {
            self.note_violation(format!("{path} gave up after {carried_out} restarts"));
        }
    }

    /// The restarts of a supervisor that still count.
    fn recent(&mut self, supervisor: &str, now: Duration) -> &mut VecDeque<Duration> {
        let recent = self.restarts.entry(supervisor.to_owned()).or_default();
        while recent.front().is_some_and(|at| now - *at > PERIOD) {
            recent.pop_front();
        }
        recent
    }

    /// Number of letters that were handled, and of those that the system reported as lost.
    pub(crate) fn sums(&self) -> (u64, u64) {
        (self.done.values().sum(), self.reported.values().sum())
    }

    /// The violations found so far.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.wrong.clone()
    }

    /// Fails unless the books balance.
    pub(crate) fn check(&self) {
        assert_eq!(self.wrong, [""; 0]);
        let mut last: BTreeMap<(&str, u32), u64> = BTreeMap::new();
        for (path, sender, number) in &self.begun {
            // Increasing numbers: in order and without duplicates.
            if let Some(before) = last.insert((path.as_str(), *sender), *number) {
                assert!(
                    before < *number,
                    "{path} got {number} of {sender} after {before}"
                );
            }
        }
        for path in WORKERS {
            self.assert_balanced(path);
        }
        let (published, heard, unheard) = (self.published, self.heard, self.unheard);
        assert_eq!(
            published,
            heard + unheard,
            "{published} delivered, {heard} heard and {unheard} reported"
        );
        let left: Vec<_> = self
            .values
            .iter()
            .filter(|(_, left)| !left.is_empty())
            .collect();
        assert!(left.is_empty(), "values outlived their system: {left:?}");
    }

    fn assert_balanced(&self, path: &str) {
        let count = |of: &BTreeMap<String, u64>| of.get(path).copied().unwrap_or(0);
        let unknown = self.unknown.get(path);
        let taken = |letter: &(u32, u64)| {
            let begun = |(at, sender, number): &(String, u32, u64)| {
                at == path && (*sender, *number) == *letter
            };
            self.begun.iter().any(begun)
        };
        let unknown_begun = unknown.map_or(0, |all| all.iter().filter(|one| taken(one)).count());
        let unknown_left = unknown.map_or(0, BTreeSet::len) - unknown_begun;
        let accepted = count(&self.accepted) + unknown_begun as u64;
        let (done, reported) = (count(&self.done), count(&self.reported));
        let range = accepted..=accepted + unknown_left as u64;
        assert!(
            range.contains(&(done + reported)),
            "{path}: {range:?} accepted, {done} done and {reported} reported"
        );
    }
}
