//! The program without optional features: what needs one is refused by name, the rest works.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::binary::{Ran, strowger, strowger_with_input};
use crate::guarded::Guarded;
use crate::running::Running;

/// Asserts that a command failed because of a feature, with the remedy.
fn assert_missing(ran: &Ran, feature: &str, at: &str) {
    assert_eq!(ran.code, 2, "{at}: {}{}", ran.out, ran.err);
    for part in [
        format!("this program was built without {feature}"),
        format!("build it with `--features {feature}` (on by default)"),
    ] {
        assert!(ran.err.contains(&part), "{at}: {}", ran.err);
    }
}

/// Returns the features that this program was built without, with the commands that need each.
fn missing() -> Vec<(&'static str, Vec<Vec<&'static str>>)> {
    let mcp = vec![
        vec!["mcp"],
        vec!["mcp", "--root", ".", "--code"],
        vec!["mcp", "--control", "/tmp/none.sock"],
    ];
    let component = vec![
        vec!["component", "ls"],
        vec!["component", "list", "--json"],
        vec!["component", "build", "DIR", "--out", "FILE"],
        vec!["component", "inspect", "--help"],
    ];
    let mut missing = vec![("agents", mcp)];
    if cfg!(not(feature = "components")) {
        missing.push(("components", component));
    }
    missing
}

#[test]
fn commands_of_missing_features_name_the_feature() {
    for (feature, commands) in missing() {
        for args in commands {
            assert_missing(&strowger(args.clone()), feature, &args.join(" "));
        }
    }
}

#[test]
fn help_lists_commands_of_missing_features_with_the_feature() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = words(&strowger(["--help"]).out);
    for (feature, commands) in missing() {
        let verb = commands[0][0];
        let about = help
            .split(&format!(" {verb} "))
            .nth(1)
            .expect("it is listed");
        let mark = format!("(needs feature `{feature}`)");
        assert!(about.find(&mark) < Some(150), "{verb}: {help}");
        let own = strowger([verb, "--help"]);
        assert_eq!(own.code, 0, "{}", own.err);
        let remedy = format!("build it with `--features {feature}`");
        assert!(words(&own.out).contains(&remedy), "{}", own.out);
    }
}

/// Configurations that need a feature, with the feature, the place and the key of the first such
/// value.
fn needy() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    let mut needy = vec![
        (
            "[tools.code]\nenabled = true",
            "agents",
            "2:11",
            "tools.code.enabled",
        ),
        (
            "[[tools.files]]\nroot = \"a\"",
            "agents",
            "1:1",
            "tools.files",
        ),
        (
            "[tools.streams]\npiece = \"1MiB\"",
            "agents",
            "2:9",
            "tools.streams.piece",
        ),
        (
            "[tools.cod]\nenabled = true",
            "agents",
            "2:11",
            "tools.cod.enabled",
        ),
        ("[mcp]\nhttp = true", "agents", "2:8", "mcp.http"),
        (
            "[mcp]\ntoken_file = \"a\"",
            "agents",
            "2:14",
            "mcp.token_file",
        ),
    ];
    if cfg!(not(feature = "components")) {
        needy.extend([
            (
                "[[component]]\nmanifest = \"a\"",
                "components",
                "1:1",
                "component",
            ),
            (
                "[components]\ncache = \"a\"",
                "components",
                "2:9",
                "components.cache",
            ),
            (
                "[components.caps.grant]\nlog = true",
                "components",
                "2:7",
                "components.caps.grant.log",
            ),
            (
                "[n4.policy]\nkind = \"component\"\ncomponent = \"qos-cap\"",
                "components",
                "2:8",
                "n4.policy.kind",
            ),
        ]);
    }
    needy
}

#[test]
fn configuration_that_needs_a_feature_is_refused_by_key() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("node.toml");
    let path = file.to_str().expect("text");
    for (text, feature, place, key) in needy() {
        fs::write(&file, text).expect("a file of our own");
        for args in [&["check", path][..], &["run", "--config", path]] {
            let ran = strowger(args.iter().copied());
            assert_missing(&ran, feature, text);
            let shown = format!("error: {path}:{place}: `{key}` needs feature `{feature}`: ");
            assert!(ran.err.starts_with(&shown), "{shown}\n{}", ran.err);
        }
    }
}

#[test]
fn created_configuration_is_accepted() {
    let created = strowger(["init", "-"]);
    assert_eq!(created.code, 0, "{}", created.err);
    for section in ["[components.caps]", "[tools.code.limits]", "[mcp]"] {
        assert!(created.out.contains(section), "{section}");
    }
    let ran = strowger_with_input(["check", "-"], created.out.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let node = Running::start("[tools]\nfiles = []\n[tools.code]\nenabled = false\n");
    node.end();
}

#[test]
fn demo_names_the_missing_parts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let control = folder.path().join("control.sock");
    let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
    command.args(["demo", "--port", "0", "--for", "1s", "--control"]);
    command.arg(control).stdout(Stdio::piped());
    let mut child = Guarded::spawn(&mut command);
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let start: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert!(child.output().status.success(), "{start:#?}");
    let mut without = start.iter().filter(|line| line.contains("  without  "));
    let line = without.next().expect("a line about missing parts");
    assert!(line.contains("tools for agents"), "{line}");
    let is_missing = cfg!(not(feature = "components"));
    assert_eq!(line.contains("policy component"), is_missing, "{line}");
    assert_eq!(without.next(), None);
    let help = strowger(["demo", "--help"]).out;
    assert!(
        help.contains("The default build adds tools for agents"),
        "{help}"
    );
}
