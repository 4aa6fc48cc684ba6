//! Setup, refusal and release of associations, TS 29.244 §6.2.6 to §6.2.8.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::answer::{TopLevelElements, cause_of, timer_byte};
use super::receive::{Sender, UnanswerableRequest};
use super::{BodyBuilder, DiscardReason, Endpoint, Event, NodeRequestPurpose, Role};
use crate::association::{AssociationId, NodeName, Recovery, SetupError, SetupOutcome};
use crate::ie::{Cause, IeType};
use crate::message::MessageType;
use crate::transaction::RequestsFull;

impl Endpoint {
    /// Requests an association from a peer. The outcome is [`Event::AssociationUp`] or
    /// [`Event::AssociationFailed`].
    ///
    /// # Errors
    /// Returns [`RequestsFull`] if too many requests are waiting for answers.
    pub fn associate(&mut self, now: Instant, peer: SocketAddr) -> Result<(), RequestsFull> {
        let body = self.identity();
        self.queue_request(
            now,
            peer,
            MessageType::ASSOCIATION_SETUP_REQUEST,
            &body,
            NodeRequestPurpose::Associate,
        )
    }

    /// Requests the peer to release an association. [`Event::ReleaseAnswered`] has the answer of
    /// the peer. The association ends with [`Event::AssociationReleased`], even if the peer refuses
    /// or does not answer.
    ///
    /// # Errors
    /// Returns [`RequestsFull`] if too many requests are waiting for answers.
    pub fn release(
        &mut self,
        now: Instant,
        association: AssociationId,
    ) -> Result<(), RequestsFull> {
        let Some(peer) = self.associations.get(association).map(|one| one.address) else {
            return Ok(());
        };
        let body = BodyBuilder::new().node(&self.config.node);
        let purpose = NodeRequestPurpose::Release(association);
        self.queue_request(
            now,
            peer,
            MessageType::ASSOCIATION_RELEASE_REQUEST,
            &body,
            purpose,
        )
    }

    /// Asks the peer, a control plane node, to initiate the release of an association, within a
    /// time span if one is given: TS 29.244 §6.2.8.3. The peer answers
    /// ([`Event::ReleaseAnswered`]), and releases the association when it sees fit.
    ///
    /// # Errors
    /// Returns [`RequestsFull`] if too many requests are waiting for answers.
    pub fn request_release(
        &mut self,
        now: Instant,
        association: AssociationId,
        within: Option<Duration>,
    ) -> Result<(), RequestsFull> {
        let Some(peer) = self.associations.get(association).map(|one| one.address) else {
            return Ok(());
        };
        let wanted = BodyBuilder::new()
            .node(&self.config.node)
            .with(IeType::PFCP_ASSOCIATION_RELEASE_REQUEST, &[1]);
        let body = match within {
            Some(span) => wanted.with(IeType::GRACEFUL_RELEASE_PERIOD, &[timer_byte(span)]),
            None => wanted,
        };
        let update = MessageType::ASSOCIATION_UPDATE_REQUEST;
        self.queue_request(
            now,
            peer,
            update,
            &body,
            NodeRequestPurpose::Update(association),
        )
    }

    /// Ends an association without asking the peer, which may be gone for good. A peer that is
    /// still there gets Cause 72 to its next request, and sets its association up again.
    pub fn end_association(&mut self, association: AssociationId) {
        self.released(association);
    }

    /// Returns Node ID, Recovery Time Stamp and features, which both setup messages contain.
    pub(super) fn identity(&self) -> BodyBuilder {
        let body = BodyBuilder::new().node(&self.config.node);
        self.rest_of_identity(body)
    }

    fn rest_of_identity(&self, body: BodyBuilder) -> BodyBuilder {
        let features = match self.config.role {
            Role::UserPlane => IeType::UP_FUNCTION_FEATURES,
            Role::ControlPlane => IeType::CP_FUNCTION_FEATURES,
        };
        body.recovery(self.config.recovery)
            .with(features, &self.config.features)
    }

    pub(super) fn set_up(
        &mut self,
        now: Instant,
        from: Sender,
        top: &TopLevelElements<'_>,
    ) -> BodyBuilder {
        let peer = from.peer;
        let mut retained = false;
        let cause = match (top.node(), top.recovery()) {
            (Err(kind), _) | (_, Err(kind)) => cause_of(kind),
            (Ok(node), Ok(recovery)) => match self.admit(now, node.clone(), peer, recovery) {
                Ok(setup) => {
                    self.associations
                        .store_properties(setup.id(), top.features, from.local);
                    // Also if the peer retained its sessions: its sequence numbers start again.
                    self.forget_answers(setup);
                    let known = !matches!(setup, SetupOutcome::New(_));
                    retained = known && top.retains_sessions(peer.ip());
                    self.push_association_up(match retained {
                        true => SetupOutcome::Unchanged(setup.id()),
                        false => setup,
                    });
                    Cause::REQUEST_ACCEPTED
                }
                Err(why) => {
                    if matches!(why, SetupError::Claimed { .. }) {
                        let pause = self.config.retransmission.t1;
                        self.associations.check_claimed(now, &node, pause);
                    }
                    self.report_refused_setup(now, node, peer, why);
                    match why {
                        SetupError::Full { .. } | SetupError::HostFull { .. } => {
                            Cause::NO_RESOURCES_AVAILABLE
                        }
                        SetupError::Claimed { .. }
                        | SetupError::ReservedByConfig
                        | SetupError::AddressOfOtherHost => Cause::REQUEST_REJECTED,
                    }
                }
            },
        };
        let refusal = self.refusal(MessageType::ASSOCIATION_SETUP_REQUEST, cause);
        let body = self.rest_of_identity(refusal);
        match retained {
            // The flag PSREI: the sessions have been retained.
            true => body.with(IeType::PFCPASRSP_FLAGS, &[1]),
            false => body,
        }
    }

    /// Sets up an association that a peer requests.
    ///
    /// A Node ID that the configuration names is checked against the configuration. Otherwise a
    /// domain name belongs to the first peer that uses it, and an IP address to its own host, which
    /// must not find it taken: another host may use it only if the allow-list excludes that
    /// address, for example behind a network address translation. A peer that does not answer
    /// heartbeats loses its Node ID to the next address that claims it.
    fn admit(
        &mut self,
        now: Instant,
        node: NodeName,
        peer: SocketAddr,
        recovery: Recovery,
    ) -> Result<SetupOutcome, SetupError> {
        if !self.associations.is_named(&node) {
            let named = node.address().map(|address| address.to_canonical());
            let foreign = named.filter(|address| *address != peer.ip().to_canonical());
            if foreign.is_some_and(|address| self.is_allowed(address)) {
                return Err(SetupError::AddressOfOtherHost);
            }
            let limit = self.config.peer.associations;
            if self.associations.get_by_node(&node).is_none()
                && self.associations.unnamed_count_of_host(peer.ip()) >= limit
            {
                return Err(SetupError::HostFull { limit });
            }
        }
        self.associations.set_up(now, node, peer, recovery)
    }

    fn report_refused_setup(
        &mut self,
        now: Instant,
        node: NodeName,
        peer: SocketAddr,
        why: SetupError,
    ) {
        self.stats.setups_refused += 1;
        let is_claim = matches!(
            why,
            SetupError::Claimed { .. }
                | SetupError::ReservedByConfig
                | SetupError::AddressOfOtherHost
        );
        self.stats.claims_refused += u64::from(is_claim);
        if let Some(count) = self.refusals.count(now, peer.ip()) {
            self.events.push_back(Event::SetupRefused {
                peer,
                node,
                count,
                reason: why.to_string(),
            });
        }
    }

    /// Reports a request, other than a setup, under the Node ID of another peer.
    pub(super) fn report_claim(&mut self, now: Instant, peer: SocketAddr, id: AssociationId) {
        self.stats.claims_refused += 1;
        let owner = self.associations.get(id);
        let count = self.refusals.count(now, peer.ip());
        if let Some((owner, count)) = owner.zip(count) {
            self.events.push_back(Event::ClaimRefused {
                peer,
                node: owner.node.clone(),
                owner: owner.address,
                count,
            });
        }
    }

    /// Ignores a setup of a previous incarnation of the peer, without an answer: its time stamp is
    /// older than that of the last setup, which is recent enough that the message may have been in
    /// transit since. A peer whose clock was set back repeats its setup after T1, and that one is
    /// accepted whatever its stamp is, TS 29.244 §6.2.6.2.2.
    pub(super) fn check_late(
        &self,
        now: Instant,
        peer: SocketAddr,
        top: &TopLevelElements<'_>,
    ) -> Result<(), UnanswerableRequest> {
        let (Ok(node), Ok(recovery)) = (top.node(), top.recovery()) else {
            // The answer reports the error.
            return Ok(());
        };
        let longest = self.config.retransmission.t1;
        let late = self.associations.get_by_node(&node).filter(|known| {
            known.is_at(peer.ip())
                && known.set_up_with.is_after(recovery)
                && now < known.since + longest
        });
        late.map_or(Ok(()), |known| {
            let (old, new) = (recovery.0, known.set_up_with.0);
            let detail = format!("Recovery Time Stamp {old} after {new}");
            Err(UnanswerableRequest(DiscardReason::Late, detail))
        })
    }

    pub(super) fn push_association_up(&mut self, setup: SetupOutcome) {
        let association = setup.id();
        if matches!(setup, SetupOutcome::Restarted(_)) {
            self.restarted(association);
        }
        let kept = matches!(setup, SetupOutcome::Unchanged(_));
        self.events
            .push_back(Event::AssociationUp { association, kept });
    }
}
