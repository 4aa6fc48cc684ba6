//! Reading the configuration again while the node runs.

use std::path::PathBuf;

use serde_json::json;

use crate::config::{Config, changes};
use crate::exit::Done;
use crate::output::{Output, log_as_configured};

/// The keys that take effect without a new start.
const LIVE: [&str; 1] = ["log.filter"];

/// What the node runs with, and where that came from.
pub(super) struct Reload {
    file: Option<PathBuf>,
    /// The text that the node was started with; the log is as in the text read last.
    text: String,
    filter: Option<String>,
}

impl Reload {
    pub(super) fn new(file: Option<PathBuf>, text: String) -> Self {
        Self {
            file,
            text,
            filter: None,
        }
    }

    /// Reads the file again; does what can be done, and says what needs a new start. A file that
    /// cannot be used changes nothing.
    pub(super) fn again(&mut self, json: bool, output: &mut Output) -> Done {
        let Some(file) = &self.file else {
            return say(
                json,
                output,
                "no configuration to read again: run with --config FILE",
            );
        };
        let (config, text) = match Config::read(file) {
            Ok(read) => read,
            Err(failure) => return say(json, output, &failure.to_string()),
        };
        let (mut done, waiting): (Vec<String>, Vec<String>) = changes(&self.text, &text)
            .into_iter()
            .partition(|key| LIVE.contains(&key.as_str()));
        // Against what is in force now, which an earlier signal may have changed.
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
            return output.line(format!("{}: nothing has changed", file.display()));
        }
        for key in done {
            output.line(format!("{}: {key} is in force", file.display()))?;
        }
        for key in waiting {
            output.line(format!("{}: {key} needs a new start", file.display()))?;
        }
        Ok(())
    }
}

fn say(json: bool, output: &mut Output, text: &str) -> Done {
    if json {
        output.json(&json!({ "reloaded": [], "error": text }))
    } else {
        output.line(text)
    }
}
