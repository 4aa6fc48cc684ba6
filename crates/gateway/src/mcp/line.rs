//! The transport over a pair of streams: one message per line.
//!
//! rmcp's own transport drops a line that it cannot parse, so the request in it is never answered;
//! it also drops a last line without a line feed, and gives calls five seconds once the input has
//! ended. This transport answers each malformed line under the id that can be read, and reports the
//! end of the input only after all answers are written.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorCode, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

/// Smallest permitted maximum length of a line.
pub(super) const MIN_LINE_LIMIT: usize = 1024;

/// Interval at which the output is probed for a reader after the input has ended.
const PROBE: Duration = Duration::from_millis(100);

/// Lines that wait to be written.
const QUEUE: usize = 8;

/// Answers to one batch. The rest of it is not answered.
const MOST_REFUSALS: usize = 1000;

/// A transport that reads and writes one message per line.
pub(super) struct LineTransport<R> {
    read: BufReader<R>,
    /// The current line so far.
    line: Vec<u8>,
    /// Maximum length of a line, in bytes with its terminator.
    line_limit: usize,
    /// The scan of the current line, once it is too long to be kept.
    overlong: Option<IdScanner>,
    /// Answers to malformed lines that are not queued yet.
    refusals: VecDeque<String>,
    pending: PendingRequests,
    output: Option<mpsc::Sender<OutputLine>>,
    input_ended: CancellationToken,
    /// Time to answer what was read before the input ended.
    drain: Duration,
    drained: Option<Instant>,
}

/// A line to write, and the receiver of its end.
struct OutputLine {
    text: Vec<u8>,
    written: Option<oneshot::Sender<()>>,
}

/// The task that writes the lines. It ends after the transport.
pub(super) type Writing = tokio::task::JoinHandle<io::Result<()>>;

impl<R: AsyncRead + Send + Unpin> LineTransport<R> {
    /// Starts the task that writes. If the reader of the output is gone, `gone` is cancelled.
    pub(super) fn new<W>(
        read: R,
        write: W,
        line_limit: usize,
        drain: Duration,
        gone: CancellationToken,
    ) -> (Self, Writing)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (output, lines) = mpsc::channel(QUEUE);
        let input_ended = CancellationToken::new();
        let writing = tokio::spawn(write_lines(write, lines, input_ended.clone(), gone));
        let transport = Self {
            read: BufReader::new(read),
            line: Vec::new(),
            line_limit: line_limit.max(MIN_LINE_LIMIT),
            overlong: None,
            refusals: VecDeque::new(),
            pending: PendingRequests::default(),
            output: Some(output),
            input_ended,
            drain,
            drained: None,
        };
        (transport, writing)
    }

    /// Reads to the end of a line. Cancel-safe: a part of a line is kept for the next call.
    async fn read_line(&mut self) -> InputLine {
        loop {
            let chunk = match self.read.fill_buf().await {
                Ok(chunk) => chunk,
                Err(error) => {
                    tracing::debug!(%error, "the input of an agent failed");
                    &[]
                }
            };
            let is_end = chunk.is_empty();
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(chunk.len(), |end| end + 1);
            let piece = &chunk[..count];
            if let Some(scan) = &mut self.overlong {
                scan.take_all(piece);
            } else if self.line.len() + count > self.line_limit {
                let mut scan = IdScanner::default();
                scan.take_all(&std::mem::take(&mut self.line));
                scan.take_all(piece);
                self.overlong = Some(scan);
            } else {
                self.line.extend_from_slice(piece);
            }
            self.read.consume(count);
            if is_end {
                self.drained
                    .get_or_insert_with(|| Instant::now() + self.drain);
            } else if end.is_none() {
                continue;
            }
            return match self.overlong.take() {
                Some(scan) => InputLine::Overlong(scan.id()),
                None => InputLine::Whole(std::mem::take(&mut self.line)),
            };
        }
    }

    /// Parses a line. One that is malformed is answered instead.
    fn parse(&mut self, line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        let Ok(message) = serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line) else {
            self.refusals.extend(refusals(line));
            return None;
        };
        match &message {
            JsonRpcMessage::Request(request) if !self.pending.begin(&request.id) => {
                let id = request.id.clone().into_json_value();
                let text = "the id belongs to a request in progress: use another one";
                let refusal = refusal(Some(&id), ErrorCode::INVALID_REQUEST, text);
                self.refusals.push_back(refusal);
                return None;
            }
            // A cancelled request has no answer.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.pending.end(id);
                }
            }
            _ => {}
        }
        Some(message)
    }
}

/// A line of the input.
enum InputLine {
    /// A line that was read; empty at the end of the input.
    Whole(Vec<u8>),
    /// A line that was too long, and its id.
    Overlong(Option<Value>),
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let answered = id.map(|id| AnsweredRequest(self.pending.clone(), id));
        async move {
            // Dropped once the line is written, or cannot be.
            let _answered = answered;
            let mut text = serde_json::to_vec(&message)?;
            text.push(b'\n');
            let (written, is_written) = oneshot::channel();
            let line = OutputLine {
                text,
                written: Some(written),
            };
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let output = output.ok_or_else(closed)?;
            output.send(line).await.map_err(|_| closed())?;
            is_written.await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            while !self.refusals.is_empty() {
                let place = self.output.as_ref()?.reserve().await.ok()?;
                if let Some(refusal) = self.refusals.pop_front() {
                    place.send(OutputLine {
                        text: refusal.into_bytes(),
                        written: None,
                    });
                }
            }
            if let Some(drained) = self.drained {
                self.input_ended.cancel();
                if timeout_at(drained, self.pending.none()).await.is_err() {
                    tracing::warn!("calls were not answered in time after the end of the input");
                }
                return None;
            }
            match self.read_line().await {
                InputLine::Whole(line) => {
                    if let Some(message) = self.parse(&line) {
                        return Some(message);
                    }
                }
                InputLine::Overlong(id) => {
                    let text = format!(
                        "the message is larger than {} bytes (limit `line`): send it in parts, or \
                         raise the limit with --limit line=N",
                        self.line_limit
                    );
                    let code = ErrorCode::INVALID_REQUEST;
                    self.refusals.push_back(refusal(id.as_ref(), code, &text));
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output = None;
        Ok(())
    }
}

/// The requests that are not answered yet. Clones refer to the same requests.
#[derive(Clone)]
struct PendingRequests {
    ids: Arc<Mutex<HashSet<RequestId>>>,
    count: watch::Sender<usize>,
}

impl Default for PendingRequests {
    fn default() -> Self {
        Self {
            ids: Arc::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl PendingRequests {
    /// Adds a request. Returns `false` if its id belongs to another one.
    fn begin(&self, id: &RequestId) -> bool {
        let mut ids = self.ids.lock();
        let is_new = ids.insert(id.clone());
        self.count.send_replace(ids.len());
        is_new
    }

    fn end(&self, id: &RequestId) {
        let mut ids = self.ids.lock();
        ids.remove(id);
        self.count.send_replace(ids.len());
    }

    /// Waits until there is none.
    async fn none(&self) {
        let mut count = self.count.subscribe();
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

/// Removes a request when it is dropped.
struct AnsweredRequest(PendingRequests, RequestId);

impl Drop for AnsweredRequest {
    fn drop(&mut self) {
        self.0.end(&self.1);
    }
}

/// Writes lines, each as a whole, until there are no senders any more.
async fn write_lines<W: AsyncWrite + Unpin>(
    mut to: W,
    mut lines: mpsc::Receiver<OutputLine>,
    input_ended: CancellationToken,
    gone: CancellationToken,
) -> io::Result<()> {
    loop {
        let probe = async {
            input_ended.cancelled().await;
            sleep(PROBE).await;
        };
        let line = tokio::select! {
            line = lines.recv() => line,
            () = probe => {
                // Writing no bytes fails where the reader is gone and the stream knows it. Then
                // the calls under way have nobody to answer.
                if to.write(&[]).await.is_err() {
                    gone.cancel();
                    return Ok(());
                }
                continue;
            }
        };
        let Some(line) = line else {
            return to.shutdown().await.or(Ok(()));
        };
        let mut written = to.write_all(&line.text).await;
        if written.is_ok() {
            written = to.flush().await;
        }
        if let Err(error) = written {
            gone.cancel();
            return Err(error);
        }
        line.written.map(|written| written.send(()));
    }
}

/// Builds the answers to a line that is not a message.
fn refusals(line: &[u8]) -> Vec<String> {
    let value = match serde_json::from_slice::<Value>(line) {
        Ok(value) => value,
        Err(error) => {
            let mut scan = IdScanner::default();
            scan.take_all(line);
            let text = unparsable(line, &error);
            return vec![refusal(scan.id().as_ref(), ErrorCode::PARSE_ERROR, &text)];
        }
    };
    let code = ErrorCode::INVALID_REQUEST;
    let message = match value {
        Value::Object(message) => message,
        Value::Array(batch) => {
            let text = "batches are not supported: send each message on a line of its own";
            let ids = batch.iter().filter(|message| message["method"].is_string());
            let ids = ids.filter_map(|message| message.get("id"));
            let ids: Vec<_> = ids.filter(|id| is_id(id)).take(MOST_REFUSALS).collect();
            if ids.is_empty() {
                return vec![refusal(None, code, text)];
            }
            return ids
                .into_iter()
                .map(|id| refusal(Some(id), code, text))
                .collect();
        }
        _ => return vec![refusal(None, code, "invalid request: it is not an object")],
    };
    let id = message.get("id");
    let has = |key: &str| message.contains_key(key);
    let is_notification = id.is_none() && has("method");
    let is_response = !has("method") && (has("result") || has("error"));
    if is_notification || is_response {
        tracing::debug!("ignored a malformed notification or response");
        return Vec::new();
    }
    let is = |key: &str, is: fn(&Value) -> bool| message.get(key).is_none_or(is);
    let why = if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        "`jsonrpc` must be \"2.0\""
    } else if !has("method") {
        "`method` is missing"
    } else if !is("method", Value::is_string) {
        "`method` must be a string"
    } else if !is("id", is_id) {
        "`id` must be a string or a whole number"
    } else if !is("params", Value::is_object) {
        "`params` must be an object"
    } else if has("result") || has("error") {
        "it is a request and a response at once"
    } else {
        "it is not a message of the protocol"
    };
    let id = id.filter(|id| is_id(id));
    vec![refusal(id, code, &format!("invalid request: {why}"))]
}

/// Describes why a line is not JSON.
fn unparsable(line: &[u8], error: &serde_json::Error) -> String {
    if let Err(error) = std::str::from_utf8(line) {
        let at = error.valid_up_to();
        return format!("the message is not UTF-8 (at byte {at}): send text as UTF-8");
    }
    let text = format!("the message is not JSON: {error}");
    if text.contains("surrogate") || text.contains("hex escape") {
        return format!("{text}; half of a surrogate pair is not text: send U+FFFD instead");
    }
    text
}

/// Returns `true` for a valid id of a request.
fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64()
}

/// Builds a line with an error. Without an id, it has none, as the protocol's schema wants it.
fn refusal(id: Option<&Value>, code: ErrorCode, text: &str) -> String {
    let mut message = json!({ "jsonrpc": "2.0", "error": { "code": code, "message": text } });
    if let Some(id) = id {
        message["id"] = id.clone();
    }
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
    what: JsonPart,
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
    fn take_all(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.take(*byte));
    }

    fn take(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            self.keep(byte);
            if !self.in_string && self.what == JsonPart::Key {
                self.what = JsonPart::Other;
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.is_key {
                    (self.what, self.is_key) = (JsonPart::Key, false);
                    self.key.clear();
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.is_key = self.depth == 1 && byte == b'{';
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.what = JsonPart::Other;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                if self.key == b"\"id\"" {
                    self.what = JsonPart::Id;
                    self.id.clear();
                }
                return;
            }
            b',' if self.depth == 1 => (self.what, self.is_key) = (JsonPart::Other, true),
            _ => {}
        }
        self.keep(byte);
    }

    /// Stores a byte of a key or id. One byte beyond the maximum is stored as well, to show that it
    /// was exceeded.
    fn keep(&mut self, byte: u8) {
        let (kept, most) = match self.what {
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
        (is_id(&id) && self.id.len() <= MAX_ID_LEN).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Option<Value> {
        let mut scan = IdScanner::default();
        text.bytes().for_each(|byte| scan.take(byte));
        scan.id()
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

    #[test]
    fn malformed_lines_are_answered_under_the_id_that_they_have() {
        let deep = format!(
            "{{\"id\":9,\"method\":\"x\",\"params\":{}1",
            "[".repeat(200)
        );
        for (line, id, code) in [
            (
                &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}"[..],
                json!(1),
                -32700,
            ),
            (b"{\"id\":\"a\",\"method\":\"\xff\"}", json!("a"), -32700),
            (b"{\"id\":2,\"params\":NaN}", json!(2), -32700),
            (b"{\"id\":3,\"method\":\"x\"", json!(3), -32700),
            (b"{\"id\":4,}", json!(4), -32700),
            (deep.as_bytes(), json!(9), -32700),
            (b"hello", Value::Null, -32700),
            (b"7", Value::Null, -32600),
            (b"{\"id\":5}", json!(5), -32600),
            (b"{\"id\":6,\"method\":\"ping\"}", json!(6), -32600),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":8}",
                json!(7),
                -32600,
            ),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
                Value::Null,
                -32600,
            ),
            (b"[]", Value::Null, -32600),
            (
                b"[{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}]",
                json!(8),
                -32600,
            ),
        ] {
            let said = refusals(line);
            let shown = String::from_utf8_lossy(line);
            assert_eq!(said.len(), 1, "{shown}: {said:?}");
            let said: Value = serde_json::from_str(&said[0]).expect("it is JSON");
            assert_eq!(
                (&said["id"], &said["error"]["code"]),
                (&id, &json!(code)),
                "{shown}"
            );
        }
        // Notifications and responses are never answered.
        for line in [
            "{\"method\":7,\"result\":1,\"id\":1}",
            "{\"method\":\"x\"}",
            "{\"id\":1,\"result\":5}",
        ] {
            let said = refusals(line.as_bytes());
            assert_eq!(said.is_empty(), !line.contains("7"), "{line}: {said:?}");
        }
    }
}
