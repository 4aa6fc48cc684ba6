//! A node that receives arbitrary datagrams while time passes: it answers or discards them, its
//! rule sets stay consistent, and it never sends more datagrams than it received messages, plus
//! one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::{Endpoint, EndpointConfig, Event, Role};
use strowger_pfcp::session::{NoAllocator, RuleSet};
use strowger_pfcp::{MessageType, frames};

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Delivers the datagrams of an input.
pub(crate) fn check(input: &[u8]) {
    let mut now = start();
    let config = EndpointConfig::new(Role::UserPlane, NodeName::from(HOME), Recovery(1));
    let mut endpoint = Endpoint::new(config);
    let mut rules: Option<RuleSet> = None;
    for (peer, pause, bytes) in datagrams(input).take(64) {
        now += Duration::from_millis(pause.into());
        endpoint.handle_timeout(now);
        // Heartbeats and retransmissions are due to time, not to the datagram.
        while endpoint.poll_transmit().is_some() {}
        let peer = SocketAddr::new(HOME, 1000 + u16::from(peer % 4));
        endpoint.handle_datagram(now, peer, bytes);
        while let Some(event) = endpoint.poll_event() {
            let Event::SessionRequest {
                transaction, bytes, ..
            } = event
            else {
                continue;
            };
            rules = changed(rules, &bytes);
            if pause % 2 == 0 {
                endpoint.respond(now, transaction, bytes);
            } else {
                endpoint.abandon(now, transaction);
            }
        }
        let asked = frames(bytes).filter(Result::is_ok).count();
        let sent = std::iter::from_fn(|| endpoint.poll_transmit()).count();
        assert!(sent <= asked + 1, "{sent} datagrams for {asked} messages");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "virtual time has to start somewhere"
)]
fn start() -> Instant {
    Instant::now()
}

/// The datagrams of an input. Each has a head of five bytes: the peer, the milliseconds before it,
/// and its length; the last one may be shorter than it says.
fn datagrams(mut input: &[u8]) -> impl Iterator<Item = (u8, u16, &[u8])> {
    std::iter::from_fn(move || {
        let ([peer, pause @ .., low, high], rest) = input.split_first_chunk::<5>()?;
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (bytes, rest) = rest.split_at(length.min(rest.len()));
        input = rest;
        Some((*peer, u16::from_le_bytes(*pause), bytes))
    })
}

/// Applies a request to the rules of the only session; a rejected request changes nothing.
fn changed(rules: Option<RuleSet>, bytes: &[u8]) -> Option<RuleSet> {
    let frame = frames(bytes).find_map(Result::ok)?;
    let change = match (&rules, frame.header.message_type) {
        (_, MessageType::SESSION_ESTABLISHMENT_REQUEST) => {
            RuleSet::establish(&frame, &mut NoAllocator)
        }
        (Some(rules), _) => rules.modify(&frame, &mut NoAllocator),
        (None, _) => return None,
    };
    let Ok(change) = change else { return rules };
    let again = RuleSet::restore(change.rules.bytes()).expect("a store gives back what it took");
    assert_eq!(again.bytes(), change.rules.bytes());
    assert_eq!(again.len(), change.rules.iter().count());
    Some(change.rules)
}
