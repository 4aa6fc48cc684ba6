//! The state of a client: an unauthenticated client gets a few responses, an agent any number.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::{Request, StatusCode, header};
use parking_lot::Mutex;
use strowger::ActorSystem;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::bearer::bearer_token;
use super::response::{
    HttpResponse, closing_response, text_response, unavailable, with_guard, with_header,
};
use super::{HttpLimits, HttpState, MCP_PATH};
use crate::unauthenticated::{AdmittedSlot, UnauthenticatedSlot};

/// The state of one client.
pub(super) struct HttpClientState {
    state: Arc<HttpState>,
    system: ActorSystem,
    /// Its slot among the unauthenticated clients, until it is known to be an agent.
    unauthenticated: Mutex<Option<UnauthenticatedSlot>>,
    /// Its slot among the agents.
    agent: OnceLock<AdmittedSlot>,
    /// Set once the client has sent a request, valid or not.
    sent_request: AtomicBool,
    /// Set from the head of a request until its response was written.
    responding: AtomicBool,
    /// Number of responses on this connection.
    responses: AtomicUsize,
    /// Set if the last response was a refusal: the refused request may not have been read to its
    /// end.
    refused: AtomicBool,
    /// Shared with the request in progress and with its response; the count tells if either still
    /// exists.
    request_guard: Arc<()>,
    /// Time until which an unauthenticated client may send further requests. The rest of its time
    /// is for their responses.
    requests_until: Instant,
    /// Time limit of an unauthenticated client.
    deadline: Instant,
    /// Cancelled when an unauthenticated client has to leave.
    eviction: CancellationToken,
}

/// The reason why an unauthenticated client has to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EvictReason {
    Evicted,
    TimedOut,
}

/// Maximum number of requests on the connection of an unauthenticated client.
const MAX_REQUESTS: usize = 100;

/// Time in which a client that has sent a request may be answered even if others need its slot.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

impl HttpClientState {
    pub(super) fn new(
        state: Arc<HttpState>,
        system: ActorSystem,
        slot: UnauthenticatedSlot,
        start: Instant,
    ) -> Self {
        let time = state.limits.time;
        Self {
            requests_until: start + time / 2,
            deadline: start + time,
            state,
            system,
            eviction: slot.eviction(),
            unauthenticated: Mutex::new(Some(slot)),
            agent: OnceLock::new(),
            sent_request: AtomicBool::new(false),
            responding: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            responses: AtomicUsize::new(0),
            request_guard: Arc::new(()),
        }
    }

    pub(super) fn limits(&self) -> &HttpLimits {
        &self.state.limits
    }

    pub(super) fn is_agent(&self) -> bool {
        self.agent.get().is_some()
    }

    pub(super) fn has_sent_request(&self) -> bool {
        self.sent_request.load(Ordering::Relaxed)
    }

    pub(super) fn was_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns `true` from the head of a request until its response was written.
    pub(super) fn is_responding(&self) -> bool {
        self.responding.load(Ordering::Relaxed)
    }

    /// Called when hyper has written everything: a response that is not kept alive any more is
    /// complete.
    pub(super) fn written(&self) {
        if Arc::strong_count(&self.request_guard) == 1
            && self.responding.swap(false, Ordering::Relaxed)
        {
            // The client has its response: from now on others come first.
            self.protect_for(Duration::ZERO);
        }
    }

    /// Lets an unauthenticated client keep its slot for this long even if others need it.
    pub(super) fn protect_for(&self, span: Duration) {
        if let Some(slot) = &*self.unauthenticated.lock() {
            slot.protect_for(span);
        }
    }

    /// Waits until the client has to leave. An agent never has to.
    pub(super) async fn evicted(&self) -> EvictReason {
        let reason = tokio::select! {
            () = self.eviction.cancelled() => EvictReason::Evicted,
            () = self.timed_out() => EvictReason::TimedOut,
        };
        match self.is_agent() {
            true => pending().await,
            false => reason,
        }
    }

    /// Waits until the time of an unauthenticated client is over: between requests, earlier than
    /// with a request or a response under way.
    async fn timed_out(&self) {
        sleep_until(self.requests_until).await;
        if !self.has_sent_request() || self.is_responding() {
            sleep_until(self.deadline).await;
        }
    }

    /// Answers a request.
    pub(super) async fn respond(&self, request: Request<Incoming>) -> HttpResponse {
        let kept = Arc::clone(&self.request_guard);
        self.responding.store(true, Ordering::Relaxed);
        let has_body = !request.body().is_end_stream();
        let response = match self.admit(&request) {
            Ok(()) => self.served(request).await,
            Err(refusal) => *refusal,
        };
        let response = self.finish_response(response);
        match self.is_agent() || !has_body && self.may_send_another() {
            true => with_guard(response, kept),
            // The body of an unauthenticated client is not read, so what follows it is unknown.
            false => with_guard(closing_response(response), kept),
        }
    }

    /// Counts a response. Returns `true` if an unauthenticated client may send another request.
    fn may_send_another(&self) -> bool {
        let responses = self.responses.fetch_add(1, Ordering::Relaxed) + 1;
        let slot = self.unauthenticated.lock();
        let is_contended = slot.as_ref().is_some_and(UnauthenticatedSlot::is_contended);
        responses < MAX_REQUESTS && Instant::now() < self.requests_until && !is_contended
    }

    /// Identifies the client: it becomes an agent if it requests the path of agents with a valid
    /// token.
    fn admit<B>(&self, request: &Request<B>) -> Result<(), Box<HttpResponse>> {
        self.mark_request_sent();
        if !targets_this_host(request) {
            let text = "not a proxy: request a path, as in `GET /metrics HTTP/1.1`\n";
            return Err(Box::new(text_response(StatusCode::BAD_REQUEST, text)));
        }
        let Some(agents) = self.state.agents.get() else {
            return Ok(());
        };
        let knows = |token| agents.knows(token);
        if self.is_agent()
            || request.uri().path() != MCP_PATH
            || !bearer_token(request.headers()).is_some_and(knows)
        {
            return Ok(());
        }
        let most = self.limits().agents;
        let Some(admitted) = agents.admit(most) else {
            let text = format!(
                "{most} agents connected, which is the limit (mcp.connections): reuse \
                 connections, or raise the limit\n"
            );
            return Err(Box::new(unavailable(text)));
        };
        let _ = self.agent.set(admitted);
        *self.unauthenticated.lock() = None;
        Ok(())
    }

    /// Records that the client has sent a request, so it may wait for the response.
    fn mark_request_sent(&self) {
        self.sent_request.store(true, Ordering::Relaxed);
        self.protect_for(ANSWER_GRACE);
    }

    async fn served(&self, request: Request<Incoming>) -> HttpResponse {
        if request.uri().path() == MCP_PATH
            && let Some(agents) = self.state.agents.get()
        {
            return agents.respond(request).await;
        }
        let left = match self.is_agent() {
            true => self.limits().time,
            false => self.deadline.saturating_duration_since(Instant::now()),
        };
        // The other half of the time is left for sending the response.
        self.state.page(&request, &self.system, left / 2).await
    }

    /// Returns the response to input that could not be parsed, if the client can still be answered.
    pub(super) fn refusal(&self, error: &hyper::Error) -> Option<HttpResponse> {
        if self.is_responding() {
            return None;
        }
        let response = if error.is_parse_too_large() {
            let text = format!(
                "request line and headers too large: the limit is {} bytes (metrics.head) and 100 \
                 headers\n",
                self.limits().head
            );
            text_response(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text)
        } else if error.is_parse() || error.is_incomplete_message() {
            let text = "invalid HTTP/1 request: expected a request line such as `GET /metrics \
                        HTTP/1.1`, headers and an empty line\n";
            text_response(StatusCode::BAD_REQUEST, text)
        } else {
            return None;
        };
        self.mark_request_sent();
        Some(self.finish_response(response))
    }

    /// Returns the response to a client that has to leave before it has sent a request.
    pub(super) fn eviction_response(&self, reason: EvictReason) -> HttpResponse {
        match reason {
            EvictReason::Evicted => {
                self.state.count_turned_away();
                unavailable(
                    "idle connection closed in favour of another client: reconnect to send a \
                     request\n",
                )
            }
            EvictReason::TimedOut => {
                let limit = self.limits().time;
                let text = format!("no complete request within {limit:?} (metrics.time)\n");
                self.finish_response(text_response(StatusCode::REQUEST_TIMEOUT, text))
            }
        }
    }

    fn finish_response(&self, response: HttpResponse) -> HttpResponse {
        let status = response.status();
        self.state.count_response(status);
        self.refused
            .store(status.is_client_error(), Ordering::Relaxed);
        let response = with_header(response, header::CACHE_CONTROL, "no-store");
        with_header(response, header::X_CONTENT_TYPE_OPTIONS, "nosniff")
    }
}

/// Returns `false` if a request is meant for a proxy: its target names a host other than its `Host`
/// header does.
fn targets_this_host<B>(request: &Request<B>) -> bool {
    let Some(named) = request.uri().authority() else {
        return true;
    };
    let host = request.headers().get(header::HOST);
    host.is_some_and(|host| {
        host.as_bytes()
            .eq_ignore_ascii_case(named.as_str().as_bytes())
    })
}
