//! Every example runs and prints the expected output.

#[path = "../../crates/pfcp/tests/others/guarded.rs"]
#[allow(dead_code, reason = "an example is run to its end")]
mod guarded;

use std::process::Command;

fn output(name: &str) -> Vec<String> {
    let output = guarded::output(Command::new(env!("CARGO_BIN_EXE_lessons")).arg(name));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("the example prints text");
    text.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn counter_counts_and_returns_undelivered_messages() {
    let expected = [
        "/counter has counted to 42",
        "it ended: shutdown",
        "nobody took Add(7)",
    ];
    assert_eq!(output("counter"), expected);
}

#[test]
fn durable_account_survives_and_a_repeated_payment_counts_once() {
    let expected = [
        "account/acc-42 starts with 0",
        "salary: 100, balance 100",
        "rent: -30, balance 70",
        "account/acc-42 starts with 70",
        "rent: -30, balance 70",
        "bread: -5, balance 65",
    ];
    assert_eq!(output("durable"), expected);
}

#[test]
fn entities_are_stored_in_numbers_and_few_are_awake() {
    let expected = [
        "stored: 1000",
        "awake: 100",
        "acc-42: 50",
        "exported at: @(accounts)",
    ];
    assert_eq!(output("entities"), expected);
}

#[test]
fn event_sourced_account_has_the_balance_of_its_postings() {
    let expected = [
        "100: Some(100)",
        "-30: Some(70)",
        "-90: None",
        "-5: Some(65)",
    ];
    assert_eq!(output("event_sourced"), expected);
}

#[test]
fn reminder_is_kept_while_no_process_runs() {
    let expected = [
        "reserved: true",
        "seat/7 released: not paid, late: true",
        "reserved: true",
    ];
    assert_eq!(output("reminder"), expected);
}

#[test]
fn order_emails_once() {
    let expected = [
        "undelivered: 1",
        "undelivered: 1",
        "order/7 says: Thank you!",
    ];
    assert_eq!(output("outbox"), expected);
}

#[test]
fn first_program_counts_from_the_start_after_a_failure() {
    assert_eq!(output("first"), ["40 + 2 = 42", "40 + 1 = 41"]);
}

#[test]
fn supervision_restarts_the_worker() {
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
    let mut lines = output("supervision");
    // Caller, actor and next incarnation print at the same time after the panic.
    lines[2..5].sort();
    assert_eq!(lines, expected);
}

#[test]
fn ask_reports_every_kind_of_failure() {
    let expected = [
        "Almon: Some(1)",
        "Emma: None",
        "Emma, after a wait: 2",
        "Nobody: no answer within the deadline",
        "At the end: the reply was dropped without an answer",
        "After it: the actor has ended",
    ];
    assert_eq!(output("ask"), expected);
}

#[test]
fn blocking_work_does_not_block_the_actor() {
    let expected = [
        "a sum is being made, and the clerk answers",
        "1 + 2 + .. + 100 = 5050",
        "sums that are being made: 0",
        "the ledger has 23 bytes",
    ];
    assert_eq!(output("blocking"), expected);
}

#[test]
fn storm_loses_only_the_jobs_that_panic() {
    let expected = [
        "1000 jobs, 900 done",
        "100 panics, 100 restarts, the same ten addresses",
        "/office/pool gives up: panicked: job 9 is too much",
        "901 done, in a new pool",
        "the office is up: true",
        "all ended in order: true",
    ];
    assert_eq!(output("storm"), expected);
}

#[test]
fn workers_lose_one_job_to_a_panic() {
    let expected = [
        "none below 0: the reply was dropped without an answer",
        "669 primes below 5000",
        "1229 primes below 10000",
        "1754 primes below 15000",
        "2262 primes below 20000",
        "the worker was started again: panicked: there is nothing below 0",
    ];
    assert_eq!(output("workers"), expected);
}

#[test]
fn pubsub_reaches_all_subscribers_without_waiting() {
    let expected = [
        "line 7 is full",
        "the log has 100 entries",
        "the alarm rang 3 times",
        "delivered to 1",
        "the log has 101 entries",
    ];
    assert_eq!(output("pubsub"), expected);
}

#[test]
fn timers_repeat_are_postponed_and_cancelled() {
    let expected = [
        "somebody says hello",
        "somebody says and",
        "somebody says goodbye",
        "silence: the exchange hangs up",
        "the longest call was called off: true",
        "the coin box counted: true",
        "it ends: normal",
    ];
    assert_eq!(output("timers"), expected);
}

#[test]
fn pipeline_is_as_fast_as_its_slowest_stage() {
    let expected = [
        "Almon talked for 94893 s",
        "Emma talked for 98187 s",
        "Joseph talked for 101520 s",
        "/parser: never more than 4 waited: true",
        "/bills: never more than 4 waited: true",
    ];
    assert_eq!(output("pipeline"), expected);
}

#[test]
fn machine_handles_every_event_in_every_state() {
    let expected = [
        "on hook + LiftReceiver = dialling \"\"",
        "dialling \"\" + Dial('1') = dialling \"1\"",
        "dialling \"1\" + Answered = dialling \"1\"",
        "dialling \"1\" + Dial('8') = dialling \"18\"",
        "dialling \"18\" + Dial('9') = ringing 189",
        "ringing 189 + Answered = talking to 189",
        "talking to 189 + HangUp = on hook",
        "on hook + LiftReceiver = dialling \"\"",
        "dialling \"\" + TimedOut = busy",
        "in the end: busy",
    ];
    assert_eq!(output("machine"), expected);
}

#[test]
fn virtual_time_passes_a_day_at_once() {
    let expected = [
        "24 h of virtual time: it struck 24 times",
        "100 schedules: lightning at the third hour, and it starts over",
        "20 seeds: both orders occur; a seed gives the same order again: true",
    ];
    assert_eq!(output("virtual_time"), expected);
}

#[test]
fn smf_establishes_a_session_at_the_upf() {
    let lines = output("smf");
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

/// Asserts that an example prints these lines in this order, possibly with others in between.
fn prints(program: &str, expected: &[&str]) {
    let lines = output(program);
    let mut rest = lines.iter();
    for wanted in expected {
        let found = rest.any(|line| line.contains(wanted));
        assert!(found, "{wanted}: {lines:#?}");
    }
}

#[test]
fn pfcp_node_answers_a_heartbeat_and_reports_a_lost_peer() {
    prints(
        "pfcp_node",
        &[
            "16 bytes out: Heartbeat Request (1), sequence 7",
            "the peer has been up since 2026-",
            "Heartbeat Response (2), sequence 7",
            "Node Report Request (12), sequence 8",
            "Remote GTP-U Peer (103): IPv4 192.0.2.99",
            "Node Report Response (13), sequence 8",
        ],
    );
}

#[test]
fn pfcp_association_is_set_up_refused_updated_and_released() {
    prints(
        "pfcp_association",
        &[
            "Association Setup Request (5), sequence 1",
            "CP Function Features (89): LOAD, BUNDL",
            "UP Function Features (43): BUCP, FTUP",
            "refused: Association Setup Request: Node ID is missing",
            "Mandatory IE missing (66)",
            "Association Update Request (7), sequence 9",
            "timer value 5, timer unit multiples of 1 minute (1)",
            "Association Release Request (9), sequence 3",
            "Association Release Response (10), sequence 3",
        ],
    );
}

#[test]
fn pfcp_session_is_established_modified_compared_and_deleted() {
    prints(
        "pfcp_session",
        &[
            "Session Establishment Request (50), SEID 0x0000000000000000, sequence 1",
            "F-TEID (21) as Local F-TEID: V4, CHOOSE",
            "asks for a tunnel: true",
            "asks for a tunnel: false",
            "TEID 0x00001001, IPv4 192.0.2.7",
            "Session Modification Request (52)",
            "TEID 0x00002002, IPv4 192.0.2.99",
            "Create PDR[1] (PDR ID 2) / PDI / UE IP Address[0]: IPv4 10.45.0.9 -> 10.45.0.10",
            "Session Deletion Request (54)",
            "Session Deletion Response (55)",
        ],
    );
}

#[test]
fn pfcp_report_sums_the_usage_of_a_session() {
    prints(
        "pfcp_report",
        &[
            "total volume 1048576 bytes",
            "Session Report Request (56), SEID 0x0000000000000001, sequence 5",
            "Report Type (39): DLDR, USAR",
            "uplink volume 512 bytes",
            "1049088 bytes to pay for",
            "Session Report Response (57)",
        ],
    );
}

#[test]
fn pfcp_pfds_are_accepted_in_part() {
    prints(
        "pfcp_pfd",
        &[
            "PFD Management Request (3), sequence 4",
            "flow description permit out tcp from 198.51.100.0/24 443 to assigned",
            "it stays here: PFD Management Request / ",
            "PFD Management Response (4), sequence 4",
            "Request partially accepted (3)",
            "PFD Contents Semantics Error (91)",
        ],
    );
}

#[test]
fn pfcp_sets_are_deleted_and_moved() {
    prints(
        "pfcp_sets",
        &[
            "Session Set Deletion Request (14), sequence 1",
            "Session Set Deletion Response (15), sequence 1",
            "fit for Sxb N4",
            "Session Set Modification Request (16), sequence 2",
            "to: Some(192.0.2.2)",
            "Session Set Modification Response (17), sequence 2",
        ],
    );
}

#[test]
fn pfcp_vendor_elements_are_shown_by_their_rows() {
    prints(
        "pfcp_vendor",
        &[
            "Acme Probe (32769) of Acme (35818): collector 198.51.100.7, interval 10, label",
            "IE 32771 (32771) of Acme (35818) (unexpected): 0x010203, 3 bytes",
            "every Some(Number(10)) s",
            "Acme Probe: interval 10 -> 600",
            "kept: true",
        ],
    );
}

#[test]
fn agent_tools_name_the_rule_of_a_refusal() {
    let expected = [
        "places changed: 1",
        "`../../etc/passwd` leads outside the root (rule: outside)",
        "`large` needs 2000000 more bytes, but 14 of the limit of 1000000 added below this \
         directory are used: delete unneeded files, or raise `octets` in [[tools.files]] or with \
         --limit octets=N (rule: octets)",
        "found in plan.txt",
        "refused: 1",
    ];
    assert_eq!(output("agent_tools"), expected);
}

#[test]
fn stream_is_written_to_a_file() {
    let expected = ["who came late got 2 pieces", "one", "two", "three"];
    assert_eq!(output("stream_to_file"), expected);
}
