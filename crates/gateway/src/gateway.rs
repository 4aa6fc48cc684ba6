//! The doors on the tree: `/gateway`, its listener and its connections.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use strowger::{
    ActorSystem, ChildSpec, Dynamic, Restart, Shutdown, StartError, Strategy, Supervisor,
    SupervisorRef,
};

use crate::connection::Connection;
use crate::control::with_control;
use crate::limits::Limits;
use crate::listener::{Listener, ListenerArgs};
use crate::method::Methods;
use crate::reader::Reader;

/// Why a control socket is not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process answers there.
    #[error("control socket {}: another process listens there", path.display())]
    Live {
        /// The socket.
        path: PathBuf,
    },
    /// Something else has the name.
    #[error("control socket {}: exists and is not a socket", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("control socket {}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
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
        let first = crate::listener::bind(&path)?;
        let args = ListenerArgs::new(path.clone(), first, Arc::new(with_control(methods)), limits);
        let connections = Dynamic::<Connection>::new()
            .max_children(limits.connections)
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

/// The next number of a connection; shared by the incarnations of the listener.
pub(crate) type Counter = Arc<AtomicU64>;
