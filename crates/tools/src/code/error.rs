//! Errors of the code actor.

use std::fmt;

use serde_json::json;
use strowger::{Fault, FaultCode};
use thiserror::Error;

use super::json::parse_json;
use super::spec::CodeLimits;

/// The error returned when a run fails.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The code threw a value, or it does not parse.
    #[error("{0}")]
    Thrown(ThrownValue),
    /// The run exceeded a limit and was stopped.
    #[error("{0}")]
    Limit(ExceededLimit),
    /// The value cannot be returned as JSON, for the given reason.
    #[error("the value cannot be returned: {0}")]
    InvalidValue(String),
    /// The run was cancelled because its caller stopped waiting.
    #[error("cancelled")]
    Cancelled,
    /// The run waits for a promise that nothing can settle.
    #[error("waits for a promise that can never settle")]
    Unsettled,
    /// The actor does not run code in this language.
    #[error("this actor does not run {0}")]
    UnsupportedLanguage(&'static str),
    /// The name of a granted function is invalid or used twice.
    #[error("invalid or duplicate function name `{0}`")]
    InvalidFunctionName(String),
    /// No room for another run or realm, or a realm name that is empty or too long.
    #[error("limit reached: {0}")]
    Full(String),
    /// The sandbox itself failed; the code is not the cause.
    #[error("the sandbox failed: {0}")]
    SandboxFailed(String),
}

/// The value that code threw.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct ThrownValue {
    /// The name of the error; empty if the value is not an `Error`.
    pub name: String,
    /// Its message.
    pub message: String,
    /// The stack trace, one line per call.
    pub stack: String,
}

impl ThrownValue {
    /// Parses the JSON that a realm reports.
    #[must_use]
    pub fn from_json(json: &str) -> Self {
        parse_json(json).unwrap_or_else(|why| Self {
            message: format!("an error that cannot be described: {why}"),
            ..Self::default()
        })
    }
}

impl ThrownValue {
    /// Returns line and column, both from 1, of the place in the code where the value was thrown,
    /// or `None` if they are unknown.
    #[must_use]
    pub fn location(&self) -> Option<(u32, u32)> {
        let place = |line: &str| {
            let (rest, column) = line.trim_end_matches(')').rsplit_once(':')?;
            let (_, line) = rest.rsplit_once(':')?;
            Some((line.parse().ok()?, column.parse().ok()?))
        };
        self.stack.lines().find_map(place)
    }
}

impl fmt::Display for ThrownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.name {
            "" => write!(f, "threw {}", self.message),
            name => write!(f, "{name}: {}", self.message),
        }
    }
}

/// A limit of [`CodeLimits`](super::CodeLimits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodeLimit {
    /// Computing time.
    Time,
    /// Total time, including waits.
    Deadline,
    /// Memory.
    Memory,
    /// Stack depth.
    Stack,
    /// Pending promise jobs.
    Jobs,
    /// Console output.
    Output,
    /// Size of the result, or of the arguments of a function call.
    Result,
    /// Size of the code.
    Source,
}

impl CodeLimit {
    /// All limits.
    pub const ALL: [Self; 8] = [
        Self::Time,
        Self::Deadline,
        Self::Memory,
        Self::Stack,
        Self::Jobs,
        Self::Output,
        Self::Result,
        Self::Source,
    ];

    /// The name of the limit in configurations, faults and the audit log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Jobs => "jobs",
            Self::Output => "output",
            Self::Result => "result",
            Self::Source => "source",
        }
    }

    /// Returns the limit with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.name() == name)
    }
}

impl fmt::Display for CodeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl CodeLimit {
    /// The key that tightens this limit for a single call, or `None` if a call cannot tighten it.
    const fn call_key(self) -> Option<&'static str> {
        match self {
            Self::Time => Some("time_ms"),
            Self::Deadline => Some("deadline_ms"),
            Self::Memory | Self::Stack | Self::Jobs | Self::Output | Self::Result => {
                Some(self.name())
            }
            Self::Source => None,
        }
    }

    /// The unit of the limit's value.
    const fn unit(self) -> &'static str {
        match self {
            Self::Time | Self::Deadline => "ms",
            Self::Memory | Self::Stack | Self::Output | Self::Result | Self::Source => "bytes",
            Self::Jobs => "jobs",
        }
    }

    /// Advice on how a run can stay within the limit.
    const fn advice(self) -> &'static str {
        match self {
            Self::Time => "compute less",
            Self::Deadline => "wait for less",
            Self::Memory => "keep less in memory",
            Self::Stack => "nest calls and values less deeply",
            Self::Jobs => "let fewer promises wait at a time",
            Self::Output => "write less to the console",
            Self::Result => "return less, and pass less to functions, at a time",
            Self::Source => "send less code and `args`",
        }
    }

    /// The placeholder for a value of this limit in a configuration.
    const fn placeholder(self) -> &'static str {
        match self {
            Self::Time | Self::Deadline => "TIME",
            _ => "N",
        }
    }
}

/// A limit that a run exceeded, with the amounts and a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExceededLimit {
    /// The limit.
    pub limit: CodeLimit,
    /// Its value: milliseconds, bytes or jobs.
    pub value: u64,
    /// The amount that was used or requested, if known.
    pub used: Option<u64>,
    /// The origin of the limit.
    pub origin: LimitOrigin,
}

/// The origin of a limit, which decides how it can be raised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitOrigin {
    /// The limits of the code actor.
    #[default]
    Code,
    /// The limits of programs.
    Programs,
    /// The budget of the call, or of the publisher of the program, which is below the actor's
    /// limit.
    Caller,
    /// The TypeScript parser, which has fixed limits.
    TypeStripper,
}

impl ExceededLimit {
    /// A limit set by the code actor.
    #[must_use]
    pub const fn new(limit: CodeLimit, value: u64, used: Option<u64>) -> Self {
        Self {
            limit,
            value,
            used,
            origin: LimitOrigin::Code,
        }
    }

    /// Returns advice on how to stay within the limit, or how to raise it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let (name, advice) = (self.limit.name(), self.limit.advice());
        let raise = |section: &str| {
            let value = self.limit.placeholder();
            format!(
                "{advice}, or raise `{name}` in [{section}.limits], or with --limit \
                 code.{name}={value} of strowger mcp"
            )
        };
        match (self.origin, self.limit.call_key()) {
            (LimitOrigin::Programs, _) => raise("tools.programs"),
            (LimitOrigin::Caller, Some(key)) => {
                format!("{advice}, or raise the call's `{key}`")
            }
            (LimitOrigin::TypeStripper, _) => format!(
                "{advice}: the limit of the TypeScript parser cannot be raised; JavaScript is not \
                 limited by it"
            ),
            (LimitOrigin::Code | LimitOrigin::Caller, _) => raise("tools.code"),
        }
    }
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, value, unit) = (self.limit, self.value, self.limit.unit());
        write!(f, "exceeded the limit `{limit}` of {value} {unit}")?;
        if let Some(used) = self.used {
            write!(f, " (requested {used})")?;
        }
        write!(f, ": {}", self.remedy())
    }
}

impl CodeError {
    /// Returns the limit that was exceeded, if the error is [`CodeError::Limit`].
    #[must_use]
    pub const fn limit(&self) -> Option<CodeLimit> {
        match self {
            Self::Limit(exceeded) => Some(exceeded.limit),
            _ => None,
        }
    }

    /// Records the origin of the exceeded limit: the caller if the limit is below that of the actor
    /// (`own`), else `actor`.
    pub(crate) fn with_origin(mut self, own: &CodeLimits, actor: LimitOrigin) -> Self {
        if let Self::Limit(exceeded) = &mut self
            && exceeded.origin == LimitOrigin::Code
        {
            exceeded.origin = match exceeded.value < own.value(exceeded.limit) {
                true => LimitOrigin::Caller,
                false => actor,
            };
        }
        self
    }

    /// A one-word name for stats and the audit log.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Thrown(_) => "thrown",
            Self::Limit(exceeded) => exceeded.limit.name(),
            Self::InvalidValue(_) => "value",
            Self::Cancelled => "cancelled",
            Self::Unsettled => "unsettled",
            Self::UnsupportedLanguage(_) => "language",
            Self::InvalidFunctionName(_) => "function",
            Self::Full(_) => "full",
            Self::SandboxFailed(_) => "sandbox",
        }
    }

    /// Converts the error to a fault for external callers.
    ///
    /// The `details` have the `reason`. A thrown error adds its `name`, `message` and `stack`, and
    /// `line` and `column` if they are known. A limit adds `most`, the `remedy`, and `used` if it
    /// is known.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let code = match self {
            Self::Limit(_) => FaultCode::Refused,
            Self::Cancelled => FaultCode::Cancelled,
            Self::UnsupportedLanguage(_) | Self::InvalidFunctionName(_) => FaultCode::BadRequest,
            Self::Full(_) => FaultCode::Full,
            _ => FaultCode::Failed,
        };
        let details = match self {
            Self::Thrown(thrown) => {
                let mut details = json!({
                    "reason": self.name(),
                    "name": thrown.name,
                    "message": thrown.message,
                    "stack": thrown.stack,
                });
                if let Some((line, column)) = thrown.location() {
                    (details["line"], details["column"]) = (json!(line), json!(column));
                }
                details
            }
            Self::Limit(exceeded) => {
                let (value, remedy) = (exceeded.value, exceeded.remedy());
                let mut details = json!({ "reason": self.name(), "most": value, "remedy": remedy });
                if let Some(used) = exceeded.used {
                    details["used"] = json!(used);
                }
                details
            }
            _ => json!({ "reason": self.name() }),
        };
        Fault::new(code, self.to_string()).with_details(details)
    }
}
