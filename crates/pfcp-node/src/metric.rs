//! The metrics of the SMF role for the `metrics` facade: losses and restorations, but no messages.

use metrics::counter;
use strowger_pfcp::validate::Deviation;

use crate::restoration::PeerLoss;

/// Counts a tolerated deviation of a peer from the specification.
pub(crate) fn record_deviation(deviation: Deviation) {
    counter!("strowger_smf_deviations_total", "deviation" => deviation.name()).increment(1);
}

/// Counts a peer that was lost.
pub(crate) fn peer_lost(why: PeerLoss) {
    let reason = match why {
        PeerLoss::Silent => "silent",
        PeerLoss::Restarted(_) => "restarted",
        PeerLoss::NoAssociation => "no_association",
    };
    counter!("strowger_smf_peers_lost_total", "reason" => reason).increment(1);
}

/// Counts a lost peer that was found.
pub(crate) fn peer_found() {
    counter!("strowger_smf_peers_found_total").increment(1);
}

/// Counts an acknowledged session that its peer lost.
pub(crate) fn session_lost() {
    counter!("strowger_smf_sessions_lost_total").increment(1);
}

/// Counts a lost session that was established again.
pub(crate) fn session_restored() {
    counter!("strowger_smf_sessions_restored_total").increment(1);
}

/// Counts a lost session that its peer refused to establish again.
pub(crate) fn session_refused() {
    counter!("strowger_smf_session_restorations_refused_total").increment(1);
}
