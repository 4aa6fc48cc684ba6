//! A store that no process has open.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fjall::{Readable as _, Snapshot};

use super::scan::{EntityScan, Event, StoredKey, rows_of, walk};
use super::{EntityCondition, EntityInfo, OnProgress, PartialFolder, RowInfo, ToolError};
use crate::store::EntityId;
use crate::store::disk::journal::{self, JournalScan};
use crate::store::disk::mark::{FoundMark, MarkFile};
use crate::store::disk::rows::{QUARANTINE, Rows, decode, entity_prefix};
use crate::store::disk::{OpenError, catch_database_panic};

/// A store on disk that no process has open, and that is locked while this value exists.
///
/// It is not changed. To open a database changes it, so a copy of the journals is opened, beside
/// links to the tables, in the directory for temporary files (`TMPDIR`). The copy ends where the
/// journals are damaged.
#[derive(Debug)]
pub struct StoppedStore {
    pub(super) path: PathBuf,
    pub(super) view: View,
    pub(super) marked: u64,
    pub(super) committed: u64,
    /// The journals that are damaged, so that acknowledged writes are missing.
    pub(super) damaged_journals: Vec<String>,
    /// Keeps other processes away.
    _lock: File,
}

/// The open copy. Fields are dropped in order: the database, then its folder.
pub(super) struct View {
    pub(super) rows: Rows,
    _folder: PartialFolder,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

impl View {
    pub(super) fn snapshot(&self) -> Snapshot {
        self.rows.database().snapshot()
    }
}

impl StoppedStore {
    /// Opens the store in a folder. Damage of its contents is no error here.
    ///
    /// # Errors
    /// Fails if the folder has no store, another process uses it, or the database cannot be opened
    /// at all.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ToolError> {
        let path = path.as_ref();
        let database = path.join("db");
        if !database.is_dir() {
            let path = path.to_owned();
            return Err(ToolError::NotAStore { path });
        }
        let lock = lock(path)?;
        let mark = FoundMark::read(&path.join("mark")).map_err(ToolError::io(path))?;
        if let Some(found) = mark.unknown_format {
            let (path, known) = (path.to_owned(), MarkFile::FORMAT);
            return Err(OpenError::UnknownFormat { path, found, known }.into());
        }
        if let Some(file) = Rows::missing_file(&database).map_err(ToolError::io(path))? {
            let (path, detail) = (path.to_owned(), format!("{file} is missing"));
            return Err(ToolError::Unopened { path, detail });
        }
        let mut scans = journal::scan_journals(&database).map_err(ToolError::io(path))?;
        let folder = temporary_folder()?;
        let copy = folder.0.join("db");
        copy_tables(&database, &copy).map_err(ToolError::io(&copy))?;
        journal::compare_with_tables(&mut scans, &copy);
        copy_journals(&scans, &copy).map_err(ToolError::io(&copy))?;
        let damaged_journals = journal::lossy(&scans, mark.group);
        let damaged_journals = damaged_journals.map(ToString::to_string).collect();
        let rows = Rows::open_idle(&copy).map_err(|error| ToolError::Unopened {
            path: path.to_owned(),
            detail: error.to_string(),
        })?;
        // If the row of the group is damaged, what the journals say is the best that is left.
        let in_journals = scans.iter().rev().find_map(|scan| scan.group);
        let committed = rows.committed_group().ok().or(in_journals);
        Ok(Self {
            path: path.to_owned(),
            view: View {
                rows,
                _folder: folder,
            },
            marked: mark.group,
            committed: committed.unwrap_or_default(),
            damaged_journals,
            _lock: lock,
        })
    }

    /// Returns the path of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls a function with each entity, or each of a kind, in the order of the store: by the
    /// lengths and the texts of kind and key.
    ///
    /// # Errors
    /// Fails if the database fails, or with the error of the function.
    pub fn entities(
        &self,
        kind: Option<&str>,
        visit: &mut dyn FnMut(&EntityInfo) -> Result<(), ToolError>,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<(), ToolError> {
        let snapshot = self.view.snapshot();
        walk(
            &self.view.rows,
            snapshot,
            on_progress,
            &mut |event| match event {
                Event::Entity(info, _) if kind.is_none_or(|kind| kind == info.entity.kind()) => {
                    visit(info)
                }
                _ => Ok(()),
            },
        )
    }

    /// Reads one entity. Returns `None` if the store does not know it.
    ///
    /// # Errors
    /// Fails if the database fails.
    pub fn entity(&self, entity: &EntityId) -> Result<Option<EntityInfo>, ToolError> {
        let prefix = entity_prefix(entity);
        let mut scan = EntityScan::new(&prefix, entity.clone());
        let mut is_known = false;
        let snapshot = self.view.snapshot();
        let read = rows_of(
            &self.path,
            (&self.view.rows, &snapshot),
            &prefix,
            &mut |table, row, (key, value)| {
                is_known = true;
                scan.add((table, row), key, value);
                Ok(())
            },
        );
        if let Err(error) = read {
            is_known = true;
            scan.damage(error.to_string());
        }
        Ok(is_known.then(|| scan.info()))
    }

    /// Calls a function with each row of an entity. Rows that are damaged are left out; those of a
    /// quarantined entity are read from the quarantine.
    ///
    /// # Errors
    /// Fails if the database fails, or with the error of the function.
    pub fn rows(
        &self,
        entity: &EntityId,
        visit: &mut dyn FnMut(RowInfo) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let info = self.entity(entity)?;
        let is_quarantined =
            info.is_some_and(|info| info.condition == EntityCondition::Quarantined);
        let mut prefix = entity_prefix(entity);
        if is_quarantined {
            prefix.splice(0..0, QUARANTINE);
        }
        let front = if is_quarantined { QUARANTINE.len() } else { 0 };
        let snapshot = self.view.snapshot();
        let mut iter = snapshot.prefix(self.view.rows.table(), &prefix);
        // Rows behind an error cannot be read.
        while let Ok(Some((key, value))) =
            catch_database_panic(|| iter.next().map(fjall::Guard::into_inner).transpose())
        {
            let key = &key[front..];
            let StoredKey::Row { table, row, .. } = StoredKey::parse(key) else {
                continue;
            };
            match decode(key, &value) {
                Some((sequence, value)) if table != crate::store::disk::rows::HEAD => {
                    visit(RowInfo::new(table, row, sequence, value))?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Locks the store as the database does.
fn lock(path: &Path) -> Result<File, ToolError> {
    let file = path.join("db/lock");
    let lock = File::open(&file).map_err(ToolError::io(&file))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            let (path, holder) = (path.to_owned(), lock_holder(path));
            Err(OpenError::Locked { path, holder }.into())
        }
        Err(TryLockError::Error(source)) => Err(ToolError::Io { path: file, source }),
    }
}

/// Returns the process that has a store locked, if the operating system says so.
pub(in crate::store::disk) fn lock_holder(path: &Path) -> Option<u32> {
    let inode = fs::metadata(path.join("db/lock")).ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        // Such as `1: FLOCK  ADVISORY  WRITE 14279 fe:00:9981140 0 EOF`.
        let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK");
        let holder = words.nth(3)?;
        let found = words.next()?.rsplit(':').next()?;
        (found.parse() == Ok(inode)).then(|| holder.parse().ok())?
    })
}

/// Creates a folder in the directory for temporary files that only this user may read.
fn temporary_folder() -> Result<PartialFolder, ToolError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("strowger-store-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(PartialFolder(path)),
            // Of a process with the same number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(ToolError::io(&path)(error)),
        }
    }
}

/// Makes a folder with the contents of a database, but its journals. Its tables are links: they
/// never change.
fn copy_tables(from: &Path, to: &Path) -> io::Result<()> {
    let from = from.canonicalize()?;
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(&from)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let is_journal = path.extension().is_some_and(|end| end == "jnl");
        if entry.file_type()?.is_dir() {
            copy_folder(&path, &to.join(name), false)?;
        } else if name == "lock" {
            File::create(to.join(name))?;
        } else if !is_journal {
            fs::copy(path, to.join(name))?;
        }
    }
    Ok(())
}

/// Copies journals into a folder, up to the first group that is missing. Later groups without it
/// would be a state that never was.
fn copy_journals(journals: &[JournalScan], to: &Path) -> io::Result<()> {
    if journals.first().is_none_or(|oldest| oldest.misses_earlier) {
        return journal::create_empty(to);
    }
    for (number, journal) in journals.iter().enumerate() {
        let name = journal.path.file_name().unwrap_or_default();
        let mut input = File::open(&journal.path)?.take(journal.valid);
        io::copy(&mut input, &mut File::create(to.join(name))?)?;
        if journal.is_damaged && number + 1 < journals.len() {
            break;
        }
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path, is_linked: bool) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if entry.file_type()?.is_dir() {
            let is_linked = name == "tables" || name == "blobs";
            copy_folder(&path, &to.join(name), is_linked)?;
        } else if is_linked {
            symlink(path, to.join(name))?;
        } else {
            fs::copy(path, to.join(name))?;
        }
    }
    Ok(())
}
