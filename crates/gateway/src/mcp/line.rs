//! Lines of an agent that are too long.
//!
//! The protocol's kit passes over a line that is longer than it keeps, and so its call would never
//! be answered. What is read here goes on to the kit as it came, and is looked at on its way: when
//! a line ends that was too long, another follows it, which asks under the same id for what is
//! answered with the reason. Of a line nothing is kept but its id.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest line, in bytes, with its end. The kit keeps as much.
pub(super) const LONGEST: usize = 16 << 20;

/// The method that follows a line that was too long.
pub(super) const TOO_LONG: &str = "strowger/line-too-long";

/// The lines of an agent, with one more behind each that is too long.
pub(super) struct Lines<R> {
    inner: R,
    longest: usize,
    /// Bytes of the line that has not ended.
    length: usize,
    id: IdScan,
    /// What was read and has not gone on.
    ready: BytesMut,
}

impl<R> Lines<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            longest: LONGEST,
            length: 0,
            id: IdScan::default(),
            ready: BytesMut::new(),
        }
    }

    /// Looks at what was read and lets it go on.
    fn take(&mut self, mut octets: &[u8]) {
        while let Some(end) = octets.iter().position(|octet| *octet == b'\n') {
            let (line, rest) = octets.split_at(end + 1);
            self.part(line);
            if self.length > self.longest {
                let follows = follows(self.id.id());
                self.ready.extend_from_slice(follows.as_bytes());
            }
            (self.length, self.id) = (0, IdScan::default());
            octets = rest;
        }
        self.part(octets);
    }

    fn part(&mut self, octets: &[u8]) {
        self.length = self.length.saturating_add(octets.len());
        octets.iter().for_each(|octet| self.id.take(*octet));
        self.ready.extend_from_slice(octets);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ready.is_empty() {
            let mut octets = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut octets);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut chunk))?;
            self.take(chunk.filled());
        }
        let count = self.ready.len().min(to.remaining());
        to.put_slice(&self.ready[..count]);
        self.ready.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// Bytes that are read at a time.
const CHUNK: usize = 8 * 1024;

/// The line behind one that was too long.
fn follows(id: Option<Value>) -> String {
    let message = match id {
        Some(id) => json!({ "jsonrpc": "2.0", "id": id, "method": TOO_LONG }),
        // It is no message, which is answered without an id.
        None => json!({ "jsonrpc": "2.0", "id": {} }),
    };
    format!("{message}\n")
}

/// The `id` of an object of JSON whose bytes pass by.
#[derive(Default)]
struct IdScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// A string would be the key of a member of the object.
    is_key: bool,
    what: Part,
    key: Vec<u8>,
    id: Vec<u8>,
}

/// What a byte belongs to.
#[derive(Default, PartialEq, Eq)]
enum Part {
    #[default]
    Other,
    Key,
    Id,
}

/// The longest id that is read.
const LONGEST_ID: usize = 256;

impl IdScan {
    fn take(&mut self, octet: u8) {
        if self.in_string {
            match octet {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            self.keep(octet);
            if !self.in_string && self.what == Part::Key {
                self.what = Part::Other;
            }
            return;
        }
        match octet {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.is_key {
                    (self.what, self.is_key) = (Part::Key, false);
                    self.key.clear();
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.is_key = self.depth == 1 && octet == b'{';
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.what = Part::Other;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                if self.key == b"\"id\"" {
                    self.what = Part::Id;
                    self.id.clear();
                }
                return;
            }
            b',' if self.depth == 1 => (self.what, self.is_key) = (Part::Other, true),
            _ => {}
        }
        self.keep(octet);
    }

    /// Keeps one byte more than what is longest, so that it is seen to be too long.
    fn keep(&mut self, octet: u8) {
        let (kept, most) = match self.what {
            Part::Other => return,
            Part::Key => (&mut self.key, 8),
            Part::Id => (&mut self.id, LONGEST_ID),
        };
        if kept.len() <= most {
            kept.push(octet);
        }
    }

    /// The id, if there is one that can be.
    fn id(&self) -> Option<Value> {
        let id: Value = serde_json::from_slice(&self.id).ok()?;
        let is_id = id.is_string() || id.is_i64() || id.is_u64();
        (is_id && self.id.len() <= LONGEST_ID).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn scanned(text: &str) -> Option<Value> {
        let mut scan = IdScan::default();
        text.bytes().for_each(|octet| scan.take(octet));
        scan.id()
    }

    #[test]
    fn the_id_is_that_of_the_message_and_of_nothing_in_it() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#, json!(7)),
            (
                r#"{"params":{"id":1,"a":[{"id":2}]},"id" : "a\"}b" }"#,
                json!("a\"}b"),
            ),
            (r#"{"method":"\"id\":3","id":4}"#, json!(4)),
            (r#"{"id":-1"#, json!(-1)),
        ] {
            assert_eq!(scanned(text), Some(id), "{text}");
        }
        for text in [
            "",
            "]]}}",
            r#"[{"id":1}]"#,
            r#"{"params":{"id":1}}"#,
            r#"{"id":{"a":1}}"#,
            r#"{"id":null}"#,
            r#"{"id":1.5}"#,
            r#"{"x":"id","y":1}"#,
        ] {
            assert_eq!(scanned(text), None, "{text}");
        }
        assert_eq!(
            scanned(&format!("{{\"id\":\"{}\"}}", "x".repeat(300))),
            None
        );
    }

    #[tokio::test]
    async fn a_line_follows_one_that_is_too_long_and_no_other() {
        let text = "{\"id\":1}\n{\"id\":22}\n[\"a text\"]\n{\"id\":3}";
        let mut lines = Lines::new(text.as_bytes());
        lines.longest = 9;
        let mut read = String::new();
        lines.read_to_string(&mut read).await.expect("it is text");
        let (known, unknown) = (follows(Some(json!(22))), follows(None));
        let expected =
            format!("{{\"id\":1}}\n{{\"id\":22}}\n{known}[\"a text\"]\n{unknown}{{\"id\":3}}");
        assert_eq!(read, expected);
    }
}
