//! A message that decodes into owned values encodes into the same bytes, whatever it contains.

use strowger_pfcp::{Message, frames};

/// Checks that each message of a datagram encodes into the bytes it came from.
pub(crate) fn check(datagram: &[u8]) {
    for frame in frames(datagram).map_while(Result::ok) {
        let Ok(message) = Message::decode(frame.bytes) else {
            continue;
        };
        let again = message
            .encode()
            .expect("what was decoded has lengths that fit");
        assert_eq!(again, frame.bytes, "{message:?}");
    }
}
