//! Progress of an operation that a node performs on a component, followed until it is over or
//! its caller stops waiting.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strowger_gateway::client::{Client, ClientError};

use crate::command::duration;
use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::{CliResult, Failure};
use strowger_pfcp_cli::signals::ShutdownSignals;

/// The arguments that say how long to wait, and whether to show progress.
#[derive(Debug, clap::Args)]
pub(super) struct DeadlineArgs {
    /// Maximum time to wait; a component that is not starting by then is cancelled.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    deadline: Duration,
    /// Show progress on standard error even if it is not a terminal.
    #[arg(long)]
    progress: bool,
}

/// Milliseconds that one poll waits for the end.
const POLL_MS: u64 = 250;
/// Extra time after its deadline that the node may take to confirm the cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval between lines that repeat the same stage, where they are not drawn over.
const REPEAT_INTERVAL: Duration = Duration::from_secs(5);

impl DeadlineArgs {
    /// Calls a method of the node that may take long.
    pub(super) fn follow(
        &self,
        control: &ControlArgs,
        method: &str,
        params: Value,
    ) -> CliResult<Result<Value, ClientError>> {
        let mut shown = ProgressLine::new(self.progress);
        let done = block_on(self.poll_until_over(control, method, params, &mut shown));
        shown.clear();
        done
    }

    async fn poll_until_over(
        &self,
        control: &ControlArgs,
        method: &str,
        params: Value,
        shown: &mut ProgressLine,
    ) -> CliResult<Result<Value, ClientError>> {
        let mut signals = ShutdownSignals::new()?;
        let mut client = control.connect().await?;
        let within = u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX);
        let begin = json!({ "method": method, "params": params, "within_ms": within });
        let begun = match client.call("component.begin", begin).await {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(error)),
        };
        let (id, since) = (&begun["id"], Instant::now());
        let mut look = json!({ "id": id, "wait_ms": POLL_MS });
        loop {
            let seen = tokio::select! {
                seen = client.call("component.watch", look.clone()) => seen,
                () = signals.recv() => return Err(interrupted(control, id).await),
            };
            let seen = match seen {
                Ok(seen) if seen["over"] == true => return Ok(Ok(seen["row"].clone())),
                Ok(seen) => seen,
                Err(ClientError::Fault(fault)) => return Ok(Err(ClientError::Fault(fault))),
                Err(error) => return Err(unknown_outcome(&error, self.deadline)),
            };
            if since.elapsed() > self.deadline + CANCEL_TIMEOUT {
                return Err(still_running(&format!(
                    "no outcome within {:?}",
                    self.deadline
                )));
            }
            shown.show(&seen)?;
            look["id"] = seen["id"].clone();
        }
    }
}

/// Cancels the operation, and reports what came of it.
async fn interrupted(control: &ControlArgs, id: &Value) -> Failure {
    let cancel = async {
        // The first connection is in the middle of a call.
        let mut client = control.connect().await?;
        let cancelled = cancel(&mut client, id).await;
        cancelled.map_err(|error| client_failure(&error))
    };
    match cancel.await {
        Ok(true) => Failure::outside(
            "interrupted: the deployment was cancelled before the component started",
        )
        .hint("compiled code is kept for the next attempt"),
        Ok(false) => still_running("interrupted"),
        Err(_) => Failure::outside(
            "interrupted, but the node does not answer: the deployment may continue",
        )
        .hint("check the outcome with `strowger component list`"),
    }
}

async fn cancel(client: &mut Client, id: &Value) -> Result<bool, ClientError> {
    let cancelled = client.call("component.cancel", json!({ "id": id })).await?;
    Ok(cancelled["cancelled"] == true)
}

fn still_running(what: &str) -> Failure {
    Failure::outside(format!(
        "{what}: the component is already starting, and the node continues"
    ))
    .hint("check the outcome with `strowger component list`")
}

/// The failure when the node goes away, or is too busy to answer.
fn unknown_outcome(error: &ClientError, deadline: Duration) -> Failure {
    Failure::outside(format!(
        "{error}: the node continues, unless the component is not starting within {deadline:?}"
    ))
    .hint("check the outcome with `strowger component list`")
}

/// The progress shown on standard error.
struct ProgressLine {
    terminal: bool,
    wanted: bool,
    /// The stage of the last line, and the time at which it was written.
    last: Option<(String, Instant)>,
}

impl ProgressLine {
    fn new(progress: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        Self {
            terminal,
            wanted: terminal || progress,
            last: None,
        }
    }

    fn show(&mut self, seen: &Value) -> CliResult {
        if !self.wanted {
            return Ok(());
        }
        let stage = seen["stage"].as_str().unwrap_or_default();
        let new = |(last, at): &(String, Instant)| last != stage || at.elapsed() >= REPEAT_INTERVAL;
        if !self.terminal && !self.last.as_ref().is_none_or(new) {
            return Ok(());
        }
        let line = stage_line(stage, seen);
        let mut to = io::stderr().lock();
        let written = match self.terminal {
            // Draw over the previous line, and clear the rest of it.
            true => write!(to, "\r{line}\x1b[K").and_then(|()| to.flush()),
            false => writeln!(to, "{line}"),
        };
        self.last = Some((stage.to_owned(), Instant::now()));
        // Standard error may be closed: then the progress has no reader.
        self.wanted = written.is_ok();
        Ok(())
    }

    /// Clears the last line, so that the next output begins on a line of its own.
    fn clear(&self) {
        if self.terminal && self.last.is_some() {
            let mut to = io::stderr().lock();
            let _ = write!(to, "\r\x1b[K").and_then(|()| to.flush());
        }
    }
}

fn stage_line(stage: &str, seen: &Value) -> String {
    let seconds = seen["elapsed_ms"].as_f64().unwrap_or(0.0) / 1e3;
    let bytes = seen["octets"].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
    match stage {
        "reading" => format!("reading the files, {seconds:.1} s"),
        "waiting" => format!("waiting for the compilation of other components, {seconds:.1} s"),
        "compiling" => format!("compiling {bytes:.1} MiB, {seconds:.1} s"),
        _ => format!("starting, {seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_a_line() {
        let of = |stage| stage_line(stage, &json!({ "elapsed_ms": 1500, "octets": 3 << 20 }));
        assert_eq!(of("reading"), "reading the files, 1.5 s");
        assert_eq!(of("compiling"), "compiling 3.0 MiB, 1.5 s");
        assert_eq!(of("starting"), "starting, 1.5 s");
    }
}
