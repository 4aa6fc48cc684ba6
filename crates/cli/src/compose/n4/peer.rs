//! The methods of the control socket for the peers of a node.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `pfcp.pfds` | none | rows: the packet flow descriptions of each application |
//! | `pfcp.release` | `node`, `within_ms` or `force` (optional) | `outcome`, `cause`, `sessions` |
//! | `pfcp.report` | `node`, `what`, `address` | nothing, once the peer has answered |
//!
//! `what` is `failed`, `recovered` or `restarted`.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::{Fault, FaultCode};
use strowger_gateway::method::{MethodOutput, Methods};
use strowger_pfcp::ie::{
    NodeId, NodeReportType, PeerUpRestartReport, RemoteGtpuPeer, UserPlanePathFailureReport,
    UserPlanePathRecoveryReport,
};
use strowger_pfcp::message::NodeReportRequest;
use strowger_pfcp_node::{NodeHandle, NodeRequestError, ReleaseOutcome, ReleaseReport};

use super::{bad_request, verbs};

/// Adds the methods.
pub(super) fn register(methods: Methods, node: &NodeHandle) -> Methods {
    let (of_pfds, of_release, of_report) = (node.clone(), node.clone(), node.clone());
    methods
        .register(verbs::PFDS, move |_| {
            let rows = of_pfds.pfds();
            async move {
                Ok(MethodOutput::rows(rows.into_iter().map(
                    |row| json!({ "application": row.application, "contents": row.contents }),
                )))
            }
        })
        .register(verbs::RELEASE, move |params| {
            let node = of_release.clone();
            async move {
                let within = params["within_ms"].as_u64().map(Duration::from_millis);
                let asked = match params["force"].as_bool() {
                    Some(true) => node.force_release(node_name(&params)?).await,
                    _ => node.request_release(node_name(&params)?, within).await,
                };
                asked
                    .map(release_to_json)
                    .map_err(|error| request_fault(&error))
            }
        })
        .register(verbs::REPORT, move |params| {
            let node = of_report.clone();
            async move {
                let sent = node
                    .report(node_name(&params)?, parse_report(&params)?)
                    .await;
                sent.map(|()| Value::Null)
                    .map_err(|error| request_fault(&error))
            }
        })
}

fn release_to_json(report: ReleaseReport) -> Value {
    let cause = match report.outcome {
        ReleaseOutcome::Refused(cause) => Some(cause.0),
        _ => None,
    };
    json!({
        "outcome": report.outcome.name(),
        "cause": cause,
        "sessions": report.sessions,
    })
}

fn node_name(params: &Value) -> Result<&str, Fault> {
    let name = params["node"].as_str();
    name.ok_or_else(|| bad_request("parameter \"node\" must be the Node ID of a peer"))
}

fn parse_report(params: &Value) -> Result<NodeReportRequest, Fault> {
    let address = params["address"].as_str().map(str::parse::<IpAddr>);
    let Some(Ok(address)) = address else {
        return Err(bad_request("parameter \"address\" must be an IP address"));
    };
    let peers = [RemoteGtpuPeer::from(address)];
    // A placeholder: the node fills in its own Node ID.
    let of = |kind| NodeReportRequest::new(NodeId::from(address), kind);
    match params["what"].as_str() {
        Some("failed") => {
            let failed = UserPlanePathFailureReport::new().remote_gtpu_peers(peers);
            Ok(of(NodeReportType::UPFR).user_plane_path_failure_report(failed))
        }
        Some("recovered") => {
            let recovered = UserPlanePathRecoveryReport::new().remote_gtpu_peers(peers);
            Ok(of(NodeReportType::UPRR).user_plane_path_recovery_report(recovered))
        }
        Some("restarted") => {
            let restarted = PeerUpRestartReport::new().remote_gtpu_peers(peers);
            Ok(of(NodeReportType::PURR).peer_up_restart_report(restarted))
        }
        _ => Err(bad_request(
            "parameter \"what\" must be failed, recovered or restarted",
        )),
    }
}

fn request_fault(error: &NodeRequestError) -> Fault {
    let code = match error {
        NodeRequestError::UnknownPeer { .. } => FaultCode::UnknownTarget,
        NodeRequestError::Request(_) => FaultCode::BadRequest,
        _ => FaultCode::Failed,
    };
    Fault::new(code, error.to_string())
}
