//! Flags of later releases: more bytes than the rows name.

use strowger_pfcp::{Index, Message, MessageView};

/// A Session Modification Request with a Create FAR that has this Apply Action.
fn with_apply_action(bytes: &[u8]) -> Vec<u8> {
    let element = |number: u16, value: &[u8]| {
        let length = u16::try_from(value.len()).expect("a short value");
        [&number.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
    };
    let far = [element(108, &[0, 0, 0, 1]), element(44, bytes)].concat();
    let body = element(3, &far);
    let length = u16::try_from(12 + body.len()).expect("a short message");
    let head = [
        &[0x21, 52][..],
        &length.to_be_bytes(),
        &[0; 7],
        &[1],
        &[0, 0, 1, 0],
    ]
    .concat();
    [head, body].concat()
}

#[test]
fn flags_beyond_the_known_bytes_are_kept() {
    for length in 1..=300 {
        for filling in [0, 2, 0xff] {
            let bytes = with_apply_action(&vec![filling; length]);
            let mut index = Index::new();
            let view = MessageView::decode(&bytes, &mut index).expect("it is well-formed");
            assert!(!view.to_string().is_empty());
            let message = Message::decode(&bytes).expect("nothing is missing");
            assert_eq!(
                message.encode().as_deref(),
                Ok(&bytes[..]),
                "{length} of {filling:#x}"
            );
        }
    }
}
