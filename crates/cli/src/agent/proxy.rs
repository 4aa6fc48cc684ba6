//! The tools of a running node, passed on by its control socket: to a program that agents start.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `mcp.tools` | none | rows: what agents are told of each tool |
//! | `mcp.call` | `name`, `arguments` | rows of `progress`, then one with the `answer` |
//!
//! An agent that cancels ends the connection of the call, and so the call.

use std::path::{Path, PathBuf};
use std::task::Poll;

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Code, Fault};
use strowger_gateway::{
    Answer, Client, Mcp, McpAnswer, McpCall, McpTool, McpTools, Methods, Progress,
};
use tokio::sync::mpsc;

use super::node::{call, told};

const TOOLS: &str = "mcp.tools";
const CALL: &str = "mcp.call";

/// The tools of the node whose control socket is there.
///
/// # Errors
/// When there is none, or an older one.
pub(crate) async fn of(control: &Path) -> Result<McpTools, Fault> {
    let list = call(control, TOOLS, Value::Null).await?;
    let list = Vec::<McpTool>::deserialize(list).map_err(|error| unread(&error))?;
    let add = |tools: McpTools, tool: McpTool| {
        let (control, name) = (control.to_owned(), tool.name.clone());
        tools.register(tool, move |call| {
            pass(control.clone(), name.to_string(), call)
        })
    };
    Ok(list.into_iter().fold(super::none(), add))
}

fn unread(error: &serde_json::Error) -> Fault {
    Fault::new(
        Code::Failed,
        format!("the node answers something else: {error}"),
    )
}

/// Passes a call on.
async fn pass(control: PathBuf, name: String, call: McpCall) -> Result<McpAnswer, Fault> {
    let mut client = Client::connect(&control).await.map_err(told)?;
    let params = json!({ "name": name, "arguments": call.arguments });
    let mut rows = client.stream(CALL, params).await.map_err(told)?;
    while let Some(row) = rows.next().await.map_err(told)? {
        match Row::deserialize(row).map_err(|error| unread(&error))? {
            Row::Progress { done, of, text } => call.progress.tell(done, of, &text).await,
            Row::Answer(answer) => return Ok(answer),
            Row::Fault(fault) => return Err(Fault::from_json(&fault)?),
        }
    }
    Err(Fault::new(
        Code::Failed,
        format!("{name} ended without an answer"),
    ))
}

/// What comes of a call.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Row {
    Progress {
        done: f64,
        of: Option<f64>,
        text: String,
    },
    Answer(McpAnswer),
    Fault(Value),
}

/// Progress that waits to be read; more is not told.
const AHEAD: usize = 16;

/// Adds the methods of the control socket.
pub(crate) fn register(methods: Methods, mcp: &Mcp) -> Methods {
    let (listed, called) = (mcp.clone(), mcp.clone());
    methods
        .register(TOOLS, move |_| {
            let rows: Vec<Value> = listed.tools().list().map(|tool| json!(tool)).collect();
            async move { Ok(Answer::rows(rows)) }
        })
        .register(CALL, move |params| {
            let mcp = called.clone();
            async move {
                let wrong =
                    |error: serde_json::Error| Fault::new(Code::BadRequest, error.to_string());
                let Called { name, arguments } = Called::deserialize(params).map_err(wrong)?;
                Ok(rows(mcp, name, arguments))
            }
        })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// A call as rows; it goes on as they are read.
fn rows(mcp: Mcp, name: String, arguments: Value) -> Answer {
    let (progress, mut told) = mpsc::channel(AHEAD);
    let progress = Progress::new(move |done, of, text| {
        let row = json!({ "progress": { "done": done, "of": of, "text": text } });
        // The next one says more.
        let _ = progress.try_send(row);
    });
    let mut running = Some(Box::pin(async move {
        match mcp.call_with(&name, arguments, progress).await {
            Ok(answer) => json!({ "answer": answer }),
            Err(fault) => json!({ "fault": fault.to_json() }),
        }
    }));
    let mut last = None;
    Answer::stream(move |cx| {
        if let Some(work) = &mut running
            && let Poll::Ready(row) = work.as_mut().poll(cx)
        {
            (running, last) = (None, Some(row));
        }
        match told.poll_recv(cx) {
            Poll::Ready(Some(row)) => Poll::Ready(Some(row)),
            _ if running.is_none() => Poll::Ready(last.take()),
            _ => Poll::Pending,
        }
    })
}
