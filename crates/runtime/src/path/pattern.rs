//! Patterns of paths.

use std::fmt;
use std::str::FromStr;

use super::Path;

/// Matches paths: `*` stands for any run of letters within a key, `**` for any number of keys.
///
/// A pattern without a slash matches the last key, wherever the actor lives.
///
/// ```
/// use strowger::{Path, PathPattern};
/// let sessions: PathPattern = "/n4/*/0x*".parse()?;
/// assert!(sessions.matches(&Path::from("/n4/smf-1/0x2a")));
/// assert!(!sessions.matches(&Path::from("/n4/smf-1")));
/// let all: PathPattern = "/n4/**".parse()?;
/// assert!(all.matches(&Path::from("/n4")) && all.matches(&Path::from("/n4/smf-1/0x2a")));
/// let one: PathPattern = "0x2a".parse()?;
/// assert!(one.matches(&Path::from("/n4/smf-1/0x2a")));
/// # Ok::<(), strowger::PatternError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: Box<str>,
    keys: Vec<Key>,
}

#[derive(Clone, PartialEq, Eq)]
enum Key {
    /// Any number of keys.
    Any,
    /// A key with stars in it.
    Like(Box<str>),
}

/// Why a text is not a pattern of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// There is nothing in it that could match.
    #[error("a pattern of paths must not be empty")]
    Empty,
    /// It is longer than [`PathPattern::LONGEST`].
    #[error("a pattern of paths is at most {} octets long", PathPattern::LONGEST)]
    TooLong,
}

impl PathPattern {
    /// The longest pattern, in octets.
    pub const LONGEST: usize = 1024;

    /// Whether the path is one of those that are meant.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        let keys: Vec<&str> = path.keys().collect();
        globbed(
            &self.keys,
            &keys,
            |key| matches!(key, Key::Any),
            |key, text| match key {
                Key::Any => true,
                Key::Like(like) => {
                    let (like, text) = (like.as_bytes(), text.as_bytes());
                    globbed(like, text, |octet| *octet == b'*', |a, b| a == b)
                }
            },
        )
    }
}

/// Matches a row against a pattern in which some parts stand for any number of others. Going back
/// to the last such part is enough, so the time is bounded by the product of the lengths.
fn globbed<P, T>(
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
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > Self::LONGEST {
            return Err(PatternError::TooLong);
        }
        let key = |key: &str| match key {
            "**" => Key::Any,
            key => Key::Like(key.into()),
        };
        let mut keys: Vec<Key> = text
            .split('/')
            .filter(|key| !key.is_empty())
            .map(key)
            .collect();
        if !text.contains('/') {
            keys.insert(0, Key::Any);
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
    fn stars_stand_for_what_they_say() {
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
            assert_eq!(parsed.matches(&Path::from(path)), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn what_matches_nothing_is_refused() {
        assert_eq!("".parse::<PathPattern>(), Err(PatternError::Empty));
        let long = "a".repeat(PathPattern::LONGEST + 1);
        assert_eq!(long.parse::<PathPattern>(), Err(PatternError::TooLong));
    }
}
