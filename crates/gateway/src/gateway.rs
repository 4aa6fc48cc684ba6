//! The subtree `/gateway`: the control listener and its connections.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{
    ActorSystem, ChildSpec, Dynamic, Restart, Shutdown, StartError, Strategy, Supervisor,
    SupervisorRef,
};

use crate::access::{Caller, TokenError};
use crate::connection::{Admission, Connection, EndpointSettings};
use crate::control::with_control_methods;
use crate::limits::Limits;
use crate::listener::{ListenAddress, Listener, ListenerArgs};
use crate::method::Methods;
use crate::snapshot::SnapshotTaker;
use crate::unauthenticated::AdmittedCount;

/// The error returned when an endpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process listens on the socket.
    #[error("socket {}: another process listens there", path.display())]
    Live {
        /// The path of the socket.
        path: PathBuf,
    },
    /// The path exists and is not a socket.
    #[error("socket {}: exists and is not a socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused to create the socket.
    #[error("socket {}: {source}", path.display())]
    Io {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The system refused to listen on an address.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The address is not a loopback address, and the connection would not be encrypted.
    #[error("{address} must be a loopback address, because traffic is not encrypted")]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// Every local user can reach the address, and no token is configured.
    #[error("{address} needs a token, because every user of this host can connect")]
    NoToken {
        /// The address.
        address: SocketAddr,
    },
    /// The tokens conflict with one another.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The actors did not start.
    #[error("gateway: {0}")]
    Start(#[from] StartError),
}

/// The control endpoint of a running system.
///
/// It is the subtree `/gateway`: `control` listens on a Unix socket that only its owner may use,
/// `connections` has a child for each client, and `reader` takes the snapshots for `top`. The
/// subtree ends with the system.
#[derive(Debug)]
pub struct Gateway {
    path: PathBuf,
    supervisor: SupervisorRef,
}

impl Gateway {
    /// Opens a control socket at `path` with mode 0600. Serves the control methods and `methods`.
    ///
    /// A stale socket left by a process that has ended is replaced; a live one is not.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be opened, another process listens on it, or the
    /// system is shutting down.
    pub async fn open(
        system: &ActorSystem,
        path: impl Into<PathBuf>,
        limits: Limits,
        methods: Methods,
    ) -> Result<Self, OpenError> {
        let path = path.into();
        let listen_address = ListenAddress::Unix(path.clone());
        let bound = listen_address.bind()?;
        let settings = EndpointSettings {
            methods: Arc::new(with_control_methods(methods)),
            limits,
            admission: Admission::Owner(Caller::owner(system, "control")),
            admitted_count: AdmittedCount::default(),
            origins: None,
        };
        let args = ListenerArgs {
            address: listen_address,
            bound: Arc::new(Mutex::new(Some(bound))),
            endpoint: settings,
            connections_key: "connections",
            counter: ConnectionCounter::default(),
        };
        let connections = Dynamic::<Connection>::new()
            .max_children(limits.children(1))
            .shutdown(Shutdown::Graceful(Duration::from_millis(200)));
        let supervisor = Supervisor::new(Strategy::RestForOne)
            .child(ChildSpec::dynamic("connections", connections))
            .child(ChildSpec::new::<Listener<_>>("control", args).restart(Restart::Permanent))
            .child(ChildSpec::new::<SnapshotTaker>("reader", ()));
        let supervisor = system.supervise("gateway", supervisor).await?;
        Ok(Self { path, supervisor })
    }

    /// Returns the path of the control socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the endpoint by stopping the subtree. Connections get 200 ms to end.
    pub async fn close(self) {
        self.supervisor.stop();
        self.supervisor.stopped().await;
    }
}

/// Number of connections so far, shared by all incarnations of the listener.
pub(crate) type ConnectionCounter = Arc<AtomicU64>;
