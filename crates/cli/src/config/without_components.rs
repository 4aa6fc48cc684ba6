//! The configuration of components in a build without the feature `components`: its defaults.

use std::path::Path;

use serde::Deserialize;
use strowger_pfcp_node::PolicyKind;
use toml::Table;

use super::{Config, Problem, defaults};
use crate::missing::COMPONENTS;

/// The section `[components]`: its first key that is not the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Table")]
pub(crate) struct ComponentsSection(Option<String>);

/// A section `[[component]]`, which this program cannot start.
pub(crate) type ComponentSection = Table;

impl From<Table> for ComponentsSection {
    fn from(table: Table) -> Self {
        Self(defaults::changed_key("components", &table))
    }
}

pub(super) const fn resolve_paths(_: &mut Config, _: &Path) {}

pub(super) fn problem(config: &Config) -> Option<Problem> {
    let of_section = config.components.0.as_deref();
    let component = (!config.component.is_empty()).then_some("component");
    let policy = (config.n4.policy.kind == PolicyKind::Component).then_some("n4.policy.kind");
    let key = of_section.or(component).or(policy)?;
    Some(defaults::missing_feature(key, COMPONENTS))
}
