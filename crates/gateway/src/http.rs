//! The door for those who watch a node: `/metrics`, `/healthz`, `/readyz` over HTTP.
//!
//! What comes in is not trusted. A connection is an actor that reads one request head of bounded
//! length, answers, and ends, all within one limit of time; there are no bodies to read, no
//! second requests and no methods but GET and HEAD, so there is little to get wrong. At the limit
//! of connections the one makes room that has been silent the longest.
//!
//! One path may be another's: agents come to `/mcp` once tools were [offered](HttpDoor::offer).
//! They have bodies and may stay: a connection whose first head has the token is counted apart,
//! serves one request after another, and a parser that others test reads what it sends.

mod connection;
mod request;

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use socket2::SockRef;
use strowger::{
    Actor, ActorSystem, ChildSpec, Context, Dynamic, DynamicRef, MailboxSpec, Restart, Shutdown,
    Signal, StartError, Strategy, Supervisor, SupervisorRef,
};
use tokio::net::TcpListener;

pub(crate) use self::connection::Pages;
use self::connection::{ConnectionArgs, HttpConnection, Serve};
use crate::listener::BACKLOG;
use crate::mcp::{McpHttp, Opened};
use crate::metric::Recorder;
use crate::reader::Reader;
use crate::stranger::Strangers;
use crate::vital::Vitals;

/// What those who watch a node may take, one and together.
///
/// ```
/// let mut limits = strowger_gateway::HttpLimits::default();
/// limits.connections = 4;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpLimits {
    /// The most connections at a time of clients that have not shown a token: those who watch, and
    /// those who are not known yet. When there are so many, one that is silent makes room.
    pub connections: usize,
    /// The longest request line with all headers, in octets.
    pub head: usize,
    /// How long a connection may last, from its beginning until its answer was taken.
    pub time: Duration,
    /// The most connections of agents with the token at a time, besides; they may last.
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

/// Why the door is not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address} for HTTP: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The actors did not start.
    #[error("http: {0}")]
    Start(#[from] StartError),
}

/// The open door: the subtree `/watch`.
///
/// Opened before the rest of a node it also ends after it, and says so as long as the rest
/// ends: `/readyz` then answers 503.
///
/// ```
/// use strowger::ActorSystem;
/// use strowger_gateway::{HttpDoor, HttpLimits, Recorder, Vitals};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new("node")?;
/// let recorder = Recorder::install()?;
/// let any_port = "127.0.0.1:0".parse()?;
/// let limits = HttpLimits::default();
/// let door = HttpDoor::open(&system, any_port, limits, recorder, Vitals::new()).await?;
/// println!("http://{}/metrics", door.address());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HttpDoor {
    address: SocketAddr,
    shown: Arc<Shown>,
    supervisor: SupervisorRef,
}

impl HttpDoor {
    /// Listens on an address; port 0 lets the system choose.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the system is shutting down.
    pub async fn open(
        system: &ActorSystem,
        address: SocketAddr,
        limits: HttpLimits,
        recorder: Recorder,
        vitals: Vitals,
    ) -> Result<Self, HttpError> {
        let bind = || {
            let listener = StdListener::bind(address)?;
            listener.set_nonblocking(true)?;
            SockRef::from(&listener).listen(BACKLOG)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let bound = bind().map_err(|source| HttpError::Bind { address, source });
        let (listener, address) = bound?;
        let shown = Arc::new(Shown {
            limits,
            recorder,
            vitals,
            answered: Answered::default(),
            agents: OnceLock::new(),
        });
        let args = ListenerArgs {
            listener: Arc::new(listener),
            shown: Arc::clone(&shown),
            counter: Arc::new(AtomicU64::new(1)),
        };
        let connections = Dynamic::<HttpConnection>::new()
            // Those that have to make room end a moment later.
            .max_children(
                limits
                    .connections
                    .saturating_mul(2)
                    .saturating_add(limits.agents),
            )
            .shutdown(Shutdown::Graceful(Duration::from_millis(200)));
        let supervisor = Supervisor::new(Strategy::RestForOne)
            .child(ChildSpec::dynamic("connections", connections))
            .child(ChildSpec::new::<HttpListener>("http", args).restart(Restart::Permanent))
            .child(ChildSpec::new::<Reader>("reader", ()));
        let supervisor = system.supervise("watch", supervisor).await?;
        Ok(Self {
            address,
            shown,
            supervisor,
        })
    }

    /// Serves agents at `/mcp` from now on; what was offered first stays.
    pub fn offer(&self, agents: McpHttp) {
        self.shown
            .agents
            .get_or_init(|| Arc::new(Opened::new(agents)));
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the door: stops the subtree.
    pub async fn close(self) {
        self.supervisor.stop();
        self.supervisor.stopped().await;
    }
}

/// Where the reader of the system is.
const READER: &str = "/watch/reader";
const CONNECTIONS: &str = "/watch/connections";

/// What all connections show.
pub(crate) struct Shown {
    limits: HttpLimits,
    recorder: Recorder,
    vitals: Vitals,
    answered: Answered,
    agents: OnceLock<Arc<Opened>>,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

/// How often each status was answered, and how many clients were turned away.
#[derive(Default)]
struct Answered {
    by_status: [AtomicU64; request::STATUSES.len()],
    turned_away: AtomicU64,
}

impl Answered {
    fn count(&self, status: request::Status) {
        let number = request::STATUSES.iter().position(|one| *one == status);
        if let Some(number) = number {
            self.by_status[number].fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Clone)]
struct ListenerArgs {
    /// Shared by all incarnations: a restart never finds its port taken.
    listener: Arc<StdListener>,
    shown: Arc<Shown>,
    /// The next number of a connection.
    counter: Arc<AtomicU64>,
}

struct HttpListener;

impl Actor for HttpListener {
    type Msg = Infallible;
    type Args = ListenerArgs;
    type Error = io::Error;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start(args: ListenerArgs, cx: &mut Context<Self>) -> io::Result<Self> {
        let listener = TcpListener::from_std(args.listener.try_clone()?)?;
        cx.task("accept", accept(listener, args, cx.system()));
        Ok(Self)
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Self>) -> io::Result<()> {
        match never {}
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> io::Result<()> {
        match signal {
            Signal::TaskEnded { .. } => Err(io::Error::other("nobody is accepted any more")),
            _ => Ok(()),
        }
    }
}

/// How long to wait when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

async fn accept(listener: TcpListener, args: ListenerArgs, system: ActorSystem) {
    let strangers = Strangers::new(args.shown.limits.connections);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a client is not accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let connections = system.find(CONNECTIONS);
        let Some(connections): Option<DynamicRef<HttpConnection>> =
            connections.and_then(|actor| actor.dynamic())
        else {
            return;
        };
        let number = args.counter.fetch_add(1, Ordering::Relaxed);
        let stranger = strangers.enter(number).await;
        let key = format!("h{number}");
        let made = ConnectionArgs::new(stream, stranger, Arc::clone(&args.shown));
        match connections.start_child(key, made) {
            // It has ended already if this fails.
            Ok(connection) => drop(connection.try_tell(Serve)),
            Err(StartError::Closed { .. }) => return,
            Err(error) => tracing::warn!(%error, "a client is not served"),
        }
    }
}
