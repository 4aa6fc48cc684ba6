//! Traffic as the user plane reports it, and the decisions about it.

use crate::ie::PdrId;

/// Packets that were detected at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBurst {
    /// The rule that detected the packets.
    pub pdr: PdrId,
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes of the packets.
    pub bytes: u64,
    /// Number of application events in the packets.
    pub events: u64,
}

impl PacketBurst {
    pub(super) fn join(&mut self, other: Self) {
        // As in `Counts::add`: the numbers come from the data path, and must not wrap.
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.events = self.events.saturating_add(other.events);
    }
}

/// A packet detection rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectionRule {
    /// The identifier of the rule.
    pub pdr: PdrId,
    /// `true` if the packets come from the UE.
    pub uplink: bool,
}

/// The decision about packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// The packets are forwarded.
    Forwarded,
    /// The packets are buffered until the control plane decides about them.
    Buffered,
    /// The packets are dropped.
    Dropped,
}
