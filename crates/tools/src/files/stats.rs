//! Stats by verb, and the line in the audit log for each call.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::disk::{Disk, QuotaAmount};
use super::error::FileError;
use super::message::{FilesUsage, VerbUsage};

/// An operation of a files actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Read,
    Write,
    Append,
    Edit,
    List,
    Tree,
    Search,
    Stat,
    Make,
    Rename,
    Delete,
}

impl Verb {
    const ALL: [Self; 11] = [
        Self::Read,
        Self::Write,
        Self::Append,
        Self::Edit,
        Self::List,
        Self::Tree,
        Self::Search,
        Self::Stat,
        Self::Make,
        Self::Rename,
        Self::Delete,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Append => "append",
            Self::Edit => "edit",
            Self::List => "list",
            Self::Tree => "tree",
            Self::Search => "search",
            Self::Stat => "stat",
            Self::Make => "make",
            Self::Rename => "rename",
            Self::Delete => "delete",
        }
    }
}

/// The record of a call that has ended.
#[derive(Debug)]
pub(super) struct CallRecord<'a> {
    verb: Verb,
    path: Cow<'a, str>,
    end: CallEnd,
    bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum CallEnd {
    Done,
    Refused(&'static str),
    Failed(&'static str),
}

impl<'a> CallRecord<'a> {
    pub(super) fn new<T>(
        verb: Verb,
        path: impl Into<Cow<'a, str>>,
        outcome: &Result<T, FileError>,
        bytes: usize,
    ) -> Self {
        let end = match outcome {
            Ok(_) => CallEnd::Done,
            Err(error @ (FileError::Refused { .. } | FileError::Limit { .. })) => {
                CallEnd::Refused(error.name())
            }
            Err(error) => CallEnd::Failed(error.name()),
        };
        Self {
            verb,
            path: path.into(),
            end,
            bytes,
        }
    }
}

/// A handle that observes the stats of a files actor: its calls, and its additions below the root.
/// Clones share the same stats, which continue across restarts of the actor.
///
/// ```
/// use strowger::{ActorSystem, BoxError};
/// use strowger_tools::files::{Files, FilesSpec, WriteRequest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let folder = tempfile::tempdir()?;
/// let spec = FilesSpec::new(folder.path());
/// let watch = spec.watch.clone();
/// let system = ActorSystem::new("office")?;
/// let files = system.spawn::<Files>("files", spec)?;
/// files.ask(WriteRequest::new("today.txt", "call back")).await??;
/// let usage = watch.usage();
/// assert_eq!((usage.bytes, usage.verbs["write"].calls), (9, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct FilesWatch(Arc<FilesCounters>);

#[derive(Default)]
struct FilesCounters {
    verbs: [VerbCounters; Verb::ALL.len()],
    /// The additions, over all incarnations.
    used: Arc<Mutex<QuotaAmount>>,
    /// Number of directory entries that were scanned, over all incarnations.
    scanned: Arc<AtomicU64>,
    /// The disk of the running incarnation.
    disk: Mutex<Weak<Disk>>,
}

#[derive(Default)]
struct VerbCounters {
    calls: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
}

impl FilesWatch {
    /// The amount added below the root.
    pub(super) fn used(&self) -> Arc<Mutex<QuotaAmount>> {
        Arc::clone(&self.0.used)
    }

    /// The counter of directory entries that were scanned.
    pub(super) fn scanned(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.scanned)
    }

    /// Returns the calls by verb and the use of the quota. Without a running incarnation the quota
    /// and its use are zero.
    #[must_use]
    pub fn usage(&self) -> FilesUsage {
        let verbs = Verb::ALL.iter().zip(&self.0.verbs);
        let verbs = verbs.map(|(verb, counts)| (verb.name(), counts.read()));
        let mut usage = FilesUsage {
            scanned: self.0.scanned.load(Ordering::Relaxed),
            verbs: verbs.filter(|(_, usage)| usage.calls > 0).collect(),
            ..FilesUsage::default()
        };
        let disk = self.0.disk.lock().upgrade();
        if let Some(disk) = disk {
            let used = disk.used();
            (usage.bytes, usage.bytes_limit) = (used.bytes, disk.limits.bytes);
            (usage.entries, usage.entries_limit) = (used.entries, disk.limits.entries);
        }
        usage
    }
}

impl fmt::Debug for FilesWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FilesWatch").field(&self.usage()).finish()
    }
}

impl VerbCounters {
    fn read(&self) -> VerbUsage {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        VerbUsage {
            calls: read(&self.calls),
            refused: read(&self.refused),
            failed: read(&self.failed),
            bytes: read(&self.bytes),
        }
    }
}

/// The recorder of one incarnation.
#[derive(Debug)]
pub(super) struct CallRecorder {
    /// The path of the actor.
    actor: String,
    watch: FilesWatch,
}

impl CallRecorder {
    pub(super) fn new(actor: String, watch: FilesWatch, disk: &Arc<Disk>) -> Self {
        *watch.0.disk.lock() = Arc::downgrade(disk);
        Self { actor, watch }
    }

    pub(super) fn usage(&self) -> FilesUsage {
        self.watch.usage()
    }

    /// Counts a call and writes it to the audit log.
    pub(super) fn record(&self, call: &CallRecord<'_>) {
        let counts = &self.watch.0.verbs[call.verb as usize];
        let add = |count: &AtomicU64, more| count.fetch_add(more, Ordering::Relaxed);
        add(&counts.calls, 1);
        add(&counts.bytes, call.bytes as u64);
        let reason = match call.end {
            CallEnd::Done => "done",
            CallEnd::Refused(rule) => {
                add(&counts.refused, 1);
                rule
            }
            CallEnd::Failed(reason) => {
                add(&counts.failed, 1);
                reason
            }
        };
        tracing::info!(
            target: "strowger::audit",
            actor = %self.actor,
            verb = call.verb.name(),
            file = ?call.path,
            outcome = reason,
            bytes = call.bytes,
            "file call"
        );
    }
}
