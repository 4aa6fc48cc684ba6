//! A node that receives arbitrary datagrams while time passes: it answers or discards them, its
//! rule sets stay consistent, and it never sends more datagrams than it received messages, plus
//! one.

#![no_main]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::{Endpoint, EndpointConfig, Event, Role};
use strowger_pfcp::session::{NoAllocator, RuleSet};
use strowger_pfcp::{MessageType, frames};

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fuzz_target!(|datagrams: Vec<(u8, u16, &[u8])>| {
    let mut now = Instant::now();
    let config = EndpointConfig::new(Role::UserPlane, NodeName::from(HOME), Recovery(1));
    let mut endpoint = Endpoint::new(config);
    let mut rules: Option<RuleSet> = None;
    for (peer, pause, octets) in datagrams.into_iter().take(64) {
        now += Duration::from_millis(pause.into());
        endpoint.handle_timeout(now);
        // Heartbeats and retransmissions are due to time, not to the datagram.
        while endpoint.poll_transmit().is_some() {}
        let peer = SocketAddr::new(HOME, 1000 + u16::from(peer % 4));
        endpoint.handle_datagram(now, peer, octets);
        while let Some(event) = endpoint.poll_event() {
            let Event::SessionRequest {
                transaction,
                octets,
                ..
            } = event
            else {
                continue;
            };
            rules = changed(rules, &octets);
            if pause % 2 == 0 {
                endpoint.respond(now, transaction, octets);
            } else {
                endpoint.abandon(now, transaction);
            }
        }
        let asked = frames(octets).filter(Result::is_ok).count();
        let sent = std::iter::from_fn(|| endpoint.poll_transmit()).count();
        assert!(sent <= asked + 1, "{sent} datagrams for {asked} messages");
    }
});

/// Applies a request to the rules of the only session; a rejected request changes nothing.
fn changed(rules: Option<RuleSet>, octets: &[u8]) -> Option<RuleSet> {
    let frame = frames(octets).find_map(Result::ok)?;
    let change = match (&rules, frame.header.message_type) {
        (_, MessageType::SESSION_ESTABLISHMENT_REQUEST) => {
            RuleSet::establish(&frame, &mut NoAllocator)
        }
        (Some(rules), _) => rules.modify(&frame, &mut NoAllocator),
        (None, _) => return None,
    };
    let Ok(change) = change else { return rules };
    let again = RuleSet::restore(change.rules.octets()).expect("a store gives back what it took");
    assert_eq!(again.octets(), change.rules.octets());
    assert_eq!(again.len(), change.rules.iter().count());
    Some(change.rules)
}
