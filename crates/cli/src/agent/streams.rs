//! Tools with which agents write and read the streams of a node.

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

use super::page::{BY_ANSWER, BY_OFFSET, json_page, offset_property};
use super::roots::Roots;
use super::{ASK_TIMEOUT, object, scalar};

/// Adds the verbs for streams. The verb that writes a stream to a file is added only if some root
/// may be written to.
pub(super) fn add(tools: ToolSet, streams: &ActorRef<StreamsMessage>, roots: &Roots) -> ToolSet {
    let name = || ("stream", scalar("string", "Name of the stream."));
    let open = Tool::new(
        "stream_open",
        "Opens a stream of text items from one producer to many readers.",
        object(
            [
                name(),
                (
                    "replay",
                    scalar("integer", "Number of past items that new readers receive."),
                ),
            ],
            &["stream"],
        ),
    );
    let write = Tool::new(
        "stream_write",
        "Writes an item; returns once every reader has space for it.",
        object(
            [name(), ("text", scalar("string", "The item."))],
            &["stream", "text"],
        ),
    )
    .with_output(object(
        [(
            "readers",
            scalar("integer", "Number of readers that receive the item."),
        )],
        &["readers"],
    ));
    let why = "Error message; without it the stream ends normally.";
    let end = Tool::new(
        "stream_end",
        "Closes a stream.",
        object([name(), ("error", scalar("string", why))], &["stream"]),
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
                    scalar("integer", "Maximum number of items, by default 16."),
                ),
                ("wait_ms", scalar("integer", wait)),
            ],
            &["stream"],
        ),
    )
    .with_output(object(
        [
            ("count", scalar("integer", "Number of items returned.")),
            (
                "ended",
                scalar("boolean", "`true` if the stream has ended."),
            ),
            (
                "failed",
                scalar("boolean", "`true` if the stream ended with an error."),
            ),
        ],
        &["count", "ended", "failed"],
    ))
    .with_paging(BY_ANSWER);
    let tools = add_verb(
        tools,
        streams,
        open.with_effect(ToolEffect::Adds),
        open_stream,
    );
    let tools = add_verb(
        tools,
        streams,
        write.with_effect(ToolEffect::Adds),
        write_item,
    );
    let tools = add_verb(tools, streams, end, end_stream);
    let tools = add_verb(
        tools,
        streams,
        read.with_effect(ToolEffect::Reads),
        read_items,
    );
    let tools = add_verb(
        tools,
        streams,
        list_tool().with_effect(ToolEffect::Reads),
        list_streams,
    );
    match roots.iter().all(|root| root.read_only) {
        true => tools,
        false => file::add(tools, streams, roots),
    }
}

fn list_tool() -> Tool {
    let input = object([offset_property("streams")], &[]);
    Tool::new("stream_list", "Lists the open streams, as JSON.", input).with_paging(BY_OFFSET)
}

type StreamsRef = ActorRef<StreamsMessage>;

/// The address of the actor of streams.
const STREAMS: &str = "/tools/streams";

fn add_verb<F>(
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

async fn open_stream(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let StreamOpenParams { stream, replay } = call.parse_arguments()?;
    let text = format!("Opened {stream}.");
    let mut open = OpenStreamRequest::new(stream);
    open.replay = replay;
    ask(&streams, open).await?;
    Ok(ToolOutput::text(text))
}

async fn write_item(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let StreamWriteParams { stream, text } = call.parse_arguments()?;
    let readers = ask(&streams, PutRequest::text(stream, text)).await?;
    Ok(ToolOutput::structured(json!({ "readers": readers })))
}

async fn end_stream(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
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

async fn read_items(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
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
                let (block, value) = piece_content(piece, &stream);
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
    let status = match (error, ended) {
        (Some(error), _) => {
            let status = format!("(ended with an error: {error})");
            value["error"] = Value::String(error);
            status
        }
        (None, true) => "(ended)".to_owned(),
        (None, false) => "(more may follow)".to_owned(),
    };
    let answer = answer.with_text(status).with_structured(facts);
    Ok(answer.with_local_value(value))
}

/// Converts a piece to a block of an answer and to a value.
fn piece_content(piece: StreamPiece, stream: &str) -> (ToolContent, Value) {
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

async fn list_streams(streams: StreamsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct StreamListParams {
        offset: Option<usize>,
    }
    let StreamListParams { offset } = call.parse_arguments()?;
    let list = streams.ask_within(ListStreamsRequest, ASK_TIMEOUT).await;
    let list = list.map_err(|error| Fault::new(FaultCode::Failed, error.to_string()))?;
    let list = list.iter().map(|stream| json!(stream)).collect();
    let answer = json_page("streams", list, offset, call.page_size);
    Ok(ToolOutput::json(answer))
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
