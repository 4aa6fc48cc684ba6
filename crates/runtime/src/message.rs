//! Messages from and to callers outside the process: addresses, names and bytes.
//!
//! ```text
//! outside        address + name + payload          answer, items or fault
//!                        │                                   ▲
//! Export<M>      decodes into a `T`                 encodes the reply
//!                        ▼                                   │
//! the actor      M: Accepts<T> or Accepts<Ask<T>>   Reply<T::Reply>
//! ```
//!
//! An actor's own messages stay typed. An [`Export`] gives names to some of them and defines how
//! their bytes are decoded and encoded; [`ActorSystem::export`](crate::ActorSystem::export) makes
//! it reachable at an address. A message that arrives over a connection goes through a
//! [`RemoteEntry`], the route for one address and one message name. No task waits for the answer:
//! it is passed to [`CallSink`], a sink that the connection owns.

mod address;
mod directory;
mod entry;
mod envelope;
mod export;
mod fault;
mod keyed;
mod payload;

pub use address::Address;
pub(crate) use directory::ExportRegistry;
pub use directory::{ExportError, ExportInfo};
pub use entry::{
    CallReply, CallSink, Delivery, DeliveryHandle, DeliveryOrder, MessagePattern, PayloadStream,
    RemoteEntry,
};
pub use envelope::Envelope;
pub use export::{Export, JsonReply};
pub use fault::{Fault, FaultCode};
pub use keyed::{FindActor, KeyedActors};
pub use payload::{ContentType, Payload};
