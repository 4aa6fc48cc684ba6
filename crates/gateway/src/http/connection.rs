//! The actor of one HTTP client, which hyper serves.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use strowger::{Actor, Context, MailboxSpec, Signal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::HttpState;
use super::client::{EvictReason, HttpClientState};
use super::client_stream::ClientStream;
use super::response::{HttpResponse, closing_response};
use crate::connection::ByteStream;
use crate::unauthenticated::UnauthenticatedSlot;

/// A stream with the slot of its client.
type NewClient = (Box<dyn ByteStream>, UnauthenticatedSlot);

/// The arguments of a connection.
#[derive(Clone)]
pub(crate) struct HttpConnectionArgs {
    pub(super) client: Arc<Mutex<Option<NewClient>>>,
    pub(super) state: Arc<HttpState>,
}

/// The error of a second incarnation: a connection is never restarted.
#[derive(Debug, thiserror::Error)]
#[error("the connection was served before")]
pub(crate) struct AlreadyServed;

/// An actor without messages; its task reads from the client.
pub(crate) struct HttpConnection;

impl Actor for HttpConnection {
    type Msg = Infallible;
    type Args = HttpConnectionArgs;
    type Error = AlreadyServed;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start(
        args: HttpConnectionArgs,
        cx: &mut Context<Self>,
    ) -> Result<Self, AlreadyServed> {
        let client = args.client.lock().take();
        let (stream, slot) = client.ok_or(AlreadyServed)?;
        let client = HttpClientState::new(args.state, cx.system(), slot, cx.now());
        cx.task("client", async move {
            if let Err(error) = run_connection(stream, client).await {
                tracing::debug!(%error, "client disconnected");
            }
        });
        Ok(Self)
    }

    async fn handle(
        &mut self,
        never: Infallible,
        _: &mut Context<Self>,
    ) -> Result<(), AlreadyServed> {
        match never {}
    }

    async fn signal(
        &mut self,
        signal: Signal,
        cx: &mut Context<Self>,
    ) -> Result<(), AlreadyServed> {
        if matches!(signal, Signal::TaskEnded { .. }) {
            cx.stop();
        }
        Ok(())
    }
}

/// Idle time for which the connection of an agent is kept between requests. It is longer than
/// clients keep theirs, so that they close first: a request sent while the server closes would be
/// lost.
const MAX_AGENT_IDLE: Duration = Duration::from_secs(75);

/// Maximum size of the read buffer, unless a head may be longer.
const MAX_READ_BUFFER: usize = 64 * 1024;

/// Time limit for sending a response that ends a connection early.
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(100);

/// Maximum number of bytes to discard of what a client goes on sending, so that it can read the
/// response.
const MAX_DISCARDED: u64 = 64 * 1024;

/// Serves a client until it is gone or has to leave.
async fn run_connection(
    mut stream: Box<dyn ByteStream>,
    client: HttpClientState,
) -> io::Result<()> {
    let reason = tokio::select! {
        // Bytes that have arrived already are considered first.
        biased;
        served = serve(&mut stream, &client) => return served,
        reason = client.evicted() => reason,
    };
    if client.has_sent_request() {
        return Ok(());
    }
    let within = match reason {
        // Others wait for the slot: the response is sent only as far as possible without waiting.
        EvictReason::Evicted => Duration::ZERO,
        EvictReason::TimedOut => FAREWELL_TIMEOUT,
    };
    let sending = async {
        send_response(&mut stream, client.eviction_response(reason)).await?;
        drain(&mut stream, MAX_DISCARDED).await
    };
    timeout(within, sending).await.unwrap_or(Ok(()))
}

/// Answers requests until either side closes the connection.
async fn serve(stream: &mut dyn ByteStream, client: &HttpClientState) -> io::Result<()> {
    let limits = client.limits();
    let service =
        service_fn(|request| async { Ok::<_, Infallible>(client.respond(request).await) });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(MAX_AGENT_IDLE.max(limits.time))
        .max_header_size(limits.head)
        .max_buf_size(MAX_READ_BUFFER.max(limits.head))
        .serve_connection(TokioIo::new(ClientStream::new(stream, client)), service)
        .await;
    if served.is_ok() && client.is_agent() && !client.was_refused() {
        // Closed without draining, so that its slot is free for another agent at once.
        return stream.shutdown().await;
    }
    let sending = async {
        match served {
            Ok(()) => stream.shutdown().await?,
            Err(error) => {
                let refusal = client.refusal(&error);
                send_response(stream, refusal.ok_or_else(|| io::Error::other(error))?).await?;
            }
        }
        // The client has its response: from now on others come first.
        client.protect_for(Duration::ZERO);
        let most = if client.is_agent() {
            u64::MAX
        } else {
            MAX_DISCARDED
        };
        drain(stream, most).await
    };
    timeout(limits.time, sending).await.unwrap_or(Ok(()))
}

/// A stand-in for a request that could not be read, because hyper only answers requests.
const STAND_IN_REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// Sends a response to a client whose input was not a request.
async fn send_response(stream: &mut dyn ByteStream, response: HttpResponse) -> io::Result<()> {
    let response = Mutex::new(Some(closing_response(response)));
    let service =
        service_fn(|_| std::future::ready(response.lock().take().ok_or("a second request")));
    http1::Builder::new()
        .timer(TokioTimer::new())
        // Answer even though the input ends after the request.
        .half_close(true)
        .serve_connection(
            TokioIo::new(tokio::io::join(STAND_IN_REQUEST, stream)),
            service,
        )
        .await
        .map_err(io::Error::other)
}

/// Discards input, because closing a socket with unread bytes would reset the connection, and the
/// response could be lost.
async fn drain(stream: &mut dyn ByteStream, most: u64) -> io::Result<()> {
    tokio::io::copy(&mut stream.take(most), &mut tokio::io::sink()).await?;
    Ok(())
}
