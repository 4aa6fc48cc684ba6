//! A view of any message: parts at every depth stay within the octets, text and validation bear
//! them, and JSON loses none of them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use strowger_pfcp::validate::findings;
use strowger_pfcp::wire::Part;
use strowger_pfcp::{
    Index, Interfaces, MessageView, Rejection, frames, from_json, to_json, validate,
};

fuzz_target!(|datagram: &[u8]| {
    let mut index = Index::new();
    for frame in frames(datagram).map_while(Result::ok) {
        match MessageView::of(&frame, &mut index) {
            Ok(view) => {
                visit(view.root(), frame.octets.len());
                assert!(!view.to_string().is_empty());
                if validate(&view, Interfaces::ALL).is_err() {
                    assert!(
                        !findings(&view, Interfaces::ALL).is_empty(),
                        "a refusal has a reason"
                    );
                }
                let again = from_json(&to_json(&view));
                assert_eq!(
                    again.as_deref().ok(),
                    Some(frame.octets),
                    "JSON loses nothing"
                );
            }
            Err(error) => {
                assert!(error.to_string().len() < 4096, "an error is one line");
                let _ = Rejection::of(&error, frame.octets);
            }
        }
    }
});

fn visit(part: Part<'_>, end: usize) {
    assert!(
        part.offset() + part.value().len() <= end,
        "a part lies within the message"
    );
    for inner in part.parts() {
        visit(inner, end);
    }
}
