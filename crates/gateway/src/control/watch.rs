//! `top` and `trace`: what a node is busy with.

use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::{
    ActorSystem, Code, Event, Fault, PathPattern, Rank, Ranked, TopQuery, TraceEnd, TraceLimits,
    TraceRecord, TraceStep,
};

use super::{Params, micros, noted};
use crate::method::{Answer, Notes};
use crate::reader::{self, Read};
use crate::vital::Vitals;

/// Where the reader of the system is.
const READER: &str = "/gateway/reader";

/// How long `top` waits for its reading; the deadline of the call may be shorter.
const READING: Duration = Duration::from_secs(60);

pub(super) async fn top(
    system: &ActorSystem,
    vitals: &Vitals,
    notes: &Notes,
    params: &Value,
) -> Result<Value, Fault> {
    let params = Params::of(params, &["sort", "limit", "path"])?;
    let rank = match params.text("sort")?.unwrap_or("depth") {
        "depth" => Rank::Depth,
        "rate" => Rank::Rate,
        "busy" => Rank::Busy,
        "memory" => Rank::Memory,
        "restarts" => Rank::Restarts,
        other => {
            let text =
                format!("cannot sort by {other:?}; there are depth, rate, busy, memory, restarts");
            return Err(Fault::new(Code::BadRequest, text));
        }
    };
    let mut query = TopQuery::new(rank);
    if let Some(limit) = params.number("limit")? {
        query = query.rows(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    if let Some(text) = params.text("path")? {
        query = query.matching(pattern(text)?);
    }
    let gone = |why: String| Fault::new(Code::Failed, format!("no reading: {why}"));
    let reader = reader::find(system, READER).ok_or_else(|| gone("nobody reads".to_owned()))?;
    let top = reader.ask_within(Read(query), READING).await;
    let top = top.map_err(|error| gone(error.to_string()))?;
    let totals = &top.totals;
    let limits = vitals
        .usages()
        .map(|(name, usage)| json!({ "name": name, "used": usage.used, "most": usage.most }));
    Ok(json!({
        "name": system.name(),
        "span_ms": micros(top.span) / 1000,
        "took_us": micros(top.took),
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
        },
        "limits": limits.collect::<Vec<_>>(),
        "rows": top.rows.iter().map(|row| ranked(row, notes)).collect::<Vec<_>>(),
    }))
}

fn ranked(row: &Ranked, notes: &Notes) -> Value {
    let mut value = noted(&row.info, notes);
    value["rate"] = json!(round(row.rate));
    value["load"] = json!(round(row.load));
    value
}

/// To a thousandth: more would be noise.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

fn pattern(text: &str) -> Result<PathPattern, Fault> {
    text.parse()
        .map_err(|error| Fault::new(Code::BadRequest, format!("pattern {text:?}: {error}")))
}

/// The most records of a trace, and the longest that it may last.
const MOST: u64 = 100_000;
const LONGEST: Duration = Duration::from_secs(3600);

pub(super) async fn trace(system: &ActorSystem, params: &Value) -> Result<Answer, Fault> {
    let params = Params::of(params, &["path", "max", "within_ms"])?;
    let Some(text) = params.text("path")? else {
        let text = "no \"path\" is given, such as \"/gateway/**\"";
        return Err(Fault::new(Code::BadRequest, text));
    };
    let pattern = pattern(text)?;
    let mut limits = TraceLimits::default();
    if let Some(max) = params.number("max")? {
        if max == 0 || max > MOST {
            let text = format!("\"max\" is {max}; it must be from 1 to {MOST}");
            return Err(Fault::new(Code::BadRequest, text));
        }
        limits.records = max;
    }
    limits.octets = OCTETS;
    if let Some(within) = params.number("within_ms")? {
        limits.within = Duration::from_millis(within).min(LONGEST);
    }
    let mut tracer = system.trace(pattern, limits).await;
    let mut over = false;
    Ok(Answer::stream(move |cx| {
        if over {
            return Poll::Ready(None);
        }
        tracer.poll_next(cx).map(|record| match record {
            Some(record) => Some(line(&record)),
            None => {
                over = true;
                let end = tracer.ended().map(why);
                Some(json!({ "end": end, "lost": tracer.lost() }))
            }
        })
    }))
}

/// A trace is over after so many octets.
const OCTETS: usize = 16 * 1024 * 1024;

fn why(end: TraceEnd) -> &'static str {
    match end {
        TraceEnd::Records => "records",
        TraceEnd::Octets => "octets",
        TraceEnd::Time => "time",
        _ => "closed",
    }
}

fn line(record: &TraceRecord) -> Value {
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
