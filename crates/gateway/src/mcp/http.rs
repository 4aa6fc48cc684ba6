//! Agents over HTTP: a single path, with a check of the token and of the page's origin.

use std::net::IpAddr;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::timeout;

use super::event_log::EventLog;
use super::server::McpHandler;
use super::session::{ForeignSession, Sessions};
use super::{McpLimits, McpServer};
use crate::access::{Caller, Callers, Token};
use crate::http::bearer::bearer_token;
use crate::http::response::{HttpResponse, text_response, unauthorized, unavailable, with_guard};
use crate::unauthenticated::{AdmittedCount, AdmittedSlot};

/// The settings for agents over HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpHttpSpec {
    /// The endpoint with its tools.
    pub mcp: McpServer,
    /// The tokens that agents send, as `Authorization: Bearer TOKEN`.
    pub tokens: Vec<Token>,
    /// The origins of pages that may call, such as `https://example.org`. Programs other than
    /// browsers send none.
    pub origins: Vec<String>,
    /// Host names that requests may be sent to, such as `agents.example` or `agents.example:8443`,
    /// in addition to `localhost`, the loopback addresses and the address of the endpoint.
    pub hosts: Vec<String>,
}

impl McpHttpSpec {
    /// Admits agents with one of the tokens, and no pages.
    #[must_use]
    pub const fn new(mcp: McpServer, tokens: Vec<Token>) -> Self {
        Self {
            mcp,
            tokens,
            origins: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// Also admits requests to these host names, which a proxy may pass on.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Vec<String>) -> Self {
        self.hosts = hosts;
        self
    }

    /// Also admits pages with these origins.
    #[must_use]
    pub fn with_origins(mut self, origins: Vec<String>) -> Self {
        self.origins = origins;
        self
    }
}

/// The service for agents at the path.
pub(crate) struct McpHttpService {
    service: StreamableHttpService<McpHandler, LocalSessionManager>,
    sessions: Sessions,
    limits: McpLimits,
    callers: Callers,
    origins: Vec<String>,
    hosts: Vec<String>,
    /// The address of the endpoint.
    address: IpAddr,
    admitted_count: AdmittedCount,
}

/// The name of the endpoint in audit records.
const ENDPOINT: &str = "http";

impl McpHttpService {
    pub(crate) fn new(http: McpHttpSpec, address: IpAddr) -> Self {
        let McpHttpSpec {
            mcp,
            tokens,
            origins,
            hosts,
        } = http;
        let callers = Callers::new(&tokens, ENDPOINT, &mcp.0.audit);
        let limits = mcp.0.limits;
        let events = Arc::new(EventLog::new(limits.idle));
        let mut sessions = LocalSessionManager::default().with_event_store(events);
        sessions.session_config.keep_alive = Some(limits.idle);
        sessions.session_config.init_timeout = Some(limits.time);
        let sessions = Sessions::new(sessions);
        // Origins and hosts are checked here instead, so that a refusal can say what is missing.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_cancellation_token(mcp.0.ended.child_token())
            .with_max_request_body_bytes(limits.body);
        let make = move || Ok(McpHandler::new(mcp.clone(), None));
        Self {
            service: StreamableHttpService::new(make, sessions.manager(), config),
            sessions,
            limits,
            callers,
            origins,
            hosts,
            address,
            admitted_count: AdmittedCount::default(),
        }
    }

    /// Returns `true` if the token belongs to an agent.
    pub(crate) fn knows(&self, token: &[u8]) -> bool {
        self.callers.find(token).is_some()
    }

    /// Takes one of `most` places for the connection of an agent.
    pub(crate) fn admit(&self, most: usize) -> Option<AdmittedSlot> {
        self.admitted_count.admit(most)
    }

    /// Answers a request at the path. Without a valid token its body is not read.
    pub(crate) async fn respond(&self, request: Request<Incoming>) -> HttpResponse {
        let headers = request.headers();
        if let Some(refusal) = self.host_refusal(&request) {
            return refusal;
        }
        let origin = match self.origin(headers) {
            Ok(origin) => origin,
            Err(response) => return *response,
        };
        let mut response = if request.method() == Method::OPTIONS && origin.is_some() {
            text_response(StatusCode::NO_CONTENT, "")
        } else if let Some(caller) = self.caller(headers).cloned() {
            self.served(request, caller).await
        } else {
            unauthorized()
        };
        if let Some(origin) = origin {
            allow_origin(origin, response.headers_mut());
        }
        response
    }

    /// Returns the refusal if a request is for another host: a page whose name was rebound to this
    /// address sends its own name.
    fn host_refusal(&self, request: &Request<Incoming>) -> Option<HttpResponse> {
        let header = request.headers().get(header::HOST);
        let host = match request.uri().authority() {
            Some(authority) => authority.as_str(),
            // The protocol refuses a request without a host.
            None => header?.to_str().unwrap_or_default(),
        };
        if self.is_own(host) {
            return None;
        }
        let shown: String = host.escape_debug().take(MAX_SHOWN_HOST).collect();
        let text = format!(
            "host `{shown}` not allowed: use the address of the endpoint, or add the name to \
             mcp.hosts\n"
        );
        Some(text_response(StatusCode::FORBIDDEN, text))
    }

    /// Returns `true` for a host that requests may be sent to.
    fn is_own(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        let name = authority.host().trim_matches(['[', ']']);
        if let Ok(address) = name.parse::<IpAddr>()
            && (address.is_loopback() || address == self.address)
        {
            return true;
        }
        let is_listed = |listed: &String| {
            listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(authority.host())
        };
        name.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(is_listed)
    }

    /// Returns the origin if the request comes from a page, or the refusal if the page may not
    /// call.
    fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Box<HttpResponse>> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(None);
        };
        let is_origin = |one: &String| one.as_bytes() == origin.as_bytes();
        if self.origins.iter().any(is_origin) {
            return Ok(Some(origin.clone()));
        }
        let text = "origin not allowed: add it to mcp.origins\n";
        Err(Box::new(text_response(StatusCode::FORBIDDEN, text)))
    }

    /// Returns the caller whose token a request has.
    fn caller(&self, headers: &HeaderMap) -> Option<&Caller> {
        self.callers.find(bearer_token(headers)?)
    }

    /// Reads the whole message within the limits, then passes it to the protocol.
    async fn served(&self, request: Request<Incoming>, caller: Caller) -> HttpResponse {
        let (mut parts, body) = request.into_parts();
        let session = parts.headers.get(SESSION);
        let session = session.map(|id| String::from_utf8_lossy(id.as_bytes()));
        let mut busy = match &session {
            Some(id) => match self.sessions.enter(id, caller.name()).await {
                Ok(busy) => busy,
                Err(ForeignSession) => {
                    let text = "the session belongs to another token\n";
                    return text_response(StatusCode::NOT_FOUND, text);
                }
            },
            None => None,
        };
        let name = caller.name().to_owned();
        // Lets the tools know the caller.
        parts.extensions.insert(caller);
        let body = Limited::new(body, self.limits.body).collect();
        let body = match timeout(self.limits.time, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let text = format!(
                    "the message is larger than the limit of {} bytes\n",
                    self.limits.body
                );
                return text_response(StatusCode::PAYLOAD_TOO_LARGE, text);
            }
            Ok(Err(error)) => return text_response(StatusCode::BAD_REQUEST, format!("{error}\n")),
            Err(_) => {
                let text = "the message was not complete in time\n";
                return text_response(StatusCode::REQUEST_TIMEOUT, text);
            }
        };
        let most = self.limits.sessions;
        let is_new = session.is_none();
        if is_new && is_hello(&body) && !self.sessions.make_room(most).await {
            let text = format!("{most} agents in use, which is the limit\n");
            return unavailable(text);
        }
        let request = Request::from_parts(parts, Full::new(body));
        let response = self.service.handle(request).await;
        // The response to the first request names the new session.
        if is_new && let Some(id) = response.headers().get(SESSION) {
            let id = String::from_utf8_lossy(id.as_bytes());
            busy = self.sessions.enter(&id, &name).await.unwrap_or_default();
        }
        with_guard(response, busy)
    }
}

/// Maximum number of characters of a refused host to repeat.
const MAX_SHOWN_HOST: usize = 100;

/// Returns `true` if a message starts a session; later versions of the protocol have no sessions.
fn is_hello(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    serde_json::from_slice::<Message<'_>>(body).is_ok_and(|message| message.method == "initialize")
}

/// The header in which agents send the identifier of their session.
const SESSION: &str = "mcp-session-id";

/// Allows a page to read the response.
fn allow_origin(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        (header::VARY, "origin"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, \
             mcp-name, last-event-id",
        ),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "mcp-session-id"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
