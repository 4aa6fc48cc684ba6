//! The methods of the control socket for the log.
//!
//! `logs` has the parameters `path` (an actor and all below it, or a pattern), `level`, `last` and
//! `follow_ms`, all optional. It answers rows as they arrive, and a final one.

use std::time::Duration;

use serde_json::Value;
use strowger::{Fault, FaultCode};
use strowger_gateway::method::{MethodOutput, Methods};
use tracing::Level;

use super::verbs::LOGS;
use crate::log_ring::{ActorSelection, LogFilter, log_ring};

/// Maximum time for which lines are followed.
const MAX_FOLLOW: Duration = Duration::from_secs(3600);

/// Adds the method.
pub(super) fn register(methods: Methods) -> Methods {
    methods.register(LOGS, |params| {
        let filter = parse_filter(&params);
        async move {
            let mut reader = log_ring().read(filter?);
            Ok(MethodOutput::stream(move |cx| reader.poll_next(cx)))
        }
    })
}

fn parse_filter(params: &Value) -> Result<LogFilter, Fault> {
    let wrong = |text: String| Fault::new(FaultCode::BadRequest, text);
    let number = |key: &str, default: u64| match &params[key] {
        Value::Null => Ok(default),
        value => value
            .as_u64()
            .ok_or_else(|| wrong(format!("parameter \"{key}\" must be a number"))),
    };
    let text = |key: &str| match &params[key] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.as_str())),
        _ => Err(wrong(format!("parameter \"{key}\" must be text"))),
    };
    let level = match text("level")?.unwrap_or("info") {
        "error" => Level::ERROR,
        "warn" => Level::WARN,
        "info" => Level::INFO,
        other => {
            let text = format!("unknown level {other:?}; expected error, warn or info");
            return Err(wrong(text));
        }
    };
    Ok(LogFilter {
        actors: text("path")?
            .map(ActorSelection::of)
            .transpose()
            .map_err(wrong)?,
        level,
        last: usize::try_from(number("last", 100)?).unwrap_or(usize::MAX),
        follow: Duration::from_millis(number("follow_ms", 0)?).min(MAX_FOLLOW),
    })
}
