//! Requests that concern the whole node: PFD management, session sets, and requests of peers beyond
//! their limits.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger_pfcp::association::{Association, AssociationId};
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::{Cause, FSeid, FqCsid, GroupId, Ie, PfcpSessionChangeInfo};
use strowger_pfcp::message::{Body, SessionSetDeletionRequest, SessionSetModificationRequest};
use strowger_pfcp::session::Refusal;
use strowger_pfcp::transaction::TransactionId;
use strowger_pfcp::{
    Frame, Index, Interfaces, MessageType, MessageView, Rejection, Seid, validate,
};

use super::{Endpoint, SessionEntry};
use crate::session::peer_seid;
use crate::store::{SessionRecord, StoreChange, StoredPeer};
use crate::topics::SessionEventKind;

impl Endpoint {
    /// Refuses a request that exceeds a limit of its peer.
    pub(super) fn over_limit(
        &mut self,
        transaction: TransactionId,
        bytes: &Arc<[u8]>,
        overload: &BodyBuilder,
    ) {
        let frame = Frame::decode(bytes).ok();
        let answer = frame.map(|frame| {
            let seid = match frame.header.message_type {
                MessageType::SESSION_ESTABLISHMENT_REQUEST => peer_seid(&frame),
                _ => self.peer_seid_of(transaction, frame.header.seid.unwrap_or_default()),
            };
            let mut body = BodyBuilder::new();
            if frame.header.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST {
                body = body.node(&self.shared.name);
            }
            let body = body.cause(Cause::CONGESTION).bytes(overload.as_slice());
            message(&answer_header(&frame.header, seid), body.as_slice()).unwrap_or_default()
        });
        self.shared.counters.refused(Cause::CONGESTION);
        self.protocol
            .refuse(transaction, answer.unwrap_or_default().into());
    }

    /// Returns the peer's SEID of a session, if the session belongs to the peer that sent the
    /// request.
    fn peer_seid_of(&self, transaction: TransactionId, seid: Seid) -> Option<Seid> {
        let peer = self.protocol.answer_key(transaction)?.peer;
        let entry = self.sessions.get(seid)?;
        let associations = self.protocol.associations();
        let owned = associations.owns(entry.association, peer.ip());
        let record = self.shared.store.session(seid).filter(|_| owned)?;
        Some(record.peer_seid)
    }

    /// Processes a node related request and responds to it.
    pub(super) fn node_request(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        association: AssociationId,
        bytes: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(bytes) else {
            return self.protocol.abandon(now, transaction);
        };
        let done = self.handle_node_request(now, association, &frame);
        let body = match frame.header.message_type {
            MessageType::PFD_MANAGEMENT_REQUEST => BodyBuilder::new(),
            _ => BodyBuilder::new().node(&self.shared.name),
        };
        let body = match &done {
            Ok(()) => body.cause(Cause::REQUEST_ACCEPTED),
            Err(refusal) => {
                self.shared.counters.refused(refusal.cause);
                body.refusal(refusal)
            }
        };
        match message(&answer_header(&frame.header, None), body.as_slice()) {
            Ok(answer) => self.protocol.respond(now, transaction, answer.into()),
            Err(_) => self.protocol.abandon(now, transaction),
        }
    }

    fn handle_node_request(
        &mut self,
        now: Instant,
        association: AssociationId,
        frame: &Frame<'_>,
    ) -> Result<(), Refusal> {
        let mut index = Index::new();
        let unread = |error| match Rejection::of(&error, frame.bytes) {
            Some(rejection) => Refusal::from(rejection),
            None => Refusal::new(Cause::INVALID_LENGTH),
        };
        let view = MessageView::of(frame, &mut index).map_err(unread)?;
        validate(&view, interfaces_of(frame.header.message_type))?;
        match view.to_message().map_err(unread)?.body {
            Body::PfdManagementRequest(_) => {
                let limit = self.shared.config.limits.pfd_bytes;
                let managed = self.shared.pfds.manage(frame, limit);
                let kept = managed.map_err(|_| Refusal::new(Cause::NO_RESOURCES_AVAILABLE))?;
                self.changes.extend(kept);
                Ok(())
            }
            Body::SessionSetDeletionRequest(request) => {
                self.delete_set(association, &request);
                Ok(())
            }
            Body::SessionSetModificationRequest(request) => {
                self.modify_set(now, association, &request)
            }
            _ => Err(Refusal::new(Cause::SERVICE_NOT_SUPPORTED)),
        }
    }

    /// Ends the sessions of the given FQ-CSIDs, TS 29.244 §6.2.10.
    fn delete_set(&mut self, association: AssociationId, request: &SessionSetDeletionRequest) {
        let wanted = |record: &SessionRecord| is_in_sets(record, &request.fq_csids);
        let seids = self.of_association(association, &wanted);
        for record in &seids {
            self.end(record.seid);
        }
        tracing::info!(sessions = seids.len(), "a set of sessions is deleted");
    }

    /// Moves sessions to another CP function, TS 29.244 §6.2.11: the peer with an association from
    /// the address in the request.
    fn modify_set(
        &mut self,
        now: Instant,
        association: AssociationId,
        request: &SessionSetModificationRequest,
    ) -> Result<(), Refusal> {
        let mut moves: Vec<(Arc<SessionRecord>, AssociationId)> = Vec::new();
        for change in &request.pfcp_session_change_infos {
            let to = &change.alternative_smf_pgw_c_ip_address;
            let addresses = [to.ipv4.map(IpAddr::V4), to.ipv6.map(IpAddr::V6)];
            let is_there = |one: &&Association| {
                let mut addresses = addresses.iter().flatten();
                addresses.any(|address| one.is_at(*address))
            };
            let target = self.protocol.associations().iter().find(is_there);
            let target = target.map(|one| one.id);
            let target = target.ok_or_else(|| Refusal::new(Cause::NO_ESTABLISHED_ASSOCIATION))?;
            let wanted = |record: &SessionRecord| matches_change(record, change);
            let records = self.of_association(association, &wanted);
            moves.extend(records.into_iter().map(|record| (record, target)));
        }
        // The pending work of a session would be stored with its previous owner.
        let busy = |(record, _): &(Arc<SessionRecord>, _)| {
            self.pending.values().any(|one| one.seid == record.seid)
        };
        if moves.iter().any(busy) {
            return Err(Refusal::new(Cause::CONGESTION));
        }
        tracing::info!(
            sessions = moves.len(),
            "a set of sessions changes its owner"
        );
        for (record, target) in moves {
            self.move_session(now, &record, target);
        }
        Ok(())
    }

    /// Moves a session to another association, where its actor starts from the stored state.
    /// Reports that the previous owner has not acknowledged are sent to the new one.
    fn move_session(&mut self, now: Instant, record: &SessionRecord, association: AssociationId) {
        let Some(members) = self.association_sessions.get_mut(&association) else {
            return;
        };
        let owner: Arc<StoredPeer> = Arc::clone(members.owner());
        members.count_session();
        let seid = record.seid;
        if let Some(actor) = self.forget(seid).and_then(|entry| entry.actor) {
            actor.stop();
        }
        let moved = SessionRecord {
            owner,
            moved: true,
            ..record.clone()
        };
        let kind = SessionEventKind::OwnerChanged;
        self.shared.topics.session(kind, &moved);
        self.changes.push(StoreChange::Put(Arc::new(moved)));
        let meter = self.shared.meters.lock().get(&seid).cloned();
        if let Some(meter) = meter {
            meter.lock().unanswered(now);
        }
        let entry = SessionEntry {
            actor: None,
            association,
            peer_seid: Seid(0),
            sequence: None,
        };
        self.sessions.insert(seid, entry);
        self.record_peer_seid(record);
        self.unstarted.push(seid);
    }

    /// Returns the sessions of an association that `wanted` selects.
    fn of_association(
        &self,
        association: AssociationId,
        wanted: &dyn Fn(&SessionRecord) -> bool,
    ) -> Vec<Arc<SessionRecord>> {
        let is_its = |record: &SessionRecord| {
            self.sessions
                .get(record.seid)
                .is_some_and(|entry| entry.association == association)
        };
        let picked = |record: &SessionRecord| is_its(record) && wanted(record);
        self.shared.store.sessions(&picked)
    }
}

/// Returns the interfaces on which a message is defined. Validating against all of them requires
/// only the IEs that are mandatory on each.
fn interfaces_of(message_type: MessageType) -> Interfaces {
    let members = message_type.table().map(|table| table.members);
    let on = members.unwrap_or_default().iter().map(|member| member.on);
    on.fold(Interfaces::NONE, Interfaces::with)
}

/// Decodes the IEs of one type that the peer sent about a session.
fn ies_of<T: Ie>(record: &SessionRecord) -> impl Iterator<Item = T> {
    let of_type = record.rules.session_elements();
    of_type
        .filter(|tlv| tlv.ie == T::TYPE)
        .filter_map(|tlv| T::decode(tlv.value).ok())
}

/// Returns `true` if a session belongs to one of the given FQ-CSIDs.
fn is_in_sets(record: &SessionRecord, sets: &[FqCsid]) -> bool {
    ies_of::<FqCsid>(record).any(|own| sets.iter().any(|set| is_same_set(&own, set)))
}

/// Returns `true` if two FQ-CSIDs have the node and at least one CSID in common.
fn is_same_set(one: &FqCsid, other: &FqCsid) -> bool {
    let node = |set: &FqCsid| (set.node_id_type, set.ipv4, set.ipv6, set.other);
    let is_of_other = |number| other.csids.iter().any(|one| one == number);
    node(one) == node(other) && one.csids.iter().any(is_of_other)
}

/// Returns `true` if a change of session sets applies to a session: by its FQ-CSIDs, its Group IDs,
/// or the address of its CP function.
fn matches_change(record: &SessionRecord, change: &PfcpSessionChangeInfo) -> bool {
    if is_in_sets(record, &change.pgw_c_smf_fq_csids) {
        return true;
    }
    if ies_of::<GroupId>(record).any(|own| change.group_ids.contains(&own)) {
        return true;
    }
    let of_address = |own: &FSeid| {
        change.cp_ip_address.iter().any(|address| {
            (own.ipv4.is_some() && own.ipv4 == address.ipv4)
                || (own.ipv6.is_some() && own.ipv6 == address.ipv6)
        })
    };
    ies_of::<FSeid>(record).any(|own| of_address(&own))
}
