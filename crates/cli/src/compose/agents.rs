//! The door for agents: the tools of the node over the Model Context Protocol.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use strowger::{ActorSystem, Fault};
use strowger_gateway::{HttpDoor, Mcp, McpHttp};

use super::doors::token;
use super::tools::Tools;
use crate::agent::{self, Roots};
use crate::config::{Config, McpSection};
use crate::exit::{Done, Failure};

/// Where the control socket is, once it is open: what it answers is known before.
pub(super) type Control = Arc<OnceLock<PathBuf>>;

/// Opens the door. Views of the node are those of its control socket.
pub(super) async fn open(
    system: &ActorSystem,
    section: &McpSection,
    tools: &Tools,
    control: &Control,
) -> Done<Mcp> {
    let roots = Roots::of(tools).await.map_err(|fault| failed(&fault))?;
    let for_agents = agent::add_tools(agent::none(), tools, &roots);
    let for_agents = agent::add_node(for_agents, control);
    // Last: code may be given what is there.
    let for_agents = agent::add_code(for_agents, system, tools);
    let opened = Mcp::open(system, for_agents, section.limits()).await;
    opened.map_err(|error| Failure::outside(format!("mcp: {error}")))
}

fn failed(fault: &Fault) -> Failure {
    Failure::outside(format!("mcp: {}", fault.message))
}

/// Lets agents in over HTTP, if the configuration says so.
pub(super) fn offer(config: &Config, mcp: &Mcp, http: Option<&HttpDoor>) -> Done {
    let section = &config.mcp;
    if !section.http {
        return Ok(());
    }
    let wrong = |text: &str| Err(Failure::input(format!("`mcp.http`: {text}")));
    let (Some(door), Some(file)) = (http, &section.token_file) else {
        return wrong("needs `metrics.listen` or --metrics, and `mcp.token_file`");
    };
    if !door.address().ip().is_loopback() {
        return wrong(
            "what passes there is not encrypted: `metrics.listen` must be on the loopback",
        );
    }
    let agents = McpHttp::new(mcp.clone(), token(file)?).with_origins(section.origins.clone());
    door.offer(agents);
    Ok(())
}
