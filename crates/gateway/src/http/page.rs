//! The pages for monitoring.

use std::time::Duration;

use hyper::header;
use hyper::{Method, Request, StatusCode};
use serde_json::json;
use strowger::{ActorSystem, TopQuery, TopRank, TopReport};
use tokio::time::Instant;

use super::bearer::bearer_token;
use super::response::{HttpResponse, text_response, typed_response, unauthorized, with_header};
use super::{HttpState, SNAPSHOT_TAKER};
use crate::access::Operation;
use crate::health::LimitUsage;
use crate::metrics::{MetricKind, MetricsPage};
use crate::snapshot::{self, TakeSnapshot};

impl HttpState {
    /// Answers a request for a page. Metrics include a snapshot of the node if it is ready within
    /// `left`.
    pub(super) async fn page<B>(
        &self,
        request: &Request<B>,
        system: &ActorSystem,
        left: Duration,
    ) -> HttpResponse {
        let path = request.uri().path();
        if !matches!(path, "/metrics" | "/healthz" | "/readyz") {
            let agents = match self.agents.get() {
                Some(_) => ", and /mcp for agents",
                None => "; MCP is not enabled (mcp.http)",
            };
            let text =
                format!("not found: this server has /metrics, /healthz and /readyz{agents}\n");
            return text_response(StatusCode::NOT_FOUND, text);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let text = "method not allowed: use GET or HEAD\n";
            let response = text_response(StatusCode::METHOD_NOT_ALLOWED, text);
            return with_header(response, header::ALLOW, "GET, HEAD");
        }
        match path {
            "/healthz" => text_response(StatusCode::OK, "ok\n"),
            "/readyz" => self.readiness(system),
            _ => match self.refusal(bearer_token(request.headers())) {
                Some(refusal) => refusal,
                None => self.metrics(system, left).await,
            },
        }
    }

    /// Returns the response that refuses metrics to the holder of this token, if it may not read
    /// them.
    fn refusal(&self, token: Option<&[u8]>) -> Option<HttpResponse> {
        let metrics_readers = self.metrics_readers.as_ref()?;
        let Some(caller) = token.and_then(|token| metrics_readers.find(token)) else {
            return Some(unauthorized());
        };
        let refused = caller
            .authorize(&Operation::METRICS, None, Instant::now())
            .err()?;
        let text = format!("{}\n", refused.message);
        Some(text_response(StatusCode::FORBIDDEN, text))
    }

    fn readiness(&self, system: &ActorSystem) -> HttpResponse {
        let mut obstacles = self.health.failed_checks();
        if system.is_shutting_down() {
            obstacles.insert(0, ("shutdown", "the node is shutting down".to_owned()));
        }
        let status = match obstacles.is_empty() {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        let reason = |(check, reason)| json!({ "check": check, "reason": reason });
        let reasons: Vec<_> = obstacles.into_iter().map(reason).collect();
        let body = json!({ "ready": status == StatusCode::OK, "reasons": reasons });
        typed_response("application/json", status, format!("{body}\n"))
    }

    async fn metrics(&self, system: &ActorSystem, left: Duration) -> HttpResponse {
        let mut page = MetricsPage::default();
        self.recorder.write(&mut page);
        if let Some(top) = top_report(system, left).await {
            write_mailboxes(&top, &mut page);
        }
        write_limits(&self.health.limit_usages().collect::<Vec<_>>(), &mut page);
        crate::process::write(&mut page);
        self.health.write(&mut page);
        typed_response(EXPOSITION, StatusCode::OK, page.into_string())
    }
}

const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Takes a snapshot of all mailboxes, if it is ready in time.
async fn top_report(system: &ActorSystem, left: Duration) -> Option<TopReport> {
    let taker = snapshot::find(system, SNAPSHOT_TAKER)?;
    let query = TopQuery::new(TopRank::Depth).rows(1);
    taker.ask_within(TakeSnapshot(query), left).await.ok()
}

fn write_mailboxes(top: &TopReport, page: &mut MetricsPage) {
    let totals = &top.totals;
    let deepest = top.rows.first().map_or(0, |row| row.info.mailbox_len);
    for (name, help, value) in [
        (
            "strowger_mailbox_messages",
            "Messages waiting in all mailboxes.",
            totals.depth as f64,
        ),
        (
            "strowger_mailbox_messages_max",
            "Messages waiting in the fullest mailbox.",
            deepest as f64,
        ),
        (
            "strowger_mailboxes_nearly_full",
            "Mailboxes filled to at least 85 % of their capacity.",
            totals.nearly_full as f64,
        ),
        (
            "strowger_actor_memory_bytes",
            "Estimated memory of all actors and their mailboxes.",
            totals.memory as f64,
        ),
        (
            "strowger_messages_per_second",
            "Messages taken from mailboxes per second, between the last two readings.",
            totals.rate,
        ),
        (
            "strowger_busy_threads",
            "CPUs used by actors, between the last two readings.",
            totals.load,
        ),
    ] {
        page.single(name, MetricKind::Gauge, help, value);
    }
}

fn write_limits(usages: &[(&'static str, LimitUsage)], page: &mut MetricsPage) {
    let help = "Current usage of a limit.";
    let mut used = page.family("strowger_limit_used", MetricKind::Gauge, help);
    for (name, usage) in usages {
        used.sample(&[("limit", name)], usage.used);
    }
    let help = "Value of a limit.";
    let mut most = page.family("strowger_limit_max", MetricKind::Gauge, help);
    for (name, usage) in usages {
        if let Some(value) = usage.limit {
            most.sample(&[("limit", name)], value);
        }
    }
}
