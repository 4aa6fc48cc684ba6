//! The path of a packet: from the rule that detects it to the rules that act on it.
//!
//! Derived from the rule set after each modification and never changed in between, so that a burst
//! of packets costs a few lookups and no decoding. A [`PdrPath`] is shared, so that a burst can
//! hold it while the rules, which are next to it, count.

use std::sync::Arc;

use litemap::LiteMap;

use crate::ie::{ApplyAction, CreateBar, CreateFar, CreatePdr, Gate, SourceInterface, UeIpAddress};
use crate::session::{RuleKind, RuleSet};

/// The rules of a session, prepared for the processing of traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionForwarding {
    pub(super) pdrs: LiteMap<u16, Arc<PdrPath>>,
    pub(super) fars: LiteMap<u32, FarAction>,
    /// The closed gates of QERs: uplink and downlink.
    gates: LiteMap<u32, (bool, bool)>,
    pub(super) bars: LiteMap<u8, CreateBar>,
    /// The address of the UE, if there is exactly one.
    pub(super) user: Option<UeIpAddress>,
}

/// The rules that apply to the packets of a PDR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PdrPath {
    pub(super) uplink: bool,
    pub(super) far: Option<u32>,
    pub(super) urrs: Vec<u32>,
    qers: Vec<u32>,
    /// The QoS flow, if the PDR names exactly one.
    pub(super) qfi: Option<u8>,
}

/// The action of a FAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FarAction {
    pub(super) apply: ApplyAction,
    pub(super) bar: Option<u8>,
}

impl FarAction {
    pub(super) const fn has_action(self, action: ApplyAction) -> bool {
        self.apply.contains(action)
    }
}

impl SessionForwarding {
    /// Reads the rules. A rule that cannot be decoded has no effect here.
    pub(super) fn of(rules: &RuleSet) -> Self {
        let mut paths = Self::default();
        for pdr in rules.pdrs().filter_map(Result::ok) {
            let path = Arc::new(PdrPath::of(&pdr));
            paths.pdrs.insert(pdr.pdr_id.0, path);
        }
        for far in rules.fars().filter_map(Result::ok) {
            let CreateFar {
                far_id,
                apply_action,
                bar_id,
                ..
            } = far;
            let action = FarAction {
                apply: apply_action,
                bar: bar_id.map(|id| id.0),
            };
            paths.fars.insert(far_id.0, action);
        }
        for qer in rules.qers().filter_map(Result::ok) {
            // A value that is not defined counts as closed: no traffic passes that the peer did not
            // allow.
            let shut = |gate: Gate| gate != Gate::OPEN;
            let gates = (shut(qer.gate_status.ul_gate), shut(qer.gate_status.dl_gate));
            paths.gates.insert(qer.qer_id.0, gates);
        }
        for bar in rules.rules(RuleKind::Bar) {
            if let Ok(bar) = bar.decode::<CreateBar>() {
                paths.bars.insert(bar.bar_id.0, bar);
            }
        }
        let mut users = rules.ue_addresses().into_iter();
        paths.user = users.next().filter(|first| {
            // The other fields, such as source or destination (S/D, TS 29.244 §8.2.62), differ
            // between the PDRs of the two directions.
            users.all(|other| (other.ipv4, other.ipv6) == (first.ipv4, first.ipv6))
        });
        paths
    }

    /// Returns `true` if a closed gate stops the packets of a path.
    pub(super) fn is_gate_closed(&self, path: &PdrPath) -> bool {
        // A PDR may have several QERs, such as one for the session and one for the flow; all must
        // be open.
        path.qers.iter().any(|qer| {
            self.gates
                .get(qer)
                .is_some_and(|&(uplink, downlink)| if path.uplink { uplink } else { downlink })
        })
    }

    /// Returns `true` if the URR measures the packets of at least one PDR.
    pub(super) fn counts(&self, urr: u32) -> bool {
        self.pdrs.values().any(|path| path.urrs.contains(&urr))
    }

    /// Returns the action of the FAR of a path. Without a FAR, packets are forwarded.
    pub(super) fn action(&self, path: &PdrPath) -> FarAction {
        let named = path.far.and_then(|far| self.fars.get(&far).copied());
        // A PDR with predefined rules or a MAR has no FAR (§7.5.2.2).
        named.unwrap_or(FarAction {
            apply: ApplyAction::FORW,
            bar: None,
        })
    }
}

impl PdrPath {
    fn of(pdr: &CreatePdr) -> Self {
        // A Downlink Data Report names one QoS flow (§8.2.27). Which of several it was is unknown
        // here.
        let qfi = match &pdr.pdi.qfis[..] {
            [one] => Some(one.0),
            _ => None,
        };
        Self {
            // Packets from all other interfaces (§8.2.2) go towards the UE.
            uplink: pdr.pdi.source_interface == SourceInterface::ACCESS,
            far: pdr.far_id.map(|far| far.0),
            urrs: pdr.urr_ids.iter().map(|urr| urr.0).collect(),
            qers: pdr.qer_ids.iter().map(|qer| qer.0).collect(),
            qfi,
        }
    }
}
