//! An SMF that establishes a session at a UPF, modifies it and deletes it; both run in this
//! process.
//!
//! `cargo run -p strowger-examples smf`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp::ie::{ApplyAction, FarId, UpdateFar};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp_node::{Client, ClientConfig, Node, NodeConfig, SessionFilter, SessionRules};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let system = ActorSystem::new("example")?;
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse()?];
    let upf = Node::start(&system, config).await?;

    let mut config = ClientConfig::default();
    config.node_id = Some("smf.example.org".to_owned());
    let smf = Client::bind(&system, config).await?;
    let association = smf.associate(upf.local_addr()).await?;

    let ue: IpAddr = "10.45.0.9".parse()?;
    let session = association.establish(SessionRules::pdu_session(ue)).await?;
    let created = session.created();
    let tunnel = created.iter().find_map(|created| created.f_teids.first());
    println!(
        "{} at the UPF, uplink tunnel {tunnel:?}",
        session.remote_seid()
    );

    // The UE went idle: downlink packets are buffered.
    let idle = UpdateFar::new(FarId(2)).apply_action(ApplyAction::BUFF);
    session
        .modify(SessionModificationRequest::new().update_fars([idle]))
        .await?;

    for listed in upf.sessions(&SessionFilter::default()) {
        println!(
            "{} of {}: PDRs {:?}, UE {:?}",
            listed.path, listed.node, listed.pdrs, listed.ue_addresses
        );
    }
    session.delete().await?;
    association.release().await?;
    system.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
