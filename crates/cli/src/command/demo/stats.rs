//! The stats of the demo: one line while it runs, one summary at the end.

use std::time::Duration;

use serde_json::{Value, json};
use strowger_pfcp_node::LoadStats;

use super::policy;
use crate::compose::RunningNode;
use crate::exit::{CliResult, Failure};
use crate::output::{Output, TextStyle};
use strowger_pfcp_cli::latency;
use strowger_pfcp_cli::load::quantile_micros;

/// The counters of the demo.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DemoStats {
    /// Sessions that the SMF holds.
    pub(super) held: u64,
    pub(super) established: u64,
    pub(super) rejected: u64,
    /// Sessions that were accepted, not deleted, and no longer exist; requests that were not
    /// answered count as well.
    pub(super) lost: u64,
    pub(super) restarts: u64,
    pub(super) panics: u64,
    /// Modifications after a panic that were accepted.
    pub(super) survived: u64,
    /// Times that the SMF lost the node, the sessions that the node had lost then, and how many of
    /// them were established again.
    pub(super) peers_lost: u64,
    pub(super) sessions_lost: u64,
    pub(super) sessions_restored: u64,
    /// Establishments a second.
    pub(super) rate: f64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) p999_us: u64,
    /// Usage reports that the SMF received, and the bytes that they report.
    pub(super) usage_reports: u64,
    pub(super) usage_bytes: u64,
    /// Calls of the policy, and the number of its traps.
    pub(super) calls: u64,
    pub(super) traps: u64,
    /// Sessions whose rates the policy lowered, and requests that it did not answer.
    pub(super) lowered: u64,
    pub(super) unanswered: u64,
    pub(super) elapsed: Duration,
}

impl DemoStats {
    /// Reads what the load generator measured and what the node counted.
    pub(super) fn of(load: &LoadStats, running: &RunningNode) -> Self {
        let stats = running.node.stats();
        let asked = &stats.policy;
        let (calls, traps) = policy::counts(&running.components);
        Self {
            held: load.held,
            established: load.established,
            rejected: load.rejected,
            lost: load.lost,
            restarts: stats.restored,
            panics: load.panics,
            survived: load.probes_accepted,
            peers_lost: load.peers_lost,
            sessions_lost: load.sessions_lost,
            sessions_restored: load.sessions_restored,
            rate: load.rate(),
            p50_us: quantile_micros(load, 0.5),
            p99_us: quantile_micros(load, 0.99),
            p999_us: quantile_micros(load, 0.999),
            usage_reports: load.usage_reports,
            usage_bytes: load.usage_bytes,
            calls,
            traps,
            lowered: asked.changed,
            unanswered: asked.timed_out + asked.failed + asked.busy,
            elapsed: load.elapsed,
        }
    }

    /// Formats the line that is drawn while the demo runs.
    pub(super) fn line(&self, output: &Output) -> String {
        let count = |bad: u64, what: &str| {
            let text = format!("{bad} {what}");
            if bad == 0 {
                text
            } else {
                output.paint(TextStyle::Yellow, text)
            }
        };
        format!(
            "{}  {} sessions  {:.0}/s established  p50 {}  p99 {}  {} used  \
             {} policy calls  {}  {}",
            output.paint(TextStyle::Faint, format_clock(self.elapsed)),
            output.paint(TextStyle::Bold, self.held),
            self.rate,
            latency::format_micros(self.p50_us),
            latency::format_micros(self.p99_us),
            format_bytes(self.usage_bytes),
            self.calls,
            count(self.restarts, "restarts"),
            count(self.rejected, "rejected"),
        )
    }

    /// Returns the JSON object that ends the demo.
    pub(super) fn to_json(self) -> Value {
        json!({
            "established": self.established,
            "held": self.held,
            "rejected": self.rejected,
            "lost": self.lost,
            "restarts": self.restarts,
            "panics": self.panics,
            "survived": self.survived,
            "peers_lost": self.peers_lost,
            "sessions_lost": self.sessions_lost,
            "sessions_restored": self.sessions_restored,
            "rate": (self.rate * 10.0).round() / 10.0,
            "p50_us": self.p50_us,
            "p99_us": self.p99_us,
            "p999_us": self.p999_us,
            "usage_reports": self.usage_reports,
            "usage_octets": self.usage_bytes,
            "policy_calls": self.calls,
            "policy_traps": self.traps,
            "policy_lowered": self.lowered,
            "policy_unanswered": self.unanswered,
            "seconds": (self.elapsed.as_secs_f64() * 1e3).round() / 1e3,
        })
    }
}

impl DemoStats {
    /// Prints the summary.
    pub(super) fn report(&self, output: &mut Output) -> CliResult {
        output.line("")?;
        output.line(format!(
            "{} sessions held, {} established at {:.0}/s in {:.1} s",
            self.held,
            self.established,
            self.rate,
            self.elapsed.as_secs_f64(),
        ))?;
        output.line(format!(
            "latency p50 {}, p99 {}, p99.9 {}",
            latency::format_micros(self.p50_us),
            latency::format_micros(self.p99_us),
            latency::format_micros(self.p999_us),
        ))?;
        output.line(format!(
            "{} of simulated traffic in {} usage reports",
            format_bytes(self.usage_bytes),
            self.usage_reports,
        ))?;
        output.line(format!(
            "{} policy calls: {} sessions capped, {} traps, {} requests unanswered",
            self.calls, self.lowered, self.traps, self.unanswered,
        ))?;
        if self.panics > 0 {
            output.line(format!(
                "{} injected panics, {} restarts, {} sessions modified afterwards",
                self.panics, self.restarts, self.survived,
            ))?;
        }
        if self.peers_lost > 0 {
            output.line(format!(
                "{} times the SMF lost the node; {} sessions lost, {} restored",
                self.peers_lost, self.sessions_lost, self.sessions_restored,
            ))?;
        }
        let style = if self.verdict().is_ok() {
            TextStyle::Green
        } else {
            TextStyle::Red
        };
        output.line(output.paint(
            style,
            format!("{} rejected, {} lost", self.rejected, self.lost),
        ))
    }

    /// Returns an error unless every session was accepted and still exists.
    pub(super) fn verdict(&self) -> CliResult {
        match (self.lost, self.rejected) {
            (0, 0) => Ok(()),
            (lost, rejected) => Err(Failure::check(format!(
                "{lost} sessions lost, {rejected} rejected"
            ))),
        }
    }
}

/// Formats a number of bytes for people.
fn format_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1000.0 {
            let decimals = usize::from(unit != "B" && value < 100.0);
            return format!("{value:.decimals$} {unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

fn format_clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().round();
    format!("{:02.0}:{:02.0}", (seconds / 60.0).floor(), seconds % 60.0)
}
