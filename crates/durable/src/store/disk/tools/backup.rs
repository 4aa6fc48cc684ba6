//! Copies of a store, also of one that is being written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fjall::Snapshot;
use tokio::sync::oneshot;

use super::scan::{Found, PairReader, StoredKey};
use super::{OnProgress, PartialFolder, StoppedStore, ToolError, is_vacant};
use crate::seeded_bug::{Bug, seeded};
use crate::store::disk::mark::MarkFile;
use crate::store::disk::rows::{GROUP_KEY, GroupNumber, HEAD, QUARANTINE, Rows, decode};
use crate::store::disk::writer::Job;
use crate::store::disk::{DEFAULT_BUFFER, DatabaseError, FjallStore, catch_database_panic};

/// The result of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of entities.
    pub entities: u64,
    /// The number of rows, with those of the lists beside the entities.
    pub rows: u64,
    /// Their keys and values, in bytes.
    pub bytes: u64,
    /// The number of rows that are damaged, in the store and in its copy.
    pub damaged_rows: u64,
}

/// The contents of a store at one moment.
pub(in crate::store::disk) struct BackupSource {
    rows: Rows,
    snapshot: Snapshot,
    cancelled: Arc<AtomicBool>,
}

impl BackupSource {
    pub(in crate::store::disk) fn new(rows: Rows, cancelled: Arc<AtomicBool>) -> Self {
        Self {
            snapshot: rows.database().snapshot(),
            rows,
            cancelled,
        }
    }
}

/// Gives a backup up whose caller has stopped waiting.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl FjallStore {
    /// Copies the store into a new folder, while it is being used.
    ///
    /// The copy is that of one moment, across all entities: it has every write that was
    /// acknowledged before this method was called, and of later ones those up to that moment. It is
    /// a store: restore it by opening the folder, or a copy of it.
    ///
    /// A thread of its own reads and writes row by row. It writes into a folder beside the target,
    /// which gets its name when everything is synced; a backup that fails, or whose future is
    /// dropped, leaves nothing behind. The files of the store stay open until the thread ends.
    ///
    /// # Errors
    /// Fails if the target exists and is not an empty folder, if the store has failed, or if
    /// reading or writing fails.
    pub async fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport, ToolError> {
        let source = self.submit(|done| Job::Snapshot { done }).await?;
        let _cancel = CancelOnDrop(Arc::clone(&source.cancelled));
        let path = self.path().to_owned();
        let target = target.as_ref().to_owned();
        let (done, result) = oneshot::channel();
        std::thread::Builder::new()
            .name("strowger-durable-backup".to_owned())
            .spawn({
                let path = path.clone();
                move || {
                    let copied = copy(&path, &source, &target, &mut |_| {});
                    // The database closes before the caller learns that the backup is done.
                    drop(source);
                    let _ = done.send(copied);
                }
            })
            .map_err(ToolError::io(&path))?;
        result.await.unwrap_or_else(|_| {
            let detail = "the backup panicked".to_owned();
            Err(ToolError::Database { path, detail })
        })
    }
}

impl StoppedStore {
    /// Copies the store into a new folder, as [`FjallStore::backup`] does.
    ///
    /// # Errors
    /// Fails if the target exists and is not an empty folder, or if reading or writing fails.
    pub fn backup(
        &self,
        target: impl AsRef<Path>,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<BackupReport, ToolError> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let source = BackupSource::new(self.view.rows.clone(), cancelled);
        copy(&self.path, &source, target.as_ref(), on_progress)
    }
}

fn copy(
    path: &Path,
    source: &BackupSource,
    target: &Path,
    on_progress: &mut OnProgress<'_>,
) -> Result<BackupReport, ToolError> {
    if !is_vacant(target) {
        let path = target.to_owned();
        return Err(ToolError::Exists { path });
    }
    let folder = PartialFolder::beside(target, "partial")?;
    let mut report = BackupReport::default();
    let mut group = 0;
    let database = folder.0.join("db");
    let failed = |error: DatabaseError| write_error(target)(error);
    let rows = Rows::open(&database, DEFAULT_BUFFER).map_err(failed)?;
    {
        let mut output = catch_database_panic(|| rows.table().start_ingestion()).map_err(failed)?;
        let mut reader = PairReader::new(&source.rows, source.snapshot.clone(), on_progress);
        while let Some(found) = reader.next() {
            if source.cancelled.load(Ordering::Acquire) {
                return Err(ToolError::Cancelled);
            }
            let (key, value) = match found {
                Found::Pair(pair) => pair,
                Found::Gap(range) => {
                    let path = path.to_owned();
                    return Err(ToolError::Unreadable { path, range });
                }
            };
            if seeded(Bug::BackupNotOfOneMoment) {
                reader.renew_snapshot();
            }
            report.rows += 1;
            report.bytes += (key.len() + value.len()) as u64;
            if &*key == GROUP_KEY {
                group = GroupNumber::decode(&value).map_or(0, |group| group.number);
            } else if !key.starts_with(&QUARANTINE) && decode(&key, &value).is_none() {
                report.damaged_rows += 1;
            }
            if let StoredKey::Row { table: HEAD, .. } = StoredKey::parse(&key) {
                report.entities += 1;
            }
            catch_database_panic(|| output.write(key, value)).map_err(failed)?;
        }
        catch_database_panic(|| output.finish()).map_err(failed)?;
    }
    drop(rows);
    write_mark(&folder.0, group).map_err(ToolError::io(target))?;
    folder.rename(target)?;
    Ok(report)
}

/// Writes the mark of a new store.
pub(super) fn write_mark(folder: &Path, group: u64) -> std::io::Result<()> {
    let (mut mark, _) = MarkFile::open(&folder.join("mark"))?;
    mark.write(group)?;
    mark.sync()
}

/// Makes the error for a database that is being written.
pub(super) fn write_error(path: &Path) -> impl Fn(DatabaseError) -> ToolError + use<> {
    let path: PathBuf = path.to_owned();
    move |error| match error {
        DatabaseError::Fjall(
            fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)),
        ) => ToolError::Io {
            path: path.clone(),
            source,
        },
        error => ToolError::database(&path)(error),
    }
}
