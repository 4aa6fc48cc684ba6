//! `top` and `trace`: the activity of a node.

use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::{
    ActorSystem, Event, Fault, FaultCode, LateAsk, PathPattern, TopQuery, TopRank, TopRow,
    TraceEnd, TraceLimits, TraceRecord, TraceStep,
};

use super::{Params, annotated_stats, micros};
use crate::health::HealthRegistry;
use crate::method::{Annotations, MethodOutput};
use crate::snapshot::{self, TakeSnapshot};

/// The path of the actor that takes snapshots.
const SNAPSHOT_TAKER: &str = "/gateway/reader";

/// Time limit of `top` for its snapshot; the deadline of the call may be shorter.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn top(
    system: &ActorSystem,
    health: &HealthRegistry,
    annotations: &Annotations,
    params: &Value,
) -> Result<Value, Fault> {
    let params = Params::parse(params, &["sort", "limit", "path"])?;
    let rank = match params.text("sort")?.unwrap_or("depth") {
        "depth" => TopRank::Depth,
        "rate" => TopRank::Rate,
        "busy" => TopRank::Busy,
        "memory" => TopRank::Memory,
        "restarts" => TopRank::Restarts,
        other => {
            let text =
                format!("cannot sort by {other:?}; expected depth, rate, busy, memory or restarts");
            return Err(Fault::new(FaultCode::BadRequest, text));
        }
    };
    let mut query = TopQuery::new(rank);
    if let Some(limit) = params.number("limit")? {
        query = query.rows(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    let within = params.text("path")?.map(pattern).transpose()?;
    if let Some(pattern) = &within {
        query = query.within_pattern(pattern.clone());
    }
    let gone = |why: String| Fault::new(FaultCode::Failed, format!("reading failed: {why}"));
    let taker = snapshot::find(system, SNAPSHOT_TAKER)
        .ok_or_else(|| gone("the client stopped reading".to_owned()))?;
    let top = taker
        .ask_within(TakeSnapshot(query), SNAPSHOT_TIMEOUT)
        .await;
    let top = top.map_err(|error| gone(error.to_string()))?;
    let totals = &top.totals;
    let late = late_asks(system, within.as_ref());
    let limits = health
        .limit_usages()
        .map(|(name, usage)| json!({ "name": name, "used": usage.used, "most": usage.limit }));
    Ok(json!({
        "name": system.name(),
        "span_ms": micros(top.span) / 1000,
        "took_us": micros(top.duration),
        "totals": {
            "actors": totals.actors,
            "depth": totals.depth,
            "nearly_full": totals.nearly_full,
            "handled": totals.handled,
            "dropped": totals.dropped,
            "restarts": totals.restarts,
            "memory": totals.memory,
            "rate": round(totals.rate),
            "load": round(totals.load),
            "late_asks": late.len(),
        },
        "limits": limits.collect::<Vec<_>>(),
        "late_asks": late.iter().take(MAX_LATE_ASKS).map(late_ask_row).collect::<Vec<_>>(),
        "rows": top.rows.iter().map(|row| top_row(row, annotations)).collect::<Vec<_>>(),
    }))
}

/// Maximum number of late asks that `top` names.
const MAX_LATE_ASKS: usize = 20;

/// Returns the late asks of and by actors with matching paths, the oldest first.
fn late_asks(system: &ActorSystem, within: Option<&PathPattern>) -> Vec<LateAsk> {
    let mut late = system.late_asks();
    if let Some(pattern) = within {
        late.retain(|ask| {
            let asker = ask.asker.as_ref();
            pattern.matches(&ask.callee) || asker.is_some_and(|asker| pattern.matches(asker))
        });
    }
    late
}

fn late_ask_row(ask: &LateAsk) -> Value {
    json!({
        "asker": ask.asker.as_ref().map(ToString::to_string),
        "callee": ask.callee.to_string(),
        "age_ms": micros(ask.age) / 1000,
    })
}

fn top_row(row: &TopRow, annotations: &Annotations) -> Value {
    let mut value = annotated_stats(&row.info, annotations);
    value["rate"] = json!(round(row.rate));
    value["load"] = json!(round(row.load));
    value
}

/// Rounds to thousandths; more digits would be noise.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

fn pattern(text: &str) -> Result<PathPattern, Fault> {
    text.parse()
        .map_err(|error| Fault::new(FaultCode::BadRequest, format!("pattern {text:?}: {error}")))
}

/// Maximum number of records of a trace, and its maximum duration.
const MAX_TRACE_RECORDS: u64 = 100_000;
const MAX_TRACE_TIME: Duration = Duration::from_secs(3600);

pub(super) async fn trace(system: &ActorSystem, params: &Value) -> Result<MethodOutput, Fault> {
    let params = Params::parse(params, &["path", "max", "within_ms"])?;
    let Some(text) = params.text("path")? else {
        let text = "missing parameter \"path\", such as \"/gateway/**\"";
        return Err(Fault::new(FaultCode::BadRequest, text));
    };
    let pattern = pattern(text)?;
    let mut limits = TraceLimits::default();
    if let Some(max) = params.number("max")? {
        if max == 0 || max > MAX_TRACE_RECORDS {
            let text = format!("\"max\" is {max}; must be from 1 to {MAX_TRACE_RECORDS}");
            return Err(Fault::new(FaultCode::BadRequest, text));
        }
        limits.records = max;
    }
    limits.bytes = MAX_TRACE_BYTES;
    if let Some(within) = params.number("within_ms")? {
        limits.duration = Duration::from_millis(within).min(MAX_TRACE_TIME);
    }
    let mut tracer = system.trace(pattern, limits).await;
    let mut over = false;
    Ok(MethodOutput::stream(move |cx| {
        if over {
            return Poll::Ready(None);
        }
        tracer.poll_next(cx).map(|record| match record {
            Some(record) => Some(record_row(&record)),
            None => {
                over = true;
                let end = tracer.end_reason().map(end_reason_name);
                Some(json!({ "end": end, "lost": tracer.lost() }))
            }
        })
    }))
}

/// Maximum size of a trace, in bytes.
const MAX_TRACE_BYTES: usize = 16 * 1024 * 1024;

fn end_reason_name(end: TraceEnd) -> &'static str {
    match end {
        TraceEnd::Records => "records",
        TraceEnd::Bytes => "octets",
        TraceEnd::Time => "time",
        _ => "closed",
    }
}

fn record_row(record: &TraceRecord) -> Value {
    let mut value = json!({
        "at_us": micros(record.at),
        "path": record.path.as_str(),
        "step": "",
        "text": record.step.to_string(),
    });
    let mut set = |step: &str, members: Value| {
        value["step"] = json!(step);
        if let (Some(into), Value::Object(members)) = (value.as_object_mut(), members) {
            into.extend(members);
        }
    };
    match &record.step {
        TraceStep::Message { name, waiting } => {
            set("message", json!({ "name": name, "waiting": waiting }));
        }
        TraceStep::Handled { took, failed } => {
            let took = micros(*took);
            set("handled", json!({ "took_us": took, "failed": failed }));
        }
        TraceStep::Signal { name } => set("signal", json!({ "name": name })),
        TraceStep::Event(event) => match event {
            Event::Started { .. } => set("started", json!({})),
            Event::Stopped { exit, .. } => set("stopped", json!({ "exit": exit.to_string() })),
            Event::Restarted { exit, .. } => set("restarted", json!({ "exit": exit.to_string() })),
            Event::Escalated { exit, .. } => set("escalated", json!({ "exit": exit.to_string() })),
            Event::DeadLetter { count, exit, .. } => {
                let exit = exit.to_string();
                set("dead-letter", json!({ "count": count, "exit": exit }));
            }
            Event::Overflow { count, .. } => set("overflow", json!({ "count": count })),
            _ => set("event", json!({})),
        },
        _ => set("other", json!({})),
    }
    value
}
