//! Owned values of any message: an index that has seen others reads what a fresh one reads, an
//! error says where, and a value that is changed and changed back is the message that it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use strowger_pfcp::message::Unsendable;
use strowger_pfcp::{
    Error, Frame, Index, Interfaces, Message, MessageView, Rejection, Sequence, frames, validate,
};

fuzz_target!(|datagram: &[u8]| {
    for frame in frames(datagram).map_while(Result::ok) {
        let fresh =
            MessageView::decode(frame.octets, &mut Index::new()).and_then(|view| view.to_message());
        let used = Message::decode(frame.octets);
        assert_eq!(used, fresh, "what was read before changes nothing");
        match used {
            Ok(message) => {
                accepted_alike(&message, frame.octets);
                changed_in_place(message, frame.octets);
            }
            Err(error) => located(&error, &frame),
        }
    }
});

/// An error lies within the octets, and its path starts at the message.
fn located(error: &Error, frame: &Frame<'_>) {
    assert!(error.offset() <= frame.octets.len(), "{error:?}");
    assert_eq!(error.path().message(), Some(frame.header.message_type));
    if let Some(rejection) = Rejection::of(error, frame.octets) {
        assert!(!rejection.cause.is_acceptance(), "{error:?}");
    }
}

/// Whether a peer takes the value is what validation says of its octets.
fn accepted_alike(message: &Message, octets: &[u8]) {
    let mut index = Index::new();
    let view = MessageView::decode(octets, &mut index).expect("it has become a value");
    let mut out = vec![0xee];
    match (
        message.encode_for(Interfaces::ALL, &mut out),
        validate(&view, Interfaces::ALL),
    ) {
        (Ok(sent), Ok(taken)) => assert_eq!((sent, &out[1..]), (taken, octets)),
        (Err(Unsendable::Unacceptable(ours)), Err(theirs)) => {
            assert_eq!(ours, theirs);
            assert_eq!(out, [0xee], "nothing is appended");
        }
        (sent, taken) => panic!("{sent:?} is not {taken:?}"),
    }
}

/// Another sequence number changes its own octets only.
fn changed_in_place(mut message: Message, octets: &[u8]) {
    let before = message.clone();
    let sequence = message.header.sequence;
    message.header.sequence = Sequence::new(!sequence.get());
    assert_ne!(message, before);
    let changed = message.encode().expect("all sequence numbers fit");
    let at = message.header.octets() - 4;
    assert_eq!(changed[..at], octets[..at]);
    assert_eq!(changed[at + 3..], octets[at + 3..]);
    message.header.sequence = sequence;
    assert_eq!(message, before);
    assert_eq!(message.encode().as_deref(), Ok(octets));
}
