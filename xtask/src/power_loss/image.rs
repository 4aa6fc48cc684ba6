//! The files that a loss of power may leave.
//!
//! Certain at a moment are the contents of a file up to its last sync that has ended, and the
//! entries of a folder up to its last one. Of what came after, anything may be there:
//!
//! - any of the writes, in any combination of their sectors, and any of the lengths;
//! - any of the creations, removals and renames, but each as a whole;
//! - flipped bits in what was written and not synced.
//!
//! A sector of 512 bytes is written as a whole or not at all.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use fastrand::Rng;

use super::trace::{Effect, InodeId, Recording};

const SECTOR: u64 = 512;
const SECTOR_LENGTH: usize = 512;

/// The part of the changes that are not certain which survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Survival {
    Nothing,
    Everything,
    /// The first ones, in order, and some sectors of the next one.
    Prefix,
    /// Any of them.
    Subset,
    /// The contents that each sector had at any time since the last sync.
    Sectors,
}

pub(super) const SURVIVALS: [Survival; 5] = [
    Survival::Nothing,
    Survival::Everything,
    Survival::Prefix,
    Survival::Subset,
    Survival::Sectors,
];

/// Writes the files that a loss of power before line `cut` may leave into a folder.
pub(super) fn write_image(
    recording: &Recording,
    cut: usize,
    survival: Survival,
    flips: bool,
    random: &mut Rng,
    folder: &Path,
) -> io::Result<()> {
    let synced = synced(recording, cut);
    let mut disk = DiskImage::new(recording)?;
    let mut choice = Choice::new(recording, cut, &synced, survival, random);
    for (at, change) in recording.changes.iter().enumerate() {
        if change.begin >= cut {
            continue;
        }
        let is_certain = is_certain(&change.effect, change.end, &synced);
        match &change.effect {
            Effect::Write {
                file,
                offset,
                bytes,
            } if !is_certain => {
                let keeps_length = choice.keeps_length(at, *file);
                disk.files[*file].write(*offset, bytes, keeps_length, |sector| {
                    choice.keeps_sector(at, *file, sector)
                })?;
            }
            Effect::Write {
                file,
                offset,
                bytes,
            } => disk.files[*file].write(*offset, bytes, true, |_| true)?,
            Effect::Resize { file, length } => {
                if is_certain || choice.keeps_length(at, *file) {
                    disk.files[*file].resize(*length)?;
                }
            }
            entry => {
                if is_certain || choice.keeps_whole(at) {
                    disk.change_entry(entry);
                }
            }
        }
    }
    if flips {
        disk.flip(recording, cut, &synced, random)?;
    }
    disk.write_folder(recording, 0, folder)
}

/// The begin of the last sync of each file and folder that has ended before the cut.
type LastSyncs = Vec<Option<usize>>;

fn synced(recording: &Recording, cut: usize) -> LastSyncs {
    let mut synced = vec![None; recording.inodes.len()];
    for sync in recording.syncs.iter().filter(|sync| sync.end < cut) {
        let last = &mut synced[sync.inode];
        *last = (*last).max(Some(sync.begin));
    }
    synced
}

/// Returns `true` if a change that ended on a line is certain to survive.
fn is_certain(effect: &Effect, end: usize, synced: &LastSyncs) -> bool {
    let is_synced = |inode: InodeId| synced[inode].is_some_and(|begin| end < begin);
    match effect {
        Effect::Write { file, .. } | Effect::Resize { file, .. } => is_synced(*file),
        Effect::Link { entry, .. } | Effect::Unlink { entry } => is_synced(entry.0),
        Effect::Rename { from, to, .. } => is_synced(from.0) && is_synced(to.0),
    }
}

/// The part of one write that survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    None,
    Torn,
    Whole,
}

/// The choice of the changes that survive without being certain.
struct Choice {
    survival: Survival,
    /// The places of these changes.
    pending: Vec<usize>,
    /// The first of them that does not survive, for `Prefix`.
    end: usize,
    /// For `Subset`: the fate of the current write.
    fate: Fate,
    /// For `Sectors`: the first change that a sector, or the length of a file, does not have.
    ends: HashMap<(InodeId, Option<u64>), usize>,
    random: Rng,
}

impl Choice {
    fn new(
        recording: &Recording,
        cut: usize,
        synced: &LastSyncs,
        survival: Survival,
        random: &mut Rng,
    ) -> Self {
        let changes = recording.changes.iter().enumerate();
        let pending: Vec<usize> = changes
            .filter(|(_, change)| change.begin < cut)
            .filter(|(_, change)| !is_certain(&change.effect, change.end, synced))
            .map(|(at, _)| at)
            .collect();
        let mut choice = Self {
            survival,
            pending,
            end: 0,
            fate: Fate::None,
            ends: HashMap::new(),
            random: random.fork(),
        };
        choice.end = choice.random_end();
        choice
    }

    /// Returns the place of one of the changes, or one that is behind them.
    fn random_end(&mut self) -> usize {
        let at = self.random.usize(..=self.pending.len());
        self.pending.get(at).copied().unwrap_or(usize::MAX)
    }

    fn keeps_whole(&mut self, at: usize) -> bool {
        match self.survival {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Prefix => at < self.end,
            Survival::Subset | Survival::Sectors => self.random.bool(),
        }
    }

    /// Returns `true` if a change survives as the length of its file. Called before the sectors of
    /// the same write.
    fn keeps_length(&mut self, at: usize, file: InodeId) -> bool {
        match self.survival {
            Survival::Sectors => at < self.end_of(file, None),
            Survival::Prefix if at == self.end => self.random.bool(),
            Survival::Subset => {
                let fates = [Fate::None, Fate::Torn, Fate::Whole];
                self.fate = fates[self.random.usize(..fates.len())];
                self.fate != Fate::None
            }
            _ => self.keeps_whole(at),
        }
    }

    fn keeps_sector(&mut self, at: usize, file: InodeId, sector: u64) -> bool {
        match self.survival {
            Survival::Prefix if at == self.end => self.random.bool(),
            Survival::Sectors => at < self.end_of(file, Some(sector)),
            Survival::Subset if self.fate == Fate::Torn => self.random.bool(),
            Survival::Subset => self.fate == Fate::Whole,
            _ => self.keeps_whole(at),
        }
    }

    fn end_of(&mut self, file: InodeId, sector: Option<u64>) -> usize {
        if let Some(end) = self.ends.get(&(file, sector)) {
            return *end;
        }
        let end = self.random_end();
        self.ends.insert((file, sector), end);
        end
    }
}

/// The files and folders that are being put together.
struct DiskImage {
    files: Vec<SparseFile>,
    /// The entries of folders.
    entries: Vec<BTreeMap<String, InodeId>>,
}

impl DiskImage {
    fn new(recording: &Recording) -> io::Result<Self> {
        let files = recording.inodes.iter().map(|inode| {
            let Some(copy) = &inode.copy else {
                return Ok(SparseFile::default());
            };
            let file = File::open(copy)?;
            let length = file.metadata()?.len();
            Ok(SparseFile {
                base: Some(file),
                base_length: length,
                length,
                sectors: BTreeMap::new(),
            })
        });
        let entries = recording.inodes.iter();
        Ok(Self {
            files: files.collect::<io::Result<_>>()?,
            entries: entries
                .map(|inode| inode.entries.clone().unwrap_or_default())
                .collect(),
        })
    }

    fn change_entry(&mut self, effect: &Effect) {
        match effect {
            Effect::Link { entry, inode } => {
                self.entries[entry.0].insert(entry.1.clone(), *inode);
            }
            Effect::Unlink { entry } => {
                self.entries[entry.0].remove(&entry.1);
            }
            Effect::Rename { from, to, inode } => {
                self.entries[from.0].remove(&from.1);
                self.entries[to.0].insert(to.1.clone(), *inode);
            }
            Effect::Write { .. } | Effect::Resize { .. } => {}
        }
    }

    /// Flips some bits in the bytes of writes that are not certain.
    fn flip(
        &mut self,
        recording: &Recording,
        cut: usize,
        synced: &LastSyncs,
        random: &mut Rng,
    ) -> io::Result<()> {
        let pending: Vec<_> = recording
            .changes
            .iter()
            .filter(|change| change.begin < cut)
            .filter(|change| !is_certain(&change.effect, change.end, synced))
            .filter_map(|change| match &change.effect {
                Effect::Write {
                    file,
                    offset,
                    bytes,
                } if !bytes.is_empty() => Some((*file, *offset, bytes.len())),
                _ => None,
            })
            .collect();
        for _ in 0..random.usize(1..4) {
            let Some(&(file, offset, length)) = random.choice(&pending) else {
                break;
            };
            let at = offset + random.usize(..length) as u64;
            self.files[file].flip(at, 1 << random.u8(..8))?;
        }
        Ok(())
    }

    fn write_folder(&self, recording: &Recording, inode: InodeId, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)?;
        for (name, inode) in &self.entries[inode] {
            let path = path.join(name);
            match &recording.inodes[*inode] {
                it if it.entries.is_some() => self.write_folder(recording, *inode, &path)?,
                it => {
                    if let Some(copy) = &it.copy {
                        fs::copy(copy, &path)?;
                    }
                    self.files[*inode].write_file(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// A file of which only the changed sectors are in memory.
#[derive(Debug, Default)]
struct SparseFile {
    /// The file before the changes, and the length of its part that is left.
    base: Option<File>,
    base_length: u64,
    length: u64,
    sectors: BTreeMap<u64, [u8; SECTOR_LENGTH]>,
}

impl SparseFile {
    /// Writes the sectors that are kept. If the length is not, those behind the end of the file are
    /// not part of it.
    fn write(
        &mut self,
        offset: u64,
        bytes: &[u8],
        keeps_length: bool,
        mut keeps: impl FnMut(u64) -> bool,
    ) -> io::Result<()> {
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let within = usize::try_from(at % SECTOR).unwrap_or_default();
            let (now, later) = rest.split_at(rest.len().min(SECTOR_LENGTH - within));
            if keeps(at / SECTOR) {
                let sector = self.sector(at / SECTOR)?;
                sector[within..within + now.len()].copy_from_slice(now);
            }
            at += now.len() as u64;
            rest = later;
        }
        if keeps_length {
            self.length = self.length.max(offset + bytes.len() as u64);
        }
        Ok(())
    }

    fn resize(&mut self, length: u64) -> io::Result<()> {
        if length < self.length {
            self.sectors.split_off(&length.div_ceil(SECTOR));
            let within = usize::try_from(length % SECTOR).unwrap_or_default();
            if within > 0 {
                self.sector(length / SECTOR)?[within..].fill(0);
            }
            self.base_length = self.base_length.min(length);
        }
        self.length = length;
        Ok(())
    }

    fn flip(&mut self, at: u64, bit: u8) -> io::Result<()> {
        if at < self.length {
            let within = usize::try_from(at % SECTOR).unwrap_or_default();
            self.sector(at / SECTOR)?[within] ^= bit;
        }
        Ok(())
    }

    fn sector(&mut self, number: u64) -> io::Result<&mut [u8; SECTOR_LENGTH]> {
        if !self.sectors.contains_key(&number) {
            let mut bytes = [0; SECTOR_LENGTH];
            let start = number * SECTOR;
            if let Some(base) = &self.base
                && start < self.base_length
            {
                let length = (self.base_length - start).min(SECTOR);
                let length = usize::try_from(length).unwrap_or(SECTOR_LENGTH);
                base.read_exact_at(&mut bytes[..length], start)?;
            }
            self.sectors.insert(number, bytes);
        }
        let sector = self.sectors.get_mut(&number);
        sector.ok_or_else(|| io::Error::other("a sector is missing"))
    }

    /// Writes the changed sectors over a copy of the file before the changes.
    fn write_file(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.set_len(self.base_length)?;
        let mut sectors = self.sectors.iter().peekable();
        while let Some((first, bytes)) = sectors.next() {
            let mut run = bytes.to_vec();
            let mut next = first + 1;
            while let Some((_, bytes)) = sectors.next_if(|(number, _)| **number == next) {
                run.extend(bytes);
                next += 1;
            }
            file.write_all_at(&run, first * SECTOR)?;
        }
        file.set_len(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::{FileChange, FileSync, Inode};
    use super::*;

    /// A file that is created, written and synced, then written again; its folder is synced last.
    fn recording() -> Recording {
        let write = |offset, byte| Effect::Write {
            file: 1,
            offset,
            bytes: vec![byte; SECTOR_LENGTH],
        };
        let link = Effect::Link {
            entry: (0, "a".to_owned()),
            inode: 1,
        };
        let effects = [
            (0, link),
            (1, write(0, 1)),
            (3, write(0, 2)),
            (4, write(SECTOR, 3)),
        ];
        let change = |(at, effect)| FileChange {
            begin: at,
            end: at,
            effect,
        };
        let sync = |at, inode| FileSync {
            begin: at,
            end: at,
            inode,
        };
        let root = Inode {
            entries: Some(BTreeMap::new()),
            copy: None,
        };
        Recording {
            inodes: vec![root, Inode::default()],
            changes: effects.map(change).into(),
            syncs: vec![sync(2, 1), sync(5, 0)],
            outputs: Vec::new(),
        }
    }

    /// Returns the first bytes of the sectors of the file, if it is there, for many seeds.
    fn survivors(name: &str, cut: usize, survival: Survival) -> Vec<Option<Vec<u8>>> {
        let name = format!("xtask-image-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let images = (0..100).map(|seed| {
            let random = &mut Rng::with_seed(seed);
            write_image(&recording(), cut, survival, false, random, &folder).expect("an image");
            let bytes = fs::read(folder.join("a")).ok();
            fs::remove_dir_all(&folder).expect("it is there");
            bytes.map(|bytes| bytes.into_iter().step_by(SECTOR_LENGTH).collect())
        });
        let mut images: Vec<_> = images.collect();
        images.sort();
        images.dedup();
        images
    }

    #[test]
    fn synced_file_may_be_missing_until_its_folder_is_synced() {
        let found = survivors("entry", 5, Survival::Nothing);
        assert_eq!(found, [None]);
        let found = survivors("synced-entry", 6, Survival::Nothing);
        assert_eq!(found, [Some(vec![1])]);
        let found = survivors("all", 6, Survival::Everything);
        assert_eq!(found, [Some(vec![2, 3])]);
    }

    #[test]
    fn writes_after_a_sync_survive_in_any_combination() {
        let found = survivors("sectors", 6, Survival::Sectors);
        for expected in [[1, 0], [1, 3], [2, 0], [2, 3]] {
            let expected = Some(expected.to_vec());
            assert!(found.contains(&expected), "{expected:?}: {found:?}");
        }
        let found = survivors("prefix", 6, Survival::Prefix);
        assert!(!found.contains(&Some(vec![1, 3])), "{found:?}");
    }
}
