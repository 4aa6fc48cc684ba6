//! The endpoint for agents: the tools of the node over the Model Context Protocol.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use strowger::{ActorSystem, Fault};
use strowger_gateway::{HttpDoor, Mcp, McpHttp};

use super::endpoints::EndpointTokens;
use super::tools::Tools;
use crate::agent::{self, Roots};
use crate::config::{Config, McpSection};
use crate::exit::{CliResult, Failure};

/// The path of the control socket, set once it is open; its methods are known before.
pub(super) type Control = Arc<OnceLock<PathBuf>>;

/// Opens the endpoint. Views of the node are those of its control socket.
pub(super) async fn open(
    system: &ActorSystem,
    section: &McpSection,
    tools: &Tools,
    control: &Control,
) -> CliResult<Mcp> {
    let roots = Roots::of(tools).await.map_err(|fault| failed(&fault))?;
    let for_agents = agent::add_tools(agent::none(), tools, &roots);
    let for_agents = agent::add_node(for_agents, control);
    // Added last, because code may be given the tools that are already there.
    let for_agents = agent::add_code(for_agents, system, tools);
    let opened = Mcp::open(system, for_agents, section.limits()).await;
    opened.map_err(|error| Failure::outside(format!("mcp: {error}")))
}

fn failed(fault: &Fault) -> Failure {
    Failure::outside(format!("mcp: {}", fault.message))
}

/// Serves agents over HTTP, if configured.
pub(super) fn offer(config: &Config, tokens: &EndpointTokens, mcp: &Mcp, http: Option<&HttpDoor>) {
    // `endpoints::tokens` has checked that an HTTP endpoint is configured.
    if let Some(door) = http.filter(|_| config.mcp.http) {
        let agents = McpHttp::new(mcp.clone(), tokens.agents.clone());
        let agents = agents.with_origins(config.mcp.origins.clone());
        door.offer(agents.with_hosts(config.mcp.hosts.clone()));
    }
}
