//! Conditions under which a group has to have a member, where the group alone decides.

use super::descriptor::{Member, NO_SLOT, find};
use super::{
    ApplyAction, IeType, MeasurementReportingType, QosReportTrigger, ReportingFrequency,
    ReportingTriggers, UsageReportTrigger,
};

/// A member that a group has to have under a condition.
#[derive(Debug)]
pub(crate) struct Need {
    /// The flags of the watched member that ask for it; always, if there are none.
    flags: u32,
    /// The first is the member; any of the others stands for it.
    pub(crate) any: &'static [IeType],
    /// The clause that states the condition.
    pub(crate) clause: &'static str,
}

/// The needs that a group has at most.
const MOST: usize = 12;

/// Says which member holds the flags, and what they ask for.
const fn needs(group: Option<IeType>) -> (IeType, &'static [Need]) {
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

static PDR: [Need; 1] = [Need {
    flags: 0,
    any: &[
        IeType::FAR_ID,
        IeType::ACTIVATE_PREDEFINED_RULES,
        IeType::MAR_ID,
    ],
    clause: "7.5.2.2",
}];

static FAR: [Need; 2] = [
    Need {
        flags: ApplyAction::FORW.0 as u32,
        any: &[
            IeType::FORWARDING_PARAMETERS,
            IeType::MBS_MULTICAST_PARAMETERS,
            IeType::ADD_MBS_UNICAST_PARAMETERS,
        ],
        clause: "7.5.2.3",
    },
    Need {
        flags: ApplyAction::DUPL.0 as u32,
        any: &[IeType::DUPLICATING_PARAMETERS],
        clause: "7.5.2.3",
    },
];

static URR: [Need; MOST] = [
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

static USAGE: [Need; 1] = [Need {
    flags: UsageReportTrigger::IPMJL.0,
    any: &[
        IeType::JOIN_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT,
        IeType::LEAVE_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT,
    ],
    clause: "7.5.8.3",
}];

static FLOW: [Need; 1] = [period(ReportingFrequency::PERIO.0, "7.5.2.9")];

static PATH: [Need; 1] = [period(QosReportTrigger::PER.0, "7.4.4.1.3")];

static N6: [Need; 1] = [period(MeasurementReportingType::PER.0, "7.4.4.1.4")];

/// What is reported from time to time says how often.
const fn period(flag: u8, clause: &'static str) -> Need {
    Need {
        flags: flag as u32,
        any: &[IeType::MEASUREMENT_PERIOD],
        clause,
    }
}

const fn trigger(trigger: ReportingTriggers, any: &'static [IeType]) -> Need {
    Need {
        flags: trigger.0,
        any,
        clause: "7.5.2.4",
    }
}

/// The conditions of a group, its members as slots.
#[derive(Debug)]
pub(crate) struct Conditions {
    /// The slot of the member that holds the flags.
    pub(crate) watch: u8,
    needs: &'static [Need],
    /// For each need the flags that ask for it and the slots that meet it.
    asked: [(u32, u64); MOST],
}

impl Conditions {
    pub(crate) const fn of(group: Option<IeType>, members: &[Member]) -> Self {
        let (watch, needs) = needs(group);
        let mut asked = [(0, 0); MOST];
        let mut need = 0;
        while need < needs.len() {
            let Need { flags, any, .. } = &needs[need];
            // What no flag asks for is always asked for.
            asked[need].0 = if *flags == 0 { u32::MAX } else { *flags };
            let mut one = 0;
            while one < any.len() {
                match find(members, any[one]) {
                    Some(slot) => asked[need].1 |= 1 << slot,
                    None => panic!("a condition names no member"),
                }
                one += 1;
            }
            need += 1;
        }
        Self {
            watch: match find(members, watch) {
                #[expect(clippy::cast_possible_truncation, reason = "at most 64 members")]
                Some(slot) => slot as u8,
                None => NO_SLOT,
            },
            needs,
            asked,
        }
    }

    /// Says that a closer look is needed to tell whether a group has all that it should.
    #[inline]
    pub(crate) const fn may_be_unmet(&self, seen: u64) -> bool {
        let (_, met) = self.asked[0];
        !self.needs.is_empty() && (self.watch != NO_SLOT || met & seen == 0)
    }

    /// Says that a group has all that its members ask for: those in `seen`, with the flags of the
    /// watched one.
    #[inline]
    pub(crate) fn are_met(&self, seen: u64, flags: u32) -> bool {
        self.asked
            .iter()
            .take(self.needs.len())
            .all(|(asking, met)| asking & flags == 0 || met & seen != 0)
    }

    /// Walks the needs that are not met.
    pub(crate) fn unmet(&self, seen: u64, flags: u32) -> impl Iterator<Item = &'static Need> {
        self.needs
            .iter()
            .zip(&self.asked)
            .filter(move |(_, (asking, met))| asking & flags != 0 && met & seen == 0)
            .map(|(need, _)| need)
    }
}

/// The flags of the watched member, or all if the group has none to watch: what they ask for is
/// then always asked for.
#[inline]
pub(crate) fn flags(watched: Option<&[u8]>, watch: u8) -> u32 {
    if watch == NO_SLOT {
        return u32::MAX;
    }
    match watched {
        Some([a, b, c, ..]) => u32::from_le_bytes([*a, *b, *c, 0]),
        Some([a, b]) => u32::from_le_bytes([*a, *b, 0, 0]),
        Some([a]) => u32::from(*a),
        _ => 0,
    }
}
