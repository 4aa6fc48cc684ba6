//! The byte stream between hyper and the client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client::HttpClientState;
use crate::connection::ByteStream;

/// A connection that only carries responses of this crate.
///
/// hyper answers a head that it cannot parse by itself, with a status and no text. That response is
/// dropped here, and the connection stays open for a better one.
pub(super) struct ClientStream<'a> {
    stream: &'a mut dyn ByteStream,
    client: &'a HttpClientState,
    /// `true` once the end of the stream was held back until the response is written.
    has_ended: bool,
}

impl<'a> ClientStream<'a> {
    pub(super) const fn new(stream: &'a mut dyn ByteStream, client: &'a HttpClientState) -> Self {
        Self {
            stream,
            client,
            has_ended: false,
        }
    }
}

impl AsyncRead for ClientStream<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        ready!(Pin::new(&mut *self.stream).poll_read(cx, to))?;
        let has_ended = to.filled().len() == before;
        // A client that has closed its sending side still gets its response. If an agent closes,
        // the call that it waits for is cancelled.
        self.has_ended = has_ended && self.client.is_responding() && !self.client.is_agent();
        match self.has_ended {
            true => Poll::Pending,
            false => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for ClientStream<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.client.is_responding() {
            true => Pin::new(&mut *self.stream).poll_write(cx, bytes),
            false => Poll::Ready(Ok(bytes.len())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut *self.stream).poll_flush(cx))?;
        // hyper flushes when it has nothing left to write.
        self.client.written();
        if self.has_ended && !self.client.is_responding() {
            // Now hyper may read the end.
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
