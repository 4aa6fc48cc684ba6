use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

use super::Trie;

/// The reference that the trie must agree with: the definition, applied to each pattern.
fn naive(pattern: &[&str], name: &[&str]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=name.len()).any(|skip| naive(rest, &name[skip..])),
        (["*", rest @ ..], [_, name @ ..]) => naive(rest, name),
        ([plain, rest @ ..], [first, name @ ..]) => plain == first && naive(rest, name),
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

fn matched(trie: &mut Trie<usize>, name: &str) -> Vec<usize> {
    let mut found = Vec::new();
    trie.matches(name, |value| found.push(*value));
    found.sort_unstable();
    found
}

#[derive(Debug, Clone)]
enum Change {
    Add(Vec<&'static str>),
    /// Removes one of the live patterns; the number is reduced to an index among them.
    Remove(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let pattern = vec(select(vec!["a", "b", "*", "**"]), 1..6);
    prop_oneof![
        2 => pattern.prop_map(Change::Add),
        1 => any::<usize>().prop_map(Change::Remove),
    ]
}

proptest! {
    #[test]
    fn matches_agree_with_naive_definition(
        changes in vec(change(), 1..40),
        names in vec(vec(select(vec!["a", "b", "c"]), 1..7), 1..8),
    ) {
        let mut trie = Trie::new();
        let mut live: Vec<(usize, Vec<&str>)> = Vec::new();
        for (number, change) in changes.into_iter().enumerate() {
            match change {
                Change::Add(pattern) => {
                    trie.insert(&pattern.join("/"), number as u64, number);
                    live.push((number, pattern));
                }
                Change::Remove(which) if !live.is_empty() => {
                    let (number, pattern) = live.swap_remove(which % live.len());
                    let removed = trie.remove(&pattern.join("/"), number as u64);
                    prop_assert_eq!(removed, Some(number));
                }
                Change::Remove(_) => {}
            }
            for name in &names {
                let expected: BTreeSet<usize> = live
                    .iter()
                    .filter(|(_, pattern)| naive(pattern, name))
                    .map(|(number, _)| *number)
                    .collect();
                let found = matched(&mut trie, &name.join("/"));
                prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
            }
        }
        for (number, pattern) in live {
            trie.remove(&pattern.join("/"), number as u64);
        }
        prop_assert_eq!(trie.size(), 1, "an empty tree has a root and nothing else");
    }
}

#[test]
fn walk_skips_patterns_that_do_not_match() {
    let mut trie = Trie::new();
    for number in 0..10_000 {
        trie.insert(&format!("a/{number}/load"), number as u64, number);
        trie.insert(&format!("b/{number}/*"), number as u64, number);
    }
    assert_eq!(matched(&mut trie, "a/77/load"), [77]);
    assert_eq!(trie.current.capacity().max(trie.next.capacity()), 4);
}

#[test]
fn walk_is_bounded_with_many_wildcards() {
    let mut trie = Trie::new();
    let pattern = ["**"; 16].join("/") + "/x";
    trie.insert(&pattern, 1, 1);
    let name = ["y"; 200].join("/");
    assert!(matched(&mut trie, &name).is_empty());
    assert_eq!(matched(&mut trie, &(name + "/x")), [1]);
    assert!(trie.current.capacity().max(trie.next.capacity()) <= 32);
}
