//! Datagrams of arbitrary bytes: framing, headers and elements never panic, and never read out of
//! bounds.

use strowger_pfcp::frames;
use strowger_pfcp::wire::Tlvs;

/// Checks the framing of a datagram.
pub(crate) fn check(datagram: &[u8]) {
    let mut octets = 0;
    for frame in frames(datagram) {
        let Ok(frame) = frame else { break };
        octets += frame.octets.len();
        for element in Tlvs::new(frame.body) {
            if element.is_err() {
                break;
            }
        }
    }
    assert!(octets <= datagram.len(), "frames do not overlap");
}
