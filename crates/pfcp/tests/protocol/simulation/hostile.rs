//! Datagrams from hostile senders.

use std::net::SocketAddr;

use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{BodyBuilder, Event, message};
use strowger_pfcp::session::{NoAllocator, RuleSet};
use strowger_pfcp::{Frame, MessageType, Seid, Sequence};

use crate::simulation::rng::SimulationRng;
use crate::simulation::world::{Side, endpoint, establishment, origin};

#[test]
fn hostile_datagrams_do_not_break_endpoint() {
    let now = origin();
    let mut rng = SimulationRng::new(7);
    let mut upf = endpoint(Side::Upf, 0);
    let mut smf = endpoint(Side::Smf, 0);
    smf.associate(now, Side::Upf.address()).expect("room");
    let mut seeds = vec![
        message(
            &strowger_pfcp::Header::session(
                MessageType::SESSION_ESTABLISHMENT_REQUEST,
                Seid(0),
                Sequence::new(3),
            ),
            &establishment(1),
        )
        .expect("short"),
    ];
    while let Some(transmit) = smf.poll_transmit() {
        upf.handle_datagram(now, Side::Smf.address(), &transmit.bytes);
        seeds.push(transmit.bytes.to_vec());
    }
    for round in 0..20_000u64 {
        let mut bytes = if round % 4 == 0 {
            (0..rng.below(64)).map(|_| rng.byte()).collect()
        } else {
            let index = usize::try_from(rng.below(seeds.len() as u64)).expect("small");
            seeds[index].clone()
        };
        for _ in 0..rng.below(4) {
            let at = usize::try_from(rng.below(bytes.len().max(1) as u64)).expect("small");
            match rng.below(3) {
                0 if !bytes.is_empty() => bytes[at] = rng.byte(),
                1 => bytes.truncate(at),
                _ => bytes.insert(at, rng.byte()),
            }
        }
        let from = SocketAddr::from(([127, 0, 0, rng.byte()], 8805));
        for endpoint in [&mut upf, &mut smf] {
            endpoint.handle_datagram(now, from, &bytes);
            while let Some(event) = endpoint.poll_event() {
                if let Event::SessionRequest {
                    transaction, bytes, ..
                } = event
                {
                    let frame = Frame::decode(&bytes).expect("it was admitted");
                    let _ = RuleSet::establish(&frame, &mut NoAllocator);
                    endpoint.abandon(now, transaction);
                }
            }
            while endpoint.poll_transmit().is_some() {}
        }
    }
    let beat = BodyBuilder::new().recovery(Recovery(1));
    let header = strowger_pfcp::Header::node(MessageType::HEARTBEAT_REQUEST, Sequence::new(9));
    let beat = message(&header, beat.as_slice()).expect("short");
    upf.handle_datagram(now, Side::Smf.address(), &beat);
    assert!(upf.poll_transmit().is_some(), "it still lives");
}
