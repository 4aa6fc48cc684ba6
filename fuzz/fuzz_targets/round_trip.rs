//! A message that decodes into owned values encodes into the same bytes, whatever it contains.

#![no_main]

use libfuzzer_sys::fuzz_target;
use strowger_pfcp::{Message, frames};

fuzz_target!(|datagram: &[u8]| {
    for frame in frames(datagram).map_while(Result::ok) {
        let Ok(message) = Message::decode(frame.octets) else {
            continue;
        };
        let again = message
            .encode()
            .expect("what was decoded has lengths that fit");
        assert_eq!(again, frame.octets, "{message:?}");
    }
});
