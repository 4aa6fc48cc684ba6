//! The configuration of tools for agents in a build without the feature `agents`: its defaults.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::{Config, Problem, defaults};
use crate::missing::AGENTS;

/// The section `[tools]`: its first key that is not the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Table")]
pub(crate) struct ToolsSection(Option<String>);

/// The section `[mcp]`: its first key that is not the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Table")]
pub(crate) struct McpSection(Option<String>);

impl From<Table> for ToolsSection {
    fn from(table: Table) -> Self {
        Self(defaults::changed_key("tools", &table))
    }
}

impl From<Table> for McpSection {
    fn from(table: Table) -> Self {
        Self(defaults::changed_key("mcp", &table))
    }
}

#[cfg(feature = "components")]
impl ToolsSection {
    /// Returns `false`: no tool runs code.
    pub(crate) const fn runs_code(&self) -> bool {
        false
    }
}

impl McpSection {
    pub(crate) const fn serves_http(&self) -> bool {
        false
    }

    pub(crate) const fn http_token_file(&self) -> Option<&Path> {
        None
    }

    pub(crate) const fn http_connections(&self) -> usize {
        0
    }
}

pub(super) const fn resolve_paths(_: &mut Config, _: &Path) {}

pub(super) fn problem(config: &Config) -> Option<Problem> {
    let key = config.tools.0.as_ref().or(config.mcp.0.as_ref())?;
    Some(defaults::missing_feature(key, AGENTS))
}
