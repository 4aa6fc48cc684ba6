use std::net::SocketAddr;
use std::sync::Arc;

use strowger_pfcp::endpoint::Transmit;

use super::{Batch, MAX_BATCH, ReceiveBuffers, Sockets};

const LOOPBACK: [u8; 4] = [127, 0, 0, 1];
const LIMIT: usize = 100;

async fn sockets() -> (Sockets, SocketAddr) {
    let sockets = Sockets::bind(&[(LOOPBACK, 0).into()], LIMIT).await;
    let sockets = sockets.expect("loopback has a port");
    let address = sockets.address(0);
    (sockets, address)
}

fn transmit(peer: SocketAddr, bytes: Vec<u8>) -> Transmit {
    Transmit {
        peer,
        local: None,
        bytes: Arc::from(bytes),
    }
}

fn bytes(batch: &Batch) -> Vec<Vec<u8>> {
    batch.iter().map(|(_, bytes)| bytes.to_vec()).collect()
}

#[tokio::test]
async fn datagrams_keep_order_and_boundaries() {
    let ((from, sender), (to, receiver)) = (sockets().await, sockets().await);
    // More datagrams than one call receives, and fewer than a batch holds.
    let sent: Vec<_> = (0..40)
        .map(|number| vec![number; usize::from(number)])
        .collect();
    let outgoing: Vec<_> = sent
        .iter()
        .map(|one| transmit(receiver, one.clone()))
        .collect();
    assert_eq!(from.send_all(&outgoing), 0);
    let mut buffers = ReceiveBuffers::new(LIMIT);
    let batch = to.receive(&mut buffers).await.expect("the socket is open");
    assert_eq!(bytes(&batch), sent);
    assert!(batch.iter().all(|(peer, _)| peer == sender));
}

#[tokio::test]
async fn flood_is_batched_and_oversized_datagrams_are_truncated() {
    let ((from, _), (to, receiver)) = (sockets().await, sockets().await);
    let outgoing = vec![transmit(receiver, vec![7; 5 * LIMIT]); 3 * MAX_BATCH / 2];
    assert_eq!(from.send_all(&outgoing), 0);
    let mut buffers = ReceiveBuffers::new(LIMIT);
    let first = to.receive(&mut buffers).await.expect("the socket is open");
    let second = to.receive(&mut buffers).await.expect("the socket is open");
    assert_eq!((first.count(), second.count()), (MAX_BATCH, MAX_BATCH / 2));
    assert!(first.iter().all(|(_, bytes)| bytes.len() == LIMIT + 1));
}

#[tokio::test]
async fn unsendable_datagram_is_counted_and_does_not_block_others() {
    let ((from, _), (to, receiver)) = (sockets().await, sockets().await);
    // Nothing can be sent to port 0.
    let nowhere = SocketAddr::from((LOOPBACK, 0));
    let outgoing = [
        transmit(receiver, vec![1]),
        transmit(nowhere, vec![2]),
        transmit(receiver, vec![3]),
    ];
    assert_eq!(from.send_all(&outgoing), 1);
    let mut buffers = ReceiveBuffers::new(LIMIT);
    let batch = to.receive(&mut buffers).await.expect("the socket is open");
    assert_eq!(bytes(&batch), [[1], [3]]);
}
