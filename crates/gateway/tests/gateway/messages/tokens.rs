//! Addresses other than the Unix socket require the token.

use std::time::Duration;

use serde_json::json;
use strowger::{ActorSystem, ContentType};
use strowger_gateway::OpenError;
use strowger_gateway::access::{Role, Token};
use strowger_gateway::client::Client;
use strowger_gateway::frame::{Frame, FrameKind};
use strowger_gateway::listeners::{Listeners, ListenersSpec};

use crate::messages::raw::RawClient;
use crate::messages::{Node, TOKEN, node};

async fn start_with_tokens(change: impl FnOnce(&mut ListenersSpec)) -> Node {
    node(|spec| {
        spec.tcp = Some("127.0.0.1:0".parse().expect("an address"));
        spec.tokens = vec![Token::new("test", Role::Operator, TOKEN)];
        change(spec);
    })
    .await
}

#[tokio::test]
async fn valid_token_is_accepted() {
    let node = start_with_tokens(|_| {}).await;
    let address = node.listeners.tcp_address().expect("it was asked for");
    let mut client = Client::connect_tcp(address, TOKEN)
        .await
        .expect("it listens");
    assert_eq!(
        client
            .call("@(clerk) add", json!(1))
            .await
            .expect("it answers"),
        1
    );
    // The socket belongs to its owner, and needs no token.
    let mut client = node.client().await;
    assert_eq!(
        client
            .call("@(clerk) add", json!(1))
            .await
            .expect("it answers"),
        2
    );
}

#[tokio::test]
async fn invalid_or_missing_token_is_refused() {
    let node = start_with_tokens(|_| {}).await;
    let address = node.listeners.tcp_address().expect("it was asked for");
    for token in [
        "",
        "sixteen-octets-y",
        "sixteen-octets",
        "sixteen-octets-xx",
    ] {
        let mut raw = RawClient::tcp(address).await;
        raw.send(Frame::new(FrameKind::Token, 0).with_payload(ContentType::Text, token.to_owned()))
            .await;
        raw.is_ended("refused", "this endpoint does not accept the token")
            .await;
    }
    let mut raw = RawClient::tcp(address).await;
    raw.name(1, "@(clerk) add").await;
    raw.is_ended(
        "refused",
        "the first frame is name; this endpoint requires a token",
    )
    .await;
    let mut raw = RawClient::tcp(address).await;
    raw.send(Frame::new(FrameKind::Token, 0).with_payload(ContentType::Text, "x".repeat(4096)))
        .await;
    raw.is_ended("protocol", "limit is 1024").await;
    let mut raw = RawClient::tcp(address).await;
    raw.shutdown().await;
    raw.is_ended("refused", "disconnected without a token")
        .await;
    assert_eq!(node.clerk.erase().info().handled, 0);
}

#[tokio::test]
async fn silent_unauthenticated_client_is_disconnected() {
    let node = start_with_tokens(|spec| spec.limits.idle = Duration::from_millis(40)).await;
    let mut raw = RawClient::tcp(node.listeners.tcp_address().expect("it was asked for")).await;
    raw.is_ended("idle", "no frame for").await;
}

#[tokio::test]
async fn addresses_must_be_loopback_and_need_a_token() {
    let system = ActorSystem::new("node").expect("inside a runtime");
    let mut spec = ListenersSpec::default();
    spec.tcp = Some("127.0.0.1:0".parse().expect("an address"));
    let refused = Listeners::open(&system, spec.clone()).await;
    assert!(
        matches!(refused, Err(OpenError::NoToken { .. })),
        "{refused:?}"
    );
    spec.tokens = vec![Token::new("test", Role::Operator, TOKEN)];
    spec.tcp = Some("0.0.0.0:0".parse().expect("an address"));
    let refused = Listeners::open(&system, spec).await;
    assert!(
        matches!(refused, Err(OpenError::NotLoopback { .. })),
        "{refused:?}"
    );
}
