//! JSON that a realm produced.

use serde::de::DeserializeOwned;

/// Parses JSON that QuickJS wrote, or returns the reason why other parsers reject it.
///
/// An unpaired surrogate, as `"\u{1f600}".slice(0, 1)` leaves, is valid in a JavaScript string but
/// not in UTF-8. It becomes U+FFFD, as it does with a `TextEncoder`.
pub(super) fn parse_json<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(&replace_lone_surrogates(json)))
        .map_err(|error| match error.to_string() {
            // serde_json limits the nesting depth and reports it only in the text of its error.
            deep if deep.starts_with("recursion limit") => {
                "nested more deeply than 127 lists and objects".to_owned()
            }
            other => other,
        })
}

/// Replaces each escape of an unpaired surrogate with an escape of U+FFFD.
fn replace_lone_surrogates(json: &str) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (
            surrogate(rest),
            surrogate(rest.get(ESCAPE_LEN..).unwrap_or_default()),
        ) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 2 * ESCAPE_LEN,
            (Some(_), _) => {
                whole.push_str("\\ufffd");
                rest = &rest[ESCAPE_LEN..];
                continue;
            }
            // A backslash and the character that it escapes, which is ASCII in valid JSON. The
            // input may be invalid, so the boundary is checked.
            (None, _) if rest.is_char_boundary(2) => 2,
            (None, _) => 1,
        };
        whole.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    whole.push_str(rest);
    whole
}

/// Length of an escape such as `\ud83d`.
const ESCAPE_LEN: usize = 6;

/// Returns the surrogate whose escape is at the start of the text.
fn surrogate(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    matches!(unit, 0xd800..0xe000).then_some(unit)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        for (json, text) in [
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ude00 hello""#, "\u{fffd} hello"),
            (r#""\ud83d\ud83d\ude00\ude00""#, "\u{fffd}\u{1f600}\u{fffd}"),
            (r#""a\\ud83d\ud83d""#, "a\\ud83d\u{fffd}"),
            (r#""\ud83d\n\u0041\\""#, "\u{fffd}\nA\\"),
            (r#""\uDBFF\u0041é""#, "\u{fffd}Aé"),
        ] {
            assert_eq!(parse_json::<String>(json).as_deref(), Ok(text), "{json}");
        }
    }

    #[test]
    fn invalid_json_is_an_error_with_a_reason() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let why = parse_json::<Value>(&deep).expect_err("it is deep");
        assert_eq!(why, "nested more deeply than 127 lists and objects");
        for broken in [
            "\"\\",
            "\"\\u",
            "\"\\ud8",
            "\"\\ud83d\\u",
            "\"\\ud83d\\",
            "é\\",
            "\\é",
        ] {
            assert!(parse_json::<Value>(broken).is_err(), "{broken}");
        }
    }
}
