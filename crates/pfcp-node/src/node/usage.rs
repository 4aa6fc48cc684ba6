//! Counters of what sessions count.

/// Counters of traffic and reports since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageStats {
    /// Sessions that count, buffer or watch traffic now.
    pub metered: usize,
    /// Octets that passed, by the model of traffic.
    pub forwarded: u64,
    /// Octets that were buffered.
    pub buffered: u64,
    /// Octets that rules, gates, quotas or a full buffer stopped.
    pub dropped: u64,
    /// Session Report Requests that were made, repetitions apart.
    pub requests: u64,
    /// Of those, the ones that were not answered, or with a cause that asks for patience.
    pub unanswered: u64,
    /// Of those, the ones that ended with their session or association before they were answered.
    pub withdrawn: u64,
    /// Usage reports that peers have: in requests that they answered, and in our answers.
    pub reports: u64,
    /// Usage reports that peers refused.
    pub refused: u64,
}
