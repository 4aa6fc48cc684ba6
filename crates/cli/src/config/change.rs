//! What differs between two configurations, key by key.

use toml::{Table, Value};

use super::Config;

/// The keys whose values differ, such as `n4.timers.t1`, in order.
///
/// Both texts have been read before; what one of them leaves out has its default.
pub(crate) fn changes(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (whole(before), whole(after));
    let mut changed = Vec::new();
    compare("", &before, &after, &mut changed);
    changed
}

/// The text over the defaults.
fn whole(text: &str) -> Table {
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
