//! Changing text in a file.

use std::str;
use std::time::Duration;

use similar::TextDiff;

use super::disk::Disk;
use super::error::{FileError, Rule};
use super::message::{Change, Edit, Edited, Read};
use super::place::Said;
use super::write::Sync;

impl Disk {
    /// Makes all changes, or none.
    pub(super) fn edit(&self, edit: &Edit) -> Result<Edited, FileError> {
        let said = Said::new(&edit.path);
        let place = if edit.dry_run {
            self.place(&said)?
        } else {
            self.writable(&said)?
        };
        let octets = self.open_read(&Read::new(&edit.path))?.read()?;
        let before = str::from_utf8(&octets).map_err(|error| FileError::NotText {
            path: edit.path.clone(),
            at: error.valid_up_to(),
        })?;
        let mut after = before.to_owned();
        let mut places = 0;
        for (number, change) in edit.changes.iter().enumerate() {
            let times = times(&after, change);
            if times == 0 || (times > 1 && !change.all) {
                return Err(FileError::NotOnce {
                    path: edit.path.clone(),
                    edit: number,
                    times,
                });
            }
            let grown = change.new.len().saturating_mul(times) + after.len();
            if grown as u64 > self.limits.file {
                return Err(place.beyond(Rule::Size, self.limits.file, 0, grown as u64));
            }
            after = after.replace(&change.old, &change.new);
            places += times;
        }
        let mut config = TextDiff::configure();
        // Two long texts with little in common take quadratic time to be told apart exactly.
        let config = config.timeout(PATIENCE);
        let diff = config.diff_lines(before, &after);
        let diff = diff
            .unified_diff()
            .context_radius(3)
            .header(&edit.path, &edit.path)
            .to_string();
        if !edit.dry_run && before != after {
            self.replace(place, after.as_bytes(), Sync::No)?;
        }
        Ok(Edited { places, diff })
    }
}

/// How long the shortest difference is looked for.
const PATIENCE: Duration = Duration::from_millis(100);

/// How often what is to be changed is there. Nothing is nowhere.
fn times(text: &str, change: &Change) -> usize {
    if change.old.is_empty() {
        return 0;
    }
    text.matches(&change.old).count()
}
