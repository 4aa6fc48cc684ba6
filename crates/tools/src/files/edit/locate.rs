//! Locating the text that an edit replaces.
//!
//! A model seldom repeats a file byte for byte: line ends, trailing spaces, quotes and indentation
//! get lost on the way. If the text does not occur as given, it is searched again in a normal form
//! that ignores one more of these differences at a time. The first form that occurs decides, so a
//! closer match is never ambiguous because of a looser one.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The differences that a match ignores, each in addition to the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tolerance {
    Exact,
    /// CRLF equals LF.
    LineEnds,
    /// Spaces and tabs at the end of a line.
    TrailingSpace,
    /// Quotes, dashes, kinds of spaces, and composed or decomposed characters.
    Typography,
    /// Indentation, and the number and kind of spaces within a line.
    Spacing,
}

impl Tolerance {
    const LENIENT: [Self; 4] = [
        Self::LineEnds,
        Self::TrailingSpace,
        Self::Typography,
        Self::Spacing,
    ];

    /// Completes the sentence "the text matches".
    pub(super) const fn says(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::LineEnds => " apart from line ends",
            Self::TrailingSpace => " apart from trailing spaces",
            Self::Typography => " apart from quotes, dashes or Unicode forms",
            Self::Spacing => " apart from indentation or spacing",
        }
    }
}

/// The occurrences of a text, in order.
#[derive(Debug)]
pub(super) struct Occurrences {
    pub(super) tolerance: Tolerance,
    /// Byte ranges of the file. They may overlap.
    pub(super) ranges: Vec<Range<usize>>,
    /// The searched text without its final line end, which the end of the file stands for.
    pub(super) at_end: bool,
}

/// Finds a text with the least tolerance that gives an occurrence. An empty text occurs nowhere.
pub(super) fn locate(text: &str, old: &str) -> Occurrences {
    let found = |tolerance, ranges, at_end| Occurrences {
        tolerance,
        ranges,
        at_end,
    };
    let exact = occurrences(text, old, |at| Some(at..at + old.len()));
    if !exact.is_empty() || old.is_empty() {
        return found(Tolerance::Exact, exact, false);
    }
    // A model ends each line, and the last line of a file may have no end.
    let bare = match text.ends_with('\n') {
        true => None,
        false => old.strip_suffix('\n'),
    };
    let bare = bare.map(|bare| bare.strip_suffix('\r').unwrap_or(bare));
    if let Some(bare) = bare.filter(|bare| !bare.is_empty() && text.ends_with(bare)) {
        let range = text.len() - bare.len()..text.len();
        return found(Tolerance::Exact, vec![range], true);
    }
    for tolerance in Tolerance::LENIENT {
        let file = NormalForm::of(text, tolerance);
        let ranges = file.find(&Sought::new(old, tolerance, false));
        if !ranges.is_empty() {
            return found(tolerance, ranges, false);
        }
        let Some(bare) = bare else { continue };
        let ranges = file.find(&Sought::new(bare, tolerance, true));
        if !ranges.is_empty() {
            return found(tolerance, ranges, true);
        }
    }
    found(Tolerance::Spacing, Vec::new(), false)
}

/// The occurrences of a text that `accept` maps to a range. They do not overlap, except that a
/// second one is also looked for within the first: a text that occurs twice is ambiguous.
fn occurrences(
    text: &str,
    part: &str,
    accept: impl Fn(usize) -> Option<Range<usize>>,
) -> Vec<Range<usize>> {
    let step = part.chars().next().map_or(1, char::len_utf8);
    let mut work = 0;
    let mut next = |mut from: usize| {
        // Periodic texts have many candidates, each as long to compare as the text.
        while !part.is_empty() && work <= MOST_WORK {
            let at = from + text.get(from..)?.find(part)?;
            if let Some(range) = accept(at) {
                return Some((at, range));
            }
            from = at + step;
            work += part.len();
        }
        None
    };
    let (mut found, mut from, mut first) = (Vec::new(), 0, 0);
    while let Some((at, range)) = next(from) {
        if found.is_empty() {
            first = at;
        }
        found.push(range);
        from = at + part.len();
    }
    if found.len() == 1 {
        found.extend(next(first + step).map(|(_, range)| range));
    }
    found
}

/// Bytes of rejected candidates after which a search ends.
const MOST_WORK: usize = 1 << 26;

/// A piece of a text that is compared as a whole.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) raw: &'a str,
    /// The form that is compared; empty if the piece is ignored.
    pub(super) key: Cow<'a, str>,
}

/// Splits a text into tokens.
pub(super) fn tokens(text: &str, tolerance: Tolerance) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    let mut line_start = true;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let (length, key) = token(rest, tolerance, line_start)?;
        at += length;
        line_start = key == "\n" || (line_start && key.is_empty());
        let raw = &rest[..length];
        Some(Token { raw, key })
    })
}

/// The length and the key of the first token.
fn token(text: &str, tolerance: Tolerance, line_start: bool) -> Option<(usize, Cow<'_, str>)> {
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    if first == b'\n' || (text.starts_with("\r\n") && tolerance >= Tolerance::LineEnds) {
        return Some((1 + usize::from(first == b'\r'), "\n".into()));
    }
    let folds = tolerance >= Tolerance::Typography;
    let is_space = |c: char| c == ' ' || c == '\t' || (folds && is_wide_space(c));
    let letter = text.chars().next()?;
    if is_space(letter) && tolerance >= Tolerance::TrailingSpace {
        let length = text.find(|c| !is_space(c)).unwrap_or(text.len());
        let after = &text[length..];
        let ends = after.is_empty() || after.starts_with('\n') || after.starts_with("\r\n");
        if tolerance == Tolerance::Spacing {
            let key = if ends || line_start { "" } else { " " };
            return Some((length, key.into()));
        }
        // A last line of spaces alone is the indentation of what follows.
        if ends && !(after.is_empty() && line_start) {
            return Some((length, "".into()));
        }
        // The whole run, so that a long one is looked at once.
        let run = &text[..length];
        return Some(match run.contains(is_wide_space) {
            true => (length, run.replace(is_wide_space, " ").into()),
            false => (length, run.into()),
        });
    }
    let length = letter.len_utf8();
    if !folds {
        return Some((length, text[..length].into()));
    }
    if text.starts_with("...") {
        return Some((3, "...".into()));
    }
    let next = text[length..].chars().next();
    if letter.is_ascii() && next.is_none_or(|next| next.is_ascii()) {
        return Some((length, text[..length].into()));
    }
    if let Some(folded) = fold(letter) {
        return Some((length, folded.into()));
    }
    let marks = text[length..].find(|c| !extends(c));
    let cluster = &text[..length + marks.unwrap_or(text.len() - length)];
    Some((cluster.len(), cluster.nfc().collect::<String>().into()))
}

/// Returns `true` if a character composes with the one before it.
fn extends(c: char) -> bool {
    // The second group are vowels and final consonants of decomposed Hangul.
    is_combining_mark(c) || ('\u{1160}'..='\u{11ff}').contains(&c)
}

/// Returns `true` for spaces that look like the usual one.
fn is_wide_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// The form of a character that a keyboard has.
fn fold(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2b9}' | '\u{2bc}' => "'",
        '\u{201c}'..='\u{201f}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        '\u{2026}' => "...",
        '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' => "",
        _ => return None,
    })
}

/// A text in the form in which it is compared.
struct NormalForm<'a> {
    raw: &'a str,
    text: String,
    /// The tokens that differ from their keys, in order.
    spans: Vec<Span>,
}

/// A token that differs from its key: ranges in the normal form and in the raw text.
struct Span {
    normal: Range<usize>,
    raw: Range<usize>,
}

impl<'a> NormalForm<'a> {
    fn of(raw: &'a str, tolerance: Tolerance) -> Self {
        let mut text = String::with_capacity(raw.len());
        let mut spans = Vec::new();
        let mut at = 0;
        for token in tokens(raw, tolerance) {
            let begin = text.len();
            text.push_str(&token.key);
            let end = at + token.raw.len();
            // An ellipsis is kept as a span, so that no match begins within it.
            if token.raw != token.key || token.key == "..." {
                spans.push(Span {
                    normal: begin..text.len(),
                    raw: at..end,
                });
            }
            at = end;
        }
        Self { raw, text, spans }
    }

    /// The raw ranges of all occurrences.
    fn find(&self, sought: &Sought) -> Vec<Range<usize>> {
        occurrences(&self.text, &sought.key, |at| self.range(at, sought))
    }

    /// The raw range of an occurrence, or `None` if it begins or ends where it must not.
    fn range(&self, at: usize, sought: &Sought) -> Option<Range<usize>> {
        let text = self.text.as_bytes();
        let end = at + sought.key.len();
        let line_start = at == 0 || text[at - 1] == b'\n';
        let line_end = end == text.len() || text[end] == b'\n';
        if (sought.indented && !line_start)
            || (sought.padded && !line_end)
            || (sought.last && end != text.len())
        {
            return None;
        }
        let (before, after) = self.raw_at(at)?;
        let begin = match sought.whole_lines && line_start {
            // A byte order mark stays before the first line.
            true if self.raw[before..].starts_with('\u{feff}') => before + 3,
            true => before,
            false => after,
        };
        let (before, after) = self.raw_at(end)?;
        let end = match sought.padded || sought.last || sought.next_indented {
            true => after,
            false => before,
        };
        (begin < end).then_some(begin..end)
    }

    /// The raw offsets of an offset in the normal form: before and after the ignored tokens there.
    /// `None` within a token.
    fn raw_at(&self, at: usize) -> Option<(usize, usize)> {
        let is_before =
            |span: &Span| span.normal.end < at || (span.normal.end == at && span.normal.start < at);
        let index = self.spans.partition_point(is_before);
        let last = index.checked_sub(1).and_then(|last| self.spans.get(last));
        let before = last.map_or(at, |span| span.raw.end + (at - span.normal.end));
        let mut after = before;
        for span in &self.spans[index..] {
            if span.normal.start < at {
                return None;
            }
            if span.normal.start > at || !span.normal.is_empty() {
                break;
            }
            after = span.raw.end;
        }
        Some((before, after))
    }
}

/// A text that is searched, in its normal form, and the conditions on its occurrences.
struct Sought {
    key: String,
    /// It begins with ignored indentation: the occurrence must begin a line.
    indented: bool,
    /// It ends with ignored spaces: the occurrence must end a line.
    padded: bool,
    /// It ends with the ignored indentation of the line that follows.
    next_indented: bool,
    /// Indentation belongs to an occurrence that begins a line.
    whole_lines: bool,
    /// The occurrence must end the file.
    last: bool,
}

impl Sought {
    fn new(old: &str, tolerance: Tolerance, last: bool) -> Self {
        let mut key = NormalForm::of(old, tolerance).text;
        let (head, tail) = (old.lines().next(), old.rsplit('\n').next());
        let (head, tail) = (head.unwrap_or_default(), tail.unwrap_or_default());
        let is_blank = |line: &str| line.trim().is_empty();
        let whole_lines = tolerance == Tolerance::Spacing;
        // Spaces alone would occur everywhere.
        if tolerance >= Tolerance::TrailingSpace && is_blank(old) {
            key.clear();
        }
        let spaces = |c: char| c == ' ' || c == '\t';
        Self {
            key,
            indented: whole_lines && !is_blank(head) && head.starts_with(spaces),
            padded: tolerance >= Tolerance::TrailingSpace
                && !is_blank(tail)
                && tail.ends_with(spaces),
            next_indented: whole_lines && !tail.is_empty() && is_blank(tail),
            whole_lines,
            last,
        }
    }
}
