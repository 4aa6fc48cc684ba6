//! Listeners, which accept clients and start a connection for each.

mod unix;

use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use socket2::{SockRef, TcpKeepalive};
use strowger::{Actor, ActorSystem, Context, DynamicRef, Exit, MailboxSpec, Signal, StartError};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UnixListener};

use crate::connection::{
    ByteStream, ClientStatus, Connection, ConnectionArgs, EndpointSettings, full,
};
use crate::frame::{Frame, Kind};
use crate::gateway::{ConnectionCounter, OpenError};
use crate::unauthenticated::{self, UnauthenticatedBudget};

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
    pub(crate) fn failed(&self, source: io::Error) -> OpenError {
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
                    Ok(listener)
                });
                bound
                    .map(BoundSocket::Tcp)
                    .map_err(|source| self.failed(source))
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
    fn new(bound: BoundSocket) -> io::Result<Self> {
        Ok(match bound {
            BoundSocket::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
            BoundSocket::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
        })
    }

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
pub(crate) const BACKLOG: i32 = 1024;

/// Idle time after which TCP keepalive probes the other host, and the interval of the probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of unanswered probes after which the connection is closed.
const KEEPALIVE_PROBES: u32 = 3;

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Writes are batched already.
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
pub(crate) struct ListenerArgs {
    address: ListenAddress,
    /// Bound before the actor starts, so that the caller sees errors. The first incarnation takes
    /// it; later ones bind again.
    first: Arc<Mutex<Option<BoundSocket>>>,
    settings: EndpointSettings,
    /// The key of the sibling that supervises the connections.
    connections_key: &'static str,
    counter: ConnectionCounter,
}

impl ListenerArgs {
    pub(crate) fn new(
        address: ListenAddress,
        first: BoundSocket,
        settings: EndpointSettings,
        connections_key: &'static str,
        counter: ConnectionCounter,
    ) -> Self {
        Self {
            address,
            first: Arc::new(Mutex::new(Some(first))),
            settings,
            connections_key,
            counter,
        }
    }

    fn listener(&self) -> Result<ListeningSocket, OpenError> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = first.take().map_or_else(|| self.address.bind(), Ok)?;
        ListeningSocket::new(bound).map_err(|source| self.address.failed(source))
    }
}

/// An actor that accepts clients and removes its Unix socket when it ends.
pub(crate) struct Listener {
    address: ListenAddress,
}

impl Actor for Listener {
    type Msg = Infallible;
    type Args = ListenerArgs;
    type Error = OpenError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);
    const SURVIVES_PANIC: bool = true;

    async fn pre_start(args: ListenerArgs, cx: &mut Context<Self>) -> Result<Self, OpenError> {
        let address = args.address.clone();
        let listener = args.listener()?;
        let path = cx.path();
        let above = path.as_str().trim_end_matches(path.key());
        let connections_path = format!("{above}{}", args.connections_key);
        cx.task(
            "accept",
            accept(listener, args, cx.system(), connections_path),
        );
        Ok(Self { address })
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Self>) -> Result<(), OpenError> {
        match never {}
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), OpenError> {
        match signal {
            Signal::TaskEnded { .. } => {
                let error = io::Error::other("no connections are accepted any more");
                Err(self.address.failed(error))
            }
            _ => Ok(()),
        }
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        if let ListenAddress::Unix(path) = &self.address {
            // It may have been removed already.
            let _ = fs::remove_file(path);
        }
    }
}

/// Pause before accepting again when the process has no file descriptors left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// Time limit for sending the reason to a client that is turned away.
const REJECTION_TIMEOUT: Duration = Duration::from_millis(100);

async fn accept(
    listener: ListeningSocket,
    args: ListenerArgs,
    system: ActorSystem,
    connections_path: String,
) {
    let limits = args.settings.limits;
    let budget = UnauthenticatedBudget::new(limits.strangers);
    loop {
        let accepted = tokio::select! {
            biased;
            () = unauthenticated::make_room_and_wait(&budget) => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, place = %args.address, "a client is not accepted");
                budget.evict_one();
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let connections = system.find(connections_path.as_str());
        let Some(connections): Option<DynamicRef<Connection>> =
            connections.and_then(|actor| actor.dynamic())
        else {
            return;
        };
        let number = 1 + args.counter.fetch_add(1, Ordering::Relaxed);
        let status = if args.settings.admission.tokens().is_some() {
            ClientStatus::Unauthenticated(budget.admit(number))
        } else if let Some(slot) = args.settings.admitted_count.admit(limits.connections) {
            ClientStatus::Admitted(slot)
        } else {
            reject(stream, limits.connections).await;
            continue;
        };
        let key = format!("c{number}");
        let made = ConnectionArgs::new(stream, status, args.settings.clone());
        match connections.start_child(key, made) {
            Ok(_) => {}
            Err(StartError::Closed { .. }) => return,
            Err(error) => tracing::warn!(%error, "a client is not served"),
        }
    }
}

async fn reject(mut stream: Box<dyn ByteStream>, most: usize) {
    let error = Frame::new(Kind::Error, 0).with_json(&full(most).to_json());
    let mut bytes = BytesMut::new();
    if error
        .encode_into(bytes.capacity().max(4096), &mut bytes)
        .is_ok()
    {
        // A client that does not read it in time sees only the end of the stream.
        let _ = tokio::time::timeout(REJECTION_TIMEOUT, stream.write_all(&bytes)).await;
    }
}
