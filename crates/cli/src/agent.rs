//! The tools that agents may call, as values for the MCP endpoint.
//!
//! `strowger mcp --root DIR` offers files, and the other tools that its options enable. A node
//! offers the same tools and views of itself. `strowger mcp` beside a running node passes that
//! node's tools on.

mod code;
mod files;
mod node;
mod page;
mod programs;
mod proxy;
mod roots;
mod streams;

use std::time::Duration;

use serde_json::{Map, Value, json};
use strowger::ActorSystem;
use strowger_gateway::mcp::ToolSet;

pub(crate) use self::node::{add as add_node, decode as add_decode};
pub(crate) use self::proxy::{node_tools, register};
pub(crate) use self::roots::Roots;
use crate::compose::agents::Tools;

/// The server name that agents see.
const SERVER_NAME: &str = "strowger";

/// The timeout for asks. Each call has a deadline of its own, which ends the ask earlier.
const ASK_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

const INSTRUCTIONS: &str = "Files are accessible only below the allowed directories, which \
                      `list_allowed_directories` lists. A refusal names the rule that forbids a \
                      call; another path to the same file is refused as well.";

/// Returns an empty set of tools.
pub(crate) fn no_tools() -> ToolSet {
    ToolSet::new(SERVER_NAME, env!("CARGO_PKG_VERSION")).with_instructions(INSTRUCTIONS)
}

/// Adds the verbs for files and for streams, if `tools` has any.
pub(crate) fn add_tools(to: ToolSet, tools: &Tools, roots: &Roots) -> ToolSet {
    let of_files = match roots.is_empty() {
        true => to,
        false => files::add(to, roots),
    };
    match tools.streams() {
        Some(streams) => streams::add(of_files, streams, roots),
        None => of_files,
    }
}

/// Adds the verbs that run code and programs, if they are granted. Code and programs may be given
/// the tools that `to` already contains.
pub(crate) fn add_code(to: ToolSet, system: &ActorSystem, tools: &Tools) -> ToolSet {
    let granted = to.clone();
    let with_code = match tools.code() {
        Some(code) => code::add(to, code, &granted),
        None => to,
    };
    match tools.programs() {
        Some(programs) => programs::add(with_code, system, programs, &granted),
        None => with_code,
    }
}

/// Returns the schema of an object with exactly these members, of which those in `wanted` are
/// required.
fn object<const N: usize>(members: [(&str, Value); N], wanted: &[&str]) -> Value {
    let members = members.map(|(name, schema)| (name.to_owned(), schema));
    json!({
        "type": "object",
        "properties": Map::from_iter(members),
        "required": wanted,
        "additionalProperties": false,
    })
}

/// Returns the schema of a scalar, such as a string or a number.
fn scalar(kind: &str, about: &str) -> Value {
    json!({ "type": kind, "description": about })
}

/// Returns the schema of a name from a list; of any name if the list is empty. Each schema has a
/// type: some model providers refuse all tools because of one without.
fn one_of(names: &[&str], about: &str) -> Value {
    match names {
        [] => scalar("string", about),
        names => json!({ "type": "string", "enum": names, "description": about }),
    }
}

/// Returns the schema of any value.
fn any(about: &str) -> Value {
    let all = ["object", "array", "string", "number", "boolean", "null"];
    json!({ "type": all, "description": about })
}

/// Returns the schema of a list.
fn array(items: &Value, about: &str) -> Value {
    json!({ "type": "array", "items": items, "description": about })
}
