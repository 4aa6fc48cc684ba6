//! Names and lines as agents read them: one line each, whatever they contain.

use std::time::Duration;

use strowger_tools::files::{EntryInfo, EntryKind, SearchMatch, SkipSummary, SkippedPath};

use strowger_pfcp_cli::time::iso_second;

/// An item with a name, and with a URI if the name alone is not enough.
pub(super) trait NameAndUri {
    fn name_and_uri(&self) -> (&str, Option<&str>);
}

impl NameAndUri for EntryInfo {
    fn name_and_uri(&self) -> (&str, Option<&str>) {
        (&self.name, self.uri.as_deref())
    }
}

impl NameAndUri for SearchMatch {
    fn name_and_uri(&self) -> (&str, Option<&str>) {
        (&self.path, self.uri.as_deref())
    }
}

impl NameAndUri for SkippedPath {
    fn name_and_uri(&self) -> (&str, Option<&str>) {
        (&self.path, self.uri.as_deref())
    }
}

/// Formats a name for a line of text: as it is, or as its URI if it is not UTF-8 or could be
/// mistaken for more than a name. No two names look the same, and both forms can be used as paths.
pub(super) fn format_name((name, uri): (&str, Option<&str>)) -> String {
    uri.unwrap_or(name).to_owned()
}

/// Formats a line of a file as one line: characters that could end the line or change its direction
/// are escaped.
pub(super) fn format_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' => line.push(letter),
            '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                line.extend(letter.escape_unicode());
            }
            _ if letter.is_control() => line.extend(letter.escape_default()),
            _ => line.push(letter),
        }
    }
    line
}

/// Formats an entry of a list.
pub(super) fn format_entry(entry: &EntryInfo) -> String {
    let kind = match entry.kind {
        EntryKind::File => "[FILE]",
        EntryKind::Directory => "[DIR]",
        EntryKind::Link => "[LINK]",
        _ => "[SPECIAL]",
    };
    let name = format_name(entry.name_and_uri());
    match (entry.size, entry.modified_ms) {
        (Some(size), Some(modified)) => {
            let modified = iso_second(Duration::from_millis(modified));
            format!("{kind} {name} {size} {modified}")
        }
        (Some(size), None) => format!("{kind} {name} {size}"),
        (None, _) => format!("{kind} {name}"),
    }
}

/// Describes what a search skipped, if anything: counts, and the first paths.
pub(super) fn describe_skipped(skipped: &SkipSummary) -> Option<String> {
    if skipped.is_none() {
        return None;
    }
    let counts = [
        (skipped.binary, "binary"),
        (skipped.deep, "deeper than `depth`"),
        (
            skipped.long_lines,
            "searched in parts: lines longer than 1 MiB",
        ),
        (skipped.unreadable, "unreadable"),
        (skipped.links, "links"),
        (skipped.special, "not regular files"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| format!("{count} {what}"));
    let mut text = counts.collect::<Vec<_>>().join(", ");
    let paths = skipped
        .paths
        .iter()
        .map(|one| format_name(one.name_and_uri()));
    let paths = paths.collect::<Vec<_>>().join(", ");
    if !paths.is_empty() {
        text.push_str(&format!("; {paths}"));
        let named = skipped.paths.len() as u64;
        let all = skipped.binary + skipped.deep + skipped.long_lines + skipped.unreadable;
        if named < all {
            text.push_str(", ...");
        }
    }
    Some(text)
}
