//! The schema of manifests agrees with the parser of manifests.

use std::collections::BTreeSet;

use serde_json::Value;
use strowger_wasm::Manifest;
use strowger_wasm::manifest::ManifestError;

const SCHEMA: &str = include_str!("../../../../wit/manifest.schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

/// The keys that the parser lists when it is given an unknown one.
fn known(table: &str) -> BTreeSet<String> {
    let text = match table {
        "" => "zzz = 1\n[component]\nname = \"a\"\n".to_owned(),
        "component" => "[component]\nname = \"a\"\nzzz = 1\n".to_owned(),
        table => format!("[component]\nname = \"a\"\n[{table}]\nzzz = 1\n"),
    };
    let Err(ManifestError::Parse(error)) = Manifest::parse(&text) else {
        panic!("{table}: an unknown key was accepted");
    };
    let said = error.message().to_owned();
    let (_, list) = said.split_once("expected").expect("it names what it knows");
    list.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn keys(properties: &Value) -> BTreeSet<String> {
    let properties = properties.as_object().expect("it has properties");
    properties.keys().cloned().collect()
}

#[test]
fn schema_has_exactly_the_manifest_keys() {
    let schema = schema();
    assert_eq!(keys(&schema["properties"]), known(""));
    for (table, rule) in schema["properties"].as_object().expect("it has tables") {
        if rule["properties"].is_object() {
            assert_eq!(keys(&rule["properties"]), known(table), "{table}");
        }
    }
}

#[test]
fn schema_defaults_match_the_parser() {
    let schema = schema();
    let mut text = "[component]\nname = \"a\"\n".to_owned();
    for (table, rule) in schema["properties"].as_object().expect("it has tables") {
        let Some(properties) = rule["properties"].as_object() else {
            continue;
        };
        let defaults = properties
            .iter()
            .filter(|(_, rule)| !rule["default"].is_null());
        let lines: Vec<_> = defaults
            .map(|(key, rule)| format!("{key} = {}", rule["default"]))
            .collect();
        if !lines.is_empty() {
            text.push_str(&format!("[{table}]\n{}\n", lines.join("\n")));
        }
    }
    let manifest = Manifest::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(manifest, Manifest::new("a"));
}
