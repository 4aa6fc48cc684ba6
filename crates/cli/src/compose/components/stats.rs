//! The stats of components, for listings and for monitoring.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use strowger_gateway::health::{HealthRegistry, LimitUsage};
use strowger_gateway::metrics::{MetricKind, MetricsPage};
use strowger_wasm::registry::DeploymentStatus;

use super::Components;

/// The components, set once they have started: the HTTP endpoint opens before them.
pub(crate) type LateComponents = Arc<OnceLock<Components>>;

/// Adds the usage of components and their stats.
pub(crate) fn add_health(health: HealthRegistry, components: &LateComponents) -> HealthRegistry {
    let [live, counted] = std::array::from_fn(|_| Arc::clone(components));
    health
        .limit("components", move || {
            let host = &live.get()?.0.host;
            let most = host.limits().instances;
            Some(LimitUsage::new(host.live() as f64, most as f64))
        })
        .collect(move |page| {
            let list = counted.get().map(|components| components.0.registry.list());
            write(&list.unwrap_or_default(), page);
        })
}

/// A metric of each component: its name, its kind, its description, and the function that reads it.
type ComponentMetric = (
    &'static str,
    MetricKind,
    &'static str,
    fn(&DeploymentStatus) -> f64,
);

const METRICS: [ComponentMetric; 10] = [
    (
        "strowger_component_calls_total",
        MetricKind::Counter,
        "Messages handled by a component.",
        |one| one.info.calls as f64,
    ),
    (
        "strowger_component_failures_total",
        MetricKind::Counter,
        "Messages that a component answered with an error.",
        |one| one.info.refused as f64,
    ),
    (
        "strowger_component_incarnations_total",
        MetricKind::Counter,
        "Incarnations of a component.",
        |one| f64::from(one.info.incarnations),
    ),
    (
        "strowger_component_cpu_seconds_total",
        MetricKind::Counter,
        "CPU time of a component, measured on guest threads and sampled on workers.",
        |one| one.info.cpu.as_secs_f64(),
    ),
    (
        "strowger_component_throttled_total",
        MetricKind::Counter,
        "Calls delayed because a component exceeded its CPU share.",
        |one| one.info.throttled as f64,
    ),
    (
        "strowger_component_throttled_seconds_total",
        MetricKind::Counter,
        "Total delay of calls because a component exceeded its CPU share.",
        |one| one.info.delayed.as_secs_f64(),
    ),
    (
        "strowger_component_heavy",
        MetricKind::Gauge,
        "1 while a component runs on guest threads because of long calls.",
        |one| f64::from(u8::from(one.info.heavy)),
    ),
    (
        "strowger_component_memory_bytes",
        MetricKind::Gauge,
        "Linear memory of a component.",
        |one| one.info.memory as f64,
    ),
    (
        "strowger_component_messages",
        MetricKind::Gauge,
        "Messages waiting for a component.",
        |one| one.mailbox_size as f64,
    ),
    (
        "strowger_component_quarantined",
        MetricKind::Gauge,
        "1 while a component is in quarantine.",
        |one| f64::from(u8::from(!one.alive)),
    ),
];

fn write(list: &[DeploymentStatus], page: &mut MetricsPage) {
    for (name, kind, help, read) in METRICS {
        let mut family = page.family(name, kind, help);
        for one in list {
            family.sample(&[("component", &one.info.name)], read(one));
        }
    }
}

/// Returns a duration in whole milliseconds.
pub(super) fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Components {
    /// Returns the row of a component in a listing.
    pub(super) fn row(&self, one: &DeploymentStatus) -> Value {
        let info = &one.info;
        json!({
            "name": &*info.name,
            "state": if one.alive { "running" } else { "quarantine" },
            "sha256": info.digest.to_string(),
            "address": self.address(&info.name),
            "calls": info.calls,
            "refused": info.refused,
            "faults": info.faults,
            "lives": info.incarnations,
            "memory": info.memory,
            "cpu_ms": milliseconds(info.cpu),
            "heavy": info.heavy,
            "throttled": info.throttled,
            "throttled_ms": milliseconds(info.delayed),
            "waiting": one.mailbox_size,
            "previous": one.previous.map(|digest| digest.to_string()),
            "fault": info.fault.as_ref().map(ToString::to_string),
        })
    }
}
