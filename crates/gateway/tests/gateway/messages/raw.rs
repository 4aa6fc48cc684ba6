//! A client that writes arbitrary frames.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::Value;
use strowger::ContentType;
use strowger_gateway::frame::{Frame, FrameDecoder, FrameKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// Not part of any claim: it only makes a hanging test end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The longest payload that the client reads or writes.
const LIMIT: usize = 16 << 20;

trait ByteStream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> ByteStream for T {}

pub(crate) struct RawClient {
    stream: Box<dyn ByteStream>,
    decoder: FrameDecoder,
}

impl RawClient {
    pub(crate) async fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).await;
        Self::from_stream(stream.expect("the node listens")).await
    }

    pub(crate) async fn tcp(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await;
        Self::from_stream(stream.expect("the node listens")).await
    }

    async fn from_stream(stream: impl ByteStream + 'static) -> Self {
        let mut raw = Self {
            stream: Box::new(stream),
            decoder: FrameDecoder::new(LIMIT),
        };
        let hello = raw.next().await.expect("as the protocol says");
        assert_eq!(hello.kind, FrameKind::Hello);
        raw
    }

    pub(crate) async fn send(&mut self, frame: Frame) {
        let mut bytes = BytesMut::new();
        frame
            .encode_into(LIMIT, &mut bytes)
            .expect("within the limit");
        self.send_bytes(&bytes).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes).await {
            Ok(()) => {}
            Err(error) => assert!(is_end(error.kind()), "{error}"),
        }
    }

    pub(crate) async fn shutdown(&mut self) {
        self.stream.shutdown().await.expect("the stream is open");
    }

    pub(crate) async fn name(&mut self, target: u32, name: &str) {
        let mut frame =
            Frame::new(FrameKind::Name, 0).with_payload(ContentType::Text, name.to_owned());
        frame.target = target;
        self.send(frame).await;
    }

    pub(crate) async fn call(&mut self, id: u32, target: u32) {
        let mut frame = Frame::new(FrameKind::Call, id);
        frame.target = target;
        self.send(frame).await;
    }

    /// The next frame; `None` when the node has closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let next = async {
            loop {
                if let Some(frame) = self.decoder.next_frame().expect("as the protocol says") {
                    return Some(frame);
                }
                let mut bytes = [0; 4096];
                match self.stream.read(&mut bytes).await {
                    Ok(0) => return None,
                    Ok(n) => self.decoder.feed(&bytes[..n]),
                    Err(error) if is_end(error.kind()) => return None,
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let next = tokio::time::timeout(PATIENCE, next).await;
        next.expect("the node answers or closes")
    }

    /// The answer to a call.
    pub(crate) async fn done(&mut self, id: u32) -> Value {
        let frame = self.next().await.expect("a frame");
        assert_eq!((frame.kind, frame.id), (FrameKind::Done, id), "{frame:?}");
        frame.into_payload().decode().expect("JSON")
    }

    /// Calls, and returns the answer.
    pub(crate) async fn ask(&mut self, id: u32, target: u32) -> Value {
        self.call(id, target).await;
        self.done(id).await
    }

    /// The next item of a call.
    pub(crate) async fn item(&mut self, id: u32) -> Value {
        let frame = self.next().await.expect("a frame");
        assert_eq!((frame.kind, frame.id), (FrameKind::Item, id), "{frame:?}");
        frame.into_payload().decode().expect("JSON")
    }

    pub(crate) async fn error(&mut self) -> (u32, String, String) {
        let frame = self.next().await.expect("a frame");
        assert_eq!(frame.kind, FrameKind::Error, "{frame:?}");
        let error: Value = serde_json::from_slice(&frame.payload).expect("JSON");
        let text = |key: &str| error[key].as_str().expect("text").to_owned();
        (frame.id, text("code"), text("message"))
    }

    /// Checks that the connection ends with this error.
    pub(crate) async fn is_ended(&mut self, code: &str, says: &str) {
        let (id, is, message) = self.error().await;
        assert_eq!((id, is.as_str()), (0, code), "{message}");
        assert!(message.contains(says), "{message}");
        assert_eq!(self.next().await, None);
    }
}

fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}
