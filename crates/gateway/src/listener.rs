//! Listeners, which accept clients and start a connection for each.

mod unix;

use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use strowger::{Actor, ActorSystem, Context, DynamicRef, Exit, MailboxSpec, Signal, StartError};
use tokio::net::{TcpListener, TcpStream, UnixListener};

use crate::connection::ByteStream;
use crate::gateway::{ConnectionCounter, OpenError};
use crate::unauthenticated::{self, UnauthenticatedBudget, UnauthenticatedSlot};

/// An endpoint, which serves the clients that a [`Listener`] accepts.
pub(crate) trait Endpoint: Clone + Send + Sync + 'static {
    /// The actor of a client.
    type Connection: Actor;

    /// Maximum number of unauthenticated clients.
    fn max_unauthenticated(&self) -> usize;

    /// Returns the arguments of the actor that serves a client; `None` if it was refused.
    fn admit(
        &self,
        stream: Box<dyn ByteStream>,
        slot: UnauthenticatedSlot,
    ) -> impl Future<Output = Option<<Self::Connection as Actor>::Args>> + Send;
}

/// The address where an endpoint listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "socket {}", path.display()),
            Self::Tcp(address) => write!(f, "address {address}"),
        }
    }
}

impl ListenAddress {
    pub(crate) fn open_error(&self, source: io::Error) -> OpenError {
        match self {
            Self::Unix(path) => OpenError::Io {
                path: path.clone(),
                source,
            },
            Self::Tcp(address) => OpenError::Bind {
                address: *address,
                source,
            },
        }
    }

    /// Binds the address, without accepting clients yet.
    pub(crate) fn bind(&self) -> Result<BoundSocket, OpenError> {
        match self {
            Self::Unix(path) => unix::bind(path).map(BoundSocket::Unix),
            Self::Tcp(address) => {
                let bound = StdTcpListener::bind(address).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    SockRef::from(&listener).listen(BACKLOG)?;
                    Ok(BoundSocket::Tcp(listener))
                });
                bound.map_err(|source| self.open_error(source))
            }
        }
    }
}

/// A bound socket.
#[derive(Debug)]
pub(crate) enum BoundSocket {
    Unix(StdUnixListener),
    Tcp(StdTcpListener),
}

impl BoundSocket {
    /// Returns the address, unless it is a Unix socket; the system may have chosen its port.
    pub(crate) fn socket_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(listener) => listener.local_addr().ok(),
        }
    }
}

/// A socket that accepts clients.
enum ListeningSocket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl ListeningSocket {
    async fn accept(&self) -> io::Result<Box<dyn ByteStream>> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Box::new(stream))
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                prepare(&stream)?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// Maximum number of clients that wait in the system's accept queue.
const BACKLOG: i32 = 1024;

/// Idle time after which TCP keepalive probes the other host, and the interval of the probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of unanswered probes after which the connection is closed.
const KEEPALIVE_PROBES: u32 = 3;

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Writes are batched already, and events of a stream must be sent immediately.
    stream.set_nodelay(true)?;
    // A call or a stream exempts a connection from the idle limit. Without keepalive, a connection
    // to a host that has vanished would be kept as long as nothing is written to it.
    let ask = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
    let ask = ask
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    SockRef::from(stream).set_tcp_keepalive(&ask)
}

/// The arguments of a listener.
#[derive(Clone)]
pub(crate) struct ListenerArgs<E> {
    pub(crate) address: ListenAddress,
    /// Bound before the actor starts, so that the caller sees errors. All incarnations share a TCP
    /// port; the first takes the Unix socket and removes it, so later ones bind again.
    pub(crate) bound: Arc<Mutex<Option<BoundSocket>>>,
    pub(crate) endpoint: E,
    /// The key of the sibling that supervises the connections.
    pub(crate) connections_key: &'static str,
    pub(crate) counter: ConnectionCounter,
}

impl<E> ListenerArgs<E> {
    fn listener(&self) -> Result<ListeningSocket, OpenError> {
        let mut bound = self.bound.lock();
        let listening = match bound.take().map_or_else(|| self.address.bind(), Ok)? {
            BoundSocket::Unix(listener) => {
                UnixListener::from_std(listener).map(ListeningSocket::Unix)
            }
            BoundSocket::Tcp(listener) => {
                let shared = listener.try_clone().and_then(TcpListener::from_std);
                *bound = Some(BoundSocket::Tcp(listener));
                shared.map(ListeningSocket::Tcp)
            }
        };
        listening.map_err(|source| self.address.open_error(source))
    }
}

/// An actor that accepts clients and removes its Unix socket when it ends.
pub(crate) struct Listener<E>(ListenerArgs<E>);

impl<E: Endpoint> Actor for Listener<E> {
    type Msg = Infallible;
    type Args = ListenerArgs<E>;
    type Error = OpenError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);
    const SURVIVES_PANIC: bool = true;

    async fn pre_start(args: ListenerArgs<E>, cx: &mut Context<Self>) -> Result<Self, OpenError> {
        let path = cx.path();
        let parent = path.as_str().trim_end_matches(path.key());
        let connections_path = format!("{parent}{}", args.connections_key);
        let accepting = accept(
            args.listener()?,
            args.clone(),
            cx.system(),
            connections_path,
        );
        cx.task("accept", accepting);
        Ok(Self(args))
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Self>) -> Result<(), OpenError> {
        match never {}
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), OpenError> {
        match signal {
            Signal::TaskEnded { .. } => {
                let error = io::Error::other("the listener stopped accepting connections");
                Err(self.0.address.open_error(error))
            }
            _ => Ok(()),
        }
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        if let ListenAddress::Unix(path) = &self.0.address {
            // It may have been removed already.
            let _ = fs::remove_file(path);
        }
    }
}

/// Pause before accepting again when the process has no file descriptors left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

async fn accept<E: Endpoint>(
    listener: ListeningSocket,
    args: ListenerArgs<E>,
    system: ActorSystem,
    connections_path: String,
) {
    let budget = UnauthenticatedBudget::new(args.endpoint.max_unauthenticated());
    loop {
        let accepted = tokio::select! {
            biased;
            () = unauthenticated::make_room_and_wait(&budget) => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, place = %args.address, "cannot accept a client");
                budget.evict_one();
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let connections = system.find(connections_path.as_str());
        let Some(connections): Option<DynamicRef<E::Connection>> =
            connections.and_then(|actor| actor.dynamic())
        else {
            return;
        };
        let number = 1 + args.counter.fetch_add(1, Ordering::Relaxed);
        let Some(connection_args) = args.endpoint.admit(stream, budget.admit(number)).await else {
            continue;
        };
        match connections.start_child(format!("c{number}"), connection_args) {
            Ok(_) => {}
            Err(StartError::ParentEnding { .. }) => return,
            Err(error) => tracing::warn!(%error, "client dropped"),
        }
    }
}
