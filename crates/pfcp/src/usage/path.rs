//! What becomes of a packet: from the rule that detects it to those that act on it.

use std::sync::Arc;

use litemap::LiteMap;

use crate::ie::{ApplyAction, CreateBar, CreateFar, CreatePdr, Gate, SourceInterface, UeIpAddress};
use crate::session::{RuleKind, RuleSet};

/// The rules of a session as traffic meets them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Paths {
    pub(super) pdrs: LiteMap<u16, Arc<Path>>,
    pub(super) fars: LiteMap<u32, Action>,
    /// Whether the gates are shut: uplink, downlink.
    gates: LiteMap<u32, (bool, bool)>,
    pub(super) bars: LiteMap<u8, CreateBar>,
    /// The address of the user, where there is just one.
    pub(super) user: Option<UeIpAddress>,
}

/// Where the packets of a detection rule go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) uplink: bool,
    pub(super) far: Option<u32>,
    pub(super) urrs: Vec<u32>,
    qers: Vec<u32>,
    /// The QoS flow, where the detection rule names just one.
    pub(super) qfi: Option<u8>,
}

/// What a forwarding rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) apply: ApplyAction,
    pub(super) bar: Option<u8>,
}

impl Action {
    pub(super) const fn does(self, action: ApplyAction) -> bool {
        self.apply.contains(action)
    }
}

impl Paths {
    /// Reads the rules; one that cannot be read typed has no effect here.
    pub(super) fn of(rules: &RuleSet) -> Self {
        let mut paths = Self::default();
        for pdr in rules.pdrs().filter_map(Result::ok) {
            let path = Arc::new(Path::of(&pdr));
            paths.pdrs.insert(pdr.pdr_id.0, path);
        }
        for far in rules.fars().filter_map(Result::ok) {
            let CreateFar {
                far_id,
                apply_action,
                bar_id,
                ..
            } = far;
            let action = Action {
                apply: apply_action,
                bar: bar_id.map(|id| id.0),
            };
            paths.fars.insert(far_id.0, action);
        }
        for qer in rules.qers().filter_map(Result::ok) {
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
            users.all(|other| (other.ipv4, other.ipv6) == (first.ipv4, first.ipv6))
        });
        paths
    }

    /// Says that a gate keeps the packets of a path from passing.
    pub(super) fn is_shut(&self, path: &Path) -> bool {
        path.qers.iter().any(|qer| {
            self.gates
                .get(qer)
                .is_some_and(|&(uplink, downlink)| if path.uplink { uplink } else { downlink })
        })
    }

    /// Says that some packet is counted by a rule.
    pub(super) fn counts(&self, urr: u32) -> bool {
        self.pdrs.values().any(|path| path.urrs.contains(&urr))
    }

    /// What the forwarding rule of a path does; without one, packets pass.
    pub(super) fn action(&self, path: &Path) -> Action {
        let named = path.far.and_then(|far| self.fars.get(&far).copied());
        named.unwrap_or(Action {
            apply: ApplyAction::FORW,
            bar: None,
        })
    }
}

impl Path {
    fn of(pdr: &CreatePdr) -> Self {
        let qfi = match &pdr.pdi.qfis[..] {
            [one] => Some(one.0),
            _ => None,
        };
        Self {
            uplink: pdr.pdi.source_interface == SourceInterface::ACCESS,
            far: pdr.far_id.map(|far| far.0),
            urrs: pdr.urr_ids.iter().map(|urr| urr.0).collect(),
            qers: pdr.qer_ids.iter().map(|qer| qer.0).collect(),
            qfi,
        }
    }
}
