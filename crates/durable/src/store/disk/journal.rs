//! The journals of the database, as far as their structure tells damage from an unfinished write.
//!
//! ```text
//!  batch   | 1 | number of items 4 | number 8 | items | 3 | xxh3 of the items 8 | "FJL" 3 |
//!  item    | 2 | kind 1 | compression 1 | table 8 | length of key 2 | length of value 4 |
//!            length of stored value 4 | key | value |
//! ```
//!
//! The database ends its replay at the first byte that it does not understand, and removes the
//! rest of the file. That is right for a write that a crash has interrupted, and a silent loss if a
//! byte in the middle was damaged. So the journals are read before the database opens them.
//!
//! A journal that ends early, but behind a whole batch, has no damaged byte. So each group has the
//! number of the one before it, and the first group of a journal tells what the journal before it
//! should end with. The groups before the oldest journal are in the tables.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::rows::{GROUP_KEY, GroupNumber, Rows};

/// The end of a batch: its tag, and behind the digest these bytes.
const END: (u8, [u8; 4]) = (3, *b"FJL\x03");

/// A journal, as it was found.
#[derive(Debug, Clone)]
pub(super) struct JournalScan {
    pub(super) path: PathBuf,
    /// The length of the whole batches at its beginning.
    pub(super) valid: u64,
    /// The length up to the last byte that is not zero. Journals are preallocated.
    pub(super) written: u64,
    /// `true` if a batch that was written completely is behind those at the beginning, so that the
    /// bytes between them are damaged. In a journal that another one follows, also if anything is
    /// behind them, or groups are missing there.
    pub(super) is_damaged: bool,
    /// The number of the last group among the whole batches.
    pub(super) group: Option<u64>,
    /// The number of the group before the first one among them.
    follows: Option<u64>,
    /// `true` for the oldest journal if the group before its first one is not in the tables either.
    pub(super) misses_earlier: bool,
}

impl JournalScan {
    /// Returns `true` if the journal has no damaged byte, but groups are missing behind it.
    const fn ends_early(&self) -> bool {
        self.is_damaged && self.written == self.valid
    }
}

impl fmt::Display for JournalScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.file_name().unwrap_or_default();
        let (name, at) = (name.display(), self.valid);
        if self.misses_earlier {
            return write!(f, "groups before journal {name} are missing");
        }
        if self.ends_early() {
            return write!(
                f,
                "journal {name} ends at byte {at}, and groups are missing behind it"
            );
        }
        let behind = self.written.saturating_sub(at);
        write!(
            f,
            "journal {name} is damaged at byte {at}, and {behind} bytes follow"
        )
    }
}

/// Reads the journals of a database, the oldest first. A database that does not exist has none.
pub(super) fn scan_journals(database: &Path) -> io::Result<Vec<JournalScan>> {
    let entries = match std::fs::read_dir(database) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str());
        let number = number.and_then(|name| name.strip_suffix(".jnl")?.parse::<u64>().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort();
    let mut scans = Vec::with_capacity(found.len());
    let mut last = None;
    for (_, path) in found {
        match scan(&path, &mut last) {
            // A store that is open elsewhere removes journals that it has written to its tables,
            // the oldest first.
            Err(error) if error.kind() == ErrorKind::NotFound => scans.clear(),
            scan => scans.push(scan?),
        }
    }
    // The database syncs a journal before it begins the next one. So an incomplete batch in it was
    // not interrupted: its end is damaged, and the mark cannot tell, because later groups follow.
    if let Some((_, sealed)) = scans.split_last_mut() {
        for scan in sealed {
            scan.is_damaged = scan.written > scan.valid;
        }
    }
    let mut group = 0;
    for at in 1..scans.len() {
        group = scans[at - 1].group.unwrap_or(group);
        let is_missing = scans[at].follows.is_some_and(|follows| follows > group);
        scans[at - 1].is_damaged |= is_missing;
    }
    Ok(scans)
}

/// Looks whether the groups before the oldest journal are in the tables of the database, which
/// nothing else may have open. It is the database that reports tables that cannot be read.
pub(super) fn compare_with_tables(scans: &mut [JournalScan], database: &Path) {
    if let Some(oldest) = scans.first_mut()
        && let Some(follows) = oldest.follows.filter(|follows| *follows > 0)
        && let Ok(group) = Rows::group_in_tables(database)
    {
        oldest.misses_earlier = group < follows;
    }
}

/// Creates an empty journal in a database that has none. Without one, the database would not find
/// the rows in its tables: its clock of transactions would begin anew.
pub(super) fn create_empty(database: &Path) -> io::Result<()> {
    File::create_new(database.join("0.jnl"))?.sync_all()?;
    File::open(database)?.sync_all()
}

/// Returns `true` if groups are missing before a journal, whatever the mark says.
pub(super) fn has_gap(scans: &[JournalScan]) -> bool {
    let sealed = scans.split_last().map_or(&[][..], |(_, sealed)| sealed);
    scans.iter().any(|scan| scan.misses_earlier) || sealed.iter().any(|scan| scan.is_damaged)
}

/// Returns the journals whose damage is a loss, given the group of the mark.
///
/// A journal that is followed by another one was synced, so damage in it is one. In the last one,
/// what is behind the damage may never have been acknowledged.
pub(super) fn lossy(scans: &[JournalScan], marked: u64) -> impl Iterator<Item = &JournalScan> {
    let last_group = scans.iter().rev().find_map(|scan| scan.group);
    let is_behind = last_group.is_none_or(|last| last < marked);
    let sealed = scans.len().saturating_sub(1);
    let numbered = scans.iter().enumerate();
    let lossy = numbered.filter(move |(at, scan)| {
        scan.misses_earlier || scan.is_damaged && (*at < sealed || is_behind)
    });
    lossy.map(|(_, scan)| scan)
}

/// Cuts a torn batch off the last journal, if all groups up to `acknowledged` are before it.
/// Returns `false` if there is none.
///
/// A loss of power may leave any sectors of the last batch. If its last sector is missing, the
/// database drops the batch. If an earlier one is, the database takes that for damage and does not
/// open, although the batch was never synced. A batch with intact ones behind it is damaged, not
/// torn.
pub(super) fn cut_torn_batch(scans: &[JournalScan], acknowledged: u64) -> io::Result<bool> {
    let Some(last) = scans.last().filter(|scan| scan.is_damaged) else {
        return Ok(false);
    };
    let group = scans.iter().rev().find_map(|scan| scan.group);
    if group.unwrap_or_default() < acknowledged {
        return Ok(false);
    }
    let mut file = OpenOptions::new().read(true).write(true).open(&last.path)?;
    file.seek(SeekFrom::Start(last.valid))?;
    let mut behind = Vec::new();
    (&file)
        .take(last.written - last.valid)
        .read_to_end(&mut behind)?;
    let mut ends = behind.windows(END_LENGTH).enumerate();
    let has_intact = ends.any(|(at, part)| {
        let mut reader = CountingReader {
            input: &behind[at + END_LENGTH..],
            at: 0,
        };
        is_end(part) && read_batch(&mut reader).is_ok()
    });
    if has_intact {
        return Ok(false);
    }
    let journal = last.path.display();
    tracing::warn!(%journal, at = last.valid, "batch that was not synced is cut off");
    file.set_len(last.valid)?;
    file.sync_all()?;
    Ok(true)
}

/// The length of the end of a batch, in bytes.
const END_LENGTH: usize = 13;

/// Returns `true` if these bytes look like the end of a batch.
fn is_end(part: &[u8]) -> bool {
    part.first() == Some(&END.0) && part.ends_with(&END.1)
}

/// Reads one journal, given the number of the last batch before it.
fn scan(path: &Path, last: &mut Option<u64>) -> io::Result<JournalScan> {
    let file = File::open(path)?;
    let mut reader = CountingReader {
        input: BufReader::with_capacity(1 << 16, &file),
        at: 0,
    };
    let (mut valid, mut group, mut follows) = (0, None, None);
    // Any error ends the batches: the rest of the file is looked at byte by byte.
    while let Ok(batch) = read_batch(&mut reader) {
        // The digest does not cover the number, by which later batches replace earlier ones.
        if last.is_some_and(|last| batch.number <= last) {
            break;
        }
        *last = Some(batch.number);
        valid = reader.at;
        if let Some(GroupNumber { number, previous }) = batch.group {
            if group.is_none() {
                follows = previous;
            }
            group = Some(number);
        }
    }
    let (written, is_damaged) = read_rest(&file, valid)?;
    Ok(JournalScan {
        path: path.to_owned(),
        valid,
        written,
        is_damaged,
        group,
        follows,
        misses_earlier: false,
    })
}

struct CountingReader<R> {
    input: R,
    at: u64,
}

impl<R: Read> CountingReader<R> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }
}

/// A batch whose digest is right.
struct JournalBatch {
    /// The number that the database gave it. Numbers rise.
    number: u64,
    /// The numbers of its group, if it is one.
    group: Option<GroupNumber>,
}

/// Reads one batch.
fn read_batch(reader: &mut CountingReader<impl Read>) -> io::Result<JournalBatch> {
    let [tag] = reader.take()?;
    if tag != 1 {
        return Err(ErrorKind::InvalidData.into());
    }
    let items = u32::from_le_bytes(reader.take()?);
    let number = u64::from_le_bytes(reader.take()?);
    let mut digest = Xxh3::new();
    let mut group = None;
    for _ in 0..items {
        let head: [u8; 21] = reader.take()?;
        digest.update(&head);
        let (tag, compression) = (head[0], head[2]);
        if tag != 2 || compression != 0 {
            return Err(ErrorKind::InvalidData.into());
        }
        let key_length = u64::from(u16::from_le_bytes([head[11], head[12]]));
        let value_length = [head[17], head[18], head[19], head[20]];
        let value_length = u64::from(u32::from_le_bytes(value_length));
        let length = key_length + value_length;
        let is_group = key_length == GROUP_KEY.len() as u64 && value_length <= GroupNumber::LENGTH;
        let mut content = Vec::new();
        let mut left = length;
        let mut chunk = [0; 1 << 13];
        while left > 0 {
            let most = usize::try_from(left).map_or(chunk.len(), |left| left.min(chunk.len()));
            let read = match reader.input.read(&mut chunk[..most]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                read => read?,
            };
            reader.at += read as u64;
            left -= read as u64;
            digest.update(&chunk[..read]);
            if is_group {
                content.extend(&chunk[..read]);
            }
        }
        let numbers = content.strip_prefix(GROUP_KEY);
        group = numbers.and_then(GroupNumber::decode).or(group);
    }
    let [tag] = reader.take()?;
    let found = u64::from_le_bytes(reader.take()?);
    let magic: [u8; 4] = reader.take()?;
    if (tag, magic) != END || found != digest.digest() {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(JournalBatch { number, group })
}

/// Reads behind the whole batches. Returns the length up to the last byte that is not zero, and
/// `true` if there is the end of another batch. A write that was interrupted has no end.
fn read_rest(mut file: &File, valid: u64) -> io::Result<(u64, bool)> {
    file.seek(SeekFrom::Start(valid))?;
    let mut buffer = vec![0; 1 << 16];
    let zeros = vec![0; buffer.len()];
    // The bytes of the previous chunk in which an end may begin.
    let mut kept = 0;
    let (mut at, mut written, mut has_end) = (valid, valid, false);
    loop {
        let read = file.read(&mut buffer[kept..])?;
        if read == 0 {
            return Ok((written, has_end));
        }
        let new = &buffer[kept..kept + read];
        // Most of a preallocated journal is empty.
        let is_empty = new == &zeros[..read];
        if !is_empty && let Some(last) = new.iter().rposition(|byte| *byte != 0) {
            written = at + last as u64 + 1;
            let all = &buffer[..kept + read];
            has_end = has_end || all.windows(END_LENGTH).any(is_end);
        }
        at += read as u64;
        let filled = kept + read;
        kept = filled.min(END_LENGTH - 1);
        buffer.copy_within(filled - kept..filled, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::disk::Durability;

    /// Makes a database of some groups, and returns its journal.
    fn journal(groups: u64) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = Rows::open(folder.path(), 1 << 20).expect("it opens");
        for number in 1..=groups {
            let number = GroupNumber {
                number,
                previous: Some(number - 1),
            };
            let group = rows.begin();
            group
                .commit(number, Durability::Process)
                .expect("it is written");
        }
        std::fs::read(folder.path().join("0.jnl")).expect("a journal")
    }

    /// Scans a database with these journals.
    fn scans(journals: &[&[u8]]) -> Vec<JournalScan> {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, bytes) in journals.iter().enumerate() {
            let path = folder.path().join(format!("{number}.jnl"));
            std::fs::write(path, bytes).expect("it is written");
        }
        scan_journals(folder.path()).expect("it is readable")
    }

    #[test]
    fn interrupted_write_is_told_from_damage_at_every_byte() {
        let bytes = journal(3);
        let [whole] = &scans(&[&bytes])[..] else {
            panic!("one journal");
        };
        assert_eq!((whole.valid, whole.group), (whole.written, Some(3)));
        assert!(!whole.is_damaged);
        let written = usize::try_from(whole.written).expect("small");
        let (mut groups, mut unnoticed) = (Vec::new(), 0);
        for end in 0..written {
            // Cut off, or never written behind the end.
            let mut zeroed = bytes[..end].to_vec();
            zeroed.resize(written, 0);
            for interrupted in [&bytes[..end], &zeroed] {
                let scan = scans(&[interrupted]).remove(0);
                assert!(!scan.is_damaged, "cut at {end}");
                groups.push(scan.group);
            }
            let mut flipped = bytes[..written].to_vec();
            flipped[end] ^= 1;
            let scan = scans(&[&flipped]).remove(0);
            // The last end itself may be damaged, which looks like an interrupted write. A number
            // may be another one that still follows, which changes nothing.
            let is_same = (scan.valid, scan.group) == (whole.valid, Some(3));
            let is_last_end = end >= written - 13;
            assert!(
                scan.is_damaged || is_same || is_last_end,
                "bit flipped at {end}"
            );
            unnoticed += usize::from(is_same);
        }
        // The lowest bits of the numbers, and the other bytes of the last one.
        assert!(unnoticed <= 10, "{unnoticed}");
        groups.dedup();
        assert_eq!(groups, [None, Some(1), Some(2)]);
    }

    #[test]
    fn end_of_a_batch_is_found_across_the_pieces_that_are_read() {
        let bytes = journal(3);
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("a batch") + 1;
        for gap in (1 << 16) - 20..(1 << 16) + 20 {
            let mut damaged = vec![7; gap];
            damaged.extend(&bytes[end - 13..end]);
            assert!(scans(&[&damaged])[0].is_damaged, "{gap} bytes in front");
        }
    }

    #[test]
    fn damage_is_a_loss_in_a_sealed_journal_or_before_the_mark() {
        let bytes = journal(6);
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("a batch") + 1;
        // All batches have one length.
        let (first, second) = bytes[..end].split_at(end / 2);
        // In the last group of each.
        let [bad_first, bad_second] = [first, second].map(|part| {
            let mut bad = part.to_vec();
            bad[part.len() - 20] ^= 1;
            bad
        });
        let count = |journals: &[&[u8]], marked| lossy(&scans(journals), marked).count();
        assert_eq!(count(&[first, second], 6), 0);
        assert_eq!(count(&[&bad_first], 2), 0, "it was not acknowledged");
        assert_eq!(count(&[&bad_first], 3), 1);
        assert_eq!(count(&[&bad_first, second], 6), 1, "it was synced");
        assert_eq!(count(&[first, &bad_second], 5), 0);
        assert_eq!(count(&[first, &bad_second], 6), 1);
    }
}
