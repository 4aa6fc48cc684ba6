//! A policy that caps rates and counts sessions.

use strowger_pfcp::ie::{Cause, Mbr, UpdateQer};
use strowger_pfcp::message::SessionModificationRequest;

use super::{DecisionFuture, Policy, PolicyDecision, PolicyRequest};

/// The limits of [`QosCap`]; a limit that is `None` does not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosCaps {
    /// The highest uplink rate, in kbit/s.
    pub uplink: Option<u64>,
    /// The highest downlink rate, in kbit/s.
    pub downlink: Option<u64>,
    /// The maximum number of sessions of a peer.
    pub sessions: Option<usize>,
}

/// A policy that lowers the Maximum Bitrate of QERs to a cap, and limits the number of sessions of
/// a peer.
///
/// QERs without a Maximum Bitrate are not changed: a rate that the peer left unlimited stays
/// unlimited.
///
/// ```
/// use strowger_pfcp_node::{QosCap, QosCaps};
///
/// let caps = QosCaps { downlink: Some(50_000), ..QosCaps::default() };
/// let policy = QosCap::new(caps);
/// # let _ = policy;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct QosCap(QosCaps);

impl QosCap {
    /// Creates the policy.
    #[must_use]
    pub const fn new(caps: QosCaps) -> Self {
        Self(caps)
    }

    fn verdict(&self, question: &PolicyRequest) -> PolicyDecision {
        let caps = self.0;
        if caps.sessions.is_some_and(|most| question.sessions > most) {
            return PolicyDecision::Refuse(Cause::NO_RESOURCES_AVAILABLE);
        }
        let lower = |rate: u64, cap: Option<u64>| cap.map_or(rate, |cap| rate.min(cap));
        let mut updates = Vec::new();
        for qer in question.rules.qers().filter_map(Result::ok) {
            let Some(Mbr { ul_mbr, dl_mbr, .. }) = qer.maximum_bitrate else {
                continue;
            };
            let capped = Mbr {
                ul_mbr: lower(ul_mbr, caps.uplink),
                dl_mbr: lower(dl_mbr, caps.downlink),
            };
            if (capped.ul_mbr, capped.dl_mbr) != (ul_mbr, dl_mbr) {
                updates.push(UpdateQer::new(qer.qer_id).maximum_bitrate(capped));
            }
        }
        if updates.is_empty() {
            return PolicyDecision::Admit;
        }
        let change = SessionModificationRequest::new().update_qers(updates);
        PolicyDecision::Change(Box::new(change))
    }
}

impl Policy for QosCap {
    fn decide<'a>(&'a self, question: &'a PolicyRequest) -> DecisionFuture<'a> {
        Box::pin(async { self.verdict(question) })
    }
}
