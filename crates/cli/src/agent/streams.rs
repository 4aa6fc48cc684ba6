//! Streams of a node: to write to, to read from.

mod file;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Accepts, ActorRef, Ask, Code, Fault, Request};
use strowger_gateway::{McpAnswer, McpCall, McpEffect, McpTool, McpTools};
use strowger_tools::{
    EndStream, FailStream, Follow, ListStreams, OpenStream, Piece, Put, StreamError, StreamsMessage,
};
use tokio::time::timeout;

use super::roots::Roots;
use super::{a, list, object};

/// Adds the verbs of streams; that which writes one to a file if a root may be written to.
pub(super) fn add(tools: McpTools, streams: &ActorRef<StreamsMessage>, roots: &Roots) -> McpTools {
    let name = || ("stream", a("string", "The name of the stream."));
    let open = McpTool::new(
        "stream_open",
        "Begins a stream: pieces of text from one producer to many readers.",
        object(
            [
                name(),
                ("replay", a("integer", "Pieces that later readers get.")),
            ],
            &["stream"],
        ),
    );
    let write = McpTool::new(
        "stream_write",
        "Sends a piece; answered once every reader has room for it.",
        object(
            [name(), ("text", a("string", "The piece."))],
            &["stream", "text"],
        ),
    )
    .with_output(object(
        [("readers", a("integer", "How many get it."))],
        &["readers"],
    ));
    let why = "What went wrong; without it the stream ends in order.";
    let end = McpTool::new(
        "stream_end",
        "Ends a stream.",
        object([name(), ("error", a("string", why))], &["stream"]),
    );
    let piece = json!({ "type": "object" });
    let wait = "Milliseconds to wait for the next piece; 1000 if it is left out.";
    let read = McpTool::new(
        "stream_read",
        "Reads a stream: its last pieces and those that come, with progress for each.",
        object(
            [
                name(),
                (
                    "most",
                    a("integer", "How many pieces at most; 16 if it is left out."),
                ),
                ("wait_ms", a("integer", wait)),
            ],
            &["stream"],
        ),
    )
    .with_output(object(
        [
            ("pieces", list(&piece, "Each with `text` or `base64`.")),
            ("ended", a("boolean", "There is no more.")),
            ("error", a("string", "Why it ended, if not in order.")),
        ],
        &["pieces", "ended"],
    ));
    let listed =
        McpTool::new("stream_list", "Lists the streams.", object([], &[])).with_output(object(
            [("streams", list(&piece, "Those that have not ended."))],
            &["streams"],
        ));
    let tools = verb(tools, streams, open.with_effect(McpEffect::Adds), begin);
    let tools = verb(tools, streams, write.with_effect(McpEffect::Adds), put);
    let tools = verb(tools, streams, end, finish);
    let tools = verb(tools, streams, read.with_effect(McpEffect::Reads), take);
    let tools = verb(tools, streams, listed.with_effect(McpEffect::Reads), all);
    match roots.iter().all(|root| root.read_only) {
        true => tools,
        false => file::add(tools, streams, roots),
    }
}

type Streams = ActorRef<StreamsMessage>;

fn verb<F>(
    tools: McpTools,
    streams: &Streams,
    tool: McpTool,
    run: fn(Streams, McpCall) -> F,
) -> McpTools
where
    F: Future<Output = Result<McpAnswer, Fault>> + Send + 'static,
{
    let streams = streams.clone();
    tools.register(tool, move |call| run(streams.clone(), call))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    stream: String,
    replay: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    stream: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    stream: String,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Take {
    stream: String,
    most: Option<usize>,
    wait_ms: Option<u64>,
}

async fn begin(streams: Streams, call: McpCall) -> Result<McpAnswer, Fault> {
    let Begin { stream, replay } = call.read()?;
    let text = format!("{stream} has begun.");
    let mut open = OpenStream::new(stream);
    open.replay = replay;
    ask(&streams, open).await?;
    Ok(McpAnswer::text(text))
}

async fn put(streams: Streams, call: McpCall) -> Result<McpAnswer, Fault> {
    let Write { stream, text } = call.read()?;
    let readers = ask(&streams, Put::text(stream, text)).await?;
    Ok(McpAnswer::of(json!({ "readers": readers })))
}

async fn finish(streams: Streams, call: McpCall) -> Result<McpAnswer, Fault> {
    let End { stream, error } = call.read()?;
    let text = format!("{stream} has ended.");
    match error {
        Some(message) => ask(&streams, FailStream { stream, message }).await?,
        None => ask(&streams, EndStream { stream }).await?,
    }
    Ok(McpAnswer::text(text))
}

/// Pieces of one answer, unless it is said, and at most.
const PIECES: usize = 16;
const MOST: usize = 256;

async fn take(streams: Streams, call: McpCall) -> Result<McpAnswer, Fault> {
    let Take {
        stream,
        most,
        wait_ms,
    } = call.read()?;
    let most = most.unwrap_or(PIECES).min(MOST);
    let wait = Duration::from_millis(wait_ms.unwrap_or(1000));
    let mut reader = ask(&streams, Follow::new(stream)).await?;
    let (mut pieces, mut texts) = (Vec::new(), String::new());
    let (mut ended, mut error) = (false, None);
    while pieces.len() < most && !ended {
        match timeout(wait, reader.recv()).await {
            Err(_) => break,
            Ok(None) => ended = true,
            Ok(Some(Err(why))) => (ended, error) = (true, Some(why.to_string())),
            Ok(Some(Ok(piece))) => {
                pieces.push(shown(piece, &mut texts));
                call.progress
                    .tell(pieces.len() as f64, None, "a piece came")
                    .await;
            }
        }
    }
    let mut answer = json!({ "pieces": pieces, "ended": ended });
    if let Some(error) = error {
        texts.push_str(&format!("\n({error})"));
        answer["error"] = Value::String(error);
    }
    Ok(McpAnswer::text(texts).with_structured(answer))
}

fn shown(piece: Piece, texts: &mut String) -> Value {
    match piece {
        Piece::Text(text) => {
            texts.push_str(&text);
            json!({ "text": text })
        }
        piece => {
            let octets = piece.into_payload().octets;
            texts.push_str(&format!("({} octets)", octets.len()));
            json!({ "base64": STANDARD.encode(octets) })
        }
    }
}

async fn all(streams: Streams, call: McpCall) -> Result<McpAnswer, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let Nothing {} = call.read()?;
    let list = streams.ask_within(ListStreams, LONG).await;
    let list = list.map_err(|error| Fault::new(Code::Failed, error.to_string()))?;
    Ok(McpAnswer::of(json!({ "streams": list })))
}

/// Calls have a deadline of their own, which ends what they ask.
const LONG: Duration = Duration::from_secs(24 * 3600);

async fn ask<R, T>(streams: &Streams, request: R) -> Result<T, Fault>
where
    R: Request<Reply = Result<T, StreamError>>,
    StreamsMessage: Accepts<Ask<R>>,
{
    let answer = streams.ask_within(request, LONG).await;
    let answer = answer.map_err(|error| Fault::new(Code::Failed, error.to_string()))?;
    answer.map_err(|error| error.to_fault())
}
