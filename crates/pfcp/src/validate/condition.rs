//! Conditions that the tables of TS 29.244 express in words, as far as the message alone decides
//! them.

use crate::ie::condition::flags;
use crate::ie::{Cause, Descriptor, Group, Ie, IeType, NodeReportType, Release, ReportType};
use crate::message::MessageType;
use crate::wire::Part;

use super::release::is_newer;

fn leaf<T: Ie>(group: Part<'_>) -> Option<T> {
    // A value that cannot be decoded has ended the walk, so `None` means that it is missing.
    T::from_part(group.find(T::TYPE)?).ok()
}

/// Reports the missing conditional members of a group, each with its clause.
pub(super) fn missing(
    group: Part<'_>,
    table: &'static Group,
    message: MessageType,
    release: Release,
    mut report: impl FnMut(IeType, &'static str),
) {
    let conditions = &table.conditions;
    // NO_SLOT may find an unknown element here; `flags` then ignores it.
    let watched = group.parts().find(|part| part.slot() == conditions.watch);
    let flags = flags(watched.map(|part| part.raw()), conditions.watch);
    for condition in conditions.unmet(slots_in_release(group, release), flags) {
        // Of several members that would do, the first stands for all in the answer.
        if let [member, ..] = condition.any {
            report(*member, condition.clause);
        }
    }
    // Only a message has no type of its own. Conditions of messages depend on their type.
    if table.ie.is_none() {
        of_message(group, message, |ie, clause| {
            // A peer of an older release cannot send the element.
            if ie.since() <= release {
                report(ie, clause);
            }
        });
    }
}

/// Reports the missing conditional members of a message.
#[inline]
pub(crate) fn of_message(
    root: Part<'_>,
    message: MessageType,
    mut report: impl FnMut(IeType, &'static str),
) {
    // This runs for each message that is decoded, so it looks for elements only in the few types
    // below.
    let lacks = |ie| root.find(ie).is_none();
    match message {
        MessageType::SESSION_ESTABLISHMENT_RESPONSE => {
            // The F-SEID of the UP function identifies the session from here on, so only a
            // rejection may lack it (§7.5.3.1).
            let accepted = leaf::<Cause>(root) == Some(Cause::REQUEST_ACCEPTED);
            if accepted && lacks(IeType::F_SEID) {
                report(IeType::F_SEID, "7.5.3.1");
            }
            refusal(root, "7.5.3.1", report);
        }
        MessageType::SESSION_REPORT_REQUEST => {
            // Each bit of Report Type announces an element, if there is one for it (§8.2.21).
            let about = leaf::<ReportType>(root).unwrap_or_default();
            for (flag, ie) in REPORTS {
                if about.contains(flag) && lacks(ie) {
                    report(ie, "7.5.8.1");
                }
            }
        }
        MessageType::NODE_REPORT_REQUEST => {
            // §8.2.69, as for sessions.
            let about = leaf::<NodeReportType>(root).unwrap_or_default();
            for (flag, ie) in NODE_REPORTS {
                if about.contains(flag) && lacks(ie) {
                    report(ie, "7.4.5.1.1");
                }
            }
        }
        MessageType::PFD_MANAGEMENT_RESPONSE => refusal(root, "7.4.3.2", report),
        MessageType::NODE_REPORT_RESPONSE => refusal(root, "7.4.5.2.1", report),
        MessageType::SESSION_SET_DELETION_RESPONSE => refusal(root, "7.4.6.2", report),
        MessageType::SESSION_SET_MODIFICATION_RESPONSE => refusal(root, "7.4.7.2", report),
        MessageType::SESSION_MODIFICATION_RESPONSE => refusal(root, "7.5.5.1", report),
        MessageType::SESSION_DELETION_RESPONSE => refusal(root, "7.5.7.1", report),
        MessageType::SESSION_REPORT_RESPONSE => refusal(root, "7.5.9.1", report),
        _ => {}
    }
}

/// Reports the missing members of an answer that its cause requires: the element that was missing
/// or wrong, the rule that failed, or the parts of the request that were not accepted.
fn refusal(root: Part<'_>, clause: &'static str, mut report: impl FnMut(IeType, &'static str)) {
    let Some(Descriptor::Group(table)) = root.descriptor() else {
        return;
    };
    let asked: &[IeType] = match leaf::<Cause>(root) {
        Some(
            Cause::MANDATORY_IE_MISSING
            | Cause::CONDITIONAL_IE_MISSING
            | Cause::MANDATORY_IE_INCORRECT,
        ) => &[IeType::OFFENDING_IE],
        Some(Cause::RULE_FAILURE) => &[IeType::FAILED_RULE_ID],
        Some(Cause::REQUEST_PARTIALLY_ACCEPTED) => &[
            IeType::PARTIAL_FAILURE_INFORMATION,
            IeType::PFD_PARTIAL_FAILURE_INFORMATION,
        ],
        _ => return,
    };
    for ie in asked {
        // Not every response has each of them: a table without the element cannot require it.
        if table.member(*ie).is_some() && root.find(*ie).is_none() {
            report(*ie, clause);
        }
    }
}

/// Returns the slots of a group that are filled, ignoring elements that are newer than the release.
fn slots_in_release(group: Part<'_>, release: Release) -> u64 {
    // An element that the receiver ignores meets no condition.
    let old = group.parts().filter(|part| !is_newer(*part, release));
    slots(old)
}

/// Returns the slots of a group that are filled, one bit each.
pub(super) fn filled_slots(group: Part<'_>) -> u64 {
    slots(group.parts())
}

fn slots<'a>(parts: impl Iterator<Item = Part<'a>>) -> u64 {
    // NO_SLOT shifts the bit out: unknown and repeated elements fill nothing.
    let bit = |part: Part<'_>| 1u64.checked_shl(u32::from(part.slot())).unwrap_or(0);
    parts.map(bit).fold(0, std::ops::BitOr::bitor)
}

/// The element that a session report requires for each report type.
const REPORTS: [(ReportType, IeType); 5] = [
    (ReportType::DLDR, IeType::DOWNLINK_DATA_REPORT),
    (ReportType::USAR, IeType::USAGE_REPORT_REQUEST),
    (ReportType::ERIR, IeType::ERROR_INDICATION_REPORT),
    (
        ReportType::TMIR,
        IeType::TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_REPORT_REQUEST,
    ),
    (ReportType::SESR, IeType::SESSION_REPORT),
];

/// The element that a node report requires for each report type.
const NODE_REPORTS: [(NodeReportType, IeType); 7] = [
    (NodeReportType::UPFR, IeType::USER_PLANE_PATH_FAILURE_REPORT),
    (
        NodeReportType::UPRR,
        IeType::USER_PLANE_PATH_RECOVERY_REPORT,
    ),
    (NodeReportType::CKDR, IeType::CLOCK_DRIFT_REPORT),
    (NodeReportType::GPQR, IeType::GTPU_PATH_QOS_REPORT),
    (NodeReportType::PURR, IeType::PEER_UP_RESTART_REPORT),
    (
        NodeReportType::VSR,
        IeType::VENDOR_SPECIFIC_NODE_REPORT_TYPE,
    ),
    (NodeReportType::N6DR, IeType::N6_DELAY_MEASUREMENT_REPORT),
];
