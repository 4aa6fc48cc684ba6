//! Stored events and snapshots before they have a type.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// An event or a snapshot of some version, as it is stored.
///
/// It has the names of its fields, so it can be decoded as the type of its version, or as a type
/// for any value, such as `serde_json::Value`.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use strowger_durable::{StoredValue, ValueError};
///
/// #[derive(Serialize, Deserialize)]
/// struct DepositedV1 { euros: i64 }
/// #[derive(Serialize, Deserialize)]
/// struct DepositedV2 { cents: i64 }
///
/// fn to_v2(event: &StoredValue) -> Result<StoredValue, ValueError> {
///     let DepositedV1 { euros } = event.decode()?;
///     StoredValue::encode(&DepositedV2 { cents: euros * 100 })
/// }
/// let stored = StoredValue::encode(&DepositedV1 { euros: 7 })?;
/// assert_eq!(to_v2(&stored)?.decode::<DepositedV2>()?.cents, 700);
///
/// let mut event: serde_json::Value = stored.decode()?;
/// event["euros"] = 8.into();
/// assert_eq!(StoredValue::encode(&event)?.decode::<DepositedV1>()?.euros, 8);
/// # Ok::<_, ValueError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue(Vec<u8>);

impl StoredValue {
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Encodes a value.
    ///
    /// # Errors
    /// Fails if the value has no encoding.
    pub fn encode<T: Serialize>(value: &T) -> Result<Self, ValueError> {
        let encoded = rmp_serde::to_vec_named(value);
        encoded
            .map(Self)
            .map_err(|error| ValueError::NotEncoded(error.to_string()))
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// Fails if the value is not of this type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        rmp_serde::from_slice(&self.0).map_err(|error| ValueError::NotDecoded(error.to_string()))
    }
}

/// The reason why a [`StoredValue`] was not converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The value has no encoding.
    #[error("value not encoded: {0}")]
    NotEncoded(String),
    /// The stored value is not of the expected type.
    #[error("stored value not decoded: {0}")]
    NotDecoded(String),
}
