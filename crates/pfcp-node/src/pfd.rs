//! Packet flow descriptions (PFDs), which describe the packets of an application, TS 29.244 §6.2.5.
//!
//! They belong to the node, not to a session: rules refer to them by their Application ID.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use strowger_pfcp::ie::{Ie, PfdContents};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, IeType};

use crate::store::{StoreChange, StoredPfds};

/// The packet flow descriptions of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationPfds {
    /// The Application ID; bytes that are not ASCII text are escaped.
    pub application: String,
    /// The descriptions as text, one for each PFD Contents IE.
    pub contents: Vec<String>,
}

impl ApplicationPfds {
    pub(crate) fn of(described: &StoredPfds) -> Self {
        Self {
            application: described.application.escape_ascii().to_string(),
            contents: Tlvs::new(&described.contents)
                .map_while(Result::ok)
                .map(|tlv| text(tlv.value))
                .collect(),
        }
    }
}

/// The descriptions by Application ID.
type PfdTable = BTreeMap<Vec<u8>, Arc<StoredPfds>>;

/// The descriptions of all applications.
#[derive(Debug, Default)]
pub(crate) struct PfdStore {
    table: Mutex<PfdTable>,
}

/// The error returned when the descriptions would exceed their size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PfdLimitExceeded;

impl PfdStore {
    /// Creates the table from the descriptions in the store.
    pub(crate) fn restored(kept: Vec<Arc<StoredPfds>>) -> Self {
        let rows = kept.into_iter();
        let table = rows.map(|one| (one.application.clone(), one)).collect();
        Self {
            table: Mutex::new(table),
        }
    }

    /// Applies a validated PFD Management Request as a whole or not at all.
    ///
    /// Sets the descriptions of each application that the request names, removes those of
    /// applications named without any, and removes all descriptions if the request names no
    /// application. Returns the changes to store. `limit` is the maximum size of all descriptions,
    /// in bytes.
    pub(crate) fn manage(
        &self,
        request: &Frame<'_>,
        limit: usize,
    ) -> Result<Vec<StoreChange>, PfdLimitExceeded> {
        let mut table = self.table.lock();
        let mut next = PfdTable::new();
        let mut named = false;
        let top = request.tlvs().map_while(Result::ok);
        for one in top.filter(|tlv| tlv.ie == IeType::APPLICATION_IDS_PFDS) {
            if !named {
                next.clone_from(&table);
            }
            named = true;
            let Some((application, contents)) = read(one.value) else {
                continue;
            };
            match contents.is_empty() {
                true => _ = next.remove(&application),
                false => {
                    let described = StoredPfds {
                        application: application.clone(),
                        contents,
                    };
                    next.insert(application, Arc::new(described));
                }
            }
        }
        let bytes = next
            .iter()
            .map(|(name, described)| name.len() + described.contents.len());
        if bytes.sum::<usize>() > limit {
            return Err(PfdLimitExceeded);
        }
        let before = std::mem::replace(&mut *table, next);
        let gone = before.keys().filter(|name| !table.contains_key(*name));
        let gone = gone.map(|name| StoreChange::RemovePfds(name.clone()));
        let new = table
            .iter()
            .filter(|(name, one)| before.get(*name) != Some(*one));
        let new = new.map(|(_, one)| StoreChange::PutPfds(Arc::clone(one)));
        Ok(gone.chain(new).collect())
    }

    /// Returns all descriptions, in the order of the applications.
    pub(crate) fn list(&self) -> Vec<ApplicationPfds> {
        let table = self.table.lock();
        table.values().map(|one| ApplicationPfds::of(one)).collect()
    }
}

/// Returns the Application ID and the encoded PFD Contents of an Application ID's PFDs IE.
fn read(value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut application = None;
    let mut contents = Vec::new();
    for tlv in Tlvs::new(value).map_while(Result::ok) {
        match tlv.ie {
            IeType::APPLICATION_ID => application = application.or(Some(tlv.value)),
            IeType::PFD_CONTEXT => contents.extend_from_slice(tlv.value),
            _ => {}
        }
    }
    Some((application?.to_vec(), contents))
}

fn text(value: &[u8]) -> String {
    if let Ok(contents) = PfdContents::decode(value) {
        return contents.to_string();
    }
    value.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
