//! Search for lines that match a pattern, in texts of any length.
//!
//! ```text
//! a file ─▶ chunks of whole lines ─▶ one search of the whole chunk
//!                                      └▶ each match is searched again as a line of its own
//! ```
//!
//! A search of a whole chunk finds at least every line that matches, because a match in a line is
//! also a match in the chunk. It may find more, because a pattern may match across the end of a
//! line.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter, memrchr};
use regex::bytes::{Regex, RegexBuilder};

use super::disk::StopCheck;

/// A compiled pattern for lines.
#[derive(Debug)]
pub(super) struct LinePattern {
    regex: Regex,
    /// `true` if a search of a whole chunk finds every matching line.
    in_chunks: bool,
}

impl LinePattern {
    pub(super) fn new(text: &str) -> Result<Self, regex::Error> {
        let mut builder = RegexBuilder::new(text);
        // Makes `^` and `$` match at the ends of each line, whether it ends in LF or CRLF.
        let builder = builder
            .multi_line(true)
            .crlf(true)
            .size_limit(MAX_COMPILED_PATTERN);
        Ok(Self {
            regex: builder.build()?,
            in_chunks: !may_match_text_ends(text),
        })
    }
}

/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED_PATTERN: usize = 1 << 20;

/// Returns `true` if a pattern may refer to the ends of the text instead of the ends of a line.
/// Errs on the side of `true`.
fn may_match_text_ends(pattern: &str) -> bool {
    let switches_off = |group: &str| {
        let flags = group.split([':', ')', '<']).next();
        flags.is_some_and(|flags| flags.contains('-'))
    };
    pattern.contains("\\A")
        || pattern.contains("\\z")
        || pattern.split("(?").skip(1).any(switches_off)
}

/// Sizes of the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferSizes {
    /// Number of bytes to read at a time.
    pub(super) chunk: usize,
    /// Maximum length of a line that is searched as a whole; at least `chunk`.
    pub(super) line: usize,
    /// Number of bytes of a longer line that are searched again together with what follows.
    pub(super) overlap: usize,
}

impl Default for BufferSizes {
    fn default() -> Self {
        Self {
            chunk: 256 << 10,
            line: MAX_WHOLE_LINE,
            overlap: 4096,
        }
    }
}

/// Maximum length of a line that is searched as a whole, in bytes.
pub(super) const MAX_WHOLE_LINE: usize = 1 << 20;

/// The result of a scan.
#[derive(Debug)]
pub(super) struct ScanResult {
    /// Number of bytes read.
    pub(super) read: u64,
    /// `true` if a line was so long that it was searched in pieces.
    pub(super) has_long_lines: bool,
    pub(super) ended: ScanEnd,
}

/// The reason why a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanEnd {
    /// The whole text was scanned.
    EndOfText,
    /// The text contains a NUL, so it is binary.
    Binary,
    /// The caller wants no more lines.
    CallerDone,
    /// The search was cancelled.
    Cancelled,
}

/// Takes the number and the text of a matching line. Returns `true` to go on.
pub(super) type OnMatch<'a> = &'a mut dyn FnMut(u64, String) -> bool;

/// A scanner that reuses its buffer for one file after another.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    sizes: BufferSizes,
    buffer: Vec<u8>,
}

impl Scanner {
    /// Scans a text up to its end, or to its first NUL.
    pub(super) fn scan(
        &mut self,
        pattern: &LinePattern,
        mut source: impl Read,
        take: OnMatch<'_>,
        stop: StopCheck<'_>,
    ) -> io::Result<ScanResult> {
        self.buffer.resize(self.sizes.chunk, 0);
        let mut lines = TextScan {
            pattern,
            on_match: take,
            number: 1,
            long_line: None,
        };
        let (mut held, mut read, mut has_long_lines) = (0, 0, false);
        let ended = loop {
            if stop() {
                break ScanEnd::Cancelled;
            }
            if held == self.buffer.len() {
                let longer = (held * 2).min(self.sizes.line.max(self.sizes.chunk));
                self.buffer.resize(longer, 0);
            }
            let more = match source.read(&mut self.buffer[held..]) {
                Ok(more) => more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            read += more as u64;
            let zero = memchr(0, &self.buffer[held..held + more]).map(|at| held + at);
            held += more;
            let text = zero.unwrap_or(held);
            let whole = match (more, zero) {
                (0, None) => held, // At the end of the text, the last line may lack a terminator.
                _ => memrchr(b'\n', &self.buffer[..text]).map_or(0, |at| at + 1),
            };
            if !lines.search_chunk(&self.buffer[..whole]) {
                break ScanEnd::CallerDone;
            }
            if zero.is_some() {
                break ScanEnd::Binary;
            }
            if more == 0 {
                break ScanEnd::EndOfText;
            }
            let mut done = whole;
            if whole == 0 && held >= self.sizes.line {
                has_long_lines = true;
                if !lines.search_piece(&self.buffer[..held]) {
                    break ScanEnd::CallerDone;
                }
                done = held - self.sizes.overlap.min(held / 2);
            }
            self.buffer.copy_within(done..held, 0);
            held -= done;
        };
        Ok(ScanResult {
            read,
            has_long_lines,
            ended,
        })
    }
}

/// The state of a scan of one text.
struct TextScan<'a> {
    pattern: &'a LinePattern,
    on_match: OnMatch<'a>,
    /// Number of the next line, or of the long line in progress.
    number: u64,
    /// `Some` within a long line that is searched in pieces; `true` if it has matched.
    long_line: Option<bool>,
}

impl TextScan<'_> {
    /// Searches whole lines. Returns `true` to go on.
    fn search_chunk(&mut self, mut chunk: &[u8]) -> bool {
        if chunk.is_empty() {
            return true;
        }
        if self.long_line.is_some() {
            let (line, rest) = chunk.split_at(end_of_line(chunk, 0));
            if !self.search_piece(line) {
                return false;
            }
            self.long_line = None;
            self.number += 1;
            chunk = rest;
        }
        let (mut at, mut in_chunks) = (0, self.pattern.in_chunks);
        while at < chunk.len() {
            let (from, end) = if in_chunks {
                let found = self.pattern.regex.find_at(chunk, at);
                // An empty match after the last line belongs to no line.
                let found = found.filter(|found| found.start() < chunk.len());
                let Some(found) = found else {
                    break;
                };
                let before = memrchr(b'\n', &chunk[at..found.start()]);
                let end = end_of_line(chunk, found.start());
                // If the pattern matches across lines, search the rest line by line: otherwise
                // every search could run to the end of the chunk.
                in_chunks = found.end() <= end;
                (before.map_or(at, |before| at + before + 1), end)
            } else {
                (at, end_of_line(chunk, at))
            };
            self.number += count_line_feeds(&chunk[at..from]);
            match self.matching_excerpt(&chunk[from..end], 0) {
                Some(text) => {
                    if !(self.on_match)(self.number, text) {
                        return false;
                    }
                }
                None => in_chunks = false,
            }
            self.number += 1;
            at = end;
        }
        self.number += count_line_feeds(&chunk[at..]);
        true
    }

    /// Searches a piece of a long line. Returns `true` to go on. A line is reported once.
    fn search_piece(&mut self, piece: &[u8]) -> bool {
        // A later piece starts in the middle of the line, so `^` must not match at its first byte.
        let (from, is_found) = match self.long_line {
            None => (0, false),
            Some(is_found) => (1, is_found),
        };
        let text = match is_found {
            true => None,
            false => self.matching_excerpt(piece, from),
        };
        self.long_line = Some(is_found || text.is_some());
        text.is_none_or(|text| (self.on_match)(self.number, text))
    }

    /// Returns the excerpt to show if the line matches.
    fn matching_excerpt(&self, line: &[u8], from: usize) -> Option<String> {
        let mut line = line;
        while let [rest @ .., b'\n' | b'\r'] = line {
            line = rest;
        }
        if from > line.len() {
            return None;
        }
        let found = self.pattern.regex.find_at(line, from)?;
        Some(excerpt(line, found.start()))
    }
}

/// The index after the line, including its terminator.
fn end_of_line(chunk: &[u8], from: usize) -> usize {
    memchr(b'\n', &chunk[from..]).map_or(chunk.len(), |end| from + end + 1)
}

/// Number of line ends.
fn count_line_feeds(chunk: &[u8]) -> u64 {
    memchr_iter(b'\n', chunk).count() as u64
}

/// Maximum number of bytes to show of a line.
const MAX_EXCERPT: usize = 300;

/// Returns a line, cut around the match if it is long. In a text that is not UTF-8, the ASCII part
/// stays readable.
fn excerpt(line: &[u8], at: usize) -> String {
    let is_within = |at: usize| line.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let (mut from, mut to) = (0, line.len());
    if line.len() > MAX_EXCERPT {
        from = at.saturating_sub(MAX_EXCERPT / 3);
        from -= (0..4.min(from))
            .take_while(|back| is_within(from - back))
            .count();
        to = line.len().min(from + MAX_EXCERPT);
        to -= (0..4).take_while(|back| is_within(to - back)).count();
    }
    let before = if from > 0 { "..." } else { "" };
    let behind = if to < line.len() { "..." } else { "" };
    let text = String::from_utf8_lossy(&line[from..to]);
    format!("{before}{text}{behind}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BufferSizes, LinePattern, ScanEnd, Scanner, excerpt};

    /// Returns the matching lines found with chunks of this size, and `true` if one was searched in
    /// pieces.
    fn scanned(pattern: &LinePattern, text: &[u8], chunk: usize) -> (Vec<u64>, bool) {
        let sizes = BufferSizes {
            chunk,
            line: 32,
            overlap: 8,
        };
        let mut scanner = Scanner {
            sizes,
            buffer: Vec::new(),
        };
        let mut found = Vec::new();
        let mut take = |number, _| {
            found.push(number);
            true
        };
        let scanned = scanner
            .scan(pattern, text, &mut take, &|| false)
            .expect("memory can be read");
        assert_eq!(
            (scanned.ended, scanned.read),
            (ScanEnd::EndOfText, text.len() as u64)
        );
        (found, scanned.has_long_lines)
    }

    /// Returns the numbers of the lines that match, each searched alone.
    fn one_by_one(pattern: &LinePattern, text: &[u8]) -> Vec<u64> {
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let lines = (1..).zip(lines).filter(|(_, line)| {
            let end = line.iter().rposition(|byte| !b"\r\n".contains(byte));
            pattern
                .regex
                .is_match(&line[..end.map_or(0, |end| end + 1)])
        });
        lines.map(|(number, _)| number).collect()
    }

    const PATTERNS: [&str; 16] = [
        "a",
        "^a",
        "b$",
        "^$",
        "",
        r"\s",
        r"[^a]*b",
        r"a\nb|b",
        r"\Aa",
        r"b\z",
        r"(?-m)^a",
        r"\bb",
        r"\Bb",
        r"a.b",
        "(?s)a.*b",
        "(?i)A+|é",
    ];

    proptest! {
        #[test]
        fn chunked_search_equals_search_line_by_line(
            text in r"([abé \n\r]|\r\n|a\nb){0,60}",
            which in 0..PATTERNS.len(),
            chunk in 1_usize..32,
        ) {
            let pattern = LinePattern::new(PATTERNS[which]).expect("it is one");
            let (found, has_long_lines) = scanned(&pattern, text.as_bytes(), chunk);
            if !has_long_lines {
                prop_assert_eq!(found, one_by_one(&pattern, text.as_bytes()));
            }
        }
    }

    #[test]
    fn long_line_is_reported_once() {
        let pattern = LinePattern::new("needle").expect("it is one");
        let begins = LinePattern::new("^x").expect("it is one");
        for before in 0..100 {
            let line = "x".repeat(before) + "needle" + &"y".repeat(100);
            let text = format!("first\n{line}\nneedle\n{line}needle");
            let (found, has_long_lines) = scanned(&pattern, text.as_bytes(), 8);
            assert_eq!((found, has_long_lines), (vec![2, 3, 4], true), "{before}");
            let (found, _) = scanned(&begins, text.as_bytes(), 8);
            let lines = if before == 0 { vec![] } else { vec![2, 4] };
            assert_eq!(found, lines, "{before}");
        }
    }

    #[test]
    fn excerpt_has_the_match_and_whole_characters() {
        for letter in ["x", "é", "€", "🦀"] {
            for at in [0, 1, 99, 100, 101, 150, 400] {
                let line = letter.repeat(at) + "needle" + &letter.repeat(400);
                let shown = excerpt(line.as_bytes(), letter.len() * at);
                assert!(
                    shown.contains("needle") && !shown.contains('\u{fffd}'),
                    "{shown}"
                );
            }
        }
        assert_eq!(excerpt(b"caf\xe9", 0), "caf\u{fffd}");
    }
}
