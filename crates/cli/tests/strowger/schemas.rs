//! The schemas of all tools, as model providers read them.

use serde_json::{Value, json};

use crate::agent::{Agent, cache};
use crate::running::Running;

const TYPES: [&str; 7] = [
    "object", "array", "string", "number", "integer", "boolean", "null",
];

/// Checks that a schema and everything in it has a type.
fn walk(schema: &Value, at: &str) {
    let kind = &schema["type"];
    let kinds: Vec<&str> = match kind {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => panic!("{at} has no type: {schema}"),
    };
    assert!(!kinds.is_empty(), "{at}: {schema}");
    assert!(
        kinds.iter().all(|kind| TYPES.contains(kind)),
        "{at}: {schema}"
    );
    if let Some(names) = schema.get("enum") {
        assert!(
            names.as_array().is_some_and(|names| !names.is_empty()),
            "{at}: {schema}"
        );
    }
    if *kind == "array" {
        walk(&schema["items"], &format!("{at}[]"));
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        walk(schema, &format!("{at}.{name}"));
    }
    let properties = schema["properties"].as_object();
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        let known = properties.is_some_and(|properties| properties.contains_key(name));
        assert!(known, "{at} requires {name}, which it does not have");
    }
}

#[test]
fn every_schema_of_every_tool_has_a_type() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let (root, cache) = (folder.path(), cache());
    let node = Running::start(&format!(
        "[components]\ncache = {cache:?}\n[[tools.files]]\nroot = {root:?}\n\
         [tools.streams]\nenabled = true\n[tools.code]\nenabled = true\n\
         [tools.programs]\nenabled = true\n"
    ));
    let tools = Agent::start(&["--control", &node.control]).listed();
    assert!(tools.len() > 20, "{tools:?}");
    for (name, tool) in tools {
        walk(&tool["inputSchema"], &name);
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        if let Some(output) = tool.get("outputSchema") {
            walk(output, &format!("{name} (output)"));
            assert_eq!(output["type"], "object", "{name}");
        }
    }
}

#[test]
fn whole_doubles_and_null_are_arguments_of_every_tool() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    std::fs::write(folder.path().join("a.txt"), "1\n2\n3\n").expect("it is ours");
    let root = folder.path().to_string_lossy();
    let mut agent = Agent::start(&["--root", &root, "--streams"]);
    for head in [
        json!(2),
        json!(2.0),
        serde_json::from_str("0.2e1").expect("a number"),
    ] {
        let lines = json!({ "path": "a.txt", "head": head, "tail": null, "from": null });
        let read = agent.call("read_text_file", &lines);
        assert_eq!(read["content"][0]["text"], "1\n2\n", "{read}");
    }
    // A member that is not wanted may be null in every tool.
    let wanted = |name: &str| match name {
        "path" => json!("a.txt"),
        "paths" => json!(["a.txt"]),
        _ => json!("1"),
    };
    for (name, tool) in agent.listed() {
        let schema = &tool["inputSchema"];
        let required = |name: &str| {
            let names = schema["required"].as_array().expect("a list");
            names.iter().any(|required| required == name)
        };
        let properties = schema["properties"].as_object().expect("an object");
        let arguments = properties.keys().map(|name| match required(name) {
            true => (name.clone(), wanted(name)),
            false => (name.clone(), Value::Null),
        });
        let arguments = Value::Object(arguments.collect());
        let answer = agent.call(&name, &arguments).to_string();
        assert!(!answer.contains("null, expected"), "{name}: {answer}");
    }
    let wrong = agent.refused("read_text_file", &json!({ "path": "a.txt", "head": "x" }));
    assert_eq!(
        wrong,
        "bad-request: arguments: `head`: got string \"x\", expected a whole number, at least 0"
    );
}
