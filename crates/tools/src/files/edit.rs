//! Text edits in files.

mod compose;
mod locate;
mod nearest;

use std::str;
use std::time::{Duration, Instant};

use similar::TextDiff;

use super::disk::Disk;
use super::error::{FileError, FileRule};
use super::message::{EditOutcome, EditRequest, ReadRequest, TextChange};
use super::path::{GivenPath, file_uri, is_plain};
use super::write::SyncToDisk;
use compose::{Replacement, compose, line_end};
use locate::locate;

impl Disk {
    /// Applies all changes, or none.
    pub(super) fn edit(&self, edit: &EditRequest) -> Result<EditOutcome, FileError> {
        let given = GivenPath::new(&edit.path);
        let rooted = if edit.dry_run {
            self.rooted(&given)?
        } else {
            self.rooted_for_writing(&given)?
        };
        let bytes = self.open_read(&ReadRequest::new(&edit.path))?.read()?;
        let before = str::from_utf8(&bytes).map_err(|error| FileError::NotText {
            path: edit.path.clone(),
            at: error.valid_up_to(),
        })?;
        let mut after = before.to_owned();
        let mut replacements = 0;
        for (number, change) in edit.changes.iter().enumerate() {
            let (text, times) =
                apply(&after, change, self.limits.file).map_err(|miss| match miss {
                    Miss::NotOnce { times, hint } => FileError::NotOnce {
                        path: edit.path.clone(),
                        edit: number,
                        matches: times,
                        hint,
                    },
                    Miss::TooLong(length) => {
                        rooted.over_limit(FileRule::Size, self.limits.file, 0, length)
                    }
                })?;
            after = text;
            replacements += times;
        }
        let mut config = TextDiff::configure();
        // An exact diff of two long texts with little in common takes quadratic time.
        let config = config.timeout(DIFF_TIMEOUT);
        let header = match is_plain(&edit.path) {
            true => edit.path.clone(),
            false => file_uri(&self.absolute(rooted)),
        };
        let diff = config.diff_lines(before, &after);
        let diff = diff
            .unified_diff()
            .context_radius(3)
            .header(&header, &header)
            .to_string();
        if !edit.dry_run && before != after {
            self.replace(rooted, after.as_bytes(), SyncToDisk::No)?;
        }
        Ok(EditOutcome { replacements, diff })
    }
}

/// Time limit for the search for the shortest diff.
const DIFF_TIMEOUT: Duration = Duration::from_millis(100);

/// Time limit for comparing the texts of a change: with each other, or with a file without them.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// The reason why a change is not made.
enum Miss {
    NotOnce {
        times: usize,
        hint: String,
    },
    /// The file would have at least this length.
    TooLong(u64),
}

/// Applies a change. Returns the text after it, and the number of replaced occurrences.
fn apply(text: &str, change: &TextChange, most: u64) -> Result<(String, usize), Miss> {
    let mut found = locate(text, &change.old);
    let (mut old, mut new) = (change.old.as_str(), change.new.as_str());
    if found.at_end {
        old = without_line_end(old);
        new = without_line_end(new);
    }
    if change.all {
        let mut end = 0;
        found.ranges.retain(|range| {
            let follows = range.start >= end;
            end = if follows { range.end } else { end };
            follows
        });
    }
    let times = found.ranges.len();
    if times == 0 || (times > 1 && !change.all) {
        let hint = match times {
            0 => nearest::miss(text, &change.old),
            _ => nearest::ambiguous(text, &found),
        };
        return Err(Miss::NotOnce { times, hint });
    }
    let kept = text.len()
        - found
            .ranges
            .iter()
            .map(ExactSizeIterator::len)
            .sum::<usize>();
    let grown = new.len().saturating_mul(times).saturating_add(kept) as u64;
    // Lines may also get longer: by their line ends and indentation.
    if grown > most {
        return Err(Miss::TooLong(grown));
    }
    let replacement = Replacement {
        old,
        new,
        tolerance: found.tolerance,
        line_end: line_end(text),
        deadline: Instant::now() + SEARCH_TIME,
    };
    let limit = usize::try_from(most).unwrap_or(usize::MAX);
    let (mut after, mut from) = (String::with_capacity(text.len()), 0);
    for range in &found.ranges {
        after.push_str(&text[from..range.start]);
        if !compose(&mut after, text, range, replacement, limit) {
            return Err(Miss::TooLong(after.len() as u64));
        }
        from = range.end;
    }
    after.push_str(&text[from..]);
    match after.len() as u64 {
        length if length > most => Err(Miss::TooLong(length)),
        _ => Ok((after, times)),
    }
}

fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}
