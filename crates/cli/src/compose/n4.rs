//! The methods of the control socket for PFCP.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `pfcp.sessions` | `seid`, `ue_address`, `teid`, `peer`, `node`, all optional | rows |
//! | `pfcp.rules` | `node`, optional | the rules of each session, in hex |
//! | `pfcp.associations` | none | rows |
//! | `pfcp.stats` | none | the counters of the node |
//!
//! The methods for peers are in [`peer`]. `inspect` of a session's actor has the session and its
//! rules under `details`.

mod peer;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Map, Value, json};
use strowger::{ActorPath, Fault, FaultCode};
use strowger_gateway::method::{MethodOutput, Methods};
use strowger_pfcp::{Frame, Header, Index, MessageType, MessageView, Seid, Sequence, to_json};
use strowger_pfcp_node::{
    AssociationInfo, NodeHandle, PolicyStats, SessionFilter, SessionInfo, StoreHealth, UsageStats,
};

use super::verbs;

/// Adds the methods for PFCP.
pub(super) fn register(methods: Methods, node: &NodeHandle) -> Methods {
    let (of_sessions, of_associations) = (node.clone(), node.clone());
    let (of_rules, of_stats, of_details) = (node.clone(), node.clone(), node.clone());
    peer::register(methods, node)
        .register(verbs::SESSIONS, move |params| {
            let sessions = parse_filter(&params).map(|filter| of_sessions.sessions(&filter));
            async move {
                let rows = sessions?.into_iter().map(|info| session_to_json(&info));
                Ok(MethodOutput::rows(rows))
            }
        })
        .register(verbs::RULES, move |params| {
            let rows = parse_filter(&params).map(|filter| rules(&of_rules, &filter));
            async move { Ok(MethodOutput::rows(rows?)) }
        })
        .register(verbs::ASSOCIATIONS, move |_| {
            let rows = of_associations.associations();
            async move {
                Ok(MethodOutput::rows(
                    rows.into_iter().map(|info| association_to_json(&info)),
                ))
            }
        })
        .register(verbs::STATS, move |_| {
            let stats = stats(&of_stats);
            async move { Ok(stats) }
        })
        .describe(move |path| {
            let details = details(&of_details, &path);
            async move { details }
        })
}

/// Returns the counters of the node.
pub(crate) fn stats(node: &NodeHandle) -> Value {
    let stats = node.stats();
    let refused: Map<String, Value> = stats
        .refused
        .iter()
        .map(|(cause, count)| (cause.0.to_string(), json!(count)))
        .collect();
    let deviations: Map<String, Value> = stats
        .deviations
        .iter()
        .map(|(deviation, count)| (deviation.name().to_owned(), json!(count)))
        .collect();
    let claims_refused: Map<String, Value> = stats
        .claims_refused
        .iter()
        .map(|(claim, count)| ((*claim).to_owned(), json!(count)))
        .collect();
    let discarded: Map<String, Value> = stats
        .discarded
        .iter()
        .map(|(kind, count)| (kind.name().replace(' ', "_"), json!(count)))
        .collect();
    json!({
        "sessions": stats.sessions,
        "associations": stats.associations,
        "established": stats.established,
        "modified": stats.modified,
        "deleted": stats.deleted,
        "superseded": stats.superseded,
        "refused": refused,
        "dropped": stats.dropped,
        "restored": stats.restored,
        "datagrams": stats.datagrams,
        "repeated": stats.repeated,
        "evicted": stats.evicted,
        "rule_memory": stats.rule_memory,
        "rule_memory_of_peer": stats.rule_memory_of_peer,
        "memory_refused": stats.memory_refused,
        "limited": stats.limited,
        "restarts": stats.restarts,
        "restarts_denied": stats.restarts_denied,
        "stamps_ignored": stats.stamps_ignored,
        "setups_refused": stats.setups_refused,
        "claims_refused": claims_refused,
        "deviations": deviations,
        "unsent": stats.unsent,
        "discarded": discarded,
        "store": store_to_json(&node.store()),
        "usage": usage_to_json(&stats.usage),
        "policy": policy_to_json(&stats.policy),
    })
}

/// Returns the counters of measurement and reporting.
fn usage_to_json(usage: &UsageStats) -> Value {
    json!({
        "metered": usage.metered,
        "forwarded": usage.forwarded,
        "buffered": usage.buffered,
        "dropped": usage.dropped,
        "requests": usage.requests,
        "unanswered": usage.unanswered,
        "withdrawn": usage.withdrawn,
        "reports": usage.reports,
        "refused": usage.refused,
    })
}

/// Returns the counters of requests to the policy and their answers.
fn policy_to_json(policy: &PolicyStats) -> Value {
    json!({
        "admitted": policy.admitted,
        "changed": policy.changed,
        "refused": policy.refused,
        "late": policy.timed_out,
        "failed": policy.failed,
        "busy": policy.busy,
    })
}

/// Returns the health of the store, or null if sessions are kept in memory.
fn store_to_json(health: &StoreHealth) -> Value {
    let Some(path) = &health.path else {
        return Value::Null;
    };
    json!({
        "path": path,
        "refusing": health.refusing,
        "groups": health.groups,
        "writes": health.writes,
        "refused": health.refused,
        "octets": health.bytes,
        "commit_mean_us": mean_us(health.committing, health.groups),
        "commit_max_us": u64::try_from(health.longest.as_micros()).unwrap_or(u64::MAX),
        "lost": health.loss.as_ref().map(ToString::to_string),
    })
}

fn mean_us(all: Duration, count: u64) -> u64 {
    let all = u64::try_from(all.as_micros()).unwrap_or(u64::MAX);
    all.checked_div(count).unwrap_or_default()
}

fn session_to_json(info: &SessionInfo) -> Value {
    let teids: Vec<Value> = info
        .teids
        .iter()
        .map(|(teid, address)| json!({ "teid": teid, "address": address }))
        .collect();
    json!({
        "seid": info.seid.0,
        "peer_seid": info.peer_seid.0,
        "node": info.node,
        "peer": info.peer,
        "path": info.path,
        "ue_addresses": info.ue_addresses,
        "teids": teids,
        "pdrs": info.pdrs,
        "fars": info.fars,
        "urrs": info.urrs,
        "qers": info.qers,
        "octets": info.bytes,
    })
}

/// Returns the rules of the sessions that pass the filter, in hex.
fn rules(node: &NodeHandle, filter: &SessionFilter) -> Vec<Value> {
    let row = |info: SessionInfo| {
        let rules = node.rules(info.seid)?;
        let mut text = String::with_capacity(rules.len() * 2);
        for byte in rules {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Some(json!({ "seid": info.seid.0, "peer_seid": info.peer_seid.0, "rules": text }))
    };
    node.sessions(filter).into_iter().filter_map(row).collect()
}

fn association_to_json(info: &AssociationInfo) -> Value {
    json!({
        "node": info.node,
        "peer": info.peer,
        "recovery": info.recovery,
        "path": info.path,
        "sessions": info.sessions,
    })
}

/// Returns the session whose actor is at `path`, with its rules as elements.
fn details(node: &NodeHandle, path: &ActorPath) -> Option<Value> {
    let seid = path.key().strip_prefix("0x")?;
    let seid = Seid(u64::from_str_radix(seid, 16).ok()?);
    let info = node
        .session(seid)
        .filter(|info| info.path == path.as_str())?;
    let rules = node.rules(seid)?;
    Some(json!({ "session": session_to_json(&info), "rules": elements(seid, &rules) }))
}

/// Returns the rules as `decode --json` prints elements.
pub(crate) fn elements(seid: Seid, rules: &[u8]) -> Value {
    let read = as_message(seid, rules, |view| to_json(view)["ies"].take());
    read.unwrap_or_else(|error| json!({ "error": error.to_string(), "octets": rules.len() }))
}

/// Returns the rules as `decode` prints elements.
pub(crate) fn elements_as_text(seid: Seid, rules: &[u8]) -> String {
    let read = as_message(seid, rules, |view| {
        let text = view.to_string();
        // Skip the first line: it describes the message, which is made up here.
        text.split_once('\n')
            .map_or_else(String::new, |(_, rest)| rest.to_owned())
    });
    read.unwrap_or_else(|error| error.to_string())
}

/// Decodes rules as the message that would establish them.
fn as_message<T>(
    seid: Seid,
    rules: &[u8],
    read: impl FnOnce(&MessageView<'_>) -> T,
) -> Result<T, strowger_pfcp::Error> {
    let message = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let header = Header::session(message, seid, Sequence::default());
    let mut bytes = Vec::with_capacity(rules.len() + header.encoded_len());
    let mut index = Index::default();
    header.encode(rules.len(), &mut bytes)?;
    bytes.extend_from_slice(rules);
    let frame = Frame::decode(&bytes)?;
    MessageView::of(&frame, &mut index).map(|view| read(&view))
}

fn parse_filter(params: &Value) -> Result<SessionFilter, Fault> {
    let mut filter = SessionFilter::default();
    let object = match params {
        Value::Null => return Ok(filter),
        Value::Object(object) => object,
        _ => return Err(bad_request("parameters must be an object")),
    };
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let number = || {
            let number = value.as_u64();
            number.ok_or_else(|| bad_request(&format!("parameter \"{key}\" must be a number")))
        };
        let address = || {
            let address = value.as_str().and_then(|text| text.parse::<IpAddr>().ok());
            address
                .ok_or_else(|| bad_request(&format!("parameter \"{key}\" must be an IP address")))
        };
        match key.as_str() {
            "seid" => filter.seid = Some(Seid(number()?)),
            "teid" => {
                let teid = u32::try_from(number()?);
                filter.teid =
                    Some(teid.map_err(|_| bad_request("\"teid\" must be at most 32 bits"))?);
            }
            "ue_address" => filter.ue_address = Some(address()?),
            "peer" => filter.peer = Some(address()?),
            "node" => filter.node = value.as_str().map(str::to_owned),
            _ => {
                let text = "expected seid, ue_address, teid, peer or node";
                return Err(bad_request(&format!("unknown parameter \"{key}\"; {text}")));
            }
        }
    }
    Ok(filter)
}

fn bad_request(text: &str) -> Fault {
    Fault::new(FaultCode::BadRequest, text)
}
