//! What agents may call: the tools of a node as values for the door that speaks their protocol.
//!
//! `strowger mcp --root DIR` has files, and what else it is told to have; a node has them as well,
//! with views of itself; and `strowger mcp` beside a running node passes on what that node has.

mod code;
mod files;
mod node;
mod programs;
mod proxy;
mod roots;
mod streams;

use serde_json::{Map, Value, json};
use strowger::ActorSystem;
use strowger_gateway::McpTools;

pub(crate) use self::node::{add as add_node, decode as add_decode};
pub(crate) use self::proxy::{of as of_node, register};
pub(crate) use self::roots::Roots;
use crate::compose::tools::Tools;

/// The name under which agents see us.
const NAME: &str = "strowger";

const ADVICE: &str = "Files are reached below the allowed directories only; \
    `list_allowed_directories` names them. A refusal says which rule forbids a call: another way \
    to the same place is refused as well.";

/// No tools yet.
pub(crate) fn none() -> McpTools {
    McpTools::new(NAME, env!("CARGO_PKG_VERSION")).with_advice(ADVICE)
}

/// Adds the verbs of files and of streams, as far as there are any.
pub(crate) fn add_tools(to: McpTools, tools: &Tools, roots: &Roots) -> McpTools {
    let of_files = match roots.is_empty() {
        true => to,
        false => files::add(to, roots),
    };
    match tools.streams() {
        Some(streams) => streams::add(of_files, streams, roots),
        None => of_files,
    }
}

/// Adds the running of code and programs, as far as they are granted. They may be given the tools
/// that are there before.
pub(crate) fn add_code(to: McpTools, system: &ActorSystem, tools: &Tools) -> McpTools {
    let granted = to.clone();
    let with_code = match tools.code() {
        Some(code) => code::add(to, code, &granted),
        None => to,
    };
    match tools.programs() {
        Some(desk) => programs::add(with_code, system, desk, &granted),
        None => with_code,
    }
}

/// The schema of an object with these members, of which some have to be there, and no others.
fn object<const N: usize>(members: [(&str, Value); N], wanted: &[&str]) -> Value {
    let members = members.map(|(name, schema)| (name.to_owned(), schema));
    json!({
        "type": "object",
        "properties": Map::from_iter(members),
        "required": wanted,
        "additionalProperties": false,
    })
}

/// The schema of a text, a number and so on.
fn a(kind: &str, about: &str) -> Value {
    json!({ "type": kind, "description": about })
}

/// The schema of a list.
fn list(items: &Value, about: &str) -> Value {
    json!({ "type": "array", "items": items, "description": about })
}
