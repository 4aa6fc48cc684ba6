//! Streams of a node, which agents write to and read from.

mod file;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Accepts, ActorRef, Ask, Fault, FaultCode, Request};
use strowger_gateway::access::Operation;
use strowger_gateway::mcp::{Tool, ToolContent, ToolEffect, ToolOutput, ToolRequest, ToolSet};
use strowger_tools::stream::{
    EndStreamRequest, FailStreamRequest, FollowStreamRequest, ListStreamsRequest,
    OpenStreamRequest, PutRequest, StreamError, StreamPiece, StreamsMessage,
};
use tokio::time::timeout;

use super::roots::Roots;
use super::{ASK_TIMEOUT, a, object};

/// Adds the verbs for streams. The verb that writes a stream to a file is added only if some root
/// may be written to.
pub(super) fn add(tools: ToolSet, streams: &ActorRef<StreamsMessage>, roots: &Roots) -> ToolSet {
    let name = || ("stream", a("string", "Name of the stream."));
    let open = Tool::new(
        "stream_open",
        "Opens a stream of text items from one producer to many readers.",
        object(
            [
                name(),
                (
                    "replay",
                    a("integer", "Number of past items that new readers receive."),
                ),
            ],
            &["stream"],
        ),
    );
    let write = Tool::new(
        "stream_write",
        "Writes an item; returns once every reader has space for it.",
        object(
            [name(), ("text", a("string", "The item."))],
            &["stream", "text"],
        ),
    )
    .with_output(object(
        [(
            "readers",
            a("integer", "Number of readers that receive the item."),
        )],
        &["readers"],
    ));
    let why = "Error message; without it the stream ends normally.";
    let end = Tool::new(
        "stream_end",
        "Closes a stream.",
        object([name(), ("error", a("string", why))], &["stream"]),
    );
    let wait = "Time to wait for the next item, in milliseconds; by default 1000.";
    let read = Tool::new(
        "stream_read",
        "Reads a stream: past items and new ones, one block per item, with progress \
         notifications.",
        object(
            [
                name(),
                (
                    "most",
                    a("integer", "Maximum number of items, by default 16."),
                ),
                ("wait_ms", a("integer", wait)),
            ],
            &["stream"],
        ),
    )
    .with_output(object(
        [
            ("count", a("integer", "Number of items returned.")),
            ("ended", a("boolean", "`true` if the stream has ended.")),
            (
                "failed",
                a("boolean", "`true` if the stream ended with an error."),
            ),
        ],
        &["count", "ended", "failed"],
    ));
    let about = "Lists the open streams, as JSON.";
    let listed = Tool::new("stream_list", about, object([], &[]));
    let tools = verb(tools, streams, open.with_effect(ToolEffect::Adds), begin);
    let tools = verb(tools, streams, write.with_effect(ToolEffect::Adds), put);
    let tools = verb(tools, streams, end, finish);
    let tools = verb(tools, streams, read.with_effect(ToolEffect::Reads), take);
    let tools = verb(tools, streams, listed.with_effect(ToolEffect::Reads), all);
    match roots.iter().all(|root| root.read_only) {
        true => tools,
        false => file::add(tools, streams, roots),
    }
}

type StreamsRef = ActorRef<StreamsMessage>;

/// The address of the actor of streams.
const STREAMS: &str = "/tools/streams";

fn verb<F>(
    tools: ToolSet,
    streams: &StreamsRef,
    tool: Tool,
    run: fn(StreamsRef, ToolRequest) -> F,
) -> ToolSet
where
    F: Future<Output = Result<ToolOutput, Fault>> + Send + 'static,
{
    let streams = streams.clone();
    tools.register(tool, move |call| {
        let streams = streams.clone();
        async move {
            call.caller.check_address(&Operation::CALL_TOOL, STREAMS)?;
            run(streams, call).await
        }
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamOpenParams {
    stream: String,
    replay: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamWriteParams {
    stream: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamEndParams {
    stream: String,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamReadParams {
    stream: String,
    most: Option<usize>,
    wait_ms: Option<u64>,
}

async fn begin(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let StreamOpenParams { stream, replay } = call.parse_arguments()?;
    let text = format!("Opened {stream}.");
    let mut open = OpenStreamRequest::new(stream);
    open.replay = replay;
    ask(&streams, open).await?;
    Ok(ToolOutput::text(text))
}

async fn put(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let StreamWriteParams { stream, text } = call.parse_arguments()?;
    let readers = ask(&streams, PutRequest::text(stream, text)).await?;
    Ok(ToolOutput::structured(json!({ "readers": readers })))
}

async fn finish(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let StreamEndParams { stream, error } = call.parse_arguments()?;
    let text = format!("Closed {stream}.");
    match error {
        Some(message) => ask(&streams, FailStreamRequest { stream, message }).await?,
        None => ask(&streams, EndStreamRequest { stream }).await?,
    }
    Ok(ToolOutput::text(text))
}

/// Default and maximum number of pieces in one answer.
const DEFAULT_PIECES: usize = 16;
const MAX_PIECES: usize = 256;

async fn take(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let StreamReadParams {
        stream,
        most,
        wait_ms,
    } = call.parse_arguments()?;
    let most = most.unwrap_or(DEFAULT_PIECES).min(MAX_PIECES);
    let wait = Duration::from_millis(wait_ms.unwrap_or(1000));
    let mut reader = ask(&streams, FollowStreamRequest::new(stream.clone())).await?;
    let (mut pieces, mut answer) = (Vec::new(), ToolOutput::default());
    let (mut ended, mut error) = (false, None);
    while pieces.len() < most && !ended {
        match timeout(wait, reader.recv()).await {
            Err(_) => break,
            Ok(None) => ended = true,
            Ok(Some(Err(why))) => (ended, error) = (true, Some(why.to_string())),
            Ok(Some(Ok(piece))) => {
                let (block, value) = shown(piece, &stream);
                answer.content.push(block);
                pieces.push(value);
                call.progress
                    .report(pieces.len() as f64, None, "item received")
                    .await;
            }
        }
    }
    let facts = json!({ "count": pieces.len(), "ended": ended, "failed": error.is_some() });
    let mut value = json!({ "pieces": pieces, "ended": ended });
    let said = match (error, ended) {
        (Some(error), _) => {
            let said = format!("(ended with an error: {error})");
            value["error"] = Value::String(error);
            said
        }
        (None, true) => "(ended)".to_owned(),
        (None, false) => "(more may follow)".to_owned(),
    };
    let answer = answer.with_text(said).with_structured(facts);
    Ok(answer.with_local_value(value))
}

/// Converts a piece to a block of an answer and to a value.
fn shown(piece: StreamPiece, stream: &str) -> (ToolContent, Value) {
    match piece {
        StreamPiece::Text(text) => {
            let value = json!({ "text": text });
            (ToolContent::Text { text }, value)
        }
        piece => {
            let data = STANDARD.encode(piece.into_payload().bytes);
            let value = json!({ "base64": data });
            let mime = "application/octet-stream".to_owned();
            let uri = format!("strowger:/tools/streams/{stream}");
            (ToolContent::Blob { data, mime, uri }, value)
        }
    }
}

async fn all(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct StreamListParams {}
    let StreamListParams {} = call.parse_arguments()?;
    let list = streams.ask_within(ListStreamsRequest, ASK_TIMEOUT).await;
    let list = list.map_err(|error| Fault::new(FaultCode::Failed, error.to_string()))?;
    Ok(ToolOutput::json(json!({ "streams": list })))
}

async fn ask<R, T>(streams: &StreamsRef, request: R) -> Result<T, Fault>
where
    R: Request<Reply = Result<T, StreamError>>,
    StreamsMessage: Accepts<Ask<R>>,
{
    let answer = streams.ask_within(request, ASK_TIMEOUT).await;
    let answer = answer.map_err(|error| Fault::new(FaultCode::Failed, error.to_string()))?;
    answer.map_err(|error| error.to_fault())
}
