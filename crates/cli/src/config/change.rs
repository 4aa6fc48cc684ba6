//! Differences between two configurations, key by key.

use toml::{Table, Value};

use super::Config;

/// Returns the keys whose values differ, such as `n4.timers.t1`, in order.
///
/// Both texts must have been parsed before. A key that a text leaves out has its default.
pub(crate) fn changes(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (with_defaults(before), with_defaults(after));
    let mut changed = Vec::new();
    compare("", &before, &after, &mut changed);
    // Sizes and times can be written in several ways.
    changed.retain(|path| !is_same(&before, &after, path));
    changed
}

/// Returns `true` if a key has the same meaning in both, however it is written.
fn is_same(before: &Table, after: &Table, path: &str) -> bool {
    let mut mixed = before.clone();
    let read = |table: &Table| table.clone().try_into::<Config>().ok();
    copy_key(&mut mixed, path, Some(after))
        && read(before).is_some_and(|config| Some(config) == read(&mixed))
}

/// Replaces the value at a path by that of another table, or removes it if the other table has
/// none.
///
/// Returns `false` if the path leads nowhere, which happens for a key that contains a dot itself.
fn copy_key(into: &mut Table, path: &str, from: Option<&Table>) -> bool {
    let Some((key, rest)) = path.split_once('.') else {
        match from.and_then(|from| from.get(path)) {
            Some(value) => drop(into.insert(path.to_owned(), value.clone())),
            None => drop(into.remove(path)),
        }
        return true;
    };
    let from = from.and_then(|from| from.get(key)?.as_table());
    match into.get_mut(key) {
        Some(Value::Table(into)) => copy_key(into, rest, from),
        _ => false,
    }
}

/// Returns the text merged over the defaults.
fn with_defaults(text: &str) -> Table {
    let read = |text: &str| text.parse::<Table>().unwrap_or_default();
    let mut whole = read(&Config::example());
    overlay(&mut whole, read(text));
    whole
}

fn overlay(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn compare(at: &str, before: &Table, after: &Table, changed: &mut Vec<String>) {
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let path = match at {
            "" => key.clone(),
            at => format!("{at}.{key}"),
        };
        match (before.get(key), after.get(key)) {
            (Some(Value::Table(before)), Some(Value::Table(after))) => {
                compare(&path, before, after, changed);
            }
            (before, after) if before != after => changed.push(path),
            _ => {}
        }
    }
}
