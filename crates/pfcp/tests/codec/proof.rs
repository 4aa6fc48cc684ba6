//! The results that tests have verified, for the page on conformance.
//!
//! If `STROWGER_CONFORMANCE` names a directory, each proof has a file there; otherwise nothing is
//! written. `cargo xtask conformance` composes the page from the files. A test records at its end,
//! when all that it claims has been found to hold:
//!
//! ```text
//! let mut proof = Proof::by("vector");
//! proof.message_and_elements(bytes);
//! proof.record();
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use strowger_pfcp::wire::Part;
use strowger_pfcp::{IeType, Index, MessageType, MessageView};

/// The kinds of proof that have a column on the page.
const KINDS: [&str; 6] = [
    "vector", "capture", "tshark", "go-pfcp", "rs-pfcp", "property",
];

/// The rows that one test has verified.
pub(crate) struct Proof {
    kind: &'static str,
    rows: BTreeSet<(&'static str, u16)>,
}

#[allow(
    dead_code,
    reason = "each program of tests that has this module uses what it needs"
)]
impl Proof {
    /// Begins a proof of one of the kinds.
    pub(crate) fn by(kind: &'static str) -> Self {
        assert!(KINDS.contains(&kind), "the page has no column for {kind}");
        let rows = BTreeSet::new();
        Self { kind, rows }
    }

    /// Notes an element whose value was correct.
    pub(crate) fn element(&mut self, ie: IeType) {
        self.rows.insert(("ie", ie.0));
    }

    /// Notes a message that was correct.
    pub(crate) fn message(&mut self, message: MessageType) {
        self.rows.insert(("message", message.0.into()));
    }

    /// Notes a message and every element in it, at any depth, that its table lists in that place.
    pub(crate) fn message_and_elements(&mut self, bytes: &[u8]) {
        let mut index = Index::new();
        if let Ok(view) = MessageView::decode(bytes, &mut index) {
            self.message(view.message_type());
            self.members(view.root());
        }
    }

    fn members(&mut self, group: Part<'_>) {
        for part in group.parts().filter(|part| part.member().is_some()) {
            self.element(part.ie());
            self.members(part);
        }
    }

    /// Writes the notes to the file.
    pub(crate) fn record(self) {
        let Some(folder) = std::env::var_os("STROWGER_CONFORMANCE") else {
            return;
        };
        let path = Path::new(&folder).join(self.kind).with_extension("tsv");
        fs::create_dir_all(&folder).expect("a folder for what was found");
        let file = File::options().create(true).append(true).open(path);
        let lines = self
            .rows
            .iter()
            .map(|(what, number)| format!("{what}\t{number}\n"));
        // A single write, because tests run in parallel.
        let text: String = lines.collect();
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("a file to write to");
    }
}
