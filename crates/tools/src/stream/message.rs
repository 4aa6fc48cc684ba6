//! Messages of the streams actor and their replies.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use strowger::{AnyRef, ContentType, Fault, FaultCode, Payload, Reader, Request};
use thiserror::Error;

/// A piece of a stream: text or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamPiece {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Bytes),
}

impl StreamPiece {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Returns `true` if the piece is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Converts the piece to a payload for external callers.
    #[must_use]
    pub fn into_payload(self) -> Payload {
        match self {
            Self::Text(text) => Payload::new(ContentType::Text, text),
            Self::Bytes(bytes) => Payload::new(ContentType::Bytes, bytes),
        }
    }
}

/// Opens a stream. Fails if the name is invalid or in use, or if [`StreamLimits::streams`] streams
/// are open.
///
/// [`StreamLimits::streams`]: super::StreamLimits::streams
#[derive(Debug, Clone, Default)]
pub struct OpenStreamRequest {
    /// The name of the stream: 1 to [`name`](super::StreamLimits::name) letters, digits and
    /// `-_.:/`.
    pub stream: String,
    /// Number of most recent pieces that a reader gets when it joins later, up to
    /// [`replay`](super::StreamLimits::replay), which is the default.
    pub replay: Option<usize>,
    /// The producing actor; if it ends, the stream fails.
    pub producer: Option<AnyRef>,
}

impl OpenStreamRequest {
    /// Creates a request for a stream that replays as many pieces as the limit allows.
    pub fn new(stream: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            ..Self::default()
        }
    }

    /// Sets the number of pieces to replay.
    #[must_use]
    pub fn with_replay(mut self, pieces: usize) -> Self {
        self.replay = Some(pieces);
        self
    }

    /// Makes the stream fail if this actor ends first.
    #[must_use]
    pub fn with_producer(mut self, producer: impl Into<AnyRef>) -> Self {
        self.producer = Some(producer.into());
        self
    }
}

/// Sends a piece. The reply is the number of readers that get it, and arrives once all of them have
/// room. Fails if the stream does not exist, the piece is longer than
/// [`piece`](super::StreamLimits::piece) bytes, or too many pieces wait already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutRequest {
    /// The name of the stream.
    pub stream: String,
    /// The piece.
    pub piece: StreamPiece,
}

impl PutRequest {
    /// Creates a request to send text.
    pub fn text(stream: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            piece: StreamPiece::Text(text.into()),
        }
    }

    /// Creates a request to send bytes.
    pub fn bytes(stream: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self {
            stream: stream.into(),
            piece: StreamPiece::Bytes(bytes.into()),
        }
    }
}

/// Ends a stream normally: readers get all pieces sent before, then the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndStreamRequest {
    /// The name of the stream.
    pub stream: String,
}

/// Ends a stream with an error: readers get all pieces sent before, then the error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailStreamRequest {
    /// The name of the stream.
    pub stream: String,
    /// The error message.
    pub message: String,
}

/// Reads a stream: the most recent pieces that it replays, then all that follow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowStreamRequest {
    /// The name of the stream.
    pub stream: String,
    /// Number of pieces that may be buffered for this reader, up to
    /// [`window`](super::StreamLimits::window); 16 if absent.
    #[serde(default)]
    pub window: Option<u32>,
}

impl FollowStreamRequest {
    /// Creates a request to read with the default window.
    pub fn new(stream: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            window: None,
        }
    }
}

/// Returns the streams that have not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct ListStreamsRequest;

/// A stream that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StreamInfo {
    /// The name of the stream.
    pub name: String,
    /// Number of readers.
    pub readers: usize,
    /// Number of pieces sent.
    pub pieces: u64,
    /// Number of bytes sent.
    #[serde(rename = "octets")]
    pub bytes: u64,
    /// Number of readers disconnected because they stalled.
    pub disconnected: u64,
    /// Number of pieces that wait for room.
    pub waiting: usize,
}

/// The error returned when a call fails.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream does not exist, or it has ended.
    #[error("no stream `{stream}`")]
    NotFound {
        /// The name.
        stream: String,
    },
    /// A stream with this name already exists.
    #[error("the stream `{stream}` already exists")]
    Exists {
        /// The name of the stream.
        stream: String,
    },
    /// The name is invalid.
    #[error("invalid stream name: use letters, digits and -_.:/")]
    InvalidName,
    /// The piece is too long.
    #[error("the item is {bytes} bytes, limit is {limit}")]
    PieceTooLong {
        /// Size of the piece, in bytes.
        bytes: usize,
        /// Maximum size, in bytes.
        limit: usize,
    },
    /// The maximum number of streams exists.
    #[error("{limit} streams open, which is the limit")]
    TooManyStreams {
        /// Maximum number of streams.
        limit: usize,
    },
    /// The stream has the maximum number of readers.
    #[error("the stream has {limit} readers, which is the limit")]
    TooManyReaders {
        /// Maximum number of readers.
        limit: usize,
    },
    /// The maximum number of pieces waits for room.
    #[error("{limit} items wait for the slowest reader, which is the limit")]
    TooManyWaiting {
        /// Maximum number of waiting pieces.
        limit: usize,
    },
    /// The producer has exited, or was silent for too long.
    #[error("the producer has exited")]
    ProducerExited,
}

impl StreamError {
    /// A one-word name for stats and the audit log.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::Exists { .. } => "exists",
            Self::InvalidName => "name",
            Self::PieceTooLong { .. } => "size",
            Self::TooManyStreams { .. } => "streams",
            Self::TooManyReaders { .. } => "readers",
            Self::TooManyWaiting { .. } => "waiting",
            Self::ProducerExited => "lost",
        }
    }

    /// Returns `true` if a rule or a limit forbids the call.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::NotFound { .. } | Self::Exists { .. } | Self::ProducerExited
        )
    }

    /// Converts the error to a fault for external callers.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let code = match self {
            Self::InvalidName | Self::PieceTooLong { .. } => FaultCode::Refused,
            Self::TooManyStreams { .. }
            | Self::TooManyReaders { .. }
            | Self::TooManyWaiting { .. } => FaultCode::Full,
            Self::NotFound { .. } | Self::Exists { .. } | Self::ProducerExited => FaultCode::Failed,
        };
        let details = serde_json::json!({ "reason": self.name() });
        Fault::new(code, self.to_string()).with_details(details)
    }
}

pub(super) type StreamResult<T> = Result<T, StreamError>;

impl Request for OpenStreamRequest {
    type Reply = StreamResult<()>;
}

impl Request for PutRequest {
    type Reply = StreamResult<usize>;
}

impl Request for EndStreamRequest {
    type Reply = StreamResult<()>;
}

impl Request for FailStreamRequest {
    type Reply = StreamResult<()>;
}

impl Request for FollowStreamRequest {
    type Reply = StreamResult<Reader<StreamPiece>>;
}

impl Request for ListStreamsRequest {
    type Reply = Vec<StreamInfo>;
}
