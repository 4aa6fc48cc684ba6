//! Health and metrics of a node besides its actors: limits, readiness, metrics of PFCP.

use std::sync::{Arc, OnceLock};

use strowger::ActorLifecycle;
use strowger_gateway::health::{HealthRegistry, LimitUsage};
use strowger_gateway::metrics::{MetricKind, MetricsPage};
use strowger_pfcp_node::{NodeHandle, NodeStats, StoreHealth, StoreLoss};

use crate::config::Config;

/// The node, set once it has started: the HTTP endpoint opens before it.
pub(super) type LateNode = Arc<OnceLock<NodeHandle>>;

/// Returns the health of a node with this configuration.
pub(super) fn node_health(config: &Config, node: &LateNode) -> HealthRegistry {
    let limits = &config.n4.limits;
    let (sessions, associations) = (limits.sessions, limits.associations);
    let [held, peers, bound, free, counted] = std::array::from_fn(|_| Arc::clone(node));
    HealthRegistry::new()
        .limit("sessions", move || {
            Some(usage(held.get()?.stats().sessions, sessions))
        })
        .limit("associations", move || {
            Some(usage(peers.get()?.stats().associations, associations))
        })
        .check("n4", move || check_n4(&bound))
        .check("associations", move || match free.get() {
            Some(node) if node.stats().associations >= associations => {
                Err(format!("{associations} associations, which is the limit"))
            }
            _ => Ok(()),
        })
        .collect(move |page| {
            if let Some(node) = counted.get() {
                write(&node.stats(), page);
                write_store(&node.store(), page);
            }
        })
}

fn usage(used: usize, most: usize) -> LimitUsage {
    LimitUsage::new(used as f64, most as f64)
}

/// The actor that owns the sockets for PFCP.
const ENDPOINT: &str = "/node/n4";

fn check_n4(node: &LateNode) -> Result<(), String> {
    let Some(node) = node.get() else {
        return Err("the node has not started".to_owned());
    };
    match node.system().find(ENDPOINT) {
        None => Err(format!("{ENDPOINT} has ended")),
        Some(endpoint) => match endpoint.info().state {
            ActorLifecycle::Running => Ok(()),
            state => Err(format!("{ENDPOINT} is {state}")),
        },
    }
}

/// A metric without labels: its name, its description, and the function that reads it.
type NodeMetric = (&'static str, &'static str, fn(&NodeStats) -> f64);

/// Lists metrics by name, member of [`NodeStats`] and description.
macro_rules! node_metrics {
    ($($name:literal $($member:ident).+: $help:literal;)*) => {
        [$(($name, $help, |stats| stats.$($member).+ as f64)),*]
    };
}

/// Gauges of the node.
const NODE_GAUGES: [NodeMetric; 5] = node_metrics! {
    "strowger_n4_sessions" sessions: "Sessions held.";
    "strowger_n4_associations" associations: "Associations.";
    "strowger_n4_rule_memory_bytes" rule_memory: "Memory of the rules of all sessions, at most.";
    "strowger_n4_peer_rule_memory_bytes" rule_memory_of_peer:
        "Memory of the rules of the host that has the most, at most.";
    "strowger_n4_metered_sessions" usage.metered:
        "Sessions that measure, buffer or detect traffic.";
};

/// Counters since the node started.
const NODE_COUNTERS: [NodeMetric; 21] = node_metrics! {
    "strowger_n4_established_total" established: "Session establishments accepted.";
    "strowger_n4_modified_total" modified: "Session modifications accepted.";
    "strowger_n4_deleted_total" deleted: "Session deletions accepted.";
    "strowger_n4_superseded_total" superseded:
        "Sessions ended because their peer used their CP F-SEID for another session.";
    "strowger_n4_dropped_total" dropped: "Requests dropped because their session panicked or was \
                                          killed.";
    "strowger_n4_restored_total" restored: "Session actors started from the store.";
    "strowger_n4_datagrams_total" datagrams: "Datagrams received.";
    "strowger_n4_repeated_total" repeated: "Retransmitted requests answered with the stored \
                                            response.";
    "strowger_n4_evicted_total" evicted: "Stored responses evicted before their time.";
    "strowger_n4_limited_total" limited:
        "Requests refused because their peer exceeded its rate limit.";
    "strowger_n4_memory_refused_total" memory_refused:
        "Requests refused because of the memory of their rules.";
    "strowger_n4_restarts_total" restarts: "Restarts of peers, which ended their sessions.";
    "strowger_n4_restarts_denied_total" restarts_denied:
        "Restarts that a heartbeat claimed and the peer denied.";
    "strowger_n4_stamps_ignored_total" stamps_ignored:
        "Heartbeats with a later Recovery Time Stamp, ignored because the peer restarts only by \
         association setup.";
    "strowger_n4_setups_refused_total" setups_refused:
        "Association setups refused: Node ID not of the sender, or limit reached.";
    "strowger_n4_unsent_total" unsent: "Datagrams that the operating system refused to send.";
    "strowger_n4_session_reports_total" usage.requests:
        "Session reports sent, not counting retransmissions.";
    "strowger_n4_session_reports_unanswered_total" usage.unanswered:
        "Session reports that were not answered, or were answered with a temporary failure.";
    "strowger_n4_session_reports_withdrawn_total" usage.withdrawn:
        "Session reports withdrawn because their session or association ended.";
    "strowger_n4_usage_reports_total" usage.reports: "Usage reports acknowledged by peers.";
    "strowger_n4_usage_reports_refused_total" usage.refused: "Usage reports refused by peers.";
};

fn write(stats: &NodeStats, page: &mut MetricsPage) {
    for (name, help, read) in NODE_GAUGES {
        page.single(name, MetricKind::Gauge, help, read(stats));
    }
    for (name, help, read) in NODE_COUNTERS {
        page.single(name, MetricKind::Counter, help, read(stats));
    }
    let help = "Limits, by configuration key.";
    let mut limits = page.family("strowger_n4_limit", MetricKind::Gauge, help);
    for (key, limit) in &stats.limits {
        limits.sample(&[("limit", key)], *limit as f64);
    }
    let help = "Requests refused, by cause number.";
    let mut refused = page.family("strowger_n4_refused_total", MetricKind::Counter, help);
    for (cause, count) in &stats.refused {
        refused.sample(&[("cause", &cause.0.to_string())], *count as f64);
    }
    let help = "Tolerated violations of the specification by peers.";
    let mut deviations = page.family("strowger_n4_deviations_total", MetricKind::Counter, help);
    for (deviation, count) in &stats.deviations {
        deviations.sample(&[("deviation", deviation.name())], *count as f64);
    }
    let help =
        "Claims refused: Node IDs and addresses of others, and report addresses not allowed.";
    let mut claims = page.family(
        "strowger_n4_claims_refused_total",
        MetricKind::Counter,
        help,
    );
    for (claim, count) in &stats.claims_refused {
        claims.sample(&[("claim", claim)], *count as f64);
    }
    let (usage, policy) = (&stats.usage, &stats.policy);
    let help = "Bytes of simulated traffic, by result.";
    let mut traffic = page.family("strowger_n4_traffic_bytes_total", MetricKind::Counter, help);
    for (verdict, bytes) in [
        ("forwarded", usage.forwarded),
        ("buffered", usage.buffered),
        ("dropped", usage.dropped),
    ] {
        traffic.sample(&[("verdict", verdict)], bytes as f64);
    }
    let help = "Policy requests, by result.";
    let mut asked = page.family("strowger_n4_policy_total", MetricKind::Counter, help);
    for (outcome, count) in [
        ("admitted", policy.admitted),
        ("changed", policy.changed),
        ("refused", policy.refused),
        ("late", policy.timed_out),
        ("failed", policy.failed),
        ("busy", policy.busy),
    ] {
        asked.sample(&[("outcome", outcome)], count as f64);
    }
    let help = "Datagrams discarded without a response, by reason.";
    let mut discarded = page.family("strowger_n4_discarded_total", MetricKind::Counter, help);
    for (kind, count) in &stats.discarded {
        let kind = kind.name().replace(' ', "_");
        discarded.sample(&[("kind", &kind)], *count as f64);
    }
}

/// A metric of the store: its name, its kind, its description, and the function that reads it.
type StoreMetric = (
    &'static str,
    MetricKind,
    &'static str,
    fn(&StoreHealth) -> f64,
);

/// Metrics of the store, all 0 if sessions are kept in memory.
const STORE_METRICS: [StoreMetric; 8] = [
    (
        "strowger_n4_store_bytes",
        MetricKind::Gauge,
        "Size of the store on disk.",
        |store| store.bytes as f64,
    ),
    (
        "strowger_n4_store_refusing",
        MetricKind::Gauge,
        "1 while the disk is full or cannot be written.",
        |store| f64::from(u8::from(store.refusing)),
    ),
    (
        "strowger_n4_store_damaged",
        MetricKind::Gauge,
        "Damaged records found at the last start.",
        |store| loss(store, |loss| loss.damaged),
    ),
    (
        "strowger_n4_store_salvaged",
        MetricKind::Gauge,
        "Sessions recovered at the last start from a store with data loss.",
        |store| loss(store, |loss| loss.sessions_found),
    ),
    (
        "strowger_n4_store_groups_total",
        MetricKind::Counter,
        "Groups of writes committed.",
        |store| store.groups as f64,
    ),
    (
        "strowger_n4_store_writes_total",
        MetricKind::Counter,
        "Writes in committed groups.",
        |store| store.writes as f64,
    ),
    (
        "strowger_n4_store_refused_total",
        MetricKind::Counter,
        "Writes refused for lack of space.",
        |store| store.refused as f64,
    ),
    (
        "strowger_n4_store_commit_seconds_total",
        MetricKind::Counter,
        "Total time of commits.",
        |store| store.committing.as_secs_f64(),
    ),
];

fn loss(store: &StoreHealth, read: fn(&StoreLoss) -> u64) -> f64 {
    store.loss.as_ref().map_or(0.0, |loss| read(loss) as f64)
}

fn write_store(store: &StoreHealth, page: &mut MetricsPage) {
    for (name, kind, help, read) in STORE_METRICS {
        page.single(name, kind, help, read(store));
    }
    let longest = store.longest.as_secs_f64();
    let help = "Longest commit since the node started.";
    page.single(
        "strowger_n4_store_commit_seconds_max",
        MetricKind::Gauge,
        help,
        longest,
    );
}
