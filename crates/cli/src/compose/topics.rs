//! Topics of a node that clients may subscribe to.

use serde_json::{Value, json};
use strowger::{ActorSystem, ChildSpec, StartError, Strategy, Supervisor};
use strowger_gateway::access::AuditRecord;
use strowger_gateway::relay::RelaySpec;
use strowger_pfcp_node::{PeerRestartEvent, SessionEvent, UsageMeasurement, UsageReported};

/// Relays `@(topic/n4/sessions)`, `@(topic/n4/usage)`, `@(topic/n4/restarts)`, the changes made by
/// callers at `@(topic/doors/audit)`, and the topics of components.
pub(super) async fn relay(
    system: &ActorSystem,
    components: Vec<ChildSpec>,
) -> Result<(), StartError> {
    let sessions = RelaySpec::new(SessionEvent::TOPIC, session_to_json).child("sessions");
    let usage = RelaySpec::new(UsageReported::TOPIC, usage_to_json).child("usage");
    let restarts = RelaySpec::new(PeerRestartEvent::TOPIC, restart_to_json).child("restarts");
    let mut topics = Supervisor::new(Strategy::OneForOne)
        .child(sessions)
        .child(usage)
        .child(restarts)
        .child(RelaySpec::new(AuditRecord::TOPIC, AuditRecord::to_json).child("audit"));
    for relay in components {
        topics = topics.child(relay);
    }
    system.supervise("topics", topics).await.map(drop)
}

fn session_to_json(event: &SessionEvent) -> Value {
    json!({
        "kind": event.kind.name(),
        "seid": event.seid.0,
        "peer_seid": event.peer_seid.0,
        "node": event.node.to_string(),
        "peer": event.peer.to_string(),
    })
}

fn usage_to_json(usage: &UsageReported) -> Value {
    json!({
        "seid": usage.seid.0,
        "peer_seid": usage.peer_seid.0,
        "node": usage.node.to_string(),
        "peer": usage.peer.to_string(),
        "reports": usage.reports.iter().map(measurements_to_json).collect::<Vec<_>>(),
    })
}

fn restart_to_json(restart: &PeerRestartEvent) -> Value {
    json!({
        "node": restart.node.to_string(),
        "peer": restart.peer.to_string(),
        "before": restart.before,
        "now": restart.now,
        "sessions": restart.sessions,
    })
}

/// Returns the measurements that a report contains.
fn measurements_to_json(report: &UsageMeasurement) -> Value {
    let volume = report.volume.as_ref().map(|volume| {
        json!({
            "total": volume.total_volume,
            "uplink": volume.uplink_volume,
            "downlink": volume.downlink_volume,
        })
    });
    json!({
        "urr": report.urr.0,
        "number": report.number.0,
        "octets": volume,
        "seconds": report.duration.as_ref().map(|duration| duration.0),
    })
}
