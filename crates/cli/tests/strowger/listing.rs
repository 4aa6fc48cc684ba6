//! `strowger pfcp sessions` and `associations` on a running node.

use serde_json::{Value, json};
use strowger::ActorSystem;
use strowger_pfcp_node::{Client, ClientConfig, SessionRules};

use crate::binary::strowger;
use crate::running::Running;

#[tokio::test]
async fn sessions_are_found_by_their_attributes() {
    let node = Running::start("");
    let system = ActorSystem::new("smf").expect("inside a runtime");
    let client = Client::bind(&system, ClientConfig::default()).await;
    let client = client.expect("the loopback is there");
    let upf = node.n4.parse().expect("an address");
    let association = client.associate(upf).await.expect("the node answers");
    let mut sessions = Vec::new();
    for ue in ["10.45.0.1", "10.45.0.2"] {
        let rules = SessionRules::pdu_session(ue.parse().expect("an address"));
        sessions.push(
            association
                .establish(rules)
                .await
                .expect("the rules are good"),
        );
    }

    let all = node.ask(["pfcp", "sessions", "--json"]).objects();
    assert_eq!(all.len(), 2);
    let second = all
        .iter()
        .find(|row| row["ue_addresses"] == json!(["10.45.0.2"]))
        .expect("the UE has a session");
    let seid = second["seid"].to_string();
    let teid = second["teids"][0]["teid"].to_string();
    let only = |args: [&str; 2]| -> Vec<Value> {
        let verb = ["pfcp", "sessions", "--json"];
        node.ask(verb.into_iter().chain(args)).objects()
    };
    for by in [["--ue", "10.45.0.2"], ["--seid", &seid], ["--teid", &teid]] {
        assert_eq!(only(by), std::slice::from_ref(second), "{by:?}");
    }
    assert_eq!(only(["--peer", "127.0.0.1"]).len(), 2);
    assert!(only(["--peer", "127.0.0.9"]).is_empty());

    let table = node.ask(["pfcp", "sessions"]).out;
    assert!(
        table.contains("10.45.0.1") && table.contains("2 PDR, 2 FAR"),
        "{table}"
    );
    assert!(table.ends_with("2 sessions\n"), "{table}");

    let merged = node.ask(["pfcp", "sessions", &seid]).out;
    assert!(
        merged.contains("Create PDR") && merged.contains("10.45.0.2"),
        "{merged}"
    );
    let merged = node.ask(["pfcp", "sessions", &seid, "--json"]).objects();
    assert_eq!((merged.len(), &merged[0]["seid"]), (1, &second["seid"]));
    assert!(
        merged[0]["rules"]
            .as_array()
            .is_some_and(|rules| rules.len() > 3)
    );
    let none = node.ask(["pfcp", "sessions", "0xffff"]);
    assert!(
        none.code != 0 && none.err.contains("0xffff"),
        "{}",
        none.err
    );

    let associations = node.ask(["pfcp", "associations", "--json"]).objects();
    assert_eq!(associations.len(), 1);
    assert_eq!(associations[0]["sessions"], 2);
    let none = node.ask(["pfcp", "associations", "--json", "--peer", "127.0.0.9"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""));
}

#[test]
fn missing_node_is_reported_with_the_command_that_starts_one() {
    let ran = strowger(["pfcp", "sessions", "--control", "/nonexistent/control.sock"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("strowger demo"), "{}", ran.err);
}

#[test]
fn invalid_identifier_is_a_usage_error() {
    let ran = strowger(["pfcp", "sessions", "--seid", "seven"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("0x2a"), "{}", ran.err);
}
