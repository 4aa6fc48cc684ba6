//! Modifications of a session, and their cumulative effect.

use strowger_pfcp::ie::{
    ApplyAction, GateStatus, Mbr, OuterHeaderCreation, PdrId, PfcpsmreqFlags, Precedence, QueryUrr,
    UpdateFar, UpdateForwardingParameters, UpdatePdr, UpdateQer,
};
use strowger_pfcp::message::SessionModificationRequest;

use super::mix::ChangeKind;

/// A modification that the load can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionChange {
    /// Sends downlink packets to another tunnel.
    Handover(u32),
    /// Buffers downlink packets, and has the peer report the first one.
    Idle,
    /// Connects the UE again through a new tunnel.
    Resume(u32),
    /// Changes the rates; holds the uplink rate in kbit/s.
    Qos(u64),
    /// Queries usage without changing anything.
    Query,
    /// Changes the precedence of a rule.
    Precedence(u32),
}

/// The cumulative effect of the acknowledged modifications of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AppliedChanges {
    tunnel: Option<u32>,
    idle: bool,
    rate: Option<u64>,
    precedence: Option<u32>,
}

impl AppliedChanges {
    /// Returns a modification of the given kind that is possible in the current state. Different
    /// `number`s yield different modifications.
    pub(super) fn next(&self, kind: ChangeKind, number: u64) -> SessionChange {
        let [.., a, b, c, d] = number.to_be_bytes();
        let number = u32::from_be_bytes([a, b, c, d]);
        match kind {
            // An idle UE has no tunnel to hand over.
            ChangeKind::Handover | ChangeKind::Idle if self.idle => {
                SessionChange::Resume(number.max(1))
            }
            ChangeKind::Handover => SessionChange::Handover(number.max(1)),
            ChangeKind::Idle => SessionChange::Idle,
            // From 10 to 89 Mbit/s.
            ChangeKind::Qos => SessionChange::Qos(10_000 + 1000 * u64::from(number % 80)),
            ChangeKind::Report => SessionChange::Query,
            ChangeKind::Precedence => SessionChange::Precedence(number),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Records an acknowledged modification.
    pub(super) fn record(&mut self, change: SessionChange) {
        match change {
            SessionChange::Handover(tunnel) | SessionChange::Resume(tunnel) => {
                (self.tunnel, self.idle) = (Some(tunnel), false);
            }
            SessionChange::Idle => self.idle = true,
            SessionChange::Qos(rate) => self.rate = Some(rate),
            SessionChange::Precedence(precedence) => self.precedence = Some(precedence),
            SessionChange::Query => {}
        }
    }

    /// Returns the modifications that bring a newly established session into this state.
    pub(super) fn changes(&self) -> impl Iterator<Item = SessionChange> {
        let changes = [
            self.tunnel.map(SessionChange::Resume),
            self.idle.then_some(SessionChange::Idle),
            self.rate.map(SessionChange::Qos),
            self.precedence.map(SessionChange::Precedence),
        ];
        changes.into_iter().flatten()
    }
}

impl SessionChange {
    /// Returns the request, for a session whose downlink tunnels end at `access`.
    pub(super) fn request(self, access: std::net::IpAddr) -> SessionModificationRequest {
        let request = SessionModificationRequest::new();
        let parameters = |tunnel: u32| {
            let header = OuterHeaderCreation::from((tunnel, access));
            UpdateForwardingParameters::new().outer_header_creation(header)
        };
        let far = || UpdateFar::new(DOWNLINK);
        match self {
            Self::Handover(tunnel) => {
                let parameters = parameters(tunnel).pfcpsmreq_flags(PfcpsmreqFlags::SNDEM);
                request.update_fars([far().update_forwarding_parameters(parameters)])
            }
            Self::Idle => {
                let action = ApplyAction::BUFF | ApplyAction::NOCP;
                request.update_fars([far().apply_action(action)])
            }
            Self::Resume(tunnel) => request.update_fars([far()
                .apply_action(ApplyAction::FORW)
                .update_forwarding_parameters(parameters(tunnel))]),
            Self::Qos(uplink) => {
                let mbr = Mbr {
                    ul_mbr: uplink,
                    dl_mbr: 5 * uplink,
                };
                request.update_qers([UpdateQer::new(QER)
                    .gate_status(GateStatus::default())
                    .maximum_bitrate(mbr)])
            }
            Self::Query => request.query_urrs([QueryUrr::new(URR)]),
            Self::Precedence(precedence) => {
                let update = UpdatePdr::new(PdrId(2)).precedence(Precedence(precedence));
                request.update_pdrs([update])
            }
        }
    }
}

/// The IDs of the rules of an establishment that are modified.
const DOWNLINK: u32 = 2;
const QER: u32 = 1;
const URR: u32 = 1;
