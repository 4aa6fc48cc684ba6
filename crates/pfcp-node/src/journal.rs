//! A journal of the responses that a peer received, kept by that peer, and its comparison with the
//! sessions of the node.
//!
//! ```text
//! strowger journal 1
//! ask 17 21320061...    a request, before it is sent
//! ack 17 2133001e...    its response, which accepts it
//! nak 18 21350011...    a response that rejects
//! end 19                no response to any transmission
//! ```
//!
//! A request without a response may have been executed or not, but never in part. A session is
//! therefore expected in the state that results from all acknowledged requests, or in a state that
//! additionally includes some of the unanswered ones.

mod audit;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use audit::{AuditReport, JournalAudit, NodeSession};

/// A journal that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// Text that has not been written to the file yet.
    text: String,
    path: PathBuf,
}

/// The error returned when a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// An I/O operation failed.
    #[error("cannot use the journal {path}: {source}")]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A line is not a valid journal entry.
    #[error("{path}:{line}: {what}")]
    Line {
        /// The path of the file.
        path: PathBuf,
        /// The line number, counted from 1.
        line: usize,
        /// The reason why the line is refused.
        what: String,
    },
}

impl Journal {
    /// Creates an empty journal.
    pub(crate) fn create(path: &Path) -> Result<Self, JournalError> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self {
                file,
                text: format!("{TITLE}\n"),
                path,
            }),
            Err(source) => Err(JournalError::Io { path, source }),
        }
    }

    /// Records a request that is about to be sent.
    pub(crate) fn ask(&mut self, number: u64, bytes: &[u8]) {
        self.line("ask", number, bytes);
    }

    /// Records a response.
    pub(crate) fn answer(&mut self, number: u64, accepted: bool, bytes: &[u8]) {
        let word = if accepted { "ack" } else { "nak" };
        self.line(word, number, bytes);
    }

    /// Records that a request was not answered.
    pub(crate) fn end(&mut self, number: u64) {
        self.line("end", number, &[]);
    }

    fn line(&mut self, word: &str, number: u64, bytes: &[u8]) {
        self.text.push_str(word);
        // Writing to a string does not fail.
        let _ = write!(self.text, " {number}");
        if !bytes.is_empty() {
            self.text.push(' ');
        }
        for byte in bytes {
            let _ = write!(self.text, "{byte:02x}");
        }
        self.text.push('\n');
    }

    /// Writes all pending lines to the file.
    pub(crate) fn flush(&mut self) {
        if let Err(error) = self.file.write_all(self.text.as_bytes()) {
            let path = self.path.display();
            tracing::error!(%path, %error, "cannot write the journal");
        }
        self.text.clear();
    }
}

const TITLE: &str = "strowger journal 1";
