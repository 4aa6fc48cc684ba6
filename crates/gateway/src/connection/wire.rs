//! The two tasks of a connection: octets to frames, and frames to octets.

use bytes::BytesMut;
use strowger::ActorRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::connection::ConnectionMsg;
use crate::frame::{Decoder, Frame};
use crate::limits::Limits;

/// How many octets are written at once, about.
const BATCH: usize = 64 * 1024;

/// Hands frames to the connection, in turn: its full mailbox stops the reading.
pub(super) async fn read(
    mut from: impl AsyncRead + Unpin,
    limit: usize,
    to: ActorRef<ConnectionMsg>,
) {
    let mut decoder = Decoder::new(limit);
    let last = loop {
        match decoder.next_frame() {
            Ok(Some(frame)) => {
                if to.tell(ConnectionMsg::Frame(frame)).await.is_err() {
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => break ConnectionMsg::Broken(error),
        }
        match from.read_buf(decoder.buffer()).await {
            Ok(1..) => {}
            Ok(0) => {
                break match decoder.finish() {
                    Ok(()) => ConnectionMsg::Ended,
                    Err(error) => ConnectionMsg::Broken(error),
                };
            }
            Err(_) => break ConnectionMsg::Ended,
        }
    };
    // Whoever would be told has ended, if this fails.
    let _ = to.tell(last).await;
}

/// Writes what waits, all at once; ends with its senders, or with a client that does not read.
pub(super) async fn write(
    mut to: impl AsyncWrite + Unpin,
    limits: Limits,
    mut unwritten: mpsc::Receiver<Frame>,
) {
    let mut octets = BytesMut::new();
    while let Some(frame) = unwritten.recv().await {
        octets.clear();
        let mut next = Some(frame);
        while let Some(frame) = next.take() {
            if let Err(error) = frame.encode_into(limits.frame, &mut octets) {
                tracing::warn!(%error, "a frame of our own is too long");
            }
            if octets.len() < BATCH {
                next = unwritten.try_recv().ok();
            }
        }
        match timeout(limits.stall, to.write_all(&octets)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "a client has gone");
                return;
            }
            Err(_) => {
                tracing::debug!(stall = ?limits.stall, "a client does not read");
                return;
            }
        }
    }
    // What was written is on its way; a client that has gone needs no goodbye.
    let _ = timeout(limits.stall, to.shutdown()).await;
}
