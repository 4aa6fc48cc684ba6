//! Doors for those who speak to actors: a unix socket, and TCP and WebSocket on the loopback.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strowger::{
    ActorSystem, ChildSpec, Dynamic, Restart, Shutdown, Strategy, Supervisor, SupervisorRef,
};

use crate::connection::{Connection, Terms};
use crate::control::with_control;
use crate::gateway::{Counter, OpenError};
use crate::limits::Limits;
use crate::listener::{Listener, ListenerArgs, Place};
use crate::method::Methods;
use crate::stranger::Known;
use crate::web::Origins;

/// Which doors are opened, and on which terms.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DoorsSpec {
    /// A unix socket, which its owner alone may use.
    pub socket: Option<PathBuf>,
    /// An address of the loopback, for frames over TCP; port 0 lets the system choose.
    pub tcp: Option<SocketAddr>,
    /// An address of the loopback, for frames over WebSocket; port 0 lets the system choose.
    pub web: Option<SocketAddr>,
    /// The origins of pages that may connect, such as `https://example.org`.
    pub origins: Vec<String>,
    /// What clients of addresses have to know.
    pub token: Option<Arc<str>>,
    /// What may be called beside the messages of exposed actors; the methods of control are added,
    /// of which `top` needs that there is a [`Gateway`](crate::Gateway).
    pub methods: Option<Methods>,
    /// What one client, and all together, may take.
    pub limits: Limits,
}

impl Default for DoorsSpec {
    /// No doors, and the limits of those who speak to actors: 1024 connections, each with 1024
    /// calls in flight and 1024 names.
    fn default() -> Self {
        Self {
            socket: None,
            tcp: None,
            web: None,
            origins: Vec::new(),
            token: None,
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

/// The open doors: the subtree `/doors`, with a child of `clients` for each connection.
///
/// What can be reached through them are the actors that were exposed, and nothing else; unless
/// methods were given as well.
///
/// ```
/// use strowger::ActorSystem;
/// use strowger_gateway::{Doors, DoorsSpec};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new("node")?;
/// let mut spec = DoorsSpec::default();
/// spec.tcp = Some("127.0.0.1:0".parse()?);
/// spec.token = Some("not told to anybody".into());
/// let doors = Doors::open(&system, spec).await?;
/// assert!(doors.tcp().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Doors {
    socket: Option<PathBuf>,
    tcp: Option<SocketAddr>,
    web: Option<SocketAddr>,
    supervisor: SupervisorRef,
}

/// The most doors that there are.
const DOORS: usize = 3;

/// The key of the actor below which the connections are.
const CLIENTS: &str = "clients";

impl Doors {
    /// Opens doors.
    ///
    /// # Errors
    /// When a place cannot be listened on, an address is not one of the loopback or has no token,
    /// or the system is shutting down.
    pub async fn open(system: &ActorSystem, spec: DoorsSpec) -> Result<Self, OpenError> {
        let limits = spec.limits;
        let clients = Dynamic::<Connection>::new()
            .max_children(limits.children(DOORS))
            .shutdown(Shutdown::Graceful(Duration::from_millis(200)));
        let mut supervisor =
            Supervisor::new(Strategy::RestForOne).child(ChildSpec::dynamic(CLIENTS, clients));
        let methods = spec.methods.map_or_else(Methods::new, with_control);
        let methods = Arc::new(methods);
        let mut places = Vec::new();
        if let Some(path) = &spec.socket {
            places.push(("socket", Place::Unix(path.clone()), None, None));
        }
        if let Some(address) = spec.tcp {
            let token = guarded(address, spec.token.as_ref())?;
            places.push(("tcp", Place::Tcp(address), Some(token), None));
        }
        if let Some(address) = spec.web {
            let token = guarded(address, spec.token.as_ref())?;
            let origins = Arc::new(Origins::new(spec.origins));
            places.push(("web", Place::Tcp(address), Some(token), Some(origins)));
        }
        let (counter, known) = (Counter::default(), Known::default());
        let (mut tcp, mut web) = (None, None);
        for (key, place, token, origins) in places {
            let bound = place.bind()?;
            let place = match (place, bound.address()) {
                // A new incarnation listens where the first did.
                (Place::Tcp(_), Some(address)) => {
                    *if origins.is_some() {
                        &mut web
                    } else {
                        &mut tcp
                    } = Some(address);
                    Place::Tcp(address)
                }
                (place, _) => place,
            };
            let terms = Terms {
                methods: Arc::clone(&methods),
                limits,
                token,
                known: known.clone(),
                origins,
            };
            let args = ListenerArgs::new(place, bound, terms, CLIENTS, Arc::clone(&counter));
            let child = ChildSpec::new::<Listener>(key, args).restart(Restart::Permanent);
            supervisor = supervisor.child(child);
        }
        let supervisor = system.supervise("doors", supervisor).await?;
        Ok(Self {
            socket: spec.socket,
            tcp,
            web,
            supervisor,
        })
    }

    /// Where the unix socket is, if there is one.
    #[must_use]
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Where frames are taken over TCP, if anywhere.
    #[must_use]
    pub const fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// Where WebSockets are taken, if anywhere.
    #[must_use]
    pub const fn web(&self) -> Option<SocketAddr> {
        self.web
    }

    /// Closes the doors: stops the subtree.
    pub async fn close(self) {
        self.supervisor.stop();
        self.supervisor.stopped().await;
    }
}

/// The token of an address, which has to be one of the loopback.
fn guarded(address: SocketAddr, token: Option<&Arc<str>>) -> Result<Arc<str>, OpenError> {
    if !address.ip().is_loopback() {
        return Err(OpenError::NotLoopback { address });
    }
    let token = token.filter(|token| !token.is_empty());
    token.cloned().ok_or(OpenError::NoToken { address })
}
