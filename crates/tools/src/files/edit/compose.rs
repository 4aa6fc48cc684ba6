//! The text that replaces an occurrence.
//!
//! It keeps the form of the file: unchanged lines stay byte for byte, new lines get the file's line
//! ends and indentation.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::locate::{Token, Tolerance, tokens};

/// The line end that most lines of a text have, or `None` if it has one line.
pub(super) fn line_end(text: &str) -> Option<&'static str> {
    let all = text.matches('\n').count();
    let crlf = text.matches("\r\n").count();
    (all > 0).then_some(if crlf * 2 > all { "\r\n" } else { "\n" })
}

/// Appends a text with these line ends.
fn push_lines(to: &mut String, text: &str, end: Option<&str>) {
    let Some(end) = end else {
        return to.push_str(text);
    };
    for (number, line) in split(text).into_iter().enumerate() {
        if number > 0 {
            to.push_str(end);
        }
        to.push_str(line);
    }
}

/// The lines of a text without their ends; a final line end begins an empty line.
fn split(text: &str) -> Vec<&str> {
    let lines = text.split('\n');
    let mut lines: Vec<_> = lines
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect();
    // A lone CR at the end of the text is not part of a line end.
    if let Some(last) = lines.last_mut() {
        *last = &text[text.rfind('\n').map_or(0, |at| at + 1)..];
    }
    lines
}

/// A replacement: the searched text and its substitute, how the file differs from the former, and
/// the file's line end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) tolerance: Tolerance,
    pub(super) line_end: Option<&'static str>,
    /// The time at which the search for unchanged parts ends.
    pub(super) deadline: Instant,
}

/// Appends the text that replaces an occurrence. Returns `false` once more than `most` bytes are
/// needed.
pub(super) fn compose(
    to: &mut String,
    text: &str,
    range: &Range<usize>,
    replacement: Replacement<'_>,
    most: usize,
) -> bool {
    let Replacement {
        old,
        new,
        tolerance,
        line_end: end,
        deadline,
    } = replacement;
    let raw = &text[range.clone()];
    // The lines of the occurrence may differ from those of the rest.
    let end = line_end(raw).or(end);
    if tolerance == Tolerance::Exact {
        // An edit that names line ends means them.
        let end = end.filter(|_| !old.contains("\r\n"));
        push_lines(to, new, end);
        return to.len() <= most;
    }
    let (old_lines, raw_lines, new_lines) = (split(old), split(raw), split(new));
    if old_lines.len() != raw_lines.len() {
        push_lines(to, new, end);
        return to.len() <= most;
    }
    let form = FileForm::new(text, (&old_lines, &raw_lines, &new_lines), replacement);
    let deadline = Some(deadline);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, deadline);
    let mut first = true;
    let mut push = |line: &str| {
        if !first {
            to.push_str(end.unwrap_or("\n"));
        }
        first = false;
        to.push_str(line);
        to.len() <= most
    };
    for op in ops {
        let (before, after) = (op.old_range(), op.new_range());
        let unchanged = matches!(op, DiffOp::Equal { .. });
        for (number, at) in after.enumerate() {
            let paired = Some(before.start + number).filter(|at| before.contains(at));
            let line = match paired {
                Some(at) if unchanged => raw_lines[at].to_owned(),
                Some(paired) => form.changed(paired, at),
                None => form.added(at),
            };
            if !push(&line) {
                return false;
            }
        }
    }
    true
}

/// A line in two parts.
struct Line<'a> {
    indent: &'a str,
    body: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let body = line.trim_start_matches([' ', '\t']);
        let indent = &line[..line.len() - body.len()];
        Self { indent, body }
    }
}

/// The way in which a file writes what an edit writes differently.
struct FileForm<'a> {
    old: &'a [&'a str],
    raw: &'a [&'a str],
    new: &'a [&'a str],
    tolerance: Tolerance,
    indents: Indents<'a>,
    /// The characters of the file for a character of the edit.
    letters: BTreeMap<&'a str, BTreeSet<&'a str>>,
    deadline: Instant,
}

impl<'a> FileForm<'a> {
    fn new(
        text: &str,
        (old, raw, new): (&'a [&'a str], &'a [&'a str], &'a [&'a str]),
        Replacement {
            tolerance,
            deadline,
            ..
        }: Replacement<'_>,
    ) -> Self {
        let mut letters: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        if tolerance >= Tolerance::Typography {
            for (old, raw) in old.iter().zip(raw) {
                for (old, raw) in pairs(old, raw, tolerance) {
                    letters.entry(old.raw).or_default().insert(raw.raw);
                }
            }
        }
        Self {
            old,
            raw,
            new,
            tolerance,
            indents: Indents::new(text, old, raw, new, tolerance),
            letters,
            deadline,
        }
    }

    /// A new line that no old one corresponds to.
    fn added(&self, at: usize) -> String {
        let line = Line::of(self.new[at]);
        let mut text = self.indents.of(line.indent, at == 0);
        self.push_body(&mut text, line.body);
        text
    }

    /// A new line in the place of an old one.
    fn changed(&self, old: usize, new: usize) -> String {
        let (raw, old) = (Line::of(self.raw[old]), Line::of(self.old[old]));
        let line = Line::of(self.new[new]);
        let mut text = match line.indent == old.indent {
            true => raw.indent.to_owned(),
            false => self.indents.of(line.indent, new == 0),
        };
        if raw.body.trim_end() == old.body.trim_end() || self.tolerance < Tolerance::Typography {
            text.push_str(line.body);
            return text;
        }
        let pairs = pairs(old.body, raw.body, self.tolerance);
        let before: Vec<_> = pairs.iter().map(|(old, _)| old.raw).collect();
        let after: Vec<_> = tokens(line.body, self.tolerance)
            .map(|token| token.raw)
            .collect();
        let deadline = Some(self.deadline);
        for op in capture_diff_slices_deadline(Algorithm::Myers, &before, &after, deadline) {
            let (old, new) = (op.old_range(), op.new_range());
            match op {
                DiffOp::Equal { .. } => {
                    text.extend(pairs[old].iter().map(|(_, raw)| raw.raw));
                }
                _ => after[new]
                    .iter()
                    .for_each(|token| self.push(&mut text, token)),
            }
        }
        text
    }

    fn push_body(&self, to: &mut String, body: &str) {
        if self.letters.is_empty() {
            return to.push_str(body);
        }
        tokens(body, self.tolerance).for_each(|token| self.push(to, token.raw));
    }

    /// Appends a character of the edit in the file's form: straight quotes where the file has
    /// them, and curly ones by the side that they are on.
    fn push(&self, to: &mut String, letter: &str) {
        // A hyphen or a space is not the dash or the fixed space of another place.
        let is_plain = matches!(letter, "-" | "..." | "\t") || letter.trim().is_empty();
        let Some(forms) = self.letters.get(letter).filter(|_| !is_plain) else {
            return to.push_str(letter);
        };
        let opens = to.chars().next_back().is_none_or(|before| {
            before.is_whitespace() || "([{<-\u{2013}\u{2014}".contains(before)
        });
        let form = match forms.len() {
            1 => forms.first(),
            _ => forms.iter().find(|form| match **form {
                "\u{201c}" | "\u{2018}" => opens,
                "\u{201d}" | "\u{2019}" => !opens,
                _ => false,
            }),
        };
        to.push_str(form.copied().unwrap_or(letter));
    }
}

/// The compared tokens of a line of the edit with those of the file.
fn pairs<'a>(old: &'a str, raw: &'a str, tolerance: Tolerance) -> Vec<(Token<'a>, Token<'a>)> {
    let compared = |line| tokens(line, tolerance).filter(|token| !token.key.is_empty());
    compared(old).zip(compared(raw)).collect()
}

/// The indentation of the file for that of the edit.
struct Indents<'a> {
    pairs: BTreeMap<&'a str, &'a str>,
    /// The indentation of the first line, if the edit has it without.
    first: Option<&'a str>,
    /// Columns of one level in the edit.
    step: usize,
    /// One level in the file.
    unit: String,
}

/// Columns of a tab, where it is compared with spaces.
const TAB: usize = 4;

fn width(indent: &str) -> usize {
    indent
        .chars()
        .map(|c| if c == '\t' { TAB } else { 1 })
        .sum()
}

impl<'a> Indents<'a> {
    fn new(
        text: &str,
        old: &[&'a str],
        raw: &[&'a str],
        new: &[&'a str],
        tolerance: Tolerance,
    ) -> Self {
        let mut all = Self {
            pairs: BTreeMap::new(),
            first: None,
            step: TAB,
            unit: String::new(),
        };
        if tolerance < Tolerance::Spacing {
            return all;
        }
        for (number, (old, raw)) in old.iter().zip(raw).enumerate() {
            let (old_line, raw) = (Line::of(old), Line::of(raw));
            // The last line may be the indentation of what follows.
            let counts = !old_line.body.is_empty() || !old_line.indent.is_empty();
            if number == 0 && old_line.indent.is_empty() {
                all.first = Some(raw.indent);
            } else if counts {
                all.pairs.entry(old_line.indent).or_insert(raw.indent);
            }
        }
        let moved = all.pairs.iter().any(|(old, raw)| old != raw);
        if let Some(first) = all.first.filter(|_| moved || all.pairs.is_empty()) {
            // The whole block lost its indentation, not only the line that it begins in.
            all.pairs.entry("").or_insert(first);
        }
        if all.pairs.iter().all(|(old, raw)| old == raw) {
            all.pairs.clear();
        }
        let lines = old.iter().chain(new).map(|line| Line::of(line));
        let widths = lines.filter(|line| !line.body.is_empty());
        let widths: BTreeSet<_> = widths.map(|line| width(line.indent)).collect();
        let steps = widths.iter().zip(widths.iter().skip(1));
        all.step = steps.map(|(less, more)| more - less).min().unwrap_or(TAB);
        all.unit = unit(text, raw).unwrap_or_else(|| " ".repeat(all.step));
        all
    }

    /// The indentation of the file for one of the edit.
    fn of(&self, indent: &str, first: bool) -> String {
        if let Some(kept) = self.first.filter(|_| first && indent.is_empty()) {
            return kept.to_owned();
        }
        if let Some(known) = self.pairs.get(indent) {
            return (*known).to_owned();
        }
        let columns = width(indent);
        let known = self.pairs.iter().map(|(old, raw)| (width(old), *raw));
        let below = known.clone().filter(|(old, _)| *old <= columns).max();
        let Some((old, raw)) = below.or_else(|| known.min()) else {
            return indent.to_owned();
        };
        if columns >= old {
            let (levels, rest) = ((columns - old) / self.step, (columns - old) % self.step);
            return raw.to_owned() + &self.unit.repeat(levels) + &" ".repeat(rest);
        }
        let less = (old - columns).div_ceil(self.step) * width(&self.unit);
        let kept = width(raw).saturating_sub(less);
        let mut columns = 0;
        let kept = raw.find(|c| {
            let fits = columns < kept;
            columns += if c == '\t' { TAB } else { 1 };
            !fits
        });
        raw[..kept.unwrap_or(raw.len())].to_owned()
    }
}

/// One level of the file's indentation: a tab if the occurrence or the file has tabs, else the
/// most frequent step from one line to the next.
fn unit(text: &str, raw: &[&str]) -> Option<String> {
    let is_tabbed = |line: &str| line.starts_with('\t');
    let is_spaced = |line: &str| line.starts_with(' ');
    let own = raw.iter().any(|line| is_tabbed(line));
    if own || (!raw.iter().any(|line| is_spaced(line)) && text.lines().any(is_tabbed)) {
        return Some("\t".to_owned());
    }
    let lines = text.lines().take(MOST_LINES).map(Line::of);
    let widths = lines.filter(|line| !line.body.is_empty());
    let mut steps: BTreeMap<usize, usize> = BTreeMap::new();
    let mut last = 0;
    for now in widths.map(|line| width(line.indent)) {
        if now > last {
            *steps.entry(now - last).or_default() += 1;
        }
        last = now;
    }
    let most = steps
        .into_iter()
        .max_by_key(|(step, count)| (*count, usize::MAX - step));
    most.map(|(step, _)| " ".repeat(step))
}

/// Lines that are examined for the file's indentation.
const MOST_LINES: usize = 10_000;
