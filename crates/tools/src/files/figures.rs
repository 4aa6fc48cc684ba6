//! What was called: figures by verb, and a line in the audit for each call.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::error::FileError;
use super::message::VerbUsage;

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
            Err(error @ FileError::Refused { .. }) => End::Refused(error.name()),
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

/// The figures of one actor.
#[derive(Debug)]
pub(super) struct Figures {
    /// Which actor.
    actor: String,
    verbs: [VerbUsage; Verb::ALL.len()],
}

impl Figures {
    pub(super) fn new(actor: String) -> Self {
        Self {
            actor,
            verbs: [VerbUsage::default(); Verb::ALL.len()],
        }
    }

    /// Counts a call, and writes it to the audit.
    pub(super) fn enter(&mut self, called: &Called<'_>) {
        let usage = &mut self.verbs[called.verb as usize];
        usage.calls += 1;
        usage.octets += called.octets as u64;
        let reason = match called.end {
            End::Done => "done",
            End::Refused(rule) => {
                usage.refused += 1;
                rule
            }
            End::Failed(reason) => {
                usage.failed += 1;
                reason
            }
        };
        tracing::info!(
            target: "strowger::audit",
            actor = %self.actor,
            verb = called.verb.name(),
            path = ?called.path,
            end = reason,
            octets = called.octets,
        );
    }

    /// What was asked at least once, by verb.
    pub(super) fn verbs(&self) -> BTreeMap<&'static str, VerbUsage> {
        let asked = Verb::ALL
            .iter()
            .zip(self.verbs)
            .filter(|(_, usage)| usage.calls > 0);
        asked.map(|(verb, usage)| (verb.name(), usage)).collect()
    }
}
