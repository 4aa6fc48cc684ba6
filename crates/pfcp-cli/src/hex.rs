//! Bytes in hexadecimal text.

use std::fmt;

/// Bytes that print as lower-case hex digits.
pub(crate) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The error returned when a text is not hex.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HexError {
    /// A character that is not a hexadecimal digit.
    #[error("{found:?} in column {column} is not a hex digit")]
    Digit {
        /// The first character that is no digit.
        found: char,
        /// Its place in the text, from 1.
        column: usize,
    },
    /// Half a byte at the end.
    #[error("{digits} hex digits, an odd number")]
    Odd {
        /// Number of digits.
        digits: usize,
    },
}

/// Parses hex digits in either case. Spaces, tabs, colons, commas, dashes and `0x` may separate
/// bytes.
pub fn parse(text: &str) -> Result<Vec<u8>, HexError> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut digits = 0;
    let mut rest = text.char_indices().peekable();
    while let Some((at, found)) = rest.next() {
        if matches!(found, ' ' | '\t' | ':' | ',' | '-' | '\r') {
            continue;
        }
        let prefix = |next: &(usize, char)| matches!(next.1, 'x' | 'X');
        if found == '0' && digits % 2 == 0 && rest.next_if(prefix).is_some() {
            continue;
        }
        let column = text[..at].chars().count() + 1;
        let digit = found
            .to_digit(16)
            .ok_or(HexError::Digit { found, column })?;
        let digit = u8::try_from(digit).expect("a hex digit is below 16");
        match bytes.last_mut() {
            Some(last) if digits % 2 == 1 => *last = *last << 4 | digit,
            _ => bytes.push(digit),
        }
        digits += 1;
    }
    if digits % 2 == 1 {
        return Err(HexError::Odd { digits });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_skipped() {
        for text in [
            "20010c",
            "20 01 0C",
            "20:01:0c",
            "0x20, 0x01, 0x0c",
            "20-01-0c\r",
        ] {
            assert_eq!(parse(text), Ok(vec![0x20, 0x01, 0x0c]), "{text}");
        }
    }

    #[test]
    fn invalid_digit_is_shown_with_its_column() {
        let error = HexError::Digit {
            found: 'g',
            column: 4,
        };
        assert_eq!(parse("20 g1"), Err(error));
    }

    #[test]
    fn odd_number_of_digits_is_refused() {
        assert_eq!(parse("200"), Err(HexError::Odd { digits: 3 }));
    }
}
