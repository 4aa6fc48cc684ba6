//! Conditions under which a member of a group is required, as far as the group itself decides them.

use super::descriptor::{Member, NO_SLOT, find};
use super::{
    ApplyAction, IeType, MeasurementReportingType, QosReportTrigger, ReportingFrequency,
    ReportingTriggers, UsageReportTrigger,
};

/// A condition under which a group must have a member.
#[derive(Debug)]
pub(crate) struct Condition {
    /// The flags of the watched member that trigger the condition. Zero if the condition always
    /// holds.
    flags: u32,
    /// The members that meet the condition. If all are missing, the first one is reported.
    pub(crate) any: &'static [IeType],
    /// The clause that states the condition.
    pub(crate) clause: &'static str,
}

/// Maximum number of conditions of a group.
const MAX_CONDITIONS: usize = 12;

/// Returns the member that contains the flags, and the conditions.
const fn conditions_of(group: Option<IeType>) -> (IeType, &'static [Condition]) {
    match group {
        Some(IeType::CREATE_PDR) => (IeType::RESERVED, &PDR),
        Some(IeType::CREATE_FAR) => (IeType::APPLY_ACTION, &FAR),
        Some(IeType::CREATE_URR) => (IeType::REPORTING_TRIGGERS, &URR),
        Some(IeType::USAGE_REPORT_REQUEST) => (IeType::USAGE_REPORT_TRIGGER, &USAGE),
        Some(IeType::QOS_MONITORING_PER_QOS_FLOW_CONTROL_INFORMATION) => {
            (IeType::REPORTING_FREQUENCY, &FLOW)
        }
        Some(IeType::GTPU_PATH_QOS_CONTROL_INFORMATION) => (IeType::QOS_REPORT_TRIGGER, &PATH),
        Some(IeType::N6_DELAY_MEASUREMENT_CONTROL_INFORMATION) => {
            (IeType::MEASUREMENT_REPORTING_TYPE, &N6)
        }
        _ => (IeType::RESERVED, &[]),
    }
}

static PDR: [Condition; 1] = [Condition {
    flags: 0,
    any: &[
        IeType::FAR_ID,
        IeType::ACTIVATE_PREDEFINED_RULES,
        IeType::MAR_ID,
    ],
    clause: "7.5.2.2",
}];

static FAR: [Condition; 2] = [
    Condition {
        flags: ApplyAction::FORW.0 as u32,
        any: &[
            IeType::FORWARDING_PARAMETERS,
            IeType::MBS_MULTICAST_PARAMETERS,
            IeType::ADD_MBS_UNICAST_PARAMETERS,
        ],
        clause: "7.5.2.3",
    },
    Condition {
        flags: ApplyAction::DUPL.0 as u32,
        any: &[IeType::DUPLICATING_PARAMETERS],
        clause: "7.5.2.3",
    },
];

static URR: [Condition; MAX_CONDITIONS] = [
    trigger(ReportingTriggers::PERIO, &[IeType::MEASUREMENT_PERIOD]),
    trigger(ReportingTriggers::VOLTH, &[IeType::VOLUME_THRESHOLD]),
    trigger(ReportingTriggers::TIMTH, &[IeType::TIME_THRESHOLD]),
    trigger(ReportingTriggers::VOLQU, &[IeType::VOLUME_QUOTA]),
    trigger(ReportingTriggers::TIMQU, &[IeType::TIME_QUOTA]),
    trigger(ReportingTriggers::QUHTI, &[IeType::QUOTA_HOLDING_TIME]),
    trigger(
        ReportingTriggers::DROTH,
        &[IeType::DROPPED_DL_TRAFFIC_THRESHOLD],
    ),
    trigger(ReportingTriggers::LIUSA, &[IeType::LINKED_URR_ID]),
    trigger(ReportingTriggers::EVETH, &[IeType::EVENT_THRESHOLD]),
    trigger(ReportingTriggers::EVEQU, &[IeType::EVENT_QUOTA]),
    trigger(ReportingTriggers::QUVTI, &[IeType::QUOTA_VALIDITY_TIME]),
    trigger(
        ReportingTriggers::UPINT,
        &[IeType::USER_PLANE_INACTIVITY_TIMER],
    ),
];

static USAGE: [Condition; 1] = [Condition {
    flags: UsageReportTrigger::IPMJL.0,
    any: &[
        IeType::JOIN_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT,
        IeType::LEAVE_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT,
    ],
    clause: "7.5.8.3",
}];

static FLOW: [Condition; 1] = [period(ReportingFrequency::PERIO.0, "7.5.2.9")];

static PATH: [Condition; 1] = [period(QosReportTrigger::PER.0, "7.4.4.1.3")];

static N6: [Condition; 1] = [period(MeasurementReportingType::PER.0, "7.4.4.1.4")];

/// Returns the condition that periodic reporting requires a measurement period.
const fn period(flag: u8, clause: &'static str) -> Condition {
    Condition {
        flags: flag as u32,
        any: &[IeType::MEASUREMENT_PERIOD],
        clause,
    }
}

const fn trigger(trigger: ReportingTriggers, any: &'static [IeType]) -> Condition {
    Condition {
        flags: trigger.0,
        any,
        clause: "7.5.2.4",
    }
}

/// The conditions of a group, with its members as slots.
#[derive(Debug)]
pub(crate) struct Conditions {
    /// The slot of the member that contains the flags.
    pub(crate) watch: u8,
    conditions: &'static [Condition],
    /// For each condition, the flags that trigger it and the slots that meet it.
    masks: [(u32, u64); MAX_CONDITIONS],
}

impl Conditions {
    pub(crate) const fn of(group: Option<IeType>, members: &[Member]) -> Self {
        let (watch, conditions) = conditions_of(group);
        let mut masks = [(0, 0); MAX_CONDITIONS];
        let mut condition = 0;
        while condition < conditions.len() {
            let Condition { flags, any, .. } = &conditions[condition];
            // A condition without flags always holds.
            masks[condition].0 = if *flags == 0 { u32::MAX } else { *flags };
            let mut one = 0;
            while one < any.len() {
                match find(members, any[one]) {
                    Some(slot) => masks[condition].1 |= 1 << slot,
                    // The tables are constants, so this is an error of compilation.
                    None => panic!("a condition names no member"),
                }
                one += 1;
            }
            condition += 1;
        }
        Self {
            watch: match find(members, watch) {
                #[expect(clippy::cast_possible_truncation, reason = "at most 64 members")]
                Some(slot) => slot as u8,
                None => NO_SLOT,
            },
            conditions,
            masks,
        }
    }

    /// Returns `true` if the conditions must be evaluated to know whether a group meets them.
    #[inline]
    pub(crate) const fn may_be_unmet(&self, seen: u64) -> bool {
        // A group without a watched member has a single condition, so the first mask decides.
        let (_, met) = self.masks[0];
        !self.conditions.is_empty() && (self.watch != NO_SLOT || met & seen == 0)
    }

    /// Returns `true` if a group meets all conditions. `seen` are its filled slots, and `flags`
    /// those of the watched member.
    #[inline]
    pub(crate) fn are_met(&self, seen: u64, flags: u32) -> bool {
        self.masks
            .iter()
            .take(self.conditions.len())
            .all(|(trigger, met)| trigger & flags == 0 || met & seen != 0)
    }

    /// Returns an iterator over the conditions that are not met.
    pub(crate) fn unmet(&self, seen: u64, flags: u32) -> impl Iterator<Item = &'static Condition> {
        self.conditions
            .iter()
            .zip(&self.masks)
            .filter(move |(_, (trigger, met))| trigger & flags != 0 && met & seen == 0)
            .map(|(condition, _)| condition)
    }
}

/// Returns the flags of the watched member. If the group has no such member, all flags are set, so
/// that every condition holds.
#[inline]
pub(crate) fn flags(watched: Option<&[u8]>, watch: u8) -> u32 {
    if watch == NO_SLOT {
        return u32::MAX;
    }
    // The flags of the first byte are the lowest ones, as in their constants. A shorter value, such
    // as an older peer sends, has zeros for the others.
    match watched {
        Some([a, b, c, ..]) => u32::from_le_bytes([*a, *b, *c, 0]),
        Some([a, b]) => u32::from_le_bytes([*a, *b, 0, 0]),
        Some([a]) => u32::from(*a),
        _ => 0,
    }
}
