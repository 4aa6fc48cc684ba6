//! Addresses as callers outside the process write them: `@(tools/files)`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::fault::{Fault, FaultCode};
use crate::path::ActorPath;

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
const MAX_PATH_LEN: usize = 1024;
/// The maximum number of keys of a path.
const MAX_DEPTH: usize = 32;
/// The maximum length of a key, in bytes.
const MAX_KEY_LEN: usize = 255;

impl Address {
    /// Creates an address from a path without the enclosing `@(` and `)`, such as `tools/files`.
    ///
    /// # Errors
    /// Returns an error if the path is empty, too long or too deep, or if a key has a character
    /// that is not allowed in addresses.
    pub fn from_path(path: &str) -> Result<Self, Fault> {
        match find_problem(path) {
            None => Ok(Self(Arc::from(path))),
            Some(why) => {
                let text = format!("{} is no path of an address: {why}", quote_truncated(path));
                Err(Fault::new(FaultCode::BadRequest, text))
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
fn find_problem(path: &str) -> Option<String> {
    if path.is_empty() {
        return Some("it is empty".to_owned());
    }
    if path.len() > MAX_PATH_LEN {
        return Some(format!("it is longer than {MAX_PATH_LEN} bytes"));
    }
    let mut depth = 0;
    for key in path.split('/') {
        depth += 1;
        if depth > MAX_DEPTH {
            return Some(format!("it has more than {MAX_DEPTH} keys"));
        }
        if key.is_empty() {
            return Some("a key is empty".to_owned());
        }
        if key.len() > MAX_KEY_LEN {
            return Some(format!("a key is longer than {MAX_KEY_LEN} bytes"));
        }
        if key == "." || key == ".." {
            return Some(format!("{key:?} is not a valid key"));
        }
        if let Some(other) = key.chars().find(|one| !is_address_char(*one)) {
            return Some(format!("{other:?} is not allowed in a key"));
        }
    }
    None
}

const fn is_address_char(one: char) -> bool {
    one.is_ascii_alphanumeric()
        || matches!(one, '.' | '_' | '~' | ':' | '+' | '=' | ',' | '-' | '@')
}

/// Quotes a text that came from outside, cut short so that it fits into a message.
pub(super) fn quote_truncated(text: &str) -> String {
    const MAX_QUOTED_CHARS: usize = 80;
    if text.chars().nth(MAX_QUOTED_CHARS).is_none() {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(MAX_QUOTED_CHARS).collect();
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
            Fault::new(
                FaultCode::BadRequest,
                format!("{} {told}", quote_truncated(text)),
            )
        })?;
        Self::from_path(path)
    }
}

impl TryFrom<&ActorPath> for Address {
    type Error = Fault;

    fn try_from(path: &ActorPath) -> Result<Self, Fault> {
        Self::from_path(path.as_str().trim_start_matches('/'))
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
