//! Values that a clause forbids and that a receiver cannot act on (TS 29.244 §7.6.8). Unknown
//! values in reports and features are not among them, and are kept.
//!
//! There are two checks of the same rules: `valid_first_bytes`, which the tables of the walk
//! contain as a range, and `incorrect`, which has the last word. The range may be too small, never
//! too large. The two predicates about types tell the shape cache which bytes of a value decide.

use crate::ie::{
    ApplyAction, Cause, DestinationInterface, Ie, IeType, MeasurementMethod, NodeIdType,
    NodeReportType, PdnType, ReportType, SourceInterface,
};

/// Returns `true` if the number in an element must be one of those that its clause lists.
pub(crate) const fn is_closed(ie: IeType) -> bool {
    matches!(
        ie,
        // A rule with an interface that is not known here cannot be installed (§8.2.2, §8.2.24),
        // and a session of an unknown type not set up (§8.2.79). Other enumerations only inform.
        IeType::SOURCE_INTERFACE | IeType::DESTINATION_INTERFACE | IeType::PDN_TYPE
    )
}

/// Returns a range of first bytes for which [`incorrect`] accepts a value, whatever follows. Values
/// outside of the range may be correct as well.
pub(crate) const fn valid_first_bytes(ie: IeType) -> (u8, u8) {
    match ie {
        // DROP or FORW alone, as nearly every rule has it.
        IeType::APPLY_ACTION => (1, 2),
        IeType::CAUSE
        | IeType::REPORT_TYPE
        | IeType::NODE_REPORT_TYPE
        // Zero is reserved or names nothing.
        | IeType::MEASUREMENT_METHOD => (1, u8::MAX),
        _ => (0, u8::MAX),
    }
}

/// Returns `true` if [`incorrect`] can reject values of the type.
pub(crate) const fn is_value_checked(ie: IeType) -> bool {
    is_closed(ie) || is_checked_by_head_only(ie) || matches!(ie, IeType::CAUSE | IeType::SDF_FILTER)
}

/// Returns `true` if [`incorrect`] looks only at the head and the length of such a value.
pub(crate) const fn is_checked_by_head_only(ie: IeType) -> bool {
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

/// Returns the clause that a checked value violates, or `None` if it violates none. This runs for
/// every element that its row alone does not accept, so it looks only at the bytes that decide.
#[inline]
pub(crate) fn incorrect(ie: IeType, value: &[u8]) -> Option<&'static str> {
    let first = value.first().copied().unwrap_or(0);
    let (forbidden, clause) = match ie {
        // The bits above the number are spare, in this and in the next two elements.
        IeType::SOURCE_INTERFACE => (SourceInterface(first & 0xf).name().is_none(), "8.2.2"),
        IeType::DESTINATION_INTERFACE => {
            (DestinationInterface(first & 0xf).name().is_none(), "8.2.24")
        }
        IeType::PDN_TYPE => (PdnType(first & 7).name().is_none(), "8.2.79"),
        // Unknown causes are kept: their range says whether the request was accepted.
        IeType::CAUSE => (first == Cause::RESERVED.0, "8.2.1"),
        // An unknown type, or an empty FQDN.
        IeType::NODE_ID => match NodeIdType(first & 0xf) {
            NodeIdType::FQDN => (value.len() == 1, "8.2.38"),
            kind => (kind > NodeIdType::FQDN, "8.2.38"),
        },
        // The flag FD with an empty flow description. The byte between them is spare.
        IeType::SDF_FILTER => (first & 1 != 0 && value.get(2..4) == Some(&[0; 2]), "8.2.5"),
        // V4 or V6 must be set; for the UE IP address, CHV4 or CHV6 will do as well.
        IeType::F_TEID => (first & 0b11 == 0, "8.2.3"),
        IeType::F_SEID => (first & 0b11 == 0, "8.2.37"),
        IeType::UE_IP_ADDRESS => (first & 0b11_0011 == 0, "8.2.62"),
        IeType::APPLY_ACTION => (
            !has_one_exclusive_action(first, value.get(1).copied()),
            "8.2.26",
        ),
        // Two bytes of flags, none of which is set: there is no header to create.
        IeType::OUTER_HEADER_CREATION => (matches!(value, [0, 0, ..]), "8.2.56"),
        IeType::REPORT_TYPE => (is_none::<ReportType>(value), "8.2.21"),
        IeType::NODE_REPORT_TYPE => (is_none::<NodeReportType>(value), "8.2.69"),
        IeType::MEASUREMENT_METHOD => (is_none::<MeasurementMethod>(value), "8.2.40"),
        _ => return None,
    };
    forbidden.then_some(clause)
}

/// Returns `true` if none of the flags that the specification defines is set.
fn is_none<T: Ie + Default + PartialEq>(value: &[u8]) -> bool {
    // Spare bits are not among the flags, so a value that has only those names nothing.
    T::decode(value).is_ok_and(|flags| flags == T::default())
}

/// Returns `true` if the actions are consistent: at most one of those that exclude each other, such
/// as DROP and FORW, is set. Only the multicast actions may stand alone instead.
const fn has_one_exclusive_action(first: u8, second: Option<u8>) -> bool {
    const EXCLUSIVE_ACTIONS: u16 = ApplyAction::DROP.0
        | ApplyAction::FORW.0
        | ApplyAction::BUFF.0
        | ApplyAction::IPMA.0
        | ApplyAction::IPMD.0;
    const MULTICAST: u16 = ApplyAction::FSSM.0 | ApplyAction::MBSU.0;
    // The second byte came later, and older peers send only one.
    let second = match second {
        Some(second) => second,
        None => 0,
    };
    // The flags of the first byte are the lower ones, as in `ApplyAction`.
    let action = u16::from_le_bytes([first, second]);
    match (action & EXCLUSIVE_ACTIONS).count_ones() {
        // FSSM and MBSU replace the others for multicast sessions (§8.2.26); flags such as NOCP
        // only modify.
        0 => action & MULTICAST != 0,
        1 => true,
        _ => false,
    }
}
