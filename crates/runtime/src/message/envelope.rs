//! Envelopes: messages as JSON objects.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use super::address::{Address, quote_truncated};
use super::entry::MessagePattern;
use super::fault::{Fault, FaultCode};

/// A message with its addressing and metadata, in the form that programs in other languages write
/// it.
///
/// ```
/// use serde_json::json;
/// use strowger::{Envelope, MessagePattern};
///
/// let question = Envelope::from_json(&json!({
///     "id": "m-1", "pattern": "ask", "to": "@(counter)", "from": "@(clerk)", "type": "add",
///     "payload": 3, "correlationId": "c-1", "timestamp": 1_700_000_000_000_u64,
/// }))?;
/// assert_eq!((question.pattern, question.message_type.as_str()), (MessagePattern::Ask, "add"));
/// let answer = question.reply("m-2", 1_700_000_000_004, Ok(Some(json!(7))));
/// assert_eq!(answer.ok_or("it has a sender")?.to_json(), json!({
///     "id": "m-2", "pattern": "tell", "to": "@(clerk)", "from": "@(counter)", "type": "add",
///     "payload": 7, "correlationId": "c-1", "timestamp": 1_700_000_000_004_u64,
/// }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope {
    /// The identifier of the message, unique among the messages of its sender.
    pub id: String,
    /// The response that the sender expects.
    pub pattern: MessagePattern,
    /// Address of the receiver.
    pub to: Address,
    /// Address that a reply goes to, if the sender gave one.
    pub from: Option<Address>,
    /// The name of the message at the receiver; `type` on the wire.
    pub message_type: String,
    /// The payload, or a fault if this is an answer.
    pub body: Result<Option<Value>, Fault>,
    /// The exchange that the message belongs to. An ask always has one.
    pub correlation_id: Option<String>,
    /// Milliseconds since 1970, by the sender's clock.
    pub timestamp: u64,
    /// The time that the sender waits, in milliseconds from the moment of sending.
    pub deadline_ms: Option<u32>,
    /// Free-form entries for intermediaries.
    pub metadata: BTreeMap<String, String>,
}

/// The maximum length of an identifier, in bytes.
const MAX_ID_LEN: usize = 64;
/// The maximum length of a type, in bytes.
const MAX_TYPE_LEN: usize = 128;
/// The latest timestamp: the largest integer that a double represents exactly, so that every
/// language can hold it.
const MAX_TIMESTAMP: u64 = (1 << 53) - 1;
/// The maximum number of metadata entries.
const MAX_METADATA_ENTRIES: usize = 64;

impl Envelope {
    /// Parses an envelope. Unknown fields are ignored.
    ///
    /// # Errors
    /// `bad-request`, with a message that names the field and what is wrong with it.
    pub fn from_json(value: &Value) -> Result<Self, Fault> {
        let object = value.as_object();
        let fields =
            EnvelopeFields(object.ok_or_else(|| bad_request("a message must be a JSON object"))?);
        let pattern = match fields.text("pattern")? {
            Some("tell") => MessagePattern::Tell,
            Some("ask") => MessagePattern::Ask,
            Some("stream") => MessagePattern::Stream,
            Some(other) => {
                let text = format!(
                    "pattern {}; there are tell, ask, stream",
                    quote_truncated(other)
                );
                return Err(bad_request(text));
            }
            None => return Err(fields.missing_field("pattern")),
        };
        let correlation_id = fields.id("correlationId")?;
        if pattern != MessagePattern::Tell && correlation_id.is_none() {
            return Err(bad_request("a question has a \"correlationId\""));
        }
        let payload = fields.0.get("payload");
        let error = fields.0.get("error").map(Fault::from_json).transpose()?;
        let body = match (payload, error) {
            (Some(_), Some(_)) => return Err(bad_request("\"error\" beside \"payload\"")),
            (payload, None) => Ok(payload.cloned()),
            (None, Some(fault)) => Err(fault),
        };
        Ok(Self {
            id: fields.id("id")?.ok_or_else(|| fields.missing_field("id"))?,
            pattern,
            to: fields
                .address("to")?
                .ok_or_else(|| fields.missing_field("to"))?,
            from: fields.address("from")?,
            message_type: fields.kind()?,
            body,
            correlation_id,
            timestamp: fields.timestamp()?,
            deadline_ms: fields.deadline()?,
            metadata: fields.metadata()?,
        })
    }

    /// Returns the envelope as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "id": self.id,
            "pattern": self.pattern.to_string(),
            "to": self.to.to_string(),
            "type": self.message_type,
            "timestamp": self.timestamp,
        });
        let mut set = |key: &str, field: Value| value[key] = field;
        if let Some(from) = &self.from {
            set("from", from.to_string().into());
        }
        match &self.body {
            Ok(None) => {}
            Ok(Some(payload)) => set("payload", payload.clone()),
            Err(fault) => set("error", fault.to_json()),
        }
        if let Some(id) = &self.correlation_id {
            set("correlationId", id.as_str().into());
        }
        if let Some(deadline) = self.deadline_ms {
            set("deadlineMs", deadline.into());
        }
        if !self.metadata.is_empty() {
            set("metadata", json!(self.metadata));
        }
        value
    }

    /// Creates the answer to this message, with its own identifier and time. Returns `None` if this
    /// message does not name its sender.
    #[must_use]
    pub fn reply(
        &self,
        id: impl Into<String>,
        timestamp: u64,
        body: Result<Option<Value>, Fault>,
    ) -> Option<Self> {
        Some(Self {
            id: id.into(),
            pattern: MessagePattern::Tell,
            to: self.from.clone()?,
            from: Some(self.to.clone()),
            message_type: self.message_type.clone(),
            body,
            correlation_id: self.correlation_id.clone(),
            timestamp,
            deadline_ms: None,
            metadata: BTreeMap::new(),
        })
    }
}

fn bad_request(text: impl Into<String>) -> Fault {
    Fault::new(FaultCode::BadRequest, text)
}

/// The fields of a JSON object, with one check for each kind of field.
struct EnvelopeFields<'a>(&'a Map<String, Value>);

impl<'a> EnvelopeFields<'a> {
    fn missing_field(&self, key: &str) -> Fault {
        bad_request(format!("missing field \"{key}\""))
    }

    fn invalid_field(&self, key: &str, wanted: impl fmt::Display) -> Fault {
        let found = self.0.get(key).map(Value::to_string);
        let found = quote_truncated(&found.unwrap_or_default());
        bad_request(format!("\"{key}\" must be {wanted}, found {found}"))
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        let field = self.0.get(key);
        let text = field.map(|field| {
            field
                .as_str()
                .ok_or_else(|| self.invalid_field(key, "text"))
        });
        text.transpose()
    }

    fn id(&self, key: &str) -> Result<Option<String>, Fault> {
        let Some(id) = self.text(key)? else {
            return Ok(None);
        };
        let fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=MAX_ID_LEN).contains(&id.len()) && id.bytes().all(fit) {
            return Ok(Some(id.to_owned()));
        }
        let wanted = format!("1 to {MAX_ID_LEN} of A-Z a-z 0-9 _ -");
        Err(self.invalid_field(key, wanted))
    }

    fn address(&self, key: &str) -> Result<Option<Address>, Fault> {
        self.text(key)?.map(str::parse).transpose()
    }

    fn kind(&self) -> Result<String, Fault> {
        let kind = self
            .text("type")?
            .ok_or_else(|| self.missing_field("type"))?;
        let fit = |one: char| !one.is_control() && !one.is_whitespace();
        if (1..=MAX_TYPE_LEN).contains(&kind.len()) && kind.chars().all(fit) {
            return Ok(kind.to_owned());
        }
        let wanted = format!("1 to {MAX_TYPE_LEN} bytes without whitespace");
        Err(self.invalid_field("type", wanted))
    }

    fn timestamp(&self) -> Result<u64, Fault> {
        let field = self.0.get("timestamp");
        let field = field.ok_or_else(|| self.missing_field("timestamp"))?;
        let time = field.as_u64().filter(|time| *time <= MAX_TIMESTAMP);
        time.ok_or_else(|| self.invalid_field("timestamp", "an integer from 0 to 2^53 - 1"))
    }

    fn deadline(&self) -> Result<Option<u32>, Fault> {
        let Some(field) = self.0.get("deadlineMs") else {
            return Ok(None);
        };
        let span = field.as_u64().and_then(|span| u32::try_from(span).ok());
        let span = span.filter(|span| *span > 0).map(Some);
        span.ok_or_else(|| self.invalid_field("deadlineMs", "an integer from 1 to 2^32 - 1"))
    }

    fn metadata(&self) -> Result<BTreeMap<String, String>, Fault> {
        let Some(field) = self.0.get("metadata") else {
            return Ok(BTreeMap::new());
        };
        let wrong = || {
            let wanted = format!("an object of at most {MAX_METADATA_ENTRIES} texts");
            self.invalid_field("metadata", wanted)
        };
        let object = field
            .as_object()
            .filter(|object| object.len() <= MAX_METADATA_ENTRIES);
        let entries = object.ok_or_else(wrong)?.iter().map(|(key, value)| {
            let text = value.as_str().ok_or_else(wrong)?;
            Ok((key.clone(), text.to_owned()))
        });
        entries.collect()
    }
}
