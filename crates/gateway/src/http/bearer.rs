//! The token of a request.

use hyper::header::{self, HeaderMap};

/// Returns the token of a request, if it has one.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    bearer(headers.get(header::AUTHORIZATION)?.as_bytes())
}

/// Returns the token of `Authorization: Bearer TOKEN`. The scheme is case-insensitive (RFC 9110
/// §11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    let token = token.strip_prefix(b" ")?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii_start())
}

const SCHEME: &[u8] = b"Bearer";
