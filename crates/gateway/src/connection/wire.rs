//! The two tasks of a connection: octets to frames, and frames to octets.

use std::sync::{Arc, OnceLock};

use bytes::BytesMut;
use strowger::{ActorRef, Code, Content, Fault};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Duration, Instant, sleep_until, timeout};

use super::desk::{Desk, Taken};
use super::terms::Guest;
use crate::connection::ConnectionMsg;
use crate::frame::{Decoder, Frame, Kind};
use crate::limits::Limits;
use crate::secret::is_same;
use crate::stranger::{Known, LetIn};

/// How many frames are handed on at once, at most.
const BATCH: usize = 512;

/// The longest payload before the client has said who it is.
const STRANGER: usize = 1024;

/// What a writer keeps for the next time, at most, in octets.
const KEPT: usize = 16 * 1024;

/// What a client passes before anything is done for it.
pub(super) struct Gate {
    /// What it has to know.
    pub(super) token: Option<Arc<str>>,
    pub(super) guest: Guest,
    pub(super) known: Known,
    /// Where its place is put once it was let in.
    pub(super) let_in: Arc<OnceLock<LetIn>>,
}

/// Hands frames to the connection, in turn: its full mailbox stops the reading.
pub(super) async fn read(
    from: impl AsyncRead + Unpin,
    limits: Limits,
    gate: Gate,
    to: ActorRef<ConnectionMsg>,
) {
    let mut reading = Reading {
        from,
        decoder: Decoder::new(limits.frame),
        pace: Pace::new(limits.rate),
        to,
    };
    let last = match reading.run(&limits, gate).await {
        Ok(()) => ConnectionMsg::Ended,
        Err(fault) => ConnectionMsg::Over(fault),
    };
    // Whoever would be told has ended, if this fails.
    let _ = reading.to.tell(last).await;
}

struct Reading<R> {
    from: R,
    decoder: Decoder,
    pace: Pace,
    to: ActorRef<ConnectionMsg>,
}

impl<R: AsyncRead + Unpin> Reading<R> {
    /// Reads to the end.
    async fn run(&mut self, limits: &Limits, gate: Gate) -> Result<(), Fault> {
        if let Some(token) = &gate.token {
            self.decoder.set_limit(STRANGER.min(limits.frame));
            match &gate.guest {
                Guest::LetIn(_) => self.know(token).await?,
                Guest::Stranger(stranger) => tokio::select! {
                    known = self.know(token) => known?,
                    () = stranger.turned_out() => {
                        let text = "others wait, and no token came";
                        return Err(Fault::new(Code::Full, text));
                    }
                },
            }
            self.decoder.set_limit(limits.frame);
        }
        let most = limits.connections;
        let let_in = match gate.guest {
            Guest::LetIn(let_in) => let_in,
            Guest::Stranger(_) => gate.known.enter(most).ok_or_else(|| full(most))?,
        };
        // It is set once: a connection has one reader.
        let _ = gate.let_in.set(let_in);
        loop {
            let (frames, broken) = self.ready();
            let count = frames.len();
            if count > 0 {
                if self.to.tell(ConnectionMsg::Frames(frames)).await.is_err() {
                    return Ok(());
                }
                self.pace.keep(count).await;
            }
            match broken {
                Some(fault) => return Err(fault),
                None if count == BATCH => {}
                None if self.more().await? => {}
                None => return Ok(()),
            }
        }
    }

    /// Has the client say who it is.
    async fn know(&mut self, token: &str) -> Result<(), Fault> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(first)) if is_token(&first, token) => return Ok(()),
                Ok(Some(first)) => {
                    let text = match first.kind {
                        Kind::Token => "the token is not that of this door".to_owned(),
                        kind => format!("the first frame is {kind}; this door wants a token"),
                    };
                    return Err(Fault::new(Code::Refused, text));
                }
                Ok(None) => {}
                Err(error) => return Err(Fault::new(Code::Protocol, error.to_string())),
            }
            if !self.more().await? {
                let text = "the client left without a token";
                return Err(Fault::new(Code::Refused, text));
            }
        }
    }

    /// The frames that are there, and what is wrong after them.
    fn ready(&mut self) -> (Vec<Frame>, Option<Fault>) {
        let mut frames = Vec::new();
        while frames.len() < BATCH {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    let fault = Fault::new(Code::Protocol, error.to_string());
                    return (frames, Some(fault));
                }
            }
        }
        (frames, None)
    }

    /// Reads octets; false at the end.
    async fn more(&mut self) -> Result<bool, Fault> {
        match self.from.read_buf(self.decoder.buffer()).await {
            Ok(1..) => Ok(true),
            Ok(0) => match self.decoder.finish() {
                Ok(()) => Ok(false),
                Err(error) => Err(Fault::new(Code::Protocol, error.to_string())),
            },
            Err(error) => {
                tracing::debug!(%error, "a client has gone");
                Ok(false)
            }
        }
    }
}

/// Nobody else is let in.
pub(crate) fn full(most: usize) -> Fault {
    let text = format!("{most} connections are open, which is the limit");
    Fault::new(Code::Full, text)
}

/// Whether a frame has the token.
fn is_token(frame: &Frame, token: &str) -> bool {
    if frame.kind != Kind::Token || frame.content != Content::Text {
        return false;
    }
    is_same(&frame.payload, token.as_bytes())
}

/// Keeps a client to so many frames in a second.
struct Pace {
    each: Duration,
    /// When the frames that came would have come, had they come evenly.
    even: Instant,
}

/// How far a client may be ahead of its pace.
const AHEAD: Duration = Duration::from_millis(100);

impl Pace {
    fn new(rate: u32) -> Self {
        Self {
            each: Duration::from_secs(1) / rate.max(1),
            even: Instant::now(),
        }
    }

    /// Waits if so many frames came too soon.
    async fn keep(&mut self, count: usize) {
        let now = Instant::now();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.even = self.even.max(now) + self.each * count;
        if self.even > now + AHEAD {
            sleep_until(self.even - AHEAD).await;
        }
    }
}

/// Writes what waits, all at once; ends with the connection, or with a client that does not read.
pub(super) async fn write(mut to: impl AsyncWrite + Unpin, limits: Limits, desk: Arc<Desk>) {
    let mut octets = BytesMut::new();
    loop {
        match desk.take(&mut octets) {
            Taken::Octets => {}
            Taken::Nothing => {
                desk.some_work().await;
                continue;
            }
            Taken::End => break,
        }
        while !octets.is_empty() {
            match timeout(limits.stall, to.write_buf(&mut octets)).await {
                Ok(Ok(1..)) => {}
                Ok(Ok(0)) => return desk.gone(),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a client has gone");
                    return desk.gone();
                }
                Err(_) => {
                    tracing::debug!(stall = ?limits.stall, "a client does not read");
                    return desk.gone();
                }
            }
        }
        // What speaks WebSocket keeps what it has not written.
        match timeout(limits.stall, to.flush()).await {
            Ok(Ok(())) => {}
            _ => return desk.gone(),
        }
        if octets.capacity() > KEPT {
            octets = BytesMut::new();
        }
    }
    // What was written is on its way; a client that has gone needs no goodbye.
    let _ = timeout(limits.stall, to.shutdown()).await;
    desk.gone();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_beyond_its_pace_waits() {
        let start = Instant::now();
        let mut pace = Pace::new(1000);
        pace.keep(100).await;
        assert_eq!(start.elapsed(), Duration::ZERO, "so far it may be ahead");
        pace.keep(1000).await;
        let waited = start.elapsed().as_millis();
        assert!((1000..=1001).contains(&waited), "{waited}");
        tokio::time::advance(Duration::from_secs(60)).await;
        let rested = Instant::now();
        pace.keep(100).await;
        assert_eq!(rested.elapsed(), Duration::ZERO, "rest is not saved up");
        pace.keep(100).await;
        let waited = rested.elapsed().as_millis();
        assert!((100..=101).contains(&waited), "{waited}");
    }

    #[test]
    fn a_token_is_right_as_a_whole_or_not_at_all() {
        let is = |given: &str, token: &str| {
            let frame = Frame::new(Kind::Token, 0).with_payload(Content::Text, given.to_owned());
            is_token(&frame, token)
        };
        assert!(is("secret", "secret"));
        for wrong in ["", "s", "secre", "secret!", "secretsecret", "SECRET"] {
            assert!(!is(wrong, "secret"), "{wrong}");
        }
        let call = Frame::new(Kind::Call, 0).with_payload(Content::Text, "secret");
        assert!(!is_token(&call, "secret"));
    }
}
