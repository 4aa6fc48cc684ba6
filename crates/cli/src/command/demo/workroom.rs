//! The tools of the demo, and the folder whose files they reach.

use std::fs;

use tempfile::TempDir;

use crate::config::{Config, FilesSection};
use crate::exit::{Done, Failure};

/// A new folder with a note in it; gone when it is dropped.
pub(super) struct Workroom(TempDir);

/// The file that is there from the beginning.
pub(super) const NOTE: &str = "note.txt";

const TEXT: &str = "Agents read and write here, and nowhere else.\n";

/// How much the files may take together.
const OCTETS: u64 = 64 << 20;

impl Workroom {
    pub(super) fn make() -> Done<Self> {
        let made = tempfile::Builder::new().prefix("strowger-demo-").tempdir();
        let made = made.and_then(|folder| {
            fs::write(folder.path().join(NOTE), TEXT)?;
            Ok(Self(folder))
        });
        made.map_err(|error| Failure::outside(format!("no folder for the tools: {error}")))
    }

    /// Gives the demo all tools; those for files reach this.
    pub(super) fn grant(&self, config: &mut Config) {
        let mut files = FilesSection::new(self.0.path().to_owned());
        files.octets = OCTETS;
        let tools = &mut config.tools;
        tools.files.push(files);
        tools.streams.enabled = true;
        tools.code.enabled = true;
        tools.programs.enabled = true;
        tools.on_demand = true;
    }
}
