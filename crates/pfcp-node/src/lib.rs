//! PFCP over UDP, built on supervised actors.
//!
//! [`CaptureReader`] reads the datagrams of pcap and pcapng files; [`CaptureWriter`] writes them.

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
    CaptureError, CaptureErrorKind, CaptureReader, CaptureWriter, CapturedDatagram, PFCP_PORT,
    SkippedPackets,
};
pub use client::{
    Association, Client, ClientConfig, ClientError, ClientEvent, ClientStats, NodeReport, Session,
    SessionReport, SessionRules,
};
pub use config::{
    ConfigError, DataPathConfig, DataPathKind, Durability, Limits, NodeConfig, OnFailure,
    PeerConfig, PolicyConfig, PolicyKind, Pools, StoreConfig, Timers,
};
pub use data_path::{DataPath, NoTraffic, SimulatedTraffic, TimeSpan, TrafficModel};
pub use journal::{AuditReport, JournalAudit, JournalError, NodeSession};
pub use load::{
    ChangeShares, ChangeStats, Load, LoadHandle, LoadMix, LoadPace, LoadPlan, LoadStats, MixError,
    PanicInjection,
};
pub use node::{
    AssociationInfo, Node, NodeError, NodeHandle, NodeParts, NodeRequestError, NodeStats,
    ReleaseOutcome, ReleaseReport, SessionFilter, SessionInfo, StateLost, UsageStats,
};
pub use pfd::ApplicationPfds;
pub use policy::{
    DecisionFuture, Policy, PolicyDecision, PolicyRequest, PolicyRequestKind, PolicyStats, QosCap,
    QosCaps,
};
pub use profile::{ProfileError, SessionProfile};
pub use restoration::{OnLoss, PeerLoss, Restoration};
pub use robustness::{
    CaseSender, ExpectedAnswer, RobustnessCase, RobustnessError, RobustnessFailure, RobustnessPlan,
    RobustnessReport, RobustnessRow, RobustnessTest,
};
pub use scenario::FaultScenario;
pub use socket::BindError;
pub use store::{StoreError, StoreHealth, StoreImage, StoreLoss, StoredAssociation, StoredSession};
pub use topics::{
    PeerRestartEvent, SessionEvent, SessionEventKind, UsageMeasurement, UsageReported,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
