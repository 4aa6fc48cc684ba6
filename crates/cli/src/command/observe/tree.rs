//! The actor tree as text.

use std::collections::HashMap;

use serde_json::Value;

use super::{format_value, type_name};
use crate::exit::CliResult;
use crate::output::{Output, TextStyle};

/// Prints actors as a tree. Parents come before their children in `rows`. An actor may have more
/// children than `rows` contains.
pub(super) fn print(rows: &[Value], output: &mut Output) -> CliResult {
    let mut children: HashMap<&str, Vec<&Value>> = HashMap::new();
    let mut tops = Vec::new();
    let known: HashMap<&str, &Value> = rows.iter().map(|row| (path(row), row)).collect();
    for row in rows {
        match parent(path(row)).filter(|parent| known.contains_key(parent)) {
            Some(parent) => children.entry(parent).or_default().push(row),
            None => tops.push(row),
        }
    }
    let tree = Tree { children };
    for top in tops {
        output.line(node_label(top, path(top), output))?;
        tree.print_children(top, "", output)?;
    }
    Ok(())
}

struct Tree<'a> {
    children: HashMap<&'a str, Vec<&'a Value>>,
}

impl Tree<'_> {
    fn print_children(&self, row: &Value, indent: &str, output: &mut Output) -> CliResult {
        let shown = self.children.get(path(row)).map_or(&[][..], Vec::as_slice);
        let all = row["children"].as_u64().unwrap_or(0);
        let hidden = all.saturating_sub(shown.len() as u64);
        for (at, child) in shown.iter().enumerate() {
            let last = hidden == 0 && at + 1 == shown.len();
            let (branch, below) = if last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            let key = path(child).rsplit('/').next().unwrap_or_default();
            let label = node_label(child, key, output);
            output.line(format!("{indent}{branch}{label}"))?;
            self.print_children(child, &format!("{indent}{below}"), output)?;
        }
        if hidden > 0 {
            let more = output.paint(TextStyle::Faint, format!("{hidden} more"));
            output.line(format!("{indent}└─ {more}"))?;
        }
        Ok(())
    }
}

/// Formats the name of an actor with its most important stats.
fn node_label(row: &Value, name: &str, output: &Output) -> String {
    let mut label = output.paint(TextStyle::Bold, name);
    label.push_str(&output.paint(TextStyle::Faint, format!("  {}", type_name(row))));
    let number = |key: &str| row[key].as_u64().unwrap_or(0);
    if row["state"] != "running" {
        let state = output.paint(TextStyle::Red, format_value(&row["state"]));
        label.push_str(&format!("  {state}"));
    }
    if number("depth") > 0 {
        label.push_str(&format!("  {} waiting", number("depth")));
    }
    if number("children") > 0 {
        let children = format!("  {} children", number("children"));
        label.push_str(&output.paint(TextStyle::Faint, children));
    }
    if number("restarts") > 0 {
        let restarts = format!("{} restarts", number("restarts"));
        label.push_str(&format!("  {}", output.paint(TextStyle::Red, restarts)));
    }
    label
}

fn path(row: &Value) -> &str {
    row["path"].as_str().unwrap_or_default()
}

fn parent(path: &str) -> Option<&str> {
    let (parent, _) = path.rsplit_once('/')?;
    (!parent.is_empty()).then_some(parent)
}
