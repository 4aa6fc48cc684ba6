//! What the control socket answers about the log.
//!
//! `logs` has the parameters `path` (an actor and all below it, or a pattern), `level`, `last` and
//! `follow_ms`, all optional, and answers rows as they come, and a last one.

use std::time::Duration;

use serde_json::Value;
use strowger_gateway::{Answer, Code, Fault, Methods};
use tracing::Level;

use crate::logbook::{Actors, Wanted, book};

/// The longest that lines are followed.
const LONGEST: Duration = Duration::from_secs(3600);

/// Adds the method.
pub(super) fn register(methods: Methods) -> Methods {
    methods.register("logs", |params| {
        let wanted = wanted(&params);
        async move {
            let mut reading = book().read(wanted?);
            Ok(Answer::stream(move |cx| reading.poll_next(cx)))
        }
    })
}

fn wanted(params: &Value) -> Result<Wanted, Fault> {
    let wrong = |text: String| Fault::new(Code::BadRequest, text);
    let number = |key: &str, usual: u64| match &params[key] {
        Value::Null => Ok(usual),
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
            let text = format!("there is no level {other:?}; there are error, warn, info");
            return Err(wrong(text));
        }
    };
    Ok(Wanted {
        actors: text("path")?.map(Actors::of).transpose().map_err(wrong)?,
        level,
        last: usize::try_from(number("last", 100)?).unwrap_or(usize::MAX),
        follow: Duration::from_millis(number("follow_ms", 0)?).min(LONGEST),
    })
}
