//! Checks shared by many elements, so that they are not compiled once for each.

use super::field::Reader;
use crate::error::ErrorKind;

/// Checks flags. `known` has a bit set for each defined flag.
pub(crate) fn are_flags(value: &[u8], least: usize, known: &[u8]) -> Result<bool, ErrorKind> {
    let mut reader = Reader::new(value);
    let bytes = reader.flags(least, known.len())?;
    let mut both = bytes.iter().zip(known);
    let spare = both.clone().any(|(byte, known)| byte & !known != 0);
    let last = both.rposition(|(byte, known)| byte & known != 0);
    let written = last.map_or(0, |last| last + 1).max(least);
    Ok(!spare && reader.is_empty() && written == value.len())
}

/// Accepts any bytes.
#[expect(clippy::unnecessary_wraps, reason = "others have to look")]
pub(crate) const fn are_bytes(_: &[u8]) -> Result<bool, ErrorKind> {
    Ok(true)
}

pub(crate) fn reencode_bytes(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(value);
}
