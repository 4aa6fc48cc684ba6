//! Sections whose types need every feature, and all keys.

mod quantities;

use std::fs;
use std::path::Path;

use super::assert_shown;
use crate::config::Config;

/// Returns the heading of a table, which may be one of an array.
fn head(table: &str) -> String {
    match table {
        "" => String::new(),
        "component" => "[[component]]\n".to_owned(),
        "tools.files" => "[[tools.files]]\n".to_owned(),
        "doors.token" => "[[doors.token]]\n".to_owned(),
        table => format!("[{table}]\n"),
    }
}

/// Returns the keys of a table, as the parser lists them.
fn keys_of(table: &str) -> Vec<String> {
    let wrong = format!("{}no_such_key = 1", head(table));
    let error = toml::from_str::<Config>(&wrong).unwrap_err();
    let mut quoted = error.message().split('`').skip(1).step_by(2);
    assert_eq!(quoted.next(), Some("no_such_key"), "{error}");
    quoted.map(str::to_owned).collect()
}

/// Returns every key that a file may have, with its table: `("n4.timers", "t1")`.
fn every_key() -> Vec<(String, String)> {
    let mut tables = vec![String::new()];
    let mut keys = Vec::new();
    while let Some(table) = tables.pop() {
        for key in keys_of(&table) {
            let path = format!("{table}.{key}");
            let path = path.trim_start_matches('.').to_owned();
            let probe = format!("{}no_such_key = 1", head(&path));
            let probe = toml::from_str::<Config>(&probe).unwrap_err();
            // An enum reports an unknown variant; only a table reports an unknown field.
            if probe.message().contains("unknown field `no_such_key`") {
                tables.push(path);
            } else {
                keys.push((table.clone(), key));
            }
        }
    }
    keys
}

#[test]
fn example_has_every_key_with_a_comment() {
    let example = Config::example();
    let keys = every_key();
    assert!(keys.len() > 20, "{keys:?}");
    for (table, key) in keys {
        let body = example.split(&head(&table)).nth(1);
        let body = body.unwrap_or_else(|| panic!("no [{table}]"));
        let body = body.split("\n[").next().unwrap();
        let is_key = |line: &str| {
            let line = line.trim_start_matches('#');
            line.split_once(" =").is_some_and(|(name, _)| name == key)
        };
        let at = body.lines().position(is_key);
        let at = at.unwrap_or_else(|| panic!("[{table}] {key} is not in the example"));
        assert!(body.lines().take(at).any(|line| line.starts_with('#')));
    }
}

/// Collects the source of a folder, without the modules for configuration and tests.
fn source(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() && name != "config" {
            source(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs")
            && !["config", "tests"].contains(&name)
        {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_key_is_used() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut code = String::new();
    source(&crates.join("cli/src"), &mut code);
    source(&crates.join("pfcp-node/src"), &mut code);
    let limits = concat!(
        include_str!("../../config.rs"),
        include_str!("../agents/code.rs"),
        include_str!("../component.rs"),
        include_str!("../agents/mcp.rs"),
        include_str!("../agents/tools.rs")
    );
    for limits in limits.split("fn limits").skip(1) {
        code.push_str(limits.split("\n    }").next().unwrap());
    }
    // The caps on manifests are checked in the crate that parses manifests.
    code.push_str(include_str!("../../../../wasm/src/manifest/caps.rs"));
    code.push_str(include_str!("../../../../wasm/src/manifest/compare.rs"));
    code.push_str(include_str!("../../../../wasm/src/registry.rs"));
    code.push_str(include_str!("../../../../wasm/src/trust.rs"));
    for (table, key) in every_key() {
        let used = code.match_indices(&format!(".{key}")).any(|(at, found)| {
            let next = code[at + found.len()..].chars().next();
            next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
        });
        assert!(used, "[{table}] {key} is read nowhere");
    }
}

#[test]
fn invalid_component_settings_are_shown_with_their_position() {
    for (text, place, says) in [
        ("[components]\ninstances = 0", "2:13", "from 1 to 20000"),
        (
            "[components]\ninstances = 1\nwaiting = 2",
            "3:11",
            "at most `components.instances`",
        ),
        ("[components]\nthreads = 0", "2:11", "from 1 to 1024"),
        ("[components]\nnice = 20", "2:8", "from 0 to 19"),
        ("[components]\nwall = 0", "2:8", "at least 1"),
        (
            "[components]\npatience = \"1ms\"",
            "2:12",
            "from 100ms to 60m",
        ),
        (
            "[components]\nexcess = \"kill\"",
            "2:10",
            "`throttle` or `quarantine`",
        ),
        (
            "[components.caps]\ndeadline = \"0ms\"",
            "2:12",
            "no component could be loaded",
        ),
        (
            "[components.caps]\ncpu = \"200%\"",
            "2:7",
            "from \"1%\" to \"100%\"",
        ),
        (
            "[components.caps.grant]\nsend = [\"a**\"]",
            "2:8",
            "`*` is allowed only at the end of a pattern",
        ),
        (
            "[components.trust]\nsigners = { release = \"00\" }",
            "2:23",
            "is not an Ed25519 public key",
        ),
        (
            "[components.trust]\nwiden = true",
            "2:9",
            "[components.caps.grant] is not set",
        ),
        (
            "[[component]]\nmanifest = \"a\"\n[component.grant]\nlgo = true",
            "4:1",
            "unknown field `lgo`",
        ),
        (
            "[[component]]\nname = \"a\"",
            "1:1",
            "missing field `manifest`",
        ),
    ] {
        assert_shown(text, place, says);
    }
}

#[test]
fn invalid_tools_are_shown_with_their_position() {
    for (text, place, says) in [
        (
            "[[tools.files]]\nroot = \"a\"\nread-only = true",
            "3:1",
            "unknown field `read-only`",
        ),
        (
            "tools.files = [{ root = \"a\" }, { root = \"b\" }]",
            "1:15",
            "two roots named \"files\"",
        ),
        (
            "tools.files = [{ root = \"a\", name = \"code\" }]",
            "1:15",
            "the name of another tool",
        ),
    ] {
        assert_shown(text, place, says);
    }
}
