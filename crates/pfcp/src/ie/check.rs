//! Checks that many elements share: none is compiled for each of them.

use super::field::Reader;
use crate::error::ErrorKind;

/// Checks flags, of which the octets of `known` tell those that there are.
pub(crate) fn are_flags(value: &[u8], least: usize, known: &[u8]) -> Result<bool, ErrorKind> {
    let mut reader = Reader::new(value);
    let octets = reader.flags(least, known.len())?;
    let mut both = octets.iter().zip(known);
    let spare = both.clone().any(|(octet, known)| octet & !known != 0);
    let last = both.rposition(|(octet, known)| octet & known != 0);
    let written = last.map_or(0, |last| last + 1).max(least);
    Ok(!spare && reader.is_empty() && written == value.len())
}

/// Any octets are such a value.
#[expect(clippy::unnecessary_wraps, reason = "others have to look")]
pub(crate) const fn are_octets(_: &[u8]) -> Result<bool, ErrorKind> {
    Ok(true)
}

pub(crate) fn octets_again(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(value);
}
