//! Views of the node itself, which change nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Code, Fault};
use strowger_gateway::{Client, ClientError, McpAnswer, McpEffect, McpTool, McpTools};
use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp::{Index, MessageView, frames};

use super::{a, list, object};
use crate::command::pfcp::hex;

/// Adds the views of a node whose control socket is there, once it is open.
pub(crate) fn add(tools: McpTools, control: &Arc<OnceLock<PathBuf>>) -> McpTools {
    let (of_tree, of_inspect) = (Arc::clone(control), Arc::clone(control));
    let path = "An actor, such as /node/n4. All actors if it is left out.";
    let most = "How many children of each actor at most; 50 if it is left out.";
    let tree = McpTool::new(
        "actor_tree",
        "Lists the supervised actors of the node with their figures: state, mailbox, restarts, \
         last exit. Use it to see what runs and what fails.",
        object(
            [("path", a("string", path)), ("most", a("integer", most))],
            &[],
        ),
    )
    .with_output(object(
        [(
            "actors",
            list(&json!({ "type": "object" }), "Actors, parents first."),
        )],
        &["actors"],
    ))
    .with_effect(McpEffect::Reads);
    let inspect = McpTool::new(
        "inspect",
        "Shows one actor of the node: its figures and, if it is a PFCP session, a component or a \
         tool, what it holds.",
        object([("path", a("string", "Such as /tools/files."))], &["path"]),
    )
    .with_output(json!({ "type": "object" }))
    .with_effect(McpEffect::Reads);
    let tools = tools.register(tree, move |call| {
        let control = of_tree.clone();
        async move {
            let Below { path, most } = call.read()?;
            let params = json!({ "path": path, "limit": most.unwrap_or(CHILDREN) });
            let actors = self::call(there(&control)?, "tree", params).await?;
            Ok(McpAnswer::of(json!({ "actors": actors })))
        }
    });
    let tools = tools.register(inspect, move |call| {
        let control = of_inspect.clone();
        async move {
            let One { path } = call.read()?;
            let actor = self::call(there(&control)?, "inspect", json!({ "path": path })).await?;
            Ok(McpAnswer::of(actor))
        }
    });
    decode(tools)
}

fn there(control: &OnceLock<PathBuf>) -> Result<&Path, Fault> {
    let path = control.get().map(PathBuf::as_path);
    path.ok_or_else(|| Fault::new(Code::Failed, "the node has not started"))
}

/// Children of an actor that are shown, unless it is said.
const CHILDREN: u64 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Below {
    path: Option<PathBuf>,
    most: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    path: String,
}

/// Calls a method of control.
pub(crate) async fn call(control: &Path, method: &str, params: Value) -> Result<Value, Fault> {
    let mut client = Client::connect(control).await.map_err(told)?;
    client.call(method, params).await.map_err(told)
}

pub(super) fn told(error: ClientError) -> Fault {
    match error {
        ClientError::Fault(fault) => fault,
        error @ ClientError::NoNode { .. } => Fault::new(Code::Unreachable, error.to_string()),
        error @ (ClientError::Closed | ClientError::Io(_)) => {
            Fault::new(Code::Lost, error.to_string())
        }
        error => Fault::new(Code::Failed, error.to_string()),
    }
}

/// Adds the reading of PFCP, which needs no node.
pub(crate) fn decode(tools: McpTools) -> McpTools {
    let hex = "The octets of one datagram, such as 2001000c00000100006000040a0b0c0d; spaces, \
               colons and 0x may separate them.";
    let decode = McpTool::new(
        "pfcp_decode",
        "Reads a PFCP datagram (3GPP TS 29.244, N4) and names every message, element and field \
         in it.",
        object([("hex", a("string", hex))], &["hex"]),
    )
    .with_output(object(
        [(
            "messages",
            list(&json!({ "type": "object" }), "One for each message."),
        )],
        &["messages"],
    ))
    .with_effect(McpEffect::Reads);
    tools.register(decode, |call| async move {
        let Datagram { hex } = call.read()?;
        let wrong = |text: String| Fault::new(Code::BadRequest, text);
        if hex.len() > LONGEST {
            return Err(wrong(format!(
                "hex: a datagram has at most {} octets",
                LONGEST / 3
            )));
        }
        let octets = hex::parse(&hex).map_err(|error| wrong(format!("hex: {error}")))?;
        let dictionary = Dictionary::default();
        let mut messages = Vec::new();
        for frame in frames(&octets) {
            let frame = frame.map_err(|error| wrong(error.to_string()))?;
            let mut index = Index::new();
            let view = MessageView::of(&frame, &mut index);
            let view = view.map_err(|error| wrong(error.to_string()))?;
            messages.push(dictionary.to_json(&view));
        }
        Ok(McpAnswer::of(json!({ "messages": messages })))
    })
}

/// Letters of the longest datagram, with what separates its octets.
const LONGEST: usize = 3 * 65_535;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Datagram {
    hex: String,
}
