//! Supervision of running actors.

mod address;
mod backoff;
mod child;
mod dynamic;
mod fair;
mod intensity;
mod roster;
mod spec;
mod strategy;
mod supervisor;
mod ward;

pub use address::{ChildError, ChildInfo, SupervisorRef};
pub use backoff::Backoff;
pub use child::ChildSpec;
pub use dynamic::{Dynamic, DynamicRef};
pub(crate) use roster::{Answer, Overseer};
pub(crate) use spec::Limit;
pub use spec::{Restart, Shutdown, Strategy};
pub use supervisor::Supervisor;
pub(crate) use supervisor::SupervisorActor;
