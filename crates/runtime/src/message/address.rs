//! Addresses as callers outside the process write them: `@(tools/files)`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::fault::{Code, Fault};
use crate::path::Path;

/// The address of an exposed actor, written as `@(tools/files)`: its path in the tree, or the name
/// it is exposed as.
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

/// The maximum length of a path, in bytes.
const LONGEST: usize = 1024;
/// The maximum number of keys of a path.
const DEEPEST: usize = 32;
/// The maximum length of a key, in bytes.
const LONGEST_KEY: usize = 255;

impl Address {
    /// Creates an address from a path without the enclosing `@(` and `)`, such as `tools/files`.
    ///
    /// # Errors
    /// Returns an error if the path is empty, too long or too deep, or if a key has a character
    /// that is not allowed in addresses.
    pub fn of(path: &str) -> Result<Self, Fault> {
        match wrong(path) {
            None => Ok(Self(Arc::from(path))),
            Some(why) => {
                let text = format!("{} is no path of an address: {why}", shown(path));
                Err(Fault::new(Code::BadRequest, text))
            }
        }
    }

    /// Returns the path without the enclosing `@(` and `)`, such as `tools/files`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0
    }

    /// Returns the keys, starting at the root.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    pub(super) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// Returns a description of what is wrong with a path, or `None` if it is valid.
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

/// Quotes a text that came from outside, cut short so that it fits into a message.
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

    /// Parses an address with the enclosing `@(` and `)`.
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
