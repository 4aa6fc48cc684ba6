//! What one client, and all clients together, may take.

use std::time::Duration;

/// What one client, and all clients together, may take. Each limit has a safe default.
///
/// Beyond a limit the client gets a fault that names it, or waits; no other client notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most connections at a time, of clients that were let in.
    pub connections: usize,
    /// The most connections of each door that wants a token whose clients have not sent it. When
    /// there are so many, the one that has been silent the longest makes room for the next.
    pub strangers: usize,
    /// The longest payload of a frame, in octets, both ways.
    pub frame: usize,
    /// The most calls of one connection at a time.
    pub in_flight: usize,
    /// The most names that one connection may bind, and the octets of each that is no address.
    pub names: usize,
    /// The most frames of one connection in a second; it waits beyond.
    pub rate: u32,
    /// How many octets may wait to be written to one connection. It is served no further beyond
    /// half of it, and an answer beyond all of it is a fault.
    pub memory: usize,
    /// How long a connection may be silent while no call is in flight.
    pub idle: Duration,
    /// The longest deadline of a call. A stream has one only if its reader gives one.
    pub deadline: Duration,
    /// How long a client may leave what was written unread.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            strangers: 64,
            frame: 1024 * 1024,
            in_flight: 16,
            names: 256,
            rate: 1_000_000,
            memory: 4 * 1024 * 1024,
            idle: Duration::from_secs(60),
            deadline: Duration::from_secs(60),
            stall: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Connections below so many doors, with those that have to end and have not yet.
    pub(crate) const fn children(&self, doors: usize) -> usize {
        let strangers = self.strangers.saturating_mul(2).saturating_mul(doors);
        // One that ends leaves its place a moment before the tree has seen it.
        self.connections
            .saturating_add(strangers)
            .saturating_add(16)
    }
}
