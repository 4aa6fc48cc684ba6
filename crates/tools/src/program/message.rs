//! Messages of programs and of their registry, and the replies.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strowger::{Fault, FaultCode, Request};
use thiserror::Error;

use crate::code::{CodeBudget, CodeError, CodeLimits, GrantedFunctions, Language, LimitOrigin};

/// Publishes a program: code that defines a function `handle(input)`, which may be async.
///
/// The program may keep state in the global `state`. The part of it that JSON can represent
/// survives when the program is passivated. A program of the same name is replaced; it continues
/// if the new one does not load.
#[derive(Debug, Clone, Default)]
pub struct PublishRequest {
    /// The name of the program, 1 to 64 letters, digits, `-`, `_` and `.`, with no `.` at the
    /// start; its address is `@(programs/NAME)`.
    pub name: String,
    /// The code, at most [`CodeLimits::source`] bytes.
    pub code: String,
    /// The language of the code.
    pub language: Language,
    /// The JSON schema of the input, if any, at most 64 KiB.
    pub input: Option<Value>,
    /// The JSON schema of the output, if any, at most 64 KiB.
    pub output: Option<Value>,
    /// `true` if the program is a draft, which does not run.
    pub draft: bool,
    /// The functions that the program is granted, as `fns`.
    pub functions: GrantedFunctions,
    /// Limits of each message that are tighter than those of all programs.
    pub budget: CodeBudget,
}

impl PublishRequest {
    /// Creates a request to publish JavaScript without schemas.
    pub fn new(name: impl Into<String>, code: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            code: code.into(),
            ..Self::default()
        }
    }

    /// Marks the program as a draft.
    #[must_use]
    pub const fn draft(mut self) -> Self {
        self.draft = true;
        self
    }

    /// Sets the schemas of the input and the output.
    #[must_use]
    pub fn with_schemas(mut self, input: Option<Value>, output: Option<Value>) -> Self {
        (self.input, self.output) = (input, output);
        self
    }
}

impl Request for PublishRequest {
    type Reply = Result<(), ProgramError>;
}

/// Ends a program and frees its name. The reply is `true` if the program existed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithdrawRequest {
    /// The name of the program.
    pub name: String,
}

impl Request for WithdrawRequest {
    type Reply = bool;
}

/// Returns the published programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct ListProgramsRequest;

impl Request for ListProgramsRequest {
    type Reply = Vec<ProgramInfo>;
}

/// A snapshot of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProgramInfo {
    /// The name of the program.
    pub name: String,
    /// The state of the program.
    pub state: ProgramState,
    /// Number of messages handled.
    pub calls: u64,
    /// Number of messages that failed.
    pub failed: u64,
    /// Number of restarts.
    pub restarts: u32,
}

/// The state of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProgramState {
    /// The program is a draft, which does not run.
    Draft,
    /// The program has a realm.
    Resident,
    /// The program has no realm until its next message; its state is saved.
    Passive,
    /// The program failed too often and is not restarted any more.
    Stopped,
}

/// Calls a program with an input of at most [`CodeLimits::result`] bytes as JSON. The reply is the
/// output.
#[derive(Debug, Clone, PartialEq)]
pub struct PerformRequest(pub Value);

impl Request for PerformRequest {
    type Reply = Result<Value, ProgramError>;
}

/// The error returned when a program cannot answer or cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The program is a draft.
    #[error("the program `{0}` is a draft and does not run")]
    Draft(String),
    /// The name is invalid: it needs 1 to 64 letters, digits, `-`, `_` and `.`, with no `.` at the
    /// start.
    #[error("invalid program name `{0}`")]
    InvalidName(String),
    /// The input is too long.
    #[error(
        "the input is {bytes} bytes, limit is {limit} (`result`): send less at a time, or raise \
         `result` in [tools.programs.limits], or with --limit code.result=N of strowger mcp"
    )]
    InputTooLong {
        /// Size of the input as JSON, in bytes.
        bytes: usize,
        /// Maximum size, in bytes.
        limit: usize,
    },
    /// The input or output does not match its schema.
    #[error("the {0} does not match its schema: {1}")]
    SchemaMismatch(SchemaSide, String),
    /// The schema itself is invalid.
    #[error("invalid schema of the {0}: {1}")]
    InvalidSchema(SchemaSide, String),
    /// The maximum number of programs is published.
    #[error(
        "{0} programs, which is the limit `programs`: remove one, or raise it in [tools.programs]"
    )]
    TooManyPrograms(usize),
    /// The code failed, or exceeded a limit.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The programs are shutting down.
    #[error("programs are shutting down")]
    ShuttingDown,
}

/// The side of a program that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaSide {
    /// The input.
    Input,
    /// The output.
    Output,
}

impl std::fmt::Display for SchemaSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

impl ProgramError {
    /// Records the origin of the exceeded limit; see [`CodeError`].
    pub(super) fn with_origin(self, own: &CodeLimits) -> Self {
        match self {
            Self::Code(error) => Self::Code(error.with_origin(own, LimitOrigin::Programs)),
            other => other,
        }
    }

    /// A one-word name for stats and the audit log.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Draft(_) => "draft",
            Self::InvalidName(_) => "name",
            Self::InputTooLong { .. } => "length",
            Self::SchemaMismatch(SchemaSide::Input, _) => "input",
            Self::SchemaMismatch(SchemaSide::Output, _) => "output",
            Self::InvalidSchema(..) => "schema",
            Self::TooManyPrograms(_) => "full",
            Self::Code(error) => error.name(),
            Self::ShuttingDown => "ended",
        }
    }

    /// Converts the error to a fault for external callers; the `details` have the `reason`.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let code = match self {
            Self::Code(error) => return error.to_fault(),
            Self::Draft(_) | Self::InputTooLong { .. } => FaultCode::Refused,
            Self::InvalidName(_)
            | Self::InvalidSchema(..)
            | Self::SchemaMismatch(SchemaSide::Input, _) => FaultCode::BadRequest,
            Self::SchemaMismatch(SchemaSide::Output, _) => FaultCode::Failed,
            Self::TooManyPrograms(_) => FaultCode::Full,
            Self::ShuttingDown => FaultCode::UnknownTarget,
        };
        Fault::new(code, self.to_string()).with_details(json!({ "reason": self.name() }))
    }
}
