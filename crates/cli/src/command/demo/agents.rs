//! The tools of the demo, and the folder whose files they reach.

use std::fs;

use tempfile::TempDir;

use crate::config::Config;
use crate::config::agents::FilesSection;
use crate::exit::{CliResult, Failure};

/// A new folder with a note in it; removed when this value is dropped.
pub(super) struct DemoTools(TempDir);

/// The part of the demo that this program was built without.
pub(super) const MISSING: Option<&str> = None;

/// Commands to try, with their purpose.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("ask tools/files#list", "the files that agents can access"),
    (
        r#"ask tools/files#read '{"path": "note.txt"}'"#,
        "one of these files",
    ),
    (
        r#"ask tools/code#execute '{"code": "6 * 7"}'"#,
        "run code in the sandbox, as an agent does",
    ),
    ("mcp", "MCP server for an agent that starts this command"),
];

pub(super) const HELP: &str = "\
Tools for agents can access only a new temporary directory, which is deleted at the end; code of
agents runs in a sandbox.";

/// The file that the folder contains from the beginning.
const NOTE: &str = "note.txt";

const NOTE_TEXT: &str = "Agents can read and write in this directory only.\n";

/// Maximum size of all files together.
const MAX_BYTES: u64 = 64 << 20;

impl DemoTools {
    pub(super) fn create() -> CliResult<Self> {
        let made = tempfile::Builder::new().prefix("strowger-demo-").tempdir();
        let made = made.and_then(|folder| {
            fs::write(folder.path().join(NOTE), NOTE_TEXT)?;
            Ok(Self(folder))
        });
        made.map_err(|error| {
            Failure::outside(format!("cannot create a directory for the tools: {error}"))
        })
    }

    /// Gives the demo all tools; the file tools reach this folder.
    pub(super) fn grant(&self, config: &mut Config) {
        let mut files = FilesSection::new(self.0.path().to_owned());
        files.bytes = MAX_BYTES;
        let tools = &mut config.tools;
        tools.files.push(files);
        tools.streams.enabled = true;
        tools.code.enabled = true;
        tools.programs.enabled = true;
        tools.on_demand = true;
    }

    /// Removes the folder; what cannot be removed stays.
    pub(super) fn remove(self) {
        drop(self.0);
    }
}
