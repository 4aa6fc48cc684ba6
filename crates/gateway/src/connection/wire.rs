//! The two tasks of a connection, which read bytes into frames and write frames as bytes.

use std::sync::{Arc, OnceLock};

use bytes::{Buf as _, BytesMut};
use strowger::{ActorRef, ContentType, Fault, FaultCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Duration, Instant, sleep_until, timeout};

use super::outbox::{Outbox, TakenBytes};
use super::settings::{Admission, ClientStatus};
use crate::access::{Caller, Callers};
use crate::connection::ConnectionMsg;
use crate::frame::{Frame, FrameDecoder, FrameKind};
use crate::limits::Limits;
use crate::unauthenticated::{AdmittedCount, AdmittedSlot};
use crate::websocket::MAX_MESSAGE;

/// Maximum number of frames to pass on at once.
const MAX_BATCH: usize = 512;

/// Maximum payload before the client has authenticated, in bytes.
const MAX_UNAUTHENTICATED_FRAME: usize = 1024;

/// Maximum capacity of the write buffer to keep for reuse, in bytes.
const MAX_KEPT_BUFFER: usize = 16 * 1024;

/// A client before its admission, for which nothing has been done yet.
pub(super) struct PendingClient {
    pub(super) admission: Admission,
    pub(super) status: ClientStatus,
    pub(super) admitted_count: AdmittedCount,
    /// Set once the client is admitted.
    pub(super) admitted: Arc<OnceLock<AdmittedClient>>,
}

/// An admitted client with its slot.
#[derive(Debug)]
pub(super) struct AdmittedClient {
    _slot: AdmittedSlot,
    pub(super) caller: Caller,
}

/// Passes frames to the connection. A full mailbox stops the reading.
pub(super) async fn read(
    from: impl AsyncRead + Unpin,
    limits: Limits,
    pending: PendingClient,
    to: ActorRef<ConnectionMsg>,
) {
    let mut reading = FrameReader {
        from,
        decoder: FrameDecoder::new(limits.frame),
        limiter: RateLimiter::new(limits.rate),
        to,
    };
    let last = match reading.run(&limits, pending).await {
        Ok(()) => ConnectionMsg::Ended,
        Err(fault) => ConnectionMsg::ReadFailed(fault),
    };
    // If this fails, the connection has ended already.
    let _ = reading.to.tell(last).await;
}

struct FrameReader<R> {
    from: R,
    decoder: FrameDecoder,
    limiter: RateLimiter,
    to: ActorRef<ConnectionMsg>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads to the end of the stream.
    async fn run(&mut self, limits: &Limits, pending: PendingClient) -> Result<(), Fault> {
        let caller = match &pending.admission {
            Admission::Owner(owner) => owner.clone(),
            Admission::Tokens(callers) => {
                self.decoder
                    .set_limit(MAX_UNAUTHENTICATED_FRAME.min(limits.frame));
                let caller = match &pending.status {
                    ClientStatus::Admitted(_) => self.authenticate(callers).await?,
                    ClientStatus::Unauthenticated(slot) => tokio::select! {
                        // Bytes that have arrived already are considered first.
                        biased;
                        caller = self.authenticate(callers) => caller?,
                        () = slot.evicted() => {
                            let text = "disconnected in favour of other clients: no token \
                                        received";
                            return Err(Fault::new(FaultCode::Full, text));
                        }
                    },
                };
                self.decoder.set_limit(limits.frame);
                caller
            }
        };
        let most = limits.connections;
        let slot = match pending.status {
            ClientStatus::Admitted(slot) => slot,
            ClientStatus::Unauthenticated(_) => pending
                .admitted_count
                .admit(most)
                .ok_or_else(|| too_many_connections(most))?,
        };
        // Never set before: a connection has one reader.
        let _ = pending.admitted.set(AdmittedClient {
            _slot: slot,
            caller,
        });
        loop {
            let (frames, broken) = self.take_frames();
            let count = frames.len();
            if count > 0 {
                if self.to.tell(ConnectionMsg::Frames(frames)).await.is_err() {
                    return Ok(());
                }
                self.limiter.wait_for(count).await;
            }
            match broken {
                Some(fault) => return Err(fault),
                None if count == MAX_BATCH => {}
                None if self.read_more().await? => {}
                None => return Ok(()),
            }
        }
    }

    /// Waits for the token of the client.
    async fn authenticate(&mut self, callers: &Callers) -> Result<Caller, Fault> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(first)) => {
                    if let Some(caller) = caller_by_token(&first, callers) {
                        return Ok(caller.clone());
                    }
                    let text = match first.kind {
                        FrameKind::Token => "this endpoint does not accept the token".to_owned(),
                        kind => {
                            format!("the first frame is {kind}; this endpoint requires a token")
                        }
                    };
                    return Err(Fault::new(FaultCode::Refused, text));
                }
                Ok(None) => {}
                Err(error) => return Err(Fault::new(FaultCode::Protocol, error.to_string())),
            }
            if !self.read_more().await? {
                let text = "the client disconnected without a token";
                return Err(Fault::new(FaultCode::Refused, text));
            }
        }
    }

    /// Returns the complete frames, and the error that follows them, if any.
    fn take_frames(&mut self) -> (Vec<Frame>, Option<Fault>) {
        let mut frames = Vec::new();
        while frames.len() < MAX_BATCH {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    let fault = Fault::new(FaultCode::Protocol, error.to_string());
                    return (frames, Some(fault));
                }
            }
        }
        (frames, None)
    }

    /// Reads more bytes. Returns `false` at the end of the stream.
    async fn read_more(&mut self) -> Result<bool, Fault> {
        match self.from.read_buf(self.decoder.buffer()).await {
            Ok(1..) => Ok(true),
            Ok(0) => match self.decoder.finish() {
                Ok(()) => Ok(false),
                Err(error) => Err(Fault::new(FaultCode::Protocol, error.to_string())),
            },
            Err(error) => {
                tracing::debug!(%error, "client disconnected");
                Ok(false)
            }
        }
    }
}

/// The fault for a client beyond the maximum number of connections.
pub(crate) fn too_many_connections(most: usize) -> Fault {
    let text = format!("{most} connections open, which is the limit");
    Fault::new(FaultCode::Full, text)
}

/// Returns the caller with the token in a frame.
fn caller_by_token<'a>(frame: &Frame, callers: &'a Callers) -> Option<&'a Caller> {
    if frame.kind != FrameKind::Token || frame.content != ContentType::Text {
        return None;
    }
    callers.find(&frame.payload)
}

/// A rate limiter for frames.
struct RateLimiter {
    interval: Duration,
    /// The arrival time of the last frame if frames had arrived at exactly the permitted rate.
    arrival: Instant,
}

/// Time by which a client may be ahead of the permitted rate.
const MAX_AHEAD: Duration = Duration::from_millis(100);

impl RateLimiter {
    fn new(rate: u32) -> Self {
        Self {
            interval: Duration::from_secs(1) / rate.max(1),
            arrival: Instant::now(),
        }
    }

    /// Waits if this many frames arrived too soon.
    async fn wait_for(&mut self, count: usize) {
        let now = Instant::now();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.arrival = self.arrival.max(now) + self.interval * count;
        if self.arrival > now + MAX_AHEAD {
            sleep_until(self.arrival - MAX_AHEAD).await;
        }
    }
}

/// Writes everything that is buffered, in one go. Ends with the connection, or when the client does
/// not read.
pub(super) async fn write(mut to: impl AsyncWrite + Unpin, limits: Limits, outbox: Arc<Outbox>) {
    let mut bytes = BytesMut::new();
    loop {
        match outbox.take(&mut bytes) {
            TakenBytes::Bytes => {}
            TakenBytes::Nothing => {
                outbox.wait_for_work().await;
                continue;
            }
            TakenBytes::End => break,
        }
        while !bytes.is_empty() {
            let mut next = (&mut bytes).take(MAX_MESSAGE);
            match timeout(limits.stall, to.write_buf(&mut next)).await {
                Ok(Ok(1..)) => {}
                Ok(Ok(0)) => return outbox.disconnect(),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "client disconnected");
                    return outbox.disconnect();
                }
                Err(_) => {
                    tracing::debug!(stall = ?limits.stall, "client does not read");
                    return outbox.disconnect();
                }
            }
        }
        // A WebSocket stream buffers written bytes until it is flushed.
        match timeout(limits.stall, to.flush()).await {
            Ok(Ok(())) => {}
            _ => return outbox.disconnect(),
        }
        if bytes.capacity() > MAX_KEPT_BUFFER {
            bytes = BytesMut::new();
        }
    }
    // All bytes are written; failing to shut down a closed connection does no harm.
    let _ = timeout(limits.stall, to.shutdown()).await;
    outbox.disconnect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AuditLog, Role, Token};

    #[tokio::test(start_paused = true)]
    async fn client_above_the_rate_limit_waits() {
        let start = Instant::now();
        let mut limiter = RateLimiter::new(1000);
        limiter.wait_for(100).await;
        assert_eq!(start.elapsed(), Duration::ZERO, "so far it may be ahead");
        limiter.wait_for(1000).await;
        let waited = start.elapsed().as_millis();
        assert!((1000..=1001).contains(&waited), "{waited}");
        tokio::time::advance(Duration::from_secs(60)).await;
        let rested = Instant::now();
        limiter.wait_for(100).await;
        assert_eq!(rested.elapsed(), Duration::ZERO, "rest is not saved up");
        limiter.wait_for(100).await;
        let waited = rested.elapsed().as_millis();
        assert!((100..=101).contains(&waited), "{waited}");
    }

    #[test]
    fn token_matches_only_as_a_whole() {
        let tokens = [
            Token::new("first", Role::Viewer, "secret"),
            Token::new("second", Role::Agent, "another"),
        ];
        let callers = Callers::new(&tokens, "tcp", &AuditLog::default());
        let of = |given: &str| {
            let frame =
                Frame::new(FrameKind::Token, 0).with_payload(ContentType::Text, given.to_owned());
            caller_by_token(&frame, &callers).map(|caller| caller.name().to_owned())
        };
        assert_eq!(of("secret").as_deref(), Some("first"));
        assert_eq!(of("another").as_deref(), Some("second"));
        for wrong in [
            "",
            "s",
            "secre",
            "secret!",
            "secretsecret",
            "SECRET",
            "secretanother",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let call = Frame::new(FrameKind::Call, 0).with_payload(ContentType::Text, "secret");
        assert!(caller_by_token(&call, &callers).is_none());
    }
}
