//! Packet flow descriptions: what the packets of an application look like, TS 29.244 §6.2.5.
//!
//! They belong to the node, not to a session: rules name the application that they describe.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use parking_lot::Mutex;
use strowger_pfcp::ie::{Ie, PfdContents};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, IeType};

/// The descriptions of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplicationPfds {
    /// The identifier of the application; octets that are no text are escaped.
    pub application: String,
    /// Its descriptions, one for each PFD Contents, as text.
    pub contents: Vec<String>,
}

/// By application: its PFD Contents, as elements.
type Table = BTreeMap<Vec<u8>, Vec<u8>>;

/// The descriptions of all applications.
#[derive(Debug, Default)]
pub(crate) struct Pfds {
    table: Mutex<Table>,
}

/// There are more octets than there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Pfds {
    /// Does what a checked PFD Management Request asks for, all or nothing: sets the descriptions
    /// of each application that it names, removes those of applications without any, and all of
    /// them when it names none. `limit` is how many octets there may be.
    pub(crate) fn manage(&self, request: &Frame<'_>, limit: usize) -> Result<(), TooMany> {
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
                false => _ = next.insert(application, contents),
            }
        }
        let octets = next
            .iter()
            .map(|(name, contents)| name.len() + contents.len());
        if octets.sum::<usize>() > limit {
            return Err(TooMany);
        }
        *table = next;
        Ok(())
    }

    /// All of them, in the order of the applications.
    pub(crate) fn list(&self) -> Vec<ApplicationPfds> {
        let table = self.table.lock();
        let rows = table.iter().map(|(application, contents)| ApplicationPfds {
            application: application.escape_ascii().to_string(),
            contents: Tlvs::new(contents)
                .map_while(Result::ok)
                .map(|tlv| text(tlv.value))
                .collect(),
        });
        rows.collect()
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
