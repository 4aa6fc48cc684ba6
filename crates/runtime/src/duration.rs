//! Durations as people write them in configuration files and on command lines.

use std::time::Duration;

use thiserror::Error;

/// The error returned when a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "invalid duration \"{text}\": expected a number and a unit (us, ms, s, m or h), such as \
     \"500ms\", \"1.5s\" or \"2m\""
)]
pub struct DurationError {
    /// The text, cut short if it is long.
    text: String,
}

/// Parses a duration: a decimal number followed by a unit, which is `us`, `ms`, `s`, `m` (or `min`)
/// or `h`.
///
/// It also accepts what the `Debug` format of a [`Duration`] prints, with its units `ns` and `µs`:
/// messages and pages show durations in that format.
///
/// A number without a unit is in seconds. There must be no space between number and unit, nor
/// anything before or after them. Fractions of a nanosecond are truncated.
///
/// ```
/// use std::time::Duration;
///
/// use strowger::parse_duration;
///
/// assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
/// assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
/// assert_eq!(parse_duration("3"), Ok(Duration::from_secs(3)));
/// let wrong = parse_duration("soon").expect_err("it is no number");
/// assert!(wrong.to_string().starts_with("invalid duration \"soon\": "));
/// ```
///
/// # Errors
/// Returns an error if the text is not a duration, or if it is longer than 500 years.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    parse(text).ok_or_else(|| DurationError {
        text: text.chars().take(MAX_QUOTED_CHARS).collect(),
    })
}

/// Number of characters of a rejected text that are repeated in the error.
const MAX_QUOTED_CHARS: usize = 40;

fn parse(text: &str) -> Option<Duration> {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (number, unit) =
        text.split_at(text.find(|letter| !is_number(letter)).unwrap_or(text.len()));
    // In nanoseconds.
    let unit: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let mut nanos = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        nanos = nanos.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_number_and_unit() {
        for (text, micros) in [
            ("250us", 250),
            ("0.5ms", 500),
            ("10s", 10_000_000),
            ("1.5s", 1_500_000),
            ("1.100s", 1_100_000),
            ("2m", 120_000_000),
            ("2min", 120_000_000),
            ("1.5h", 5_400_000_000),
            ("12µs", 12),
            ("3000ns", 3),
            ("3", 3_000_000),
            ("0", 0),
        ] {
            let expected = Duration::from_micros(micros);
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn debug_format_round_trips() {
        for nanos in [
            0,
            1,
            999,
            1_500,
            250_000,
            1_000_001,
            1_100_000_000,
            7_200_000_000_001,
        ] {
            let span = Duration::from_nanos(nanos);
            assert_eq!(parse_duration(&format!("{span:?}")), Ok(span), "{span:?}");
        }
    }

    #[test]
    fn invalid_duration_error_suggests_the_format() {
        for text in [
            "",
            "s",
            "ten",
            "10 s",
            " 10s",
            "10s ",
            "-1s",
            "+1s",
            "1e3s",
            "1.s",
            ".5s",
            "1.2.3s",
            "10d",
            "10S",
            "1,5s",
            "\u{661}s",
            "99999999999h",
            "18446744073709551616us",
        ] {
            let wrong = parse_duration(text).expect_err(text).to_string();
            assert!(
                wrong.starts_with(&format!("invalid duration \"{text}\": ")),
                "{wrong}"
            );
        }
        let long = parse_duration(&"x".repeat(10_000)).expect_err("it is no number");
        assert!(long.to_string().len() < 200);
    }
}
