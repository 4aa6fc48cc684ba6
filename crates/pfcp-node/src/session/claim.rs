//! Claims of peers that are refused, each with a counter and a line in the log; and the address
//! that a peer claims for the reports of a session.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use strowger_pfcp::IeType;
use strowger_pfcp::ie::{Cause, FSeid, Ie as _};
use strowger_pfcp::session::{Refusal, RuleSet};

use super::{SessionActor, answer};
use crate::pool::{AddressClaim, ClaimConflict, instance_name};
use crate::shared::Shared;
use crate::store::{SessionRecord, StoredPeer};

/// The kind of a claim that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClaimKind {
    /// A local F-TEID that belongs to another session.
    Tunnel,
    /// A UE address that belongs to another session.
    UeAddress,
    /// An address for session reports at which no peer is allowed.
    ReportAddress,
}

impl ClaimKind {
    pub(crate) const ALL: [Self; 3] = [Self::Tunnel, Self::UeAddress, Self::ReportAddress];

    /// Returns the name of the kind in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tunnel => "f_teid",
            Self::UeAddress => "ue_address",
            Self::ReportAddress => "report_address",
        }
    }
}

/// Returns the address that reports of a session are sent to.
///
/// The CP function tells where it expects the requests about a session (TS 29.244 §4.3.2): at the
/// address of its F-SEID (§8.2.37), which a modification may replace (§7.5.4.1). A session that
/// another CP function has taken over is reported to that one (§5.22.3) until it sends an F-SEID of
/// its own. The port is 8805 (§4.2.2) unless the configuration has another.
pub(crate) fn report_address(record: &SessionRecord, shared: &Shared) -> SocketAddr {
    let source = record.owner.address;
    let claimed = claimed_host(record, shared).filter(|host| shared.config.allows(*host));
    match claimed.filter(|host| *host != source.ip()) {
        Some(host) => (host, shared.config.peer.report_port.at(host, source)).into(),
        // Keeps the scope of a link-local address.
        None => {
            let mut address = source;
            address.set_port(shared.config.peer.report_port.at(source.ip(), source));
            address
        }
    }
}

/// Returns the address of the CP F-SEID that the node can send to. Of two it is the one in the
/// family of the association.
fn claimed_host(record: &SessionRecord, shared: &Shared) -> Option<IpAddr> {
    if record.moved {
        return None;
    }
    let mut elements = record.rules.session_elements();
    let f_seid = elements.find(|tlv| tlv.ie == IeType::F_SEID)?;
    let f_seid = FSeid::decode(f_seid.value).ok()?;
    let (ipv4, ipv6) = (f_seid.ipv4.map(IpAddr::V4), f_seid.ipv6.map(IpAddr::V6));
    let hosts = match record.owner.address.is_ipv4() {
        true => [ipv4, ipv6],
        false => [ipv6, ipv4],
    };
    let sockets = &shared.sockets;
    let is_reachable = |host: &IpAddr| {
        let socket = sockets.address(sockets.for_peer((*host, 0).into()));
        socket.is_ipv4() == host.is_ipv4()
    };
    hosts.into_iter().flatten().find(is_reachable)
}

impl SessionActor {
    /// Reports an address for session reports that is not allowed: reports go to the address that
    /// set up the association instead.
    pub(super) fn check_report_host(&self, record: &SessionRecord, now: Instant) {
        let host = claimed_host(record, &self.shared);
        let Some(host) = host.filter(|host| !self.shared.config.allows(*host)) else {
            return;
        };
        if let Some(count) = self.count_claim(ClaimKind::ReportAddress, &record.owner, now) {
            tracing::warn!(
                session = %self.seid,
                node = %record.owner.node,
                peer = %record.owner.address,
                claimed = %host,
                count,
                "the address of a CP F-SEID is not in `n4.peers`: reports of the session go to the \
                 address that set up the association; add the address to `n4.peers` if it is right"
            );
        }
    }

    /// Refuses rules with an address of another session.
    pub(super) fn refuse_claim(
        &self,
        rules: &RuleSet,
        taken: ClaimConflict,
        owner: &StoredPeer,
        now: Instant,
    ) -> Refusal {
        let destinations = rules.ue_destinations();
        let mut all = destinations.iter();
        let own = all.find(|ue| answer::claims_of_ue(ue).any(|one| one == taken.claim));
        let (kind, rule, ie) = match taken.claim {
            AddressClaim::Teid { teid, address } => {
                let rule = rules.rule_at(teid, address);
                (ClaimKind::Tunnel, rule, IeType::F_TEID)
            }
            AddressClaim::Ue { .. } | AddressClaim::Prefix { .. } => {
                let rule = own.map(|ue| ue.rule);
                (ClaimKind::UeAddress, rule, IeType::UE_IP_ADDRESS)
            }
        };
        if let Some(count) = self.count_claim(kind, owner, now) {
            let instance = own.and_then(|ue| ue.network_instance);
            let instance = instance_name(instance.unwrap_or_default());
            let holder = self.shared.store.session(taken.holder);
            let of_holder = holder.map(|record| record.owner.node.to_string());
            tracing::warn!(
                session = %self.seid,
                node = %owner.node,
                peer = %owner.address,
                claimed = %taken.claim,
                network_instance = %instance.escape_ascii(),
                rule = rule.map(|rule| rule.to_string()),
                holder = %taken.holder,
                of_holder,
                count,
                "a session claims an address of another one: refused with cause 73; the holder has \
                 to give it up first, or the network instances must differ"
            );
        }
        let refusal = Refusal::new(Cause::RULE_FAILURE).at(ie);
        rule.into_iter().fold(refusal, Refusal::rule)
    }

    /// Counts a refused claim. Returns the number of claims to log, if a line is due.
    fn count_claim(&self, kind: ClaimKind, owner: &StoredPeer, now: Instant) -> Option<u64> {
        self.shared.counters.claim_refused(kind);
        let mut log = self.shared.claim_log.lock();
        log.count(now, (kind, owner.address.ip()))
    }
}
