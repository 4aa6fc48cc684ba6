//! Arguments of tools as models and their clients write them.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Parses the arguments of a call.
///
/// Clients without integers write `10.0` for 10, and some send `null` for a member that they leave
/// out. Only the members themselves are read this way: values within them may be data.
pub(super) fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    let arguments = match arguments {
        Value::Null => Cow::Owned(Value::Object(Map::new())),
        Value::Object(members) if members.values().any(|value| plain(value).is_none()) => {
            Cow::Owned(Value::Object(members.iter().filter_map(member).collect()))
        }
        arguments => Cow::Borrowed(arguments),
    };
    serde_path_to_error::deserialize(&*arguments).map_err(|error| {
        let (path, why) = (
            error.path().to_string(),
            explained(&error.inner().to_string()),
        );
        match path.as_str() {
            // A missing or unknown member is named by the error itself.
            "." => why,
            path => format!("`{path}`: {why}"),
        }
    })
}

/// Returns the value if it is taken as it is.
fn plain(value: &Value) -> Option<&Value> {
    (!value.is_null() && whole(value).is_none()).then_some(value)
}

fn member((name, value): (&String, &Value)) -> Option<(String, Value)> {
    let value = match whole(value) {
        Some(whole) => Value::from(whole),
        None if value.is_null() => return None,
        None => value.clone(),
    };
    Some((name.clone(), value))
}

/// The integer that a number with a fraction of zero stands for, if a double is exact there.
fn whole(value: &Value) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    let number = value.as_f64().filter(|_| value.is_f64())?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole and below 2^53"
    )]
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
}

/// Replaces the names of Rust types in an error.
fn explained(error: &str) -> String {
    let Some((got, expected)) = error.rsplit_once(", expected ") else {
        return error.to_owned();
    };
    let wanted = match expected {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number, at least 0",
        "isize" | "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "string or map" => "a string",
        "a map" => "an object",
        expected if expected.starts_with("struct ") => "an object",
        expected => expected,
    };
    let got = got
        .strip_prefix("invalid type: ")
        .or_else(|| got.strip_prefix("invalid value: "));
    match got {
        Some(got) => format!("got {got}, expected {wanted}"),
        None => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Params {
        path: String,
        most: Option<u64>,
        #[serde(default)]
        append: bool,
        #[serde(default)]
        edits: Vec<Replacement>,
        args: Option<Value>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Replacement {
        old: String,
    }

    #[test]
    fn whole_doubles_and_null_are_accepted() {
        for most in [
            json!(10),
            json!(10.0),
            serde_json::from_str("1e1").expect("a number"),
        ] {
            let params = json!({ "path": "a", "most": most, "append": null, "edits": null });
            let params: Params = read(&params).expect("it is valid");
            assert_eq!(params.most, Some(10));
        }
        // Data stays as it is.
        let args = json!({ "a": null, "b": 1.0 });
        let params: Params =
            read(&json!({ "path": "a", "args": args, "most": null })).expect("valid");
        assert_eq!(params.args, Some(args));
    }

    #[test]
    fn an_error_names_the_argument_and_what_is_expected() {
        for (arguments, says) in [
            (
                json!({ "path": "a", "most": "x" }),
                "`most`: got string \"x\", expected a whole number, at least 0",
            ),
            (
                json!({ "path": "a", "most": -1 }),
                "`most`: got integer `-1`, expected a whole number, at least 0",
            ),
            (
                json!({ "path": "a", "most": 1.5 }),
                "`most`: got floating point `1.5`, expected a whole number, at least 0",
            ),
            (
                json!({ "path": 1 }),
                "`path`: got integer `1`, expected a string",
            ),
            (
                json!({ "path": "a", "append": "yes" }),
                "`append`: got string \"yes\", expected true or false",
            ),
            (
                json!({ "path": "a", "edits": "b" }),
                "`edits`: got string \"b\", expected a list",
            ),
            (
                json!({ "path": "a", "edits": [{ "old": null }] }),
                "`edits[0].old`: got null, expected a string",
            ),
            (
                json!({ "path": "a", "edits": [7] }),
                "`edits[0]`: got integer `7`, expected an object",
            ),
            (json!({ "path": null }), "missing field `path`"),
            (json!(null), "missing field `path`"),
        ] {
            assert_eq!(
                read::<Params>(&arguments),
                Err(says.to_owned()),
                "{arguments}"
            );
        }
        let unknown = read::<Params>(&json!({ "path": "a", "pth": 1 })).expect_err("unknown");
        assert!(
            unknown.contains("unknown field `pth`, expected one of"),
            "{unknown}"
        );
    }
}
