//! Named groups of actors, as OTP's `pg` has them.
//!
//! A group is a row in a table, and only while it has members or somebody watches it. Nothing is
//! sent while the table is locked: what is sent may run foreign code, which may use groups.

mod directory;

use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::address::{AnyRef, SendError};
use crate::choice;
use crate::exit::{discard_one, panic_text};
use crate::path::Path;
use crate::recipient::Recipient;
use directory::Directory;

pub(crate) use directory::Directories;

/// A group of actors that take messages of type `T`, by name.
///
/// A clone is the same group. Get one from [`ActorSystem::group`](crate::ActorSystem::group). The
/// same name with another type is another group.
///
/// - An actor may be in many groups, and in each of them once: to join again changes only the
///   recipient, so that `pre_start` may join for every incarnation.
/// - Membership is the address's: a restart keeps it, the actor's end for good ends it.
/// - A group without members and watchers takes no memory.
///
/// ```
/// use std::convert::Infallible;
///
/// use strowger::testing::TestSystem;
/// use strowger::{Actor, Context, Group, Recipient};
///
/// /// Squares what it gets.
/// struct Worker(Recipient<u32>);
///
/// impl Actor for Worker {
///     type Msg = u32;
///     type Args = Recipient<u32>;
///     type Error = Infallible;
///
///     async fn pre_start(to: Recipient<u32>, _: &mut Context<Self>) -> Result<Self, Infallible> {
///         Ok(Self(to))
///     }
///
///     async fn handle(&mut self, number: u32, _: &mut Context<Self>) -> Result<(), Infallible> {
///         let _ = self.0.try_tell(number * number);
///         Ok(())
///     }
/// }
///
/// let system = TestSystem::new(1);
/// let results = system.probe::<u32>();
/// let workers: Group<u32> = system.system().group("workers");
/// for key in ["a", "b"] {
///     let worker = system.spawn::<Worker>(key, results.recipient());
///     workers.join(worker.recipient()).expect("it lives");
/// }
/// workers.send_in_turn(2).expect("there is room");
/// workers.send_in_turn(3).expect("there is room");
/// let mut squares = results.drain();
/// squares.sort();
/// assert_eq!(squares, [4, 9]);
/// ```
pub struct Group<T> {
    name: Arc<str>,
    directory: Arc<Directory<T>>,
}

/// Why an actor was not taken into a group, or not told of changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The actor has ended.
    #[error("{path} has ended and cannot be in group {group:?}")]
    Ended {
        /// The actor.
        path: Path,
        /// The group.
        group: Arc<str>,
    },
}

/// What happened to a group.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum GroupEvent {
    /// An actor joined.
    Joined {
        /// The group.
        group: Arc<str>,
        /// The actor.
        member: AnyRef,
    },
    /// A member left, or ended.
    Left {
        /// The group.
        group: Arc<str>,
        /// The actor.
        member: AnyRef,
    },
    /// The watcher had no room for so many events: to know again, read the members.
    Missed {
        /// The group.
        group: Arc<str>,
        /// How many events.
        count: u64,
    },
}

impl GroupEvent {
    /// The group that the event is about.
    #[must_use]
    pub const fn group(&self) -> &Arc<str> {
        match self {
            Self::Joined { group, .. } | Self::Left { group, .. } | Self::Missed { group, .. } => {
                group
            }
        }
    }
}

/// What came of a message to all members.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Broadcast {
    /// How many members' mailboxes took it, by their own overflow rule.
    pub delivered: usize,
    /// How many members missed it because their conversion panicked.
    pub panicked: usize,
    /// The members that had no room, and whose rule is to wait or to fail.
    pub full: Vec<AnyRef>,
}

/// A group that has members.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The name of its messages' Rust type.
    pub kind: &'static str,
    /// How many members it has.
    pub members: usize,
}

impl<T: Send + 'static> Group<T> {
    pub(crate) fn new(name: Arc<str>, directory: Arc<Directory<T>>) -> Self {
        Self { name, directory }
    }

    /// The group's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes an actor in, until it leaves or ends.
    ///
    /// # Errors
    /// When the actor has ended.
    pub fn join(&self, recipient: Recipient<T>) -> Result<(), GroupError> {
        self.directory.join(&self.name, recipient)
    }

    /// Lets an actor go; false when it is no member.
    pub fn leave(&self, actor: impl Into<AnyRef>) -> bool {
        self.directory.part(&self.name, actor.into().id())
    }

    /// The members, the longest first.
    #[must_use]
    pub fn members(&self) -> Vec<Recipient<T>> {
        self.directory.all(&self.name).to_vec()
    }

    /// How many members it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.directory.count(&self.name)
    }

    /// Whether it has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells a watcher of every join and leave from now on, in their order, until it ends; returns
    /// those who are members now.
    ///
    /// Events are delivered without waiting. What finds no room is counted, and the count is
    /// delivered before the next event that finds room ([`GroupEvent::Missed`]). An actor watches
    /// a group once: to watch again changes only the recipient.
    ///
    /// # Errors
    /// When the watcher has ended.
    pub fn monitor(&self, watcher: Recipient<GroupEvent>) -> Result<Vec<AnyRef>, GroupError> {
        self.directory.watch(&self.name, watcher)
    }

    /// Ends what [`Group::monitor`] began; false when the actor does not watch.
    pub fn demonitor(&self, watcher: impl Into<AnyRef>) -> bool {
        self.directory.unwatch(&self.name, watcher.into().id())
    }

    /// Sends a clone of a message to every member, without waiting.
    ///
    /// Each sender's messages reach each member in their order. For one order over all senders
    /// there is [`Topic`](crate::Topic).
    pub fn broadcast(&self, message: &T) -> Broadcast
    where
        T: Clone,
    {
        let mut broadcast = Broadcast::default();
        for member in self.directory.all(&self.name).iter() {
            let message = message.clone();
            match catch_unwind(AssertUnwindSafe(|| member.try_tell(message))) {
                Ok(Ok(())) => broadcast.delivered += 1,
                // One that is drained may come back, as one that is full may.
                Ok(Err(SendError::Full(message) | SendError::Draining(message))) => {
                    broadcast.full.push(member.actor());
                    drop(message);
                }
                Ok(Err(SendError::Closed(message) | SendError::Expired(message))) => drop(message),
                Err(payload) => {
                    let panic = panic_text(payload.as_ref());
                    let path = member.actor().path();
                    tracing::error!(group = %self.name, %path, %panic, "panic in a conversion");
                    discard_one(payload);
                    broadcast.panicked += 1;
                }
            }
        }
        broadcast
    }

    /// Sends a message to one member: to the next in turn that has room.
    ///
    /// # Errors
    /// Hands the message back: `Full` when no member has room, `Closed` when there is none.
    pub fn send_in_turn(&self, message: T) -> Result<(), SendError<T>> {
        let Some((first, mut member)) = self.directory.next(&self.name, None) else {
            return Err(SendError::Closed(message));
        };
        let mut message = message;
        let mut full = false;
        let mut at = first;
        loop {
            message = match member.try_tell(message) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    full |= matches!(error, SendError::Full(_));
                    error.into_message()
                }
            };
            match self.directory.next(&self.name, Some((first, at))) {
                Some((number, next)) => (at, member) = (number, next),
                None if full => return Err(SendError::Full(message)),
                None => return Err(SendError::Closed(message)),
            }
        }
    }

    /// Sends a message to the member to whom its key belongs.
    ///
    /// The same key goes to the same member for as long as it is one. When it goes, its keys are
    /// spread over the others, and no other key moves; when one comes, it takes its share of keys
    /// from all.
    ///
    /// # Errors
    /// Hands the message back: `Full` when that member has no room, `Closed` when there is none.
    pub fn send_by_key(&self, key: impl Hash, message: T) -> Result<(), SendError<T>> {
        match self.directory.owner(&self.name, choice::digest(key)) {
            Some(member) => member.try_tell(message),
            None => Err(SendError::Closed(message)),
        }
    }
}

impl<T> Clone for Group<T> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            directory: Arc::clone(&self.directory),
        }
    }
}

impl<T> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({})", self.name)
    }
}
