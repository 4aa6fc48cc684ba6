//! Composition of a node from actors, components, tools, PFCP, endpoints and metrics. This is the
//! only place where their crates meet.

#[cfg(feature = "agents")]
pub(crate) mod agents;
#[cfg(not(feature = "agents"))]
#[path = "compose/without_agents.rs"]
pub(crate) mod agents;
#[cfg(feature = "components")]
pub(crate) mod components;
#[cfg(not(feature = "components"))]
#[path = "compose/without_components.rs"]
pub(crate) mod components;
pub(crate) mod endpoints;
mod health;
mod logs;
mod n4;
mod topics;
pub(crate) mod verbs;

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};
use strowger::{ActorSystem, ShutdownReport};
use strowger_gateway::health::HealthRegistry;
use strowger_gateway::http::HttpServer;
use strowger_gateway::listeners::Listeners;
use strowger_gateway::method::Methods;
use strowger_gateway::metrics::MetricsRecorder;
use strowger_gateway::{Gateway, OpenError};
use strowger_pfcp_node::{Node, NodeError, NodeHandle, NodeParts, StoreError};

use crate::config::Config;
use crate::control;
use crate::exit::{CliResult, Failure};

use self::agents::Tools;
use self::components::Components;
use self::endpoints::EndpointTokens;
use self::health::LateNode;
pub(crate) use self::n4::{elements, elements_as_text, stats as n4_stats};

/// A running node.
#[derive(Debug)]
pub(crate) struct RunningNode {
    /// The addresses on which the node listens for PFCP.
    pub(crate) n4: Vec<SocketAddr>,
    /// The path of the control socket.
    pub(crate) control: PathBuf,
    /// The endpoints for clients of actors, if any.
    pub(crate) endpoints: Option<Listeners>,
    /// The HTTP address for monitoring, if any.
    pub(crate) http: Option<SocketAddr>,
    pub(crate) system: ActorSystem,
    pub(crate) node: NodeHandle,
    pub(crate) components: Components,
    pub(crate) tools: Tools,
    shutdown: std::time::Duration,
}

/// Starts a node: the actor system, the HTTP endpoint if configured, components, tools, the N4
/// endpoint, and the control socket with its methods.
///
/// If any of them fails, nothing is left running.
pub(crate) async fn start(config: &Config) -> CliResult<RunningNode> {
    let tokens = endpoints::tokens(config)?;
    // Installed before the system, which describes its metrics and counts its first actors.
    let recorder = config.metrics.listen.map(|_| MetricsRecorder::install());
    let recorder = recorder.transpose();
    let recorder = recorder.map_err(|error| Failure::outside(format!("metrics: {error}")))?;
    let system = ActorSystem::new(config.node.name.as_str())
        .map_err(|error| Failure::outside(error.to_string()))?;
    let started = start_in(&system, config, &tokens, recorder).await;
    if started.is_err() {
        system.shutdown(config.node.shutdown).await;
    }
    started
}

async fn start_in(
    system: &ActorSystem,
    config: &Config,
    tokens: &EndpointTokens,
    recorder: Option<MetricsRecorder>,
) -> CliResult<RunningNode> {
    let (later, later_components) = (LateNode::default(), components::LateComponents::default());
    let later_tools = agents::LateTools::default();
    let health = components::add_health(health::node_health(config, &later), &later_components);
    let health = agents::add_health(health, &later_tools);
    // Opened before the node, so that it can report that the node is not ready, and closed last.
    let http = match recorder {
        Some(recorder) => open_http(system, config, tokens, recorder, &health).await?,
        None => None,
    };
    let components = components::start(system, config).await?;
    // Nothing else sets it.
    let _ = later_components.set(components.clone());
    let tools = agents::start(system, config, &components).await?;
    // Nothing else sets it.
    let _ = later_tools.set(tools.clone());
    let mut parts = NodeParts::default();
    parts.policy = components::policy(config, &components)?;
    let node = Node::start_with(system, config.n4.clone(), parts).await;
    let node = node.map_err(|error| node_failure(&error))?;
    // Nothing else sets it.
    let _ = later.set(node.clone());
    let methods = logs::register(Methods::new().with_health(health));
    let methods = n4::register(methods, &node);
    let methods = components::register(methods, &components);
    let control = agents::LateControlPath::default();
    let mcp = agents::open(system, config, &tools, &control).await?;
    let methods = agents::register(methods, &tools, &mcp);
    let gateway = open_control(system, config, methods.clone()).await?;
    // Nothing else sets it.
    let _ = control.set(gateway.path().to_owned());
    agents::serve_http(config, &tokens.agents, &mcp, http.as_ref());
    let relayed = topics::relay(system, components::relays(config)).await;
    relayed.map_err(|error| Failure::outside(error.to_string()))?;
    let endpoints = endpoints::open(system, &config.gateway, tokens, methods).await?;
    Ok(RunningNode {
        n4: node.local_addrs(),
        control: gateway.path().to_owned(),
        endpoints,
        http: http.as_ref().map(HttpServer::address),
        system: system.clone(),
        node,
        components,
        tools,
        shutdown: config.node.shutdown,
    })
}

/// Opens the HTTP endpoint, if an address is configured.
async fn open_http(
    system: &ActorSystem,
    config: &Config,
    tokens: &EndpointTokens,
    recorder: MetricsRecorder,
    health: &HealthRegistry,
) -> CliResult<Option<HttpServer>> {
    let Some(address) = config.metrics.listen else {
        return Ok(None);
    };
    let limits = config.metrics.limits(config.mcp.http_connections());
    let open = |address| {
        let (recorder, health) = (recorder.clone(), health.clone());
        async move {
            match config.metrics.tokens {
                false => HttpServer::open(system, address, limits, recorder, health).await,
                true => {
                    let tokens = &tokens.shared;
                    HttpServer::open_with_tokens(system, address, limits, recorder, health, tokens)
                        .await
                }
            }
        }
    };
    let opened = match open(address).await {
        Err(OpenError::Bind { source, .. })
            if config.metrics.any_port && source.kind() == std::io::ErrorKind::AddrInUse =>
        {
            open(SocketAddr::new(address.ip(), 0)).await
        }
        opened => opened,
    };
    let door = opened.map_err(|error| {
        Failure::outside(format!("HTTP endpoint: {error}"))
            .hint("choose another address: --metrics ADDR")
    })?;
    Ok(Some(door))
}

/// Opens the control socket, at a path of its own if another node uses the default one.
async fn open_control(
    system: &ActorSystem,
    config: &Config,
    methods: Methods,
) -> CliResult<Gateway> {
    let limits = config.control.limits();
    let failed = |error: OpenError| {
        let live = matches!(error, OpenError::Live { .. });
        let failure = Failure::outside(error.to_string());
        match live {
            true => failure
                .hint("stop that node, or choose another socket for this one: --control SOCKET"),
            false => failure,
        }
    };
    if let Some(path) = &config.control.socket {
        let opened = Gateway::open(system, path, limits, methods).await;
        return opened.map_err(failed);
    }
    let default = control::default_socket()?;
    match Gateway::open(system, &default, limits, methods.clone()).await {
        Err(OpenError::Live { .. }) => {
            let own = control::process_socket(&default);
            tracing::info!(path = %own.display(), "default control socket in use");
            let opened = Gateway::open(system, own, limits, methods).await;
            opened.map_err(failed)
        }
        opened => opened.map_err(failed),
    }
}

fn node_failure(error: &NodeError) -> Failure {
    let text = error.to_string();
    match error {
        NodeError::Config(_) | NodeError::NodeId(_) => {
            Failure::input(text).hint("`strowger init -` prints a commented configuration")
        }
        NodeError::Bind(bind) if bind.source.kind() == std::io::ErrorKind::AddrInUse => {
            let taken = format!("cannot listen on {}: the port is in use", bind.address);
            Failure::outside(taken)
                .hint("stop the process that uses it, or pick a free port with --port 0")
        }
        NodeError::Store(StoreError::Locked { .. }) => {
            Failure::outside(text).hint("stop that process, or set another directory: `store.path`")
        }
        NodeError::Store(StoreError::NotAStore { .. }) => {
            Failure::input(text).hint("set `store.path` to an empty or new directory")
        }
        _ => Failure::outside(text),
    }
}

impl RunningNode {
    /// Returns the addresses and the control socket, which scripts read first.
    pub(crate) fn announcement(&self) -> Value {
        json!({
            "n4": self.n4.first().map(ToString::to_string),
            "control": self.control.display().to_string(),
            "gateway": self.endpoints.as_ref().and_then(Listeners::socket_path),
            "tcp": self.endpoints.as_ref().and_then(Listeners::tcp_address),
            "web": self.endpoints.as_ref().and_then(Listeners::websocket_address),
            "http": self.http.map(|address| address.to_string()),
            "tools": self.tools.addresses().collect::<Vec<_>>(),
        })
    }

    /// Stops everything in order, within the configured time.
    pub(crate) async fn shutdown(&self) -> ShutdownReport {
        self.system.shutdown(self.shutdown).await
    }
}
