//! Operation while the store is loaded: heartbeats are answered, all other messages are kept.

use std::net::IpAddr;

use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::{Frame, MessageType};

use crate::config::NodeConfig;
use crate::socket::{Batch, ReceiveBuffers, Sockets};

/// Waits for `work` and answers heartbeats meanwhile, provided that the Recovery Time Stamp is
/// known. Returns the other datagrams that arrived, up to a limit; peers retransmit those beyond
/// it.
pub(super) async fn answer_heartbeats_while<T>(
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
        let mut buffers = ReceiveBuffers::new(config.limits.datagram);
        loop {
            let Some(batch) = sockets.receive(&mut buffers).await else {
                // Receiving fails; the endpoint will detect and report that.
                return std::future::pending().await;
            };
            let mut rest = Batch::empty(batch.socket);
            for (peer, bytes) in batch.iter() {
                match heartbeat(config, peer.ip(), bytes, recovery) {
                    // If the system does not accept the response, the peer retransmits.
                    Some(answer) => _ = sockets.send(batch.socket, peer, &answer),
                    None => rest.push(peer, bytes),
                }
            }
            if !rest.is_empty() && kept.len() < MAX_KEPT_BATCHES {
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

/// Returns the response to a heartbeat of an allowed peer.
fn heartbeat(
    config: &NodeConfig,
    peer: IpAddr,
    bytes: &[u8],
    recovery: Recovery,
) -> Option<Vec<u8>> {
    let frame = Frame::decode(bytes).ok()?;
    let is_heartbeat = frame.header.message_type == MessageType::HEARTBEAT_REQUEST;
    // Datagrams that bundle several messages are left to the endpoint.
    if !is_heartbeat || frame.bytes.len() != bytes.len() || !config.allows(peer) {
        return None;
    }
    let body = BodyBuilder::new().recovery(recovery);
    message(&answer_header(&frame.header, None), body.as_slice()).ok()
}

/// The maximum number of kept batches of at most 64 datagrams each.
const MAX_KEPT_BATCHES: usize = 64;
