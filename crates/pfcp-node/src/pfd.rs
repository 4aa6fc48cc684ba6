//! Packet flow descriptions: what the packets of an application look like, TS 29.244 §6.2.5.
//!
//! They belong to the node, not to a session: rules name the application that they describe.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use strowger_pfcp::ie::{Ie, PfdContents};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, IeType};

use crate::store::{Change, Described};

/// The descriptions of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationPfds {
    /// The identifier of the application; octets that are no text are escaped.
    pub application: String,
    /// Its descriptions, one for each PFD Contents, as text.
    pub contents: Vec<String>,
}

impl ApplicationPfds {
    pub(crate) fn of(described: &Described) -> Self {
        Self {
            application: described.application.escape_ascii().to_string(),
            contents: Tlvs::new(&described.contents)
                .map_while(Result::ok)
                .map(|tlv| text(tlv.value))
                .collect(),
        }
    }
}

/// What is described, by application.
type Table = BTreeMap<Vec<u8>, Arc<Described>>;

/// The descriptions of all applications.
#[derive(Debug, Default)]
pub(crate) struct Pfds {
    table: Mutex<Table>,
}

/// There are more octets than there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Pfds {
    /// Those that were kept.
    pub(crate) fn restored(kept: Vec<Arc<Described>>) -> Self {
        let rows = kept.into_iter();
        let table = rows.map(|one| (one.application.clone(), one)).collect();
        Self {
            table: Mutex::new(table),
        }
    }

    /// Does what a checked PFD Management Request asks for, all or nothing: sets the descriptions
    /// of each application that it names, removes those of applications without any, and all of
    /// them when it names none. Returns what is to be kept of it. `limit` is how many octets there
    /// may be.
    pub(crate) fn manage(&self, request: &Frame<'_>, limit: usize) -> Result<Vec<Change>, TooMany> {
        let mut table = self.table.lock();
        let mut next = Table::new();
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
                    let described = Described {
                        application: application.clone(),
                        contents,
                    };
                    next.insert(application, Arc::new(described));
                }
            }
        }
        let octets = next
            .iter()
            .map(|(name, described)| name.len() + described.contents.len());
        if octets.sum::<usize>() > limit {
            return Err(TooMany);
        }
        let before = std::mem::replace(&mut *table, next);
        let gone = before.keys().filter(|name| !table.contains_key(*name));
        let gone = gone.map(|name| Change::Undescribe(name.clone()));
        let new = table
            .iter()
            .filter(|(name, one)| before.get(*name) != Some(*one));
        let new = new.map(|(_, one)| Change::Describe(Arc::clone(one)));
        Ok(gone.chain(new).collect())
    }

    /// All of them, in the order of the applications.
    pub(crate) fn list(&self) -> Vec<ApplicationPfds> {
        let table = self.table.lock();
        table.values().map(|one| ApplicationPfds::of(one)).collect()
    }
}

/// The application of an Application ID's PFDs, and its PFD Contents as elements.
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
    value.iter().fold(String::new(), |mut text, octet| {
        // Writing to text does not fail.
        let _ = write!(text, "{octet:02x}");
        text
    })
}
