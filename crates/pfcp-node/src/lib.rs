//! PFCP over UDP on supervised actors.
//!
//! [`Capture`] reads the datagrams of pcap and pcapng files, [`CaptureWriter`] writes them.

mod association;
mod capture;
mod client;
mod config;
mod endpoint;
mod ledger;
mod load;
mod node;
mod planted;
mod pool;
mod session;
mod shared;
#[cfg(test)]
mod simulation;
mod socket;
mod store;
mod tap;
mod torture;

pub use capture::{
    Capture, CaptureError, CaptureErrorKind, CaptureWriter, Datagram, PFCP_PORT, Skipped,
};
pub use client::{
    Association, Client, ClientConfig, ClientError, PeerRestarted, Rules, Session, SessionReport,
};
pub use config::{ConfigError, Durability, Limits, NodeConfig, Pools, StoreConfig, Timers};
pub use ledger::{Audit, AuditReport, Found, LedgerError};
pub use load::{Chaos, Load, LoadFigures, LoadHandle, LoadPlan, Pace};
pub use node::{
    AssociationInfo, Node, NodeError, NodeHandle, NodeStats, SessionFilter, SessionInfo, StateLost,
};
pub use socket::BindError;
pub use store::{StoreError, StoreHealth, StoreImage, StoreLoss, StoredAssociation, StoredSession};
pub use torture::{
    Torture, TortureAnswer, TortureCase, TortureError, TortureFailure, TorturePlan, TortureReport,
    TortureRow, TortureSender,
};
