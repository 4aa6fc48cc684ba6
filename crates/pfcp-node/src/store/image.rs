//! Inspection of a store while no node uses it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use strowger_pfcp::Seid;

use super::disk::LockedStore;
use super::format::{FORMAT, Record};
use super::{StoreError, StoreLoss};
use crate::pfd::ApplicationPfds;

/// The contents of a store. Reading them does not modify the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreImage {
    /// The format version.
    pub format: u32,
    /// The Recovery Time Stamp of the node, in seconds since 1900.
    pub recovery: u32,
    /// The number of the last group of writes.
    pub group: u64,
    /// The associations, in the order of their Node IDs.
    pub associations: Vec<StoredAssociation>,
    /// The sessions, in the order of their SEIDs.
    pub sessions: Vec<StoredSession>,
    /// The packet flow descriptions, in the order of the applications.
    pub applications: Vec<ApplicationPfds>,
    /// Number of responses that are kept for retransmissions.
    pub answers: usize,
    /// Number of damaged records, and of damaged files beside the database.
    pub damaged: u64,
    /// The data that is missing; `None` if there is none, or if all of it was found elsewhere in
    /// the files.
    pub loss: Option<StoreLoss>,
}

/// An association in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredAssociation {
    /// The Node ID of the peer.
    pub node: String,
    /// The address that the peer sends from.
    pub peer: SocketAddr,
    /// The peer's Recovery Time Stamp, in seconds since 1900.
    pub recovery: u32,
}

/// A session in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSession {
    /// The node's SEID.
    pub seid: Seid,
    /// The peer's SEID.
    pub peer_seid: Seid,
    /// The Node ID of the peer.
    pub node: String,
    /// The address that the peer sends from.
    pub peer: SocketAddr,
    /// The rules, encoded as the IEs that create them.
    pub rules: Vec<u8>,
}

impl StoreImage {
    /// Reads a copy of the store, which is made in the folder for temporary files.
    ///
    /// # Errors
    /// Returns an error if there is no store, a node uses it, its format is newer than this
    /// program, or there is no room for the copy.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        let io = |source| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        fs::read_dir(path).map_err(io)?;
        if !path.join("format").exists() {
            let path = path.to_owned();
            return Err(StoreError::NotAStore { path });
        }
        // The lock is held until the copy is complete.
        let lock = File::open(path.join("lock")).map_err(io)?;
        match lock.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.to_owned();
                return Err(StoreError::Locked { path });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let aside = tempfile::tempdir().map_err(io)?;
        copy(path, aside.path()).map_err(io)?;
        drop(lock);
        let (contents, mark, loss) = LockedStore::lock(aside.path())?.read_contents()?;
        let (group, head) = contents.head.unwrap_or_default();
        let mut image = Self {
            format: FORMAT,
            recovery: match head.recovery {
                0 => mark,
                recovery => recovery,
            },
            group,
            associations: Vec::new(),
            sessions: Vec::new(),
            applications: Vec::new(),
            answers: 0,
            damaged: contents.damaged,
            loss,
        };
        for read in contents.records.into_values() {
            match read.record {
                Record::Association(owner) => image.associations.push(StoredAssociation {
                    node: owner.node.to_string(),
                    peer: owner.address,
                    recovery: owner.recovery.0,
                }),
                Record::Session(record) => image.sessions.push(StoredSession {
                    seid: record.seid,
                    peer_seid: record.peer_seid,
                    node: record.owner.node.to_string(),
                    peer: record.owner.address,
                    rules: record.rules.bytes().to_vec(),
                }),
                Record::Application(one) => image.applications.push(ApplicationPfds::of(&one)),
                Record::Answer { .. } => image.answers += 1,
                Record::HeadRecord(_) => {}
            }
        }
        Ok(image)
    }
}

/// Copies the files that are needed for reading a store.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if ["reserve", "damaged", "lock"]
            .iter()
            .any(|left| name == *left)
        {
            continue;
        }
        let (here, there) = (entry.path(), to.join(&name));
        if entry.file_type()?.is_dir() {
            fs::create_dir(&there)?;
            copy(&here, &there)?;
        } else {
            fs::copy(&here, &there)?;
        }
    }
    Ok(())
}
