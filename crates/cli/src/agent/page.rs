//! Pages of answers: as much text as one answer may have, and the way to the rest.

use std::fmt::Display;

use serde_json::{Value, json};
use strowger::{Fault, FaultCode};

/// The paging of tools that continue at an offset.
pub(super) const BY_OFFSET: &str = "for the rest, pass the `offset` that the answer names";

/// The paging of tools whose rest is kept.
pub(super) const BY_ANSWER: &str = "for the rest, call continue_answer as the answer says";

/// Returns the schema of an offset.
pub(super) fn offset_property(of: &str) -> (&'static str, Value) {
    let about = format!("Number of {of} to skip, to continue an answer.");
    let schema = json!({ "type": "integer", "minimum": 0, "description": about });
    ("offset", schema)
}

/// Returns how many of these texts, one per line, fit on a page; at least one.
pub(super) fn fitting(texts: &[String], page: Option<usize>) -> usize {
    let mut left = page.unwrap_or(usize::MAX);
    let fits = |text: &&String| match left.checked_sub(text.len() + 1) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let count = texts.iter().take_while(fits).count();
    count.max(texts.len().min(1))
}

/// Returns the note of a page that another follows.
pub(super) fn more_note(next: impl Display) -> String {
    format!("(more follows: call again with offset={next} for the rest)")
}

/// Builds the JSON of a page of a list: as many items as fit, and the offset of the rest as `next`.
pub(super) fn json_page(
    name: &str,
    mut items: Vec<Value>,
    offset: Option<usize>,
    page: Option<usize>,
) -> Value {
    let offset = offset.unwrap_or_default().min(items.len());
    items.drain(..offset);
    let texts: Vec<String> = items.iter().map(Value::to_string).collect();
    let count = fitting(&texts, page);
    let is_cut = count < items.len();
    items.truncate(count);
    let mut answer = json!({ name: items });
    if is_cut {
        let next = offset + count;
        answer["next"] = json!(next);
        answer["more"] = json!(format!("call again with offset={next} for the rest"));
    }
    answer
}

/// A part of a text that fits on a page.
#[derive(Debug)]
pub(super) struct TextPart<'a> {
    pub(super) text: &'a str,
    /// The offset of the rest, if there is one.
    pub(super) next: Option<u64>,
}

/// Cuts bytes that were read at `offset` to a page, after a line if one ends in its second half,
/// else after a character. `bytes` has one byte more than a page if there is more.
pub(super) fn text_part<'a>(
    bytes: &'a [u8],
    path: &str,
    offset: u64,
    page: usize,
) -> Result<TextPart<'a>, Fault> {
    let more = bytes.len() > page;
    let shown = &bytes[..bytes.len().min(page)];
    // The caller may have chosen an offset within a character.
    let is_inner = |byte: &&u8| **byte & 0xc0 == 0x80;
    let skipped = match offset {
        0 => 0,
        _ => shown.iter().take(3).take_while(is_inner).count(),
    };
    let shown = &shown[skipped..];
    let text = match std::str::from_utf8(shown) {
        Ok(text) => text,
        // The page ends within a character.
        Err(error) if more && error.error_len().is_none() => {
            std::str::from_utf8(&shown[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => {
            let at = offset + (skipped + error.valid_up_to()) as u64;
            let text = format!("`{path}` is not UTF-8 (at byte {at}): use read_media_file");
            return Err(Fault::new(FaultCode::Failed, text));
        }
    };
    let text = match text.rfind('\n') {
        Some(end) if more && end >= text.len() / 2 => &text[..=end],
        _ => text,
    };
    let next = more.then_some(offset + (skipped + text.len()) as u64);
    Ok(TextPart { text, next })
}

/// Cuts a tree to a page: as many levels as fit. Returns `false` if it fits.
pub(super) fn cut_tree(tree: &mut Value, page: Option<usize>) -> bool {
    let Some(page) = page else { return false };
    if tree.to_string().len() <= page {
        return false;
    }
    let mut levels = height(tree);
    while levels > 1 {
        levels -= 1;
        prune(tree, levels);
        if tree.to_string().len() <= page {
            return true;
        }
    }
    if let Some(entries) = tree.get_mut("entries").and_then(Value::as_array_mut) {
        let texts: Vec<String> = entries.iter().map(Value::to_string).collect();
        entries.truncate(fitting(&texts, Some(page)));
    }
    mark_cut(tree);
    true
}

fn mark_cut(tree: &mut Value) {
    tree["cut"] = Value::Bool(true);
    tree["cut_by"] = Value::from("answer");
}

/// Returns the number of levels below a tree.
fn height(tree: &Value) -> usize {
    let below = tree.get("entries").and_then(Value::as_array);
    let below = below.into_iter().flatten();
    below.map(|entry| height(entry) + 1).max().unwrap_or(0)
}

/// Removes the entries that are deeper than `levels`.
fn prune(tree: &mut Value, levels: usize) {
    let Some(entries) = tree.get_mut("entries").and_then(Value::as_array_mut) else {
        return;
    };
    if levels > 0 {
        return entries
            .iter_mut()
            .for_each(|entry| prune(entry, levels - 1));
    }
    if let Some(tree) = tree.as_object_mut() {
        tree.remove("entries");
    }
    mark_cut(tree);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_at_lines_or_characters_and_join_to_the_whole() {
        let (a, e, b) = ("a".repeat(50), "\u{e9}".repeat(60), "b".repeat(10));
        let text = format!("{a}\n{e}\n{b}");
        let (mut offset, mut joined) = (0, String::new());
        loop {
            let at = usize::try_from(offset).expect("small");
            let part = text_part(&text.as_bytes()[at..], "a", offset, 40).expect("text");
            assert!(!part.text.is_empty() && part.text.len() <= 40);
            joined.push_str(part.text);
            match part.next {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(joined, text);
        assert!(text_part(b"a\xffb", "a", 0, 40).is_err());
        let bytes = "\u{e9}b".as_bytes();
        for (at, expected) in [(0, "\u{e9}b"), (1, "b")] {
            let part = text_part(&bytes[at..], "a", at as u64, 40).expect("text");
            assert_eq!(part.text, expected);
        }
    }

    #[test]
    fn trees_lose_their_deepest_levels_first() {
        let leaf = |name: &str| json!({ "name": name });
        let deep = json!({ "name": "b", "entries": [leaf("c"), leaf("d")] });
        let whole = json!({ "name": "a", "entries": [deep] });
        let mut tree = whole.clone();
        assert!(!cut_tree(&mut tree, None) && !cut_tree(&mut tree, Some(1000)));
        assert_eq!(tree, whole);
        assert!(cut_tree(&mut tree, Some(70)));
        let cut = json!({ "name": "b", "cut": true, "cut_by": "answer" });
        assert_eq!(tree, json!({ "name": "a", "entries": [cut] }));
    }

    #[test]
    fn items_continue_at_their_offset() {
        let all: Vec<Value> = (0..10).map(|number| json!(number)).collect();
        let first = json_page("all", all.clone(), None, Some(8));
        assert_eq!(
            (&first["all"], &first["next"]),
            (&json!([0, 1, 2, 3]), &json!(4))
        );
        let last = json_page("all", all.clone(), Some(8), Some(8));
        assert_eq!(last, json!({ "all": [8, 9] }));
        assert_eq!(
            json_page("all", all, Some(11), Some(8)),
            json!({ "all": [] })
        );
    }
}
