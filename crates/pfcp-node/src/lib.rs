//! PFCP (3GPP TS 29.244) over UDP on supervised actors, for programs that need an N4 peer: a node
//! in the UPF or SMF role, or something to test one against.
//!
//! Each peer is a supervisor, and each session below it an actor with its rules, so a request that
//! breaks a session costs that session. There is no user plane: usage comes from a [`TrafficModel`]
//! or from a [`DataPath`] of your own.
//!
//! A node, and an SMF that establishes a session with it:
//!
//! ```
//! use strowger::ActorSystem;
//! use strowger_pfcp_node::{Client, ClientConfig, Node, NodeConfig, SessionRules};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = ActorSystem::new("n4")?;
//! let mut config = NodeConfig::default();
//! config.listen = vec!["127.0.0.1:0".parse()?];
//! let node = Node::start(&system, config).await?;
//!
//! let smf = Client::bind(&system, ClientConfig::default()).await?;
//! let association = smf.associate(node.local_addr()).await?;
//! let session = association.establish(SessionRules::pdu_session("10.45.0.9".parse()?)).await?;
//! assert_eq!(node.stats().sessions, 1);
//! session.delete().await?;
//! # system.shutdown(std::time::Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```
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
mod rule_memory;
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
    ConfigError, DataPathConfig, DataPathKind, Durability, InstancePool, Limits, NodeConfig,
    OnFailure, PeerConfig, PolicyConfig, PolicyKind, Pools, ReportPort, StoreConfig, Timers,
};
pub use data_path::{DataPath, NoTraffic, SimulatedTraffic, TimeSpan, TrafficModel};
pub use endpoint::NODE_REQUESTS;
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
