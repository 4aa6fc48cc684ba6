//! What a node does while its store is read: it says that it is alive, and keeps what else comes.

use std::net::IpAddr;

use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{Elements, answer_header, message};
use strowger_pfcp::{Frame, MessageType};

use crate::config::NodeConfig;
use crate::socket::{Batch, Inbox, Sockets};

/// Waits for `work`, and answers heartbeats meanwhile, if it is known what to tell. Returns what
/// else came, up to a bound; what is beyond it will be sent again.
pub(super) async fn answering<T>(
    sockets: &Sockets,
    config: &NodeConfig,
    recovery: Option<Recovery>,
    work: impl Future<Output = T>,
) -> (T, Vec<Batch>) {
    let Some(recovery) = recovery else {
        return (work.await, Vec::new());
    };
    let mut kept = Vec::new();
    let receive = async {
        let mut inbox = Inbox::new(config.limits.datagram);
        loop {
            let Some(batch) = sockets.receive(&mut inbox).await else {
                // Reading fails; the endpoint will find out and say so.
                return std::future::pending().await;
            };
            let mut rest = Batch::empty(batch.socket);
            for (peer, octets) in batch.iter() {
                match heartbeat(config, peer.ip(), octets, recovery) {
                    // What the system does not take is asked for again.
                    Some(answer) => _ = sockets.send(batch.socket, peer, &answer),
                    None => rest.push(peer, octets),
                }
            }
            if !rest.is_empty() && kept.len() < KEPT {
                kept.push(rest);
            }
        }
    };
    let work = tokio::select! {
        biased;
        work = work => work,
        never = receive => never,
    };
    (work, kept)
}

/// The answer to a heartbeat of somebody who may speak.
fn heartbeat(
    config: &NodeConfig,
    peer: IpAddr,
    octets: &[u8],
    recovery: Recovery,
) -> Option<Vec<u8>> {
    let frame = Frame::decode(octets).ok()?;
    let is_heartbeat = frame.header.message_type == MessageType::HEARTBEAT_REQUEST;
    // Two messages in one datagram are for the endpoint.
    if !is_heartbeat || frame.octets.len() != octets.len() || !config.allows(peer) {
        return None;
    }
    let body = Elements::new().recovery(recovery);
    message(&answer_header(&frame.header, None), body.as_slice()).ok()
}

/// Batches that are kept, each of at most 64 datagrams.
const KEPT: usize = 64;
