//! Views of arbitrary messages: parts at every depth stay within the bytes, formatting and
//! validation do not panic, and JSON preserves every byte. An index that has seen a message reads a
//! slightly different one just as a fresh index does.

use strowger_pfcp::validate::findings;
use strowger_pfcp::wire::Part;
use strowger_pfcp::{
    Index, Interfaces, MessageView, Rejection, frames, from_json, to_json, validate,
};

/// Checks the view of each message of a datagram.
pub(crate) fn check(datagram: &[u8]) {
    let mut index = Index::new();
    for frame in frames(datagram).map_while(Result::ok) {
        match MessageView::of(&frame, &mut index) {
            Ok(view) => {
                visit(view.root(), frame.bytes.len());
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
                    Some(frame.bytes),
                    "JSON loses nothing"
                );
            }
            Err(error) => {
                assert!(error.to_string().len() < 4096, "an error is one line");
                let _ = Rejection::of(&error, frame.bytes);
            }
        }
        remembers_nothing_wrong(frame.bytes);
    }
}

/// Changes bytes after the header, at positions derived from the bytes themselves.
fn remembers_nothing_wrong(bytes: &[u8]) {
    let sum = bytes.iter().fold(0usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    let mut used = Index::new();
    for _ in 0..3 {
        let _ = MessageView::decode(bytes, &mut used);
    }
    let mut changed = bytes.to_vec();
    for step in 0..16 {
        let place = 4 + (sum + step * 7) % (bytes.len() - 4);
        changed[place] ^= 1 << ((sum + step) % 8);
        assert_eq!(
            view_contents(&changed, &mut used),
            view_contents(&changed, &mut Index::new()),
            "{changed:02x?}"
        );
        if step % 2 == 1 {
            changed.copy_from_slice(bytes);
        }
    }
}

type ViewContents = (Vec<(usize, u16, usize, bool, bool)>, Option<Interfaces>);

fn view_contents(bytes: &[u8], index: &mut Index) -> Result<ViewContents, String> {
    let view = MessageView::decode(bytes, index).map_err(|error| error.to_string())?;
    let mut parts = Vec::new();
    list(view.root(), &mut parts);
    Ok((parts, validate(&view, Interfaces::ALL).ok()))
}

fn list(part: Part<'_>, parts: &mut Vec<(usize, u16, usize, bool, bool)>) {
    for inner in part.parts() {
        let known = inner.member().is_some();
        let (at, bytes) = (inner.offset(), inner.value().len());
        parts.push((at, inner.ie().0, bytes, inner.is_repeated(), known));
        list(inner, parts);
    }
}

fn visit(part: Part<'_>, end: usize) {
    assert!(
        part.offset() + part.value().len() <= end,
        "a part lies within the message"
    );
    for inner in part.parts() {
        visit(inner, end);
    }
}
