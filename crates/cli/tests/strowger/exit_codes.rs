//! Exit codes: the binary produces each row of the table in `strowger --help`, and each code that
//! the help of a verb names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use strowger_pfcp::Seid;
use strowger_pfcp::ie::Cause;
use tempfile::TempDir;

use crate::binary::{Ran, strowger, strowger_with_input};
use crate::demo_process::Demo;
use crate::peer::Peer;
use crate::running::Running;

/// A verb with its exit code.
type Claim = (String, i32);

/// Codes that tests in other files produce, because they need a setup of their own.
const TESTED_ELSEWHERE: [(&str, i32, &str, &str); 13] = [
    ("run", 1, "kill.rs", "process_exits_when_its_node_is_killed"),
    (
        "run",
        130,
        "forced_shutdown.rs",
        "second_signal_ends_every_node_command_at_once",
    ),
    (
        "run",
        143,
        "forced_shutdown.rs",
        "second_signal_ends_every_node_command_at_once",
    ),
    (
        "pfcp replay",
        1,
        "replay.rs",
        "unanswered_request_counts_as_lost",
    ),
    (
        "pfcp robustness",
        1,
        "strict_upf.rs",
        "robustness_tests_name_what_a_strict_upf_requires",
    ),
    (
        "pfcp audit",
        1,
        "store.rs",
        "acknowledged_load_survives_a_kill",
    ),
    (
        "store verify",
        1,
        "store.rs",
        "store_is_verified_and_exported_without_a_change",
    ),
    (
        "store check",
        1,
        "durable.rs",
        "damaged_store_is_checked_repaired_and_restored",
    ),
    (
        "store export",
        1,
        "durable.rs",
        "damaged_store_is_checked_repaired_and_restored",
    ),
    (
        "store import",
        1,
        "durable.rs",
        "damaged_store_is_checked_repaired_and_restored",
    ),
    (
        "store import",
        2,
        "durable.rs",
        "unusable_input_and_stores_are_refused_with_a_remedy",
    ),
    (
        "entity show",
        1,
        "durable.rs",
        "entities_are_listed_and_shown",
    ),
    ("pfcp load", 3, "demo.rs", "load_without_a_node_is_reported"),
];

/// Every verb with its help; the help of the program itself comes first.
fn verbs() -> Vec<(String, String)> {
    let mut open = vec![String::new()];
    let mut all = Vec::new();
    while let Some(verb) = open.pop() {
        let ran = strowger(verb.split_whitespace().chain(["--help"]));
        assert_eq!(ran.code, 0, "{verb}: {}", ran.err);
        let below = ran.out.split("\nCommands:\n").nth(1).unwrap_or_default();
        let below = below.lines().take_while(|line| !line.is_empty());
        for name in below.filter_map(|line| line.split_whitespace().next()) {
            if name != "help" {
                open.push(format!("{verb} {name}").trim().to_owned());
            }
        }
        all.push((verb, ran.out));
    }
    all
}

/// The rows of the table of exit codes in a help text, if it has one: the codes of each, and the
/// description.
fn table(help: &str) -> Vec<(Vec<i32>, String)> {
    let rows = help.split("Exit codes:\n").nth(1).unwrap_or_default();
    let rows = rows.lines().take_while(|line| !line.is_empty());
    // A deeper indent continues the row above.
    let rows = rows.filter(|line| !line.starts_with("     "));
    let rows = rows.map(|line| {
        let (codes, says) = line
            .trim()
            .split_once("  ")
            .expect("a code and what it says");
        let codes = codes
            .split(", ")
            .map(|code| code.parse().expect("a number"));
        (codes.collect(), says.trim().to_owned())
    });
    rows.collect()
}

/// The files that the cases need.
struct CaseFiles(TempDir);

impl CaseFiles {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().expect("a temporary folder"));
        files.write("good.toml", &manifest("counter", &fixture("counter"), ""));
        let beyond = manifest("counter", &fixture("counter"), "handles = 5000\n");
        files.write("beyond.toml", &beyond);
        files.write("broken.wasm", "no component");
        files.write(
            "broken.toml",
            &manifest("counter", &files.at("broken.wasm"), ""),
        );
        files.write("there.pem", "a key");
        files.write("taken.toml", "[n4]\nlisen = []\n");
        files
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("text").to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).expect("the folder is writable");
    }
}

fn fixture(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(format!("fixtures/components/{name}.wasm"));
    path.to_str().expect("text").to_owned()
}

fn manifest(name: &str, file: &str, limits: &str) -> String {
    // Long deadlines, so that a busy machine causes no fault of a component.
    let long = "deadline = \"1s\"\ninit = \"5s\"";
    format!("[component]\nname = {name:?}\nfile = {file:?}\n[limits]\n{long}\n{limits}")
}

/// A verb with its exit code, and the command line.
type Case<'a> = (&'a str, i32, Vec<&'a str>);

/// Cases that need no node, or find none.
fn without_a_node(files: &CaseFiles) -> Vec<(Claim, Ran)> {
    let names = [
        "good.toml",
        "beyond.toml",
        "broken.wasm",
        "there.pem",
        "taken.toml",
        "none",
    ];
    let [good, beyond, broken, key, taken, none] = names.map(|name| files.at(name));
    let (counter, cap) = (fixture("counter"), fixture("qos-cap"));
    let alone: [Case<'_>; 20] = [
        ("", 0, vec!["--version"]),
        ("", 2, vec!["dmeo"]),
        ("check", 2, vec![&taken]),
        ("check", 3, vec![&none]),
        (
            "tell",
            3,
            vec!["conformance/echo#add", "1", "--control", &none],
        ),
        ("ask", 3, vec!["conformance/echo#sum", "--control", &none]),
        ("sub", 3, vec!["conformance/echo", "--control", &none]),
        ("component deploy", 3, vec![&good, "--control", &none]),
        ("component inspect", 1, vec![&cap]),
        ("component inspect", 2, vec![&broken]),
        ("component keygen", 3, vec![&key]),
        ("component sign", 2, vec![&good, "--key", &good]),
        ("component verify", 1, vec![&good]),
        ("pfcp decode", 1, vec!["--hex", "40010004"]),
        ("pfcp decode", 2, vec!["--hex", "xy"]),
        ("pfcp decode", 3, vec![&none]),
        ("tree", 3, vec!["--control", &none]),
        (
            "pfcp diff",
            1,
            vec![
                "2001000c00000100006000040a0b0c0d",
                "2001000c00000200006000040a0b0c0e",
            ],
        ),
        (
            "component inspect",
            2,
            vec![&counter, "--manifest", &beyond],
        ),
        ("component inspect", 2, vec![&counter, "--manifest", &taken]),
    ];
    let mut done: Vec<_> = alone
        .into_iter()
        .map(|(verb, code, words)| {
            let line = verb.split_whitespace().chain(words);
            ((verb.to_owned(), code), strowger(line))
        })
        .collect();
    done.push((
        ("component verify".to_owned(), 2),
        verify_altered(files, &good),
    ));
    let words = ["component", "run", &counter, "--manifest", &good];
    done.push((
        ("component run".to_owned(), 1),
        strowger_with_input(words, b"panic\n"),
    ));
    done
}

/// Verifies a manifest that was changed after it was signed.
fn verify_altered(files: &CaseFiles, good: &str) -> Ran {
    let [signed, secret] = ["signed.toml", "key.pem"].map(|name| files.at(name));
    fs::copy(good, &signed).expect("the folder is writable");
    for words in [
        &["component", "keygen", &secret][..],
        &["component", "sign", &signed, "--key", &secret],
    ] {
        let ran = strowger(words.iter().copied());
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let text = fs::read_to_string(&signed).expect("it exists");
    files.write(
        "signed.toml",
        &format!("{text}\n[restart]\nintensity = 7\n"),
    );
    strowger(["component", "verify", &signed])
}

/// Cases that ask a running node.
fn with_a_node(files: &CaseFiles) -> Vec<(Claim, Ran)> {
    let node = Running::start(
        "[gateway]\nconformance = true\n[n4.timers]\nt1 = \"50ms\"\n[n4.limits]\nsessions = 1\n",
    );
    let [good, broken, beyond] =
        ["good.toml", "broken.toml", "beyond.toml"].map(|name| files.at(name));
    let slow = "{\"ms\": 60000}";
    // A peer that is associated, and answers nothing.
    let peer = Peer::associated(71, &node.n4);
    let silent = peer.address.to_string();
    let deployed = node.ask(["component", "deploy", &good]);
    assert_eq!(deployed.code, 0, "{}", deployed.err);
    let cases: [Case<'_>; 22] = [
        ("tell", 1, vec!["nobody#add", "1"]),
        ("tell", 2, vec!["conformance/echo#nothing"]),
        ("tell", 2, vec!["conformance/echo#add", "true"]),
        ("ask", 1, vec!["nobody#sum"]),
        ("ask", 2, vec!["conformance/echo#nothing"]),
        ("ask", 3, vec!["conformance/echo#crash"]),
        // Not answered in time.
        (
            "ask",
            3,
            vec!["conformance/echo#wait", slow, "--deadline", "50ms"],
        ),
        ("sub", 1, vec!["nobody"]),
        ("sub", 2, vec!["conformance/echo#nothing"]),
        ("inspect", 1, vec!["/node/n5"]),
        ("kill", 1, vec!["/node/n5"]),
        ("component deploy", 1, vec![&good]),
        ("component deploy", 2, vec![&broken]),
        ("component deploy", 2, vec![&beyond]),
        ("component upgrade", 1, vec![&good, "--name", "nobody"]),
        ("component upgrade", 2, vec![&broken]),
        ("component rollback", 1, vec!["nobody"]),
        ("component remove", 1, vec!["nobody"]),
        ("pfcp release", 1, vec!["127.0.0.73"]),
        ("pfcp release", 3, vec![&silent, "--within", "200ms"]),
        ("pfcp report", 3, vec![&silent, "failed", "10.0.0.9"]),
        ("ps", 1, vec!["/node/n5"]),
    ];
    let mut done: Vec<_> = cases
        .into_iter()
        .map(|(verb, code, words)| {
            let line = verb.split_whitespace().chain(words);
            ((verb.to_owned(), code), node.ask(line))
        })
        .collect();
    // The second session exceeds the limit.
    let load = ["pfcp", "load", "--to", &node.n4, "--for", "200ms"];
    let load = strowger(
        load.into_iter()
            .chain(["--in-flight", "1", "--sessions", "5"]),
    );
    done.push((("pfcp load".to_owned(), 1), load));
    done
}

/// A demo of which another peer deletes a session: the session is lost.
fn demo_that_loses_a_session() -> (Claim, Ran) {
    let mut demo = Demo::start(&["--sessions", "5", "--rate", "50"]);
    let mut other = Peer::bind(1, &demo.n4);
    loop {
        let ran = strowger(["pfcp", "sessions", "--json", "--control", &demo.control]);
        let seid = ran
            .objects()
            .first()
            .and_then(|session| session["seid"].as_u64());
        // Meanwhile the demo itself may have deleted that session.
        if seid.is_some_and(|seid| other.delete(Seid(seid)) == Cause::REQUEST_ACCEPTED) {
            break;
        }
    }
    let (code, summary) = demo.end_with("INT");
    let ran = Ran {
        code: code.expect("it is not killed"),
        out: summary.to_string(),
        err: String::new(),
    };
    (("demo".to_owned(), 1), ran)
}

#[test]
fn documented_exit_codes_are_produced() {
    let files = CaseFiles::new();
    let mut done = without_a_node(&files);
    done.extend(with_a_node(&files));
    done.push(demo_that_loses_a_session());
    let mut seen: BTreeSet<Claim> = BTreeSet::new();
    for ((verb, code), ran) in done {
        assert_eq!(ran.code, code, "{verb}: {}{}", ran.out, ran.err);
        seen.insert((verb, code));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/strowger");
    for (verb, code, file, test) in TESTED_ELSEWHERE {
        let text = fs::read_to_string(folder.join(file)).expect("the file is there");
        let test = text.split(&format!("fn {test}(")).nth(1);
        let test = test.unwrap_or_else(|| panic!("{file} has no such test any more"));
        let body = test.split("\n#[test]").next().unwrap_or_default();
        assert!(
            body.contains(&code.to_string()),
            "{file} does not ask for {code}"
        );
        seen.insert((verb.to_owned(), code));
    }
    for (row, says) in table(&strowger(["--help"]).out) {
        for code in row {
            let made = seen.iter().any(|(_, made)| *made == code);
            assert!(made, "no case ends with {code}: {says}");
        }
    }
    let mut claimed = 0;
    // The first help is that of the program, which the loop above has checked.
    for (verb, help) in verbs().into_iter().skip(1) {
        for code in table(&help).into_iter().flat_map(|(codes, _)| codes) {
            claimed += 1;
            let claim = (verb.clone(), code);
            assert!(
                seen.contains(&claim),
                "no case has `{verb}` end with {code}"
            );
        }
    }
    assert!(claimed > 35, "only {claimed} codes are named");
}

#[test]
fn help_names_only_exit_codes_of_the_table() {
    let codes = |help: &str| table(help).into_iter().flat_map(|(codes, _)| codes);
    let all: Vec<i32> = codes(&strowger(["--help"]).out).collect();
    assert_eq!(all, [0, 1, 2, 3, 130, 143]);
    for (verb, help) in verbs() {
        for code in codes(&help) {
            assert!(
                all.contains(&code),
                "`{verb}` names {code}, which the table has not"
            );
        }
    }
}
