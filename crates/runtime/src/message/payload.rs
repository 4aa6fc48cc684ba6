//! What a message carries.

use std::any::TypeId;

use bytes::Bytes;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::fault::{Code, Fault};

/// What a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u8)]
pub enum Content {
    /// There is none.
    #[default]
    None = 0,
    /// JSON.
    Json = 1,
    /// UTF-8 text.
    Text = 2,
    /// Octets of any meaning.
    Octets = 3,
}

impl Content {
    const ALL: [Self; 4] = [Self::None, Self::Json, Self::Text, Self::Octets];

    /// The content type of this number.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == octet)
    }
}

/// What a message carries: octets, and what they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Payload {
    /// What the octets are.
    pub content: Content,
    /// The octets.
    pub octets: Bytes,
}

impl Payload {
    /// Nothing.
    pub const NONE: Self = Self {
        content: Content::None,
        octets: Bytes::new(),
    };

    /// Octets of this content type.
    #[must_use]
    pub fn new(content: Content, octets: impl Into<Bytes>) -> Self {
        Self {
            content,
            octets: octets.into(),
        }
    }

    /// A value as JSON; `()` is nothing.
    ///
    /// # Errors
    /// `failed` when the value cannot be JSON: a map whose keys are no texts, or what its own
    /// `Serialize` says.
    pub fn json<T: Serialize + 'static>(value: &T) -> Result<Self, Fault> {
        if TypeId::of::<T>() == TypeId::of::<()>() {
            return Ok(Self::NONE);
        }
        match serde_json::to_vec(value) {
            Ok(octets) => Ok(Self::new(Content::Json, octets)),
            Err(error) => {
                let text = format!("what was to be sent is no JSON: {error}");
                Err(Fault::new(Code::Failed, text))
            }
        }
    }

    /// Reads the payload as a value: JSON, a text as such, and nothing as `null`.
    ///
    /// # Errors
    /// `bad-request` when the payload is octets, no JSON, or another value than is wanted.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let read = match self.content {
            Content::None => T::deserialize(Value::Null),
            Content::Json => serde_json::from_slice(&self.octets),
            Content::Text => match std::str::from_utf8(&self.octets) {
                Ok(text) => T::deserialize(Value::from(text)),
                Err(error) => Err(serde_json::Error::custom(error)),
            },
            Content::Octets => Err(serde_json::Error::custom("it is octets, JSON is wanted")),
        };
        read.map_err(|error| Fault::new(Code::BadRequest, format!("payload: {error}")))
    }
}
