//! Counters of traffic and usage reports.

/// Counters of traffic and usage reports since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageStats {
    /// Number of sessions that currently measure, buffer or watch traffic.
    pub metered: usize,
    /// Number of bytes forwarded, according to the traffic model.
    pub forwarded: u64,
    /// Number of bytes buffered.
    pub buffered: u64,
    /// Number of bytes dropped by rules, gates, quotas or a full buffer.
    pub dropped: u64,
    /// Number of Session Report Requests, without retransmissions.
    pub requests: u64,
    /// Number of Session Report Requests that were not answered, or with a cause that asks to try
    /// again later.
    pub unanswered: u64,
    /// Number of Session Report Requests whose session or association ended before they were
    /// answered.
    pub withdrawn: u64,
    /// Number of usage reports that peers received, in requests that they accepted or in our
    /// responses.
    pub reports: u64,
    /// Number of usage reports that peers refused. They are sent again when the session is deleted.
    pub refused: u64,
}
