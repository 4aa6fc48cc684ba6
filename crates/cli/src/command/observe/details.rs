//! A single actor as text.

use serde_json::Value;

use super::{format_value, type_name};
use crate::exit::CliResult;
use crate::output::{Output, TextStyle};

/// Prints the stats of an actor, and its details.
pub(super) fn print(actor: &Value, output: &mut Output) -> CliResult {
    let path = output.paint(TextStyle::Bold, format_value(&actor["path"]));
    output.line(path)?;
    let span = |key: &str| format!("{:.1} ms", actor[key].as_f64().unwrap_or(0.0) / 1e3);
    let capacity = match &actor["capacity"] {
        Value::Null => "(unbounded)".to_owned(),
        capacity => format!("of {capacity}"),
    };
    let figure = |key: &str| format_value(&actor[key]);
    let rows = [
        ("kind", type_name(actor)),
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
        Some(details) => print_members(details, 1, output),
        None => Ok(()),
    }
}

/// Prints the members of a value, one a line, with nested values indented further.
fn print_members(value: &Value, depth: usize, output: &mut Output) -> CliResult {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                print_named(&indent, key, value, depth, output)?;
            }
            Ok(())
        }
        Value::Array(list) => {
            for element in list {
                // PFCP elements have a name, and fields or elements of their own.
                let name = element["name"].as_str();
                let inside = ["value", "ies"].iter().find_map(|key| element.get(key));
                match (name, inside) {
                    (Some(name), Some(inside)) => {
                        print_named(&indent, name, inside, depth, output)?
                    }
                    _ => output.line(format!("{indent}{}", format_on_one_line(element)))?,
                }
            }
            Ok(())
        }
        value => output.line(format!("{indent}{}", format_on_one_line(value))),
    }
}

fn print_named(
    indent: &str,
    name: &str,
    value: &Value,
    depth: usize,
    output: &mut Output,
) -> CliResult {
    let label = output.paint(TextStyle::Faint, name);
    let on_one_line = match value {
        Value::Object(object) => !object.values().any(is_nested),
        Value::Array(list) => !list.iter().any(|element| element["name"].is_string()),
        _ => true,
    };
    if on_one_line && depth > 1 {
        return output.line(format!("{indent}{label}  {}", format_on_one_line(value)));
    }
    output.line(format!("{indent}{label}"))?;
    print_members(value, depth + 1, output)
}

fn is_nested(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

/// Formats a value on one line. Flags that are not set are left out, and names go before numbers.
fn format_on_one_line(value: &Value) -> String {
    match value {
        Value::Array(list) if list.is_empty() => "-".to_owned(),
        Value::Array(list) => list
            .iter()
            .map(format_on_one_line)
            .collect::<Vec<_>>()
            .join(", "),
        Value::Object(object) if object.len() == 1 => {
            object.values().map(format_on_one_line).collect()
        }
        Value::Object(object) => {
            let field = |(key, value): (&String, &Value)| match value {
                Value::Bool(false) => None,
                Value::Bool(true) => Some(key.clone()),
                _ if object.contains_key(&format!("{key}_name")) => None,
                value => match key.strip_suffix("_name") {
                    Some(_) => Some(format_on_one_line(value)),
                    None => Some(format!("{key} {}", format_on_one_line(value))),
                },
            };
            let fields: Vec<String> = object.iter().filter_map(field).collect();
            match fields.as_slice() {
                [] => "-".to_owned(),
                fields => fields.join(", "),
            }
        }
        value => format_value(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unset_flags_are_omitted_and_names_precede_numbers() {
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
            assert_eq!(format_on_one_line(&value), is);
        }
    }
}
