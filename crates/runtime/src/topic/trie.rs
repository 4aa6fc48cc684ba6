//! A trie of patterns, which finds those that match a name without looking at the others.
//!
//! Each node is a prefix of patterns. A name is matched by walking all prefixes that fit its
//! segments at the same time. A `**` node stays in the walk whatever segment comes next, but each
//! node is in the walk at most once per step, so patterns with many `**` cannot make the walk long.

use std::collections::BTreeMap;
use std::mem;

use rustc_hash::FxHashMap;

use super::name::{Segment, segments};

/// Values by pattern and number.
pub(super) struct Trie<V> {
    nodes: Vec<TrieNode<V>>,
    free: Vec<usize>,
    /// State of a walk: the nodes of the current step, those of the next step, and the number of
    /// the step.
    current: Vec<usize>,
    next: Vec<usize>,
    step: u64,
}

struct TrieNode<V> {
    plain: FxHashMap<Box<str>, usize>,
    one: Option<usize>,
    any: Option<usize>,
    /// `true` if the node itself is a `**`.
    is_multi_wildcard: bool,
    values: BTreeMap<u64, V>,
    /// The last step in which the walk reached this node.
    seen: u64,
}

const ROOT: usize = 0;

impl<V> TrieNode<V> {
    fn new(stays: bool) -> Self {
        Self {
            plain: FxHashMap::default(),
            one: None,
            any: None,
            is_multi_wildcard: stays,
            values: BTreeMap::new(),
            seen: 0,
        }
    }

    fn child(&self, segment: Segment<'_>) -> Option<usize> {
        match segment {
            Segment::Plain(text) => self.plain.get(text).copied(),
            Segment::One => self.one,
            Segment::Any => self.any,
        }
    }

    fn set_child(&mut self, segment: Segment<'_>, child: Option<usize>) {
        match (segment, child) {
            (Segment::Plain(text), Some(child)) => {
                self.plain.insert(text.into(), child);
            }
            (Segment::Plain(text), None) => {
                self.plain.remove(text);
            }
            (Segment::One, child) => self.one = child,
            (Segment::Any, child) => self.any = child,
        }
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.plain.is_empty() && self.one.is_none() && self.any.is_none()
    }
}

impl<V> Trie<V> {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![TrieNode::new(false)],
            free: Vec::new(),
            current: Vec::new(),
            next: Vec::new(),
            step: 0,
        }
    }

    /// Inserts a value and returns the one it replaces.
    pub(super) fn insert(&mut self, pattern: &str, number: u64, value: V) -> Option<V> {
        let mut at = ROOT;
        for segment in segments(pattern) {
            at = match self.nodes[at].child(segment) {
                Some(child) => child,
                None => {
                    let child = self.add(TrieNode::new(segment == Segment::Any));
                    self.nodes[at].set_child(segment, Some(child));
                    child
                }
            };
        }
        self.nodes[at].values.insert(number, value)
    }

    fn add(&mut self, node: TrieNode<V>) -> usize {
        if let Some(free) = self.free.pop() {
            self.nodes[free] = node;
            return free;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Removes a value, and the prefixes that become unused.
    pub(super) fn remove(&mut self, pattern: &str, number: u64) -> Option<V> {
        let mut way = Vec::new();
        let mut at = ROOT;
        for segment in segments(pattern) {
            way.push((at, segment));
            at = self.nodes[at].child(segment)?;
        }
        let removed = self.nodes[at].values.remove(&number);
        for (parent, segment) in way.into_iter().rev() {
            if !self.nodes[at].is_empty() {
                break;
            }
            self.nodes[at] = TrieNode::new(false);
            self.free.push(at);
            self.nodes[parent].set_child(segment, None);
            at = parent;
        }
        removed
    }

    /// Calls `visit` with the values of all patterns that match a name.
    pub(super) fn matches(&mut self, name: &str, mut visit: impl FnMut(&V)) {
        self.next.clear();
        self.step += 1;
        self.visit_node(ROOT);
        for segment in name.split('/') {
            mem::swap(&mut self.current, &mut self.next);
            self.next.clear();
            self.step += 1;
            for at in 0..self.current.len() {
                let place = self.current[at];
                let node = &self.nodes[place];
                let plain = node.child(Segment::Plain(segment));
                let next = [plain, node.one, node.is_multi_wildcard.then_some(place)];
                next.into_iter()
                    .flatten()
                    .for_each(|next| self.visit_node(next));
            }
        }
        for place in &self.next {
            self.nodes[*place].values.values().for_each(&mut visit);
        }
    }

    /// Adds a node to the next step, and with it the `**` below it, which may match no segment.
    fn visit_node(&mut self, mut at: usize) {
        while self.nodes[at].seen != self.step {
            self.nodes[at].seen = self.step;
            self.next.push(at);
            match self.nodes[at].any {
                Some(any) => at = any,
                None => break,
            }
        }
    }

    #[cfg(test)]
    fn size(&self) -> usize {
        self.nodes.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests;
