//! Removal of temporary files whose writer was killed before it could rename them.
//!
//! ```text
//! a file is replaced ─▶ its directory is due, once ─▶ after the answer: that directory is searched
//! a temporary file is there, too young ─▶ its directory is due again when it would be abandoned
//! ```
//!
//! Nothing is searched before the first write, nor in directories to which nothing is written.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use cap_std::fs::Metadata;
use parking_lot::Mutex;

use super::disk::{Disk, QuotaAmount, StopCheck, reclaimable_bytes};

/// The directories in which files were replaced, relative to the root.
#[derive(Debug, Default)]
pub(super) struct TempFileSweeps(Mutex<SweepState>);

#[derive(Debug, Default)]
struct SweepState {
    /// All such directories, up to [`MAX_SWEPT_DIRECTORIES`].
    known: HashSet<PathBuf>,
    /// Directories to search, each with the earliest time.
    due: Vec<(Instant, PathBuf)>,
}

/// Maximum number of directories to search per incarnation; leftovers in others stay.
const MAX_SWEPT_DIRECTORIES: usize = 1024;

/// The prefix of a temporary file that will replace another.
const TEMP_PREFIX: &str = ".strowger-";

/// Age after which a temporary file is considered abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// The counter that makes the names of temporary files unique within the process.
static NEXT_TEMP_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Returns a name for a temporary file that will replace another: `.strowger-PID-N`.
pub(super) fn temp_name() -> String {
    let number = NEXT_TEMP_NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{TEMP_PREFIX}{}-{number}", std::process::id())
}

/// Returns `true` if [`temp_name`], in this process or another, could have made the name.
pub(super) fn is_temp_name(name: &[u8]) -> bool {
    let Some(numbers) = name.strip_prefix(TEMP_PREFIX.as_bytes()) else {
        return false;
    };
    let mut numbers = numbers.split(|byte| *byte == b'-');
    let mut is_number = || {
        numbers.next().is_some_and(|number| {
            let is_plain = matches!(number, [b'0'] | [b'1'..=b'9', ..]);
            is_plain && number.len() <= 20 && number.iter().all(u8::is_ascii_digit)
        })
    };
    is_number() && is_number() && numbers.next().is_none()
}

impl TempFileSweeps {
    /// Records that a file in this directory was replaced.
    pub(super) fn record_replacement(&self, dir: &Path) {
        let mut state = self.0.lock();
        if !state.known.contains(dir) && state.known.len() < MAX_SWEPT_DIRECTORIES {
            state.known.insert(dir.to_owned());
            state.due.push((Instant::now(), dir.to_owned()));
        }
    }

    /// Records that this directory has a temporary file whose writer may still be killed.
    pub(super) fn record_temp_file(&self, dir: &Path) {
        let mut state = self.0.lock();
        let is_due = state.due.iter().any(|(_, due)| due == dir);
        if !is_due && state.due.len() < MAX_SWEPT_DIRECTORIES {
            let at = Instant::now() + ABANDONED_AFTER;
            state.due.push((at, dir.to_owned()));
        }
    }

    /// Takes a directory that is due for a search.
    pub(super) fn take_due(&self, now: Instant) -> Option<PathBuf> {
        let mut state = self.0.lock();
        let at = state.due.iter().position(|(at, _)| *at <= now)?;
        Some(state.due.swap_remove(at).1)
    }
}

impl Disk {
    /// Removes files left by killed writers from a directory, scanning no more than
    /// [`scan`](super::FileLimits::scan) entries.
    pub(super) fn remove_abandoned(&self, path: &Path, stop: StopCheck<'_>) {
        let Ok(dir) = self.root.open_dir(path) else {
            return; // The directory was removed meanwhile.
        };
        let Ok(entries) = dir.entries() else {
            return;
        };
        for entry in entries.flatten().take(self.limits.scan) {
            if stop() {
                return;
            }
            self.scanned.fetch_add(1, Ordering::Relaxed);
            if !is_temp_name(entry.file_name().as_encoded_bytes()) {
                continue; // The usual case, which needs no metadata.
            }
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if !is_abandoned(&metadata) {
                self.sweeps.record_temp_file(path);
            } else if dir.remove_file(entry.file_name()).is_ok() {
                // A file that was written piece by piece has used the quota.
                let removed = QuotaAmount {
                    bytes: reclaimable_bytes(&metadata),
                    entries: 1,
                };
                self.record(QuotaAmount::default(), removed);
            }
        }
    }
}

/// Returns `true` if a temporary file was left by a writer that was killed long ago.
fn is_abandoned(metadata: &Metadata) -> bool {
    let age = || {
        let written = metadata.modified().ok()?.into_std();
        SystemTime::now().duration_since(written).ok()
    };
    metadata.is_file() && age().is_some_and(|age| age > ABANDONED_AFTER)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use super::{ABANDONED_AFTER, TempFileSweeps, is_temp_name, temp_name};

    #[test]
    fn directory_of_a_temp_file_is_due_when_it_would_be_abandoned() {
        let (sweeps, dir) = (TempFileSweeps::default(), Path::new("a"));
        sweeps.record_replacement(dir);
        sweeps.record_temp_file(dir);
        let now = Instant::now();
        assert_eq!(sweeps.take_due(now).as_deref(), Some(dir));
        assert_eq!(sweeps.take_due(now), None);
        sweeps.record_replacement(dir);
        sweeps.record_temp_file(dir);
        sweeps.record_temp_file(dir);
        assert_eq!(sweeps.take_due(now), None, "it is searched once");
        let later = now + 2 * ABANDONED_AFTER;
        assert_eq!(sweeps.take_due(later).as_deref(), Some(dir));
        assert_eq!(sweeps.take_due(later), None);
    }

    #[test]
    fn temp_names_are_recognized_exactly() {
        assert!(is_temp_name(temp_name().as_bytes()));
        assert!(is_temp_name(b".strowger-1-0") && is_temp_name(b".strowger-4194304-12"));
        let others = [
            ".strowger-notes",
            ".strowger-",
            ".strowger-1",
            ".strowger-1-",
            ".strowger-1-2-3",
            ".strowger-1-2.bak",
            ".strowger-01-2",
            ".strowger--1",
            "strowger-1-2",
            ".strowger-1-999999999999999999999",
        ];
        for other in others {
            assert!(!is_temp_name(other.as_bytes()), "{other} is the user's");
        }
    }
}
