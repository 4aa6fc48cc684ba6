use std::fmt;

use crate::ie::{FTeid, Ie, IeType};
use crate::wire::Part;

/// A known deviation of real peers that a clause forbids but whose meaning is clear.
///
/// [`validate`](super::validate) refuses it; [`tolerate`](super::tolerate) accepts and reports it.
///
/// ```
/// use strowger_pfcp::validate::Deviation;
///
/// for deviation in Deviation::ALL {
///     println!("{deviation} (§{}): {}", deviation.clause(), deviation.reason());
/// }
/// assert_eq!(Deviation::UnversionedTunnel.name(), "unversioned_tunnel");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Deviation {
    /// An F-TEID with CH, but without V4 and V6.
    UnversionedTunnel,
    /// A 5GS User Plane Node ID of six bytes.
    ShortUserPlaneNodeId,
    /// A rejection that lacks an element required in its message.
    BareRejection,
}

/// The deviation, its name, clause, text and reason.
type DeviationRow = (
    Deviation,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const DEVIATION_ROWS: [DeviationRow; Deviation::ALL.len()] = [
    (
        Deviation::UnversionedTunnel,
        "unversioned_tunnel",
        "8.2.3",
        "F-TEID with CH alone",
        "a real SMF leaves the choice of the IP version to the UP function, which can make it",
    ),
    (
        Deviation::ShortUserPlaneNodeId,
        "short_user_plane_node_id",
        "8.2.143",
        "5GS User Plane Node ID of 6 bytes",
        "UP functions send the MAC address of a bridge, as release 16 had it; it is kept as bytes",
    ),
    (
        Deviation::BareRejection,
        "bare_rejection",
        "7.6.6",
        "rejection without a mandatory element",
        "peers that cannot do a request answer Cause and little else; the Cause says what counts",
    ),
];

impl Deviation {
    /// All known deviations.
    pub const ALL: [Self; 3] = [
        Self::UnversionedTunnel,
        Self::ShortUserPlaneNodeId,
        Self::BareRejection,
    ];

    const fn row(self) -> &'static DeviationRow {
        &DEVIATION_ROWS[self as usize]
    }

    /// Returns the name used in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the clause of TS 29.244 that forbids the deviation.
    #[must_use]
    pub const fn clause(self) -> &'static str {
        self.row().2
    }

    /// Returns the reason why the deviation is tolerated.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.row().4
    }

    /// Returns the deviation that the length of a value is, for values whose fields cannot be
    /// decoded.
    #[inline]
    pub(crate) const fn of_length(ie: IeType, value: &[u8]) -> Option<Self> {
        match (ie, value) {
            // The flag BID, and the six bytes of a MAC address instead of the eight of an
            // identifier.
            (IeType::FIVE_GS_USER_PLANE_NODE_ID, [1, _, _, _, _, _, _]) => {
                Some(Self::ShortUserPlaneNodeId)
            }
            _ => None,
        }
    }

    /// Returns the deviation that a forbidden value amounts to.
    pub(super) fn of_value(part: Part<'_>) -> Option<Self> {
        // CH with V4 or V6 is the form that the clause defines, and an F-TEID without CH needs an
        // address.
        let is_open = |end: FTeid| end.choose && !end.v4 && !end.v6;
        let is_tunnel = part.ie() == IeType::F_TEID;
        (is_tunnel && FTeid::view(part).is_some_and(is_open)).then_some(Self::UnversionedTunnel)
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().3)
    }
}
