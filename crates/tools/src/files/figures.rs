//! What was called: figures by verb, and a line in the audit for each call.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::disk::{Account, Disk};
use super::error::FileError;
use super::message::{Usage, VerbUsage};

/// What a files actor can be asked to do.
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

/// A call that has ended.
#[derive(Debug)]
pub(super) struct Called<'a> {
    verb: Verb,
    path: Cow<'a, str>,
    end: End,
    octets: usize,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Done,
    Refused(&'static str),
    Failed(&'static str),
}

impl<'a> Called<'a> {
    pub(super) fn new<T>(
        verb: Verb,
        path: impl Into<Cow<'a, str>>,
        outcome: &Result<T, FileError>,
        octets: usize,
    ) -> Self {
        let end = match outcome {
            Ok(_) => End::Done,
            Err(error @ (FileError::Refused { .. } | FileError::Limit { .. })) => {
                End::Refused(error.name())
            }
            Err(error) => End::Failed(error.name()),
        };
        Self {
            verb,
            path: path.into(),
            end,
            octets,
        }
    }
}

/// What a files actor did, and what it added below its root, for those who watch it. A clone is the
/// same. It outlives incarnations: the figures of the next go on from those of the one before.
///
/// ```
/// use strowger::{ActorSystem, BoxError};
/// use strowger_tools::{Files, FilesSpec, Write};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let folder = tempfile::tempdir()?;
/// let spec = FilesSpec::new(folder.path());
/// let watch = spec.watch.clone();
/// let system = ActorSystem::new("office")?;
/// let files = system.spawn::<Files>("files", spec)?;
/// files.ask(Write::new("today.txt", "call back")).await??;
/// let usage = watch.usage();
/// assert_eq!((usage.octets, usage.verbs["write"].calls), (9, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct FilesWatch(Arc<Watched>);

#[derive(Default)]
struct Watched {
    verbs: [Counts; Verb::ALL.len()],
    /// What was added, over all incarnations.
    account: Arc<Mutex<Account>>,
    /// Of the incarnation that runs.
    disk: Mutex<Weak<Disk>>,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    octets: AtomicU64,
}

impl FilesWatch {
    /// Where what is added is counted.
    pub(super) fn account(&self) -> Arc<Mutex<Account>> {
        Arc::clone(&self.0.account)
    }

    /// What was asked by now, by verb, and how much of the quota is used; of the quota nothing is
    /// known while no incarnation runs.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let verbs = Verb::ALL.iter().zip(&self.0.verbs);
        let verbs = verbs.map(|(verb, counts)| (verb.name(), counts.read()));
        let mut usage = Usage {
            verbs: verbs.filter(|(_, usage)| usage.calls > 0).collect(),
            ..Usage::default()
        };
        let disk = self.0.disk.lock().upgrade();
        if let Some(disk) = disk {
            let account = disk.account();
            (usage.octets, usage.octets_limit) = (account.octets, disk.limits.octets);
            (usage.entries, usage.entries_limit) = (account.entries, disk.limits.entries);
        }
        usage
    }
}

impl fmt::Debug for FilesWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FilesWatch").field(&self.usage()).finish()
    }
}

impl Counts {
    fn read(&self) -> VerbUsage {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        VerbUsage {
            calls: read(&self.calls),
            refused: read(&self.refused),
            failed: read(&self.failed),
            octets: read(&self.octets),
        }
    }
}

/// Where one incarnation enters what it does.
#[derive(Debug)]
pub(super) struct Figures {
    /// Which actor.
    actor: String,
    watch: FilesWatch,
}

impl Figures {
    pub(super) fn new(actor: String, watch: FilesWatch, disk: &Arc<Disk>) -> Self {
        *watch.0.disk.lock() = Arc::downgrade(disk);
        Self { actor, watch }
    }

    pub(super) fn usage(&self) -> Usage {
        self.watch.usage()
    }

    /// Counts a call, and writes it to the audit.
    pub(super) fn enter(&self, called: &Called<'_>) {
        let counts = &self.watch.0.verbs[called.verb as usize];
        let add = |count: &AtomicU64, more| count.fetch_add(more, Ordering::Relaxed);
        add(&counts.calls, 1);
        add(&counts.octets, called.octets as u64);
        let reason = match called.end {
            End::Done => "done",
            End::Refused(rule) => {
                add(&counts.refused, 1);
                rule
            }
            End::Failed(reason) => {
                add(&counts.failed, 1);
                reason
            }
        };
        tracing::info!(
            target: "strowger::audit",
            actor = %self.actor,
            verb = called.verb.name(),
            file = ?called.path,
            end = reason,
            octets = called.octets,
            "a file was asked for"
        );
    }
}
