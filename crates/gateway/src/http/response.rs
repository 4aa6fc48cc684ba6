//! HTTP responses.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

pub(crate) type HttpResponse = Response<HttpBody>;
type HttpBody = BoxBody<Bytes, Infallible>;

/// Creates a plain-text response.
pub(crate) fn text_response(status: StatusCode, text: impl Into<Bytes>) -> HttpResponse {
    typed_response("text/plain; charset=utf-8", status, text)
}

pub(crate) fn typed_response(
    kind: &'static str,
    status: StatusCode,
    body: impl Into<Bytes>,
) -> HttpResponse {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    with_header(response, header::CONTENT_TYPE, kind)
}

pub(crate) fn with_header(
    mut response: HttpResponse,
    name: HeaderName,
    value: &'static str,
) -> HttpResponse {
    let value = HeaderValue::from_static(value);
    response.headers_mut().insert(name, value);
    response
}

/// Creates the response to a request that lacks a valid token.
pub(crate) fn unauthorized() -> HttpResponse {
    let text = "missing or invalid token: send the header `Authorization: Bearer TOKEN` with a \
                token of this node\n";
    let response = text_response(StatusCode::UNAUTHORIZED, text);
    with_header(response, header::WWW_AUTHENTICATE, "Bearer")
}

/// Creates the response to a client that may try again a moment later.
pub(crate) fn unavailable(text: impl Into<Bytes>) -> HttpResponse {
    let response = text_response(StatusCode::SERVICE_UNAVAILABLE, text);
    with_header(response, header::RETRY_AFTER, "1")
}

/// Marks the last response of a connection.
pub(super) fn closing_response(response: HttpResponse) -> HttpResponse {
    with_header(response, header::CONNECTION, "close")
}

/// Keeps a value alive until the response was sent, or its client is gone.
pub(crate) fn with_guard(response: HttpResponse, kept: impl Send + Sync + 'static) -> HttpResponse {
    response.map(|content| {
        let keep = move |never| {
            let _kept = &kept;
            never
        };
        content.map_err(keep).boxed()
    })
}
