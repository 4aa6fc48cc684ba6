//! Messages of the code actor and their replies.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strowger::Request;

use super::error::CodeError;
use super::functions::GrantedFunctions;
use super::sandbox::FunctionDecl;
use super::spec::CodeBudget;

/// The language of a piece of code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub enum Language {
    /// JavaScript, as QuickJS runs it.
    #[default]
    #[serde(rename = "js")]
    JavaScript,
    /// TypeScript, whose types are stripped before it runs.
    #[serde(rename = "ts")]
    TypeScript,
}

/// Runs code. The result is the value of the last expression, awaited if it is a promise.
///
/// Fails with [`CodeError::Thrown`] if the code throws or does not parse, with [`CodeError::Limit`]
/// if it exceeds a limit, and with [`CodeError::Full`] if too many runs wait.
#[derive(Debug, Clone, Default)]
pub struct ExecuteRequest {
    /// Source text to run.
    pub code: String,
    /// The language of the code.
    pub language: Language,
    /// The value of the global `args`. A named realm keeps it until a later run sets another.
    pub args: Option<Value>,
    /// The name of the realm to run in, 1 to 64 bytes; the realm is kept between runs. `None` runs
    /// in a fresh realm.
    pub realm: Option<String>,
    /// The functions that the run is granted, as `fns`.
    pub functions: GrantedFunctions,
    /// Limits that are tighter than those of the actor.
    pub budget: CodeBudget,
}

impl ExecuteRequest {
    /// Creates a request to run JavaScript in a fresh realm that is granted nothing.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            ..Self::default()
        }
    }

    /// Marks the code as TypeScript.
    #[must_use]
    pub const fn typescript(mut self) -> Self {
        self.language = Language::TypeScript;
        self
    }

    /// Sets the global `args`.
    #[must_use]
    pub fn with_args(mut self, args: Value) -> Self {
        self.args = Some(args);
        self
    }

    /// Runs the code in the realm with this name, which is kept between runs.
    #[must_use]
    pub fn in_realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Grants the run these functions.
    #[must_use]
    pub fn with_functions(mut self, functions: GrantedFunctions) -> Self {
        self.functions = functions;
        self
    }

    /// Tightens the limits for this run.
    #[must_use]
    pub const fn with_budget(mut self, budget: CodeBudget) -> Self {
        self.budget = budget;
        self
    }
}

impl Request for ExecuteRequest {
    type Reply = Result<RunResult, CodeError>;
}

/// The result of a successful run. The value has at most
/// [`CodeLimits::result`](super::CodeLimits::result) bytes as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunResult {
    /// The value; `null` if JSON cannot represent it.
    pub value: Value,
    /// The lines written to the console.
    pub output: Vec<ConsoleLine>,
    /// `true` if the realm is new, so state from earlier runs under its name, if any, is lost.
    pub fresh: bool,
}

/// The severity of a line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsoleLevel {
    /// Line written by `console.debug`.
    Debug,
    /// Line written by `console.log`.
    Log,
    /// Line written by `console.info`.
    Info,
    /// Line written by `console.warn`.
    Warn,
    /// Line written by `console.error`.
    Error,
}

impl ConsoleLevel {
    /// Converts the number that a realm reports.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Debug,
            1 => Self::Log,
            2 => Self::Info,
            3 => Self::Warn,
            _ => Self::Error,
        }
    }

    /// The name of the level, which is that of the function of `console`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Log => "log",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// A line that a run wrote to the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsoleLine {
    /// The severity of the line.
    pub level: ConsoleLevel,
    /// The text of the line.
    pub text: String,
}

/// Runs code, and streams its output while it runs. A follower that does not read for the deadline
/// of the run gets an incomplete stream.
#[derive(Debug, Clone, Default)]
pub struct FollowRunRequest {
    /// The run to start and follow.
    pub execute: ExecuteRequest,
    /// Names of functions that the follower implements; the code finds them in `fns` beside the
    /// granted ones. Each call arrives as [`RunEvent::Call`] and waits for its
    /// [`AnswerCallRequest`].
    pub follower_functions: Vec<FunctionDecl>,
}

impl FollowRunRequest {
    /// Creates a request to follow a run, without functions of the follower.
    #[must_use]
    pub const fn new(execute: ExecuteRequest) -> Self {
        Self {
            execute,
            follower_functions: Vec::new(),
        }
    }

    /// Adds a function that the follower answers; the code gets a promise.
    #[must_use]
    pub fn with_follower_function(mut self, name: impl Into<String>) -> Self {
        self.follower_functions.push(FunctionDecl {
            name: name.into(),
            waits: false,
        });
        self
    }
}

impl Request for FollowRunRequest {
    type Reply = Result<strowger::Reader<RunEvent>, CodeError>;
}

/// An item in the stream of a run: output lines and calls, and the result as the last item.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// A line of output.
    Line(ConsoleLine),
    /// A call of a function that the follower implements.
    Call(FollowerCall),
    /// The result; its `output` is empty, because each line was sent before.
    Ended(Result<RunResult, CodeError>),
}

/// A call of a function that the follower of a run implements.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FollowerCall {
    /// The identifier of the call: 128 random bits, so other callers cannot guess it.
    pub call: String,
    /// The name of the function.
    pub name: String,
    /// The arguments of the call.
    pub arguments: Vec<Value>,
}

/// Answers a call. The reply is `true` if the call was waiting; it is `false` if the call is
/// already answered or its run has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerCallRequest {
    /// The identifier of the call.
    pub call: String,
    /// The return value of the function, or the message that the code sees thrown.
    pub outcome: Result<Value, String>,
}

impl Request for AnswerCallRequest {
    type Reply = bool;
}

/// Drops a named realm with its state. The reply is `true` if the realm existed. A run in progress
/// there completes first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgetRealmRequest {
    /// The name of the realm.
    pub realm: String,
}

impl Request for ForgetRealmRequest {
    type Reply = bool;
}

/// Returns the stats of the code actor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct CodeUsageRequest;

impl Request for CodeUsageRequest {
    type Reply = CodeUsage;
}

/// Stats of a code actor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CodeUsage {
    /// Number of runs that have ended.
    pub runs: u64,
    /// Number of runs that failed other than by a limit or cancellation.
    pub failed: u64,
    /// Number of runs that exceeded a limit, by the name of the limit.
    pub limits: std::collections::BTreeMap<&'static str, u64>,
    /// Number of runs that were cancelled because their caller stopped waiting.
    pub cancelled: u64,
    /// Number of runs in progress.
    pub running: usize,
    /// Number of runs that wait for a slot or a realm.
    pub waiting: usize,
    /// Number of named realms.
    pub realms: usize,
    /// Memory of idle named realms, in bytes.
    pub memory: usize,
}
