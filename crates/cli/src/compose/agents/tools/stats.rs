//! The metrics of tools.

use std::sync::{Arc, OnceLock};

use strowger_gateway::health::HealthRegistry;
use strowger_gateway::metrics::{MetricKind, MetricsPage};
use strowger_tools::files::FilesUsage;

use super::{Tools, VerbCounts};

/// The tools, set once they have started: the HTTP endpoint opens before them.
pub(crate) type LateTools = Arc<OnceLock<Tools>>;

/// Adds the metrics of tools.
pub(crate) fn add_health(health: HealthRegistry, tools: &LateTools) -> HealthRegistry {
    let tools = Arc::clone(tools);
    health.collect(move |page| {
        let tools = || tools.get().into_iter();
        calls(
            &tools().flat_map(Tools::all_verbs).collect::<Vec<_>>(),
            page,
        );
        quotas(&tools().flat_map(Tools::usages).collect::<Vec<_>>(), page);
        let help = "Open streams.";
        let live = tools().map(Tools::live_streams).sum::<usize>();
        page.single(
            "strowger_tool_streams",
            MetricKind::Gauge,
            help,
            live as f64,
        );
    })
}

/// A metric of each root: its name, its description, and the function that reads it.
type RootMetric = (&'static str, &'static str, fn(&FilesUsage) -> u64);

const METRICS: [RootMetric; 4] = [
    (
        "strowger_tool_files_bytes",
        "Bytes added below the root of a tool.",
        |usage| usage.bytes,
    ),
    (
        "strowger_tool_files_bytes_max",
        "Limit of bytes added below the root of a tool.",
        |usage| usage.bytes_limit,
    ),
    (
        "strowger_tool_files_entries",
        "Entries added below the root of a tool.",
        |usage| usage.entries,
    ),
    (
        "strowger_tool_files_entries_max",
        "Limit of entries added below the root of a tool.",
        |usage| usage.entries_limit,
    ),
];

/// Writes the calls of tools.
fn calls(tools: &[(&str, VerbCounts)], page: &mut MetricsPage) {
    let help = "Calls of a tool, by result.";
    let mut calls = page.family("strowger_tool_calls_total", MetricKind::Counter, help);
    for (tool, verbs) in tools {
        for (verb, counts) in verbs {
            // The counters are incremented one after the other while this reads them.
            let done = counts.calls.saturating_sub(counts.refused + counts.failed);
            for (outcome, count) in [
                ("done", done),
                ("refused", counts.refused),
                ("failed", counts.failed),
            ] {
                let labels = [("tool", *tool), ("verb", verb), ("outcome", outcome)];
                calls.sample(&labels, count as f64);
            }
        }
    }
    let help = "Bytes read, written or forwarded by a tool.";
    let mut bytes = page.family("strowger_tool_bytes_total", MetricKind::Counter, help);
    for (tool, verbs) in tools {
        for (verb, counts) in verbs {
            bytes.sample(&[("tool", *tool), ("verb", verb)], counts.bytes as f64);
        }
    }
}

/// Writes the usage of quotas.
fn quotas(usages: &[(&str, FilesUsage)], page: &mut MetricsPage) {
    for (name, help, read) in METRICS {
        let mut family = page.family(name, MetricKind::Gauge, help);
        for (tool, usage) in usages {
            family.sample(&[("tool", *tool)], read(usage) as f64);
        }
    }
}
