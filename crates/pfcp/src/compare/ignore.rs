use crate::ie::{FieldKind, IeType};

/// The parts of messages that a comparison leaves out.
///
/// ```
/// use strowger_pfcp::{IeType, Ignore};
///
/// // What two runs of one scenario say differently, and what else is of no interest.
/// let ignore = Ignore::runs()
///     .ie(IeType::NODE_ID)
///     .path(&[IeType::CREATE_PDR, IeType::PRECEDENCE]);
/// # let _ = ignore;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignore {
    seids: bool,
    sequences: bool,
    times: bool,
    addresses: bool,
    spare: bool,
    ies: Vec<IeType>,
    paths: Vec<Vec<IeType>>,
}

impl Ignore {
    /// Leaves nothing out: two messages without a difference have the same content.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Leaves out the values that differ between two runs of one scenario: SEIDs, sequence numbers,
    /// times and allocated addresses.
    #[must_use]
    pub fn runs() -> Self {
        Self::nothing().seids().sequences().times().addresses()
    }

    /// Leaves out the SEID of the header and those in F-SEIDs, but not the addresses of F-SEIDs.
    #[must_use]
    pub fn seids(mut self) -> Self {
        self.seids = true;
        self
    }

    /// Leaves out the sequence number of the header.
    #[must_use]
    pub fn sequences(mut self) -> Self {
        self.sequences = true;
        self
    }

    /// Leaves out every date: fields that count seconds since 1900, in any element.
    #[must_use]
    pub fn times(mut self) -> Self {
        self.times = true;
        self
    }

    /// Leaves out TEIDs, addresses and ports that a node allocates: in F-TEID, Outer Header
    /// Creation, UE IP Address, Local Ingress Tunnel, Mapped N6 IP Address and in the address
    /// information of MPTCP, MPQUIC, ATSSS-LL and PMF. A request to allocate an address still
    /// counts.
    #[must_use]
    pub fn addresses(mut self) -> Self {
        self.addresses = true;
        self
    }

    /// Leaves out spare bits, and bytes after the fields that the specification defines.
    #[must_use]
    pub fn spare_bits(mut self) -> Self {
        self.spare = true;
        self
    }

    /// Leaves out the elements of a type, at any level.
    #[must_use]
    pub fn ie(mut self, ie: IeType) -> Self {
        self.ies.push(ie);
        self
    }

    /// Leaves out the elements whose path through the groups ends with `path`: `[PDI, F_TEID]`
    /// matches the F-TEID of every PDI. An empty path matches nothing.
    #[must_use]
    pub fn path(mut self, path: &[IeType]) -> Self {
        if !path.is_empty() {
            self.paths.push(path.to_vec());
        }
        self
    }

    pub(super) fn header_seid(&self) -> bool {
        self.seids
    }

    pub(super) fn header_sequence(&self) -> bool {
        self.sequences
    }

    pub(super) fn spare(&self) -> bool {
        self.spare
    }

    /// Returns `true` if an element is left out. `path` is its path and ends with its type.
    pub(super) fn element(&self, path: &[IeType]) -> bool {
        path.last().is_some_and(|ie| self.ies.contains(ie))
            || self.paths.iter().any(|end| path.ends_with(end))
    }

    /// Returns `true` if a field is left out.
    pub(super) fn field(&self, ie: IeType, name: &str, kind: FieldKind) -> bool {
        match kind {
            FieldKind::Time => self.times,
            _ if ie == IeType::F_SEID => self.seids && name == "seid",
            FieldKind::Ipv4 | FieldKind::Ipv6 | FieldKind::Mac => {
                self.addresses && is_allocated(ie)
            }
            _ => self.addresses && is_allocated(ie) && is_end(name),
        }
    }
}

/// Returns `true` if a number identifies the end of a tunnel or connection.
fn is_end(name: &str) -> bool {
    name == "teid" || name.ends_with("port")
}

const fn is_allocated(ie: IeType) -> bool {
    matches!(
        ie,
        IeType::F_TEID
            | IeType::OUTER_HEADER_CREATION
            | IeType::UE_IP_ADDRESS
            | IeType::LOCAL_INGRESS_TUNNEL
            | IeType::MAPPED_N6_IP_ADDRESS
            | IeType::MPTCP_ADDRESS_INFORMATION
            | IeType::MPQUIC_ADDRESS_INFORMATION
            | IeType::LINK_SPECIFIC_MULTIPATH_IP_ADDRESS
            | IeType::PMF_ADDRESS_INFORMATION
    )
}
