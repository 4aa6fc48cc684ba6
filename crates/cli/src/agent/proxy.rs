//! The tools of a running node, passed on through its control socket to a program that agents
//! start.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `mcp.tools` | none | rows: the description of each tool |
//! | `mcp.call` | `name`, `arguments` | rows of `progress`, then one with the `answer` |
//!
//! An agent that cancels closes the connection of the call, which ends the call.

use std::path::{Path, PathBuf};
use std::task::Poll;

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Fault, FaultCode};
use strowger_gateway::access::Caller;
use strowger_gateway::client::Client;
use strowger_gateway::mcp::{McpServer, ProgressReporter, Tool, ToolOutput, ToolRequest, ToolSet};
use strowger_gateway::method::{MethodOutput, Methods};
use tokio::sync::mpsc;

use super::node::{call, call_fault};
use crate::compose::verbs::{CALL, TOOLS};

/// Returns the tools of the node with the given control socket.
///
/// # Errors
/// Returns a fault if no node listens there, or if it is an older version without these methods.
pub(crate) async fn node_tools(control: &Path) -> Result<ToolSet, Fault> {
    let list = call(control, TOOLS.name(), Value::Null).await?;
    let list = Vec::<Tool>::deserialize(list).map_err(|error| unreadable(&error))?;
    let add = |tools: ToolSet, tool: Tool| {
        let (control, name) = (control.to_owned(), tool.name.clone());
        tools.register(tool, move |call| {
            forward(control.clone(), name.to_string(), call)
        })
    };
    Ok(list.into_iter().fold(super::no_tools(), add))
}

fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::new(
        FaultCode::Failed,
        format!("unexpected reply from the node: {error}"),
    )
}

/// Passes a call on.
async fn forward(control: PathBuf, name: String, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let mut client = Client::connect(&control).await.map_err(call_fault)?;
    let params = json!({ "name": name, "arguments": call.arguments });
    let mut rows = client
        .stream(CALL.name(), params)
        .await
        .map_err(call_fault)?;
    while let Some(row) = rows.next().await.map_err(call_fault)? {
        match CallRow::deserialize(row).map_err(|error| unreadable(&error))? {
            CallRow::Progress { done, of, text } => call.progress.report(done, of, &text).await,
            CallRow::Answer(answer) => return Ok(answer),
            CallRow::Fault(fault) => return Err(Fault::from_json(&fault)?),
        }
    }
    Err(Fault::new(
        FaultCode::Failed,
        format!("{name} ended without a reply"),
    ))
}

/// A row of the answer to a call.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum CallRow {
    Progress {
        done: f64,
        of: Option<f64>,
        text: String,
    },
    Answer(ToolOutput),
    Fault(Value),
}

/// Maximum number of progress rows that wait to be read; further ones are dropped.
const MAX_PROGRESS: usize = 16;

/// Adds the methods of the control socket.
pub(crate) fn register(methods: Methods, mcp: &McpServer) -> Methods {
    let (listed, called) = (mcp.clone(), mcp.clone());
    methods
        .register_for_caller(TOOLS, move |caller, _| {
            let tools = listed.describe_for(&caller);
            let rows: Vec<Value> = tools.map(|tool| json!(tool)).collect();
            async move { Ok(MethodOutput::rows(rows)) }
        })
        .register_for_caller(CALL, move |caller, params| {
            let mcp = called.clone();
            async move {
                let wrong =
                    |error: serde_json::Error| Fault::new(FaultCode::BadRequest, error.to_string());
                let ToolCallParams { name, arguments } =
                    ToolCallParams::deserialize(params).map_err(wrong)?;
                Ok(call_rows(mcp, caller, name, arguments))
            }
        })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCallParams {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Runs a call and returns its rows. The call proceeds as the rows are read.
fn call_rows(mcp: McpServer, caller: Caller, name: String, arguments: Value) -> MethodOutput {
    let (progress, mut reports) = mpsc::channel(MAX_PROGRESS);
    let progress = ProgressReporter::new(move |done, of, text| {
        let row = json!({ "progress": { "done": done, "of": of, "text": text } });
        // Dropped if the channel is full: the next report says more.
        let _ = progress.try_send(row);
    });
    let mut running = Some(Box::pin(async move {
        match mcp.call_for(&caller, &name, arguments, progress).await {
            Ok(answer) => json!({ "answer": answer }),
            Err(fault) => json!({ "fault": fault.to_json() }),
        }
    }));
    let mut last = None;
    MethodOutput::stream(move |cx| {
        if let Some(work) = &mut running
            && let Poll::Ready(row) = work.as_mut().poll(cx)
        {
            (running, last) = (None, Some(row));
        }
        match reports.poll_recv(cx) {
            Poll::Ready(Some(row)) => Poll::Ready(Some(row)),
            _ if running.is_none() => Poll::Ready(last.take()),
            _ => Poll::Pending,
        }
    })
}
