//! Reloading of the configuration while the node runs.

use std::path::PathBuf;

use serde_json::json;

use crate::config::{Config, changes};
use crate::exit::CliResult;
use crate::log::log_as_configured;
use crate::output::Output;

/// The keys that take effect without a restart.
const LIVE_KEYS: [&str; 1] = ["log.filter"];

/// The configuration that the node runs with, and its file.
pub(super) struct ConfigReload {
    file: Option<PathBuf>,
    /// The text that the node was started with. Only `filter` follows later reloads.
    text: String,
    filter: Option<String>,
}

impl ConfigReload {
    pub(super) fn new(file: Option<PathBuf>, text: String) -> Self {
        Self {
            file,
            text,
            filter: None,
        }
    }

    /// Reads the file again, applies the keys that can be applied, and reports those that need a
    /// restart. An invalid file changes nothing.
    pub(super) fn reload(&mut self, json: bool, output: &mut Output) -> CliResult {
        let Some(file) = &self.file else {
            return report(
                json,
                output,
                "no configuration file to reload: start the node with --config FILE",
            );
        };
        let (config, text) = match Config::read(file) {
            Ok(read) => read,
            Err(failure) => return report(json, output, &failure.to_string()),
        };
        let (mut done, waiting): (Vec<String>, Vec<String>) = changes(&self.text, &text)
            .into_iter()
            .partition(|key| LIVE_KEYS.contains(&key.as_str()));
        // Compare with the filter in force, which an earlier signal may have changed.
        let filter = self.filter.take();
        if filter.is_some_and(|filter| filter != config.log.filter) && done.is_empty() {
            done.push("log.filter".to_owned());
        }
        log_as_configured(&config.log.filter);
        self.filter = Some(config.log.filter);
        if json {
            return output.json(&json!({ "reloaded": done, "needs_start": waiting }));
        }
        if done.is_empty() && waiting.is_empty() {
            return output.line(format!("{}: no changes", file.display()));
        }
        for key in done {
            output.line(format!("{}: {key} applied", file.display()))?;
        }
        for key in waiting {
            output.line(format!("{}: {key} needs a restart", file.display()))?;
        }
        Ok(())
    }
}

fn report(json: bool, output: &mut Output, text: &str) -> CliResult {
    if json {
        output.json(&json!({ "reloaded": [], "error": text }))
    } else {
        output.line(text)
    }
}
