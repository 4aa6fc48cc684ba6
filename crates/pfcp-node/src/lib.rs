//! PFCP over UDP on supervised actors.
//!
//! [`Capture`] reads the datagrams of pcap and pcapng files, [`CaptureWriter`] writes them.

mod association;
mod bulletin;
mod capture;
mod client;
mod config;
mod data_path;
mod endpoint;
mod ledger;
mod load;
mod metric;
mod node;
mod page_map;
mod pfd;
mod planted;
mod policy;
mod pool;
mod restoration;
mod scenario;
mod session;
mod shared;
#[cfg(test)]
mod simulation;
mod socket;
mod store;
mod tap;
mod torture;

pub use bulletin::{RestartNoticed, SessionEvent, SessionEventKind, UsageFigures, UsageReported};
pub use capture::{
    Capture, CaptureError, CaptureErrorKind, CaptureWriter, Datagram, PFCP_PORT, Skipped,
};
pub use client::{
    Association, Client, ClientConfig, ClientError, ClientEvent, ClientStats, NodeReport, Rules,
    Session, SessionReport,
};
pub use config::{
    ConfigError, DataPathConfig, DataPathKind, Durability, Limits, NodeConfig, OnFailure,
    PeerConfig, PolicyConfig, PolicyKind, Pools, StoreConfig, Timers,
};
pub use data_path::{DataPath, NoTraffic, SimulatedTraffic, Span, TrafficModel};
pub use ledger::{Audit, AuditReport, Found, LedgerError};
pub use load::{Chaos, Load, LoadFigures, LoadHandle, LoadPlan, Pace};
pub use node::{
    AssociationInfo, Node, NodeError, NodeHandle, NodeParts, NodeStats, OrderError, SessionFilter,
    SessionInfo, StateLost, UsageStats,
};
pub use pfd::ApplicationPfds;
pub use policy::{Deciding, Policy, PolicyStats, QosCap, QosCaps, Question, QuestionKind, Verdict};
pub use restoration::{OnLoss, PeerLoss, Restoration};
pub use scenario::Scenario;
pub use socket::BindError;
pub use store::{StoreError, StoreHealth, StoreImage, StoreLoss, StoredAssociation, StoredSession};
pub use torture::{
    Torture, TortureAnswer, TortureCase, TortureError, TortureFailure, TorturePlan, TortureReport,
    TortureRow, TortureSender,
};
