//! Tools with which agents write and read the streams of a node.

mod file;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Accepts, ActorRef, Ask, Fault, FaultCode, Request};
use strowger_gateway::{McpAnswer, McpCall, McpContent, McpEffect, McpTool, McpTools, Verb};
use strowger_tools::{
    EndStream, FailStream, Follow, ListStreams, OpenStream, Piece, Put, StreamError, StreamsMessage,
};
use tokio::time::timeout;

use super::roots::Roots;
use super::{ASK_TIMEOUT, object, scalar};

/// Adds the verbs for streams. The verb that writes a stream to a file is added only if some root
/// may be written to.
pub(super) fn add(tools: McpTools, streams: &ActorRef<StreamsMessage>, roots: &Roots) -> McpTools {
    let name = || ("stream", scalar("string", "Name of the stream."));
    let open = McpTool::new(
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
    let write = McpTool::new(
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
    let end = McpTool::new(
        "stream_end",
        "Closes a stream.",
        object([name(), ("error", scalar("string", why))], &["stream"]),
    );
    let wait = "Time to wait for the next item, in milliseconds; by default 1000.";
    let read = McpTool::new(
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
    ));
    let about = "Lists the open streams, as JSON.";
    let listed = McpTool::new("stream_list", about, object([], &[]));
    let tools = add_verb(
        tools,
        streams,
        open.with_effect(McpEffect::Adds),
        open_stream,
    );
    let tools = add_verb(
        tools,
        streams,
        write.with_effect(McpEffect::Adds),
        write_item,
    );
    let tools = add_verb(tools, streams, end, end_stream);
    let tools = add_verb(
        tools,
        streams,
        read.with_effect(McpEffect::Reads),
        read_items,
    );
    let tools = add_verb(
        tools,
        streams,
        listed.with_effect(McpEffect::Reads),
        list_streams,
    );
    match roots.iter().all(|root| root.read_only) {
        true => tools,
        false => file::add(tools, streams, roots),
    }
}

type StreamsRef = ActorRef<StreamsMessage>;

/// The address of the actor of streams.
const STREAMS: &str = "/tools/streams";

fn add_verb<F>(
    tools: McpTools,
    streams: &StreamsRef,
    tool: McpTool,
    run: fn(StreamsRef, McpCall) -> F,
) -> McpTools
where
    F: Future<Output = Result<McpAnswer, Fault>> + Send + 'static,
{
    let streams = streams.clone();
    tools.register(tool, move |call| {
        let streams = streams.clone();
        async move {
            call.caller.reaches(&Verb::CALL, STREAMS)?;
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

async fn open_stream(streams: StreamsRef, call: McpCall) -> Result<McpAnswer, Fault> {
    let StreamOpenParams { stream, replay } = call.read()?;
    let text = format!("Opened {stream}.");
    let mut open = OpenStream::new(stream);
    open.replay = replay;
    ask(&streams, open).await?;
    Ok(McpAnswer::text(text))
}

async fn write_item(streams: StreamsRef, call: McpCall) -> Result<McpAnswer, Fault> {
    let StreamWriteParams { stream, text } = call.read()?;
    let readers = ask(&streams, Put::text(stream, text)).await?;
    Ok(McpAnswer::of(json!({ "readers": readers })))
}

async fn end_stream(streams: StreamsRef, call: McpCall) -> Result<McpAnswer, Fault> {
    let StreamEndParams { stream, error } = call.read()?;
    let text = format!("Closed {stream}.");
    match error {
        Some(message) => ask(&streams, FailStream { stream, message }).await?,
        None => ask(&streams, EndStream { stream }).await?,
    }
    Ok(McpAnswer::text(text))
}

/// Default and maximum number of pieces in one answer.
const DEFAULT_PIECES: usize = 16;
const MAX_PIECES: usize = 256;

async fn read_items(streams: StreamsRef, call: McpCall) -> Result<McpAnswer, Fault> {
    let StreamReadParams {
        stream,
        most,
        wait_ms,
    } = call.read()?;
    let most = most.unwrap_or(DEFAULT_PIECES).min(MAX_PIECES);
    let wait = Duration::from_millis(wait_ms.unwrap_or(1000));
    let mut reader = ask(&streams, Follow::new(stream.clone())).await?;
    let (mut pieces, mut answer) = (Vec::new(), McpAnswer::default());
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
                    .tell(pieces.len() as f64, None, "item received")
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
    let answer = answer.and_text(status).with_structured(facts);
    Ok(answer.with_value_for_code(value))
}

/// Converts a piece to a block of an answer and to a value.
fn piece_content(piece: Piece, stream: &str) -> (McpContent, Value) {
    match piece {
        Piece::Text(text) => {
            let value = json!({ "text": text });
            (McpContent::Text { text }, value)
        }
        piece => {
            let data = STANDARD.encode(piece.into_payload().bytes);
            let value = json!({ "base64": data });
            let mime = "application/octet-stream".to_owned();
            let uri = format!("strowger:/tools/streams/{stream}");
            (McpContent::Blob { data, mime, uri }, value)
        }
    }
}

async fn list_streams(streams: StreamsRef, call: McpCall) -> Result<McpAnswer, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct StreamListParams {}
    let StreamListParams {} = call.read()?;
    let list = streams.ask_within(ListStreams, ASK_TIMEOUT).await;
    let list = list.map_err(|error| Fault::new(FaultCode::Failed, error.to_string()))?;
    Ok(McpAnswer::json(json!({ "streams": list })))
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
