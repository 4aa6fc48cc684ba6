//! The memory that all components need at the same time, checked against what the machine has.

use strowger_wasm::Host;
use strowger_wasm::host::ReserveError;

use crate::config::Config;
use crate::config::component::ComponentsSection;
use crate::exit::{CliResult, Failure};

/// Reserves room for all instances if the configuration has components or sets their number. A node
/// that starts can therefore load components later, whichever engine they need.
pub(super) fn reserve(host: &Host, config: &Config) -> CliResult {
    let default = ComponentsSection::default().instances;
    if config.component.is_empty() && config.components.instances == default {
        return Ok(());
    }
    let reserved = match config.tools.runs_code() {
        true => host.reserve_with_scripts(),
        false => host.reserve(),
    };
    reserved.map_err(|error| refused(&error))
}

fn refused(error: &ReserveError) -> Failure {
    let failure = Failure::outside(format!("components.instances: {error}"));
    match error {
        ReserveError::Address {
            max_instances: 0, ..
        } => failure.hint(
            "raise the limit of address space (`ulimit -v`, LimitAS= of systemd), or run without \
             components",
        ),
        ReserveError::Address { max_instances, .. } => failure.hint(format!(
            "set `components.instances = {max_instances}`, or raise the limit of address space \
             (`ulimit -v`, LimitAS= of systemd)"
        )),
        ReserveError::Maps {
            max_instances,
            requested,
            ..
        } => failure.hint(format!(
            "set `components.instances = {max_instances}`, or raise the limit of mappings: \
             `sysctl vm.max_map_count={}`, of which components may use four fifths",
            requested.saturating_mul(5).div_ceil(4)
        )),
        _ => failure,
    }
}
