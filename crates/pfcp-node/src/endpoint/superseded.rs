//! Sessions that end because their peer gives their CP F-SEID to another session.
//!
//! A SEID identifies one session at an IP address, and its owner uses it again only after that
//! session is released (TS 29.244 §5.6.2). A peer that establishes another session with the CP
//! F-SEID of a live one therefore does not know the live one any more, as after a deletion whose
//! request was lost: it will neither modify nor delete it, and would take its usage reports for
//! those of the new session. No clause has a cause for this, and a refusal would keep the
//! subscriber out for as long as the node keeps the older session, so the older session ends. Its
//! addresses are free for the new one. A request that arrives late, after a newer one of its peer
//! established the session, must not end it.

use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::{Cause, Interfaces};
use strowger_pfcp::session::Refusal;
use strowger_pfcp::validate::tolerate;
use strowger_pfcp::{Frame, IeType, Index, MessageView, Seid, Sequence};

use super::Endpoint;
use crate::session::peer_seid;
use crate::shared::add;
use crate::store::SessionRecord;

impl Endpoint {
    /// Ends the session whose CP F-SEID an establishment names. Returns the peer's SEID of the new
    /// session, or SEID 0 for a malformed request, which ends nothing.
    ///
    /// A request that is older than the establishment of the live session, by its sequence number,
    /// came late and says nothing about it: it is refused.
    pub(super) fn end_superseded(
        &mut self,
        association: AssociationId,
        frame: &Frame<'_>,
    ) -> Result<Seid, Refusal> {
        let Some(peer_seid) = peer_seid(frame) else {
            return Ok(Seid(0));
        };
        let members = self.association_sessions.get(&association);
        let Some(before) = members.and_then(|members| members.using(peer_seid)) else {
            return Ok(peer_seid);
        };
        // Only here, because the session checks each request anyway.
        if !is_sound(frame) {
            return Ok(Seid(0));
        }
        let mut tlvs = frame.tlvs().map_while(Result::ok);
        let f_seid = tlvs.find(|tlv| tlv.ie == IeType::F_SEID);
        let f_seid = f_seid.map(|tlv| tlv.value);
        let entry = self.sessions.get(before);
        let established = entry.and_then(|entry| entry.sequence);
        let is_late = established.is_some_and(|at| is_older(frame.header.sequence, at));
        if is_late && self.has_f_seid(before, f_seid) {
            tracing::debug!(session = %before, "a late establishment is refused");
            return Err(Refusal::new(Cause::REQUEST_REJECTED));
        }
        self.end_if_superseded(before, f_seid);
        Ok(peer_seid)
    }

    /// Returns `true` if a session has this CP F-SEID. Sessions of one peer may have one SEID at
    /// different addresses, as in a set of SMFs.
    fn has_f_seid(&self, session: Seid, f_seid: Option<&[u8]>) -> bool {
        let record = self.shared.store.session(session);
        let own = record.as_deref().and_then(f_seid_of);
        // A session without a record waits for its establishment.
        own.is_none() || own.as_deref() == f_seid
    }

    /// Ends a session if its CP F-SEID is that of another one.
    pub(super) fn end_if_superseded(&mut self, session: Seid, f_seid: Option<&[u8]>) {
        let Some(entry) = self.sessions.get(session) else {
            return;
        };
        if !self.has_f_seid(session, f_seid) {
            return;
        }
        let peer = self.protocol.associations().get(entry.association);
        add(&self.shared.counters.superseded);
        tracing::warn!(
            %session,
            peer_seid = %entry.peer_seid,
            node = peer.map(|peer| peer.node.to_string()),
            "a peer gave the CP F-SEID of a session to another one; the session is ended, and its \
             unreported usage is lost"
        );
        self.end(session);
    }

    /// Handles a new CP F-SEID of a session.
    pub(super) fn renamed(&mut self, session: Seid) {
        if let Some(record) = self.shared.store.session(session) {
            self.record_peer_seid(&record);
        }
    }

    /// Records the peer's SEID of a session, and ends another session with the same CP F-SEID.
    pub(super) fn record_peer_seid(&mut self, record: &SessionRecord) {
        let Some(entry) = self.sessions.get_mut(record.seid) else {
            return;
        };
        let before = std::mem::replace(&mut entry.peer_seid, record.peer_seid);
        let Some(members) = self.association_sessions.get_mut(&entry.association) else {
            return;
        };
        members.disuse_peer_seid(before, record.seid);
        if let Some(other) = members.use_peer_seid(record.peer_seid, record.seid) {
            self.end_if_superseded(other, f_seid_of(record).as_deref());
        }
    }
}

/// Returns the value of the CP F-SEID of a session.
pub(super) fn f_seid_of(record: &SessionRecord) -> Option<Box<[u8]>> {
    let mut elements = record.rules.session_elements();
    let f_seid = elements.find(|tlv| tlv.ie == IeType::F_SEID)?;
    Some(f_seid.value.into())
}

/// Returns `true` if a sequence number comes before another one of the same peer. They wrap at 24
/// bits, TS 29.244 §7.2.2.2.
fn is_older(number: Sequence, than: Sequence) -> bool {
    let ahead = number.get().wrapping_sub(than.get()) & 0x00ff_ffff;
    ahead > 1 << 23
}

/// Returns `true` if a request is well-formed and complete.
fn is_sound(frame: &Frame<'_>) -> bool {
    let mut index = Index::new();
    MessageView::of(frame, &mut index).is_ok_and(|view| tolerate(&view, Interfaces::ALL).is_ok())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;
    use std::time::Duration;

    use strowger::ActorSystem;
    use strowger_pfcp::association::{NodeName, Recovery};
    use strowger_pfcp::ie::{ApplyAction, CreateFar, CreatePdr, FSeid, NodeId, Pdi};
    use strowger_pfcp::message::SessionEstablishmentRequest;
    use strowger_pfcp::session::{NoAllocator, RuleSet};
    use strowger_pfcp::{Frame, Message, Seid, Sequence, ie::SourceInterface};

    use crate::capture_file::CaptureFile;
    use crate::config::NodeConfig;
    use crate::node::SessionFilter;
    use crate::node::{Node, NodeParts, NodeSetup, NodeState, pool_of};
    use crate::socket::Sockets;
    use crate::store::{MemoryStore, SessionRecord, StoreChange, StoredPeer};

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 7));

    fn record(owner: &Arc<StoredPeer>, seid: u64, f_seid: FSeid) -> StoreChange {
        let peer_seid = Seid(f_seid.seid);
        let pdr = CreatePdr::new(1, Pdi::new(SourceInterface::ACCESS)).far_id(1);
        let body = SessionEstablishmentRequest::new(NodeId::from(PEER), f_seid)
            .create_pdrs([pdr])
            .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
        let bytes = Message::session(Seid(0), Sequence::new(1), body).encode();
        let bytes = bytes.expect("it fits");
        let frame = Frame::decode(&bytes).expect("it is one");
        let change = RuleSet::establish(&frame, &mut NoAllocator).expect("sound");
        StoreChange::Put(Arc::new(SessionRecord {
            seid: Seid(seid),
            peer_seid,
            owner: Arc::clone(owner),
            rules: change.rules,
            kept: Box::default(),
            moved: false,
        }))
    }

    #[tokio::test]
    async fn newest_of_restored_sessions_with_one_cp_f_seid_stays() {
        let owner = Arc::new(StoredPeer {
            node: NodeName::from(PEER),
            address: (PEER, 8805).into(),
            recovery: Recovery(7),
            local: PEER,
        });
        let elsewhere = IpAddr::from([127, 0, 0, 8]);
        let store = MemoryStore::new(1);
        store.apply([
            StoreChange::Associate(Arc::clone(&owner)),
            record(&owner, 1, FSeid::new(Seid(7), PEER)),
            record(&owner, 2, FSeid::new(Seid(8), PEER)),
            record(&owner, 3, FSeid::new(Seid(7), PEER)),
            record(&owner, 4, FSeid::new(Seid(8), elsewhere)),
        ]);
        let system = ActorSystem::new("test").expect("a valid name");
        let config = NodeConfig {
            listen: vec![([127, 0, 0, 1], 0).into()],
            ..NodeConfig::default()
        };
        let sockets = Sockets::bind(&config.listen, config.limits.datagram).await;
        let sockets = sockets.expect("a free port");
        let parts = NodeSetup {
            name: IpAddr::from([127, 0, 0, 1]).into(),
            capture: CaptureFile::default(),
            pool: pool_of(&config, &sockets),
            state: NodeState {
                store: Box::new(store),
                recovery: Recovery(8),
                seed: 1,
                next_seid: 5,
            },
            waiting: Vec::new(),
            host_parts: NodeParts::default(),
            config,
            sockets,
        };
        let node = Node::assemble(&system, parts).await.expect("it starts");
        let left = || {
            let sessions = node.sessions(&SessionFilter::default());
            let seids = sessions.iter().map(|session| session.seid.0);
            seids.collect::<Vec<_>>()
        };
        let ended = async {
            while left() != [2, 3, 4] {
                tokio::task::yield_now().await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        ended.expect("the older one ends");
        assert_eq!(node.stats().superseded, 1);
        system.shutdown(Duration::from_secs(5)).await;
    }
}
