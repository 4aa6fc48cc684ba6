//! Payloads of messages.

use std::any::TypeId;

use bytes::Bytes;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::fault::{Fault, FaultCode};

/// The content type of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u8)]
pub enum ContentType {
    /// There is no payload.
    #[default]
    None = 0,
    /// A JSON document.
    Json = 1,
    /// Text in UTF-8.
    Text = 2,
    /// Bytes of any meaning.
    Bytes = 3,
}

impl ContentType {
    const ALL: [Self; 4] = [Self::None, Self::Json, Self::Text, Self::Bytes];

    /// Returns the content type with this number.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The payload of a message: bytes and their content type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Payload {
    /// The content type of the bytes.
    pub content: ContentType,
    /// The encoded message.
    pub bytes: Bytes,
}

impl Payload {
    /// The empty payload.
    pub const EMPTY: Self = Self {
        content: ContentType::None,
        bytes: Bytes::new(),
    };

    /// Creates a payload from bytes of this content type.
    #[must_use]
    pub fn new(content: ContentType, bytes: impl Into<Bytes>) -> Self {
        Self {
            content,
            bytes: bytes.into(),
        }
    }

    /// Encodes a value as JSON; `()` becomes the empty payload.
    ///
    /// # Errors
    /// `failed` if the value cannot be encoded as JSON: if it is a map whose keys are not strings,
    /// or if its `Serialize` implementation returns an error.
    pub fn from_json<T: Serialize + 'static>(value: &T) -> Result<Self, Fault> {
        if TypeId::of::<T>() == TypeId::of::<()>() {
            return Ok(Self::EMPTY);
        }
        match serde_json::to_vec(value) {
            Ok(bytes) => Ok(Self::new(ContentType::Json, bytes)),
            Err(error) => {
                let text = format!("what was to be sent is no JSON: {error}");
                Err(Fault::new(FaultCode::Failed, text))
            }
        }
    }

    /// Decodes the payload: JSON, text as a string, and the empty payload as `null`.
    ///
    /// # Errors
    /// `bad-request` if the payload is plain bytes, invalid JSON, or another value than expected.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let read = match self.content {
            ContentType::None => T::deserialize(Value::Null),
            ContentType::Json => serde_json::from_slice(&self.bytes),
            ContentType::Text => match std::str::from_utf8(&self.bytes) {
                Ok(text) => T::deserialize(Value::from(text)),
                Err(error) => Err(serde_json::Error::custom(error)),
            },
            ContentType::Bytes => Err(serde_json::Error::custom(
                "the payload is bytes, expected JSON",
            )),
        };
        read.map_err(|error| Fault::new(FaultCode::BadRequest, format!("payload: {error}")))
    }
}
