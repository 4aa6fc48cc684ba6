//! What is asked for, read from octets that nobody has checked.

use crate::mcp;
use crate::metric::{Exposition, Kind};

/// What a client may look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Metrics,
    Health,
    Readiness,
    /// Not a page to look at: what agents say there is read by others.
    Agents,
}

/// A request that can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) page: Page,
    /// Whether the answer has a body: false for HEAD.
    pub(super) body: bool,
}

/// What comes of the octets that are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed {
    /// The head has not ended.
    Partial,
    Request(Request),
    Refused(Status),
}

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    TimedOut,
    HeadTooLarge,
    Unavailable,
}

/// All of them, in the order of their numbers.
pub(super) const STATUSES: [Status; 7] = [
    Status::Ok,
    Status::BadRequest,
    Status::NotFound,
    Status::MethodNotAllowed,
    Status::TimedOut,
    Status::HeadTooLarge,
    Status::Unavailable,
];

impl Status {
    pub(super) const fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::TimedOut => "408 Request Timeout",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Unavailable => "503 Service Unavailable",
        }
    }

    pub(super) fn number(self) -> u16 {
        // Three digits, as the lines above have them.
        let digits = self.line().bytes().take(3);
        digits.fold(0, |number, digit| number * 10 + u16::from(digit - b'0'))
    }

    /// What to tell a person about a request that is refused.
    pub(super) const fn told(self) -> &'static str {
        match self {
            Self::Ok => "",
            Self::Unavailable => "as many agents are connected as may be\n",
            Self::BadRequest => "this is not an HTTP/1 request\n",
            Self::NotFound => "there are /metrics, /healthz and /readyz\n",
            Self::MethodNotAllowed => "only GET and HEAD are answered\n",
            Self::TimedOut => "the request did not come in time\n",
            Self::HeadTooLarge => "the request line and headers are too long\n",
        }
    }
}

/// The most headers of a request.
const HEADERS: usize = 64;

/// Reads a request, of which the head may take `most` octets.
pub(super) fn parse(octets: &[u8], most: usize) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(octets) {
        Ok(httparse::Status::Partial) if octets.len() >= most => {
            Parsed::Refused(Status::HeadTooLarge)
        }
        Ok(httparse::Status::Partial) => Parsed::Partial,
        Ok(httparse::Status::Complete(head)) if head > most => {
            Parsed::Refused(Status::HeadTooLarge)
        }
        Ok(httparse::Status::Complete(_)) => match (request.method, request.path) {
            (Some(method), Some(target)) => {
                meant(method, target.split('?').next().unwrap_or_default())
            }
            _ => Parsed::Refused(Status::BadRequest),
        },
        Err(httparse::Error::TooManyHeaders) => Parsed::Refused(Status::HeadTooLarge),
        Err(_) => Parsed::Refused(Status::BadRequest),
    }
}

/// The token in the head of a request that was read, if it has one.
pub(super) fn token(octets: &[u8]) -> Option<&[u8]> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(octets).ok()?;
    let mut headers = request.headers.iter();
    let given = headers.find(|header| header.name.eq_ignore_ascii_case("authorization"))?;
    mcp::bearer(given.value)
}

/// What is asked for.
pub(super) fn meant(method: &str, path: &str) -> Parsed {
    let page = match path {
        "/metrics" => Page::Metrics,
        "/healthz" => Page::Health,
        "/readyz" => Page::Readiness,
        mcp::PATH => {
            let page = Page::Agents;
            return Parsed::Request(Request { page, body: true });
        }
        _ => return Parsed::Refused(Status::NotFound),
    };
    match method {
        "GET" => Parsed::Request(Request { page, body: true }),
        "HEAD" => Parsed::Request(Request { page, body: false }),
        _ => Parsed::Refused(Status::MethodNotAllowed),
    }
}

/// Writes how often each status was answered.
pub(super) fn write(counts: [u64; STATUSES.len()], turned_away: u64, page: &mut Exposition) {
    let mut family = page.family(
        "strowger_http_responses_total",
        Kind::Counter,
        "Requests that the HTTP door answered, by status.",
    );
    for (status, count) in STATUSES.iter().zip(counts) {
        let number = status.line().split(' ').next().unwrap_or_default();
        family.sample(&[("status", number)], count as f64);
    }
    page.one(
        "strowger_http_turned_away_total",
        Kind::Counter,
        "Silent clients that the HTTP door turned away because it had as many as it may.",
        turned_away as f64,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_its_head_says() {
        let page = |page| Parsed::Request(Request { page, body: true });
        let head = Request {
            page: Page::Health,
            body: false,
        };
        for (text, is) in [
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
                page(Page::Metrics),
            ),
            (
                "GET /readyz?verbose HTTP/1.0\r\n\r\n",
                page(Page::Readiness),
            ),
            ("HEAD /healthz HTTP/1.1\r\n\r\n", Parsed::Request(head)),
            ("POST /mcp HTTP/1.1\r\n\r\n{}", page(Page::Agents)),
            ("GET /metrics HTTP/1.1\r\n", Parsed::Partial),
            ("", Parsed::Partial),
            ("GET / HTTP/1.1\r\n\r\n", Parsed::Refused(Status::NotFound)),
            (
                "POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
                Parsed::Refused(Status::MethodNotAllowed),
            ),
            (
                "GET /metrics HTTP/2.0\r\n\r\n",
                Parsed::Refused(Status::BadRequest),
            ),
            ("\u{16}\u{3}\u{1}", Parsed::Refused(Status::BadRequest)),
        ] {
            assert_eq!(parse(text.as_bytes(), 1000), is, "{text:?}");
        }
    }

    #[test]
    fn a_head_may_be_as_long_as_its_limit_and_no_longer() {
        let text = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        let got = parse(text, text.len());
        assert!(matches!(got, Parsed::Request(_)), "{got:?}");
        let late = Parsed::Refused(Status::HeadTooLarge);
        assert_eq!(parse(text, text.len() - 1), late);
        assert_eq!(parse(&text[..20], 20), late);
        let many = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
        assert_eq!(parse(many.as_bytes(), 10_000), late);
    }
}
