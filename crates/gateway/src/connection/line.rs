//! Messages that wait for room in the mailboxes of actors, one line for each actor.
//!
//! Only the first of a line waits at the mailbox: so the messages of a client arrive there in the
//! order of sending, whichever thread finds that there is room.

use std::collections::{HashMap, VecDeque};

use strowger::{ActorId, Code, Entry, Fault, Payload};

use crate::frame::Kind;

/// A message that is not in its mailbox yet.
pub(super) struct Waiting {
    pub(super) id: u32,
    pub(super) kind: Kind,
    pub(super) entry: Entry,
    pub(super) payload: Payload,
}

pub(super) struct Lines {
    by_actor: HashMap<ActorId, Line>,
    /// How many octets wait behind the first ones.
    octets: usize,
    limit: usize,
}

struct Line {
    first: u32,
    behind: VecDeque<Waiting>,
}

impl Lines {
    /// Lines in which so many octets may wait.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            by_actor: HashMap::new(),
            octets: 0,
            limit,
        }
    }

    /// Puts a message behind those that wait for its actor; gives it back if none does.
    pub(super) fn join(&mut self, waiting: Waiting) -> Result<Option<Waiting>, Fault> {
        if self.by_actor.is_empty() {
            return Ok(Some(waiting));
        }
        let Some(line) = self.by_actor.get_mut(&waiting.entry.actor().id()) else {
            return Ok(Some(waiting));
        };
        let octets = self.octets + waiting.payload.octets.len();
        if octets > self.limit {
            let text = format!(
                "{} octets wait for room in mailboxes; they may be {}",
                self.octets, self.limit
            );
            return Err(Fault::new(Code::Full, text));
        }
        self.octets = octets;
        line.behind.push_back(waiting);
        Ok(None)
    }

    /// Takes note that this message waits at the mailbox of an actor.
    pub(super) fn stand(&mut self, actor: ActorId, id: u32) {
        let line = self.by_actor.entry(actor).or_insert_with(|| Line {
            first: id,
            behind: VecDeque::new(),
        });
        line.first = id;
    }

    /// The actor at whose mailbox a message waits.
    pub(super) fn stands_at(&self, id: u32) -> Option<ActorId> {
        let mut lines = self.by_actor.iter();
        let line = lines.find(|(_, line)| line.first == id);
        line.map(|(actor, _)| *actor)
    }

    /// The next of a line, when the first does not wait any more; the line ends with its last.
    pub(super) fn next(&mut self, actor: ActorId) -> Option<Waiting> {
        let line = self.by_actor.get_mut(&actor)?;
        let Some(next) = line.behind.pop_front() else {
            self.by_actor.remove(&actor);
            return None;
        };
        self.octets -= next.payload.octets.len();
        Some(next)
    }
}
