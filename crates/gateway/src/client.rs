//! A client for calls to a running node.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::BytesMut;
use serde_json::Value;
use strowger::{ContentType, Fault, FaultCode, Payload};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout_at};

use crate::connection::{ByteStream, PROTOCOL};
use crate::frame::{Frame, FrameDecoder, FrameError, FrameKind, HEADER_LEN};

/// The error returned when a call fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No node listens on the socket.
    #[error("no node listens at {}", path.display())]
    NoNode {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The connection failed before the call was sent.
    #[error("connection to the node failed: {0}")]
    Io(#[from] io::Error),
    /// The node closed the connection before the call was sent.
    #[error("the node closed the connection")]
    Closed,
    /// The connection was lost after at least a part of the call was sent: the call may have been
    /// handled.
    #[error("the connection to the node was lost after the call was sent")]
    Lost {
        /// The error of the system; `None` if the node closed the connection.
        source: Option<io::Error>,
    },
    /// The deadline cannot be encoded. Nothing was sent.
    #[error("invalid deadline {0:?}: must be from 1 ms to 2^32 - 1 ms")]
    InvalidDeadline(Duration),
    /// The peer does not support this version of the protocol.
    #[error("not a node, or an incompatible version: {0}")]
    NotANode(String),
    /// The peer sent bytes that are not a frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The node answered with a fault.
    #[error("{}", .0.message)]
    Fault(Fault),
    /// The node did not reply before the deadline, plus two seconds.
    #[error("no reply within {0:?}")]
    TimedOut(Duration),
}

impl ClientError {
    /// Returns the code that corresponds to the error. [`FaultCode::Unreachable`] means that the
    /// call was not sent, so it is always safe to send it again; [`FaultCode::Lost`] means that it
    /// may have been handled.
    #[must_use]
    pub const fn code(&self) -> FaultCode {
        match self {
            Self::NoNode { .. } | Self::Io(_) | Self::Closed => FaultCode::Unreachable,
            Self::Lost { .. } => FaultCode::Lost,
            Self::NotANode(_) | Self::Frame(_) => FaultCode::Protocol,
            Self::Fault(fault) => fault.code,
            Self::TimedOut(_) => FaultCode::Deadline,
            Self::InvalidDeadline(_) => FaultCode::BadRequest,
        }
    }
}

/// Converts a deadline to milliseconds, as frames encode it.
fn deadline_millis(deadline: Duration) -> Result<u32, ClientError> {
    // Zero would select the node's own deadline, and a longer one would be truncated.
    match u32::try_from(deadline.as_millis()) {
        Ok(deadline_millis @ 1..) => Ok(deadline_millis),
        _ => Err(ClientError::InvalidDeadline(deadline)),
    }
}

/// Maximum payload that a client accepts, in bytes.
const MAX_FRAME: usize = 16 * 1024 * 1024;
/// Time limit for the hello frame: as long as for a call, because the node may be just as busy.
const HELLO_TIMEOUT: Duration = DEFAULT_DEADLINE;
/// Extra time after the deadline to wait for the node's own fault about it.
const DEADLINE_SLACK: Duration = Duration::from_secs(2);
/// Time limit of a stream without a deadline: a year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// Number of rows requested in advance.
const CREDIT_WINDOW: u32 = 256;
/// Default deadline of calls.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// A connection to a running node, for one call at a time.
///
/// A payload may be up to 16 MiB.
pub struct Client {
    stream: Box<dyn ByteStream>,
    decoder: FrameDecoder,
    names: BTreeMap<String, u32>,
    last_id: u32,
    deadline: Duration,
    /// Calls whose rows are not read any more.
    abandoned: VecDeque<u32>,
    /// Set before the first byte of a call is written.
    call_sent: bool,
}

impl Client {
    /// Connects to the node whose control socket is at `path`.
    ///
    /// # Errors
    /// Returns an error if no node listens there, or it sends no hello frame within ten seconds.
    pub async fn connect(path: impl AsRef<Path>) -> Result<Self, ClientError> {
        let path = path.as_ref();
        let stream = UnixStream::connect(path).await;
        let stream = stream.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ClientError::NoNode {
                path: path.to_owned(),
                source,
            },
            _ => ClientError::Io(source),
        })?;
        Self::from_stream(stream).await
    }

    /// Connects to the node that accepts frames at `address`, and sends the token that it requires.
    ///
    /// # Errors
    /// Returns an error if no node listens there, or it sends no hello frame within ten seconds. A
    /// wrong token is reported by the first call.
    pub async fn connect_tcp(address: SocketAddr, token: &str) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut client = Self::from_stream(stream).await?;
        let token =
            Frame::new(FrameKind::Token, 0).with_payload(ContentType::Text, token.to_owned());
        let mut bytes = BytesMut::new();
        token.encode_into(MAX_FRAME, &mut bytes)?;
        client.send(&bytes, Instant::now() + HELLO_TIMEOUT).await?;
        Ok(client)
    }

    pub(crate) async fn from_stream(
        stream: impl ByteStream + 'static,
    ) -> Result<Self, ClientError> {
        let mut client = Self {
            stream: Box::new(stream),
            decoder: FrameDecoder::new(MAX_FRAME),
            names: BTreeMap::new(),
            last_id: 0,
            deadline: DEFAULT_DEADLINE,
            abandoned: VecDeque::new(),
            call_sent: false,
        };
        let hello = client
            .receive(Instant::now() + HELLO_TIMEOUT, HELLO_TIMEOUT)
            .await?;
        match hello.kind {
            FrameKind::Error => return Err(ClientError::Fault(fault_of(&hello))),
            FrameKind::Hello => {}
            other => {
                let text = format!("the first frame has kind {other}");
                return Err(ClientError::NotANode(text));
            }
        }
        let protocol = json_of(&hello.into_payload())?["protocol"].as_u64();
        if protocol < Some(PROTOCOL) {
            let text = format!("protocol {protocol:?}, but {PROTOCOL} or later is required");
            return Err(ClientError::NotANode(text));
        }
        Ok(client)
    }

    /// Sets the deadline of the calls that follow; the default is ten seconds. Calls refuse a
    /// deadline shorter than 1 ms or longer than 2^32 - 1 ms.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Calls a method, or asks an actor by an address and the name of a message, as in
    /// `@(counter) sum`, and waits for the reply. The rows of a listing are returned as an array.
    ///
    /// # Errors
    /// Returns an error if there is no reply before the deadline, or the reply is a fault.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, ClientError> {
        let mut rows = self.rows(method, params).await?;
        let mut list = Vec::new();
        loop {
            match rows.step().await? {
                RowStep::Row(row) => list.push(json_of(&row)?),
                RowStep::Value(value) => return json_of(&value),
                RowStep::End => return Ok(Value::Array(list)),
            }
        }
    }

    /// Asks an actor as [`call`](Self::call) does, and returns the reply unchanged, whether it is
    /// bytes or JSON. To read a stream, use [`stream`](Self::stream).
    ///
    /// # Errors
    /// Returns an error if there is no reply before the deadline, or the reply is a fault:
    /// [`FaultCode::BadRequest`] if the message is a stream.
    pub async fn ask(&mut self, name: &str, payload: Value) -> Result<Payload, ClientError> {
        let deadline = Some(self.deadline);
        let asked = self.begin(FrameKind::Call, name, &payload, deadline, 0);
        match asked.await?.step().await? {
            RowStep::Value(value) => Ok(value),
            RowStep::End => Ok(Payload::EMPTY),
            RowStep::Row(_) => {
                let text = format!("{name} sent an item without credit");
                Err(ClientError::Fault(Fault::new(FaultCode::Protocol, text)))
            }
        }
    }

    /// Calls a method and reads its rows one by one, as they arrive. The node sends at most 256
    /// rows ahead of the reader.
    ///
    /// # Errors
    /// Returns an error if the call cannot be sent.
    pub async fn rows(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<RowReader<'_>, ClientError> {
        let deadline = Some(self.deadline);
        self.begin(FrameKind::Call, method, &params, deadline, CREDIT_WINDOW)
            .await
    }

    /// Reads a stream, such as `@(topic/n4/sessions) subscribe`, which may go on forever.
    ///
    /// # Errors
    /// Returns an error if the call cannot be sent.
    pub async fn stream(
        &mut self,
        name: &str,
        payload: Value,
    ) -> Result<RowReader<'_>, ClientError> {
        self.begin(FrameKind::Call, name, &payload, None, CREDIT_WINDOW)
            .await
    }

    /// Sends a tell to an actor, by an address and the name of a message, as in `@(counter) add`.
    /// Completes once the message is in its mailbox.
    ///
    /// # Errors
    /// Returns an error if the message is refused.
    pub async fn tell(&mut self, name: &str, payload: Value) -> Result<(), ClientError> {
        let deadline = Some(self.deadline);
        let told = self.begin(FrameKind::Tell, name, &payload, deadline, 0);
        told.await?.step().await.map(drop)
    }

    async fn begin(
        &mut self,
        kind: FrameKind,
        method: &str,
        params: &Value,
        deadline: Option<Duration>,
        credit: u32,
    ) -> Result<RowReader<'_>, ClientError> {
        let deadline_millis = deadline.map_or(Ok(0), deadline_millis)?;
        let expires_at =
            Instant::now() + deadline.map_or(FOREVER, |deadline| deadline + DEADLINE_SLACK);
        let mut bytes = BytesMut::new();
        while let Some(id) = self.abandoned.pop_front() {
            Frame::new(FrameKind::Cancel, id).encode_into(MAX_FRAME, &mut bytes)?;
        }
        let target = match self.names.get(method) {
            Some(target) => *target,
            None => {
                let target = u32::try_from(self.names.len()).unwrap_or(u32::MAX - 1) + 1;
                let mut name = Frame::new(FrameKind::Name, 0)
                    .with_payload(ContentType::Text, method.to_owned());
                name.target = target;
                name.encode_into(MAX_FRAME, &mut bytes)?;
                self.names.insert(method.to_owned(), target);
                target
            }
        };
        self.last_id += 1;
        let id = self.last_id;
        let mut call = match params {
            Value::Null => Frame::new(kind, id),
            params => Frame::new(kind, id).with_json(params),
        };
        call.target = target;
        call.deadline = deadline_millis;
        call.credit = credit;
        call.encode_into(MAX_FRAME, &mut bytes)?;
        self.call_sent = true;
        self.send(&bytes, expires_at).await?;
        Ok(RowReader {
            client: self,
            id,
            expires_at,
            consumed: 0,
            ended: false,
        })
    }

    async fn send(&mut self, bytes: &[u8], expires_at: Instant) -> Result<(), ClientError> {
        match timeout_at(expires_at, self.stream.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            // An error frame sent before closing is more specific than the broken pipe.
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                match self.receive(expires_at, self.deadline).await {
                    Ok(frame) if frame.kind == FrameKind::Error => {
                        Err(ClientError::Fault(fault_of(&frame)))
                    }
                    _ => Err(self.lost(None)),
                }
            }
            Ok(Err(error)) => Err(self.lost(Some(error))),
            Err(_) => Err(ClientError::TimedOut(self.deadline)),
        }
    }

    /// Builds the error for a lost connection.
    fn lost(&self, source: Option<io::Error>) -> ClientError {
        match source {
            source if self.call_sent => ClientError::Lost { source },
            Some(source) => ClientError::Io(source),
            None => ClientError::Closed,
        }
    }

    async fn receive(&mut self, expires_at: Instant, span: Duration) -> Result<Frame, ClientError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(frame);
            }
            let read = self.stream.read_buf(self.decoder.buffer());
            match timeout_at(expires_at, read).await {
                Ok(Ok(0)) => {
                    // An incomplete frame is lost with its connection.
                    return Err(self.lost(None));
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(self.lost(None));
                }
                Ok(Err(error)) => return Err(self.lost(Some(error))),
                Err(_) => return Err(ClientError::TimedOut(span)),
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("last_id", &self.last_id)
            .finish_non_exhaustive()
    }
}

enum RowStep {
    Row(Payload),
    Value(Payload),
    End,
}

/// The rows of a listing, as they arrive. Dropping it cancels the call.
#[derive(Debug)]
pub struct RowReader<'a> {
    client: &'a mut Client,
    id: u32,
    expires_at: Instant,
    consumed: u32,
    ended: bool,
}

impl RowReader<'_> {
    /// Returns the next row; `None` after the last one. The output of a method without a listing is
    /// returned as a single row.
    ///
    /// # Errors
    /// Returns an error if the call failed, or nothing arrived before its deadline.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        if self.ended {
            return Ok(None);
        }
        Ok(match self.step().await? {
            RowStep::Row(row) | RowStep::Value(row) => Some(json_of(&row)?),
            RowStep::End => None,
        })
    }

    async fn step(&mut self) -> Result<RowStep, ClientError> {
        loop {
            let frame = self
                .client
                .receive(self.expires_at, self.client.deadline)
                .await?;
            let is_ours = frame.id == self.id;
            match frame.kind {
                FrameKind::Error if is_ours || frame.id == 0 => {
                    self.ended = true;
                    return Err(ClientError::Fault(fault_of(&frame)));
                }
                FrameKind::Done if is_ours => {
                    self.ended = true;
                    return Ok(match frame.content {
                        ContentType::None => RowStep::End,
                        _ => RowStep::Value(frame.into_payload()),
                    });
                }
                FrameKind::Item if is_ours => {
                    self.replenish_credit().await?;
                    return Ok(RowStep::Row(frame.into_payload()));
                }
                // Answers to calls that were abandoned before.
                _ => {}
            }
        }
    }

    /// Grants more credit when half of the rows requested so far have arrived.
    async fn replenish_credit(&mut self) -> Result<(), ClientError> {
        self.consumed += 1;
        if self.consumed < CREDIT_WINDOW / 2 {
            return Ok(());
        }
        let mut credit = Frame::new(FrameKind::Credit, self.id);
        credit.credit = self.consumed;
        self.consumed = 0;
        let mut bytes = BytesMut::with_capacity(HEADER_LEN);
        credit.encode_into(MAX_FRAME, &mut bytes)?;
        self.client.send(&bytes, self.expires_at).await
    }
}

impl Drop for RowReader<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.client.abandoned.push_back(self.id);
        }
    }
}

fn fault_of(frame: &Frame) -> Fault {
    match json_of(&frame.clone().into_payload()) {
        Ok(value) => Fault::from_json(&value).unwrap_or_else(|wrong| wrong),
        Err(error) => Fault::new(FaultCode::Protocol, error.to_string()),
    }
}

fn json_of(payload: &Payload) -> Result<Value, ClientError> {
    payload
        .decode()
        .map_err(|fault| ClientError::Fault(Fault::new(FaultCode::Protocol, fault.message)))
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use serde_json::json;
    use tokio::io::DuplexStream;

    use super::*;

    /// Creates a client of a node that runs this function and then disconnects.
    async fn client_of<F: Future<Output = ()> + Send + 'static>(
        node: impl FnOnce(DuplexStream) -> F,
    ) -> Result<Client, ClientError> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(node(theirs));
        Client::from_stream(ours).await
    }

    async fn hello(node: &mut DuplexStream) {
        let mut bytes = BytesMut::new();
        let hello = Frame::new(FrameKind::Hello, 0).with_json(&json!({ "protocol": PROTOCOL }));
        hello
            .encode_into(MAX_FRAME, &mut bytes)
            .expect("it is short");
        node.write_all(&bytes).await.expect("there is room");
    }

    #[tokio::test]
    async fn error_tells_if_the_call_was_sent() {
        let before = client_of(|node| async move { drop(node) }).await;
        assert_eq!(
            before.map(drop).map_err(|error| error.code()),
            Err(FaultCode::Unreachable)
        );
        let after_hello = client_of(|mut node| async move { hello(&mut node).await }).await;
        let mut client = after_hello.expect("it says hello");
        let lost = client.call("tree", Value::Null).await;
        assert_eq!(lost.map_err(|error| error.code()), Err(FaultCode::Lost));
        let after_call = client_of(|mut node| async move {
            hello(&mut node).await;
            node.read_u8().await.expect("a call comes");
        });
        let mut client = after_call.await.expect("it says hello");
        let lost = client.call("tree", Value::Null).await;
        assert_eq!(lost.map_err(|error| error.code()), Err(FaultCode::Lost));
    }

    #[tokio::test(start_paused = true)]
    async fn silent_node_is_a_deadline_error() {
        let silent = client_of(|mut node| async move {
            hello(&mut node).await;
            std::future::pending().await
        });
        let mut client = silent.await.expect("it says hello");
        let none = client.call("tree", Value::Null).await;
        assert_eq!(none.map_err(|error| error.code()), Err(FaultCode::Deadline));
    }

    #[tokio::test]
    async fn unencodable_deadline_is_refused_before_anything_is_sent() {
        let node = client_of(|mut node| async move {
            hello(&mut node).await;
            let _ = node.read_u8().await;
        });
        let mut client = node.await.expect("it says hello");
        for deadline in [
            Duration::ZERO,
            Duration::from_micros(999),
            Duration::from_millis(1 << 32),
            Duration::MAX,
        ] {
            client.set_deadline(deadline);
            let calls = [
                client.call("tree", Value::Null).await.map(drop),
                client.ask("@(a) b", Value::Null).await.map(drop),
                client.tell("@(a) b", Value::Null).await,
            ];
            for call in calls {
                assert_eq!(
                    call.map_err(|error| error.code()),
                    Err(FaultCode::BadRequest)
                );
            }
        }
        assert!(!client.call_sent, "nothing was sent");
        assert_eq!(deadline_millis(Duration::from_millis(1)).ok(), Some(1));
        let most = Duration::from_millis(u64::from(u32::MAX));
        assert_eq!(deadline_millis(most).ok(), Some(u32::MAX));
    }
}
