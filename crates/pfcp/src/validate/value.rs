//! Values that a clause forbids: those that a receiver cannot act on. An unknown number in a report
//! or a feature is none of them; it is kept.

use crate::ie::{
    ApplyAction, Cause, DestinationInterface, FSeid, FTeid, Ie, IeType, MeasurementMethod, NodeId,
    NodeIdType, NodeReportType, PdnType, ReportType, SdfFilter, SourceInterface, UeIpAddress,
};
use crate::wire::Part;

/// Says that an element of one number has to be one of those that its clause lists.
pub(crate) const fn is_closed(ie: IeType) -> bool {
    matches!(
        ie,
        IeType::SOURCE_INTERFACE | IeType::DESTINATION_INTERFACE | IeType::PDN_TYPE
    )
}

/// Returns the range that the first octet of a value is in that [`incorrect`] says nothing about,
/// whatever follows. Values outside of it may be right as well.
pub(crate) const fn firsts(ie: IeType) -> (u8, u8) {
    match ie {
        // DROP and FORW alone, which nearly every rule has.
        IeType::APPLY_ACTION => (1, 2),
        IeType::CAUSE
        | IeType::REPORT_TYPE
        | IeType::NODE_REPORT_TYPE
        | IeType::MEASUREMENT_METHOD => (1, u8::MAX),
        _ => (0, u8::MAX),
    }
}

/// Says that [`incorrect`] has something to say about values of the type.
pub(crate) const fn is_judged(ie: IeType) -> bool {
    is_closed(ie) || is_judged_by_head(ie) || matches!(ie, IeType::CAUSE | IeType::SDF_FILTER)
}

/// Says that [`incorrect`] looks at the head and the length of such a value alone.
pub(crate) const fn is_judged_by_head(ie: IeType) -> bool {
    matches!(
        ie,
        IeType::APPLY_ACTION
            | IeType::F_SEID
            | IeType::F_TEID
            | IeType::MEASUREMENT_METHOD
            | IeType::NODE_ID
            | IeType::NODE_REPORT_TYPE
            | IeType::OUTER_HEADER_CREATION
            | IeType::REPORT_TYPE
            | IeType::UE_IP_ADDRESS
    )
}

/// Returns the clause that a value is outside of.
pub(crate) fn incorrect(ie: IeType, part: Part<'_>) -> Option<&'static str> {
    let (forbidden, clause) = match ie {
        IeType::SOURCE_INTERFACE => (SourceInterface::view(part)?.name().is_none(), "8.2.2"),
        IeType::DESTINATION_INTERFACE => {
            (DestinationInterface::view(part)?.name().is_none(), "8.2.24")
        }
        IeType::PDN_TYPE => (PdnType::view(part)?.name().is_none(), "8.2.79"),
        IeType::CAUSE => (Cause::view(part)? == Cause::RESERVED, "8.2.1"),
        IeType::NODE_ID => {
            let node = NodeId::view(part)?;
            let is_unknown = node.node_id_type.0 > NodeIdType::FQDN.0;
            let is_nameless = node.fqdn.is_some_and(<[u8]>::is_empty);
            (is_unknown || is_nameless, "8.2.38")
        }
        IeType::SDF_FILTER => {
            let flow = SdfFilter::view(part)?.flow_description;
            (flow.is_some_and(<[u8]>::is_empty), "8.2.5")
        }
        IeType::F_TEID => {
            let end = FTeid::view(part)?;
            (!end.v4 && !end.v6, "8.2.3")
        }
        IeType::F_SEID => {
            let end = FSeid::view(part)?;
            (end.ipv4.is_none() && end.ipv6.is_none(), "8.2.37")
        }
        IeType::UE_IP_ADDRESS => {
            let ue = UeIpAddress::view(part)?;
            let is_given = ue.ipv4.is_some() || ue.ipv6.is_some();
            (!is_given && !ue.choose_v4 && !ue.choose_v6, "8.2.62")
        }
        IeType::APPLY_ACTION => (!is_one_action(ApplyAction::view(part)?), "8.2.26"),
        IeType::OUTER_HEADER_CREATION => {
            let [first, second] = part.array().ok()?;
            (first == 0 && second == 0, "8.2.56")
        }
        IeType::REPORT_TYPE => (ReportType::view(part)?.is_empty(), "8.2.21"),
        IeType::NODE_REPORT_TYPE => (NodeReportType::view(part)?.is_empty(), "8.2.69"),
        IeType::MEASUREMENT_METHOD => (MeasurementMethod::view(part)?.is_empty(), "8.2.40"),
        _ => return None,
    };
    forbidden.then_some(clause)
}

/// Says that packets are done one thing with: what drops them does not forward them. Copies for a
/// multicast session may be all that is done.
const fn is_one_action(action: ApplyAction) -> bool {
    const ONE: u16 = ApplyAction::DROP.0
        | ApplyAction::FORW.0
        | ApplyAction::BUFF.0
        | ApplyAction::IPMA.0
        | ApplyAction::IPMD.0;
    const MULTICAST: u16 = ApplyAction::FSSM.0 | ApplyAction::MBSU.0;
    match (action.0 & ONE).count_ones() {
        0 => action.0 & MULTICAST != 0,
        1 => true,
        _ => false,
    }
}
