//! The endpoint for agents: the tools of the node over the Model Context Protocol.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use strowger::{ActorSystem, Fault};
use strowger_gateway::http::HttpServer;
use strowger_gateway::mcp::{McpHttpSpec, McpServer};

use super::endpoints::EndpointTokens;
use super::tools::Tools;
use crate::agent::{self, Roots};
use crate::config::{Config, McpSection};
use crate::exit::{CliResult, Failure};

/// The path of the control socket, set once it is open; its methods are known before.
pub(super) type LateControlPath = Arc<OnceLock<PathBuf>>;

/// Opens the endpoint. Views of the node are those of its control socket.
pub(super) async fn open(
    system: &ActorSystem,
    section: &McpSection,
    tools: &Tools,
    control: &LateControlPath,
) -> CliResult<McpServer> {
    let roots = Roots::of(tools).await.map_err(|fault| to_failure(&fault))?;
    let for_agents = agent::add_tools(agent::no_tools(), tools, &roots);
    let for_agents = agent::add_node(for_agents, control);
    // Added last, because code may be given the tools that are already there.
    let for_agents = agent::add_code(for_agents, system, tools);
    let opened = McpServer::open(system, for_agents, section.limits()).await;
    opened.map_err(|error| Failure::outside(format!("mcp: {error}")))
}

fn to_failure(fault: &Fault) -> Failure {
    Failure::outside(format!("mcp: {}", fault.message))
}

/// Serves agents over HTTP, if configured.
pub(super) fn serve_http(
    config: &Config,
    tokens: &EndpointTokens,
    mcp: &McpServer,
    http: Option<&HttpServer>,
) {
    // `endpoints::tokens` has checked that an HTTP endpoint is configured.
    if let Some(door) = http.filter(|_| config.mcp.http) {
        let agents = McpHttpSpec::new(mcp.clone(), tokens.agents.clone());
        let agents = agents.with_origins(config.mcp.origins.clone());
        door.serve_mcp(agents.with_hosts(config.mcp.hosts.clone()));
    }
}
