//! Decoding and encoding errors, and the path to the element at fault.

use std::fmt;

use crate::ie::{IeType, Release};
use crate::message::MessageType;

/// The error returned when bytes cannot be decoded or a value cannot be encoded.
///
/// The text contains the path to the element: `Session Establishment Request / Create PDR[1] / PDI
/// / F-TEID: length 3, need 5`.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<ErrorInner>);

#[derive(Clone, PartialEq, Eq)]
struct ErrorInner {
    path: IePath,
    kind: ErrorKind,
    offset: usize,
}

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The protocol version is not 1.
    #[error("unsupported PFCP version {0}, expected 1")]
    Version(u8),
    /// The input is too short for the header.
    #[error("header of {need} bytes in {have}")]
    Header {
        /// Number of bytes available.
        have: usize,
        /// Number of bytes that the header takes.
        need: usize,
    },
    /// The header declares more bytes than the datagram has.
    #[error("message of {declared} bytes in {have}")]
    MessageLength {
        /// Number of bytes available.
        have: usize,
        /// Number of bytes that the header declares.
        declared: usize,
    },
    /// Bytes follow the last message.
    #[error("{bytes} trailing bytes after the message")]
    Trailing {
        /// Number of trailing bytes.
        bytes: usize,
    },
    /// A session-related message has no SEID, or a node-related message has one.
    #[error("SEID flag does not fit the message type")]
    SeidFlag,
    /// The header of an element is truncated.
    #[error("truncated element header: 4 bytes needed, {have} left")]
    ElementHeader {
        /// Number of bytes available.
        have: usize,
    },
    /// An element is longer than its container.
    #[error("length is {declared}, container has {have} left")]
    Overrun {
        /// Number of bytes left in the container.
        have: usize,
        /// Number of bytes that the element declares.
        declared: usize,
    },
    /// A vendor-specific element is too short for its enterprise number.
    #[error("truncated enterprise number: 2 bytes needed, {have} left")]
    Enterprise {
        /// Number of bytes available.
        have: usize,
    },
    /// The value of an element is too short.
    #[error("length {have}, need {need}")]
    Length {
        /// Number of bytes available.
        have: usize,
        /// Number of bytes needed.
        need: usize,
    },
    /// The value of an element of fixed length is too long.
    #[error("length is {have}, limit is {most}")]
    Excess {
        /// Number of bytes available.
        have: usize,
        /// Number of bytes that the element may have.
        most: usize,
    },
    /// The bytes of a field are not a valid value of it.
    #[error("malformed {field}")]
    Malformed {
        /// The name of the field.
        field: &'static str,
    },
    /// A mandatory element is missing.
    #[error("{} is missing", .0)]
    Missing(IeType),
    /// Groups are nested deeper than the decoder allows.
    #[error("groups nested deeper than {limit} levels")]
    Depth {
        /// The deepest level that is decoded.
        limit: usize,
    },
    /// A value does not fit into the bits of its field, or its length does not fit into the length
    /// field before it.
    #[error("{field} is out of range")]
    Range {
        /// The name of the field.
        field: &'static str,
    },
    /// The presence of a field contradicts the flags: the flags say that it is present and it is
    /// not, or the reverse.
    #[error("{field} contradicts the fields before it")]
    Contradiction {
        /// The name of the field.
        field: &'static str,
    },
    /// A value is too long for the length field on the wire.
    #[error("{have} bytes do not fit the length field")]
    TooLong {
        /// Number of bytes of the value.
        have: usize,
    },
    /// An element, or one of its fields, is newer than the requested release.
    #[error("{field} is newer than {release}")]
    Newer {
        /// The name of the field, or `element`.
        field: &'static str,
        /// The requested release.
        release: Release,
    },
}

impl Error {
    /// Creates an error without a path. Callers add the path as the error propagates outwards.
    #[cold]
    pub(crate) fn new(offset: usize, kind: ErrorKind) -> Self {
        let path = IePath::default();
        Self(Box::new(ErrorInner { path, kind, offset }))
    }

    /// Prepends the enclosing element to the path.
    #[cold]
    pub(crate) fn within(mut self, ie: IeType, index: Option<usize>) -> Self {
        self.0.path.inner_first.push(PathStep { ie, index });
        self
    }

    /// Sets the message type at the start of the path.
    #[cold]
    pub(crate) fn in_message(mut self, message: MessageType) -> Self {
        self.0.path.message = Some(message);
        self
    }

    /// Adds to the offset, for a caller whose bytes start earlier.
    #[cold]
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.0.offset += by;
        self
    }

    /// Returns the path to the element at fault.
    #[must_use]
    pub fn path(&self) -> &IePath {
        &self.0.path
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the offset of the error from the first byte of the input.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorInner { path, kind, .. } = &*self.0;
        if path.is_empty() {
            kind.fmt(f)
        } else {
            write!(f, "{path}: {kind}")
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self}; offset {})", self.0.offset)
    }
}

impl std::error::Error for Error {}

/// The path from a message to one of its elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IePath {
    message: Option<MessageType>,
    /// Innermost step first, because steps are added while an error propagates outwards.
    inner_first: Vec<PathStep>,
}

impl IePath {
    /// Creates the path of a message from its steps, innermost first.
    pub(crate) fn new(message: MessageType, inner_first: Vec<PathStep>) -> Self {
        Self {
            message: Some(message),
            inner_first,
        }
    }

    /// Returns the message that the path starts from.
    #[must_use]
    pub fn message(&self) -> Option<MessageType> {
        self.message
    }

    /// Returns an iterator over the steps, outermost first.
    #[must_use]
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = PathStep> + '_ {
        self.inner_first.iter().rev().copied()
    }

    /// Returns the innermost element.
    #[must_use]
    pub fn last(&self) -> Option<IeType> {
        self.inner_first.first().map(|step| step.ie)
    }

    /// Returns `true` if the path has neither a message nor a step.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.message.is_none() && self.inner_first.is_empty()
    }
}

impl fmt::Display for IePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(message) = self.message {
            write!(f, "{message}")?;
            separator = " / ";
        }
        for step in self.steps() {
            write!(f, "{separator}{step}")?;
            separator = " / ";
        }
        Ok(())
    }
}

/// One step of an [`IePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathStep {
    /// Type of the element that contains the error.
    pub ie: IeType,
    /// The zero-based index among the elements of the same type, if the element may occur several
    /// times.
    pub index: Option<usize>,
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ie)?;
        match self.index {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}
