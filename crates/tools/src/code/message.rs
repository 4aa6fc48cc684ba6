//! What a code actor is asked, and what it answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strowger::Request;

use super::error::CodeError;
use super::functions::Functions;
use super::sandbox::FunctionName;
use super::spec::CodeBudget;

/// What code is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub enum Language {
    /// JavaScript.
    #[default]
    #[serde(rename = "js")]
    JavaScript,
    /// TypeScript, whose types are taken away.
    #[serde(rename = "ts")]
    TypeScript,
}

/// Runs code: its value is that of its last expression, awaited if it is a promise.
#[derive(Debug, Clone, Default)]
pub struct Execute {
    /// The code.
    pub code: String,
    /// What it is written in.
    pub language: Language,
    /// What the code finds in the global `args`. In a kept realm it stays until there are others.
    pub args: Option<Value>,
    /// The realm in which it runs: a fresh one, or one of this name that is kept.
    pub realm: Option<String>,
    /// The functions that it is given, as `fns`.
    pub functions: Functions,
    /// Limits that are tighter than the actor's.
    pub budget: CodeBudget,
}

impl Execute {
    /// Runs JavaScript in a fresh realm that is given nothing.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            ..Self::default()
        }
    }

    /// Runs TypeScript.
    #[must_use]
    pub const fn typescript(mut self) -> Self {
        self.language = Language::TypeScript;
        self
    }

    /// Gives it a value, as the global `args`.
    #[must_use]
    pub fn with_args(mut self, args: Value) -> Self {
        self.args = Some(args);
        self
    }

    /// Runs it in a realm that is kept under this name.
    #[must_use]
    pub fn within(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Gives it functions.
    #[must_use]
    pub fn with_functions(mut self, functions: Functions) -> Self {
        self.functions = functions;
        self
    }

    /// Gives it less than the actor would.
    #[must_use]
    pub const fn with_budget(mut self, budget: CodeBudget) -> Self {
        self.budget = budget;
        self
    }
}

impl Request for Execute {
    type Reply = Result<Executed, CodeError>;
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Executed {
    /// The value; `null` for what JSON cannot say.
    pub value: Value,
    /// What it wrote to the console.
    pub output: Vec<Line>,
    /// Whether the realm was new: what was kept under its name, if anything was, is gone.
    pub fresh: bool,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// `console.debug`.
    Debug,
    /// `console.log`.
    Log,
    /// `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
}

impl Level {
    /// The level of a number, as realms give it.
    #[must_use]
    pub const fn of(number: u32) -> Self {
        match number {
            0 => Self::Debug,
            1 => Self::Log,
            2 => Self::Info,
            3 => Self::Warn,
            _ => Self::Error,
        }
    }
}

/// A line that a run wrote to the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// What it says.
    pub text: String,
}

/// Runs code, and tells what it writes while it writes it.
#[derive(Debug, Clone, Default)]
pub struct FollowRun {
    /// What is run.
    pub execute: Execute,
    /// Functions that whoever follows has: the code finds them in `fns` beside the others. A call
    /// of one comes as [`Told::Called`] and waits for its [`AnswerCall`].
    pub calls: Vec<FunctionName>,
}

impl FollowRun {
    /// Follows a run.
    #[must_use]
    pub const fn new(execute: Execute) -> Self {
        Self {
            execute,
            calls: Vec::new(),
        }
    }

    /// Gives it a function that whoever follows answers; the code gets a promise.
    #[must_use]
    pub fn with_call(mut self, name: impl Into<String>) -> Self {
        self.calls.push(FunctionName {
            name: name.into(),
            waits: false,
        });
        self
    }
}

impl Request for FollowRun {
    type Reply = Result<strowger::Reader<Told>, CodeError>;
}

/// What a run tells: lines and calls, and in the end what it came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A line of its output.
    Line(Line),
    /// A call of a function that whoever follows has.
    Called(Called),
    /// What it came to; the output was told before.
    Ended(Result<Executed, CodeError>),
}

/// A call of a function that whoever follows a run has.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Called {
    /// Which call it is; nobody else can guess it.
    pub call: String,
    /// The name of the function.
    pub name: String,
    /// What it was called with.
    pub arguments: Vec<Value>,
}

/// Answers a call; whether it was waited for. One that was answered, or whose run has ended, is
/// not.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerCall {
    /// Which one.
    pub call: String,
    /// What the function gives, or what the code sees thrown.
    pub outcome: Result<Value, String>,
}

impl Request for AnswerCall {
    type Reply = bool;
}

/// Ends a realm that is kept; whether there was one. A run in it goes on to its end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// Its name.
    pub realm: String,
}

impl Request for Forget {
    type Reply = bool;
}

/// Asks what was run and what is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct GetCodeUsage;

impl Request for GetCodeUsage {
    type Reply = CodeUsage;
}

/// What was run and what is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CodeUsage {
    /// The runs that have ended.
    pub runs: u64,
    /// Of these, those that failed by themselves.
    pub failed: u64,
    /// Of these, those that passed a limit, by its name.
    pub limits: std::collections::BTreeMap<&'static str, u64>,
    /// Of these, those that nobody wanted any more.
    pub cancelled: u64,
    /// The runs under way.
    pub running: usize,
    /// The runs that wait for their turn.
    pub waiting: usize,
    /// The realms that are kept.
    pub realms: usize,
    /// The octets of memory of realms that are kept and idle.
    pub memory: usize,
}
