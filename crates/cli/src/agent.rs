//! What agents may call: the tools of a node as values for the door that speaks their protocol.
//!
//! `strowger mcp --root DIR` has files alone; a node has them as well, with views of itself; and
//! `strowger mcp` beside a running node passes on what that node has.

mod files;
mod node;
mod proxy;
mod roots;
mod streams;

use serde_json::{Map, Value, json};
use strowger::ActorRef;
use strowger_gateway::McpTools;
use strowger_tools::StreamsMessage;

pub(crate) use self::node::{add as add_node, decode as add_decode};
pub(crate) use self::proxy::{of as of_node, register};
pub(crate) use self::roots::Roots;

/// The name under which agents see us.
const NAME: &str = "strowger";

const ADVICE: &str = "Files are reached below the allowed directories only; \
    `list_allowed_directories` names them. A refusal says which rule forbids a call: another way \
    to the same place is refused as well.";

/// No tools yet.
pub(crate) fn none() -> McpTools {
    McpTools::new(NAME, env!("CARGO_PKG_VERSION")).with_advice(ADVICE)
}

/// Adds the verbs of files, if there are any roots.
pub(crate) fn add_files(tools: McpTools, roots: &Roots) -> McpTools {
    match roots.is_empty() {
        true => tools,
        false => files::add(tools, roots),
    }
}

/// Adds the verbs of streams, if there are any.
pub(crate) fn add_streams(tools: McpTools, streams: Option<&ActorRef<StreamsMessage>>) -> McpTools {
    match streams {
        Some(streams) => streams::add(tools, streams),
        None => tools,
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
