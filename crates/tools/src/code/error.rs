//! Why a run of code came to nothing.

use std::fmt;

use serde_json::json;
use strowger::{Code, Fault};
use thiserror::Error;

/// Why a run came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The code failed: it threw something, or cannot be read.
    #[error("{0}")]
    Thrown(Thrown),
    /// It passed a limit, and was ended.
    #[error("passed the limit `{0}`")]
    Limit(CodeLimit),
    /// Its value cannot be given to others, for the reason that is named.
    #[error("its value cannot be given: {0}")]
    Value(String),
    /// Nobody wanted its result any more, and it was ended.
    #[error("given up before it was done")]
    Cancelled,
    /// It waits for a promise that nothing will settle.
    #[error("waits for a promise that nothing will settle")]
    Unsettled,
    /// The actor does not take code of this language.
    #[error("this actor runs no {0}")]
    Language(&'static str),
    /// A function cannot be given under this name.
    #[error("no function can be given as `{0}`")]
    Function(String),
    /// There is no room for one more run or realm now.
    #[error("no room for one more: {0}")]
    Full(String),
    /// The machine failed; it is not the code's fault.
    #[error("the sandbox failed: {0}")]
    Sandbox(String),
}

/// What code threw.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct Thrown {
    /// The name of the error; empty for what is no error.
    pub name: String,
    /// Its message.
    pub message: String,
    /// Where it was thrown, a line for each call.
    pub stack: String,
}

impl Thrown {
    /// Reads what a realm reports.
    #[must_use]
    pub fn of(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_else(|_| Self {
            message: "an error that could not be told".to_owned(),
            ..Self::default()
        })
    }
}

impl Thrown {
    /// Line and column where it was thrown, from 1, in the code that ran; unless that is not known.
    #[must_use]
    pub fn place(&self) -> Option<(u32, u32)> {
        let place = |line: &str| {
            let (rest, column) = line.trim_end_matches(')').rsplit_once(':')?;
            let (_, line) = rest.rsplit_once(':')?;
            Some((line.parse().ok()?, column.parse().ok()?))
        };
        self.stack.lines().find_map(place)
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.name {
            "" => write!(f, "threw {}", self.message),
            name => write!(f, "{name}: {}", self.message),
        }
    }
}

/// A limit of [`CodeLimits`](crate::CodeLimits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodeLimit {
    /// It computed for longer than it may.
    Time,
    /// It took longer than it may, with what it waited for.
    Deadline,
    /// It wanted more memory.
    Memory,
    /// It called itself too deeply.
    Stack,
    /// More jobs of promises wait than may.
    Jobs,
    /// It wrote more to the console.
    Output,
    /// Its result is longer, or what it hands to a function.
    Result,
    /// The code is longer.
    Source,
}

impl CodeLimit {
    /// All of them.
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

    /// Its name, as it is in configurations, faults and audits.
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

    /// The limit of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.name() == name)
    }
}

impl fmt::Display for CodeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl CodeError {
    /// One word for figures and audits.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Thrown(_) => "thrown",
            Self::Limit(limit) => limit.name(),
            Self::Value(_) => "value",
            Self::Cancelled => "cancelled",
            Self::Unsettled => "unsettled",
            Self::Language(_) => "language",
            Self::Function(_) => "function",
            Self::Full(_) => "full",
            Self::Sandbox(_) => "sandbox",
        }
    }

    /// As those outside see it; `details` have the `reason`, and of what was thrown its `name`,
    /// `message` and `stack`, and `line` and `column` where they are known.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let code = match self {
            Self::Limit(_) => Code::Refused,
            Self::Cancelled => Code::Cancelled,
            Self::Language(_) | Self::Function(_) => Code::BadRequest,
            Self::Full(_) => Code::Full,
            _ => Code::Failed,
        };
        let details = match self {
            Self::Thrown(thrown) => {
                let mut details = json!({
                    "reason": self.name(),
                    "name": thrown.name,
                    "message": thrown.message,
                    "stack": thrown.stack,
                });
                if let Some((line, column)) = thrown.place() {
                    (details["line"], details["column"]) = (json!(line), json!(column));
                }
                details
            }
            _ => json!({ "reason": self.name() }),
        };
        Fault::new(code, self.to_string()).with_details(details)
    }
}
