//! Components in a build without the feature `components`: there are none.

use std::sync::Arc;

use strowger::{ActorSystem, ChildSpec};
use strowger_gateway::health::HealthRegistry;
use strowger_gateway::method::Methods;
use strowger_pfcp_node::Policy;

use crate::config::Config;
use crate::exit::CliResult;

/// The components of a node: none.
#[derive(Clone, Debug)]
pub(crate) struct Components;

/// The components, set once they have started.
pub(super) type LateComponents = std::sync::OnceLock<Components>;

pub(super) const fn add_health(health: HealthRegistry, _: &LateComponents) -> HealthRegistry {
    health
}

pub(super) async fn start(_: &ActorSystem, _: &Config) -> CliResult<Components> {
    Ok(Components)
}

pub(super) const fn policy(_: &Config, _: &Components) -> CliResult<Option<Arc<dyn Policy>>> {
    Ok(None)
}

pub(super) const fn register(methods: Methods, _: &Components) -> Methods {
    methods
}

pub(super) const fn relays(_: &Config) -> Vec<ChildSpec> {
    Vec::new()
}

pub(crate) const fn check(_: &Config) -> CliResult<Vec<String>> {
    Ok(Vec::new())
}
