//! The configuration of tools for agents and of the MCP endpoint.

mod code;
mod limit;
mod mcp;
mod tools;

use std::path::Path;

pub(crate) use self::code::{CODE_LIMITS, CodeSection, ProgramsSection, set_code_limit};
pub(crate) use self::limit::{LimitSet, set_size as set_size_limit};
pub(crate) use self::mcp::{MCP_LIMITS, McpSection};
pub(crate) use self::tools::{FILE_LIMITS, FilesSection, ToolsSection};
use super::{Config, Problem};

/// Resolves the paths of tools relative to the directory of the configuration.
pub(super) fn resolve_paths(config: &mut Config, folder: &Path) {
    config.tools.resolve_paths(folder);
}

/// Returns the first problem of both sections that the types cannot rule out.
pub(super) fn problem(config: &Config) -> Option<Problem> {
    let mcp = config.mcp.problem(!config.doors.token.is_empty());
    mcp.or_else(|| config.tools.problem(config.components.instances))
}
