//! What agents read of names: one line each, whatever is in them.

use strowger_tools::{Entry, EntryKind, Match, Skipped};

/// Something with a name, or a URI where that is not UTF-8.
pub(super) trait Named {
    fn named(&self) -> (&str, Option<&str>);
}

impl Named for Entry {
    fn named(&self) -> (&str, Option<&str>) {
        (&self.name, self.uri.as_deref())
    }
}

impl Named for Match {
    fn named(&self) -> (&str, Option<&str>) {
        (&self.path, self.uri.as_deref())
    }
}

/// A name in a line of a text: as it is, or in quotes and escaped if it could be taken for more
/// than a name; the URI of one that is not UTF-8. No two names look the same.
pub(super) fn name((name, uri): (&str, Option<&str>)) -> String {
    if let Some(uri) = uri {
        return uri.to_owned();
    }
    // Also what ends a line only for some, and what turns the direction of what follows.
    let is_odd = |letter: char| {
        letter.is_control()
            || matches!(
                letter,
                '"' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}'
            )
            || matches!(letter, '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    match name.contains(is_odd) {
        true => format!("\"{}\"", name.escape_default()),
        false => name.to_owned(),
    }
}

/// An entry of a list.
pub(super) fn entry_line(entry: &Entry) -> String {
    let kind = match entry.kind {
        EntryKind::File => "[FILE]",
        EntryKind::Directory => "[DIR]",
        EntryKind::Link => "[LINK]",
        _ => "[SPECIAL]",
    };
    let name = name(entry.named());
    match entry.size {
        Some(size) => format!("{kind} {name} {size}"),
        None => format!("{kind} {name}"),
    }
}

/// What a search passed over, if anything: counts, and the first paths.
pub(super) fn not_searched(skipped: &Skipped) -> Option<String> {
    if skipped.is_none() {
        return None;
    }
    let counts = [
        (skipped.binary, "binary"),
        (skipped.long_lines, "with lines that are too long"),
        (skipped.unreadable, "unreadable"),
        (skipped.links, "links"),
        (skipped.special, "no files"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| format!("{count} {what}"));
    let mut text = counts.collect::<Vec<_>>().join(", ");
    let paths = skipped.paths.iter().map(|one| name((&one.path, None)));
    let paths = paths.collect::<Vec<_>>().join(", ");
    if !paths.is_empty() {
        text.push_str(&format!("; {paths}"));
        let named = skipped.paths.len() as u64;
        if named < skipped.binary + skipped.long_lines + skipped.unreadable {
            text.push_str(", ...");
        }
    }
    Some(text)
}
