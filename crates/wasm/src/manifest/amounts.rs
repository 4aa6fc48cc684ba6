//! A walk over all keys of a manifest that are amounts: sizes, times and counts.
//!
//! The deserializer itself lists the keys and reports what each one accepts, so that a new key is
//! covered without a change here.

use std::collections::BTreeSet;

use super::Manifest;

/// The kind of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AmountKind {
    /// A size in bytes.
    Size,
    /// A duration with its unit, such as `5s`.
    Time,
    /// A count of other things.
    Count,
    /// A share of a processor.
    Share,
}

/// The tables with amounts, written as in their headers.
const TABLES: [&str; 7] = [
    "limits",
    "grant",
    "grant.kv",
    "grant.files.x",
    "restart",
    "state",
    "run",
];

/// Parses a manifest with a single entry, without the range checks.
pub(super) fn read(key: &str, value: &str) -> Result<Manifest, String> {
    toml::from_str(&text(key, value)).map_err(|error| error.to_string())
}

/// Returns the text of a manifest with a single entry.
pub(super) fn text(key: &str, value: &str) -> String {
    let (table, name) = key.rsplit_once('.').expect("a table and a key");
    let mut text = format!("[component]\nname = \"a\"\n[{table}]\n");
    if table == "grant.files.x" {
        text.push_str("path = \"x\"\nwrite = true\n");
    }
    format!("{text}{name} = {value}\n")
}

/// Returns the keys of a table, as the error for an unknown key lists them.
fn keys(table: &str) -> Vec<String> {
    let text = format!("[component]\nname = \"a\"\n[{table}]\nno_such_key = 1");
    let error = toml::from_str::<Manifest>(&text).expect_err("there is no such key");
    let quoted = error.message().split('`').skip(1).step_by(2).skip(1);
    quoted.map(str::to_owned).collect()
}

/// Returns the kind of a key, or `None` if it is not an amount.
fn kind(key: &str) -> Option<AmountKind> {
    let takes = |value: &str| read(key, value).is_ok();
    match (takes("\"64KiB\""), takes("\"2s\""), takes("1")) {
        // It accepts any text.
        (true, true, _) => None,
        (true, ..) => Some(AmountKind::Size),
        (_, true, _) => Some(AmountKind::Time),
        (.., true) => Some(AmountKind::Count),
        _ => takes("\"50%\"").then_some(AmountKind::Share),
    }
}

/// Returns every key that is an amount, with its kind.
pub(super) fn amounts() -> Vec<(String, AmountKind)> {
    let all = TABLES.into_iter().flat_map(|table| {
        let keys = keys(table).into_iter();
        keys.map(move |key| format!("{table}.{key}"))
    });
    let found: Vec<_> = all
        .filter_map(|key| kind(&key).map(|kind| (key, kind)))
        .collect();
    assert!(found.len() > 25, "{found:?}");
    found
}

#[test]
fn all_manifest_tables_are_covered() {
    let walked: BTreeSet<&str> = TABLES.into_iter().collect();
    let text = "no_such_key = 1\n[component]\nname = \"a\"";
    let error = toml::from_str::<Manifest>(text).expect_err("there is no such key");
    let tables = error.message().split('`').skip(1).step_by(2).skip(1);
    // `component` has no amounts, and `config` belongs to the component.
    for table in tables.filter(|table| !["component", "config"].contains(table)) {
        assert!(walked.contains(table), "[{table}] is not walked");
        for key in keys(table) {
            let key = format!("{table}.{key}");
            let is_table = ["", ".x"].into_iter().any(|name| {
                let text = format!("[component]\nname = \"a\"\n[{key}{name}]\nno_such_key = 1");
                let error = toml::from_str::<Manifest>(&text).err();
                error.is_some_and(|error| error.message().contains("field `no_such_key`"))
            });
            let is_walked = walked.iter().any(|table| table.starts_with(&key));
            assert!(!is_table || is_walked, "[{key}] is not walked");
        }
    }
}

/// The keys whose numbers have no unit, because they count something other than bytes and time.
const COUNTS: [&str; 17] = [
    "limits.table",
    "limits.handles",
    "limits.fuel",
    "limits.mailbox",
    "limits.send_rate",
    "limits.log_rate",
    "limits.in_flight",
    "limits.streams",
    "limits.window",
    "limits.weight",
    "grant.kv.keys",
    "grant.kv.rate",
    "grant.files.x.files",
    "restart.intensity",
    "restart.poison",
    "state.interval",
    "run.batch",
];

#[test]
fn sizes_and_times_accept_numbers_and_text() {
    for (key, kind) in amounts() {
        let (forms, wrong, says) = match kind {
            AmountKind::Size => (
                ["65536", "\"65536\"", "\"64KiB\""],
                ["-1", "1.5", "\"64kb\"", "\"soon\"", "true"],
                " size",
            ),
            AmountKind::Time => (
                ["3", "\"3\"", "\"3s\""],
                ["-1", "nan", "\"3 s\"", "\"soon\"", "true"],
                " duration",
            ),
            AmountKind::Count => {
                let known = COUNTS.contains(&key.as_str());
                assert!(
                    known,
                    "{key} takes bare numbers: is it a size, a time or a count?"
                );
                continue;
            }
            AmountKind::Share => {
                assert_eq!(key, "limits.cpu", "a share has a grammar of its own");
                continue;
            }
        };
        let one = read(&key, forms[0]);
        assert!(one.is_ok(), "{key}: {one:?}");
        for form in forms {
            assert_eq!(read(&key, form), one, "{key} = {form}");
        }
        for value in wrong {
            let error = read(&key, value).expect_err(&key);
            let (_, name) = key.rsplit_once('.').expect("a table and a key");
            // The error shows the line with key and value, and its text says what is valid.
            assert!(error.contains(&format!("{name} = {value}")), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }
}
