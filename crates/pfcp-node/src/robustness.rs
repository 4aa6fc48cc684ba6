//! Robustness tests: hostile input for any node, and a check that its responses follow the
//! specification.
//!
//! ```text
//!   valid requests ──▶ rows of the tables ──▶ cases ──▶ node ──▶ checks
//!   cases written as data, cases of a file ────┘          │
//!                heartbeat answered, live session accepts ┘  after each
//! ```
//!
//! A case is a datagram with the responses that the specification allows. The test knows nothing
//! about the node except its address; it uses only what the node sends.

mod case;
mod header;
mod known;
mod mutate;
mod peer;
mod run;
mod tree;
mod valid;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub use case::{CaseSender, ExpectedAnswer, RobustnessCase};

use run::TestRun;

use crate::profile::{ProfileError, SessionProfile};

/// The configuration of a robustness test.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RobustnessPlan {
    /// The address of the node.
    pub to: SocketAddr,
    /// The address to send from; the system chooses one if it is not set.
    pub from: Option<SocketAddr>,
    /// The Node ID of the SMF; its address if it is not set.
    pub node_id: Option<String>,
    /// The Node ID of a second SMF without sessions. Requests are sent from it if it is an IP
    /// address. Defaults to a loopback address if `node_id` is an IP address and requests are sent
    /// from the loopback, or else to a domain name.
    pub second_node_id: Option<String>,
    /// The network that the sessions belong to, and the addresses of their UEs.
    pub profile: SessionProfile,
    /// The time to wait for a response.
    pub wait: Duration,
    /// Number of sessions that exist during the whole test, and have to accept a modification at
    /// the end.
    pub sessions: u32,
    /// Additional cases, which are sent first.
    pub cases: Vec<RobustnessCase>,
}

impl RobustnessPlan {
    /// Creates a configuration with ten sessions that waits one second for each response.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            from: None,
            node_id: None,
            second_node_id: None,
            profile: SessionProfile {
                ue_pools: "10.201.0.0/16".parse().into_iter().collect(),
                ..SessionProfile::default()
            },
            wait: Duration::from_secs(1),
            sessions: 10,
            cases: Vec::new(),
        }
    }
}

/// The error returned when a node cannot be tested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RobustnessError {
    /// The socket cannot be bound or connected.
    #[error("cannot send to {to}: {source}")]
    Socket {
        /// The address of the node.
        to: SocketAddr,
        /// The I/O error.
        source: io::Error,
    },
    /// A Node ID is neither an address nor a domain name.
    #[error("Node ID \"{0}\" is neither an IP address nor a domain name")]
    NodeId(String),
    /// The profile does not describe a valid session.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The node does not accept a valid request.
    #[error("{to} did not {what}")]
    Unusable {
        /// The address of the node.
        to: SocketAddr,
        /// The procedure that failed.
        what: &'static str,
    },
}

/// The result of a robustness test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RobustnessReport {
    /// The results by family of cases, in the order in which they were sent.
    pub rows: Vec<RobustnessRow>,
    /// The failed cases.
    pub failures: Vec<RobustnessFailure>,
    /// Number of sessions that existed during the whole test.
    pub sessions: u32,
    /// Number of those sessions that accepted a modification at the end.
    pub unharmed: u32,
    /// Set if the node stopped responding, so that the remaining cases were not sent.
    pub silent: bool,
}

/// The results of a family of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RobustnessRow {
    /// The name of the family.
    pub family: String,
    /// The clauses of TS 29.244 that define the correct behaviour.
    pub clauses: Vec<String>,
    /// Number of cases sent.
    pub sent: u32,
    /// Number of cases that were answered correctly and caused no harm.
    pub passed: u32,
}

/// A case that was not answered correctly, or caused harm.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RobustnessFailure {
    /// The case, with the bytes that were sent.
    pub case: RobustnessCase,
    /// A description of the fault.
    pub fault: String,
    /// The messages that were received.
    pub answers: Vec<Vec<u8>>,
}

impl RobustnessReport {
    /// Returns `true` if there was no fault.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.unharmed == self.sessions && !self.silent
    }

    /// Returns the number of cases sent.
    #[must_use]
    pub fn sent(&self) -> u32 {
        self.rows.iter().map(|row| row.sent).sum()
    }

    /// Returns the number of cases that were answered correctly.
    #[must_use]
    pub fn passed(&self) -> u32 {
        self.rows.iter().map(|row| row.passed).sum()
    }

    fn note(&mut self, case: &RobustnessCase, passed: bool) {
        let at = self.rows.iter().position(|row| row.family == case.family);
        let at = at.unwrap_or_else(|| {
            self.rows.push(RobustnessRow {
                family: case.family.clone(),
                clauses: Vec::new(),
                sent: 0,
                passed: 0,
            });
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        row.sent += 1;
        row.passed += u32::from(passed);
        if !row.clauses.contains(&case.clause) {
            row.clauses.push(case.clause.clone());
        }
    }
}

/// A robustness test that sends hostile input to a node.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RobustnessTest;

impl RobustnessTest {
    /// Sends all cases and returns the result. Blocks the thread until the test is complete;
    /// `progress` is called after each case.
    ///
    /// # Errors
    /// Returns an error if the node cannot be reached, or does not accept an association and valid
    /// sessions.
    pub fn run(
        plan: &RobustnessPlan,
        progress: impl FnMut(&RobustnessReport),
    ) -> Result<RobustnessReport, RobustnessError> {
        TestRun::prepare(plan)?.all(&plan.cases, progress)
    }
}
