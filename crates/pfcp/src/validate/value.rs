//! Values that a clause forbids: those that a receiver cannot act on. An unknown number in a report
//! or a feature is none of them; it is kept.

use crate::ie::{
    ApplyAction, Cause, DestinationInterface, Ie, IeType, MeasurementMethod, NodeIdType,
    NodeReportType, PdnType, ReportType, SourceInterface,
};

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

/// Returns the clause that a checked value is outside of. It is asked about every element that no
/// row takes, so it looks at the octets that decide, and at nothing else.
#[inline]
pub(crate) fn incorrect(ie: IeType, value: &[u8]) -> Option<&'static str> {
    let first = value.first().copied().unwrap_or(0);
    let (forbidden, clause) = match ie {
        IeType::SOURCE_INTERFACE => (SourceInterface(first & 0xf).name().is_none(), "8.2.2"),
        IeType::DESTINATION_INTERFACE => {
            (DestinationInterface(first & 0xf).name().is_none(), "8.2.24")
        }
        IeType::PDN_TYPE => (PdnType(first & 7).name().is_none(), "8.2.79"),
        IeType::CAUSE => (first == Cause::RESERVED.0, "8.2.1"),
        // A type that there is not, or an FQDN without a letter.
        IeType::NODE_ID => match NodeIdType(first & 0xf) {
            NodeIdType::FQDN => (value.len() == 1, "8.2.38"),
            kind => (kind > NodeIdType::FQDN, "8.2.38"),
        },
        // FD and a flow description without an octet, after the spare one.
        IeType::SDF_FILTER => (first & 1 != 0 && value.get(2..4) == Some(&[0; 2]), "8.2.5"),
        // V4 or V6; beside them CHV4 or CHV6.
        IeType::F_TEID => (first & 0b11 == 0, "8.2.3"),
        IeType::F_SEID => (first & 0b11 == 0, "8.2.37"),
        IeType::UE_IP_ADDRESS => (first & 0b11_0011 == 0, "8.2.62"),
        IeType::APPLY_ACTION => (!is_one_action(first, value.get(1).copied()), "8.2.26"),
        IeType::OUTER_HEADER_CREATION => (matches!(value, [0, 0, ..]), "8.2.56"),
        IeType::REPORT_TYPE => (is_none::<ReportType>(value), "8.2.21"),
        IeType::NODE_REPORT_TYPE => (is_none::<NodeReportType>(value), "8.2.69"),
        IeType::MEASUREMENT_METHOD => (is_none::<MeasurementMethod>(value), "8.2.40"),
        _ => return None,
    };
    forbidden.then_some(clause)
}

/// Says that no flag is set that the specification has.
fn is_none<T: Ie + Default + PartialEq>(value: &[u8]) -> bool {
    T::decode(value).is_ok_and(|flags| flags == T::default())
}

/// Says that packets are done one thing with: what drops them does not forward them. Copies for a
/// multicast session may be all that is done.
const fn is_one_action(first: u8, second: Option<u8>) -> bool {
    const ONE: u16 = ApplyAction::DROP.0
        | ApplyAction::FORW.0
        | ApplyAction::BUFF.0
        | ApplyAction::IPMA.0
        | ApplyAction::IPMD.0;
    const MULTICAST: u16 = ApplyAction::FSSM.0 | ApplyAction::MBSU.0;
    let second = match second {
        Some(second) => second,
        None => 0,
    };
    let action = u16::from_le_bytes([first, second]);
    match (action & ONE).count_ones() {
        0 => action & MULTICAST != 0,
        1 => true,
        _ => false,
    }
}
