//! A store that is looked at while no node uses it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use strowger_pfcp::Seid;

use super::disk::Prepared;
use super::format::{FORMAT, Record};
use super::{StoreError, StoreLoss};
use crate::pfd::ApplicationPfds;

/// What is in a store, as it is; the store itself is not touched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreImage {
    /// The version of its format.
    pub format: u32,
    /// The Recovery Time Stamp that its node tells, in seconds since 1900.
    pub recovery: u32,
    /// The number of its last group of writes.
    pub group: u64,
    /// The peers, in the order of their names.
    pub associations: Vec<StoredAssociation>,
    /// The sessions, in the order of their identifiers.
    pub sessions: Vec<StoredSession>,
    /// The applications that are described, in their order.
    pub applications: Vec<ApplicationPfds>,
    /// How many answers are kept for repetitions.
    pub answers: usize,
    /// Records that are not what was written, and files beside the database that are damaged.
    pub damaged: u64,
    /// What is missing; `None` when all is there, or was found elsewhere in the files.
    pub loss: Option<StoreLoss>,
}

/// An association in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredAssociation {
    /// The Node ID of the peer.
    pub node: String,
    /// Where the peer sends from.
    pub peer: SocketAddr,
    /// The peer's Recovery Time Stamp, in seconds since 1900.
    pub recovery: u32,
}

/// A session in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSession {
    /// The node's identifier.
    pub seid: Seid,
    /// The peer's identifier.
    pub peer_seid: Seid,
    /// The Node ID of the peer.
    pub node: String,
    /// Where the peer sends from.
    pub peer: SocketAddr,
    /// The rules, as the elements that create them.
    pub rules: Vec<u8>,
}

impl StoreImage {
    /// Reads a copy of the store, made in the folder for temporary files.
    ///
    /// # Errors
    /// When there is no store, a node uses it, its format is newer than this program, or there is
    /// no room for the copy.
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
        // Held until all is copied.
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
        let (contents, mark, loss) = Prepared::take(aside.path())?.look()?;
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
                    rules: record.rules.octets().to_vec(),
                }),
                Record::Application(one) => image.applications.push(ApplicationPfds::of(&one)),
                Record::Answer { .. } => image.answers += 1,
                Record::Head(_) => {}
            }
        }
        Ok(image)
    }
}

/// Copies what a store is read from.
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
