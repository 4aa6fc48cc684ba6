//! Limits for each client, and for all clients together.

use std::time::Duration;

use crate::unauthenticated::BURST;

/// Limits for each client, and for all clients together. Each limit has a safe default.
///
/// A client beyond a limit gets a fault that names the limit, or has to wait; other clients are not
/// affected. Sizes are in bytes.
///
/// ```
/// let mut limits = strowger_gateway::Limits::default();
/// limits.in_flight = 64;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of connections of authenticated clients.
    pub connections: usize,
    /// Maximum number of unauthenticated connections per endpoint that requires a token. Beyond it
    /// each client still has a moment to send its token; then the one that has been silent for
    /// longest is disconnected.
    pub unauthenticated: usize,
    /// Maximum payload of a frame, in bytes, in both directions.
    pub frame: usize,
    /// Maximum number of concurrent calls per connection.
    pub in_flight: usize,
    /// Maximum number of names that a connection may bind, and maximum length in bytes of each name
    /// that is not an address.
    pub names: usize,
    /// Maximum number of frames per second and connection; a faster client has to wait.
    pub rate: u32,
    /// Maximum number of unwritten bytes per connection. Above half of it, no more frames of the
    /// client are handled; an answer that would exceed it becomes a fault.
    pub memory: usize,
    /// Time after which a silent connection without calls in flight is closed.
    pub idle: Duration,
    /// Maximum deadline of a call. A stream has a deadline only if its reader sets one.
    pub deadline: Duration,
    /// Time after which a client that does not read is disconnected.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            unauthenticated: 64,
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
    /// Maximum number of connections below this number of endpoints, including those that are
    /// closing.
    pub(crate) const fn children(&self, endpoints: usize) -> usize {
        let unauthenticated = self.unauthenticated.saturating_add(BURST);
        let unauthenticated = unauthenticated.saturating_mul(2).saturating_mul(endpoints);
        // A connection that ends frees its slot a moment before the actor tree removes it.
        self.connections
            .saturating_add(unauthenticated)
            .saturating_add(16)
    }
}
