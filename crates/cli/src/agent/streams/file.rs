//! The verb that writes a stream to a file.

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::Fault;
use strowger_gateway::access::Operation;
use strowger_gateway::mcp::{Tool, ToolOutput, ToolRequest, ToolSet};
use strowger_tools::files::{AppendRequest, WriteRequest};
use strowger_tools::stream::FollowStreamRequest;

use super::{STREAMS, StreamsRef, ask, object, scalar};
use crate::agent::roots::Roots;

pub(super) fn add(tools: ToolSet, streams: &StreamsRef, roots: &Roots) -> ToolSet {
    let path = "Path of the file, below an allowed directory; it is created, or overwritten.";
    let about = "Writes a stream to a file, from its past items to its end, with progress \
                 notifications. The producer is slowed down to the speed of writing. Written \
                 items stay if the stream ends with an error or the call is cancelled.";
    let tool = Tool::new(
        "stream_to_file",
        about,
        object(
            [
                ("stream", scalar("string", "Name of the stream.")),
                ("path", scalar("string", path)),
                ("append", scalar("boolean", "Append to the file.")),
            ],
            &["stream", "path"],
        ),
    )
    .with_output(object(
        [
            ("pieces", scalar("integer", "Number of items written.")),
            ("octets", scalar("integer", "Number of bytes written.")),
            (
                "failed",
                scalar("boolean", "`true` if the stream ended with an error."),
            ),
        ],
        &["pieces", "octets", "failed"],
    ));
    let (streams, roots) = (streams.clone(), roots.clone());
    tools.register(tool, move |call| {
        write(streams.clone(), roots.clone(), call)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamToFileParams {
    stream: String,
    path: String,
    #[serde(default)]
    append: bool,
}

async fn write(streams: StreamsRef, roots: Roots, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let params: StreamToFileParams = call.parse_arguments()?;
    call.caller.check_address(&Operation::CALL_TOOL, STREAMS)?;
    let roots = roots.within(&call.caller)?;
    let file = roots.find(&params.path)?;
    // Follow before writing anything: the stream may not exist.
    let mut reader = ask(&streams, FollowStreamRequest::new(params.stream)).await?;
    if !params.append {
        file.ask(WriteRequest::new(&file.path, "")).await?;
    }
    let (mut pieces, mut bytes, mut error) = (0_u64, 0, None);
    while let Some(piece) = reader.recv().await {
        let piece = match piece {
            Ok(piece) => piece.into_payload().bytes,
            Err(why) => {
                error = Some(why.to_string());
                break;
            }
        };
        (pieces, bytes) = (pieces + 1, bytes + piece.len());
        let path = file.path.clone();
        file.ask(AppendRequest { path, bytes: piece }).await?;
        let summary = format!("{bytes} bytes written");
        call.progress.report(pieces as f64, None, &summary).await;
    }
    let facts = json!({ "pieces": pieces, "octets": bytes, "failed": error.is_some() });
    let summary = format!("Wrote {pieces} items, {bytes} bytes, to {}.", params.path);
    let mut value = json!({ "pieces": pieces, "octets": bytes });
    let Some(error) = error else {
        let answer = ToolOutput::text(summary).with_structured(facts);
        return Ok(answer.with_local_value(value));
    };
    let summary = format!("{summary}\nThe stream ended with an error: {error}");
    value["error"] = Value::String(error);
    let answer = ToolOutput::text(summary).with_structured(facts);
    Ok(answer.with_local_value(value).into_failure())
}
