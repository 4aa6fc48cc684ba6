//! Names of topics, and patterns of names.

use std::sync::Arc;

use crate::path::ActorPath;

/// Limits on topics: the length and depth of names, and the number of topics and subscriptions.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), strowger::BuildError> {
/// use strowger::{ActorSystem, TopicError, TopicLimits};
///
/// let limits = TopicLimits::DEFAULT.depth(2);
/// let system = ActorSystem::builder("node").topic_limits(limits).build()?;
/// let refused = system.topic::<u32>("n4/smf-1/load").expect_err("three segments");
/// assert!(matches!(refused, TopicError::TooDeep { depth: 3, limit: 2, .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicLimits {
    pub(super) length: usize,
    pub(super) depth: usize,
    pub(super) topics: usize,
    pub(super) subscriptions: usize,
}

impl TopicLimits {
    /// Names of up to 255 bytes and 16 segments; up to 100 000 topics and 100 000 subscriptions for
    /// each message type.
    pub const DEFAULT: Self = Self {
        length: 255,
        depth: 16,
        topics: 100_000,
        subscriptions: 100_000,
    };

    /// Sets the maximum length of a name or pattern, in bytes.
    #[must_use]
    pub const fn length(mut self, bytes: usize) -> Self {
        self.length = bytes;
        self
    }

    /// Sets the maximum number of segments of a name or pattern.
    #[must_use]
    pub const fn depth(mut self, segments: usize) -> Self {
        self.depth = segments;
        self
    }

    /// Sets the maximum number of topics for each message type.
    #[must_use]
    pub const fn topics(mut self, topics: usize) -> Self {
        self.topics = topics;
        self
    }

    /// Sets the maximum number of subscriptions for each message type.
    #[must_use]
    pub const fn subscriptions(mut self, subscriptions: usize) -> Self {
        self.subscriptions = subscriptions;
        self
    }
}

impl Default for TopicLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The error returned when a topic cannot be opened or a subscription cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// A segment is empty: the name is empty, starts or ends with a slash, or has two slashes in a
    /// row.
    #[error("{name:?} has an empty segment at byte {at}")]
    EmptySegment {
        /// The rejected name.
        name: Arc<str>,
        /// The offset of the segment, in bytes.
        at: usize,
    },
    /// The name of a topic to publish to has a wildcard; only patterns may have one.
    #[error("{name:?} has a wildcard at byte {at}, which only a subscription may have")]
    Wildcard {
        /// The rejected name.
        name: Arc<str>,
        /// The offset of the segment, in bytes.
        at: usize,
    },
    /// A segment of a pattern mixes `*` with other characters.
    #[error("{name:?} has an invalid wildcard segment at byte {at}: write `*` or `**` alone")]
    MixedWildcard {
        /// The rejected pattern.
        name: Arc<str>,
        /// The offset of the segment, in bytes.
        at: usize,
    },
    /// The name is too long.
    #[error("a topic name is {length} bytes, the limit is {limit}")]
    TooLong {
        /// The length of the name, in bytes.
        length: usize,
        /// The maximum length, in bytes.
        limit: usize,
    },
    /// The name has too many segments.
    #[error("{name:?} has {depth} segments, more than {limit}")]
    TooDeep {
        /// The rejected name.
        name: Arc<str>,
        /// The number of segments.
        depth: usize,
        /// The maximum number of segments.
        limit: usize,
    },
    /// The limit on topics of this message type is reached, and all of them are held or subscribed
    /// to.
    #[error("the limit of {limit} topics of {kind} is reached")]
    TooManyTopics {
        /// The name of the message's Rust type.
        kind: &'static str,
        /// Maximum number of topics of this message type.
        limit: usize,
    },
    /// The limit on subscriptions of this message type is reached.
    #[error("the limit of {limit} subscriptions of {kind} is reached")]
    TooManySubscriptions {
        /// The name of the message's Rust type.
        kind: &'static str,
        /// Maximum number of subscriptions of this message type.
        limit: usize,
    },
    /// The subscribing actor has ended.
    #[error("{path} has ended and cannot subscribe")]
    Ended {
        /// The path of the actor.
        path: ActorPath,
    },
}

/// A segment of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    Plain(&'a str),
    /// `*`, which matches one segment.
    One,
    /// `**`, which matches any number of segments, including none.
    Any,
}

/// Splits a valid pattern into its segments.
pub(super) fn segments(pattern: &str) -> impl Iterator<Item = Segment<'_>> {
    pattern.split('/').map(|segment| match segment {
        "*" => Segment::One,
        "**" => Segment::Any,
        plain => Segment::Plain(plain),
    })
}

/// Validates the name of a topic, which must not have wildcards.
pub(super) fn check_name(name: &str, limits: &TopicLimits) -> Result<(), TopicError> {
    check(name, limits, |at, _| {
        let name = name.into();
        Err(TopicError::Wildcard { name, at })
    })
}

/// Validates a pattern. Returns `true` if it has wildcards.
pub(super) fn check_pattern(pattern: &str, limits: &TopicLimits) -> Result<bool, TopicError> {
    let mut wild = false;
    check(pattern, limits, |at, segment| {
        wild = true;
        if matches!(segment, "*" | "**") {
            return Ok(());
        }
        let name = pattern.into();
        Err(TopicError::MixedWildcard { name, at })
    })?;
    Ok(wild)
}

/// Validates a name and passes segments that contain a `*` to `starred`.
fn check<'a>(
    name: &'a str,
    limits: &TopicLimits,
    mut starred: impl FnMut(usize, &'a str) -> Result<(), TopicError>,
) -> Result<(), TopicError> {
    let (length, limit) = (name.len(), limits.length);
    if length > limit {
        return Err(TopicError::TooLong { length, limit });
    }
    let (depth, limit) = (name.split('/').count(), limits.depth);
    if depth > limit {
        let name = name.into();
        return Err(TopicError::TooDeep { name, depth, limit });
    }
    let mut at = 0;
    for segment in name.split('/') {
        if segment.is_empty() {
            let name = name.into();
            return Err(TopicError::EmptySegment { name, at });
        }
        if segment.contains('*') {
            starred(at, segment)?;
        }
        at += segment.len() + 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_position() {
        let limits = TopicLimits::DEFAULT.length(12).depth(3);
        let said = |name: &str| {
            let name = check_name(name, &limits);
            name.expect_err("it is bad").to_string()
        };
        assert_eq!(said(""), "\"\" has an empty segment at byte 0");
        assert_eq!(said("/a"), "\"/a\" has an empty segment at byte 0");
        assert_eq!(said("a/"), "\"a/\" has an empty segment at byte 2");
        assert_eq!(said("ab//c"), "\"ab//c\" has an empty segment at byte 3");
        assert_eq!(
            said("a/*"),
            "\"a/*\" has a wildcard at byte 2, which only a subscription may have"
        );
        assert_eq!(
            said("abcdefghijklm"),
            "a topic name is 13 bytes, the limit is 12"
        );
        assert_eq!(said("a/b/c/d"), "\"a/b/c/d\" has 4 segments, more than 3");
        assert_eq!(check_name("a/b/c", &limits), Ok(()));
    }

    #[test]
    fn wildcards_must_be_whole_segments() {
        let limits = TopicLimits::DEFAULT;
        assert_eq!(check_pattern("a/b", &limits), Ok(false));
        for good in ["*", "**", "a/*/b", "a/**", "**/b", "a/**/b/*"] {
            assert_eq!(check_pattern(good, &limits), Ok(true), "{good}");
        }
        for (bad, place) in [("a*", 0), ("a/***", 2), ("*/b*", 2)] {
            let name = bad.into();
            let error = TopicError::MixedWildcard { name, at: place };
            assert_eq!(check_pattern(bad, &limits), Err(error));
        }
    }
}
