//! Values that the peer leaves to be chosen.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use strowger_pfcp::IeType;
use strowger_pfcp::ie::{Cause, FTeid, PdrId};
use strowger_pfcp::session::{Allocator, RuleId, UeAddressRequest};

use crate::session::parts::{
    establish, establishment, far, far_id, group, modify, modify_with, pdi, pdr, refused, tlv,
    two_and_two,
};

/// Allocates tunnels and addresses in sequence.
#[derive(Default)]
pub(crate) struct Counter(u8);

impl Allocator for Counter {
    fn f_teid(&mut self, request: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        assert!(request.choose, "only what is to be chosen is asked for");
        self.0 += 1;
        Ok(FTeid::new(
            u32::from(self.0) << 8,
            IpAddr::from([10, 0, 0, 9]),
        ))
    }

    fn ue_address(
        &mut self,
        request: UeAddressRequest,
        _: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        self.0 += 1;
        let ipv4 = Ipv4Addr::new(172, 16, 0, self.0);
        Ok((request.ipv4.then_some(ipv4), None))
    }
}

#[test]
fn choose_requests_are_allocated_and_reported() {
    let choose = tlv(IeType::F_TEID, &[0x05]);
    let address = tlv(IeType::UE_IP_ADDRESS, &[0x10]);
    let bytes = establishment(&[
        pdr(1, &[pdi(&[choose, address.clone()]), far_id(1)]),
        pdr(2, &[pdi(&[address]), far_id(1)]),
        far(1),
    ]);
    let change = establish(&bytes, &mut Counter::default()).expect("sound rules");
    let tunnel = FTeid::new(0x100, IpAddr::from([10, 0, 0, 9]));
    assert_eq!(change.rules.f_teids(), [tunnel]);
    let addresses = change.rules.ue_addresses();
    assert_eq!(addresses.len(), 2);
    assert_eq!(addresses[0].ipv4, Some(Ipv4Addr::new(172, 16, 0, 2)));
    assert_eq!(addresses[0], addresses[1], "one user, one address");
    assert!(!addresses[0].choose_v4);
    let created = [
        group(
            IeType::CREATED_PDR,
            &[
                tlv(IeType::PDR_ID, &[0, 1]),
                tlv(IeType::F_TEID, &[1, 0, 0, 1, 0, 10, 0, 0, 9]),
                tlv(IeType::UE_IP_ADDRESS, &[2, 172, 16, 0, 2]),
            ],
        ),
        group(
            IeType::CREATED_PDR,
            &[
                tlv(IeType::PDR_ID, &[0, 2]),
                tlv(IeType::UE_IP_ADDRESS, &[2, 172, 16, 0, 2]),
            ],
        ),
    ];
    assert_eq!(change.created, created.concat());
}

#[test]
fn the_same_choose_id_gives_the_same_tunnel() {
    let choose = |id| pdi(&[tlv(IeType::F_TEID, &[0x0d, id])]);
    let bytes = establishment(&[
        pdr(1, &[choose(1), far_id(1)]),
        pdr(2, &[choose(2), far_id(1)]),
        pdr(3, &[choose(1), far_id(1)]),
        far(1),
    ]);
    let change = establish(&bytes, &mut Counter::default()).expect("sound rules");
    let tunnels = change.rules.f_teids();
    assert_eq!(tunnels[0], tunnels[2]);
    assert_ne!(tunnels[0], tunnels[1]);
}

#[test]
fn refused_rules_allocate_nothing() {
    let mut counter = Counter::default();
    let choose = pdi(&[tlv(IeType::F_TEID, &[0x05])]);
    let create = pdr(3, &[choose, far_id(9)]);
    modify_with(&two_and_two(), &[create], &mut counter).expect_err("no FAR 9");
    assert_eq!(counter.0, 0);
}

#[test]
fn exhausted_allocator_determines_cause() {
    let create = pdr(3, &[pdi(&[tlv(IeType::F_TEID, &[0x05])]), far_id(1)]);
    let (cause, ie, rule) = refused(modify(&two_and_two(), &[create]));
    assert_eq!(cause, Cause::INVALID_F_TEID_ALLOCATION);
    assert_eq!(ie, Some(IeType::F_TEID));
    assert_eq!(rule, RuleId::from(PdrId(3)).failed_rule_id());
}

fn ue_addresses(rules: &strowger_pfcp::session::RuleSet) -> Vec<Option<Ipv4Addr>> {
    let all = rules.ue_addresses();
    all.iter().map(|ue| ue.ipv4).collect()
}

/// The UE has one address in its session, TS 29.244 §5.21: in whichever network a rule detects
/// packets, with or without another family, and in whichever message it asks.
#[test]
fn rules_of_a_session_get_the_same_address() {
    let choose = |flags| tlv(IeType::UE_IP_ADDRESS, &[flags]);
    let network = |name: &str| tlv(IeType::NETWORK_INSTANCE, name.as_bytes());
    let mut counter = Counter::default();
    let bytes = establishment(&[
        pdr(1, &[pdi(&[choose(0x10), network("access")]), far_id(1)]),
        pdr(2, &[pdi(&[choose(0x30), network("internet")]), far_id(1)]),
        far(1),
    ]);
    let change = establish(&bytes, &mut counter).expect("sound rules");
    let one = Some(Ipv4Addr::new(172, 16, 0, 1));
    assert_eq!(ue_addresses(&change.rules), [one, one]);

    let later = pdr(3, &[pdi(&[choose(0x14)]), far_id(1)]);
    let change = modify_with(&change.rules, &[later], &mut counter).expect("sound rules");
    assert_eq!(ue_addresses(&change.rules), [one, one, one]);
    let created = group(
        IeType::CREATED_PDR,
        &[
            tlv(IeType::PDR_ID, &[0, 3]),
            tlv(IeType::UE_IP_ADDRESS, &[6, 172, 16, 0, 1]),
        ],
    );
    assert_eq!(change.created, created, "it is told as well");
}

#[test]
fn rule_that_asks_for_several_addresses_gets_several() {
    let choose = || tlv(IeType::UE_IP_ADDRESS, &[0x10]);
    let twice = |id| pdr(id, &[pdi(&[choose(), choose()]), far_id(1)]);
    let bytes = establishment(&[twice(1), twice(2), far(1)]);
    let change = establish(&bytes, &mut Counter::default()).expect("sound rules");
    let given = ue_addresses(&change.rules);
    assert_ne!(given[0], given[1]);
    assert_eq!(given[..2], given[2..]);
}
