//! Tools for agents in a build without the feature `agents`: there are none.

use std::path::PathBuf;
use std::sync::OnceLock;

use strowger::ActorSystem;
use strowger_gateway::access::Token;
use strowger_gateway::health::HealthRegistry;
use strowger_gateway::http::HttpServer;
use strowger_gateway::method::Methods;

use super::components::Components;
use crate::config::Config;
use crate::config::agents::ToolsSection;
use crate::exit::CliResult;

/// The tools of a node: none.
#[derive(Clone, Debug)]
pub(crate) struct Tools;

/// The MCP endpoint, which is not open.
pub(super) struct McpServer;

/// The tools, set once they have started.
pub(super) type LateTools = OnceLock<Tools>;

/// The path of the control socket, set once it is open.
pub(super) type LateControlPath = OnceLock<PathBuf>;

impl Tools {
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        std::iter::empty()
    }
}

pub(super) const fn add_health(health: HealthRegistry, _: &LateTools) -> HealthRegistry {
    health
}

pub(super) async fn start(_: &ActorSystem, _: &Config, _: &Components) -> CliResult<Tools> {
    Ok(Tools)
}

pub(super) async fn open(
    _: &ActorSystem,
    _: &Config,
    _: &Tools,
    _: &LateControlPath,
) -> CliResult<McpServer> {
    Ok(McpServer)
}

pub(super) const fn register(methods: Methods, _: &Tools, _: &McpServer) -> Methods {
    methods
}

pub(super) const fn serve_http(_: &Config, _: &[Token], _: &McpServer, _: Option<&HttpServer>) {}

pub(crate) const fn check(_: &ToolsSection) -> CliResult<Vec<String>> {
    Ok(Vec::new())
}
