//! Why a call has no answer, as data.
//!
//! On the wire a fault is `{"code": "...", "message": "...", "retryable": false}`:
//!
//! | code | meaning | retryable |
//! |---|---|---|
//! | `unknown-target` | no method, actor or name of this kind | no |
//! | `bad-request` | the parameters cannot be understood | no |
//! | `full` | a limit is reached: calls in flight, connections, a mailbox | yes |
//! | `deadline` | there was no answer in time | yes |
//! | `cancelled` | the caller cancelled | no |
//! | `refused` | understood, and not allowed | no |
//! | `failed` | the one who was asked failed | no |
//! | `protocol` | the frames are wrong; the connection ends | no |
//! | `idle` | nothing came for too long; the connection ends | yes |

use std::fmt;

use serde_json::{Value, json};

/// What kind of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// No method, actor or name of this kind.
    UnknownTarget,
    /// The parameters cannot be understood.
    BadRequest,
    /// A limit is reached.
    Full,
    /// There was no answer in time.
    Deadline,
    /// The caller cancelled.
    Cancelled,
    /// Understood, and not allowed.
    Refused,
    /// The one who was asked failed.
    Failed,
    /// The frames are wrong.
    Protocol,
    /// Nothing came for too long.
    Idle,
}

impl Code {
    const ALL: [Self; 9] = [
        Self::UnknownTarget,
        Self::BadRequest,
        Self::Full,
        Self::Deadline,
        Self::Cancelled,
        Self::Refused,
        Self::Failed,
        Self::Protocol,
        Self::Idle,
    ];

    /// The code as it is on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTarget => "unknown-target",
            Self::BadRequest => "bad-request",
            Self::Full => "full",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Protocol => "protocol",
            Self::Idle => "idle",
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Full | Self::Deadline | Self::Idle)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Fault {
    /// What kind of fault it is.
    pub code: Code,
    /// What is wrong, for people.
    pub message: String,
}

impl Fault {
    /// A fault of this kind.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "code": self.code.as_str(),
            "message": self.message,
            "retryable": self.code.is_retryable(),
        })
    }

    /// Reads a fault; one with an unknown code counts as failed.
    pub(crate) fn from_json(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let code = text("code");
        let known = Code::ALL.into_iter().find(|known| known.as_str() == code);
        Self::new(known.unwrap_or(Code::Failed), text("message"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_crosses_the_wire() {
        for code in Code::ALL {
            let fault = Fault::new(code, "what and where");
            assert_eq!(Fault::from_json(&fault.to_json()), fault);
        }
    }

    #[test]
    fn a_code_of_a_newer_server_counts_as_failed() {
        let fault = Fault::from_json(&json!({"code": "eclipsed", "message": "no light"}));
        assert_eq!(fault, Fault::new(Code::Failed, "no light"));
    }
}
