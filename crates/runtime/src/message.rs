//! Messages from and to callers outside the process: addresses, names and bytes.
//!
//! ```text
//! outside        address + name + payload          answer, items or fault
//!                        │                                   ▲
//! Door<M>        decodes into a `T`                 encodes the reply
//!                        ▼                                   │
//! the actor      M: Accepts<T> or Accepts<Ask<T>>   Reply<T::Reply>
//! ```
//!
//! An actor's own messages stay typed. A [`Door`] gives names to some of them and defines how their
//! bytes are decoded and encoded; [`ActorSystem::expose`](crate::ActorSystem::expose) makes it
//! reachable at an address. A message that arrives over a connection goes through an [`Entry`], the
//! route for one address and one message name. No task waits for the answer: it is passed to
//! [`Calls`], a sink that the connection owns.

mod address;
mod directory;
mod door;
mod entry;
mod envelope;
mod fault;
mod payload;

pub use address::Address;
pub(crate) use directory::ExposedActors;
pub use directory::{ExposeError, Exposed};
pub use door::{Door, JsonAnswer};
pub use entry::{Answer, Calls, Entry, Items, Pattern, Put, Ticket};
pub use envelope::Envelope;
pub use fault::{Code, Fault};
pub use payload::{Content, Payload};
