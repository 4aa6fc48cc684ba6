//! The counters that components report through the `metrics` facade.

use metrics::counter;

use crate::fault::FaultKind;

/// The target of log lines about denied operations.
pub(crate) const AUDIT: &str = "strowger_wasm::audit";

const FAULTS: &str = "strowger_component_faults_total";
const REFUSED: &str = "strowger_component_refused_total";
const POISON: &str = "strowger_component_poison_total";
const PASSIVATED: &str = "strowger_component_passivated_total";
const COMPILED: &str = "strowger_component_compilations_total";
const OVER_SHARE: &str = "strowger_component_over_share_total";

/// Counts a compilation.
pub(crate) fn compiled() {
    counter!(COMPILED).increment(1);
}

/// Counts a fault.
pub(crate) fn fault(component: &str, kind: &FaultKind) {
    let labels = [
        ("component", component.to_owned()),
        ("kind", kind.name().to_owned()),
    ];
    counter!(FAULTS, &labels).increment(1);
}

/// Counts a denied operation.
pub(crate) fn refused(component: &str, grant: &'static str) {
    let labels = [
        ("component", component.to_owned()),
        ("grant", grant.to_owned()),
    ];
    counter!(REFUSED, &labels).increment(1);
}

/// Counts messages that were given up.
pub(crate) fn poison(component: &str, count: u64) {
    counter!(POISON, "component" => component.to_owned()).increment(count);
}

/// Counts a passivation.
pub(crate) fn passivated(component: &str) {
    counter!(PASSIVATED, "component" => component.to_owned()).increment(1);
}

/// Counts a component that was quarantined for exceeding its share of a processor.
pub(crate) fn quarantined(component: &str) {
    counter!(OVER_SHARE, "component" => component.to_owned()).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_match_the_documentation() {
        let document = include_str!("../../../docs/metrics.md");
        let ours = document.split("## Components").nth(1);
        let ours = ours.and_then(|ours| ours.split("\n## ").next());
        let named: Vec<&str> = ours
            .expect("a chapter about components")
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        assert_eq!(
            named,
            [FAULTS, REFUSED, POISON, PASSIVATED, COMPILED, OVER_SHARE]
        );
    }
}
