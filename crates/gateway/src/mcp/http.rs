//! Agents over HTTP: one path, which asks for a token and looks at where a page comes from.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::server::Server;
use super::session::{Busy, Sessions};
use super::{Mcp, McpLimits};
use crate::http::Pages;
use crate::secret::is_same;
use crate::stranger::{Known, LetIn};

/// Agents over HTTP: who is let in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpHttp {
    /// The tools.
    pub mcp: Mcp,
    /// What agents have to know: `Authorization: Bearer TOKEN`.
    pub token: Arc<str>,
    /// The origins of pages that may call, such as `https://example.org`. Programs that are no
    /// browsers name none.
    pub origins: Vec<String>,
}

impl McpHttp {
    /// Lets those in who know the token, and no pages.
    #[must_use]
    pub fn new(mcp: Mcp, token: impl Into<Arc<str>>) -> Self {
        Self {
            mcp,
            token: token.into(),
            origins: Vec::new(),
        }
    }

    /// Lets pages of these origins in.
    #[must_use]
    pub fn with_origins(mut self, origins: Vec<String>) -> Self {
        self.origins = origins;
        self
    }
}

/// What serves agents at the path.
pub(crate) struct Opened {
    service: StreamableHttpService<Server, LocalSessionManager>,
    sessions: Sessions,
    limits: McpLimits,
    token: Arc<str>,
    origins: Vec<String>,
    known: Known,
}

/// Where agents are served.
pub(crate) const PATH: &str = "/mcp";

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl Opened {
    pub(crate) fn new(http: McpHttp) -> Self {
        let McpHttp {
            mcp,
            token,
            origins,
        } = http;
        let limits = mcp.0.limits;
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(limits.idle);
        sessions.session_config.init_timeout = Some(limits.time);
        let sessions = Sessions::new(sessions);
        // Origins are looked at here: a refusal of ours says what is missing.
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(mcp.0.ended.child_token())
            .with_max_request_body_bytes(limits.body);
        let make = move || Ok(Server(mcp.clone()));
        Self {
            service: StreamableHttpService::new(make, sessions.kit(), config),
            sessions,
            limits,
            token,
            origins,
            known: Known::default(),
        }
    }

    /// Whether a token is the one that agents have to know.
    pub(crate) fn knows(&self, token: &[u8]) -> bool {
        is_same(token, self.token.as_bytes())
    }

    /// Takes one of so many places for a connection; gives it back when it is dropped.
    pub(crate) fn enter(self: &Arc<Self>, most: usize) -> Option<Entered> {
        let let_in = self.known.enter(most)?;
        Some(Entered {
            opened: Arc::clone(self),
            _let_in: let_in,
        })
    }

    /// Answers the one request of a client that has not shown the token, whose first bytes were
    /// read already.
    pub(crate) async fn serve_once(
        &self,
        read: BytesMut,
        stream: &mut TcpStream,
    ) -> io::Result<()> {
        let service =
            service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.time)
            .keep_alive(false)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(Rewound { read, stream }), service)
            .await
            .map_err(io::Error::other)
    }
}

/// A connection of an agent that has shown the token.
pub(crate) struct Entered {
    opened: Arc<Opened>,
    _let_in: LetIn,
}

impl Entered {
    /// Answers the requests of a connection, whose first bytes were read already, for as long as
    /// the agent has any. Each has to have the token.
    pub(crate) async fn serve(
        &self,
        read: BytesMut,
        stream: &mut TcpStream,
        pages: &Pages,
    ) -> io::Result<()> {
        let opened = &*self.opened;
        let service = service_fn(|request: Request<Incoming>| async move {
            if request.uri().path() == PATH {
                return Ok::<_, Infallible>(opened.answer(request).await);
            }
            let (method, path) = (request.method().as_str(), request.uri().path());
            let (status, kind, body) = pages.answer(method, path).await;
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_FOUND);
            let mut answer = told(status, &body);
            let kind = HeaderValue::from_static(kind);
            answer.headers_mut().insert(header::CONTENT_TYPE, kind);
            Ok(answer)
        });
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(SILENCE)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(Rewound { read, stream }), service)
            .await
            .map_err(io::Error::other)
    }
}

/// How long a connection of an agent is kept between requests. Clients keep theirs for a shorter
/// time, so it is they who close: a request would be lost that crosses the end of its connection.
const SILENCE: Duration = Duration::from_secs(75);

/// What of a connection is read ahead, at most.
const BUFFER: usize = 64 * 1024;

impl Opened {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let headers = request.headers();
        let origin = match self.origin(headers) {
            Ok(origin) => origin,
            Err(answer) => return *answer,
        };
        let mut answer = if request.method() == Method::OPTIONS && origin.is_some() {
            told(StatusCode::NO_CONTENT, "")
        } else if !self.is_known(headers) {
            let text =
                "the header `Authorization: Bearer TOKEN` is wanted, with this node's token\n";
            let mut answer = told(StatusCode::UNAUTHORIZED, text);
            let bearer = HeaderValue::from_static("Bearer");
            answer
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, bearer);
            answer
        } else {
            self.served(request).await
        };
        if let Some(origin) = origin {
            open_to(origin, answer.headers_mut());
        }
        let no_store = HeaderValue::from_static("no-store");
        answer.headers_mut().insert(header::CACHE_CONTROL, no_store);
        answer
    }

    /// The page's origin, if it is one of a page and may call.
    fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Box<Answer>> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(None);
        };
        let known = |known: &String| known.as_bytes() == origin.as_bytes();
        if self.origins.iter().any(known) {
            return Ok(Some(origin.clone()));
        }
        let text = "this origin is not one of mcp.origins\n";
        Err(Box::new(told(StatusCode::FORBIDDEN, text)))
    }

    fn is_known(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION);
        let given = given.and_then(|value| bearer(value.as_bytes()));
        given.is_some_and(|given| self.knows(given))
    }

    /// Reads the whole message first, within limits; then it is the protocol's.
    async fn served(&self, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let session = parts.headers.get(SESSION);
        let session = session.map(|id| String::from_utf8_lossy(id.as_bytes()));
        let mut busy = match &session {
            Some(id) => self.sessions.enter(id).await,
            None => None,
        };
        let body = Limited::new(body, self.limits.body).collect();
        let body = match timeout(self.limits.time, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let text = format!("a message has at most {} bytes\n", self.limits.body);
                return told(StatusCode::PAYLOAD_TOO_LARGE, &text);
            }
            Ok(Err(error)) => return told(StatusCode::BAD_REQUEST, &format!("{error}\n")),
            Err(_) => {
                let text = "the message did not come in time\n";
                return told(StatusCode::REQUEST_TIMEOUT, text);
            }
        };
        let most = self.limits.sessions;
        let is_new = session.is_none();
        if is_new && is_hello(&body) && !self.sessions.make_room(most).await {
            let text = format!("{most} agents are busy here, which is the limit\n");
            return told(StatusCode::SERVICE_UNAVAILABLE, &text);
        }
        let request = Request::from_parts(parts, Full::new(body));
        let answer = self.service.handle(request).await;
        // The answer to the first request names the session.
        if is_new && let Some(id) = answer.headers().get(SESSION) {
            busy = self
                .sessions
                .enter(&String::from_utf8_lossy(id.as_bytes()))
                .await;
        }
        held(answer, busy)
    }
}

/// The token of `Authorization: Bearer TOKEN`; the scheme is in letters of either case (RFC 9110
/// §11.1).
pub(crate) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    let token = token.strip_prefix(b" ")?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii_start())
}

const SCHEME: &[u8] = b"Bearer";

/// Whether a message asks for a session; later versions of the protocol do without.
fn is_hello(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    serde_json::from_slice::<Message<'_>>(body).is_ok_and(|message| message.method == "initialize")
}

/// An answer that keeps its session until it was given, or whoever wanted it has gone.
fn held(answer: Answer, busy: Option<Busy>) -> Answer {
    let Some(busy) = busy else {
        return answer;
    };
    let hold = move |body: BoxBody<Bytes, Infallible>| {
        let hold = move |frame| {
            let _busy = &busy;
            frame
        };
        body.map_frame(hold).boxed()
    };
    answer.map(hold)
}

/// The header with which agents name their session.
const SESSION: &str = "mcp-session-id";

fn told(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, plain);
    answer
}

/// Lets a page read the answer.
fn open_to(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        (header::VARY, "origin"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, mcp-session-id, mcp-protocol-version, last-event-id",
        ),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "mcp-session-id"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A stream of which some octets were read already.
struct Rewound<'a> {
    read: BytesMut,
    stream: &'a mut TcpStream,
}

impl AsyncRead for Rewound<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut *self.stream).poll_read(cx, to);
        }
        let count = self.read.len().min(to.remaining());
        to.put_slice(&self.read[..count]);
        self.read.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(cx, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(cx)
    }
}
