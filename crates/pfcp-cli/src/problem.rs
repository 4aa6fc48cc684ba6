//! Problems in a configuration, reported with their place as compilers do.

use std::fmt::Write;
use std::ops::Range;

use toml::de::DeTable;

use crate::exit::Failure;

/// A problem and its place, if known.
#[derive(Debug)]
pub struct Problem {
    what: String,
    /// The key of the problem, such as `control.frame`.
    key: Option<String>,
    span: Option<Range<usize>>,
}

impl Problem {
    /// Creates a problem from an error of the TOML parser.
    #[must_use]
    pub fn of_toml(error: &toml::de::Error) -> Self {
        Self {
            what: error.message().replace('\n', ": "),
            key: None,
            span: error.span(),
        }
    }

    /// Creates a problem at a place in the text.
    #[must_use]
    pub const fn in_place(what: String, span: Range<usize>) -> Self {
        Self {
            what,
            key: None,
            span: Some(span),
        }
    }

    /// Creates a problem with the value of a key.
    #[must_use]
    pub fn at(key: &str, what: &str) -> Self {
        Self {
            what: format!("`{key}` {what}"),
            key: Some(key.to_owned()),
            span: None,
        }
    }

    /// Creates a problem from the message of a section, which begins with the key between
    /// backticks.
    #[must_use]
    pub fn of_section(section: &str, what: &str) -> Self {
        let key = what.split('`').nth(1);
        let key = key.map(|key| format!("{section}.{key}"));
        let what = match (&key, what.split_once('`')) {
            (Some(_), Some((before, after))) => format!("{before}`{section}.{after}"),
            _ => format!("[{section}]: {what}"),
        };
        Self {
            what,
            key,
            span: None,
        }
    }

    /// Looks the key up in the text. A wrong default has no place.
    #[must_use]
    pub fn found(mut self, text: &str) -> Self {
        if let Some(key) = &self.key {
            self.span = find_key(text, key);
        }
        self
    }

    /// Returns the description, including the key.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the failure with the description, the place and a hint.
    #[must_use]
    pub fn to_failure(&self, text: &str, name: &str) -> Failure {
        let failure = self.to_failure_without_hint(text, name);
        match self.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// Returns the failure with the description and the place.
    #[must_use]
    pub fn to_failure_without_hint(&self, text: &str, name: &str) -> Failure {
        let mut message = name.to_owned();
        match &self.span {
            Some(span) => {
                let (line, column) = line_and_column(text, span.start);
                let _ = write!(message, ":{line}:{column}: {}", self.what);
                message.push_str(&excerpt(text, span));
            }
            None => {
                let _ = write!(message, ": {}", self.what);
            }
        }
        Failure::input(message)
    }

    fn hint(&self) -> Option<String> {
        let what = &self.what;
        if what.starts_with("unknown field") {
            let near = nearest(what);
            let near = near.map(|key| format!("did you mean `{key}`? "));
            let near = near.unwrap_or_default();
            return Some(format!("{near}`strowger init -` prints every key"));
        }
        if what.starts_with("duplicate key") {
            return Some("remove one of them".to_owned());
        }
        None
    }
}

/// Finds the value of a key, or the key's table if the key is not written.
fn find_key(text: &str, key: &str) -> Option<Range<usize>> {
    let parsed = DeTable::parse(text).ok()?;
    let mut table = parsed.get_ref();
    let mut span = None;
    for part in key.split('.') {
        let Some((name, value)) = table.get_key_value(part) else {
            break;
        };
        match value.get_ref().as_table() {
            Some(inner) => {
                span = Some(name.span());
                table = inner;
            }
            None => return Some(value.span()),
        }
    }
    span
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// Returns the line of a place, with a caret below each of its characters.
fn excerpt(text: &str, span: &Range<usize>) -> String {
    let (number, column) = line_and_column(text, span.start);
    let line = text.lines().nth(number - 1).unwrap_or_default();
    let wide = text.get(span.clone()).unwrap_or_default();
    let first = wide.lines().next().unwrap_or_default();
    let room = (line.chars().count() + 1).saturating_sub(column).max(1);
    let carets = "^".repeat(first.chars().count().clamp(1, room));
    // Keep tabs, so that the carets are below the right characters.
    let indent: String = line
        .chars()
        .take(column - 1)
        .map(|letter| if letter == '\t' { '\t' } else { ' ' })
        .collect();
    let number = number.to_string();
    let margin = " ".repeat(number.len());
    format!("\n{margin} |\n{number} | {line}\n{margin} | {indent}{carets}")
}

/// Finds the key most similar to the unknown one, in an error that lists all keys.
fn nearest(what: &str) -> Option<&str> {
    let mut quoted = what.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    quoted
        .map(|key| (distance(unknown, key), key))
        .filter(|(distance, key)| *distance <= key.len().max(3) / 3)
        .min()
        .map(|(_, key)| key)
}

/// Returns the edit distance: characters to change, add or remove.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
