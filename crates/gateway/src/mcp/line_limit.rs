//! Handling of overlong lines.
//!
//! rmcp skips a line that is longer than its limit, so the request in it would never be answered.
//! This reader passes all bytes on unchanged and watches them: after a line that was too long, it
//! inserts another one, a request with the same id whose answer gives the reason. Only the id of
//! the current line is stored.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};

/// Smallest permitted maximum length of a line: the line inserted after an overlong one must fit.
pub(super) const MIN_LINE_LIMIT: usize = 1024;

/// The method of the line inserted after an overlong one.
pub(super) const TOO_LONG: &str = "strowger/line-too-long";

/// A reader that passes lines on, and inserts another line after each that is too long.
pub(super) struct LineLimitReader<R> {
    inner: R,
    /// Maximum length of a line, in bytes with its terminator. rmcp has the same limit.
    max_len: usize,
    /// Number of bytes of the current line so far.
    length: usize,
    id: IdScanner,
    /// Bytes that were read but not passed on yet.
    ready: BytesMut,
}

impl<R> LineLimitReader<R> {
    pub(super) fn new(inner: R, max_len: usize) -> Self {
        Self {
            inner,
            max_len,
            length: 0,
            id: IdScanner::default(),
            ready: BytesMut::new(),
        }
    }

    /// Examines bytes and appends them to those to be passed on.
    fn push_bytes(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end + 1);
            self.push_line_part(line);
            if self.length > self.max_len {
                let notice = notice_line(self.id.id());
                self.ready.extend_from_slice(notice.as_bytes());
            }
            (self.length, self.id) = (0, IdScanner::default());
            bytes = rest;
        }
        self.push_line_part(bytes);
    }

    fn push_line_part(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        bytes.iter().for_each(|byte| self.id.take(*byte));
        self.ready.extend_from_slice(bytes);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimitReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ready.is_empty() {
            let mut bytes = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut chunk))?;
            self.push_bytes(chunk.filled());
        }
        let count = self.ready.len().min(to.remaining());
        to.put_slice(&self.ready[..count]);
        self.ready.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// Number of bytes to read at a time.
const CHUNK: usize = 8 * 1024;

/// Builds the line to insert after an overlong one.
fn notice_line(id: Option<Value>) -> String {
    let message = match id {
        Some(id) => json!({ "jsonrpc": "2.0", "id": id, "method": TOO_LONG }),
        // Not a valid message, so it is answered with an error without an id.
        None => json!({ "jsonrpc": "2.0", "id": {} }),
    };
    format!("{message}\n")
}

/// A scanner for the `id` member of a JSON object that sees one byte at a time.
#[derive(Default)]
struct IdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// `true` if the next string is a key of the top-level object.
    is_key: bool,
    part: JsonPart,
    key: Vec<u8>,
    id: Vec<u8>,
}

/// The part of the object that a byte belongs to.
#[derive(Default, PartialEq, Eq)]
enum JsonPart {
    #[default]
    Other,
    Key,
    Id,
}

/// Maximum length of an id, in bytes.
const MAX_ID_LEN: usize = 256;

impl IdScanner {
    fn take(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            self.keep(byte);
            if !self.in_string && self.part == JsonPart::Key {
                self.part = JsonPart::Other;
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.is_key {
                    (self.part, self.is_key) = (JsonPart::Key, false);
                    self.key.clear();
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.is_key = self.depth == 1 && byte == b'{';
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.part = JsonPart::Other;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                if self.key == b"\"id\"" {
                    self.part = JsonPart::Id;
                    self.id.clear();
                }
                return;
            }
            b',' if self.depth == 1 => (self.part, self.is_key) = (JsonPart::Other, true),
            _ => {}
        }
        self.keep(byte);
    }

    /// Stores a byte of a key or id. One byte beyond the maximum is stored as well, to show that it
    /// was exceeded.
    fn keep(&mut self, byte: u8) {
        let (kept, most) = match self.part {
            JsonPart::Other => return,
            JsonPart::Key => (&mut self.key, 8),
            JsonPart::Id => (&mut self.id, MAX_ID_LEN),
        };
        if kept.len() <= most {
            kept.push(byte);
        }
    }

    /// Returns the id, if it is valid.
    fn id(&self) -> Option<Value> {
        let id: Value = serde_json::from_slice(&self.id).ok()?;
        let is_id = id.is_string() || id.is_i64() || id.is_u64();
        (is_id && self.id.len() <= MAX_ID_LEN).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn scanned(text: &str) -> Option<Value> {
        let mut scanner = IdScanner::default();
        text.bytes().for_each(|byte| scanner.take(byte));
        scanner.id()
    }

    #[test]
    fn only_the_top_level_id_is_found() {
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
    async fn notice_follows_only_overlong_lines() {
        let text = "{\"id\":1}\n{\"id\":22}\n[\"a text\"]\n{\"id\":3}";
        let mut lines = LineLimitReader::new(text.as_bytes(), 9);
        let mut read = String::new();
        lines.read_to_string(&mut read).await.expect("it is text");
        let (known, unknown) = (notice_line(Some(json!(22))), notice_line(None));
        let expected =
            format!("{{\"id\":1}}\n{{\"id\":22}}\n{known}[\"a text\"]\n{unknown}{{\"id\":3}}");
        assert_eq!(read, expected);
    }
}
