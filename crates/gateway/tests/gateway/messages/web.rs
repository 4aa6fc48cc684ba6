//! The endpoint for browsers.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use strowger::ContentType;
use strowger_gateway::access::{Role, Token};
use strowger_gateway::frame::{Frame, FrameDecoder, FrameKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::messages::{Node, TOKEN, node};

const PAGE: &str = "https://example.org";

async fn open(
    change: impl FnOnce(&mut strowger_gateway::listeners::ListenersSpec),
) -> (Node, SocketAddr) {
    let node = node(|spec| {
        spec.websocket = Some("127.0.0.1:0".parse().expect("an address"));
        spec.tokens = vec![Token::new("test", Role::Operator, TOKEN)];
        spec.origins = vec![PAGE.to_owned()];
        change(spec);
    })
    .await;
    let address = node
        .listeners
        .websocket_address()
        .expect("it was asked for");
    (node, address)
}

async fn handshake(
    address: SocketAddr,
    origin: Option<&str>,
) -> Result<WebSocketStream<TcpStream>, Error> {
    let stream = TcpStream::connect(address).await.expect("it listens");
    let mut request = format!("ws://{address}/")
        .into_client_request()
        .expect("an address");
    if let Some(origin) = origin {
        let origin = origin.parse().expect("a header");
        request.headers_mut().insert("origin", origin);
    }
    client_async(request, stream)
        .await
        .map(|(socket, _)| socket)
}

pub(crate) struct Page {
    socket: WebSocketStream<TcpStream>,
    decoder: FrameDecoder,
}

impl Page {
    pub(crate) async fn open(address: SocketAddr, origin: Option<&str>) -> Self {
        let socket = handshake(address, origin)
            .await
            .expect("the origin is known");
        let decoder = FrameDecoder::new(1 << 20);
        let mut page = Self { socket, decoder };
        assert_eq!(page.next().await.expect("a frame").kind, FrameKind::Hello);
        page
    }

    pub(crate) async fn send(&mut self, frames: &[Frame]) {
        let mut bytes = BytesMut::new();
        for frame in frames {
            frame
                .encode_into(1 << 20, &mut bytes)
                .expect("within the limit");
        }
        // Splits the bytes inside a frame.
        let rest = bytes.split_off(bytes.len() / 2 + 1);
        for part in [bytes, rest] {
            let message = Message::Binary(part.freeze());
            self.socket.send(message).await.expect("it is open");
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("frames") {
                return Some(frame);
            }
            match self.socket.next().await {
                Some(Ok(Message::Binary(bytes))) => self.decoder.feed(&bytes),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }
}

fn token(text: &str) -> Frame {
    Frame::new(FrameKind::Token, 0).with_payload(ContentType::Text, text.to_owned())
}

fn add(id: u32, more: u32) -> [Frame; 2] {
    let mut name = Frame::new(FrameKind::Name, 0).with_payload(ContentType::Text, "@(clerk) add");
    name.target = 1;
    let mut call = Frame::new(FrameKind::Call, id).with_json(&json!(more));
    call.target = 1;
    [name, call]
}

#[tokio::test]
async fn page_with_an_allowed_origin_asks_an_actor() {
    let (_node, address) = open(|_| {}).await;
    for (origin, sum) in [(Some(PAGE), 3), (None, 6)] {
        let mut page = Page::open(address, origin).await;
        let [name, call] = add(1, 3);
        page.send(&[token(TOKEN), name, call]).await;
        let done = page.next().await.expect("it answers");
        assert_eq!(done.kind, FrameKind::Done);
        assert_eq!(done.into_payload().decode::<u64>().expect("a number"), sum);
    }
}

#[tokio::test]
async fn page_with_another_origin_is_refused() {
    let (node, address) = open(|_| {}).await;
    for origin in [
        "https://example.org.evil",
        "null",
        "http://example.org",
        "https://EXAMPLE.org",
    ] {
        match handshake(address, Some(origin)).await {
            Err(Error::Http(answer)) => assert_eq!(answer.status(), 403, "{origin}"),
            other => panic!("{origin}: {other:?}"),
        }
    }
    assert_eq!(node.clerk.erase().info().handled, 0);
}

#[tokio::test]
async fn page_without_a_token_is_refused() {
    let (_node, address) = open(|_| {}).await;
    let [name, call] = add(1, 3);
    for first in [token("sixteen-octets-y"), name] {
        let mut page = Page::open(address, Some(PAGE)).await;
        page.send(&[first, call.clone()]).await;
        let error = page.next().await.expect("it says why");
        assert_eq!((error.kind, error.id), (FrameKind::Error, 0));
        assert_eq!(page.next().await, None);
    }
}

#[tokio::test]
async fn text_and_oversized_messages_close_the_connection() {
    let (_node, address) = open(|_| {}).await;
    let long = Message::Binary(Bytes::from(vec![0; (1 << 20) + 65_537]));
    for message in [Message::text("hello"), long] {
        let mut page = Page::open(address, Some(PAGE)).await;
        // The endpoint may have closed before all of it was written.
        let _ = page.socket.send(message).await;
        while page.next().await.is_some() {}
    }
}

#[tokio::test]
async fn missing_handshake_times_out() {
    let (_node, address) = open(|spec| spec.limits.idle = Duration::from_millis(50)).await;
    let mut half = TcpStream::connect(address).await.expect("it listens");
    half.write_all(b"GET / HTTP/1.1\r\nUpgrade:")
        .await
        .expect("it is open");
    let mut rest = Vec::new();
    // The connection ends, cleanly or not.
    let _ = half.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "{rest:?}");
}
