//! Unit tests of the configuration, and of its documentation.

#[cfg(feature = "agents")]
mod sections;

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
