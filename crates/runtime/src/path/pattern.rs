//! Patterns of paths.

use std::fmt;
use std::str::FromStr;

use super::ActorPath;

/// A pattern of paths. `*` matches any run of characters within a key, `**` any number of keys.
///
/// A pattern without a slash matches the last key, anywhere in the tree.
///
/// ```
/// use strowger::{ActorPath, PathPattern};
/// let sessions: PathPattern = "/n4/*/0x*".parse()?;
/// assert!(sessions.matches(&ActorPath::from("/n4/smf-1/0x2a")));
/// assert!(!sessions.matches(&ActorPath::from("/n4/smf-1")));
/// let all: PathPattern = "/n4/**".parse()?;
/// assert!(all.matches(&ActorPath::from("/n4")));
/// assert!(all.matches(&ActorPath::from("/n4/smf-1/0x2a")));
/// let one: PathPattern = "0x2a".parse()?;
/// assert!(one.matches(&ActorPath::from("/n4/smf-1/0x2a")));
/// # Ok::<(), strowger::PathPatternError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: Box<str>,
    keys: Vec<KeyPattern>,
}

#[derive(Clone, PartialEq, Eq)]
enum KeyPattern {
    /// `**`, which matches any number of keys.
    Any,
    /// A key that may contain stars.
    Glob(Box<str>),
}

/// The error returned when a text is not a valid pattern of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathPatternError {
    /// The pattern is empty.
    #[error("a pattern of paths must not be empty")]
    Empty,
    /// The pattern is longer than [`PathPattern::MAX_LEN`].
    #[error("path pattern is longer than {} bytes", PathPattern::MAX_LEN)]
    TooLong,
}

impl PathPattern {
    /// The maximum length of a pattern, in bytes.
    pub const MAX_LEN: usize = 1024;

    /// Returns `true` if the pattern matches a path.
    #[must_use]
    pub fn matches(&self, path: &ActorPath) -> bool {
        let keys: Vec<&str> = path.keys().collect();
        glob_match(
            &self.keys,
            &keys,
            |key| matches!(key, KeyPattern::Any),
            |key, text| match key {
                KeyPattern::Any => true,
                KeyPattern::Glob(like) => {
                    let (like, text) = (like.as_bytes(), text.as_bytes());
                    glob_match(like, text, |byte| *byte == b'*', |a, b| a == b)
                }
            },
        )
    }
}

/// Matches a sequence against a pattern in which some parts match any number of elements. On a
/// mismatch it is enough to go back to the last such part, so the time is bounded by the product of
/// the two lengths.
fn glob_match<P, T>(
    pattern: &[P],
    row: &[T],
    is_any: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut at) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < row.len() {
        match pattern.get(p) {
            Some(part) if is_any(part) => {
                back = Some((p + 1, at));
                p += 1;
            }
            Some(part) if fits(part, &row[at]) => {
                p += 1;
                at += 1;
            }
            _ => {
                let Some((after, from)) = back else {
                    return false;
                };
                back = Some((after, from + 1));
                p = after;
                at = from + 1;
            }
        }
    }
    pattern[p..].iter().all(is_any)
}

impl FromStr for PathPattern {
    type Err = PathPatternError;

    fn from_str(text: &str) -> Result<Self, PathPatternError> {
        if text.is_empty() {
            return Err(PathPatternError::Empty);
        }
        if text.len() > Self::MAX_LEN {
            return Err(PathPatternError::TooLong);
        }
        let key = |key: &str| match key {
            "**" => KeyPattern::Any,
            key => KeyPattern::Glob(key.into()),
        };
        let mut keys: Vec<KeyPattern> = text
            .split('/')
            .filter(|key| !key.is_empty())
            .map(key)
            .collect();
        if !text.contains('/') {
            keys.insert(0, KeyPattern::Any);
        }
        Ok(Self {
            text: text.into(),
            keys,
        })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PathPattern({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_as_documented() {
        for (pattern, path, fits) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("**", "/", true),
            ("**", "/a/b", true),
            ("/a", "/a", true),
            ("/a/", "/a", true),
            ("/a", "/a/b", false),
            ("/*", "/a", true),
            ("/*", "/a/b", false),
            ("/a/**/d", "/a/d", true),
            ("/a/**/d", "/a/b/c/d", true),
            ("/a/**/d", "/a/b/d/c", false),
            ("/**/b/**/d", "/a/b/b/c/d", true),
            ("/a*c", "/abbc", true),
            ("/a*c", "/ac", true),
            ("/a*c", "/acb", false),
            ("/*a*b*", "/xxaxxbxx", true),
            ("b", "/a/b", true),
            ("b*", "/a/c", false),
            ("a", "/a/b", false),
        ] {
            let parsed: PathPattern = pattern.parse().unwrap();
            assert_eq!(
                parsed.matches(&ActorPath::from(path)),
                fits,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        assert_eq!("".parse::<PathPattern>(), Err(PathPatternError::Empty));
        let long = "a".repeat(PathPattern::MAX_LEN + 1);
        assert_eq!(long.parse::<PathPattern>(), Err(PathPatternError::TooLong));
    }
}
