//! A strict parser of Prometheus' text format, version 0.0.4.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    families: BTreeMap<String, ParsedFamily>,
    samples: BTreeMap<(String, BTreeMap<String, String>), f64>,
}

#[derive(Debug, Default)]
struct ParsedFamily {
    help: Option<String>,
    kind: Option<String>,
}

impl Page {
    /// The value of a sample.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.samples
            .get(&(name.to_owned(), labels.collect()))
            .copied()
    }

    /// The help text of a metric.
    pub(crate) fn help(&self, name: &str) -> Option<&str> {
        self.families.get(name)?.help.as_deref()
    }
}

/// Parses a page; panics with the line that is wrong.
pub(crate) fn read(text: &str) -> Page {
    let mut page = Page::default();
    assert!(text.ends_with('\n'), "the last line ends");
    let mut current = String::new();
    let mut finished = BTreeSet::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (word, rest) = comment.split_once(' ').expect(line);
            let (name, rest) = rest.split_once(' ').expect(line);
            assert!(is_name(name), "{line}");
            if name != current {
                assert!(finished.insert(std::mem::replace(&mut current, name.to_owned())));
                assert!(!finished.contains(name), "{name} is in two places");
            }
            let family = page.families.entry(name.to_owned()).or_default();
            let before = match word {
                "HELP" => family.help.replace(unescaped(rest, line)),
                "TYPE" => {
                    let known = ["counter", "gauge", "summary", "histogram", "untyped"];
                    assert!(known.contains(&rest), "{line}");
                    family.kind.replace(rest.to_owned())
                }
                _ => panic!("neither HELP nor TYPE: {line}"),
            };
            assert_eq!(before, None, "said twice: {line}");
            continue;
        }
        let (name, labels, value) = sample(line);
        let kind = page
            .families
            .get(&current)
            .and_then(|one| one.kind.as_deref());
        let of_family = match kind.expect("a TYPE before its samples") {
            "summary" => name == format!("{current}_sum") || name == format!("{current}_count"),
            "counter" => name == current && value >= 0.0,
            _ => name == current,
        };
        assert!(of_family, "{line} below {current}");
        let before = page.samples.insert((name, labels), value);
        assert_eq!(before, None, "a sample twice: {line}");
    }
    page
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let end = line.find(['{', ' ']).expect(line);
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(label) && !label.contains(':'), "{line}");
            let end = closing_quote(after).expect(line);
            let value = unescaped(&after[..end], line);
            assert_eq!(labels.insert(label.to_owned(), value), None, "{line}");
            rest = &after[end + 1..];
            match rest.as_bytes() {
                [b',', ..] => rest = &rest[1..],
                [b'}', ..] => break,
                _ => panic!("{line}"),
            }
        }
        rest = &rest[1..];
    }
    let number = rest.strip_prefix(' ').expect(line);
    let number = match number {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        number => number.parse().expect(line),
    };
    (name.to_owned(), labels, number)
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !escaped => return Some(at),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

fn unescaped(text: &str, line: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some(letter @ ('\\' | '"')) => letter,
                _ => panic!("{line}"),
            },
            letter => letter,
        });
    }
    plain
}

fn is_name(text: &str) -> bool {
    let letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == ':';
    text.starts_with(letter) && text.chars().all(|one| letter(one) || one.is_ascii_digit())
}
