//! WebSocket connections for browsers, which carry frames as binary messages.
//!
//! A page of any origin may open a connection to a loopback address, so the origin that a browser
//! sends must be on a list. Other programs send no origin; they need the token, as pages do.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{
    Callback, ErrorResponse, Request, Response,
};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::connection::ByteStream;

/// Maximum size of a message sent, and allowance for messages of a client beyond its longest frame,
/// in bytes.
const MAX_MESSAGE: usize = 64 * 1024;

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
        let told = "this origin is not one of gateway.origins\n".to_owned();
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
    Ok(Box::new(WebSocketBytes {
        inner: upgraded.await?,
        rest: Bytes::new(),
    }))
}

/// A byte stream made of the messages of a connection.
struct WebSocketBytes {
    inner: WebSocketStream<Box<dyn ByteStream>>,
    /// The unread rest of a message.
    rest: Bytes,
}

impl AsyncRead for WebSocketBytes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.rest = bytes,
                Some(Ok(Message::Text(_))) => {
                    let text = "a text message; frames are in binary ones";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(failed(error))),
            }
        }
        let count = self.rest.len().min(to.remaining());
        to.put_slice(&self.rest[..count]);
        self.rest.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocketBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.inner).poll_ready(cx)).map_err(failed)?;
        let count = bytes.len().min(MAX_MESSAGE);
        let message = Message::Binary(Bytes::copy_from_slice(&bytes[..count]));
        Pin::new(&mut self.inner)
            .start_send(message)
            .map_err(failed)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx).map_err(failed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx).map_err(failed)
    }
}

fn failed(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}
