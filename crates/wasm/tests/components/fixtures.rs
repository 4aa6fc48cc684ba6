//! The guests of `components/`, as built in `fixtures/components`.

use std::path::{Path, PathBuf};

use strowger_wasm::fault::Phase;
use strowger_wasm::load::Digest;
use strowger_wasm::message::Upgrade;
use strowger_wasm::{Call, CallError, ComponentArgs, Manifest};

use crate::kit::{Stand, Started, octets, text};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

fn wasm(name: &str) -> Vec<u8> {
    std::fs::read(folder("fixtures/components").join(name)).expect("it is in the repository")
}

fn image(stand: &Stand, name: &str) -> strowger_wasm::Image {
    let manifest = folder("components").join(name).join(format!("{name}.toml"));
    let text = std::fs::read_to_string(manifest).expect("it is in the repository");
    let mut manifest = Manifest::parse(&text).expect("it is a manifest");
    // Deadlines are not the subject here, and the machine may be busy.
    manifest.limits.deadline = std::time::Duration::from_secs(60);
    manifest.limits.init = std::time::Duration::from_secs(60);
    let loaded = stand
        .host
        .load_blocking(&wasm(&format!("{name}.wasm")), manifest);
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

fn start(stand: &Stand, name: &str) -> Started {
    let args: Result<ComponentArgs, _> = stand.host.component(image(stand, name), &stand.directory);
    stand.start_args(args.expect("there is room"))
}

#[test]
fn fixtures_have_the_hashes_that_are_written_down() {
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
fn echo_answers_with_what_it_is_asked() {
    let stand = Stand::new();
    let echo = start(&stand, "echo");
    let long = "x".repeat(100_000);
    assert_eq!(text(stand.ask(&echo, &long)), long);
}

#[test]
fn upper_which_is_written_in_c_answers_in_capitals() {
    let stand = Stand::new();
    let upper = start(&stand, "upper");
    let long = "abc{z}".repeat(20_000);
    assert_eq!(text(stand.ask(&upper, &long)), long.to_uppercase());
    assert_eq!(text(stand.ask(&upper, "")), "");
    assert_eq!(text(stand.ask(&upper, "Hello 1")), "HELLO 1");
}

#[test]
fn counter_counts_over_a_panic_and_an_upgrade() {
    let stand = Stand::new();
    let counter = start(&stand, "counter");
    assert_eq!(text(stand.ask(&counter, "x")), "1");
    assert_eq!(text(stand.ask(&counter, "x")), "2");
    let Err(CallError::Fault(fault)) = stand.ask(&counter, "panic") else {
        panic!("it should have failed");
    };
    assert_eq!(fault.kind.word(), "panic");
    let why = fault.to_string();
    assert!(why.contains("as it was told"), "{why}");
    assert_eq!(text(stand.ask(&counter, "x")), "3");
    let upgrade = Upgrade::to(image(&stand, "counter"));
    let upgraded = stand
        .system
        .run(counter.actor.ask(upgrade))
        .expect("it is answered");
    assert_eq!(upgraded, Ok(()));
    assert_eq!(text(stand.ask(&counter, "x")), "4");
}

#[test]
fn relay_passes_questions_on_and_asks_as_often_as_it_is_told() {
    let stand = Stand::new();
    start(&stand, "echo");
    let relay = start(&stand, "relay");
    assert_eq!(text(stand.ask(&relay, "hello")), "hello");
    assert_eq!(text(stand.ask(&relay, "times 1000")), "1000");
}

#[test]
fn qos_cap_admits_lowers_and_refuses() {
    let stand = Stand::new();
    let policy = start(&stand, "qos-cap");
    let ask = |question: &str| {
        let asked = stand.system.run(policy.actor.ask(Call(octets(question))));
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
fn tally_which_is_written_in_javascript_counts_over_a_throw_and_an_upgrade() {
    let stand = Stand::new();
    let tally = start(&stand, "tally");
    stand.tell(&tally, "ann: one two, three");
    stand.tell(&tally, "bob: don't");
    let said = text(stand.ask(&tally, "ann: vier fünf"));
    assert_eq!(said, r#"{"words":5,"messages":2}"#);
    let Err(CallError::Fault(fault)) = stand.ask(&tally, "bob: throw") else {
        panic!("it should have failed");
    };
    assert_eq!((fault.phase, fault.kind.word()), (Phase::Handle, "panic"));
    let why = fault.to_string();
    assert!(why.contains("RangeError: bob said so"), "{why}");
    assert!(why.contains("tally.js:"), "says where: {why}");
    // The previous state is restored; a throw while handling a message also ends only one
    // incarnation.
    assert_eq!(
        text(stand.ask(&tally, "bob")),
        r#"{"words":1,"messages":1}"#
    );
    stand.tell(&tally, "bob: throw");
    let upgrade = Upgrade::to(image(&stand, "tally"));
    let upgraded = stand.system.run(tally.actor.ask(upgrade));
    assert_eq!(upgraded.expect("it is answered"), Ok(()));
    assert_eq!(
        text(stand.ask(&tally, "ann")),
        r#"{"words":5,"messages":2}"#
    );
    assert_eq!(tally.args.info().faults, 2);
}

#[test]
fn tally_refuses_in_words_what_it_does_not_know() {
    let stand = Stand::new();
    let tally = start(&stand, "tally");
    let refused = |question: &str| match stand.ask(&tally, question) {
        Err(CallError::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("cleo"), "cleo has said nothing");
    assert_eq!(refused(""), "SENDER: TEXT, or SENDER");
    assert_eq!(tally.args.info().faults, 0);
}
