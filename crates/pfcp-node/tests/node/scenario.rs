//! A node that misbehaves as scripted.

use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp::ie::Cause;
use strowger_pfcp_node::{Client, ClientConfig, FaultScenario, Node, NodeConfig, SessionRules};

const RULES: &str = "
[[rule]]
on = \"session establishment\"
count = 1
refuse = 75

[[rule]]
on = \"session deletion\"
count = 1
drop = true

[[rule]]
on = \"session establishment\"
count = 1
delay = \"20ms\"

[[rule]]
on = \"session deletion\"
count = 1
restart = true
";

#[tokio::test]
async fn scenario_rules_apply_in_order() {
    let system = ActorSystem::new("scenario").unwrap();
    let scenario: FaultScenario = toml::from_str(RULES).unwrap();
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    config.scenario = Some(scenario.clone());
    let upf = Node::start(&system, config).await.unwrap();
    let mut config = ClientConfig::default();
    config.t1 = Duration::from_millis(50);
    config.n1 = 100;
    let client = Client::bind(&system, config).await.unwrap();
    let association = client.associate(upf.local_addr()).await.unwrap();
    let rules = || SessionRules::pdu_session("10.45.0.9".parse().unwrap());

    let refused = association.establish(rules()).await.err();
    let cause = refused.and_then(|error| error.cause());
    assert_eq!(cause, Some(Cause::NO_RESOURCES_AVAILABLE));
    let session = association.establish(rules()).await.unwrap();
    // The first request is dropped, the second calls for a restart, the third is answered.
    session.delete().await.unwrap();
    scenario.restart().await;
    assert_eq!(scenario.applied_counts(), [1, 1, 1, 1]);
    system.shutdown(Duration::from_secs(1)).await;
}
