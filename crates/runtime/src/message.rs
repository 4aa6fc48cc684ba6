//! Messages as those outside the process see them: addresses, names and octets.
//!
//! ```text
//! outside        address + name + payload          answer, items or fault
//!                        │                                   ▲
//! Door<M>        decodes into a `T`                 encodes the reply
//!                        ▼                                   │
//! the actor      M: Accepts<T> or Accepts<Ask<T>>   Reply<T::Reply>
//! ```
//!
//! An actor's own messages stay typed. A [`Door`] says which of them have a name, and how their
//! octets are read and written; [`ActorSystem::expose`](crate::ActorSystem::expose) opens it at an
//! address. What arrives over a connection goes through an [`Entry`], one for each address and
//! name. No task waits for an answer: it ends in [`Calls`], a sink that the connection owns.

mod address;
mod directory;
mod door;
mod entry;
mod envelope;
mod fault;
mod payload;

pub use address::Address;
pub(crate) use directory::Directory;
pub use directory::{ExposeError, Exposed};
pub use door::Door;
pub use entry::{Answer, Calls, Entry, Items, Pattern, Put, Ticket};
pub use envelope::Envelope;
pub use fault::{Code, Fault};
pub use payload::{Content, Payload};
