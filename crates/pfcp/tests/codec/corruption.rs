//! Truncated messages and flipped bits: the error gives the position, and decoding costs no more
//! than a look at each byte.

use strowger_pfcp::validate::findings;
use strowger_pfcp::wire::Part;
use strowger_pfcp::{
    Error, Frame, Index, Interfaces, Message, MessageType, MessageView, Rejection, validate,
};

use crate::values::{self, Choices, message_with, noise};

/// A short message of every type, and one for every group.
fn messages() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    for message in MessageType::ALL {
        // Elements are omitted when the choices are used up, which makes the message short.
        let bytes = noise(u64::from(message.0), 160);
        messages.push(values::message(*message, &mut Choices::new(&bytes)));
    }
    for (ie, (message, way)) in values::groups() {
        let bytes = noise(u64::from(ie.0), 96);
        let mut choices = Choices::readable(&bytes);
        messages.push(message_with(message, &way, &values::leaf, &mut choices));
    }
    messages
}

/// Checks that an error has a position within these bytes.
fn is_placed(error: &Error, bytes: &[u8]) {
    let length = bytes.len();
    assert!(
        error.offset() <= length,
        "{error} at {} of {length}",
        error.offset()
    );
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() < 4096, "{text}");
    for step in error.path().steps() {
        let index = step.index.unwrap_or(0);
        assert!(index < length / 4, "{error}: {index} elements in {length}");
    }
    let _ = Rejection::of(error, bytes);
}

/// Decodes a message in every way; each part is visited once, and lies within the bytes.
fn bears(bytes: &[u8]) {
    if let Err(error) = Message::decode(bytes) {
        is_placed(&error, bytes);
    }
    let mut index = Index::new();
    let frame = match Frame::decode(bytes) {
        Ok(frame) => frame,
        Err(error) => return is_placed(&error, bytes),
    };
    match MessageView::of(&frame, &mut index) {
        Ok(view) => {
            let met = parts(view.root(), bytes.len());
            assert!(
                met <= bytes.len() / 4,
                "{met} parts in {} bytes",
                bytes.len()
            );
            if validate(&view, Interfaces::ALL).is_err() {
                assert!(!findings(&view, Interfaces::ALL).is_empty());
            }
        }
        Err(error) => {
            is_placed(&error, bytes);
            // An error in a message whose type has a name includes that name.
            let named = frame.header.message_type.name().is_some();
            assert!(!named || !error.path().is_empty(), "{error}");
        }
    }
}

fn parts(group: Part<'_>, end: usize) -> usize {
    let inner = group.parts().map(|part| {
        assert!(part.offset() + part.value().len() <= end);
        1 + parts(part, end)
    });
    inner.sum()
}

#[test]
fn truncation_never_panics() {
    for message in messages() {
        for cut in 0..message.len() {
            bears(&message[..cut]);
            let start = if message[0] & 1 == 1 { 16 } else { 8 };
            if cut >= start {
                // The same end, with a matching length in the header.
                let mut bytes = message[..cut].to_vec();
                let length = u16::try_from(cut - 4).expect("a short message");
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
                bears(&bytes);
            }
        }
    }
}

#[test]
fn bit_flips_never_panic() {
    for mut message in messages() {
        for bit in 0..8 * message.len() {
            message[bit / 8] ^= 1 << (bit % 8);
            bears(&message);
            message[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
