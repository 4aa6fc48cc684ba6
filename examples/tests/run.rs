//! Every example runs, and prints what it promises.

use std::process::Command;

fn output(program: &str) -> Vec<String> {
    let output = Command::new(program).output().expect("the example starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("the example prints text");
    text.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn counter_counts_and_hands_a_message_back() {
    let expected = [
        "/counter has counted to 42",
        "it ended: shutdown",
        "nobody took Add(7)",
    ];
    assert_eq!(output(env!("CARGO_BIN_EXE_counter")), expected);
}

#[test]
fn supervision_brings_the_worker_back() {
    let expected = [
        "/office/worker starts with 84 lines",
        "84 / 2 = 42",
        "/office/worker starts with 84 lines",
        "84 / 0: the actor panicked before it answered",
        "it ends: panicked: attempt to divide by zero",
        "84 / 4 = 21",
        "it ends: shutdown",
        "all ended in order: true",
    ];
    let mut lines = output(env!("CARGO_BIN_EXE_supervision"));
    // Asker, actor and successor speak at the same time about the panic.
    lines[2..5].sort();
    assert_eq!(lines, expected);
}

#[test]
fn smf_sets_a_session_up_and_sees_it_at_the_upf() {
    let lines = output(env!("CARGO_BIN_EXE_smf"));
    let [uplink, listed] = &*lines else {
        panic!("{lines:?}");
    };
    assert!(
        uplink.contains("at the UPF, uplink tunnel Some"),
        "{uplink}"
    );
    assert!(
        listed.contains("of smf.example.org: PDRs [1, 2]"),
        "{listed}"
    );
    assert!(listed.contains("10.45.0.9"), "{listed}");
}
