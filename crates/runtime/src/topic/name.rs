//! Names of topics, and patterns of names.

use std::sync::Arc;

use crate::path::Path;

/// How long and deep names may be, and how many of them there may be.
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
    /// Names of 255 octets and 16 segments; 100 000 topics and 100 000 subscriptions for each
    /// type of message.
    pub const DEFAULT: Self = Self {
        length: 255,
        depth: 16,
        topics: 100_000,
        subscriptions: 100_000,
    };

    /// Sets how many octets a name or a pattern may have.
    #[must_use]
    pub const fn length(mut self, octets: usize) -> Self {
        self.length = octets;
        self
    }

    /// Sets how many segments a name or a pattern may have.
    #[must_use]
    pub const fn depth(mut self, segments: usize) -> Self {
        self.depth = segments;
        self
    }

    /// Sets how many topics of one type of message there may be.
    #[must_use]
    pub const fn topics(mut self, topics: usize) -> Self {
        self.topics = topics;
        self
    }

    /// Sets how many subscriptions of one type of message there may be.
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

/// Why a topic was not opened, or a subscription not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// A segment is empty: the name is, or it starts or ends with a slash, or has two in a row.
    #[error("{name:?} has an empty segment at octet {at}")]
    EmptySegment {
        /// The name.
        name: Arc<str>,
        /// Where the segment begins, in octets.
        at: usize,
    },
    /// A name to publish to has a wildcard, which only patterns may have.
    #[error("{name:?} has a wildcard at octet {at}, which only a subscription may have")]
    Wildcard {
        /// The name.
        name: Arc<str>,
        /// Where the segment begins, in octets.
        at: usize,
    },
    /// A segment of a pattern has a `*` among other characters.
    #[error("{name:?} has a segment at octet {at} that is neither `*`, nor `**`, nor plain")]
    MixedWildcard {
        /// The pattern.
        name: Arc<str>,
        /// Where the segment begins, in octets.
        at: usize,
    },
    /// The name has too many octets.
    #[error("a name of {length} octets is longer than {limit}")]
    TooLong {
        /// How many octets it has.
        length: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The name has too many segments.
    #[error("{name:?} has {depth} segments, more than {limit}")]
    TooDeep {
        /// The name.
        name: Arc<str>,
        /// How many segments it has.
        depth: usize,
        /// How many it may have.
        limit: usize,
    },
    /// As many topics of this type of message as there may be are held or subscribed to.
    #[error("the system has its {limit} topics of {kind}")]
    TooManyTopics {
        /// The name of the message's Rust type.
        kind: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// There are as many subscriptions of this type of message as there may be.
    #[error("the system has its {limit} subscriptions of {kind}")]
    TooManySubscriptions {
        /// The name of the message's Rust type.
        kind: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// The actor that was to subscribe has ended.
    #[error("{path} has ended and cannot subscribe")]
    Ended {
        /// The actor.
        path: Path,
    },
}

/// One part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    Plain(&'a str),
    /// `*`: one segment, whatever it is.
    One,
    /// `**`: any number of segments, also none.
    Any,
}

/// The segments of a pattern that was checked.
pub(super) fn segments(pattern: &str) -> impl Iterator<Item = Segment<'_>> {
    pattern.split('/').map(|segment| match segment {
        "*" => Segment::One,
        "**" => Segment::Any,
        plain => Segment::Plain(plain),
    })
}

/// Checks the name of a topic, which has no wildcards.
pub(super) fn check_name(name: &str, limits: &TopicLimits) -> Result<(), TopicError> {
    check(name, limits, |at, _| {
        let name = name.into();
        Err(TopicError::Wildcard { name, at })
    })
}

/// Checks a pattern; whether it has wildcards.
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

/// Checks a name, and leaves segments with a `*` to the caller.
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
    fn refusals_say_where() {
        let limits = TopicLimits::DEFAULT.length(12).depth(3);
        let said = |name: &str| {
            let name = check_name(name, &limits);
            name.expect_err("it is bad").to_string()
        };
        assert_eq!(said(""), "\"\" has an empty segment at octet 0");
        assert_eq!(said("/a"), "\"/a\" has an empty segment at octet 0");
        assert_eq!(said("a/"), "\"a/\" has an empty segment at octet 2");
        assert_eq!(said("ab//c"), "\"ab//c\" has an empty segment at octet 3");
        assert_eq!(
            said("a/*"),
            "\"a/*\" has a wildcard at octet 2, which only a subscription may have"
        );
        assert_eq!(
            said("abcdefghijklm"),
            "a name of 13 octets is longer than 12"
        );
        assert_eq!(said("a/b/c/d"), "\"a/b/c/d\" has 4 segments, more than 3");
        assert_eq!(check_name("a/b/c", &limits), Ok(()));
    }

    #[test]
    fn patterns_have_wildcards_that_stand_alone() {
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
