//! Actors whose state outlives the process.
//!
//! The state of a [`DurableActor`] is read from a [`Store`](store::Store) before its first message,
//! and written after each message that changes it. Replies, messages to other actors and timers
//! leave only after that write: the *output gate*. So whatever a caller was told is still true
//! after `kill -9`, and with [`Durability::Disk`](store::Durability::Disk) after a loss of power.
//! The store is embedded; there is no server.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use std::sync::Arc;
//! use strowger::{ActorSystem, Ask, BoxError, Request};
//! use strowger_durable::store::{FjallOptions, FjallStore};
//! use strowger_durable::{Durable, DurableActor, DurableArgs, DurableContext, IdempotencyKey};
//!
//! /// Pays money in or out. A repeated request has the same key, and no further effect.
//! struct Post { amount: i64, key: IdempotencyKey }
//! impl Request for Post { type Reply = i64; }
//!
//! #[derive(Default, Serialize, Deserialize)]
//! struct Balance { amount: i64 }
//!
//! struct Account;
//! type Cx<'a> = DurableContext<'a, Account>;
//!
//! impl DurableActor for Account {
//!     const KIND: &'static str = "account";
//!     type State = Balance;
//!     type Msg = Ask<Post>;
//!     type Args = ();
//!     type Error = BoxError;
//!
//!     async fn pre_start(_: (), _: &mut Balance, _: &mut Cx<'_>) -> Result<Self, BoxError> {
//!         Ok(Self)
//!     }
//!
//!     async fn handle(
//!         &mut self, ask: Ask<Post>, state: &mut Balance, cx: &mut Cx<'_>,
//!     ) -> Result<(), BoxError> {
//!         let Post { amount, key } = ask.request;
//!         cx.reply_once(&key, ask.reply, || { state.amount += amount; state.amount });
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path();
//! for _ in 0..2 { // The second time, the system and the store are new, and the state is not.
//!     let store = Arc::new(FjallStore::open(path, FjallOptions::default())?);
//!     let system = ActorSystem::new("bank")?;
//!     let account = DurableArgs::new(store, "acc-42", ())?;
//!     let account = system.spawn::<Durable<Account>>("acc-42", account)?;
//!     let key = IdempotencyKey::new("transfer 1")?;
//!     assert_eq!(account.ask(Post { amount: 50, key }).await?, 50);
//! #   system.shutdown(std::time::Duration::from_secs(1)).await;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! An [`EventSourced`] actor stores events, and makes its state from them; everything else is the
//! same. It is for states whose history is of use, or that are large beside their changes.
//!
//! [`Entities`] are durable actors that are activated by the first message to their key, and put to
//! sleep when they are idle.
//!
//! # Guarantees
//!
//! - **The output gate**: an answer, a message or a timer made through the [`DurableContext`]
//!   leaves after the changes of its message are durable, or never. [`gate`] has the model.
//! - **A write that fails** drops them, and ends the incarnation with [`DurableError::NotSaved`]; a
//!   supervisor restarts the actor from the store.
//! - **The changes of one message** and the answers that it keeps are stored as a whole or not at
//!   all.
//! - **A request with an [`IdempotencyKey`]** takes effect once, and is answered the same each
//!   time, within the [`AnswerWindow`].
//! - **Two activations** of one entity never both write: the earlier one is refused, and ends.
//! - **The events of one message** are stored in the same way, in their order, and each is applied
//!   once: the state after a restart is the one before it. A snapshot is never ahead of its events.
//! - **Messages wait** while a write is under way; worker threads do not.
//! - **A message between entities**, sent with [`DurableContext::send_durable`], takes effect once:
//!   it is stored with the changes of the sender, delivered until the receiver has stored its
//!   effect, and recognized when it arrives again, within the [`InboxWindow`]. The messages of one
//!   sender to one receiver keep their order.
//! - **A [`Reminder`]** takes effect once: it is stored, found again, and late if it was missed.
//! - **Damage is reported**: a damaged entity does not start, and says at which sequence; the
//!   others do. So it is with an event of an unknown version. A store that has lost acknowledged
//!   writes does not open, unless that is accepted.
//!   The [tools](store::tools) check and repair a store, and make backups of one in use.
//! - **A write that does not end** is an error for its callers, and an event in the log.
//! - **A full disk** refuses writes until there is room. **A failed sync** ends the service of the
//!   store; it is never repeated.
//!
//! # Limits of the guarantees
//!
//! - A request without an answer may have taken effect. Repeat it with the same key.
//! - Delivery of any other message is at most once: one in a mailbox, or on its way to another
//!   actor, is lost with the process.
//! - A message between entities takes effect again if it arrives again after its sender has left
//!   the [`InboxWindow`]. One that its receiver always fails to handle stays with the sender.
//! - A timer of [`DurableContext::send_after`] ends with its incarnation.
//! - An effect past the [`DurableContext`], such as a file or an ask of the handler, happens even
//!   if the write fails.
//! - An earlier activation may still answer requests that change nothing, until its next write.
//! - A store on disk does not survive a loss of power in the mode
//!   [`Durability::Process`](store::Durability::Process).
//!
//! # Testing
//!
//! A [`MemoryStore`](store::MemoryStore) runs under `strowger::testing`: its delays follow from a
//! seed, and faults can be injected.

mod actor;
mod answers;
#[cfg(feature = "testing")]
pub mod conformance;
mod entity;
mod event_sourced;
pub mod gate;
mod hash_map;
mod journal;
mod outbox;
mod reminder;
mod seeded_bug;
pub mod store;

pub use actor::{Durable, DurableActor, DurableArgs, DurableError};
pub use answers::{AnswerWindow, IdempotencyKey, IdempotencyKeyTooLong};
pub use entity::{Entities, EntityError, EntityKind, EntityRef};
pub use event_sourced::{
    EventContext, EventRetention, EventSourced, Sourced, StoredPart, StoredValue, ValueError,
};
pub use gate::DurableContext;
#[doc(hidden)]
pub use journal::StateForm;
pub use outbox::{Delivery, InboxWindow, OutboxError, OutboxLimits};
pub use reminder::{PayloadError, Reminder, ReminderError};
