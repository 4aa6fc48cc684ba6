//! JSON that comes out of a realm.

use serde::de::DeserializeOwned;

/// Reads JSON that QuickJS wrote, or says why it is none for others.
///
/// Half of a surrogate pair, as `"\u{1f600}".slice(0, 1)` leaves, is text in JavaScript and none in
/// UTF-8: it becomes U+FFFD, as it does for a `TextEncoder`.
pub(super) fn read_json<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(&without_halves(json)))
        .map_err(|error| match error.to_string() {
            // The reader counts levels, and has no other name for what lies too deep.
            deep if deep.starts_with("recursion limit") => {
                "it nests more deeply than 127 lists and objects".to_owned()
            }
            other => other,
        })
}

/// JSON whose escapes of half a surrogate pair are escapes of U+FFFD.
fn without_halves(json: &str) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (half(rest), half(rest.get(ESCAPE..).unwrap_or_default())) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 2 * ESCAPE,
            (Some(_), _) => {
                whole.push_str("\\ufffd");
                rest = &rest[ESCAPE..];
                continue;
            }
            // A backslash and what it escapes; in JSON that is ASCII, and here it may be no JSON.
            (None, _) if rest.is_char_boundary(2) => 2,
            (None, _) => 1,
        };
        whole.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    whole.push_str(rest);
    whole
}

/// The length of `\ud83d`.
const ESCAPE: usize = 6;

/// The half of a surrogate pair with whose escape a text begins.
fn half(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    matches!(unit, 0xd800..0xe000).then_some(unit)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn halves_of_pairs_become_replacements_and_nothing_else_changes() {
        for (json, text) in [
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ude00 hello""#, "\u{fffd} hello"),
            (r#""\ud83d\ud83d\ude00\ude00""#, "\u{fffd}\u{1f600}\u{fffd}"),
            (r#""a\\ud83d\ud83d""#, "a\\ud83d\u{fffd}"),
            (r#""\ud83d\n\u0041\\""#, "\u{fffd}\nA\\"),
            (r#""\uDBFF\u0041é""#, "\u{fffd}Aé"),
        ] {
            assert_eq!(read_json::<String>(json).as_deref(), Ok(text), "{json}");
        }
    }

    #[test]
    fn what_is_no_json_says_why() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let why = read_json::<Value>(&deep).expect_err("it is deep");
        assert_eq!(why, "it nests more deeply than 127 lists and objects");
        for broken in [
            "\"\\",
            "\"\\u",
            "\"\\ud8",
            "\"\\ud83d\\u",
            "\"\\ud83d\\",
            "é\\",
            "\\é",
        ] {
            assert!(read_json::<Value>(broken).is_err(), "{broken}");
        }
    }
}
