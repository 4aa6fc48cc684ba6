//! UE addresses: the network instances that they belong to, and the pools that they come from.

use std::net::{IpAddr, Ipv4Addr};

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, CreateTrafficEndpoint, DestinationInterface, FSeid,
    FTeid, ForwardingParameters, NetworkInstance, NodeId, Pdi, RemovePdr, SourceInterface,
    TrafficEndpointId, UeIpAddress,
};
use strowger_pfcp::message::{
    Body, SessionEstablishmentRequest, SessionEstablishmentResponse, SessionModificationRequest,
};
use strowger_pfcp::{Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::NodeConfig;

use crate::peer::{Bench, Peer, cause};

const YES: Cause = Cause::REQUEST_ACCEPTED;
const TAKEN: Cause = Cause::RULE_FAILURE;

fn ue(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 9, 0, last).into()
}

fn pools(text: &str) -> impl FnOnce(&mut NodeConfig) {
    let read: NodeConfig = toml::from_str(text).unwrap();
    |config| config.pools = read.pools
}

fn choose() -> UeIpAddress {
    UeIpAddress {
        choose_v4: true,
        destination: true,
        ..UeIpAddress::default()
    }
}

fn within(instance: &str, pdi: Pdi) -> Pdi {
    match instance {
        "" => pdi,
        name => pdi.network_instance(NetworkInstance::from(name)),
    }
}

/// Packets from the core side, to a UE.
fn downlink(instance: &str, ue: UeIpAddress) -> Pdi {
    within(instance, Pdi::new(SourceInterface::CORE)).ue_ip_addresses([ue])
}

/// Packets from the access side, by a UE.
fn uplink(instance: &str, ue: UeIpAddress) -> Pdi {
    within(instance, Pdi::new(SourceInterface::ACCESS)).ue_ip_addresses([ue])
}

fn request(
    name: IpAddr,
    seid: u64,
    pdis: impl IntoIterator<Item = Pdi>,
) -> SessionEstablishmentRequest {
    request_with(name, seid, pdis, CreateFar::new(1, ApplyAction::DROP))
}

fn request_with(
    name: IpAddr,
    seid: u64,
    pdis: impl IntoIterator<Item = Pdi>,
    far: CreateFar,
) -> SessionEstablishmentRequest {
    let pdrs = (1..).zip(pdis);
    let pdrs = pdrs.map(|(id, pdi)| CreatePdr::new(id, pdi).far_id(1));
    SessionEstablishmentRequest::new(NodeId::from(name), FSeid::new(Seid(seid), name))
        .create_pdrs(pdrs.collect::<Vec<_>>())
        .create_fars([far])
}

impl Peer {
    async fn send_establishment(
        &mut self,
        request: SessionEstablishmentRequest,
    ) -> (Cause, SessionEstablishmentResponse) {
        let bytes = Message::session(Seid(0), Sequence::new(0), request).encode();
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let answer = self.ask(kind, Seid(0), &bytes.unwrap()[16..]).await;
        match Message::decode(&answer).unwrap().body {
            Body::SessionEstablishmentResponse(body) => (cause(&answer), *body),
            other => panic!("{other:?}"),
        }
    }

    /// Establishes a session whose PDRs have these PDIs.
    async fn detect(&mut self, seid: u64, pdis: impl IntoIterator<Item = Pdi>) -> Cause {
        let request = request(self.name, seid, pdis);
        self.send_establishment(request).await.0
    }

    /// Establishes a session that asks for addresses; returns them by PDR.
    async fn chosen(&mut self, seid: u64, pdis: impl IntoIterator<Item = Pdi>) -> Vec<Ipv4Addr> {
        let request = request(self.name, seid, pdis);
        let (cause, answer) = self.send_establishment(request).await;
        assert_eq!(cause, YES);
        let created = answer.created_pdrs.iter();
        let ues = created.flat_map(|pdr| &pdr.ue_ip_addresses);
        ues.filter_map(|ue| ue.ipv4).collect()
    }

    async fn modify_with(&mut self, session: Seid, request: SessionModificationRequest) -> Cause {
        let bytes = Message::session(session, Sequence::new(0), request).encode();
        let kind = MessageType::SESSION_MODIFICATION_REQUEST;
        cause(&self.ask(kind, session, &bytes.unwrap()[16..]).await)
    }
}

#[tokio::test]
async fn address_belongs_to_one_session_of_a_network_instance() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let to = UeIpAddress::destination;
    for (seid, (instance, ue, wanted)) in (1..).zip([
        ("internet", ue(1), YES),
        ("ims", ue(1), YES),
        ("", ue(1), YES),
        ("internet", ue(1), TAKEN),
        // The same names as labels and in other letter case.
        ("\u{8}Internet", ue(1), TAKEN),
        ("IMS", ue(1), TAKEN),
        ("", ue(1), TAKEN),
        ("internet", "2001:db8:1::".parse().unwrap(), YES),
        ("ims", "2001:db8:1::".parse().unwrap(), YES),
        ("ims", "2001:db8:1::".parse().unwrap(), TAKEN),
    ]) {
        let cause = peer.detect(seid, [downlink(instance, to(ue))]).await;
        assert_eq!(cause, wanted, "{instance:?} {ue}");
    }
    bench.end().await;
}

/// The interface decides, not the flag S/D, which some SMFs leave out.
#[tokio::test]
async fn only_core_side_destinations_are_claimed() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let (from, to) = (UeIpAddress::source(ue(1)), UeIpAddress::destination(ue(1)));
    let tunnel = |teid| FTeid::new(teid, ue(200));
    for (seid, (pdi, wanted)) in (1..).zip([
        (uplink("", from), YES),
        (uplink("", from), YES),
        (downlink("", from), YES),
        (downlink("", to), TAKEN),
        (uplink("", to), YES),
        // From the next UPF, in a tunnel of its own.
        (downlink("", to).local_f_teid(tunnel(7)), YES),
        (downlink("", to).local_f_teid(tunnel(7)), TAKEN),
        (
            within("", Pdi::new(SourceInterface::CP_FUNCTION)).ue_ip_addresses([to]),
            YES,
        ),
    ]) {
        let text = format!("{pdi:?}");
        assert_eq!(peer.detect(seid, [pdi]).await, wanted, "{text}");
    }
    bench.end().await;
}

#[tokio::test]
async fn uplink_classifier_and_its_anchor_share_a_upf() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let (from, to) = (UeIpAddress::source(ue(1)), UeIpAddress::destination(ue(1)));
    let tunnel = |teid| FTeid::new(teid, ue(200));
    let anchor = [
        uplink("n9", from).local_f_teid(tunnel(1)),
        downlink("internet", to),
    ];
    let classifier = [
        uplink("n3", from).local_f_teid(tunnel(2)),
        downlink("n9", to).local_f_teid(tunnel(3)),
    ];
    assert_eq!(peer.detect(1, anchor).await, YES);
    assert_eq!(peer.detect(2, classifier).await, YES);
    assert_eq!(
        peer.detect(3, [downlink("internet", to)]).await,
        TAKEN,
        "the anchor has it"
    );
    bench.end().await;
}

/// A PDI that refers to a traffic endpoint takes address and network instance from there.
#[tokio::test]
async fn address_of_traffic_endpoint_is_claimed_in_its_network_instance() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    for (seid, (instance, source, wanted)) in (1..).zip([
        ("internet", SourceInterface::CORE, YES),
        ("ims", SourceInterface::CORE, YES),
        ("internet", SourceInterface::ACCESS, YES),
        ("internet", SourceInterface::CORE, TAKEN),
    ]) {
        let endpoint = CreateTrafficEndpoint::new(TrafficEndpointId(1))
            .network_instance(NetworkInstance::from(instance))
            .ue_ip_addresses([UeIpAddress::source(ue(1))]);
        let pdi = Pdi::new(source).traffic_endpoint_ids([TrafficEndpointId(1)]);
        let request = request(peer.name, seid, [pdi]).create_traffic_endpoints([endpoint]);
        let (cause, _) = peer.send_establishment(request).await;
        assert_eq!(cause, wanted, "{instance} {source:?}");
    }
    bench.end().await;
}

const POOLS: &str = r#"
[[pools]]
ue = ["10.1.0.0/30"]

[[pools]]
network_instance = "internet"
ue = ["10.2.0.0/30"]

[[pools]]
network_instance = "ims"
ue = ["10.2.0.0/30"]
"#;

#[tokio::test]
async fn addresses_come_from_the_pool_of_their_network_instance() {
    let bench = Bench::with(pools(POOLS)).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    for (seid, (instance, wanted)) in (1..).zip([
        ("internet", [10, 2, 0, 1]),
        ("\u{8}INTERNET", [10, 2, 0, 2]),
        ("ims", [10, 2, 0, 1]),
        ("corporate", [10, 1, 0, 1]),
        ("", [10, 1, 0, 2]),
    ]) {
        let given = peer.chosen(seid, [downlink(instance, choose())]).await;
        assert_eq!(given, [Ipv4Addr::from(wanted)], "{instance:?}");
    }
    for (seid, instance) in (10..).zip(["internet", "corporate"]) {
        let cause = peer.detect(seid, [downlink(instance, choose())]).await;
        assert_eq!(cause, Cause::ALL_DYNAMIC_ADDRESSES_OCCUPIED, "{instance}");
    }
    assert_eq!(peer.detect(20, [downlink("ims", choose())]).await, YES);
    bench.end().await;
}

/// The rules of both directions ask, in either order; the data network is that of the downlink.
#[tokio::test]
async fn pool_is_that_of_the_data_network() {
    let bench = Bench::with(pools(POOLS)).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let both = [uplink("n3", choose()), downlink("internet", choose())];
    let given = peer.chosen(1, both).await;
    assert_eq!(given, [Ipv4Addr::new(10, 2, 0, 1); 2]);
    // Uplink alone: its packets are forwarded to the data network.
    let forward = ForwardingParameters::new(DestinationInterface::CORE)
        .network_instance(NetworkInstance::from("internet"));
    let far = CreateFar::new(1, ApplyAction::FORW).forwarding_parameters(forward);
    let request = request_with(peer.name, 2, [uplink("n3", choose())], far);
    let (cause, answer) = peer.send_establishment(request).await;
    assert_eq!(cause, YES);
    let given = answer.created_pdrs[0].ue_ip_addresses[0].ipv4;
    assert_eq!(given, Some(Ipv4Addr::new(10, 2, 0, 2)));
    // Chosen for the uplink alone, it is the session's all the same.
    for (seid, ue) in [(3, [10, 2, 0, 2]), (4, [10, 2, 0, 1])] {
        let to = UeIpAddress::destination(Ipv4Addr::from(ue).into());
        assert_eq!(peer.detect(seid, [downlink("internet", to)]).await, TAKEN);
    }
    let full = peer.detect(5, [downlink("internet", choose())]).await;
    assert_eq!(full, Cause::ALL_DYNAMIC_ADDRESSES_OCCUPIED);
    bench.end().await;
}

/// An address of a pool stays with its session while a rule names it, in whichever direction.
#[tokio::test]
async fn pool_address_is_kept_while_a_rule_names_it() {
    let bench = Bench::with(pools(POOLS)).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let both = [uplink("n3", choose()), downlink("internet", choose())];
    let request = request(peer.name, 1, both);
    let (cause, answer) = peer.send_establishment(request).await;
    assert_eq!(cause, YES);
    let session = Seid(answer.up_f_seid.unwrap().seid);
    let remove = |pdr| SessionModificationRequest::new().remove_pdrs([RemovePdr::new(pdr)]);
    let to = UeIpAddress::destination(Ipv4Addr::new(10, 2, 0, 1).into());
    assert_eq!(peer.modify_with(session, remove(2)).await, YES);
    assert_eq!(peer.detect(2, [downlink("internet", to)]).await, TAKEN);
    assert_eq!(peer.modify_with(session, remove(1)).await, YES);
    assert_eq!(peer.detect(3, [downlink("internet", to)]).await, YES);
    bench.end().await;
}

#[tokio::test]
async fn refused_addresses_are_counted() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    for (seid, (teid, last)) in (1..).zip([(7, 1), (7, 2), (8, 1)]) {
        let (from, to) = (
            UeIpAddress::source(ue(last)),
            UeIpAddress::destination(ue(last)),
        );
        let tunnel = FTeid::new(teid, ue(200));
        let pdis = [uplink("", from).local_f_teid(tunnel), downlink("", to)];
        peer.detect(seid, pdis).await;
    }
    let refused = bench.node.stats().claims_refused;
    for wanted in [("f_teid", 1), ("ue_address", 1), ("report_address", 0)] {
        assert!(refused.contains(&wanted), "{refused:?}");
    }
    bench.end().await;
}
