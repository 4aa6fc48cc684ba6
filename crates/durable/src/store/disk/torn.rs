//! The end of a journal that a loss of power has left incomplete.
//!
//! The system may have written any sectors of the last batch. If its last sector is missing, the
//! database drops the batch. If an earlier one is, the database takes that for damage and does not
//! open, although the batch was never synced. Such a batch is cut off here:
//!
//! ```text
//!  batch    | 1 | number of items 4 | seqno 8 | items | 3 | xxh3 of the items 8 | "FJL" 3 |
//!  item     | 2 | type 1 | compression 1 | keyspace 8 | lengths 2 + 4 + 4 | key | value |
//!           | 4 | keyspace 8 |
//! ```
//!
//! A batch that was acknowledged is damaged, not torn, and stays; the mark tells. So does one with
//! intact batches behind it.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::rows::GROUP_KEY;

/// Cuts a torn batch off the newest journal of a database, if all groups up to a number are before
/// it. Returns `false` if there is none.
pub(super) fn cut_torn_batch(database: &Path, acknowledged: u64) -> io::Result<bool> {
    let Some(journal) = newest_journal(database)? else {
        return Ok(false);
    };
    let bytes = std::fs::read(&journal)?;
    let (mut end, mut group) = (0, 0);
    while let Some(batch) = parse_batch(&bytes[end..]) {
        end += batch.length;
        group = batch.group.unwrap_or(group);
    }
    let behind = &bytes[end..];
    let mut ends = behind.windows(TRAILER.len()).enumerate();
    let is_last = !ends.any(|(at, window)| {
        window == TRAILER && parse_batch(&behind[at + TRAILER.len()..]).is_some()
    });
    if group < acknowledged || !is_last || behind.is_empty() {
        return Ok(false);
    }
    tracing::warn!(journal = %journal.display(), at = end, "batch that was not synced is cut off");
    let file = OpenOptions::new().write(true).open(&journal)?;
    file.set_len(end as u64)?;
    file.sync_all()?;
    Ok(true)
}

fn newest_journal(database: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest = None;
    for entry in std::fs::read_dir(database)? {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|it| it == "jnl");
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if is_journal && let Some(number) = stem.and_then(|stem| stem.parse::<u64>().ok()) {
            newest = newest.max(Some((number, path)));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// An intact batch of a journal.
struct JournalBatch {
    length: usize,
    /// The number of the group, if the batch is one.
    group: Option<u64>,
}

const TRAILER: &[u8] = &[b'F', b'J', b'L', 3];

/// Parses the batch at the start of some bytes. Returns `None` if it is not intact.
fn parse_batch(bytes: &[u8]) -> Option<JournalBatch> {
    let (start, mut rest) = bytes.split_first_chunk::<13>()?;
    let ([1], items) = start[..5].split_first_chunk()? else {
        return None;
    };
    let items = u32::from_le_bytes(*items.first_chunk()?);
    let mut digest = Xxh3::new();
    let mut group = None;
    for _ in 0..items {
        let length = match rest.first()? {
            2 => {
                let head: &[u8; 21] = rest.first_chunk()?;
                let key = usize::from(u16::from_le_bytes([head[11], head[12]]));
                let value = u32::from_le_bytes(*head[17..].first_chunk()?);
                let value = usize::try_from(value).ok()?;
                let (key, value) = rest.get(21..21 + key + value)?.split_at_checked(key)?;
                if key == GROUP_KEY {
                    group = value.first_chunk().map(|group| u64::from_be_bytes(*group));
                }
                21 + key.len() + value.len()
            }
            4 => 9,
            _ => return None,
        };
        let (item, behind) = rest.split_at_checked(length)?;
        digest.update(item);
        rest = behind;
    }
    let (end, behind) = rest.split_first_chunk::<13>()?;
    let found = u64::from_le_bytes(*end[1..].first_chunk()?);
    let is_intact = end[0] == 3 && end[9..] == *TRAILER && found == digest.digest();
    is_intact.then_some(JournalBatch {
        length: bytes.len() - behind.len(),
        group,
    })
}
