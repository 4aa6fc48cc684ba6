//! Spans of time as arguments: `500ms`, `10s`, `2m`, `1h`.

use std::time::Duration;

/// Reads a span of time; a number alone is in seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is not a unit of time: use ms, s, m or h")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "expected a span of time such as 500ms, 10s, 2m or 1h".to_owned())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        let cases = [
            ("250ms", 250),
            ("10s", 10_000),
            ("1.5s", 1500),
            ("2m", 120_000),
            ("3", 3000),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn wrong_spans_say_what_is_right() {
        for text in ["", "ten", "10 parsecs", "-1s", "1e400s"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("10d").unwrap_err().contains("ms, s, m or h"));
    }
}
