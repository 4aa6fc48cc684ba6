//! PFCP over UDP, built on supervised actors.
//!
//! [`Capture`] reads the datagrams of pcap and pcapng files; [`CaptureWriter`] writes them.

mod association;
mod capture;
mod capture_file;
mod client;
mod config;
mod data_path;
mod endpoint;
mod journal;
mod load;
mod metric;
mod node;
mod paged_map;
mod pfd;
mod policy;
mod pool;
mod profile;
mod restoration;
mod robustness;
mod scenario;
mod seeded_bug;
mod session;
mod shared;
#[cfg(test)]
mod simulation;
mod socket;
mod store;
mod topics;

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
pub use journal::{Audit, AuditReport, Found, LedgerError};
pub use load::{
    ChangeFigures, ChangeShares, Chaos, Load, LoadFigures, LoadHandle, LoadMix, LoadPlan, MixError,
    Pace,
};
pub use node::{
    AssociationInfo, Node, NodeError, NodeHandle, NodeParts, NodeStats, OrderError, ReleaseOutcome,
    ReleaseReport, SessionFilter, SessionInfo, StateLost, UsageStats,
};
pub use pfd::ApplicationPfds;
pub use policy::{Deciding, Policy, PolicyStats, QosCap, QosCaps, Question, QuestionKind, Verdict};
pub use profile::{ProfileError, SessionProfile};
pub use restoration::{OnLoss, PeerLoss, Restoration};
pub use robustness::{
    Torture, TortureAnswer, TortureCase, TortureError, TortureFailure, TorturePlan, TortureReport,
    TortureRow, TortureSender,
};
pub use scenario::Scenario;
pub use socket::BindError;
pub use store::{StoreError, StoreHealth, StoreImage, StoreLoss, StoredAssociation, StoredSession};
pub use topics::{RestartNoticed, SessionEvent, SessionEventKind, UsageFigures, UsageReported};
