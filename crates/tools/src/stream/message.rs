//! What a streams actor is asked, and what it answers.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use strowger::{AnyRef, Code, Content, Fault, Payload, Reader, Request};
use thiserror::Error;

/// A piece of a stream: a text, or octets of any meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// A text.
    Text(String),
    /// Octets.
    Octets(Bytes),
}

impl Piece {
    /// How many octets it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Octets(octets) => octets.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As it is sent to those outside.
    #[must_use]
    pub fn into_payload(self) -> Payload {
        match self {
            Self::Text(text) => Payload::new(Content::Text, text),
            Self::Octets(octets) => Payload::new(Content::Octets, octets),
        }
    }
}

/// Begins a stream.
#[derive(Debug, Clone, Default)]
pub struct OpenStream {
    /// Its name: letters, digits and `-_.:/`.
    pub stream: String,
    /// How many of the last pieces a reader gets that comes later; as many as the limit if it is
    /// not said.
    pub replay: Option<usize>,
    /// An actor with whose end the stream fails.
    pub producer: Option<AnyRef>,
}

impl OpenStream {
    /// A stream that replays as much as the limit allows.
    pub fn new(stream: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            ..Self::default()
        }
    }

    /// Replays so many pieces.
    #[must_use]
    pub fn with_replay(mut self, pieces: usize) -> Self {
        self.replay = Some(pieces);
        self
    }

    /// Lets it fail when this actor ends before it.
    #[must_use]
    pub fn with_producer(mut self, producer: impl Into<AnyRef>) -> Self {
        self.producer = Some(producer.into());
        self
    }
}

/// Sends a piece; answered with how many readers get it, once all of them have room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// On which stream.
    pub stream: String,
    /// What.
    pub piece: Piece,
}

impl Put {
    /// A piece of text.
    pub fn text(stream: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            piece: Piece::Text(text.into()),
        }
    }

    /// A piece of octets.
    pub fn octets(stream: impl Into<String>, octets: impl Into<Bytes>) -> Self {
        Self {
            stream: stream.into(),
            piece: Piece::Octets(octets.into()),
        }
    }
}

/// Ends a stream in order: readers get what was sent, then the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndStream {
    /// Which one.
    pub stream: String,
}

/// Ends a stream with an error: readers get what was sent, then the error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailStream {
    /// Which one.
    pub stream: String,
    /// What went wrong.
    pub message: String,
}

/// Reads a stream: the last pieces that it replays, and all that come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// Which one.
    pub stream: String,
    /// How many pieces may wait for the reader, up to the limit.
    #[serde(default)]
    pub window: Option<u32>,
}

impl Follow {
    /// Reads with the usual window.
    pub fn new(stream: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            window: None,
        }
    }
}

/// Tells which streams there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct ListStreams;

/// A stream that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StreamInfo {
    /// Its name.
    pub name: String,
    /// How many read it.
    pub readers: usize,
    /// Pieces that were sent.
    pub pieces: u64,
    /// Their octets.
    pub octets: u64,
    /// Readers that were disconnected because they stood still.
    pub disconnected: u64,
    /// Pieces that wait for room.
    pub waiting: usize,
}

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// There is no such stream, or it has ended.
    #[error("there is no stream `{stream}`")]
    NotFound {
        /// What was looked for.
        stream: String,
    },
    /// There is one already.
    #[error("there is a stream `{stream}` already")]
    Exists {
        /// Its name.
        stream: String,
    },
    /// The name cannot be one.
    #[error("a stream is named by letters, digits and -_.:/")]
    Name,
    /// A piece is too long.
    #[error("a piece of {octets} octets is longer than {limit}")]
    TooLong {
        /// How many it has.
        octets: usize,
        /// How many it may have.
        limit: usize,
    },
    /// There are as many streams as may be.
    #[error("there are {limit} streams, which is the limit")]
    TooMany {
        /// How many there may be.
        limit: usize,
    },
    /// A stream has as many readers as it may.
    #[error("the stream has {limit} readers, which is the limit")]
    TooManyReaders {
        /// How many it may have.
        limit: usize,
    },
    /// As many pieces wait as may.
    #[error("{limit} pieces wait for the slowest reader, which is the limit")]
    Full {
        /// How many may wait.
        limit: usize,
    },
    /// Its producer has gone.
    #[error("the producer has gone")]
    Lost,
}

impl StreamError {
    /// One word for figures and audits.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::Exists { .. } => "exists",
            Self::Name => "name",
            Self::TooLong { .. } => "size",
            Self::TooMany { .. } => "streams",
            Self::TooManyReaders { .. } => "readers",
            Self::Full { .. } => "waiting",
            Self::Lost => "lost",
        }
    }

    /// Whether a rule forbids it.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::NotFound { .. } | Self::Exists { .. } | Self::Lost
        )
    }

    /// As those outside see it.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let code = match self {
            Self::Name | Self::TooLong { .. } => Code::Refused,
            Self::TooMany { .. } | Self::TooManyReaders { .. } | Self::Full { .. } => Code::Full,
            Self::NotFound { .. } | Self::Exists { .. } | Self::Lost => Code::Failed,
        };
        let details = serde_json::json!({ "reason": self.name() });
        Fault::new(code, self.to_string()).with_details(details)
    }
}

type Outcome<T> = Result<T, StreamError>;

impl Request for OpenStream {
    type Reply = Outcome<()>;
}

impl Request for Put {
    type Reply = Outcome<usize>;
}

impl Request for EndStream {
    type Reply = Outcome<()>;
}

impl Request for FailStream {
    type Reply = Outcome<()>;
}

impl Request for Follow {
    type Reply = Outcome<Reader<Piece>>;
}

impl Request for ListStreams {
    type Reply = Vec<StreamInfo>;
}
