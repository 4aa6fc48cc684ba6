//! The HTTP endpoint for monitoring: `/metrics`, `/healthz` and `/readyz`.
//!
//! Input is untrusted. A connection is an actor that hyper serves from the first byte. Until it
//! shows a token, its requests have heads of bounded length and bodies that are not read, and they
//! are bounded in number and by a single time limit for all of them. At the maximum number of
//! connections, the connection that has been silent for longest is closed, and one that has its
//! response.
//!
//! The path `/mcp` serves agents once MCP was [enabled](HttpServer::serve_mcp). Their requests have
//! bodies, and their connections may stay open: from the first head with a token on, a connection
//! is counted separately and serves any number of requests.
//!
//! ```text
//! socket ──▶ stream ──▶ hyper ──▶ client ──▶ page ────▶ response
//!                                      └───▶ /mcp ───▶ response
//! ```
//!
//! hyper answers a request that it cannot parse with only a status. The stream suppresses that
//! response, and the client gets an explanation with a remedy instead.

pub(crate) mod bearer;
mod client;
mod client_stream;
mod connection;
mod page;
pub(crate) mod response;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::StatusCode;
use metrics::{counter, describe_counter};
use parking_lot::Mutex;
use strowger::{
    ActorSystem, ChildSpec, Dynamic, Restart, Shutdown, Strategy, Supervisor, SupervisorRef,
};

use self::connection::{HttpConnection, HttpConnectionArgs};
use crate::access::{AuditLog, Callers, Token};
use crate::connection::ByteStream;
use crate::gateway::{ConnectionCounter, OpenError};
use crate::health::HealthRegistry;
use crate::listener::{Endpoint, ListenAddress, Listener, ListenerArgs};
use crate::mcp::McpHttpService;
#[cfg(feature = "mcp")]
use crate::mcp::McpHttpSpec;
use crate::metrics::MetricsRecorder;
use crate::snapshot::SnapshotTaker;
use crate::unauthenticated::{self, UnauthenticatedSlot};

/// Limits for HTTP clients, for each one and for all together.
///
/// ```
/// let mut limits = strowger_gateway::http::HttpLimits::default();
/// limits.connections = 4;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Maximum number of connections without a token: monitoring clients, and new clients. Beyond
    /// it each client still has a moment to send its request; it is disconnected once it has its
    /// response, or when it has been silent for longest.
    pub connections: usize,
    /// Maximum length of the request line and all headers, in bytes.
    pub head: usize,
    /// Maximum duration of a connection, from its start until the client has read its responses. In
    /// its first half the client may send further requests.
    pub time: Duration,
    /// Maximum number of connections of agents with a token, in addition; these may stay open.
    pub agents: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 32,
            head: 8192,
            time: Duration::from_secs(5),
            agents: 256,
        }
    }
}

/// The open HTTP endpoint: the subtree `/watch`.
///
/// An endpoint that is opened before the rest of a node ends after it, and answers 503 on `/readyz`
/// while the rest is shutting down.
///
/// ```
/// use strowger::ActorSystem;
/// use strowger_gateway::health::HealthRegistry;
/// use strowger_gateway::http::{HttpLimits, HttpServer};
/// use strowger_gateway::metrics::MetricsRecorder;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new("node")?;
/// let recorder = MetricsRecorder::install()?;
/// let any_port = "127.0.0.1:0".parse()?;
/// let limits = HttpLimits::default();
/// let health = HealthRegistry::new();
/// let server = HttpServer::open(&system, any_port, limits, recorder, health).await?;
/// println!("http://{}/metrics", server.address());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    #[cfg_attr(
        not(feature = "mcp"),
        expect(dead_code, reason = "only `serve_mcp` reads it")
    )]
    state: Arc<HttpState>,
    supervisor: SupervisorRef,
}

impl HttpServer {
    /// Opens the endpoint at an address; port 0 lets the system choose.
    ///
    /// # Errors
    /// Returns an error if the address cannot be listened on, or the system is shutting down.
    pub async fn open(
        system: &ActorSystem,
        address: SocketAddr,
        limits: HttpLimits,
        recorder: MetricsRecorder,
        health: HealthRegistry,
    ) -> Result<Self, OpenError> {
        Self::begin(system, address, (limits, recorder, health), None).await
    }

    /// Opens the endpoint at an address, and requires a token whose role may read metrics for
    /// the page of metrics, as `Authorization: Bearer TOKEN`. Health needs no token.
    ///
    /// # Errors
    /// Returns the errors of [`HttpServer::open`], and an error if the tokens conflict.
    pub async fn open_with_tokens(
        system: &ActorSystem,
        address: SocketAddr,
        limits: HttpLimits,
        recorder: MetricsRecorder,
        health: HealthRegistry,
        tokens: &[Token],
    ) -> Result<Self, OpenError> {
        Token::check(tokens)?;
        let callers = Callers::new(tokens, "http", &AuditLog::new(system));
        Self::begin(system, address, (limits, recorder, health), Some(callers)).await
    }

    async fn begin(
        system: &ActorSystem,
        address: SocketAddr,
        (limits, recorder, health): (HttpLimits, MetricsRecorder, HealthRegistry),
        metrics_readers: Option<Callers>,
    ) -> Result<Self, OpenError> {
        let listen_address = ListenAddress::Tcp(address);
        let bound = listen_address.bind()?;
        let address = bound.socket_address().unwrap_or(address);
        metrics::with_local_recorder(&recorder, || {
            describe_counter!(RESPONSES, "HTTP requests answered, by status.");
            describe_counter!(
                EVICTED,
                "Idle HTTP clients disconnected because the connection limit was reached."
            );
            counter!(EVICTED).increment(0);
            for status in STATUSES {
                counter!(RESPONSES, "status" => status.as_str().to_owned()).increment(0);
            }
        });
        let state = Arc::new(HttpState {
            limits,
            recorder,
            health,
            agents: OnceLock::new(),
            metrics_readers,
        });
        let args = ListenerArgs {
            address: listen_address,
            bound: Arc::new(Mutex::new(Some(bound))),
            endpoint: Arc::clone(&state),
            connections_key: "connections",
            counter: ConnectionCounter::default(),
        };
        let connections = Dynamic::<HttpConnection>::new()
            // Connections that were told to close end a moment later.
            .max_children(
                limits
                    .connections
                    .saturating_add(unauthenticated::BURST)
                    .saturating_mul(2)
                    .saturating_add(limits.agents),
            )
            .shutdown(Shutdown::Graceful(Duration::from_millis(200)));
        let supervisor = Supervisor::new(Strategy::RestForOne)
            .child(ChildSpec::dynamic("connections", connections))
            .child(ChildSpec::new::<Listener<_>>("http", args).restart(Restart::Permanent))
            .child(ChildSpec::new::<SnapshotTaker>("reader", ()));
        let supervisor = system.supervise("watch", supervisor).await?;
        Ok(Self {
            address,
            state,
            supervisor,
        })
    }

    /// Serves agents at `/mcp` from now on. Only the first call has an effect.
    #[cfg(feature = "mcp")]
    pub fn serve_mcp(&self, agents: McpHttpSpec) {
        self.state
            .agents
            .get_or_init(|| Arc::new(McpHttpService::new(agents, self.address.ip())));
    }

    /// Returns the address of the endpoint.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the endpoint by stopping the subtree. Connections get 200 ms to end.
    pub async fn close(self) {
        self.supervisor.stop();
        self.supervisor.stopped().await;
    }
}

/// The path at which agents are served.
pub(crate) const MCP_PATH: &str = "/mcp";

/// The path of the actor that takes snapshots.
const SNAPSHOT_TAKER: &str = "/watch/reader";

/// The state that all connections share.
pub(crate) struct HttpState {
    limits: HttpLimits,
    recorder: MetricsRecorder,
    health: HealthRegistry,
    agents: OnceLock<Arc<McpHttpService>>,
    /// The callers that may read metrics; `None` if no token is needed.
    metrics_readers: Option<Callers>,
}

const RESPONSES: &str = "strowger_http_responses_total";
const EVICTED: &str = "strowger_http_evicted_total";

/// The statuses of this endpoint and of MCP, which are counted from zero.
const STATUSES: [StatusCode; 16] = [
    StatusCode::OK,
    StatusCode::ACCEPTED,
    StatusCode::NO_CONTENT,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::CONFLICT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

impl HttpState {
    fn count_response(&self, status: StatusCode) {
        metrics::with_local_recorder(&self.recorder, || {
            counter!(RESPONSES, "status" => status.as_str().to_owned()).increment(1);
        });
    }

    fn count_turned_away(&self) {
        metrics::with_local_recorder(&self.recorder, || counter!(EVICTED).increment(1));
    }
}

impl fmt::Debug for HttpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpState").finish_non_exhaustive()
    }
}

impl Endpoint for Arc<HttpState> {
    type Connection = HttpConnection;

    fn max_unauthenticated(&self) -> usize {
        self.limits.connections
    }

    async fn admit(
        &self,
        stream: Box<dyn ByteStream>,
        slot: UnauthenticatedSlot,
    ) -> Option<HttpConnectionArgs> {
        Some(HttpConnectionArgs {
            client: Arc::new(Mutex::new(Some((stream, slot)))),
            state: Self::clone(self),
        })
    }
}
