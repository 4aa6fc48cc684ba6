//! Owned values of arbitrary messages: a reused index reads the same as a fresh one, an error has a
//! position, and a value that is changed and changed back is equal to the original message.

use strowger_pfcp::message::EncodeForError;
use strowger_pfcp::{
    Error, Frame, Index, Interfaces, Message, MessageView, Rejection, Sequence, frames, validate,
};

/// Checks the owned value of each message of a datagram.
pub(crate) fn check(datagram: &[u8]) {
    for frame in frames(datagram).map_while(Result::ok) {
        let fresh =
            MessageView::decode(frame.bytes, &mut Index::new()).and_then(|view| view.to_message());
        let used = Message::decode(frame.bytes);
        assert_eq!(used, fresh, "what was read before changes nothing");
        match used {
            Ok(message) => {
                accepted_alike(&message, frame.bytes);
                changed_in_place(message, frame.bytes);
            }
            Err(error) => located(&error, &frame),
        }
    }
}

/// Checks that an error lies within the bytes, and that its path starts at the message.
fn located(error: &Error, frame: &Frame<'_>) {
    assert!(error.offset() <= frame.bytes.len(), "{error:?}");
    assert_eq!(error.path().message(), Some(frame.header.message_type));
    if let Some(rejection) = Rejection::of(error, frame.bytes) {
        assert!(!rejection.cause.is_acceptance(), "{error:?}");
    }
}

/// Checks that a value can be sent exactly if validation accepts its bytes.
fn accepted_alike(message: &Message, bytes: &[u8]) {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index).expect("it has become a value");
    let mut out = vec![0xee];
    match (
        message.encode_for(Interfaces::ALL, &mut out),
        validate(&view, Interfaces::ALL),
    ) {
        (Ok(sent), Ok(taken)) => assert_eq!((sent, &out[1..]), (taken, bytes)),
        (Err(EncodeForError::Rejected(ours)), Err(theirs)) => {
            assert_eq!(ours, theirs);
            assert_eq!(out, [0xee], "nothing is appended");
        }
        (sent, taken) => panic!("{sent:?} is not {taken:?}"),
    }
}

/// Checks that another sequence number changes only its own bytes.
fn changed_in_place(mut message: Message, bytes: &[u8]) {
    let before = message.clone();
    let sequence = message.header.sequence;
    message.header.sequence = Sequence::new(!sequence.get());
    assert_ne!(message, before);
    let changed = message.encode().expect("all sequence numbers fit");
    let at = message.header.encoded_len() - 4;
    assert_eq!(changed[..at], bytes[..at]);
    assert_eq!(changed[at + 3..], bytes[at + 3..]);
    message.header.sequence = sequence;
    assert_eq!(message, before);
    assert_eq!(message.encode().as_deref(), Ok(bytes));
}
