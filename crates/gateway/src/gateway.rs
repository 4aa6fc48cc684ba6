//! The doors on the tree: `/gateway`, its listener and its connections.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use strowger::{
    ActorSystem, ChildSpec, Dynamic, Restart, Shutdown, StartError, Strategy, Supervisor,
    SupervisorRef,
};

use crate::connection::{Connection, Terms};
use crate::control::with_control;
use crate::limits::Limits;
use crate::listener::{Listener, ListenerArgs, Place};
use crate::method::Methods;
use crate::reader::Reader;
use crate::stranger::Known;

/// Why a door is not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process answers there.
    #[error("socket {}: another process listens there", path.display())]
    Live {
        /// The socket.
        path: PathBuf,
    },
    /// Something else has the name.
    #[error("socket {}: exists and is not a socket", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("socket {}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system refuses an address.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The address can be reached from elsewhere, and what passes is not encrypted.
    #[error("{address} is not an address of the loopback, and what passes there is not encrypted")]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// Everybody on this machine can reach the address, and there is no token.
    #[error("{address} needs a token: everybody on this machine can reach it")]
    NoToken {
        /// The address.
        address: SocketAddr,
    },
    /// The actors did not start.
    #[error("gateway: {0}")]
    Start(#[from] StartError),
}

/// The doors of a running system.
///
/// They are the subtree `/gateway`: `control` listens on a unix socket that only its owner may
/// use, `connections` has a child for each client, and `reader` reads the system for `top`. They
/// end with the system.
#[derive(Debug)]
pub struct Gateway {
    path: PathBuf,
    supervisor: SupervisorRef,
}

impl Gateway {
    /// Opens a control socket at `path` with mode 0600, with the methods of control and these.
    ///
    /// A socket that an ended process left is replaced; one that answers is not.
    ///
    /// # Errors
    /// When the socket cannot be opened, or the system is shutting down.
    pub async fn open(
        system: &ActorSystem,
        path: impl Into<PathBuf>,
        limits: Limits,
        methods: Methods,
    ) -> Result<Self, OpenError> {
        let path = path.into();
        let place = Place::Unix(path.clone());
        let first = place.bind()?;
        let terms = Terms {
            methods: Arc::new(with_control(methods)),
            limits,
            token: None,
            known: Known::default(),
            origins: None,
        };
        let args = ListenerArgs::new(place, first, terms, "connections", Counter::default());
        let connections = Dynamic::<Connection>::new()
            .max_children(limits.children(1))
            .shutdown(Shutdown::Graceful(Duration::from_millis(200)));
        let supervisor = Supervisor::new(Strategy::RestForOne)
            .child(ChildSpec::dynamic("connections", connections))
            .child(ChildSpec::new::<Listener>("control", args).restart(Restart::Permanent))
            .child(ChildSpec::new::<Reader>("reader", ()));
        let supervisor = system.supervise("gateway", supervisor).await?;
        Ok(Self { path, supervisor })
    }

    /// Where the control socket is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the doors: stops the subtree.
    pub async fn close(self) {
        self.supervisor.stop();
        self.supervisor.stopped().await;
    }
}

/// How many connections there were; shared by the incarnations of the listener.
pub(crate) type Counter = Arc<AtomicU64>;
