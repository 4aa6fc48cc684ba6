//! Times as people write them, in configurations and on command lines.

use std::time::Duration;

use thiserror::Error;

/// The error returned when a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "\"{text}\" is not a time: write a number and one of us, ms, s, m and h, such as \"500ms\", \
     \"1.5s\" or \"2m\""
)]
pub struct DurationError {
    /// The text, or the beginning of a long one.
    text: String,
}

/// Reads a time: a decimal number and a unit, `us`, `ms`, `s`, `m` (or `min`) or `h`.
///
/// A number alone is in seconds. Nothing stands between the two, and nothing before or behind.
/// What is finer than a nanosecond is cut off.
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
/// assert!(wrong.to_string().starts_with("\"soon\" is not a time: "));
/// ```
///
/// # Errors
/// When it is not a time, or one of more than 500 years.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    read(text).ok_or_else(|| DurationError {
        text: text.chars().take(SHOWN).collect(),
    })
}

/// Characters of a wrong text that are repeated.
const SHOWN: usize = 40;

fn read(text: &str) -> Option<Duration> {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (number, unit) =
        text.split_at(text.find(|letter| !is_number(letter)).unwrap_or(text.len()));
    // Nanoseconds.
    let unit: u64 = match unit {
        "us" => 1_000,
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
    fn a_time_is_a_number_and_a_unit() {
        for (text, micros) in [
            ("250us", 250),
            ("0.5ms", 500),
            ("10s", 10_000_000),
            ("1.5s", 1_500_000),
            ("1.100s", 1_100_000),
            ("2m", 120_000_000),
            ("2min", 120_000_000),
            ("1.5h", 5_400_000_000),
            ("3", 3_000_000),
            ("0", 0),
        ] {
            let expected = Duration::from_micros(micros);
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_told_what_would_be() {
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
                wrong.starts_with(&format!("\"{text}\" is not a time: ")),
                "{wrong}"
            );
        }
        let long = parse_duration(&"x".repeat(10_000)).expect_err("it is no number");
        assert!(long.to_string().len() < 200);
    }
}
