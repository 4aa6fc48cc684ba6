//! The unix socket: taken in one step, open to its owner alone.
//!
//! The socket is bound inside a directory that only we may enter, gets its mode there, and is then
//! linked to its name, which fails if the name is taken: at no moment can another user connect,
//! and nobody's socket is overwritten.

use std::convert::Infallible;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use strowger::{Actor, ActorSystem, Context, DynamicRef, Exit, MailboxSpec, Signal, StartError};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};

use crate::connection::{Connection, ConnectionArgs};
use crate::fault::{Code, Fault};
use crate::frame::{Frame, Kind};
use crate::gateway::{Counter, OpenError};
use crate::limits::Limits;
use crate::method::Methods;

/// How many sockets this process has bound, so that two at a time do not share a folder.
static BOUND: AtomicU64 = AtomicU64::new(0);

/// Binds a socket at `path`, with mode 0600.
pub(crate) fn bind(path: &Path) -> Result<StdListener, OpenError> {
    let failed = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    make_way(path)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let private = parent.unwrap_or_else(|| Path::new(".")).join(format!(
        ".s{}-{}",
        std::process::id(),
        BOUND.fetch_add(1, Ordering::Relaxed)
    ));
    // A process of the same number may have left one.
    let _ = fs::remove_dir_all(&private);
    DirBuilder::new()
        .mode(0o700)
        .create(&private)
        .map_err(failed)?;
    let inside = private.join("s");
    let bound = StdListener::bind(&inside).and_then(|listener| {
        fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        fs::hard_link(&inside, path)?;
        Ok(listener)
    });
    let _ = fs::remove_dir_all(&private);
    bound.map_err(failed)
}

/// Removes a socket that nobody answers.
fn make_way(path: &Path) -> Result<(), OpenError> {
    let path = || path.to_owned();
    let failed = |source| OpenError::Io {
        path: path(),
        source,
    };
    match fs::symlink_metadata(path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(OpenError::NotASocket { path: path() });
        }
        Ok(_) => {}
    }
    match StdStream::connect(path()) {
        Ok(_) => Err(OpenError::Live { path: path() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path()).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// What a listener is made from.
#[derive(Clone)]
pub(crate) struct ListenerArgs {
    path: PathBuf,
    /// Bound before the actor starts, so that the caller hears what is wrong; taken by the first
    /// incarnation, the later ones bind again.
    first: Arc<Mutex<Option<StdListener>>>,
    methods: Arc<Methods>,
    limits: Limits,
    counter: Counter,
}

impl ListenerArgs {
    pub(crate) fn new(
        path: PathBuf,
        first: StdListener,
        methods: Arc<Methods>,
        limits: Limits,
    ) -> Self {
        Self {
            path,
            first: Arc::new(Mutex::new(Some(first))),
            methods,
            limits,
            counter: Arc::new(AtomicU64::new(1)),
        }
    }

    fn listener(&self) -> Result<StdListener, OpenError> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.take().map_or_else(|| bind(&self.path), Ok)
    }
}

/// Accepts clients, and removes the socket when it ends.
pub(crate) struct Listener {
    path: PathBuf,
}

impl Actor for Listener {
    type Msg = Infallible;
    type Args = ListenerArgs;
    type Error = OpenError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);
    const SURVIVES_PANIC: bool = true;

    async fn pre_start(args: ListenerArgs, cx: &mut Context<Self>) -> Result<Self, OpenError> {
        let path = args.path.clone();
        let listener = args.listener()?;
        let failed = |source| OpenError::Io {
            path: args.path.clone(),
            source,
        };
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        let beside = cx.path().as_str().replace(cx.path().key(), "connections");
        cx.task("accept", accept(listener, args, cx.system(), beside));
        Ok(Self { path })
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Self>) -> Result<(), OpenError> {
        match never {}
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), OpenError> {
        match signal {
            Signal::TaskEnded { .. } => Err(OpenError::Io {
                path: self.path.clone(),
                source: io::Error::other("no connections are accepted any more"),
            }),
            _ => Ok(()),
        }
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        // Whoever removed it before has done our work.
        let _ = fs::remove_file(&self.path);
    }
}

/// How long to wait when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client that is turned away may take to read why.
const FAREWELL: Duration = Duration::from_millis(100);

async fn accept(listener: UnixListener, args: ListenerArgs, system: ActorSystem, beside: String) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, path = %args.path.display(), "a client is not accepted");
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
        if connections.len() >= args.limits.connections {
            turn_away(stream, args.limits.connections).await;
            continue;
        }
        let key = format!("c{}", args.counter.fetch_add(1, Ordering::Relaxed));
        let made = ConnectionArgs::new(stream, Arc::clone(&args.methods), args.limits);
        match connections.start_child(key, made) {
            Ok(_) => {}
            Err(StartError::Closed { .. }) => return,
            Err(error) => tracing::warn!(%error, "a client is not served"),
        }
    }
}

async fn turn_away(mut stream: UnixStream, most: usize) {
    let text = format!("{most} connections are open, which is the limit");
    let fault = Fault::new(Code::Full, text);
    let error = Frame::new(Kind::Error, 0).with_json(&fault.to_json());
    let mut octets = BytesMut::new();
    if error
        .encode_into(octets.capacity().max(4096), &mut octets)
        .is_ok()
    {
        // A client that does not read it in time will see the end of the stream.
        let _ = tokio::time::timeout(FAREWELL, stream.write_all(&octets)).await;
    }
}
