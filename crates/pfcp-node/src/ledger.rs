//! What a peer was told, written down by who was told, and compared with what the node has.
//!
//! ```text
//! strowger ledger 1
//! ask 17 21320061...    a request, before it is sent
//! ack 17 2133001e...    its answer, which accepts it
//! nak 18 21350011...    an answer that refuses
//! end 19                nobody answered, however often it was asked
//! ```
//!
//! A request that was asked and has no answer may have been done or not, whole either way. So a
//! session is expected in the state of all that was acknowledged, or in one that some of what was
//! not answered makes of it.

mod audit;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use audit::{Audit, AuditReport, Found};

/// A ledger that is being written.
#[derive(Debug)]
pub(crate) struct Ledger {
    file: File,
    /// What is not in the file yet.
    text: String,
    path: PathBuf,
}

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The system refuses.
    #[error("the ledger {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line is none of a ledger.
    #[error("{path}:{line}: {what}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl Ledger {
    /// Makes an empty ledger.
    pub(crate) fn create(path: &Path) -> Result<Self, LedgerError> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self {
                file,
                text: format!("{TITLE}\n"),
                path,
            }),
            Err(source) => Err(LedgerError::Io { path, source }),
        }
    }

    /// Notes a request that is about to be sent.
    pub(crate) fn ask(&mut self, number: u64, octets: &[u8]) {
        self.line("ask", number, octets);
    }

    /// Notes an answer.
    pub(crate) fn answer(&mut self, number: u64, accepted: bool, octets: &[u8]) {
        let word = if accepted { "ack" } else { "nak" };
        self.line(word, number, octets);
    }

    /// Notes that nobody answered.
    pub(crate) fn end(&mut self, number: u64) {
        self.line("end", number, &[]);
    }

    fn line(&mut self, word: &str, number: u64, octets: &[u8]) {
        self.text.push_str(word);
        // Writing to text does not fail.
        let _ = write!(self.text, " {number}");
        if !octets.is_empty() {
            self.text.push(' ');
        }
        for octet in octets {
            let _ = write!(self.text, "{octet:02x}");
        }
        self.text.push('\n');
    }

    /// Gives all lines to the system.
    pub(crate) fn flush(&mut self) {
        if let Err(error) = self.file.write_all(self.text.as_bytes()) {
            let path = self.path.display();
            tracing::error!(%path, %error, "the ledger cannot be written");
        }
        self.text.clear();
    }
}

const TITLE: &str = "strowger ledger 1";
