//! Conditions that the tables state in words: those that a message alone decides.

use crate::ie::{
    ApplyAction, Cause, DestinationInterface, Ie, IeType, NodeIdType, PdnType, ReportType,
    ReportingTriggers, SourceInterface,
};
use crate::ie::{FTeid, NodeId, SdfFilter};
use crate::message::MessageType;
use crate::wire::Part;

fn leaf<T: Ie>(group: Part<'_>) -> Option<T> {
    T::from_part(group.find(T::TYPE)?).ok()
}

/// Reports the conditional members that are missing from a group, each with its clause.
pub(super) fn missing(
    group: Part<'_>,
    ie: Option<IeType>,
    message: MessageType,
    mut report: impl FnMut(IeType, &'static str),
) {
    let lacks = |ie| group.find(ie).is_none();
    match ie {
        Some(IeType::CREATE_PDR) => {
            let otherwise = [IeType::ACTIVATE_PREDEFINED_RULES, IeType::MAR_ID];
            if lacks(IeType::FAR_ID) && otherwise.into_iter().all(lacks) {
                report(IeType::FAR_ID, "7.5.2.2");
            }
        }
        Some(IeType::CREATE_FAR) => {
            let action = leaf::<ApplyAction>(group).unwrap_or_default();
            let otherwise = [
                IeType::MBS_MULTICAST_PARAMETERS,
                IeType::ADD_MBS_UNICAST_PARAMETERS,
            ];
            if action.contains(ApplyAction::FORW)
                && lacks(IeType::FORWARDING_PARAMETERS)
                && otherwise.into_iter().all(lacks)
            {
                report(IeType::FORWARDING_PARAMETERS, "7.5.2.3");
            }
            if action.contains(ApplyAction::DUPL) && lacks(IeType::DUPLICATING_PARAMETERS) {
                report(IeType::DUPLICATING_PARAMETERS, "7.5.2.3");
            }
        }
        Some(IeType::CREATE_URR) => {
            let triggers = leaf::<ReportingTriggers>(group).unwrap_or_default();
            for (trigger, ie) in URR_TRIGGERS {
                if triggers.contains(trigger) && lacks(ie) {
                    report(ie, "7.5.2.4");
                }
            }
        }
        None if message == MessageType::SESSION_ESTABLISHMENT_RESPONSE => {
            let accepted = leaf::<Cause>(group) == Some(Cause::REQUEST_ACCEPTED);
            if accepted && lacks(IeType::F_SEID) {
                report(IeType::F_SEID, "7.5.3.1");
            }
        }
        None if message == MessageType::SESSION_REPORT_REQUEST => {
            let about = leaf::<ReportType>(group).unwrap_or_default();
            for (flag, ie) in REPORTS {
                if about.contains(flag) && lacks(ie) {
                    report(ie, "7.5.8.1");
                }
            }
        }
        _ => {}
    }
}

/// What a usage reporting rule needs for each trigger.
const URR_TRIGGERS: [(ReportingTriggers, IeType); 5] = [
    (ReportingTriggers::PERIO, IeType::MEASUREMENT_PERIOD),
    (ReportingTriggers::VOLTH, IeType::VOLUME_THRESHOLD),
    (ReportingTriggers::TIMTH, IeType::TIME_THRESHOLD),
    (ReportingTriggers::VOLQU, IeType::VOLUME_QUOTA),
    (ReportingTriggers::TIMQU, IeType::TIME_QUOTA),
];

/// What a session report holds for each of its types.
const REPORTS: [(ReportType, IeType); 3] = [
    (ReportType::DLDR, IeType::DOWNLINK_DATA_REPORT),
    (ReportType::USAR, IeType::USAGE_REPORT_REQUEST),
    (ReportType::ERIR, IeType::ERROR_INDICATION_REPORT),
];

/// Returns the clause that a value is outside of.
///
/// Only values that a receiver cannot act on: an unknown number in a report or a feature is kept.
pub(super) fn incorrect(part: Part<'_>) -> Option<&'static str> {
    match part.ie() {
        IeType::SOURCE_INTERFACE => SourceInterface::from_part(part)
            .ok()?
            .name()
            .is_none()
            .then_some("8.2.2"),
        IeType::DESTINATION_INTERFACE => DestinationInterface::from_part(part)
            .ok()?
            .name()
            .is_none()
            .then_some("8.2.24"),
        IeType::PDN_TYPE => PdnType::from_part(part)
            .ok()?
            .name()
            .is_none()
            .then_some("8.2.79"),
        IeType::NODE_ID => {
            let node = NodeId::view(part)?;
            (node.node_id_type.0 > NodeIdType::FQDN.0).then_some("8.2.38")
        }
        IeType::SDF_FILTER => SdfFilter::view(part)?
            .flow_description
            .is_some_and(<[u8]>::is_empty)
            .then_some("8.2.5"),
        IeType::F_TEID => {
            let end = FTeid::from_part(part).ok()?;
            (!end.v4 && !end.v6).then_some("8.2.3")
        }
        _ => None,
    }
}
