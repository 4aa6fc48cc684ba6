//! WebSocket connections for browsers, which carry frames as binary messages.
//!
//! A page of any origin may open a connection to a loopback address, so the origin that a browser
//! sends must be on a list. Other programs send no origin; they need the token, as pages do.

use std::future::ready;
use std::io;

use bytes::Bytes;
use futures_util::{SinkExt as _, TryStreamExt as _};
use tokio_tungstenite::tungstenite::handshake::server::{
    Callback, ErrorResponse, Request, Response,
};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::io::{CopyToBytes, SinkWriter, StreamReader};

use crate::connection::ByteStream;

/// Maximum size of a message sent, which is what is written at once, and allowance for messages of
/// a client beyond its longest frame, in bytes.
pub(crate) const MAX_MESSAGE: usize = 64 * 1024;

/// The origins of pages that may connect.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins(Vec<String>);

impl Origins {
    pub(crate) const fn new(origins: Vec<String>) -> Self {
        Self(origins)
    }
}

impl Callback for &Origins {
    fn on_request(self, request: &Request, answer: Response) -> Result<Response, ErrorResponse> {
        let Some(origin) = request.headers().get("origin") else {
            return Ok(answer);
        };
        let known = self
            .0
            .iter()
            .any(|known| known.as_bytes() == origin.as_bytes());
        if known {
            return Ok(answer);
        }
        let told = "origin not allowed, see gateway.origins\n".to_owned();
        let mut refused = ErrorResponse::new(Some(told));
        *refused.status_mut() = StatusCode::FORBIDDEN;
        Err(refused)
    }
}

/// Performs the handshake with a client.
pub(crate) async fn handshake(
    stream: Box<dyn ByteStream>,
    origins: &Origins,
    frame: usize,
) -> Result<Box<dyn ByteStream>, Error> {
    let longest = Some(frame.saturating_add(MAX_MESSAGE));
    let config = WebSocketConfig::default()
        .max_message_size(longest)
        .max_frame_size(longest)
        .read_buffer_size(8 * 1024)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * MAX_MESSAGE);
    let upgraded = tokio_tungstenite::accept_hdr_async_with_config(stream, origins, Some(config));
    let messages = upgraded
        .await?
        .with(|bytes| ready(Ok::<_, Error>(Message::Binary(bytes))))
        .sink_map_err(failed)
        .map_err(failed)
        .try_take_while(|message| ready(Ok(!message.is_close())))
        .try_filter_map(|message| ready(frames(message)));
    let bytes = StreamReader::new(CopyToBytes::new(messages));
    Ok(Box::new(SinkWriter::new(bytes)))
}

/// Returns the bytes of a message, if it has frames.
fn frames(message: Message) -> io::Result<Option<Bytes>> {
    match message {
        Message::Binary(bytes) => Ok(Some(bytes)),
        Message::Text(_) => {
            let text = "text message received; frames must be binary messages";
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        }
        _ => Ok(None),
    }
}

fn failed(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}
