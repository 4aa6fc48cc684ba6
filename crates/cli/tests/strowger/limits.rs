//! Numbers that were too many or too large for other stacks.

use std::net::{IpAddr, Ipv4Addr};

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, CreateQer, CreateUrr, FTeid, Gate, GateStatus,
    MeasurementMethod, NodeId, Pdi, ReportingTriggers, SourceInterface,
};
use strowger_pfcp::message::SessionEstablishmentRequest;

use crate::peer::{Peer, STARTED};
use crate::running::Running;

const ACCEPTED: Cause = Cause::REQUEST_ACCEPTED;

fn ue(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 200, 0, number)
}

fn pdr(id: u16, far: u32) -> CreatePdr {
    CreatePdr::new(id, Pdi::new(SourceInterface::CORE))
        .precedence(u32::from(id))
        .far_id(far)
}

fn far(id: u32) -> CreateFar {
    CreateFar::new(id, ApplyAction::DROP)
}

fn urr(id: u32) -> CreateUrr {
    CreateUrr::new(id, MeasurementMethod::VOLUM, ReportingTriggers::default())
}

fn qer(id: u32) -> CreateQer {
    let (dl_gate, ul_gate) = (Gate(0), Gate(0));
    CreateQer::new(id, GateStatus { dl_gate, ul_gate })
}

type Reshape = fn(SessionEstablishmentRequest) -> SessionEstablishmentRequest;

/// Unusual but correct requests.
const UNUSUAL: [(&str, Reshape); 5] = [
    ("400 rules of each kind", |request| {
        request
            .create_pdrs((1..=400).map(|id| pdr(id, id.into())))
            .create_fars((1..=400).map(far))
            .create_urrs((1..=400).map(urr))
            .create_qers((1..=400).map(qer))
    }),
    ("the least and the greatest numbers", |request| {
        request
            .create_pdrs([pdr(0, 0), pdr(u16::MAX, u32::MAX)])
            .create_fars([far(0), far(u32::MAX)])
            .create_urrs([urr(0), urr(65_535), urr(65_536), urr(u32::MAX)])
            .create_qers([qer(0), qer(u32::MAX)])
    }),
    ("64 meters and 64 markers of one rule", |request| {
        request
            .create_pdrs([pdr(1, 1).urr_ids(1..=64).qer_ids(1..=64)])
            .create_fars([far(1)])
            .create_urrs((1..=64).map(urr))
            .create_qers((1..=64).map(qer))
    }),
    ("400 rules with one action", |request| {
        request
            .create_pdrs((1..=400).map(|id| pdr(id, 1)))
            .create_fars([far(1)])
    }),
    ("actions that no rule names", |request| {
        request
            .create_pdrs([pdr(1, 1)])
            .create_fars((1..=400).map(far))
    }),
];

#[test]
fn many_rules_and_large_numbers_are_accepted() {
    let live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    let held = peer.establish(ue(1)).expect("accepted");
    for (name, shape) in UNUSUAL {
        let seid = peer.establish_with(shape);
        let seid = seid.unwrap_or_else(|cause| panic!("{name}: {cause}"));
        assert_eq!(peer.delete(seid), ACCEPTED, "{name}");
        assert_eq!(peer.modify(held), ACCEPTED, "{name}");
    }
    live.assert_unharmed();
    live.end();
}

/// A request for one rule with a tunnel that the peer chose.
fn with_tunnel(request: SessionEstablishmentRequest, teid: u32) -> SessionEstablishmentRequest {
    let end = FTeid::new(teid, Ipv4Addr::LOCALHOST.into());
    let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(end);
    let pdr = CreatePdr::new(2, pdi).precedence(1).far_id(1);
    request.create_pdrs([pdr]).create_fars([far(1)])
}

#[test]
fn tunnel_of_another_session_is_refused_every_time() {
    let live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    let mut other = Peer::associated(3, &live.n4);
    let teid = 0x0fff_0001;
    let held = peer.establish_with(|request| with_tunnel(request, teid));
    let held = held.expect("the tunnel is free");
    for _ in 0..20 {
        for peer in [&mut peer, &mut other] {
            let refused = peer.establish_with(|request| with_tunnel(request, teid));
            assert_eq!(refused.map_err(|cause| cause.is_acceptance()), Err(false));
        }
    }
    assert_eq!(peer.modify(held), ACCEPTED);
    assert_eq!(peer.delete(held), ACCEPTED);
    let next = other.establish_with(|request| with_tunnel(request, teid));
    assert_eq!(
        other.modify(next.expect("the tunnel is free again")),
        ACCEPTED
    );
    live.assert_unharmed();
    live.end();
}

#[test]
fn requests_beyond_a_limit_are_refused_and_state_is_kept() {
    let limits = "[n4.limits]\nassociations = 40\nsessions_per_association = 70\nsessions = 100";
    let live = Running::start(limits);
    let mut peer = Peer::associated(2, &live.n4);
    let mut other = Peer::associated(3, &live.n4);
    let establish = |peer: &mut Peer, count| -> Vec<_> {
        let shape: Reshape = |request| request.create_pdrs([pdr(2, 1)]).create_fars([far(1)]);
        (0..count).map(|_| peer.establish_with(shape)).collect()
    };
    let no_room = Err(Cause::NO_RESOURCES_AVAILABLE);
    let of_one = establish(&mut peer, 75);
    assert!(of_one[..70].iter().all(Result::is_ok), "{of_one:?}");
    assert_eq!(of_one[70..], [no_room; 5]);
    let of_all = establish(&mut other, 35);
    assert!(of_all[..30].iter().all(Result::is_ok), "{of_all:?}");
    assert_eq!(of_all[30..], [no_room; 5]);

    let mut many = Peer::bind(4, &live.n4);
    let mut name = |number| {
        let node = NodeId::from(IpAddr::from(Ipv4Addr::new(10, 1, 1, number)));
        many.associate_as(node, STARTED)
    };
    let causes: Vec<Cause> = (0..100).map(&mut name).collect();
    let accepted = causes.iter().filter(|cause| **cause == ACCEPTED);
    assert_eq!(accepted.count(), 38, "{causes:?}");
    assert_eq!(causes[38..], [Cause::NO_RESOURCES_AVAILABLE; 62]);

    for (peer, sessions) in [(&mut peer, of_one), (&mut other, of_all)] {
        for seid in sessions.into_iter().flatten() {
            assert_eq!(peer.modify(seid), ACCEPTED, "{seid}");
        }
    }
    live.assert_unharmed();
    live.end();
}

#[test]
fn sessions_belong_to_their_peer_and_survive_a_repeated_setup() {
    let live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    let mut other = Peer::associated(3, &live.n4);
    let held = peer.establish(ue(1)).expect("accepted");
    let unknown = Cause::SESSION_CONTEXT_NOT_FOUND;
    assert_eq!((other.modify(held), other.delete(held)), (unknown, unknown));
    // The name belongs to another address, and associating again changes nothing.
    let name = NodeId::from(IpAddr::from(peer.address));
    assert_ne!(other.associate_as(name, STARTED + 1), ACCEPTED);
    for _ in 0..3 {
        assert_eq!(peer.associate(STARTED), ACCEPTED);
        assert_eq!(peer.modify(held), ACCEPTED);
    }
    // A peer that restarted knows nothing of its sessions.
    assert_eq!(peer.associate(STARTED + 1), ACCEPTED);
    assert_eq!(peer.modify(held), unknown);
    live.assert_unharmed();
    live.end();
}
