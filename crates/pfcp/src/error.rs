//! What can be wrong with octets, and where.

use std::fmt;

use crate::ie::{IeType, Release};
use crate::message::MessageType;

/// Octets that could not be read, or a value that could not be written.
///
/// The text names the path to the element:
/// `Session Establishment Request / Create PDR[1] / PDI / F-TEID: length 3, need 5`.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    path: IePath,
    kind: ErrorKind,
    offset: usize,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The version is not 1.
    #[error("version {0}, need 1")]
    Version(u8),
    /// There is no room for the header.
    #[error("header of {need} octets in {have}")]
    Header {
        /// Octets that are there.
        have: usize,
        /// Octets that the header takes.
        need: usize,
    },
    /// The header declares more octets than the datagram has.
    #[error("message of {declared} octets in {have}")]
    MessageLength {
        /// Octets that are there.
        have: usize,
        /// Octets that the header declares.
        declared: usize,
    },
    /// Octets follow the last message.
    #[error("{octets} octets after the message")]
    Trailing {
        /// How many.
        octets: usize,
    },
    /// A message of a session has no SEID, or one between nodes has one.
    #[error("SEID flag does not fit the message type")]
    SeidFlag,
    /// An element header is cut off.
    #[error("element header of 4 octets in {have}")]
    ElementHeader {
        /// Octets that are there.
        have: usize,
    },
    /// An element is longer than what contains it.
    #[error("length {declared}, container has {have}")]
    Overrun {
        /// Octets that are left in the container.
        have: usize,
        /// Octets that the element declares.
        declared: usize,
    },
    /// A vendor's element is too short for its enterprise number.
    #[error("enterprise number of 2 octets in {have}")]
    Enterprise {
        /// Octets that are there.
        have: usize,
    },
    /// The value of an element is too short.
    #[error("length {have}, need {need}")]
    Length {
        /// Octets that are there.
        have: usize,
        /// Octets that are needed.
        need: usize,
    },
    /// The value of an element of fixed length is too long.
    #[error("length {have}, at most {most}")]
    Excess {
        /// Octets that are there.
        have: usize,
        /// Octets that the element may have.
        most: usize,
    },
    /// A field has octets that it cannot have.
    #[error("malformed {field}")]
    Malformed {
        /// The name of the field.
        field: &'static str,
    },
    /// A mandatory element is missing.
    #[error("{} is missing", .0)]
    Missing(IeType),
    /// Groups are nested deeper than the reader goes.
    #[error("more than {limit} levels of groups")]
    Depth {
        /// The deepest level that is read.
        limit: usize,
    },
    /// A value does not fit the bits that its field has, or the length before it.
    #[error("{field} does not fit its field")]
    Range {
        /// The name of the field.
        field: &'static str,
    },
    /// A field is not there and the flags say that it is, or the other way round.
    #[error("{field} contradicts the fields before it")]
    Contradiction {
        /// The name of the field.
        field: &'static str,
    },
    /// A value does not fit the length on the wire.
    #[error("{have} octets do not fit the length field")]
    TooLong {
        /// Octets of the value.
        have: usize,
    },
    /// An element, or a field of one, is newer than the release that was asked for.
    #[error("{field} is newer than {release}")]
    Newer {
        /// The name of the field, or `element`.
        field: &'static str,
        /// The release.
        release: Release,
    },
}

impl Error {
    /// Makes an error without a path; callers add the path on the way out.
    #[cold]
    pub(crate) fn new(offset: usize, kind: ErrorKind) -> Self {
        let path = IePath::default();
        Self(Box::new(Inner { path, kind, offset }))
    }

    /// Adds the element that contains the path so far.
    #[cold]
    pub(crate) fn within(mut self, ie: IeType, index: Option<usize>) -> Self {
        self.0.path.inner_first.push(PathStep { ie, index });
        self
    }

    /// Names the message.
    #[cold]
    pub(crate) fn in_message(mut self, message: MessageType) -> Self {
        self.0.path.message = Some(message);
        self
    }

    /// Moves the offset, for a caller whose octets start earlier.
    #[cold]
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.0.offset += by;
        self
    }

    /// Returns the path to the element.
    #[must_use]
    pub fn path(&self) -> &IePath {
        &self.0.path
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns where it is, counted from the first octet that was handed in.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, kind, .. } = &*self.0;
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

/// The way from a message to one of its elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IePath {
    message: Option<MessageType>,
    /// Innermost first: steps are added while an error travels outwards.
    inner_first: Vec<PathStep>,
}

impl IePath {
    /// Makes the path of a message with its steps, the innermost first.
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

    /// Walks the steps from the outside to the inside.
    #[must_use]
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = PathStep> + '_ {
        self.inner_first.iter().rev().copied()
    }

    /// Returns the innermost element.
    #[must_use]
    pub fn last(&self) -> Option<IeType> {
        self.inner_first.first().map(|step| step.ie)
    }

    /// Says that there is neither a message nor a step.
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
    /// The element.
    pub ie: IeType,
    /// Its place among the elements of its type, from 0, where there may be several.
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
