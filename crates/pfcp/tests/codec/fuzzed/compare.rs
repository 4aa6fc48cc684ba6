//! Comparison of two messages: equal messages have no difference, messages that differ from left to
//! right also differ from right to left, and an ignore list never adds a difference.

use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, Ignore, Index, MessageView, compare, frames};

/// Compares both parts of an input: two bytes say where the left message ends.
pub(crate) fn check(input: &[u8]) {
    let Some((cut, bytes)) = input.split_first_chunk() else {
        return;
    };
    let cut = usize::from(u16::from_le_bytes(*cut));
    let (left, right) = bytes.split_at(cut.min(bytes.len()));
    let Some(left) = frames(left).find_map(Result::ok) else {
        return;
    };
    same(&left, left.bytes);
    if let Some(turned) = turned(&left) {
        same(&left, &turned);
    }
    let Some(right) = frames(right).find_map(Result::ok) else {
        return;
    };
    let forth = differences(left.bytes, right.bytes, &Ignore::nothing());
    let back = differences(right.bytes, left.bytes, &Ignore::nothing());
    if let (Some(forth), Some(back)) = (forth, back) {
        assert_eq!(forth == 0, back == 0, "a difference has two sides");
        let ignored = differences(left.bytes, right.bytes, &Ignore::runs());
        assert!(ignored.is_some_and(|ignored| ignored <= forth));
    }
}

/// Returns the number of differences, if both messages can be read.
fn differences(left: &[u8], right: &[u8], ignore: &Ignore) -> Option<usize> {
    let mut indexes = [Index::new(), Index::new()];
    let [first, second] = &mut indexes;
    let left = MessageView::decode(left, first).ok()?;
    let right = MessageView::decode(right, second).ok()?;
    let found = compare(&left, &right, ignore);
    for difference in &found {
        assert!(!difference.to_string().is_empty());
    }
    Some(found.len())
}

fn same(left: &Frame<'_>, right: &[u8]) {
    let found = differences(left.bytes, right, &Ignore::nothing());
    assert!(found.is_none_or(|found| found == 0), "it is the same");
}

/// Returns the same elements in another order; elements of one type keep their order.
fn turned(frame: &Frame<'_>) -> Option<Vec<u8>> {
    let mut elements = Vec::new();
    let mut at = frame.bytes.len() - frame.body.len();
    let mut bytes = frame.bytes[..at].to_vec();
    for element in Tlvs::new(frame.body) {
        let element = element.ok()?;
        let end = at
            + 4
            + usize::from(u16::from_be_bytes([
                frame.bytes[at + 2],
                frame.bytes[at + 3],
            ]));
        elements.push((element.ie, &frame.bytes[at..end]));
        at = end;
    }
    elements.sort_by_key(|(ie, _)| std::cmp::Reverse(*ie));
    bytes.extend(elements.iter().flat_map(|(_, bytes)| *bytes));
    Some(bytes)
}
