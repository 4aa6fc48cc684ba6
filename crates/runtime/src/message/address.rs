//! Addresses: `@(tools/files)`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::fault::{Code, Fault};
use crate::path::Path;

/// The place of an actor in the tree, or its name, as those outside write it: `@(tools/files)`.
///
/// ```
/// use strowger::Address;
///
/// let address: Address = "@(n4/smf-1/0x2a)".parse()?;
/// assert_eq!(address.path(), "n4/smf-1/0x2a");
/// assert_eq!(address.keys().count(), 3);
/// assert!("@(../etc)".parse::<Address>().is_err());
/// # Ok::<(), strowger::Fault>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(Arc<str>);

/// The most octets of a path.
const LONGEST: usize = 1024;
/// The most keys of a path.
const DEEPEST: usize = 32;
/// The most octets of a key.
const LONGEST_KEY: usize = 255;

impl Address {
    /// The address of a path, which is written without its marks: `tools/files`.
    ///
    /// # Errors
    /// When the path is empty, too long or too deep, or a key has a character that keys of
    /// addresses do not have.
    pub fn of(path: &str) -> Result<Self, Fault> {
        match wrong(path) {
            None => Ok(Self(Arc::from(path))),
            Some(why) => {
                let text = format!("{} is no path of an address: {why}", shown(path));
                Err(Fault::new(Code::BadRequest, text))
            }
        }
    }

    /// The path without its marks: `tools/files`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0
    }

    /// The keys from the root down.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    pub(super) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// What is wrong with a path, if anything is.
fn wrong(path: &str) -> Option<String> {
    if path.is_empty() {
        return Some("it is empty".to_owned());
    }
    if path.len() > LONGEST {
        return Some(format!("it has more than {LONGEST} octets"));
    }
    let mut depth = 0;
    for key in path.split('/') {
        depth += 1;
        if depth > DEEPEST {
            return Some(format!("it has more than {DEEPEST} keys"));
        }
        if key.is_empty() {
            return Some("a key is empty".to_owned());
        }
        if key.len() > LONGEST_KEY {
            return Some(format!("a key has more than {LONGEST_KEY} octets"));
        }
        if key == "." || key == ".." {
            return Some(format!("{key:?} is no key"));
        }
        if let Some(other) = key.chars().find(|one| !is_fit(*one)) {
            return Some(format!("{other:?} is no character of a key"));
        }
    }
    None
}

const fn is_fit(one: char) -> bool {
    one.is_ascii_alphanumeric()
        || matches!(one, '.' | '_' | '~' | ':' | '+' | '=' | ',' | '-' | '@')
}

/// A text that came from outside, short enough for a message.
pub(super) fn shown(text: &str) -> String {
    const SHOWN: usize = 80;
    if text.chars().nth(SHOWN).is_none() {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start:?}...")
}

impl FromStr for Address {
    type Err = Fault;

    /// Reads an address with its marks.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let path = text
            .strip_prefix("@(")
            .and_then(|rest| rest.strip_suffix(')'));
        let path = path.ok_or_else(|| {
            let told = "is no address: that is a path between @( and ), as in @(tools/files)";
            Fault::new(Code::BadRequest, format!("{} {told}", shown(text)))
        })?;
        Self::of(path)
    }
}

impl TryFrom<&Path> for Address {
    type Error = Fault;

    fn try_from(path: &Path) -> Result<Self, Fault> {
        Self::of(path.as_str().trim_start_matches('/'))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@({})", self.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
