//! Explanations of edits that match nowhere or several times.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Instant;

use super::SEARCH_TIME;
use super::locate::{Occurrences, Tolerance, tokens};

/// Names the lines of several matches.
pub(super) fn ambiguous(text: &str, found: &Occurrences) -> String {
    let (mut line, mut at) = (1, 0);
    let mut lines = String::new();
    for range in found.ranges.iter().take(MOST_LINES) {
        line += text[at.min(range.start)..range.start].matches('\n').count();
        at = range.start.max(at);
        let comma = if lines.is_empty() { "" } else { ", " };
        let _ = write!(lines, "{comma}{line}");
    }
    if found.ranges.len() > MOST_LINES {
        lines.push_str(", ...");
    }
    format!(
        "{}, at lines {lines}: include more of the lines around it in the text to replace, or set \
         `all`",
        found.tolerance.says()
    )
}

/// Shows the text that is nearest to one that matches nowhere, and says what differs.
pub(super) fn miss(text: &str, old: &str) -> String {
    if old.is_empty() {
        return ": the text to replace is empty; use append_file to add text at the end".to_owned();
    }
    if text.is_empty() {
        return ": the file is empty".to_owned();
    }
    let wanted: Vec<&str> = old.lines().collect();
    let lines: Vec<&str> = text.lines().collect();
    let Some(begin) = window(&lines, &wanted) else {
        return ", and no text of the file is similar: read the file again".to_owned();
    };
    let mut said = format!(". The nearest text begins at line {}:", begin + 1);
    let at = |number: usize| lines.get(begin + number).copied();
    let differs = |number: &usize| at(*number).map(normal) != Some(normal(wanted[*number]));
    let different: Vec<usize> = (0..wanted.len()).filter(differs).collect();
    let first = different.first().map_or(0, |first| first.saturating_sub(1));
    if first > 0 {
        said.push_str("\n  ...");
    }
    let shown = lines.iter().skip(begin + first);
    for line in shown.take((wanted.len() - first).min(MOST_LINES)) {
        let _ = write!(said, "\n  {}", short(line));
    }
    for number in different.iter().copied().take(MOST_DIFFERENCES) {
        let Some(has) = at(number) else {
            said.push_str("\nThe file ends before the text to replace does.");
            break;
        };
        let wants = wanted[number];
        let _ = write!(
            said,
            "\nLine {}{}: the file has `{}`, the text to replace `{}`.",
            begin + number + 1,
            kind(has, wants),
            short(has.trim()),
            short(wants.trim())
        );
    }
    match different.len().checked_sub(MOST_DIFFERENCES) {
        Some(more @ 1..) => {
            let _ = write!(said, "\n{more} more lines differ.");
        }
        _ if different.is_empty() => {
            said.push_str("\nIts lines are the same, but they begin or end elsewhere in a line.");
        }
        _ => {}
    }
    said
}

/// Lines that are shown or listed.
const MOST_LINES: usize = 10;

/// Differing lines that are described.
const MOST_DIFFERENCES: usize = 3;

/// Characters of a line that are shown.
const MOST_LETTERS: usize = 160;

fn short(line: &str) -> String {
    match line.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// The form in which lines are compared.
fn normal(line: &str) -> String {
    tokens(line, Tolerance::Spacing)
        .map(|token| token.key)
        .collect()
}

/// The kind of a difference between two lines, if it is easily overlooked.
fn kind(has: &str, wants: &str) -> &'static str {
    let letters = |line: &str| -> String {
        let letters = normal(line);
        letters.chars().filter(|c| !c.is_whitespace()).collect()
    };
    let (has, wants) = (letters(has), letters(wants));
    if has == wants {
        " (spaces within the line)"
    } else if has.to_lowercase() == wants.to_lowercase() {
        " (upper and lower case)"
    } else {
        ""
    }
}

/// The first line of the part of the file that is most like the wanted lines.
fn window(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, line) in wanted.iter().enumerate() {
        let key = normal(line);
        if !key.is_empty() {
            let places = places.entry(key).or_default();
            // Lines such as `}` say little about the place.
            if places.len() < MOST_PLACES {
                places.push(at);
            }
        }
    }
    let deadline = Instant::now() + SEARCH_TIME;
    let mut votes = vec![0_u16; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        for place in places.get(&normal(line)).into_iter().flatten() {
            if let Some(begin) = at.checked_sub(*place) {
                votes[begin] = votes[begin].saturating_add(1);
            }
        }
    }
    let best = votes
        .iter()
        .enumerate()
        .rev()
        .max_by_key(|(_, votes)| **votes);
    if let Some((begin, 1..)) = best {
        return Some(begin);
    }
    // No line is the same: compare the longest by its pairs of letters.
    let (place, line) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let sought = bigrams(line);
    let mut best = (LEAST_LIKENESS, None);
    for (at, line) in lines.iter().enumerate() {
        if at % 256 == 0 && Instant::now() > deadline {
            break;
        }
        let likeness = likeness(&sought, &bigrams(line));
        if likeness > best.0 {
            best = (likeness, Some(at.saturating_sub(place)));
        }
    }
    best.1
}

/// Places of one line in the text to replace that are tried.
const MOST_PLACES: usize = 4;

/// Shared pairs of letters, in percent, from which two lines are alike.
const LEAST_LIKENESS: usize = 40;

/// The sorted pairs of letters of a line.
fn bigrams(line: &str) -> Vec<(char, char)> {
    let line = normal(short(line).as_str()).to_lowercase();
    let mut pairs: Vec<_> = line.chars().zip(line.chars().skip(1)).collect();
    pairs.sort_unstable();
    pairs
}

/// The pairs that two sorted lists share, in percent of all.
fn likeness(one: &[(char, char)], other: &[(char, char)]) -> usize {
    let (mut left, mut right, mut shared) = (0, 0, 0_usize);
    while let (Some(a), Some(b)) = (one.get(left), other.get(right)) {
        match a.cmp(b) {
            std::cmp::Ordering::Less => left += 1,
            std::cmp::Ordering::Greater => right += 1,
            std::cmp::Ordering::Equal => {
                shared += 1;
                left += 1;
                right += 1;
            }
        }
    }
    (shared * 200)
        .checked_div(one.len() + other.len())
        .unwrap_or(0)
}
