//! HTTP answers, and counters for them.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use crate::metric::{Exposition, MetricKind};

pub(crate) type HttpAnswer = Response<HttpBody>;
type HttpBody = BoxBody<Bytes, Infallible>;

/// Creates a plain-text answer.
pub(crate) fn text_answer(status: StatusCode, text: impl Into<Bytes>) -> HttpAnswer {
    answer_of_kind("text/plain; charset=utf-8", status, text)
}

pub(crate) fn answer_of_kind(
    kind: &'static str,
    status: StatusCode,
    body: impl Into<Bytes>,
) -> HttpAnswer {
    let mut answer = Response::new(Full::new(body.into()).boxed());
    *answer.status_mut() = status;
    with_header(answer, header::CONTENT_TYPE, kind)
}

pub(crate) fn with_header(
    mut answer: HttpAnswer,
    name: HeaderName,
    value: &'static str,
) -> HttpAnswer {
    let value = HeaderValue::from_static(value);
    answer.headers_mut().insert(name, value);
    answer
}

/// Creates the answer to a request that lacks a valid token.
pub(crate) fn unauthorized() -> HttpAnswer {
    let text = "the header `Authorization: Bearer TOKEN` is wanted, with a token of this node\n";
    let answer = text_answer(StatusCode::UNAUTHORIZED, text);
    with_header(answer, header::WWW_AUTHENTICATE, "Bearer")
}

/// Creates the answer to a client that may try again a moment later.
pub(crate) fn unavailable(text: impl Into<Bytes>) -> HttpAnswer {
    let answer = text_answer(StatusCode::SERVICE_UNAVAILABLE, text);
    with_header(answer, header::RETRY_AFTER, "1")
}

/// Marks the last answer of a connection.
pub(super) fn last_answer(answer: HttpAnswer) -> HttpAnswer {
    with_header(answer, header::CONNECTION, "close")
}

/// Keeps a value alive until the answer was sent, or its client is gone.
pub(crate) fn with_guard(answer: HttpAnswer, kept: impl Send + Sync + 'static) -> HttpAnswer {
    answer.map(|content| {
        let keep = move |never| {
            let _kept = &kept;
            never
        };
        content.map_err(keep).boxed()
    })
}

/// Number of answers by status, and number of clients that were turned away.
#[derive(Default)]
pub(super) struct AnswerCounters {
    by_status: [AtomicU64; STATUSES.len()],
    others: AtomicU64,
    turned_away: AtomicU64,
}

/// The statuses of this endpoint and of MCP.
const STATUSES: [StatusCode; 16] = [
    StatusCode::OK,
    StatusCode::ACCEPTED,
    StatusCode::NO_CONTENT,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::CONFLICT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

impl AnswerCounters {
    pub(super) fn count(&self, status: StatusCode) {
        let number = STATUSES.iter().position(|one| *one == status);
        let count = number.map_or(&self.others, |number| &self.by_status[number]);
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn write(&self, page: &mut Exposition) {
        let mut family = page.family(
            "strowger_http_responses_total",
            MetricKind::Counter,
            "Requests that the HTTP door answered, by status.",
        );
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64;
        for (status, count) in STATUSES.iter().zip(&self.by_status) {
            family.sample(&[("status", status.as_str())], value(count));
        }
        family.sample(&[("status", "other")], value(&self.others));
        page.one(
            "strowger_http_turned_away_total",
            MetricKind::Counter,
            "Silent clients that the HTTP door turned away because it had as many as it may.",
            value(&self.turned_away),
        );
    }
}
