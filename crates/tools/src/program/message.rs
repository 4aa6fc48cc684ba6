//! What programs and their desk are asked, and what they answer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strowger::{Code as FaultCode, Fault, Request};
use thiserror::Error;

use crate::code::{CodeBudget, CodeError, Functions, Language};

/// Publishes a program: code that defines a function `handle(input)`, which may be async. What it
/// keeps in the global `state`, as far as that is JSON, it keeps when it is passivated.
#[derive(Debug, Clone, Default)]
pub struct Publish {
    /// Its name; its address is `@(programs/NAME)`.
    pub name: String,
    /// The code.
    pub code: String,
    /// What that is written in.
    pub language: Language,
    /// The JSON schema of what it takes, if it has one.
    pub input: Option<Value>,
    /// The JSON schema of what it gives, if it has one.
    pub output: Option<Value>,
    /// Whether it is a draft, which does not run.
    pub draft: bool,
    /// The functions that it is given, as `fns`.
    pub functions: Functions,
    /// Limits of each message that are tighter than those of all programs.
    pub budget: CodeBudget,
}

impl Publish {
    /// Publishes JavaScript without schemas.
    pub fn new(name: impl Into<String>, code: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            code: code.into(),
            ..Self::default()
        }
    }

    /// Publishes it as a draft.
    #[must_use]
    pub const fn draft(mut self) -> Self {
        self.draft = true;
        self
    }

    /// With schemas of what it takes and gives.
    #[must_use]
    pub fn with_schemas(mut self, input: Option<Value>, output: Option<Value>) -> Self {
        (self.input, self.output) = (input, output);
        self
    }
}

impl Request for Publish {
    type Reply = Result<(), ProgramError>;
}

/// Ends a program and takes its name out; whether there was one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdraw {
    /// Its name.
    pub name: String,
}

impl Request for Withdraw {
    type Reply = bool;
}

/// Asks which programs there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct ListPrograms;

impl Request for ListPrograms {
    type Reply = Vec<ProgramInfo>;
}

/// A program at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProgramInfo {
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: ProgramState,
    /// The messages that it handled.
    pub calls: u64,
    /// Of these, those that came to nothing.
    pub failed: u64,
    /// How often it was started again.
    pub restarts: u32,
}

/// What a program is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProgramState {
    /// It is not run.
    Draft,
    /// It has a realm.
    Resident,
    /// Its state is kept, and nothing else, until the next message.
    Passive,
    /// It failed too often, and is not started again.
    Stopped,
}

/// A message for a program: its input.
#[derive(Debug, Clone, PartialEq)]
pub struct Perform(pub Value);

impl Request for Perform {
    type Reply = Result<Value, ProgramError>;
}

/// Why a program has no answer, or is not published.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// It is a draft.
    #[error("the program `{0}` is a draft, which does not run")]
    Draft(String),
    /// A name of programs has 1 to 64 of the letters, digits and `-`, `_`, `.`.
    #[error("`{0}` is no name for a program")]
    Name(String),
    /// What it is given is longer than it may be.
    #[error("the input has {octets} octets, of which it may have {limit}")]
    TooLong {
        /// Its octets, as JSON.
        octets: usize,
        /// Those that it may have.
        limit: usize,
    },
    /// What it is given, or what it gave, is not as its schema says.
    #[error("the {0} is not as the schema says: {1}")]
    Schema(Side, String),
    /// The schema itself is none.
    #[error("the schema of the {0} is none: {1}")]
    BadSchema(Side, String),
    /// There are as many as may be.
    #[error("there are {0} programs, as many as may be")]
    Full(usize),
    /// The code failed, or passed a limit.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// Programs are ending.
    #[error("programs are ending")]
    Ended,
}

/// Which side of a program a schema is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// What it takes.
    Input,
    /// What it gives.
    Output,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

impl ProgramError {
    /// One word for figures and audits.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Draft(_) => "draft",
            Self::Name(_) => "name",
            Self::TooLong { .. } => "length",
            Self::Schema(Side::Input, _) => "input",
            Self::Schema(Side::Output, _) => "output",
            Self::BadSchema(..) => "schema",
            Self::Full(_) => "full",
            Self::Code(error) => error.name(),
            Self::Ended => "ended",
        }
    }

    /// As those outside see it; `details` have the `reason`.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let code = match self {
            Self::Code(error) => return error.to_fault(),
            Self::Draft(_) | Self::TooLong { .. } => FaultCode::Refused,
            Self::Name(_) | Self::BadSchema(..) | Self::Schema(Side::Input, _) => {
                FaultCode::BadRequest
            }
            Self::Schema(Side::Output, _) => FaultCode::Failed,
            Self::Full(_) => FaultCode::Full,
            Self::Ended => FaultCode::UnknownTarget,
        };
        Fault::new(code, self.to_string()).with_details(json!({ "reason": self.name() }))
    }
}
