//! Supervised actors on tokio.
//!
//! An *actor* is a value that handles one message at a time. Other code holds its address, never
//! the value itself. The actor between one start and the exit that follows is an *incarnation*: it
//! is built from the actor's arguments, and it always ends (by a return, an error, a panic or a
//! kill) with an [`Exit`] that states the reason. A [`Supervisor`] reacts to the exits of its
//! running children and restarts them: at the same address, with fresh state, and with the messages
//! in their mailboxes still in order.
//!
//! ```
//! use strowger::{Actor, ActorSystem, BoxError, ChildSpec, Context, Strategy, Supervisor};
//!
//! struct Exchange(u32);
//!
//! impl Actor for Exchange {
//!     type Msg = u32;
//!     type Args = u32;
//!     type Error = BoxError;
//!
//!     async fn pre_start(first: u32, _: &mut Context<Self>) -> Result<Self, BoxError> {
//!         Ok(Self(first))
//!     }
//!
//!     async fn handle(&mut self, line: u32, cx: &mut Context<Self>) -> Result<(), BoxError> {
//!         self.0 = self.0.checked_add(line).ok_or("no such line")?; // An error restarts it.
//!         if self.0 > 9 { cx.stop() } // Transient: an orderly end is the end.
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let system = ActorSystem::new("office")?;
//! let child = ChildSpec::new::<Exchange>("exchange", 1).restart(strowger::Restart::Transient);
//! let office = Supervisor::new(Strategy::OneForOne).child(child);
//! let office = system.supervise("office", office).await?;
//! let exchange = office.child::<u32>("exchange").ok_or("it was started")?;
//! exchange.tell(u32::MAX).await?;
//! exchange.tell(9).await?;
//! assert_eq!(exchange.stopped().await.to_string(), "normal");
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **Delivery** is at most once, and in order from each sender. A message that was being handled
//!   when its actor failed is lost, and reported as a dead letter.
//! - **Mailboxes** are bounded by default, and the bound is exact: messages that the actor took out
//!   of the mailbox but has not handled yet count. The actor chooses the behavior beyond the bound:
//!   [`Overflow`].
//! - **A refused message comes back** as the caller passed it: [`SendError`].
//! - **Signals overtake** messages: a stop, a [`Signal::Down`], the end of a child or a task. A
//!   flood of them, or of timers, keeps no message waiting: the sources of an actor take turns.
//! - **Every ask has a deadline**, and a dropped [`Reply`] is an answer. An ask inside a hook whose
//!   answer would have to wait for the asker fails at once, and names the ring: [`AskError::Ring`].
//!   Waits of the runtime for the end or the start of an actor count: a child that asks its
//!   stopping parent does not hold it up.
//! - **Unwanted messages are not handled**: a message whose time to live has passed
//!   ([`ActorRef::tell_within`]), a request whose asker has gone.
//! - **Long work does not have to block the actor**: a [pipe](Context::pipe) runs beside it, and
//!   its output arrives as a message.
//! - **A drained actor loses nothing**: the messages that it did not handle come back
//!   ([`ActorRef::drain`]).
//! - **Incarnations do not overlap**: children end first, then tasks, then `post_stop` runs, and
//!   only then the next `pre_start`. What belongs to one incarnation (timers, tasks, pipes,
//!   monitors, links, lanes, streams) never reaches the next.
//! - **Nothing outlives its owner**: children end with their parent, and all actors with their
//!   system.
//!
//! # One to many
//!
//! - A [`Topic`] delivers to the subscribers of its name or of a matching pattern, in one order for
//!   all: to every subscriber, to one in turn, or to the owner of a key. A slow subscriber is
//!   treated according to the overflow rule of its own mailbox.
//! - A [`Group`] knows its members, reports members that join and leave, and sends to them.
//! - A [`Source`] streams to [`Reader`]s with credit: a slow reader slows its source, misses items,
//!   or is disconnected.
//!
//! # The tree
//!
//! ```text
//! ActorSystem
//! ├─ Supervisor "n4"          children by name, restarted as its strategy says
//! │   ├─ Endpoint "socket"
//! │   └─ Dynamic "sessions"   many children of one kind, started by a call
//! │       ├─ Session "0x2a"   path: /n4/sessions/0x2a
//! │       └─ Session "0x2b"
//! └─ Watcher "watcher"        not restarted: at the top, or a child of an actor
//! ```
//!
//! Any part of the tree can be read while it runs ([`ActorSystem::tree`], [`ActorInfo`]), and its
//! events can be subscribed to ([`ActorSystem::events`]). Asks that wait for an answer for a second
//! or longer are listed with their asker and callee ([`ActorSystem::late_asks`]).
//!
//! # Access from outside
//!
//! With the feature `messages`, another language or process reaches an actor through an `Export`: a
//! set of message names, each of which is converted to a message of the actor's own type. Nothing
//! is reachable unless it was exported (`ActorSystem::export`).
//!
//! The crate runs inside any tokio program and starts no runtime of its own. With the feature
//! `testing` there are systems on virtual time whose schedule follows from a seed.

mod actor;
mod address;
mod budget;
mod children;
// Part of `strowger-wasm`, included only for its models, which need no wasmtime here.
#[cfg(all(test, strowger_loom))]
#[path = "../../wasm/src/engine/calls.rs"]
mod calls;
mod cell;
mod clock;
mod context;
mod duration;
mod event;
mod exit;
mod group;
mod info;
mod injection;
mod late_ask;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod macro_support;
mod mailbox;
mod membership;
#[cfg(feature = "messages")]
mod message;
mod metric;
mod monitor;
mod notifier;
mod path;
mod recipient;
mod registry;
mod rendezvous;
mod reply;
mod run;
mod schedule;
mod seeded_bug;
mod size;
mod stream;
mod supervision;
mod sync;
mod system;
#[cfg(feature = "testing")]
pub mod testing;
mod timer;
mod top;
mod topic;
mod trace;
mod wait_graph;
// Like `calls`.
#[cfg(feature = "serde")]
mod deserialize;
#[cfg(all(test, strowger_loom))]
#[path = "../../wasm/src/guest_threads/turns.rs"]
mod turns;

pub use actor::Actor;
pub use address::{Accepts, ActorRef, AnyRef, AskError, SendError};
pub use cell::ActorId;
pub use context::{Context, PipeId, TooManyPipes};
#[cfg(feature = "serde")]
pub use deserialize::{deserialize_duration, deserialize_size};
pub use duration::{DurationError, parse_duration};
pub use event::{Event, EventStream};
pub use exit::{BoxError, Exit};
pub use group::{BroadcastOutcome, Group, GroupError, GroupEvent, GroupInfo};
pub use info::{ActorInfo, ActorLifecycle, TreeNode};
pub use late_ask::LateAsk;
#[cfg(feature = "macros")]
pub use macro_support::handlers;
pub use mailbox::{MailboxSpec, Overflow};
#[cfg(feature = "messages")]
pub use message::{
    Address, CallReply, CallSink, ContentType, Delivery, DeliveryHandle, DeliveryOrder, Envelope,
    Export, ExportError, ExportInfo, Fault, FaultCode, FindActor, JsonReply, KeyedActors,
    MessagePattern, Payload, PayloadStream, RemoteEntry,
};
pub use monitor::{MonitorId, Signal};
pub use notifier::Notifier;
pub use path::{ActorPath, Key, PathPattern, PathPatternError};
pub use recipient::Recipient;
pub use registry::RegisterError;
pub use reply::{Ask, Completion, Reply, ReplyError, ReplyLane, Request};
pub use size::{ByteSize, ByteSizeError};
pub use stream::{
    FlowError, ReadError, Reader, ReceiverCredit, SendDecision, SenderCredit, SlowReader, Source,
    SourceError, SourceInfo, SourceSpec,
};
pub use supervision::{
    Backoff, ChildError, ChildInfo, ChildSpec, Dynamic, DynamicRef, Restart, Shutdown, Strategy,
    Supervisor, SupervisorRef,
};
pub use system::{ActorSystem, ActorSystemBuilder, BuildError, ShutdownReport, StartError};
pub use timer::{EarliestTimer, TimerKey};
pub use top::{SystemObserver, TopQuery, TopRank, TopReport, TopRow, TopTotals};
pub use topic::{PublishOutcome, Subscription, Topic, TopicError, TopicInfo, TopicLimits};
pub use trace::{TraceEnd, TraceLimits, TraceReader, TraceRecord, TraceStep};
pub use wait_graph::{AskRing, RingWait};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
