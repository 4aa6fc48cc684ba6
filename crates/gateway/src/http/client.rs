//! The state of a client: an unauthenticated client gets a few answers, an agent any number.

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

use super::answer::{HttpAnswer, last_answer, text_answer, unavailable, with_guard, with_header};
use super::{HttpLimits, HttpState};
use crate::mcp;
use crate::unauthenticated::{AdmittedSlot, UnauthenticatedSlot};

/// The state of one client.
pub(super) struct HttpClient {
    state: Arc<HttpState>,
    system: ActorSystem,
    /// Its slot among the unauthenticated clients, until it is known to be an agent.
    unauthenticated: Mutex<Option<UnauthenticatedSlot>>,
    /// Its slot among the agents.
    agent: OnceLock<AdmittedSlot>,
    /// Set once the client has sent a request, valid or not.
    asked: AtomicBool,
    /// Set from the head of a request until its answer was written.
    answering: AtomicBool,
    /// Number of answers on this connection.
    answers: AtomicUsize,
    /// Set if the last answer was a refusal: the refused request may not have been read to its end.
    refused: AtomicBool,
    /// Shared with the request in progress and with its answer; the count tells if either still
    /// exists.
    answer: Arc<()>,
    /// Time until which an unauthenticated client may send further requests. The rest of its time
    /// is for their answers.
    next_until: Instant,
    /// Time limit of an unauthenticated client.
    until: Instant,
    /// Cancelled when an unauthenticated client has to leave.
    eviction: CancellationToken,
}

/// The reason why an unauthenticated client has to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EvictReason {
    Evicted,
    Late,
}

/// Maximum number of requests on the connection of an unauthenticated client.
const MAX_REQUESTS: usize = 100;

/// Time in which a client that has sent a request may be answered even if others need its slot.
const ANSWER_GRACE: Duration = Duration::from_secs(1);

impl HttpClient {
    pub(super) fn new(
        state: Arc<HttpState>,
        system: ActorSystem,
        slot: UnauthenticatedSlot,
        start: Instant,
    ) -> Self {
        let time = state.limits.time;
        Self {
            next_until: start + time / 2,
            until: start + time,
            state,
            system,
            eviction: slot.eviction(),
            unauthenticated: Mutex::new(Some(slot)),
            agent: OnceLock::new(),
            asked: AtomicBool::new(false),
            answering: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            answers: AtomicUsize::new(0),
            answer: Arc::new(()),
        }
    }

    pub(super) fn limits(&self) -> &HttpLimits {
        &self.state.limits
    }

    pub(super) fn is_agent(&self) -> bool {
        self.agent.get().is_some()
    }

    pub(super) fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(super) fn was_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns `true` from the head of a request until its answer was written.
    pub(super) fn is_answering(&self) -> bool {
        self.answering.load(Ordering::Relaxed)
    }

    /// Called when hyper has written everything: an answer that is not kept alive any more is
    /// complete.
    pub(super) fn written(&self) {
        if Arc::strong_count(&self.answer) == 1 && self.answering.swap(false, Ordering::Relaxed) {
            // The client has its answer: from now on others come first.
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
            () = self.late() => EvictReason::Late,
        };
        match self.is_agent() {
            true => pending().await,
            false => reason,
        }
    }

    /// Waits until the time of an unauthenticated client is over: between requests, earlier than
    /// with a request or an answer under way.
    async fn late(&self) {
        sleep_until(self.next_until).await;
        if !self.has_asked() || self.is_answering() {
            sleep_until(self.until).await;
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> HttpAnswer {
        let kept = Arc::clone(&self.answer);
        self.answering.store(true, Ordering::Relaxed);
        let has_body = !request.body().is_end_stream();
        let answer = match self.admit(&request) {
            Ok(()) => self.served(request).await,
            Err(refusal) => *refusal,
        };
        let answer = self.counted(answer);
        match self.is_agent() || !has_body && self.may_ask_again() {
            true => with_guard(answer, kept),
            // The body of an unauthenticated client is not read, so what follows it is unknown.
            false => with_guard(last_answer(answer), kept),
        }
    }

    /// Counts an answer. Returns `true` if an unauthenticated client may send another request.
    fn may_ask_again(&self) -> bool {
        let answers = self.answers.fetch_add(1, Ordering::Relaxed) + 1;
        let slot = self.unauthenticated.lock();
        let is_wanted = slot.as_ref().is_some_and(UnauthenticatedSlot::is_wanted);
        answers < MAX_REQUESTS && Instant::now() < self.next_until && !is_wanted
    }

    /// Identifies the client: it becomes an agent if it requests the path of agents with a valid
    /// token.
    fn admit<B>(&self, request: &Request<B>) -> Result<(), Box<HttpAnswer>> {
        self.asks();
        if !names_this_host(request) {
            let text = "not a proxy: request a path, as in `GET /metrics HTTP/1.1`\n";
            return Err(Box::new(text_answer(StatusCode::BAD_REQUEST, text)));
        }
        let Some(agents) = self.state.agents.get() else {
            return Ok(());
        };
        let knows = |token| agents.knows(token);
        if self.is_agent()
            || request.uri().path() != mcp::PATH
            || !mcp::token(request.headers()).is_some_and(knows)
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

    /// Records that the client has sent a request, so it may wait for the answer.
    fn asks(&self) {
        self.asked.store(true, Ordering::Relaxed);
        self.protect_for(ANSWER_GRACE);
    }

    async fn served(&self, request: Request<Incoming>) -> HttpAnswer {
        if request.uri().path() == mcp::PATH
            && let Some(agents) = self.state.agents.get()
        {
            return agents.answer(request).await;
        }
        let left = match self.is_agent() {
            true => self.limits().time,
            false => self.until.saturating_duration_since(Instant::now()),
        };
        // The other half of the time is left for sending the answer.
        self.state.page(&request, &self.system, left / 2).await
    }

    /// Returns the answer to input that could not be parsed, if the client can still be answered.
    pub(super) fn refusal(&self, error: &hyper::Error) -> Option<HttpAnswer> {
        if self.is_answering() {
            return None;
        }
        let answer = if error.is_parse_too_large() {
            let text = format!(
                "request line and headers too large: the limit is {} bytes (metrics.head) and 100 \
                 headers\n",
                self.limits().head
            );
            text_answer(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text)
        } else if error.is_parse() || error.is_incomplete_message() {
            let text = "invalid HTTP/1 request: expected a request line such as `GET /metrics \
                        HTTP/1.1`, headers and an empty line\n";
            text_answer(StatusCode::BAD_REQUEST, text)
        } else {
            return None;
        };
        self.asks();
        Some(self.counted(answer))
    }

    /// Returns the answer to a client that has to leave before it has sent a request.
    pub(super) fn farewell(&self, reason: EvictReason) -> HttpAnswer {
        match reason {
            EvictReason::Evicted => {
                self.state.count_turned_away();
                unavailable(
                    "idle connection closed in favour of another client: reconnect to send a \
                     request\n",
                )
            }
            EvictReason::Late => {
                let limit = self.limits().time;
                let text = format!("no complete request within {limit:?} (metrics.time)\n");
                self.counted(text_answer(StatusCode::REQUEST_TIMEOUT, text))
            }
        }
    }

    fn counted(&self, answer: HttpAnswer) -> HttpAnswer {
        let status = answer.status();
        self.state.count_answer(status);
        self.refused
            .store(status.is_client_error(), Ordering::Relaxed);
        let answer = with_header(answer, header::CACHE_CONTROL, "no-store");
        with_header(answer, header::X_CONTENT_TYPE_OPTIONS, "nosniff")
    }
}

/// Returns `false` if a request is meant for a proxy: its target names a host other than its `Host`
/// header does.
fn names_this_host<B>(request: &Request<B>) -> bool {
    let Some(named) = request.uri().authority() else {
        return true;
    };
    let host = request.headers().get(header::HOST);
    host.is_some_and(|host| {
        host.as_bytes()
            .eq_ignore_ascii_case(named.as_str().as_bytes())
    })
}
