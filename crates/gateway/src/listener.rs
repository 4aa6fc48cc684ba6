//! Doors: where clients come in, and how each gets its connection.

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

use crate::connection::{Connection, ConnectionArgs, Guest, Octets, Terms, full};
use crate::frame::{Frame, Kind};
use crate::gateway::{Counter, OpenError};
use crate::stranger::Strangers;

/// Where a door is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "socket {}", path.display()),
            Self::Tcp(address) => write!(f, "address {address}"),
        }
    }
}

impl Place {
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

    /// Takes the place: listens there, and accepts nobody yet.
    pub(crate) fn bind(&self) -> Result<Bound, OpenError> {
        match self {
            Self::Unix(path) => unix::bind(path).map(Bound::Unix),
            Self::Tcp(address) => {
                let bound = StdTcpListener::bind(address).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    SockRef::from(&listener).listen(BACKLOG)?;
                    Ok(listener)
                });
                bound.map(Bound::Tcp).map_err(|source| self.failed(source))
            }
        }
    }
}

/// A place that was taken.
#[derive(Debug)]
pub(crate) enum Bound {
    Unix(StdUnixListener),
    Tcp(StdTcpListener),
}

impl Bound {
    /// The address, if it has one; the system may have chosen its port.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(listener) => listener.local_addr().ok(),
        }
    }
}

/// A place where clients are accepted.
enum Open {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Open {
    fn new(bound: Bound) -> io::Result<Self> {
        Ok(match bound {
            Bound::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
            Bound::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
        })
    }

    async fn accept(&self) -> io::Result<Box<dyn Octets>> {
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

/// Clients that wait with the system until they are accepted.
pub(crate) const BACKLOG: i32 = 1024;

/// Silence after which the system asks whether the other host is there, and the pause before it
/// asks again.
const SILENCE: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_secs(5);
/// How often it asks.
const TIMES: u32 = 3;

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // What is written is a batch already.
    stream.set_nodelay(true)?;
    // A call or a stream keeps a connection from being idle: without this, one whose host has
    // vanished would be kept for as long as nothing is written to it.
    let ask = TcpKeepalive::new().with_time(SILENCE);
    let ask = ask.with_interval(AGAIN).with_retries(TIMES);
    SockRef::from(stream).set_tcp_keepalive(&ask)
}

/// What a listener is made from.
#[derive(Clone)]
pub(crate) struct ListenerArgs {
    place: Place,
    /// Bound before the actor starts, so that the caller hears what is wrong; taken by the first
    /// incarnation, the later ones bind again.
    first: Arc<Mutex<Option<Bound>>>,
    terms: Terms,
    /// The key of the sibling that has the connections.
    beside: &'static str,
    counter: Counter,
}

impl ListenerArgs {
    pub(crate) fn new(
        place: Place,
        first: Bound,
        terms: Terms,
        beside: &'static str,
        counter: Counter,
    ) -> Self {
        Self {
            place,
            first: Arc::new(Mutex::new(Some(first))),
            terms,
            beside,
            counter,
        }
    }

    fn listener(&self) -> Result<Open, OpenError> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = first.take().map_or_else(|| self.place.bind(), Ok)?;
        Open::new(bound).map_err(|source| self.place.failed(source))
    }
}

/// Accepts clients, and removes the socket when it ends.
pub(crate) struct Listener {
    place: Place,
}

impl Actor for Listener {
    type Msg = Infallible;
    type Args = ListenerArgs;
    type Error = OpenError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);
    const SURVIVES_PANIC: bool = true;

    async fn pre_start(args: ListenerArgs, cx: &mut Context<Self>) -> Result<Self, OpenError> {
        let place = args.place.clone();
        let listener = args.listener()?;
        let path = cx.path();
        let above = path.as_str().trim_end_matches(path.key());
        let beside = format!("{above}{}", args.beside);
        cx.task("accept", accept(listener, args, cx.system(), beside));
        Ok(Self { place })
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Self>) -> Result<(), OpenError> {
        match never {}
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), OpenError> {
        match signal {
            Signal::TaskEnded { .. } => {
                let error = io::Error::other("no connections are accepted any more");
                Err(self.place.failed(error))
            }
            _ => Ok(()),
        }
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        if let Place::Unix(path) = &self.place {
            // Whoever removed it before has done our work.
            let _ = fs::remove_file(path);
        }
    }
}

/// How long to wait when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client that is turned away may take to read why.
const FAREWELL: Duration = Duration::from_millis(100);

async fn accept(listener: Open, args: ListenerArgs, system: ActorSystem, beside: String) {
    let limits = args.terms.limits;
    let strangers = Strangers::new(limits.strangers);
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, place = %args.place, "a client is not accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let connections = system.find(beside.as_str());
        let Some(connections): Option<DynamicRef<Connection>> =
            connections.and_then(|actor| actor.dynamic())
        else {
            return;
        };
        let number = 1 + args.counter.fetch_add(1, Ordering::Relaxed);
        let guest = if args.terms.token.is_some() {
            Guest::Stranger(strangers.enter(number).await)
        } else if let Some(let_in) = args.terms.known.enter(limits.connections) {
            Guest::LetIn(let_in)
        } else {
            turn_away(stream, limits.connections).await;
            continue;
        };
        let key = format!("c{number}");
        let made = ConnectionArgs::new(stream, guest, args.terms.clone());
        match connections.start_child(key, made) {
            Ok(_) => {}
            Err(StartError::Closed { .. }) => return,
            Err(error) => tracing::warn!(%error, "a client is not served"),
        }
    }
}

async fn turn_away(mut stream: Box<dyn Octets>, most: usize) {
    let error = Frame::new(Kind::Error, 0).with_json(&full(most).to_json());
    let mut octets = BytesMut::new();
    if error
        .encode_into(octets.capacity().max(4096), &mut octets)
        .is_ok()
    {
        // A client that does not read it in time will see the end of the stream.
        let _ = tokio::time::timeout(FAREWELL, stream.write_all(&octets)).await;
    }
}
