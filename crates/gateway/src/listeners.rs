//! Endpoints for clients that talk to actors: a Unix socket, and TCP and WebSocket on loopback
//! addresses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{
    ActorSystem, ChildSpec, Dynamic, Restart, Shutdown, Strategy, Supervisor, SupervisorRef,
};

use crate::access::{AuditLog, Caller, Callers, Token};
use crate::connection::{Admission, Connection, EndpointSettings};
use crate::control::with_control_methods;
use crate::gateway::{ConnectionCounter, OpenError};
use crate::limits::Limits;
use crate::listener::{ListenAddress, Listener, ListenerArgs};
use crate::method::Methods;
use crate::unauthenticated::AdmittedCount;
use crate::websocket::Origins;

/// The endpoints to open, and their settings.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListenersSpec {
    /// The path of a Unix socket, which only its owner may use.
    pub socket: Option<PathBuf>,
    /// A loopback address for frames over TCP; port 0 lets the system choose.
    pub tcp: Option<SocketAddr>,
    /// A loopback address for frames over WebSocket; port 0 lets the system choose.
    pub websocket: Option<SocketAddr>,
    /// The origins of web pages that may connect, such as `https://example.org`.
    pub origins: Vec<String>,
    /// The tokens for clients of the TCP and WebSocket addresses, with the role and limits of each.
    pub tokens: Vec<Token>,
    /// Methods to serve beside the messages of exported actors. The control methods are added to
    /// them, of which `top` needs a [`Gateway`](crate::Gateway).
    pub methods: Option<Methods>,
    /// Limits for each client, and for all clients together.
    pub limits: Limits,
}

impl Default for ListenersSpec {
    /// No endpoints, and limits for clients that talk to actors: 1024 connections, each with 1024
    /// calls in flight and 1024 names.
    fn default() -> Self {
        Self {
            socket: None,
            tcp: None,
            websocket: None,
            origins: Vec::new(),
            tokens: Vec::new(),
            methods: None,
            limits: Limits {
                connections: 1024,
                in_flight: 1024,
                names: 1024,
                ..Limits::default()
            },
        }
    }
}

/// The open endpoints: the subtree `/doors`, with a child of `clients` for each connection.
///
/// They give access only to exported actors, unless methods were configured as well.
///
/// ```
/// use strowger::ActorSystem;
/// use strowger_gateway::access::{Role, Token};
/// use strowger_gateway::listeners::{Listeners, ListenersSpec};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new("node")?;
/// let mut spec = ListenersSpec::default();
/// spec.tcp = Some("127.0.0.1:0".parse()?);
/// spec.tokens = vec![Token::new("console", Role::Viewer, "a secret of the console")];
/// let listeners = Listeners::open(&system, spec).await?;
/// assert!(listeners.tcp_address().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Listeners {
    socket: Option<PathBuf>,
    tcp: Option<SocketAddr>,
    websocket: Option<SocketAddr>,
    supervisor: SupervisorRef,
}

/// Maximum number of endpoints.
const MAX_ENDPOINTS: usize = 3;

/// The key of the supervisor of the connections.
const CLIENTS: &str = "clients";

/// The names of the endpoints, in audit records and as keys of their listeners.
const SOCKET: &str = "socket";
const TCP: &str = "tcp";
const WEB: &str = "web";

impl Listeners {
    /// Opens the endpoints.
    ///
    /// # Errors
    /// Returns an error if an endpoint cannot be opened, an address is not a loopback address or
    /// has no token, the tokens conflict, or the system is shutting down.
    pub async fn open(system: &ActorSystem, spec: ListenersSpec) -> Result<Self, OpenError> {
        let limits = spec.limits;
        let clients = Dynamic::<Connection>::new()
            .max_children(limits.children(MAX_ENDPOINTS))
            .shutdown(Shutdown::Graceful(Duration::from_millis(200)));
        let mut supervisor =
            Supervisor::new(Strategy::RestForOne).child(ChildSpec::dynamic(CLIENTS, clients));
        let methods = spec.methods.map_or_else(Methods::new, with_control_methods);
        let methods = Arc::new(methods);
        Token::check(&spec.tokens)?;
        let mut endpoints = Vec::new();
        if let Some(path) = &spec.socket {
            let owner = Admission::Owner(Caller::owner(system, SOCKET));
            endpoints.push((SOCKET, ListenAddress::Unix(path.clone()), owner, None));
        }
        let audit = AuditLog::new(system);
        let admit_tokens = |address: SocketAddr, endpoint| {
            check_address(address, &spec.tokens)?;
            let callers = Callers::new(&spec.tokens, endpoint, &audit);
            Ok::<_, OpenError>(Admission::Tokens(Arc::new(callers)))
        };
        if let Some(address) = spec.tcp {
            let admission = admit_tokens(address, TCP)?;
            endpoints.push((TCP, ListenAddress::Tcp(address), admission, None));
        }
        if let Some(address) = spec.websocket {
            let admission = admit_tokens(address, WEB)?;
            let origins = Arc::new(Origins::new(spec.origins));
            endpoints.push((WEB, ListenAddress::Tcp(address), admission, Some(origins)));
        }
        let (counter, admitted_count) = (ConnectionCounter::default(), AdmittedCount::default());
        let (mut tcp, mut websocket) = (None, None);
        for (key, address, admission, origins) in endpoints {
            let bound = address.bind()?;
            match key {
                TCP => tcp = bound.socket_address(),
                WEB => websocket = bound.socket_address(),
                _ => {}
            }
            let args = ListenerArgs {
                address,
                bound: Arc::new(Mutex::new(Some(bound))),
                endpoint: EndpointSettings {
                    methods: Arc::clone(&methods),
                    limits,
                    admission,
                    admitted_count: admitted_count.clone(),
                    origins,
                },
                connections_key: CLIENTS,
                counter: Arc::clone(&counter),
            };
            let child = ChildSpec::new::<Listener<_>>(key, args).restart(Restart::Permanent);
            supervisor = supervisor.child(child);
        }
        let supervisor = system.supervise("doors", supervisor).await?;
        Ok(Self {
            socket: spec.socket,
            tcp,
            websocket,
            supervisor,
        })
    }

    /// Returns the path of the Unix socket, if any.
    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Returns the address for frames over TCP, if any.
    #[must_use]
    pub const fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// Returns the address for WebSocket connections, if any.
    #[must_use]
    pub const fn websocket_address(&self) -> Option<SocketAddr> {
        self.websocket
    }

    /// Closes the endpoints by stopping the subtree. Connections get 200 ms to end.
    pub async fn close(self) {
        self.supervisor.stop();
        self.supervisor.stopped().await;
    }
}

/// Checks that an address is a loopback address and that there are tokens.
fn check_address(address: SocketAddr, tokens: &[Token]) -> Result<(), OpenError> {
    if !address.ip().is_loopback() {
        return Err(OpenError::NotLoopback { address });
    }
    match tokens {
        [] => Err(OpenError::NoToken { address }),
        _ => Ok(()),
    }
}
