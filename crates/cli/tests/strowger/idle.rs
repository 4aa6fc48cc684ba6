//! The cost of an idle node.

use std::thread;
use std::time::Duration;

use crate::binary::strowger;
use crate::running::Running;

/// The duration of the measurement.
const MEASURED_TIME: Duration = Duration::from_secs(2);
/// Two hundredths of a processor; the system counts in hundredths of a second.
const MAX_CPU: Duration = Duration::from_millis(40);

/// Fails if a node uses more than it may; takes the best of three, because the machine does other
/// work too.
fn assert_idle(node: &Running, when: &str) {
    let mut used = Vec::new();
    for _ in 0..3 {
        let before = node.cpu();
        thread::sleep(MEASURED_TIME);
        used.push(node.cpu() - before);
        if used.last() < Some(&MAX_CPU) {
            return;
        }
    }
    panic!("{when}, in {MEASURED_TIME:?} each: {used:?} of a processor");
}

#[test]
fn idle_node_sleeps_before_and_after_a_load() {
    let node = Running::start("");
    assert_idle(&node, "just started");
    let (n4, rate) = (node.n4.as_str(), "200");
    let words = [
        "pfcp",
        "load",
        "--to",
        n4,
        "--rate",
        rate,
        "--sessions",
        "50",
    ];
    let ran = strowger(words.into_iter().chain(["--for", "2s", "--json"]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_idle(&node, "after a load");
    node.end();
}
