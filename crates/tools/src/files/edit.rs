//! Text edits in files.

use std::str;
use std::time::Duration;

use similar::TextDiff;

use super::disk::Disk;
use super::error::{FileError, FileRule};
use super::message::{EditOutcome, EditRequest, ReadRequest, TextChange};
use super::path::{GivenPath, file_uri, is_plain};
use super::write::SyncToDisk;

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
            let times = count_matches(&after, change);
            if times == 0 || (times > 1 && !change.all) {
                return Err(FileError::NotOnce {
                    path: edit.path.clone(),
                    edit: number,
                    matches: times,
                });
            }
            let kept = after.len() - change.old.len() * times;
            let grown = change.new.len().saturating_mul(times).saturating_add(kept);
            if grown as u64 > self.limits.file {
                return Err(rooted.over_limit(FileRule::Size, self.limits.file, 0, grown as u64));
            }
            after = after.replace(&change.old, &change.new);
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

/// Counts the matches of a change in the text. An empty `old` matches nowhere.
fn count_matches(text: &str, change: &TextChange) -> usize {
    if change.old.is_empty() {
        return 0;
    }
    text.matches(&change.old).count()
}
