//! Tools for agents, and their endpoint: the tools of the node over the Model Context Protocol.

pub(crate) mod code;
mod sandbox;
pub(crate) mod tools;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use strowger::{ActorSystem, Fault};
use strowger_gateway::access::Token;
use strowger_gateway::http::HttpServer;
use strowger_gateway::mcp::{McpHttpSpec, McpServer};
use strowger_gateway::method::Methods;

pub(crate) use self::sandbox::Realms;
pub(super) use self::tools::{LateTools, add_health};
pub(crate) use self::tools::{Tools, check};
use super::components::Components;
use crate::agent::{self, Roots};
use crate::config::Config;
use crate::exit::{CliResult, Failure};

/// The path of the control socket, set once it is open; its methods are known before.
pub(super) type LateControlPath = Arc<OnceLock<PathBuf>>;

/// Starts the configured tools.
pub(super) async fn start(
    system: &ActorSystem,
    config: &Config,
    components: &Components,
) -> CliResult<Tools> {
    let realms = code::realms(components.host(), &config.tools).await?;
    tools::start(system, &config.tools, realms).await
}

/// Opens the endpoint. Views of the node are those of its control socket.
pub(super) async fn open(
    system: &ActorSystem,
    config: &Config,
    tools: &Tools,
    control: &LateControlPath,
) -> CliResult<McpServer> {
    let roots = Roots::of(tools).await.map_err(|fault| to_failure(&fault))?;
    let for_agents = agent::add_tools(agent::no_tools(), tools, &roots);
    let for_agents = agent::add_node(for_agents, control);
    // Added last, because code may be given the tools that are already there.
    let for_agents = agent::add_code(for_agents, system, tools);
    let opened = McpServer::open(system, for_agents, config.mcp.limits()).await;
    opened.map_err(|error| Failure::outside(format!("mcp: {error}")))
}

fn to_failure(fault: &Fault) -> Failure {
    Failure::outside(format!("mcp: {}", fault.message))
}

/// Adds the methods of the control socket for tools and their calls.
pub(super) fn register(methods: Methods, tools: &Tools, mcp: &McpServer) -> Methods {
    agent::register(tools::register(methods, tools), mcp)
}

/// Serves agents over HTTP, if configured. They send one of the tokens.
pub(super) fn serve_http(
    config: &Config,
    tokens: &[Token],
    mcp: &McpServer,
    http: Option<&HttpServer>,
) {
    // `endpoints::tokens` has checked that an HTTP endpoint is configured.
    if let Some(door) = http.filter(|_| config.mcp.http) {
        let agents = McpHttpSpec::new(mcp.clone(), tokens.to_vec());
        let agents = agents.with_origins(config.mcp.origins.clone());
        door.serve_mcp(agents.with_hosts(config.mcp.hosts.clone()));
    }
}
