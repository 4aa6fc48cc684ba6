//! What the node tells whoever on the tree wants to know, on topics of the runtime.

use std::net::SocketAddr;

use strowger::{ActorSystem, Topic, TopicError};
use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::{
    DurationMeasurement, EndTime, Ie as _, StartTime, UrSeqn, UrrId, UsageReportDeletionResponse,
    UsageReportModificationResponse, UsageReportRequest, UsageReportTrigger, VolumeMeasurement,
};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{IeType, Seid};

use crate::store::{Owner, SessionRecord};

/// Something became of a session. Published to [`SessionEvent::TOPIC`].
///
/// It is published once what it tells is stored, and before the peer is answered; those of one
/// session come in their order. As every message it comes at most once: what a session wrote just
/// before it was killed is in the store and may not have been told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEvent {
    /// What became of it.
    pub kind: SessionEventKind,
    /// The node's identifier of the session.
    pub seid: Seid,
    /// The peer's identifier of the session.
    pub peer_seid: Seid,
    /// The Node ID of the peer.
    pub node: NodeName,
    /// Where the peer sends from.
    pub peer: SocketAddr,
}

/// What became of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionEventKind {
    /// Its peer established it.
    Established,
    /// Its peer modified it.
    Modified,
    /// Its peer deleted it.
    Deleted,
    /// It went to another peer, who is the one that is told.
    Moved,
    /// It ended with its association or its set of sessions, or because its peer restarted.
    Ended,
}

/// Usage of a session was reported to its peer. Published to [`UsageReported::TOPIC`].
///
/// It is published when the report is sent. One that the peer does not answer is sent again later
/// with the same numbers, and published again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageReported {
    /// The node's identifier of the session.
    pub seid: Seid,
    /// The peer's identifier of the session.
    pub peer_seid: Seid,
    /// The Node ID of the peer.
    pub node: NodeName,
    /// Where the peer sends from.
    pub peer: SocketAddr,
    /// The reports of one message.
    pub reports: Vec<UsageFigures>,
}

/// One usage report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageFigures {
    /// The rule that it is about.
    pub urr: UrrId,
    /// Its number; the same number is the same report.
    pub number: UrSeqn,
    /// Why it is made.
    pub trigger: UsageReportTrigger,
    /// When its counting started.
    pub start: Option<StartTime>,
    /// When its counting ended.
    pub end: Option<EndTime>,
    /// The octets and packets that were counted.
    pub volume: Option<VolumeMeasurement>,
    /// The seconds that were counted.
    pub duration: Option<DurationMeasurement>,
}

/// A peer restarted, and its sessions ended. Published to [`RestartNoticed::TOPIC`].
///
/// It is published when the peer has set its association up with another Recovery Time Stamp, or
/// has confirmed the later one of a heartbeat; after the [`SessionEvent`]s of the sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestartNoticed {
    /// The Node ID of the peer.
    pub node: NodeName,
    /// Where the peer sends from.
    pub peer: SocketAddr,
    /// Its Recovery Time Stamp until then, in seconds since 1900.
    pub before: u32,
    /// Its Recovery Time Stamp from then on, in seconds since 1900.
    pub now: u32,
    /// Number of sessions that ended.
    pub sessions: usize,
}

impl RestartNoticed {
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
    /// Its name in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Established => "established",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Moved => "moved",
            Self::Ended => "ended",
        }
    }
}

macro_rules! figures {
    ($($report:ident)*) => { $(
        impl From<$report> for UsageFigures {
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

figures! { UsageReportRequest UsageReportModificationResponse UsageReportDeletionResponse }

/// The topics of a node.
#[derive(Clone, Debug)]
pub(crate) struct Bulletin {
    sessions: Topic<SessionEvent>,
    usage: Topic<UsageReported>,
    restarts: Topic<RestartNoticed>,
}

impl Bulletin {
    pub(crate) fn open(system: &ActorSystem) -> Result<Self, TopicError> {
        Ok(Self {
            sessions: system.topic(SessionEvent::TOPIC)?,
            usage: system.topic(UsageReported::TOPIC)?,
            restarts: system.topic(RestartNoticed::TOPIC)?,
        })
    }

    /// Tells what became of a session.
    pub(crate) fn session(&self, kind: SessionEventKind, record: &SessionRecord) {
        self.sessions.publish(SessionEvent {
            kind,
            seid: record.seid,
            peer_seid: record.peer_seid,
            node: record.owner.node.clone(),
            peer: record.owner.address,
        });
    }

    /// Tells that a peer restarted, of which this is what it is now.
    pub(crate) fn restart(&self, owner: &Owner, before: u32, sessions: usize) {
        self.restarts.publish(RestartNoticed {
            node: owner.node.clone(),
            peer: owner.address,
            before,
            now: owner.recovery.0,
            sessions,
        });
    }

    /// Tells the usage reports among the elements of a message.
    pub(crate) fn usage(&self, record: &SessionRecord, elements: &[u8]) {
        let reports: Vec<_> = Tlvs::new(elements)
            .map_while(Result::ok)
            .filter_map(|tlv| figures(tlv.ie, tlv.value))
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

fn figures(ie: IeType, value: &[u8]) -> Option<UsageFigures> {
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
