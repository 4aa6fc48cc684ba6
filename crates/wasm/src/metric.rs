//! What is counted through the `metrics` facade, by component.

use metrics::counter;

use crate::fault::FaultKind;

/// The target of lines about what was refused.
pub(crate) const AUDIT: &str = "strowger_wasm::audit";

const FAULTS: &str = "strowger_component_faults_total";
const REFUSED: &str = "strowger_component_refused_total";
const POISON: &str = "strowger_component_poison_total";
const PASSIVATED: &str = "strowger_component_passivated_total";
const COMPILED: &str = "strowger_component_compilations_total";
const STARVED: &str = "strowger_component_over_share_total";

/// Octets were compiled.
pub(crate) fn compiled() {
    counter!(COMPILED).increment(1);
}

/// A life ended in a fault.
pub(crate) fn fault(component: &str, kind: &FaultKind) {
    let labels = [
        ("component", component.to_owned()),
        ("kind", kind.word().to_owned()),
    ];
    counter!(FAULTS, &labels).increment(1);
}

/// Something that was not granted was refused.
pub(crate) fn refused(component: &str, grant: &'static str) {
    let labels = [
        ("component", component.to_owned()),
        ("grant", grant.to_owned()),
    ];
    counter!(REFUSED, &labels).increment(1);
}

/// Messages were given up.
pub(crate) fn poison(component: &str, count: u64) {
    counter!(POISON, "component" => component.to_owned()).increment(count);
}

/// A component was passivated.
pub(crate) fn passivated(component: &str) {
    counter!(PASSIVATED, "component" => component.to_owned()).increment(1);
}

/// A component was put into quarantine because it stayed beyond its share of a processor.
pub(crate) fn starved(component: &str) {
    counter!(STARVED, "component" => component.to_owned()).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_the_document_and_no_other() {
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
            [FAULTS, REFUSED, POISON, PASSIVATED, COMPILED, STARVED]
        );
    }
}
