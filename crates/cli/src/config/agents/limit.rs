//! Limits that arguments set, by the keys of a configuration.

use std::str::FromStr;
use std::time::Duration;

use strowger::{ByteSize, ByteSizeError, parse_duration};

/// The result of setting a limit: `None` for an unknown key, else success or the reason of a
/// failure.
pub(crate) type LimitSet = Option<Result<(), String>>;

/// Parses a number.
pub(super) fn set_number<N: FromStr>(to: &mut N, value: &str) -> LimitSet {
    let Ok(read) = value.parse() else {
        return Some(Err(format!("\"{value}\" is not a whole number")));
    };
    *to = read;
    Some(Ok(()))
}

/// Parses a size in bytes.
pub(crate) fn set_size<N: TryFrom<u64>>(to: &mut N, value: &str) -> LimitSet {
    let size: ByteSize = match value.parse() {
        Ok(size) => size,
        Err(error) => return Some(Err(ByteSizeError::to_string(&error))),
    };
    let Ok(read) = size.bytes().try_into() else {
        return Some(Err(format!("{size} is too large for this limit")));
    };
    *to = read;
    Some(Ok(()))
}

/// Parses a duration.
pub(super) fn set_duration(to: &mut Duration, value: &str) -> LimitSet {
    Some(match parse_duration(value) {
        Ok(read) => {
            *to = read;
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    })
}
