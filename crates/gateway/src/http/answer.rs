//! HTTP answers.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

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
    let text = "missing or invalid token: send the header `Authorization: Bearer TOKEN` with a \
                token of this node\n";
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
