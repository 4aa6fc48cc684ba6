//! What tests have compared and found right, for the page on conformance.
//!
//! Where `STROWGER_CONFORMANCE` names a folder, each proof has a file there; elsewhere nothing is
//! written. `cargo xtask conformance` composes the page from the files. A test records at its end,
//! when all that it claims has been found to hold:
//!
//! ```text
//! let mut proof = Proof::by("vector");
//! proof.message_and_elements(octets);
//! proof.record();
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use strowger_pfcp::wire::Part;
use strowger_pfcp::{IeType, Index, MessageType, MessageView};

/// The kinds of proof that the page has a column for.
const KINDS: [&str; 6] = [
    "vector", "capture", "tshark", "go-pfcp", "rs-pfcp", "property",
];

/// What one test found right.
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

    /// Notes an element whose value was right.
    pub(crate) fn element(&mut self, ie: IeType) {
        self.rows.insert(("ie", ie.0));
    }

    /// Notes a message that was right.
    pub(crate) fn message(&mut self, message: MessageType) {
        self.rows.insert(("message", message.0.into()));
    }

    /// Notes a message and every element of it at any depth that stands where its table has it.
    pub(crate) fn message_and_elements(&mut self, octets: &[u8]) {
        let mut index = Index::new();
        if let Ok(view) = MessageView::decode(octets, &mut index) {
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

    /// Writes down what was noted.
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
        // One write, for tests run side by side.
        let text: String = lines.collect();
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("a file to write to");
    }
}
