//! The few elements of an answer that a replay needs.

use strowger_pfcp::ie::Cause;
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{IeType, Seid};

/// Finds the value of the first element of a type.
pub(super) fn element(body: &[u8], ie: IeType) -> Option<&[u8]> {
    let mut elements = Tlvs::new(body).map_while(Result::ok);
    elements.find(|tlv| tlv.ie == ie).map(|tlv| tlv.value)
}

/// Reads the cause of an answer.
pub(super) fn cause(body: &[u8]) -> Option<Cause> {
    element(body, IeType::CAUSE)?.first().copied().map(Cause)
}

/// Reads the session that an establishment created: the SEID in the answer's F-SEID.
pub(super) fn session(body: &[u8]) -> Option<Seid> {
    let (_flags, rest) = element(body, IeType::F_SEID)?.split_first()?;
    let seid = rest.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*seid)))
}
