//! Read-only tools that show the node itself.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Fault, FaultCode};
use strowger_gateway::access::Operation;
use strowger_gateway::client::{Client, ClientError};
use strowger_gateway::mcp::{Tool, ToolEffect, ToolOutput, ToolSet};
use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp::{Index, MessageView, frames};

use super::page::{BY_ANSWER, BY_OFFSET, json_page, offset_property};
use super::{object, scalar};
use strowger_pfcp_cli::hex;

/// Adds the views of the node whose control socket is at `control`, once it is open.
pub(crate) fn add(tools: ToolSet, control: &Arc<OnceLock<PathBuf>>) -> ToolSet {
    let (of_tree, of_inspect) = (Arc::clone(control), Arc::clone(control));
    let path = "Path of an actor, such as /node/n4. By default, all actors.";
    let most = "Maximum number of children per actor, by default 50.";
    let tree = Tool::new(
        "actor_tree",
        "Lists the supervised actors of the node with their statistics (state, mailbox, restarts, \
         last exit) as JSON, parents first. Use it to see what is running and what is failing.",
        object(
            [
                ("path", scalar("string", path)),
                ("most", scalar("integer", most)),
                offset_property("actors"),
            ],
            &[],
        ),
    )
    .with_effect(ToolEffect::Reads)
    .with_paging(BY_OFFSET);
    let inspect = Tool::new(
        "inspect",
        "Returns details of one actor as JSON: its statistics and, for a PFCP session, a \
         component or a tool, its content.",
        object(
            [(
                "path",
                scalar("string", "Path of the actor, such as /tools/files."),
            )],
            &["path"],
        ),
    )
    .with_effect(ToolEffect::Reads)
    .with_paging(BY_ANSWER);
    let tools = tools.register(tree, move |call| {
        let control = of_tree.clone();
        async move {
            let ActorTreeParams { path, most, offset } = call.parse_arguments()?;
            let params = json!({ "path": path, "limit": most.unwrap_or(DEFAULT_CHILDREN) });
            let actors = self::call(control_path(&control)?, "tree", params).await?;
            let Value::Array(mut actors) = actors else {
                return Ok(ToolOutput::json(json!({ "actors": actors })));
            };
            let sees = |actor: &Value| {
                let path = actor["path"].as_str();
                path.is_some_and(|path| call.caller.can_reach(path))
            };
            actors.retain(sees);
            let answer = json_page("actors", actors, offset, call.page_size);
            Ok(ToolOutput::json(answer))
        }
    });
    let tools = tools.register(inspect, move |call| {
        let control = of_inspect.clone();
        async move {
            let InspectParams { path } = call.parse_arguments()?;
            call.caller.check_address(&Operation::CALL_TOOL, &path)?;
            let actor =
                self::call(control_path(&control)?, "inspect", json!({ "path": path })).await?;
            Ok(ToolOutput::json(actor))
        }
    });
    decode(tools)
}

fn control_path(control: &OnceLock<PathBuf>) -> Result<&Path, Fault> {
    let path = control.get().map(PathBuf::as_path);
    path.ok_or_else(|| Fault::new(FaultCode::Failed, "the node has not started"))
}

/// Default number of children shown for each actor.
const DEFAULT_CHILDREN: u64 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActorTreeParams {
    path: Option<PathBuf>,
    most: Option<u64>,
    offset: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InspectParams {
    path: String,
}

/// Calls a method of the control socket.
pub(crate) async fn call(control: &Path, method: &str, params: Value) -> Result<Value, Fault> {
    let mut client = Client::connect(control).await.map_err(call_fault)?;
    client.call(method, params).await.map_err(call_fault)
}

pub(super) fn call_fault(error: ClientError) -> Fault {
    match error {
        ClientError::Fault(fault) => fault,
        error => Fault::new(error.code(), error.to_string()),
    }
}

/// Adds the verb that decodes PFCP, which needs no node.
pub(crate) fn decode(tools: ToolSet) -> ToolSet {
    let hex = "The bytes of one datagram in hex, such as 2001000c00000100006000040a0b0c0d; \
               spaces, colons and 0x are ignored.";
    let decode = Tool::new(
        "pfcp_decode",
        "Decodes a PFCP datagram (3GPP TS 29.244, N4 interface) into messages, elements and \
         fields, as JSON.",
        object([("hex", scalar("string", hex))], &["hex"]),
    )
    .with_effect(ToolEffect::Reads)
    .with_paging(BY_ANSWER);
    tools.register(decode, |call| async move {
        let PfcpDecodeParams { hex } = call.parse_arguments()?;
        let wrong = |text: String| Fault::new(FaultCode::BadRequest, text);
        if hex.len() > MAX_HEX {
            return Err(wrong(format!(
                "hex: more than {} bytes, the limit of a datagram",
                MAX_HEX / 3
            )));
        }
        let bytes = hex::parse(&hex).map_err(|error| wrong(format!("hex: {error}")))?;
        let dictionary = Dictionary::default();
        let mut messages = Vec::new();
        for frame in frames(&bytes) {
            let frame = frame.map_err(|error| wrong(error.to_string()))?;
            let mut index = Index::new();
            let view = MessageView::of(&frame, &mut index);
            let view = view.map_err(|error| wrong(error.to_string()))?;
            messages.push(dictionary.to_json(&view));
        }
        Ok(ToolOutput::json(json!({ "messages": messages })))
    })
}

/// Maximum length of the hex form of a datagram, with separators between its bytes.
const MAX_HEX: usize = 3 * 65_535;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PfcpDecodeParams {
    hex: String,
}
