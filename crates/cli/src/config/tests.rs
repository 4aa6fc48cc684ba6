//! Unit tests of the configuration, and of its documentation.

mod quantities;

use std::fs;
use std::path::Path;

use super::*;

fn error(text: &str) -> String {
    Config::parse(text, "node.toml").unwrap_err().to_string()
}

#[test]
fn example_equals_the_defaults() {
    let config = Config::parse(&Config::example(), "example").unwrap();
    assert_eq!(config, Config::default());
}

#[test]
fn empty_file_equals_the_defaults() {
    assert_eq!(Config::parse("", "empty").unwrap(), Config::default());
}

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
        include_str!("../config.rs"),
        include_str!("code.rs"),
        include_str!("component.rs"),
        include_str!("mcp.rs"),
        include_str!("tools.rs")
    );
    for limits in limits.split("fn limits").skip(1) {
        code.push_str(limits.split("\n    }").next().unwrap());
    }
    // The caps on manifests are checked in the crate that parses manifests.
    code.push_str(include_str!("../../../wasm/src/manifest/caps.rs"));
    code.push_str(include_str!("../../../wasm/src/manifest/compare.rs"));
    code.push_str(include_str!("../../../wasm/src/registry.rs"));
    code.push_str(include_str!("../../../wasm/src/trust.rs"));
    for (table, key) in every_key() {
        let used = code.match_indices(&format!(".{key}")).any(|(at, found)| {
            let next = code[at + found.len()..].chars().next();
            next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
        });
        assert!(used, "[{table}] {key} is read nowhere");
    }
}

#[test]
fn unknown_key_is_shown_with_its_position_and_a_suggestion() {
    let text = "[n4]\nlisten = [\"127.0.0.1:0\"]\n\n[n4.limits]\n  sesions = 5\n";
    let message = error(text);
    let lines: Vec<&str> = message.lines().collect();
    assert!(
        lines[0].starts_with("error: node.toml:5:3: unknown field `sesions`"),
        "{message}"
    );
    assert_eq!(lines[1..4], ["  |", "5 |   sesions = 5", "  |   ^^^^^^^"]);
    assert!(
        lines[4].starts_with("hint: did you mean `sessions`?"),
        "{message}"
    );
}

#[test]
fn wrong_type_is_shown_with_its_position() {
    let message = error("[control]\nframe = \"big\"\n");
    assert!(
        message.contains("node.toml:2:9: invalid size \"big\": expected a whole number of bytes"),
        "{message}"
    );
    assert!(message.contains("\n  |         ^^^^^"), "{message}");
    let message = error("[control]\nin_flight = \"big\"\n");
    assert!(
        message.contains("node.toml:2:13: invalid type: string"),
        "{message}"
    );
}

#[test]
fn malformed_toml_is_shown_with_its_position() {
    let message = error("[node]\nname = \"x\n");
    assert!(message.contains("node.toml:2:"), "{message}");
    assert!(message.contains("2 | name = \"x"), "{message}");
}

#[test]
fn unusable_value_is_shown_with_its_position() {
    for (text, place, says) in [
        ("[n4]\nlisten = []", "2:10", "`n4.listen` is empty"),
        (
            "[n4.limits]\nsessions = 0",
            "2:12",
            "`n4.limits.sessions` is 0",
        ),
        ("[n4.timers]\nn1 = 900", "2:6", "`n4.timers.n1` is 900"),
        ("[control]\nframe = 5", "2:9", "`control.frame` is 5"),
        ("[control]\nidle = \"2h\"", "2:8", "from 100ms to 60m"),
        ("[metrics]\nhead = 10", "2:8", "at least 256"),
        (
            "[metrics]\nlisten = \"here\"",
            "2:10",
            "invalid socket address",
        ),
        ("[node]\nname = \"\"", "2:8", "a node needs a name"),
        ("[node]\nshutdown = \"0s\"", "2:12", "from 100ms to 60m"),
        ("[node]\nshutdown = \"soon\"", "2:12", "us, ms, s, m or h"),
        ("[log]\nfilter = \"a=b=c\"", "2:10", "`log.filter`"),
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

/// Asserts that a file is refused, with the place and a caret below it.
fn assert_shown(text: &str, place: &str, says: &str) {
    let message = error(text);
    assert!(
        message.starts_with(&format!("error: node.toml:{place}: ")),
        "{message}"
    );
    assert!(message.contains(says), "{message}");
    assert!(message.contains('^'), "{message}");
}

#[test]
fn carets_align_below_non_ascii_text() {
    let message = error("[node]\nname = \"größe\" x\n");
    let lines: Vec<&str> = message.lines().collect();
    let caret = lines[3].find('^').unwrap();
    let letters = lines[2].chars().collect::<Vec<_>>();
    assert_eq!(letters[lines[3][..caret].chars().count()], 'x', "{message}");
}

#[test]
fn hostile_files_never_panic() {
    for text in [
        "\0",
        "=",
        "[",
        "[[n4]]",
        "n4 = 5",
        "[n4]\n[n4]",
        "a = \"\u{1F4A9}",
        "\u{feff}[node",
        "[n4.limits]\nsessions = 99999999999999999999999",
        "[n4.limits]\nsessions = -1",
    ] {
        assert!(error(text).starts_with("error: node.toml"), "{text:?}");
    }
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(error(&deep).starts_with("error: node.toml"));
}

#[test]
fn changes_are_listed_by_key_against_the_defaults() {
    assert_eq!(changes("", &Config::example()), Vec::<String>::new());
    let before = "[n4.timers]\nt1 = \"1s\"\n[log]\nfilter = \"info\"";
    let after = "[n4.timers]\nt1 = \"2s\"\n[control]\nsocket = \"/x\"";
    assert_eq!(
        changes(before, after),
        ["control.socket", "log.filter", "n4.timers.t1"]
    );
    // Other spellings of the same value are no change.
    let before = "[node]\nshutdown = 60\n[control]\nframe = \"2048KiB\"\n[gateway]\nnames = 5";
    let after = "[node]\nshutdown = \"1m\"\n[control]\nframe = 2097152\n[gateway]\nnames = 6";
    assert_eq!(changes(before, after), ["gateway.names"]);
    let restarts = |sign: &str| format!("[n4.peer.restarts]\n\"10.1.7.9\" = \"{sign}\"");
    let changed = changes(&restarts("heartbeat"), &restarts("association-setup"));
    assert_eq!(changed, ["n4.peer.restarts.10.1.7.9"]);
}
