//! Named groups of actors, modeled on OTP's `pg`.
//!
//! A group is an entry in a table, which exists only while the group has members or is monitored.
//! Nothing is sent while the table is locked, because sending may run user code that itself uses
//! groups.

mod directory;

use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::address::{AnyRef, SendError};
use crate::exit::{drop_caught, panic_message};
use crate::path::ActorPath;
use crate::recipient::Recipient;
use crate::rendezvous;
use directory::GroupDirectory;

pub(crate) use directory::GroupDirectories;

/// A named group of actors that handle messages of type `T`.
///
/// Clones refer to the same group. Groups are obtained from
/// [`ActorSystem::group`](crate::ActorSystem::group). The same name with another type is another
/// group.
///
/// - An actor may be in many groups, and in each of them once. Joining again only replaces the
///   recipient, so `pre_start` may join in each incarnation.
/// - Membership belongs to the address: it survives restarts and ends when the actor ends for good.
/// - A group without members and monitors takes no memory.
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
/// workers.send_round_robin(2).expect("there is room");
/// workers.send_round_robin(3).expect("there is room");
/// let mut squares = results.drain();
/// squares.sort();
/// assert_eq!(squares, [4, 9]);
/// ```
pub struct Group<T> {
    name: Arc<str>,
    directory: Arc<GroupDirectory<T>>,
}

/// The error returned when an actor cannot join or monitor a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The actor has ended.
    #[error("{path} has ended and cannot be in group {group:?}")]
    Ended {
        /// The path of the actor.
        path: ActorPath,
        /// The name of the group.
        group: Arc<str>,
    },
}

/// A change of a group's membership.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum GroupEvent {
    /// An actor joined.
    Joined {
        /// The name of the group.
        group: Arc<str>,
        /// The actor that joined.
        member: AnyRef,
    },
    /// A member left or ended.
    Left {
        /// The name of the group.
        group: Arc<str>,
        /// The actor that left.
        member: AnyRef,
    },
    /// The mailbox of the monitoring actor had no room for some events. To catch up, it has to read
    /// the members again.
    Missed {
        /// The name of the group.
        group: Arc<str>,
        /// Number of missed events.
        count: u64,
    },
}

impl GroupEvent {
    /// Returns the name of the group that the event is about.
    #[must_use]
    pub const fn group(&self) -> &Arc<str> {
        match self {
            Self::Joined { group, .. } | Self::Left { group, .. } | Self::Missed { group, .. } => {
                group
            }
        }
    }
}

/// The outcome of a message to all members.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BroadcastOutcome {
    /// Number of members whose mailboxes took the message, by their own overflow rule.
    pub delivered: usize,
    /// Number of members that missed the message because their conversion panicked.
    pub panicked: usize,
    /// The members whose mailboxes were full, and whose rule is to wait or to fail.
    pub full: Vec<AnyRef>,
}

/// Information about a group that has members.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupInfo {
    /// The name of the group.
    pub name: Arc<str>,
    /// The name of the Rust type of its messages.
    pub message_type: &'static str,
    /// Number of members.
    pub members: usize,
}

impl<T: Send + 'static> Group<T> {
    pub(crate) fn new(name: Arc<str>, directory: Arc<GroupDirectory<T>>) -> Self {
        Self { name, directory }
    }

    /// Returns the name of the group.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds an actor to the group until it leaves or ends.
    ///
    /// # Errors
    /// Returns an error if the actor has ended.
    pub fn join(&self, recipient: Recipient<T>) -> Result<(), GroupError> {
        self.directory.join(&self.name, recipient)
    }

    /// Removes an actor from the group. Returns `false` if it is not a member.
    pub fn leave(&self, actor: impl Into<AnyRef>) -> bool {
        self.directory.leave(&self.name, actor.into().id())
    }

    /// Returns the members, in the order in which they joined.
    #[must_use]
    pub fn members(&self) -> Vec<Recipient<T>> {
        self.directory.all(&self.name).to_vec()
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.directory.count(&self.name)
    }

    /// Returns `true` if the group has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notifies `watcher` of every join and leave from now on, in order, until it ends. Returns the
    /// current members.
    ///
    /// Events are delivered without waiting. Events for which the watcher's mailbox has no room are
    /// counted, and the count is delivered before the next event that fits
    /// ([`GroupEvent::Missed`]). An actor monitors a group at most once: monitoring it again only
    /// replaces the recipient.
    ///
    /// # Errors
    /// Returns an error if the watcher has ended.
    pub fn monitor(&self, watcher: Recipient<GroupEvent>) -> Result<Vec<AnyRef>, GroupError> {
        self.directory.watch(&self.name, watcher)
    }

    /// Ends a subscription made with [`Group::monitor`]. Returns `false` if the actor does not
    /// monitor the group.
    pub fn demonitor(&self, watcher: impl Into<AnyRef>) -> bool {
        self.directory.unwatch(&self.name, watcher.into().id())
    }

    /// Sends a clone of a message to every member, without waiting.
    ///
    /// The messages of each sender reach each member in order. For one order over all senders, use
    /// a [`Topic`](crate::Topic).
    pub fn broadcast(&self, message: &T) -> BroadcastOutcome
    where
        T: Clone,
    {
        let mut broadcast = BroadcastOutcome::default();
        for member in self.directory.all(&self.name).iter() {
            let message = message.clone();
            match catch_unwind(AssertUnwindSafe(|| member.try_tell(message))) {
                Ok(Ok(())) => broadcast.delivered += 1,
                // A draining actor may come back, just as a full mailbox may get room.
                Ok(Err(SendError::Full(message) | SendError::Draining(message))) => {
                    broadcast.full.push(member.actor());
                    drop(message);
                }
                Ok(Err(SendError::Closed(message) | SendError::Expired(message))) => drop(message),
                Err(payload) => {
                    let panic = panic_message(payload.as_ref());
                    let path = member.actor().path();
                    let group = &self.name;
                    tracing::error!(%group, %path, %panic, "panic in a message conversion");
                    drop_caught(payload);
                    broadcast.panicked += 1;
                }
            }
        }
        broadcast
    }

    /// Sends a message to one member, in turn: the next one that has room.
    ///
    /// # Errors
    /// Returns the message in the error: `Full` if no member has room, `Closed` if there are no
    /// members.
    pub fn send_round_robin(&self, message: T) -> Result<(), SendError<T>> {
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
                    full |= matches!(error, SendError::Full(_) | SendError::Draining(_));
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

    /// Sends a message to the member that owns a key.
    ///
    /// Messages with the same key go to the same actor for as long as it is a member. When a member
    /// leaves, its keys are spread over the others and no other key moves; when one joins, it takes
    /// over its share of the keys of all others.
    ///
    /// # Errors
    /// Returns the message in the error: `Full` if the owner has no room, `Closed` if there are no
    /// members.
    pub fn send_by_key(&self, key: impl Hash, message: T) -> Result<(), SendError<T>> {
        match self.directory.owner(&self.name, rendezvous::hash_key(key)) {
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
