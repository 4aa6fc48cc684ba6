//! Bad input for any node, and whether it answers as the specification says.
//!
//! ```text
//!   sound requests ──▶ rows of the tables ──▶ cases ──▶ node ──▶ judged
//!   what is known to hurt, cases of a file ────┘          │
//!                heartbeat answered, live session accepts ┘  after each
//! ```
//!
//! A case is octets with the answers that the specification allows. Nothing is known of the node
//! but its address: what it is asked for is what it says over the wire.

mod case;
mod header;
mod known;
mod mutate;
mod peer;
mod run;
mod sound;
mod tree;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub use case::{TortureAnswer, TortureCase, TortureSender};

use run::Run;

/// What to torture, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TorturePlan {
    /// The node.
    pub to: SocketAddr,
    /// Where to send from; the system chooses unless it is set.
    pub from: Option<SocketAddr>,
    /// How long an answer is waited for.
    pub wait: Duration,
    /// Sessions that are there the whole time, and that have to accept a modification at the end.
    pub sessions: u32,
    /// Cases besides those that there are; they come first.
    pub cases: Vec<TortureCase>,
}

impl TorturePlan {
    /// Tortures a node with ten sessions, and waits a second for each answer.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            from: None,
            wait: Duration::from_secs(1),
            sessions: 10,
            cases: Vec::new(),
        }
    }
}

/// Why a node cannot be tortured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TortureError {
    /// The address cannot be sent from.
    #[error("cannot send to {to}: {source}")]
    Socket {
        /// The node.
        to: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The node does not do what nothing is wrong with.
    #[error("{to} did not {what}")]
    Unusable {
        /// The node.
        to: SocketAddr,
        /// What it was asked for.
        what: &'static str,
    },
}

/// What came of a torture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TortureReport {
    /// The families of cases, in the order in which they came.
    pub rows: Vec<TortureRow>,
    /// The cases that were not answered as they have to be.
    pub failures: Vec<TortureFailure>,
    /// The sessions that were there the whole time.
    pub sessions: u32,
    /// Those of them that accepted a modification at the end.
    pub unharmed: u32,
    /// Whether the node stopped answering, so that the rest of the cases was not sent.
    pub silent: bool,
}

/// What came of a family of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TortureRow {
    /// What is the same about the cases.
    pub family: String,
    /// The clauses of TS 29.244 that say what to do.
    pub clauses: Vec<String>,
    /// How many were sent.
    pub sent: u32,
    /// How many were answered as they have to be and harmed nobody.
    pub passed: u32,
}

/// A case that was not answered as it has to be, or harmed somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TortureFailure {
    /// The case, with the octets that were sent.
    pub case: TortureCase,
    /// What was wrong.
    pub fault: String,
    /// What came.
    pub answers: Vec<Vec<u8>>,
}

impl TortureReport {
    /// Says that everything was as it has to be.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.unharmed == self.sessions && !self.silent
    }

    /// How many cases were sent.
    #[must_use]
    pub fn sent(&self) -> u32 {
        self.rows.iter().map(|row| row.sent).sum()
    }

    /// How many cases were answered as they have to be.
    #[must_use]
    pub fn passed(&self) -> u32 {
        self.rows.iter().map(|row| row.passed).sum()
    }

    fn note(&mut self, case: &TortureCase, passed: bool) {
        let at = self.rows.iter().position(|row| row.family == case.family);
        let at = at.unwrap_or_else(|| {
            self.rows.push(TortureRow {
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

/// Sends bad input to a node.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Torture;

impl Torture {
    /// Sends every case and says what came of it. Blocks the thread until it is done; `progress`
    /// is called after each case.
    ///
    /// # Errors
    /// When the node cannot be sent to, or does not accept an association and sound sessions.
    pub fn run(
        plan: &TorturePlan,
        progress: impl FnMut(&TortureReport),
    ) -> Result<TortureReport, TortureError> {
        Run::prepare(plan)?.all(&plan.cases, progress)
    }
}
