//! The external interface of a streams actor: message names and their payloads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use strowger::{Export, Fault, FaultCode, Payload, Request};

use super::message::{
    EndStreamRequest, FailStreamRequest, FollowStreamRequest, ListStreamsRequest,
    OpenStreamRequest, PutRequest, StreamError, StreamPiece,
};
use super::{Streams, StreamsMessage};

impl Streams {
    /// The messages that the actor accepts from external callers.
    ///
    /// | message | payload | answer |
    /// |---|---|---|
    /// | `open` | `{stream, replay?}` | nothing |
    /// | `put` | `{stream, text or base64}` | `{readers}`, once all of them have room |
    /// | `end` | `{stream}` | nothing |
    /// | `fail` | `{stream, message}` | nothing |
    /// | `follow` | `{stream, window?}` | the pieces, as a stream of text and binary payloads |
    /// | `list` | none | `[{name, readers, pieces, bytes, disconnected, waiting}]` |
    ///
    /// If an external producer disappears, its stream fails after
    /// [`idle`](super::StreamLimits::idle).
    pub fn export() -> Export<StreamsMessage> {
        let plain = |outcome: Result<(), StreamError>| {
            outcome.map_err(|error| error.to_fault())?;
            Ok(Payload::EMPTY)
        };
        let taken = |outcome: <PutRequest as Request>::Reply| {
            let readers = outcome.map_err(|error| error.to_fault())?;
            Payload::from_json(&json!({ "readers": readers }))
        };
        let reader = |outcome: <FollowStreamRequest as Request>::Reply| {
            outcome.map_err(|error| error.to_fault())
        };
        let piece = |piece: StreamPiece, _| Ok(piece.into_payload());
        let open = |payload: &Payload| payload.decode::<OpenPayload>().map(OpenPayload::open);
        let put = |payload: &Payload| payload.decode::<PutPayload>()?.put();
        Export::new()
            .ask_with("open", open, plain)
            .ask_with("put", put, taken)
            .ask_with("end", Payload::decode::<EndStreamRequest>, plain)
            .ask_with("fail", Payload::decode::<FailStreamRequest>, plain)
            .stream_with(
                "follow",
                Payload::decode::<FollowStreamRequest>,
                reader,
                piece,
            )
            .ask::<ListStreamsRequest>("list")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenPayload {
    stream: String,
    #[serde(default)]
    replay: Option<usize>,
}

impl OpenPayload {
    fn open(self) -> OpenStreamRequest {
        OpenStreamRequest {
            stream: self.stream,
            replay: self.replay,
            producer: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutPayload {
    stream: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
}

impl PutPayload {
    fn put(self) -> Result<PutRequest, Fault> {
        let bad = |what: &str| Fault::new(FaultCode::BadRequest, format!("payload: {what}"));
        let piece = match (self.text, self.base64) {
            (Some(text), None) => StreamPiece::Text(text),
            (None, Some(base64)) => match STANDARD.decode(base64) {
                Ok(bytes) => StreamPiece::Bytes(bytes.into()),
                Err(error) => return Err(bad(&format!("`base64`: {error}"))),
            },
            _ => return Err(bad("needs either `text` or `base64`")),
        };
        Ok(PutRequest {
            stream: self.stream,
            piece,
        })
    }
}
