//! A single actor as text.

use serde_json::Value;

use super::{kind, text};
use crate::exit::CliResult;
use crate::output::{Output, TextStyle};

/// Prints the stats of an actor, and what else is known about it.
pub(super) fn print(actor: &Value, output: &mut Output) -> CliResult {
    let path = output.paint(TextStyle::Bold, text(&actor["path"]));
    output.line(path)?;
    let span = |key: &str| format!("{:.1} ms", actor[key].as_f64().unwrap_or(0.0) / 1e3);
    let capacity = match &actor["capacity"] {
        Value::Null => "(unbounded)".to_owned(),
        capacity => format!("of {capacity}"),
    };
    let figure = |key: &str| text(&actor[key]);
    let rows = [
        ("kind", kind(actor)),
        ("id", figure("id")),
        ("state", figure("state")),
        ("mailbox", format!("{} {capacity} waiting", actor["depth"])),
        ("max waiting", figure("high_water")),
        ("dropped", figure("dropped")),
        ("handled", figure("handled")),
        ("busy time", span("busy_us")),
        ("memory", format!("about {} bytes", figure("memory"))),
        ("restarts", figure("restarts")),
        ("last exit", figure("last_exit")),
        ("children", figure("children")),
    ];
    for (name, value) in rows {
        let name = output.paint(TextStyle::Faint, format!("{name:<11}"));
        output.line(format!("  {name}  {value}"))?;
    }
    match actor.get("details") {
        Some(details) => member(details, 1, output),
        None => Ok(()),
    }
}

/// Prints the members of a value, one a line, with nested values indented further.
fn member(value: &Value, depth: usize, output: &mut Output) -> CliResult {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                named(&indent, key, value, depth, output)?;
            }
            Ok(())
        }
        Value::Array(list) => {
            for element in list {
                // PFCP elements have a name, and fields or elements of their own.
                let name = element["name"].as_str();
                let inside = ["value", "ies"].iter().find_map(|key| element.get(key));
                match (name, inside) {
                    (Some(name), Some(inside)) => named(&indent, name, inside, depth, output)?,
                    _ => output.line(format!("{indent}{}", plain(element)))?,
                }
            }
            Ok(())
        }
        value => output.line(format!("{indent}{}", plain(value))),
    }
}

fn named(indent: &str, name: &str, value: &Value, depth: usize, output: &mut Output) -> CliResult {
    let label = output.paint(TextStyle::Faint, name);
    let on_one_line = match value {
        Value::Object(object) => !object.values().any(is_nested),
        Value::Array(list) => !list.iter().any(|element| element["name"].is_string()),
        _ => true,
    };
    if on_one_line && depth > 1 {
        return output.line(format!("{indent}{label}  {}", plain(value)));
    }
    output.line(format!("{indent}{label}"))?;
    member(value, depth + 1, output)
}

fn is_nested(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

/// Formats a value on one line. Flags that are not set are left out, and names go before numbers.
fn plain(value: &Value) -> String {
    match value {
        Value::Array(list) if list.is_empty() => "-".to_owned(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(object) if object.len() == 1 => object.values().map(plain).collect(),
        Value::Object(object) => {
            let field = |(key, value): (&String, &Value)| match value {
                Value::Bool(false) => None,
                Value::Bool(true) => Some(key.clone()),
                _ if object.contains_key(&format!("{key}_name")) => None,
                value => match key.strip_suffix("_name") {
                    Some(_) => Some(plain(value)),
                    None => Some(format!("{key} {}", plain(value))),
                },
            };
            let fields: Vec<String> = object.iter().filter_map(field).collect();
            match fields.as_slice() {
                [] => "-".to_owned(),
                fields => fields.join(", "),
            }
        }
        value => text(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_that_are_not_set_are_left_out_and_names_go_before_numbers() {
        for (value, is) in [
            (
                json!({"drop": false, "forw": true, "dupl": true}),
                "forw, dupl",
            ),
            (json!({"drop": false, "forw": false}), "-"),
            (json!({"interface": 1, "interface_name": "Core"}), "Core"),
            (json!({"far_id": 7}), "7"),
            (
                json!({"v4": true, "teid": 1, "ipv4": "10.0.0.1"}),
                "v4, teid 1, ipv4 10.0.0.1",
            ),
            (json!([]), "-"),
            (
                json!([{"teid": 1, "address": "::1"}]),
                "teid 1, address ::1",
            ),
        ] {
            assert_eq!(plain(&value), is);
        }
    }
}
