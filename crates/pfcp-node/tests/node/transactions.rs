//! Sessions of a live node under random modifications: each modification is applied in full or not
//! at all, and no two sessions ever hold the same address.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp::message::Body;
use strowger_pfcp::{IeType, MessageType};
use strowger_pfcp_node::{
    Client, ClientConfig, Node, NodeConfig, NodeHandle, SessionFilter, SessionInfo, SessionRules,
};

/// A generator with the same numbers in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ value >> 31) % limit
    }

    fn byte(&mut self, limit: u64) -> u8 {
        u8::try_from(self.below(limit)).unwrap()
    }
}

fn tlv(ie: IeType, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap();
    [&ie.0.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

fn pdr_id(dice: &mut Dice) -> Vec<u8> {
    tlv(IeType::PDR_ID, &[0, 1 + dice.byte(4)])
}

fn far_id(dice: &mut Dice) -> Vec<u8> {
    tlv(IeType::FAR_ID, &[0, 0, 0, 1 + dice.byte(4)])
}

/// A PDI that often matches the packets of another session.
fn pdi(dice: &mut Dice) -> Vec<u8> {
    let source = dice.byte(2);
    let mut members = tlv(IeType::SOURCE_INTERFACE, &[source]);
    let tunnel = dice.below(5);
    match tunnel {
        // To be chosen, with and without a CHOOSE ID.
        0 => members.extend(tlv(IeType::F_TEID, &[0x05])),
        1 => members.extend(tlv(IeType::F_TEID, &[0x0d, dice.byte(2)])),
        2 => {
            let teid = [0x01, 0, 0, 0, 1 + dice.byte(6), 127, 0, 0, 1];
            members.extend(tlv(IeType::F_TEID, &teid));
        }
        _ => {}
    }
    match dice.below(4) {
        0 => members.extend(tlv(IeType::UE_IP_ADDRESS, &[0x10])),
        // Several sessions may have it elsewhere than on the core side without a tunnel.
        1 if source == 1 && tunnel > 2 => {
            let address = [0x06, 10, 45, 0, 1 + dice.byte(5)];
            members.extend(tlv(IeType::UE_IP_ADDRESS, &address));
        }
        _ => {}
    }
    tlv(IeType::PDI, &members)
}

/// An element of a modification, more often right than wrong.
fn element(dice: &mut Dice) -> Vec<u8> {
    let precedence = tlv(IeType::PRECEDENCE, &[0, 0, 0, 7]);
    match dice.below(10) {
        0 | 1 => {
            let parts = [pdr_id(dice), precedence, pdi(dice), far_id(dice)];
            tlv(IeType::CREATE_PDR, &parts.concat())
        }
        2 | 3 => tlv(IeType::UPDATE_PDR, &[pdr_id(dice), pdi(dice)].concat()),
        4 => tlv(IeType::REMOVE_PDR, &pdr_id(dice)),
        5 => {
            let action = tlv(IeType::APPLY_ACTION, &[1, 0]);
            tlv(IeType::CREATE_FAR, &[far_id(dice), action].concat())
        }
        6 => tlv(IeType::REMOVE_FAR, &far_id(dice)),
        7 => tlv(IeType::UPDATE_PDR, &[pdr_id(dice), far_id(dice)].concat()),
        8 => {
            let method = tlv(IeType::MEASUREMENT_METHOD, &[2]);
            let triggers = tlv(IeType::REPORTING_TRIGGERS, &[0, 0, 0]);
            let id = tlv(IeType::URR_ID, &[0, 0, 0, 1 + dice.byte(3)]);
            tlv(IeType::CREATE_URR, &[id, method, triggers].concat())
        }
        // Truncated or meaningless.
        _ => {
            let ie = [IeType::CREATE_PDR, IeType::UPDATE_FAR, IeType::F_SEID];
            let ie = ie[usize::try_from(dice.below(3)).unwrap()];
            tlv(ie, &[0, 56, 0, dice.byte(9)])
        }
    }
}

fn no_two_hold_the_same(sessions: &[SessionInfo]) {
    let (mut teids, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for session in sessions {
        for teid in &session.teids {
            assert!(teids.insert(*teid), "{teid:?} is held twice");
        }
        for address in &session.ue_addresses {
            assert!(addresses.insert(*address), "{address} is held twice");
        }
    }
}

fn rules(node: &NodeHandle) -> Vec<(SessionInfo, Option<Vec<u8>>)> {
    let sessions = node.sessions(&SessionFilter::default());
    no_two_hold_the_same(&sessions);
    let rules = |info: &SessionInfo| node.rules(info.seid);
    sessions
        .iter()
        .map(|info| (info.clone(), rules(info)))
        .collect()
}

#[tokio::test]
async fn modification_is_atomic() {
    let system = ActorSystem::new("test").unwrap();
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    let node = Node::start(&system, config).await.unwrap();
    let mut config = ClientConfig::default();
    config.t1 = Duration::from_millis(100);
    config.n1 = 300;
    let client = Client::bind(&system, config).await.unwrap();
    let association = client.associate(node.local_addr()).await.unwrap();
    let mut sessions = Vec::new();
    for number in 1..=3 {
        let ue = IpAddr::from(Ipv4Addr::new(10, 45, 0, number));
        sessions.push(
            association
                .establish(SessionRules::pdu_session(ue))
                .await
                .unwrap(),
        );
    }
    let (mut done, mut refused) = (0, 0);
    let mut dice = Dice(1);
    for turn in 0..600 {
        let session = &sessions[turn % sessions.len()];
        let count = 1 + dice.below(3);
        let body: Vec<u8> = (0..count).flat_map(|_| element(&mut dice)).collect();
        let before = rules(&node);
        let kind = MessageType::SESSION_MODIFICATION_REQUEST;
        let answer = association.send(kind, session.remote_seid(), &body).await;
        let Body::SessionModificationResponse(answer) = answer.unwrap().body else {
            panic!("not an answer to a modification");
        };
        let after = rules(&node);
        if answer.cause.is_acceptance() {
            done += 1;
        } else {
            refused += 1;
            assert_eq!(after, before, "turn {turn}, {}", answer.cause);
        }
        for (was, is) in before.iter().zip(&after) {
            if was.0.seid != session.remote_seid() {
                assert_eq!(was, is, "turn {turn}: another session changed");
            }
        }
    }
    assert!(done > 50 && refused > 50, "{done} done, {refused} refused");
    for session in sessions {
        session.delete().await.unwrap();
    }
    assert_eq!(node.stats().sessions, 0);
    system.shutdown(Duration::from_secs(1)).await;
}
