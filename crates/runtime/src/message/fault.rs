//! Why a message has no answer, as data.

use std::fmt;

use serde_json::{Map, Value, json};

/// What kind of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// Nobody is there, or has ended; the message was not handled.
    UnknownTarget,
    /// The message cannot be understood.
    BadRequest,
    /// A limit is reached: a mailbox, messages in flight, connections.
    Full,
    /// There was no answer in time; the message may have been handled.
    Deadline,
    /// The sender cancelled; the message may have been handled.
    Cancelled,
    /// Understood, and not allowed.
    Refused,
    /// The one who was asked failed at it.
    Failed,
    /// The octets are no frames, or come out of turn; the connection ends.
    Protocol,
    /// Nothing came for too long; the connection ends.
    Idle,
    /// There is no connection; the message has not left.
    Unreachable,
    /// The connection was lost after the message had left, which may have been handled.
    Lost,
}

impl Code {
    /// All codes, in the order of the specification.
    pub const ALL: [Self; 11] = [
        Self::UnknownTarget,
        Self::BadRequest,
        Self::Full,
        Self::Deadline,
        Self::Cancelled,
        Self::Refused,
        Self::Failed,
        Self::Protocol,
        Self::Idle,
        Self::Unreachable,
        Self::Lost,
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
            Self::Unreachable => "unreachable",
            Self::Lost => "lost",
        }
    }

    /// Whether the same message may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Full | Self::Deadline | Self::Idle | Self::Unreachable | Self::Lost
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a message has no answer. On the wire it is
/// `{"code": "full", "message": "...", "retryable": true, "details": ...}`.
///
/// ```
/// use serde_json::json;
/// use strowger::{Code, Fault};
///
/// let fault = Fault::new(Code::Full, "the queue of reports is full");
/// assert!(fault.retryable);
/// assert_eq!(Fault::from_json(&fault.to_json())?, fault);
/// let newer = json!({ "code": "eclipsed", "message": "no light", "retryable": true });
/// assert_eq!(Fault::from_json(&newer)?.code, Code::Failed);
/// # Ok::<(), Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Fault {
    /// What kind of fault it is.
    pub code: Code,
    /// What is wrong, for people.
    pub message: String,
    /// Whether the same message may succeed later.
    pub retryable: bool,
    /// What there is to know besides. Boxed, because there rarely is anything.
    pub details: Option<Box<Value>>,
}

impl Fault {
    /// A fault of this kind, which is retryable if its code says so.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: code.is_retryable(),
            details: None,
        }
    }

    /// Adds what there is to know besides.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The fault as it is on the wire.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "code": self.code.as_str(),
            "message": self.message,
            "retryable": self.retryable,
        });
        if let Some(details) = &self.details {
            value["details"] = Value::clone(details);
        }
        value
    }

    /// Reads a fault; one with an unknown code counts as failed, and keeps what it says about
    /// trying again.
    ///
    /// # Errors
    /// A `bad-request` when the value is no fault.
    pub fn from_json(value: &Value) -> Result<Self, Self> {
        let wrong = |what: &str| Self::new(Code::BadRequest, format!("no error: {what}"));
        let object: &Map<String, Value> = value.as_object().ok_or_else(|| wrong("no object"))?;
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let code = text("code").filter(|code| !code.is_empty());
        let code = code.ok_or_else(|| wrong("no text at \"code\""))?;
        let message = text("message").ok_or_else(|| wrong("no text at \"message\""))?;
        let retryable = object.get("retryable").and_then(Value::as_bool);
        let retryable =
            retryable.ok_or_else(|| wrong("neither true nor false at \"retryable\""))?;
        let known = Code::ALL.into_iter().find(|known| known.as_str() == code);
        Ok(Self {
            code: known.unwrap_or(Code::Failed),
            message: message.to_owned(),
            retryable,
            details: object.get("details").cloned().map(Box::new),
        })
    }
}
