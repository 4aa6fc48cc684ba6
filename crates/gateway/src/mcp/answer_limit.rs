//! The limit on the text of an answer, and the rests of answers that exceeded it.
//!
//! Tools that list, read or search return pages by themselves. The rest of any other answer is kept
//! for its caller, who gets it with the tool `continue_answer`.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use strowger::{Fault, FaultCode};

use super::raise_limit_hint;
use super::tool::{Tool, ToolContent, ToolEffect, ToolOutput, ToolRequest, ToolSet, address};
use crate::access::{Caller, Operation};

/// The name of the tool that returns rests.
const CONTINUE: &str = "continue_answer";

/// Bytes of an answer that are left to notes, such as the one that says how to get the rest.
const NOTES: usize = 1024;

/// Maximum bytes of rests of all callers.
const MAX_KEPT: usize = 16 << 20;

/// The limit, and the rests. Clones share the rests.
#[derive(Debug, Clone)]
pub(super) struct AnswerLimit {
    /// Maximum bytes of text in an answer.
    most: usize,
    rests: Arc<Mutex<RestTable>>,
}

#[derive(Debug, Default)]
struct RestTable {
    last_id: u64,
    /// The total size.
    size: usize,
    /// From the oldest.
    rests: VecDeque<AnswerRest>,
}

#[derive(Debug)]
struct AnswerRest {
    id: u64,
    owner: RestOwner,
    texts: Arc<[String]>,
    size: usize,
}

/// The token of a caller and its endpoint.
type RestOwner = (Arc<str>, &'static str);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContinueParams {
    answer: u64,
    #[serde(default)]
    offset: usize,
}

impl AnswerLimit {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            rests: Arc::default(),
        }
    }

    /// Returns the bytes of text that a tool may return in a page, so that its notes fit as well.
    pub(super) const fn page_size(&self) -> usize {
        let page = self.most.saturating_sub(NOTES);
        if page < 64 { 64 } else { page }
    }

    /// Adds the tool that returns rests, unless the tools are those of another endpoint, which has
    /// its own.
    pub(super) fn register(&self, tools: ToolSet) -> ToolSet {
        if tools.find(CONTINUE).is_some() {
            return tools;
        }
        let input = json!({
            "type": "object",
            "properties": {
                "answer": {
                    "type": "integer", "minimum": 0,
                    "description": "Number of the answer, as its note gives it.",
                },
                "offset": {
                    "type": "integer", "minimum": 0,
                    "description": "Number of bytes to skip, as the note gives it; by default 0.",
                },
            },
            "required": ["answer"],
            "additionalProperties": false,
        });
        let about =
            "Returns the rest of an answer that was too long; its note gives the arguments.";
        let tool = Tool::new(CONTINUE, about, input).with_effect(ToolEffect::Reads);
        let limit = self.clone();
        tools.register(tool, move |call| {
            let answer = limit.rest(&call);
            async move { answer }
        })
    }

    /// Returns the description of a tool together with the limit, if its answers may exceed it.
    pub(super) fn describe(&self, tool: &Tool) -> Tool {
        let mut described = tool.clone();
        if let Some(paging) = described.paging.take() {
            let text = format!(
                "{} Returns at most {} bytes of text; {paging}.",
                tool.about, self.most
            );
            described.about = text.into();
        }
        described
    }

    /// Cuts the text of an answer to the limit, and keeps the rest for the caller.
    pub(super) fn apply(&self, answer: &mut Result<ToolOutput, Fault>, caller: &Caller) {
        match answer {
            Ok(output) => self.cut(output, self.most, caller),
            Err(fault) if fault.message.len() > self.page_size() => {
                let mut output = ToolOutput::text(mem::take(&mut fault.message));
                self.cut(&mut output, self.page_size(), caller);
                let texts: Vec<&str> = output.content.iter().filter_map(text).collect();
                fault.message = texts.join("\n");
            }
            Err(_) => {}
        }
    }

    /// Cuts text that is longer than `most` bytes to a page.
    fn cut(&self, output: &mut ToolOutput, most: usize, caller: &Caller) {
        let texts = output.content.iter().filter_map(text);
        let (count, total) =
            texts.fold((0, 0), |(count, size), text| (count + 1, size + text.len()));
        if total <= most {
            return;
        }
        let mut left = self.page_size();
        // The last of several texts is the result: the value of code, or the end of a stream. It is
        // shown in the first answer if it is short.
        let size = |at: usize| text(&output.content[at]).map_or(0, str::len);
        let last = output
            .content
            .iter()
            .rposition(|content| text(content).is_some());
        let last = last.filter(|at| count > 1 && size(*at) <= left / 4);
        left -= last.map_or(0, size);
        let (mut rest, mut note_at) = (Vec::new(), None);
        for (index, content) in mem::take(&mut output.content).into_iter().enumerate() {
            match content {
                ToolContent::Text { mut text } if last != Some(index) => {
                    if rest.is_empty() && text.len() <= left {
                        left -= text.len();
                        output.content.push(ToolContent::Text { text });
                        continue;
                    }
                    if rest.is_empty() {
                        let cut = cut_at(&text, left);
                        rest.push(text.split_off(cut));
                        if !text.is_empty() {
                            output.content.push(ToolContent::Text { text });
                        }
                        note_at = Some(output.content.len());
                    } else {
                        rest.push(text);
                    }
                }
                content => output.content.push(content),
            }
        }
        if let Some(at) = note_at {
            let text = self.keep(rest, total, caller);
            output.content.insert(at, ToolContent::Text { text });
        }
    }

    /// Keeps a rest if its caller may ask for it. Returns the note on it.
    fn keep(&self, texts: Vec<String>, total: usize, caller: &Caller) -> String {
        let size = texts.iter().map(String::len).sum();
        let may_ask = caller.is_allowed(&Operation::CALL_TOOL, Some(&address(CONTINUE)));
        if !may_ask || size > MAX_KEPT {
            return format!(
                "(cut: the answer is {total} bytes of text, limit `answer` is {}: request less, or \
                 {})",
                self.most,
                raise_limit_hint("answer", "SIZE")
            );
        }
        let id = self.rests.lock().insert(owner(caller), texts.into(), size);
        format!("({size} of {total} bytes follow: call {CONTINUE} with answer={id} for the rest)")
    }

    /// Returns a part of a rest.
    fn rest(&self, call: &ToolRequest) -> Result<ToolOutput, Fault> {
        let ContinueParams { answer, offset } = call.parse_arguments()?;
        let Some(texts) = self.rests.lock().find(answer, &owner(&call.caller)) else {
            let text = format!(
                "no rest of an answer {answer} is kept; the oldest go first, beyond {MAX_KEPT} \
                 bytes: call the tool again, and request less"
            );
            return Err(Fault::new(FaultCode::UnknownTarget, text));
        };
        let (mut output, mut at) = (ToolOutput::default(), 0);
        let mut left = call.page_size.unwrap_or(usize::MAX);
        for text in &*texts {
            let begin = text.floor_char_boundary(offset.saturating_sub(at));
            let part = &text[begin..];
            if part.len() > left {
                let end = cut_at(part, left);
                if end > 0 {
                    output = output.with_text(&part[..end]);
                }
                let next = at + begin + end;
                return Ok(output.with_text(format!(
                    "(more follows: call {CONTINUE} with answer={answer}, offset={next} for the \
                     rest)"
                )));
            }
            left -= part.len();
            at += text.len();
            if !part.is_empty() {
                output = output.with_text(part);
            }
        }
        Ok(output)
    }
}

impl RestTable {
    /// Adds a rest. The rests that make room for it are the oldest of the owner that has the most.
    fn insert(&mut self, owner: RestOwner, texts: Arc<[String]>, size: usize) -> u64 {
        while self.size + size > MAX_KEPT {
            let mut sizes = HashMap::from([(&owner, size)]);
            for rest in &self.rests {
                *sizes.entry(&rest.owner).or_default() += rest.size;
            }
            let largest = |rest: &&AnswerRest| sizes[&rest.owner];
            // `max_by_key` returns the last of several, so search from the newest.
            let oldest = self.rests.iter().rev().max_by_key(largest);
            let Some(id) = oldest.map(|rest| rest.id) else {
                break;
            };
            self.rests.retain(|rest| rest.id != id);
            self.size = self.rests.iter().map(|rest| rest.size).sum();
        }
        self.last_id += 1;
        self.size += size;
        self.rests.push_back(AnswerRest {
            id: self.last_id,
            owner,
            texts,
            size,
        });
        self.last_id
    }

    fn find(&self, id: u64, owner: &RestOwner) -> Option<Arc<[String]>> {
        let mut rests = self.rests.iter();
        let rest = rests.find(|rest| rest.id == id && rest.owner == *owner)?;
        Some(Arc::clone(&rest.texts))
    }
}

fn owner(caller: &Caller) -> RestOwner {
    (Arc::from(caller.name()), caller.endpoint())
}

fn text(content: &ToolContent) -> Option<&str> {
    match content {
        ToolContent::Text { text } => Some(text),
        _ => None,
    }
}

/// Returns the length of the longest beginning of up to `most` bytes that ends with a line, or with
/// a character if no line ends in its second half.
fn cut_at(text: &str, most: usize) -> usize {
    let cut = text.floor_char_boundary(most);
    match text[..cut].rfind('\n') {
        Some(end) if end >= cut / 2 => end + 1,
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> RestOwner {
        (Arc::from(name), "http")
    }

    #[test]
    fn texts_are_cut_after_lines_or_characters() {
        assert_eq!(cut_at("ab\ncd\nef", 7), 6);
        assert_eq!(cut_at("a\nbcdefgh", 7), 7);
        assert_eq!(cut_at("\u{e9}\u{e9}", 3), 2);
        assert_eq!(cut_at("abc", 0), 0);
    }

    #[test]
    fn rests_of_the_largest_owner_make_room() {
        let mut table = RestTable::default();
        let rest = |text: &str| Arc::from([text.to_owned()]);
        let modest = table.insert(owner("modest"), rest("a"), MAX_KEPT / 4);
        let greedy = [0; 4].map(|_| table.insert(owner("greedy"), rest("b"), MAX_KEPT / 4));
        let kept = |id, name| table.find(id, &owner(name)).is_some();
        assert!(kept(modest, "modest"), "{table:?}");
        assert_eq!(
            greedy.map(|id| kept(id, "greedy")),
            [false, true, true, true]
        );
        assert!(!kept(modest, "greedy"), "a rest belongs to its caller");
        assert_eq!(table.size, MAX_KEPT);
        table.insert(owner("new"), rest("c"), MAX_KEPT);
        assert_eq!((table.rests.len(), table.size), (1, MAX_KEPT));
    }
}
