//! The other side: calls to a running node.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::BytesMut;
use serde_json::Value;
use strowger::{Code, Content, Fault, Payload};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout_at};

use crate::connection::{Octets, PROTOCOL};
use crate::frame::{Decoder, Frame, FrameError, HEADER, Kind};

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens at the socket.
    #[error("no node listens at {}", path.display())]
    NoNode {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The connection failed.
    #[error("connection to the node: {0}")]
    Io(#[from] io::Error),
    /// The node closed the connection.
    #[error("the node closed the connection")]
    Closed,
    /// What answers there does not speak our protocol.
    #[error("what listens there is not a node, or another version: {0}")]
    NotANode(String),
    /// What came is not a frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The node answered with a fault.
    #[error("{}", .0.message)]
    Fault(Fault),
    /// The node did not answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

/// The longest payload that a client takes.
const FRAME: usize = 16 * 1024 * 1024;
/// How long a node may take to say hello: as long as over a call, for it may be as busy.
const HELLO: Duration = DEADLINE;
/// How much longer than the deadline we wait for the node's own word that it has passed.
const SLACK: Duration = Duration::from_secs(2);
/// How long a stream without a deadline may take: a year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// How many rows are asked for ahead.
const AHEAD: u32 = 256;
/// The deadline of calls, unless set.
const DEADLINE: Duration = Duration::from_secs(10);

/// A connection to a running node: one call at a time.
pub struct Client {
    stream: Box<dyn Octets>,
    decoder: Decoder,
    names: BTreeMap<String, u32>,
    last_id: u32,
    deadline: Duration,
    /// Calls whose rows nobody reads any more.
    abandoned: VecDeque<u32>,
}

impl Client {
    /// Connects to the node whose control socket is at `path`.
    ///
    /// # Errors
    /// When nobody listens there, or somebody else than a node.
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
        Self::over(stream).await
    }

    /// Connects to the node that takes frames at `address`, where a token is wanted.
    ///
    /// # Errors
    /// When nobody listens there, or somebody else than a node. A wrong token is told by the first
    /// call.
    pub async fn connect_tcp(address: SocketAddr, token: &str) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut client = Self::over(stream).await?;
        let token = Frame::new(Kind::Token, 0).with_payload(Content::Text, token.to_owned());
        let mut octets = BytesMut::new();
        token.encode_into(FRAME, &mut octets)?;
        client.send(&octets, Instant::now() + HELLO).await?;
        Ok(client)
    }

    pub(crate) async fn over(stream: impl Octets + 'static) -> Result<Self, ClientError> {
        let mut client = Self {
            stream: Box::new(stream),
            decoder: Decoder::new(FRAME),
            names: BTreeMap::new(),
            last_id: 0,
            deadline: DEADLINE,
            abandoned: VecDeque::new(),
        };
        let hello = client.receive(Instant::now() + HELLO, HELLO).await?;
        match hello.kind {
            Kind::Error => return Err(ClientError::Fault(fault_of(&hello))),
            Kind::Hello => {}
            other => {
                let text = format!("it began with a frame of kind {other}");
                return Err(ClientError::NotANode(text));
            }
        }
        let protocol = json_of(&hello.into_payload())?["protocol"].as_u64();
        if protocol < Some(PROTOCOL) {
            let text = format!("protocol {protocol:?}, {PROTOCOL} or later is wanted");
            return Err(ClientError::NotANode(text));
        }
        Ok(client)
    }

    /// Gives the calls that follow another deadline; ten seconds unless set.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Calls a method, or asks an actor by an address and the name of a message, as in
    /// `@(counter) sum`, and waits for the answer; the rows of a listing come as one array.
    ///
    /// # Errors
    /// When there is no answer, or a fault in its place.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, ClientError> {
        let mut rows = self.rows(method, params).await?;
        let mut list = Vec::new();
        loop {
            match rows.step().await? {
                Step::Row(row) => list.push(json_of(&row)?),
                Step::Value(value) => return json_of(&value),
                Step::End => return Ok(Value::Array(list)),
            }
        }
    }

    /// Asks an actor as [`call`](Self::call) does, and returns its answer as it came: octets as
    /// well as JSON. The items of a stream come as one array.
    ///
    /// # Errors
    /// When there is no answer, or a fault in its place.
    pub async fn ask(&mut self, name: &str, payload: Value) -> Result<Payload, ClientError> {
        let mut rows = self.rows(name, payload).await?;
        let mut list = Vec::new();
        loop {
            match rows.step().await? {
                Step::Row(row) => list.push(json_of(&row)?),
                Step::Value(value) => return Ok(value),
                Step::End if list.is_empty() => return Ok(Payload::NONE),
                Step::End => return Payload::json(&list).map_err(ClientError::Fault),
            }
        }
    }

    /// Calls a method and reads its rows one by one, as they come.
    ///
    /// # Errors
    /// When the call cannot be sent.
    pub async fn rows(&mut self, method: &str, params: Value) -> Result<Rows<'_>, ClientError> {
        let deadline = Some(self.deadline);
        self.begin(Kind::Call, method, &params, deadline).await
    }

    /// Reads a stream, which may go on for ever: `@(topic/n4/sessions) subscribe`.
    ///
    /// # Errors
    /// When the call cannot be sent.
    pub async fn stream(&mut self, name: &str, payload: Value) -> Result<Rows<'_>, ClientError> {
        self.begin(Kind::Call, name, &payload, None).await
    }

    /// Tells an actor, by an address and the name of a message: `@(counter) add`. Done once the
    /// message is in its mailbox.
    ///
    /// # Errors
    /// When the message is refused.
    pub async fn tell(&mut self, name: &str, payload: Value) -> Result<(), ClientError> {
        let deadline = Some(self.deadline);
        let mut told = self.begin(Kind::Tell, name, &payload, deadline).await?;
        told.step().await.map(drop)
    }

    async fn begin(
        &mut self,
        kind: Kind,
        method: &str,
        params: &Value,
        deadline: Option<Duration>,
    ) -> Result<Rows<'_>, ClientError> {
        let until = Instant::now() + deadline.map_or(FOREVER, |deadline| deadline + SLACK);
        let mut octets = BytesMut::new();
        while let Some(id) = self.abandoned.pop_front() {
            Frame::new(Kind::Cancel, id).encode_into(FRAME, &mut octets)?;
        }
        let target = match self.names.get(method) {
            Some(target) => *target,
            None => {
                let target = u32::try_from(self.names.len()).unwrap_or(u32::MAX - 1) + 1;
                let mut name =
                    Frame::new(Kind::Name, 0).with_payload(Content::Text, method.to_owned());
                name.target = target;
                name.encode_into(FRAME, &mut octets)?;
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
        let millis = deadline.map_or(0, |deadline| deadline.as_millis());
        call.deadline = u32::try_from(millis).unwrap_or(u32::MAX);
        call.credit = AHEAD;
        call.encode_into(FRAME, &mut octets)?;
        self.send(&octets, until).await?;
        Ok(Rows {
            client: self,
            id,
            until,
            taken: 0,
            ended: false,
        })
    }

    async fn send(&mut self, octets: &[u8], until: Instant) -> Result<(), ClientError> {
        match timeout_at(until, self.stream.write_all(octets)).await {
            Ok(Ok(())) => Ok(()),
            // What the node said before it closed tells more than that it did.
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                match self.receive(until, self.deadline).await {
                    Ok(frame) if frame.kind == Kind::Error => {
                        Err(ClientError::Fault(fault_of(&frame)))
                    }
                    _ => Err(ClientError::Closed),
                }
            }
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(ClientError::TimedOut(self.deadline)),
        }
    }

    async fn receive(&mut self, until: Instant, span: Duration) -> Result<Frame, ClientError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(frame);
            }
            let read = self.stream.read_buf(self.decoder.buffer());
            match timeout_at(until, read).await {
                Ok(Ok(0)) => {
                    self.decoder.finish()?;
                    return Err(ClientError::Closed);
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(ClientError::Closed);
                }
                Ok(Err(error)) => return Err(error.into()),
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

enum Step {
    Row(Payload),
    Value(Payload),
    End,
}

/// The rows of a listing as they come. Dropping it cancels the call.
#[derive(Debug)]
pub struct Rows<'a> {
    client: &'a mut Client,
    id: u32,
    until: Instant,
    taken: u32,
    ended: bool,
}

impl Rows<'_> {
    /// The next row; `None` after the last. The answer of a method that is no listing is one row.
    ///
    /// # Errors
    /// When the call failed, or nothing came before its deadline.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        if self.ended {
            return Ok(None);
        }
        Ok(match self.step().await? {
            Step::Row(row) | Step::Value(row) => Some(json_of(&row)?),
            Step::End => None,
        })
    }

    async fn step(&mut self) -> Result<Step, ClientError> {
        loop {
            let frame = self
                .client
                .receive(self.until, self.client.deadline)
                .await?;
            let ours = frame.id == self.id;
            match frame.kind {
                Kind::Error if ours || frame.id == 0 => {
                    self.ended = true;
                    return Err(ClientError::Fault(fault_of(&frame)));
                }
                Kind::Done if ours => {
                    self.ended = true;
                    return Ok(match frame.content {
                        Content::None => Step::End,
                        _ => Step::Value(frame.into_payload()),
                    });
                }
                Kind::Item if ours => {
                    self.take_more().await?;
                    return Ok(Step::Row(frame.into_payload()));
                }
                // Answers to calls that were given up before.
                _ => {}
            }
        }
    }

    /// Asks for more rows when half of those asked for are here.
    async fn take_more(&mut self) -> Result<(), ClientError> {
        self.taken += 1;
        if self.taken < AHEAD / 2 {
            return Ok(());
        }
        let mut credit = Frame::new(Kind::Credit, self.id);
        credit.credit = self.taken;
        self.taken = 0;
        let mut octets = BytesMut::with_capacity(HEADER);
        credit.encode_into(FRAME, &mut octets)?;
        self.client.send(&octets, self.until).await
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.client.abandoned.push_back(self.id);
        }
    }
}

fn fault_of(frame: &Frame) -> Fault {
    match json_of(&frame.clone().into_payload()) {
        Ok(value) => Fault::from_json(&value).unwrap_or_else(|wrong| wrong),
        Err(error) => Fault::new(Code::Protocol, error.to_string()),
    }
}

fn json_of(payload: &Payload) -> Result<Value, ClientError> {
    payload
        .read()
        .map_err(|fault| ClientError::Fault(Fault::new(Code::Protocol, fault.message)))
}
