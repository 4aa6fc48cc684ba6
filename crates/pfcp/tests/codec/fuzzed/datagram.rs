//! Datagrams of arbitrary bytes: framing, headers and elements never panic, and never read out of
//! bounds.

use strowger_pfcp::frames;
use strowger_pfcp::wire::Tlvs;

/// Checks the framing of a datagram.
pub(crate) fn check(datagram: &[u8]) {
    let mut bytes = 0;
    for frame in frames(datagram) {
        let Ok(frame) = frame else { break };
        bytes += frame.bytes.len();
        for element in Tlvs::new(frame.body) {
            if element.is_err() {
                break;
            }
        }
    }
    assert!(bytes <= datagram.len(), "frames do not overlap");
}
