//! Supervision of running actors.

mod address;
mod backoff;
mod child;
mod child_table;
mod dynamic;
mod fair_exit_queue;
mod indexed_slab;
mod intensity;
mod spec;
mod strategy;
mod supervisor;

pub use address::{ChildError, ChildInfo, SupervisorRef};
pub use backoff::Backoff;
pub use child::ChildSpec;
pub(crate) use child_table::{ExitOutcome, RestartPolicy};
pub use dynamic::{Dynamic, DynamicRef};
pub(crate) use spec::ShutdownLimit;
pub use spec::{Restart, Shutdown, Strategy};
pub use supervisor::Supervisor;
pub(crate) use supervisor::SupervisorActor;
