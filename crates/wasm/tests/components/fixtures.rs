//! The guests of `components/`, as built in `fixtures/components`.

use std::path::{Path, PathBuf};

use strowger_wasm::fault::CallPhase;
use strowger_wasm::load::Digest;
use strowger_wasm::message::Upgrade;
use strowger_wasm::{Call, CallError, ComponentArgs, Manifest};

use crate::kit::{Started, Testbed, payload, text};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

fn wasm(name: &str) -> Vec<u8> {
    std::fs::read(folder("fixtures/components").join(name)).expect("it is in the repository")
}

fn image(testbed: &Testbed, name: &str) -> strowger_wasm::Image {
    let manifest = folder("components").join(name).join(format!("{name}.toml"));
    let text = std::fs::read_to_string(manifest).expect("it is in the repository");
    let mut manifest = Manifest::parse(&text).expect("it is a manifest");
    // Deadlines are not the subject here, and the machine may be busy.
    manifest.limits.deadline = std::time::Duration::from_secs(60);
    manifest.limits.init = std::time::Duration::from_secs(60);
    let loaded = testbed
        .host
        .load_blocking(&wasm(&format!("{name}.wasm")), manifest);
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

fn start(testbed: &Testbed, name: &str) -> Started {
    let args: Result<ComponentArgs, _> = testbed
        .host
        .component(image(testbed, name), &testbed.directory);
    testbed.start_args(args.expect("there is room"))
}

#[test]
fn fixtures_have_the_recorded_hashes() {
    let sums = folder("fixtures/components/SHA256SUMS");
    let sums = std::fs::read_to_string(sums).expect("it is in the repository");
    let mut seen = 0;
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").expect("a sum and a name");
        assert_eq!(Digest::parse(sum), Some(Digest::of(&wasm(name))), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[test]
fn echo_returns_its_request() {
    let testbed = Testbed::new();
    let echo = start(&testbed, "echo");
    let long = "x".repeat(100_000);
    assert_eq!(text(testbed.ask(&echo, &long)), long);
}

#[test]
fn upper_in_c_answers_in_capitals() {
    let testbed = Testbed::new();
    let upper = start(&testbed, "upper");
    let long = "abc{z}".repeat(20_000);
    assert_eq!(text(testbed.ask(&upper, &long)), long.to_uppercase());
    assert_eq!(text(testbed.ask(&upper, "")), "");
    assert_eq!(text(testbed.ask(&upper, "Hello 1")), "HELLO 1");
}

#[test]
fn counter_keeps_its_state_over_panic_and_upgrade() {
    let testbed = Testbed::new();
    let counter = start(&testbed, "counter");
    assert_eq!(text(testbed.ask(&counter, "x")), "1");
    assert_eq!(text(testbed.ask(&counter, "x")), "2");
    let Err(CallError::Fault(fault)) = testbed.ask(&counter, "panic") else {
        panic!("it should have failed");
    };
    assert_eq!(fault.kind.name(), "panic");
    let why = fault.to_string();
    assert!(why.contains("as it was told"), "{why}");
    assert_eq!(text(testbed.ask(&counter, "x")), "3");
    let upgrade = Upgrade::to(image(&testbed, "counter"));
    let upgraded = testbed
        .system
        .run(counter.actor.ask(upgrade))
        .expect("it is answered");
    assert_eq!(upgraded, Ok(()));
    assert_eq!(text(testbed.ask(&counter, "x")), "4");
}

#[test]
fn relay_forwards_requests_the_configured_number_of_times() {
    let testbed = Testbed::new();
    start(&testbed, "echo");
    let relay = start(&testbed, "relay");
    assert_eq!(text(testbed.ask(&relay, "hello")), "hello");
    assert_eq!(text(testbed.ask(&relay, "times 1000")), "1000");
}

#[test]
fn qos_cap_admits_lowers_and_refuses() {
    let testbed = Testbed::new();
    let policy = start(&testbed, "qos-cap");
    let ask = |question: &str| {
        let asked = testbed
            .system
            .run(policy.actor.ask(Call(payload(question))));
        asked.expect("it is answered")
    };
    let admitted = ask("dnn internet\nuplink 10\ndownlink 20\n");
    assert_eq!(text(admitted), "dnn internet\nuplink 10\ndownlink 20\n");
    let lowered = ask("dnn ims\nuplink 5000\ndownlink 20\n");
    assert_eq!(text(lowered), "dnn ims\nuplink 1000\ndownlink 20\n");
    let refused = ask("dnn corp\nuplink 1\ndownlink 1\n");
    assert_eq!(
        refused,
        Err(CallError::Refused("corp is not served".to_owned()))
    );
}

#[test]
fn tally_in_javascript_keeps_its_state_over_throw_and_upgrade() {
    let testbed = Testbed::new();
    let tally = start(&testbed, "tally");
    testbed.tell(&tally, "ann: one two, three");
    testbed.tell(&tally, "bob: don't");
    let said = text(testbed.ask(&tally, "ann: vier fünf"));
    assert_eq!(said, r#"{"words":5,"messages":2}"#);
    let Err(CallError::Fault(fault)) = testbed.ask(&tally, "bob: throw") else {
        panic!("it should have failed");
    };
    assert_eq!(
        (fault.phase, fault.kind.name()),
        (CallPhase::Handle, "panic")
    );
    let why = fault.to_string();
    assert!(why.contains("RangeError: bob said so"), "{why}");
    assert!(why.contains("tally.js:"), "says where: {why}");
    // The previous state is restored; a throw while handling a message also ends only one
    // incarnation.
    assert_eq!(
        text(testbed.ask(&tally, "bob")),
        r#"{"words":1,"messages":1}"#
    );
    testbed.tell(&tally, "bob: throw");
    let upgrade = Upgrade::to(image(&testbed, "tally"));
    let upgraded = testbed.system.run(tally.actor.ask(upgrade));
    assert_eq!(upgraded.expect("it is answered"), Ok(()));
    assert_eq!(
        text(testbed.ask(&tally, "ann")),
        r#"{"words":5,"messages":2}"#
    );
    assert_eq!(tally.args.info().faults, 2);
}

#[test]
fn tally_refuses_unknown_requests_with_a_text() {
    let testbed = Testbed::new();
    let tally = start(&testbed, "tally");
    let refused = |question: &str| match testbed.ask(&tally, question) {
        Err(CallError::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("cleo"), "cleo has said nothing");
    assert_eq!(refused(""), "SENDER: TEXT, or SENDER");
    assert_eq!(tally.args.info().faults, 0);
}
