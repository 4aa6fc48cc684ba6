//! Events that the node publishes on topics of the runtime.

use std::net::SocketAddr;

use strowger::{ActorSystem, Topic, TopicError};
use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::{
    DurationMeasurement, EndTime, Ie as _, StartTime, UrSeqn, UrrId, UsageReportDeletionResponse,
    UsageReportModificationResponse, UsageReportRequest, UsageReportTrigger, VolumeMeasurement,
};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{IeType, Seid};

use crate::store::{SessionRecord, StoredPeer};

/// The establishment, modification or end of a session. Published to [`SessionEvent::TOPIC`].
///
/// The event is published after the change is stored and before the peer receives its response; the
/// events of one session arrive in order. Like every message, an event is delivered at most once: a
/// change that a session stored just before it was killed may not be published.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEvent {
    /// The kind of event.
    pub kind: SessionEventKind,
    /// The node's SEID of the session.
    pub seid: Seid,
    /// The peer's SEID of the session.
    pub peer_seid: Seid,
    /// The Node ID of the peer.
    pub node: NodeName,
    /// The address that the peer sends from.
    pub peer: SocketAddr,
}

/// The kind of a [`SessionEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionEventKind {
    /// The peer established the session.
    Established,
    /// The peer modified the session.
    Modified,
    /// The peer deleted the session.
    Deleted,
    /// The session moved to another peer; the event names the new peer.
    OwnerChanged,
    /// The session ended with its association or its FQ-CSID set, or because its peer restarted or
    /// used its CP F-SEID for another session.
    Ended,
}

/// Usage reports that were sent to the peer of a session. Published to [`UsageReported::TOPIC`].
///
/// The event is published when the report is sent. A report that the peer does not acknowledge is
/// sent again later with the same sequence numbers, and published again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageReported {
    /// The node's SEID of the session.
    pub seid: Seid,
    /// The peer's SEID of the session.
    pub peer_seid: Seid,
    /// The Node ID of the peer.
    pub node: NodeName,
    /// The address that the peer sends from.
    pub peer: SocketAddr,
    /// The usage reports of one message.
    pub reports: Vec<UsageMeasurement>,
}

/// A usage report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageMeasurement {
    /// The URR that the report belongs to.
    pub urr: UrrId,
    /// The sequence number (UR-SEQN); reports with the same number are the same report.
    pub number: UrSeqn,
    /// The trigger of the report.
    pub trigger: UsageReportTrigger,
    /// The start of the measurement.
    pub start: Option<StartTime>,
    /// The end of the measurement.
    pub end: Option<EndTime>,
    /// The measured bytes and packets.
    pub volume: Option<VolumeMeasurement>,
    /// The measured duration, in seconds.
    pub duration: Option<DurationMeasurement>,
}

/// The restart of a peer, which ended its sessions. Published to [`PeerRestartEvent::TOPIC`].
///
/// The event is published when the peer sets up its association with a different Recovery Time
/// Stamp, or confirms the later time stamp of a heartbeat. It follows the [`SessionEvent`]s of the
/// sessions that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerRestartEvent {
    /// The Node ID of the peer.
    pub node: NodeName,
    /// The address that the peer sends from.
    pub peer: SocketAddr,
    /// The previous Recovery Time Stamp, in seconds since 1900.
    pub before: u32,
    /// The new Recovery Time Stamp, in seconds since 1900.
    pub now: u32,
    /// Number of sessions that ended.
    pub sessions: usize,
}

impl PeerRestartEvent {
    /// The topic to subscribe to.
    pub const TOPIC: &str = "n4/restarts";
}

impl SessionEvent {
    /// The topic to subscribe to.
    pub const TOPIC: &str = "n4/sessions";
}

impl UsageReported {
    /// The topic to subscribe to.
    pub const TOPIC: &str = "n4/usage";
}

impl SessionEventKind {
    /// Returns the name of the kind as one lowercase word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Established => "established",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::OwnerChanged => "moved",
            Self::Ended => "ended",
        }
    }
}

macro_rules! usage_report {
    ($($report:ident)*) => { $(
        impl From<$report> for UsageMeasurement {
            fn from(report: $report) -> Self {
                Self {
                    urr: report.urr_id,
                    number: report.ur_seqn,
                    trigger: report.usage_report_trigger,
                    start: report.start_time,
                    end: report.end_time,
                    volume: report.volume_measurement,
                    duration: report.duration_measurement,
                }
            }
        }
    )* };
}

usage_report! { UsageReportRequest UsageReportModificationResponse UsageReportDeletionResponse }

/// The topics that a node publishes to.
#[derive(Clone, Debug)]
pub(crate) struct NodeTopics {
    sessions: Topic<SessionEvent>,
    usage: Topic<UsageReported>,
    restarts: Topic<PeerRestartEvent>,
}

impl NodeTopics {
    pub(crate) fn open(system: &ActorSystem) -> Result<Self, TopicError> {
        Ok(Self {
            sessions: system.topic(SessionEvent::TOPIC)?,
            usage: system.topic(UsageReported::TOPIC)?,
            restarts: system.topic(PeerRestartEvent::TOPIC)?,
        })
    }

    /// Publishes an event about a session.
    pub(crate) fn session(&self, kind: SessionEventKind, record: &SessionRecord) {
        self.sessions.publish(SessionEvent {
            kind,
            seid: record.seid,
            peer_seid: record.peer_seid,
            node: record.owner.node.clone(),
            peer: record.owner.address,
        });
    }

    /// Publishes the restart of a peer; `owner` already has the new Recovery Time Stamp.
    pub(crate) fn restart(&self, owner: &StoredPeer, before: u32, sessions: usize) {
        self.restarts.publish(PeerRestartEvent {
            node: owner.node.clone(),
            peer: owner.address,
            before,
            now: owner.recovery.0,
            sessions,
        });
    }

    /// Publishes the usage reports among the IEs of a message.
    pub(crate) fn usage(&self, record: &SessionRecord, elements: &[u8]) {
        let reports: Vec<_> = Tlvs::new(elements)
            .map_while(Result::ok)
            .filter_map(|tlv| usage_report(tlv.ie, tlv.value))
            .collect();
        if reports.is_empty() {
            return;
        }
        self.usage.publish(UsageReported {
            seid: record.seid,
            peer_seid: record.peer_seid,
            node: record.owner.node.clone(),
            peer: record.owner.address,
            reports,
        });
    }
}

fn usage_report(ie: IeType, value: &[u8]) -> Option<UsageMeasurement> {
    match ie {
        IeType::USAGE_REPORT_REQUEST => UsageReportRequest::decode(value).ok().map(Into::into),
        IeType::USAGE_REPORT_MODIFICATION_RESPONSE => {
            let report = UsageReportModificationResponse::decode(value);
            report.ok().map(Into::into)
        }
        IeType::USAGE_REPORT_DELETION_RESPONSE => {
            let report = UsageReportDeletionResponse::decode(value);
            report.ok().map(Into::into)
        }
        _ => None,
    }
}
