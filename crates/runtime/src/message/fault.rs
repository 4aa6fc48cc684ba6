//! Faults: the reasons why a message has no answer, as data.

use std::fmt;

use serde_json::{Map, Value, json};

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultCode {
    /// There is no such actor, or it has ended. The message was not handled.
    UnknownTarget,
    /// The message is not valid.
    BadRequest,
    /// A limit is reached: on a mailbox, messages in flight or connections.
    Full,
    /// There was no answer in time. The message may have been handled.
    Deadline,
    /// The sender cancelled the message. It may have been handled.
    Cancelled,
    /// The message was understood but is not allowed.
    Refused,
    /// The token of the connection does not permit the message. It was not handled.
    Forbidden,
    /// The receiver failed to handle the message.
    Failed,
    /// The bytes received are not valid frames, or are out of order. The connection ends.
    Protocol,
    /// Nothing was received for too long. The connection ends.
    Idle,
    /// There is no connection. The message has not been sent.
    Unreachable,
    /// The connection was lost after the message was sent. The message may have been handled.
    Lost,
}

impl FaultCode {
    /// All codes, in the order of the specification.
    pub const ALL: [Self; 12] = [
        Self::UnknownTarget,
        Self::BadRequest,
        Self::Full,
        Self::Deadline,
        Self::Cancelled,
        Self::Refused,
        Self::Forbidden,
        Self::Failed,
        Self::Protocol,
        Self::Idle,
        Self::Unreachable,
        Self::Lost,
    ];

    /// Returns the code in its form on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTarget => "unknown-target",
            Self::BadRequest => "bad-request",
            Self::Full => "full",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::Forbidden => "forbidden",
            Self::Failed => "failed",
            Self::Protocol => "protocol",
            Self::Idle => "idle",
            Self::Unreachable => "unreachable",
            Self::Lost => "lost",
        }
    }

    /// Returns `true` if the same message may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Full | Self::Deadline | Self::Idle | Self::Unreachable | Self::Lost
        )
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason why a message has no answer. On the wire it is `{"code": "full", "message": "...",
/// "retryable": true, "details": ...}`.
///
/// ```
/// use serde_json::json;
/// use strowger::{FaultCode, Fault};
///
/// let fault = Fault::new(FaultCode::Full, "the queue of reports is full");
/// assert!(fault.retryable);
/// assert_eq!(Fault::from_json(&fault.to_json())?, fault);
/// let newer = json!({ "code": "eclipsed", "message": "no light", "retryable": true });
/// assert_eq!(Fault::from_json(&newer)?.code, FaultCode::Failed);
/// # Ok::<(), Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Fault {
    /// The kind of the fault.
    pub code: FaultCode,
    /// A description for people.
    pub message: String,
    /// `true` if the same message may succeed later.
    pub retryable: bool,
    /// Further information. Boxed, because it is rarely present.
    pub details: Option<Box<Value>>,
}

impl Fault {
    /// Creates a fault, which is retryable if its code is.
    #[must_use]
    pub fn new(code: FaultCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: code.is_retryable(),
            details: None,
        }
    }

    /// Adds further information.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Returns the fault in its form on the wire.
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

    /// Parses a fault. An unknown code becomes [`FaultCode::Failed`], and `retryable` is kept as it
    /// is.
    ///
    /// # Errors
    /// `bad-request` if the value is not a fault.
    pub fn from_json(value: &Value) -> Result<Self, Self> {
        let wrong = |what: &str| {
            Self::new(
                FaultCode::BadRequest,
                format!("invalid error object: {what}"),
            )
        };
        let object: &Map<String, Value> =
            value.as_object().ok_or_else(|| wrong("not an object"))?;
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let code = text("code").filter(|code| !code.is_empty());
        let code = code.ok_or_else(|| wrong("missing string \"code\""))?;
        let message = text("message").ok_or_else(|| wrong("missing string \"message\""))?;
        let retryable = object.get("retryable").and_then(Value::as_bool);
        let retryable = retryable.ok_or_else(|| wrong("missing boolean \"retryable\""))?;
        let known = FaultCode::ALL
            .into_iter()
            .find(|known| known.as_str() == code);
        Ok(Self {
            code: known.unwrap_or(FaultCode::Failed),
            message: message.to_owned(),
            retryable,
            details: object.get("details").cloned().map(Box::new),
        })
    }
}
