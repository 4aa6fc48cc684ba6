use std::collections::BTreeSet;
use std::net::IpAddr;

use strowger_pfcp::Seid;

use super::{AddressClaim, AddressPool, ClaimConflict};
use crate::config::Pools;

fn pool(ue: &[&str], last_teid: u32) -> AddressPool {
    let pools = Pools {
        ue: ue.iter().map(|network| network.parse().unwrap()).collect(),
        teid_first: 1,
        teid_last: last_teid,
        gtpu: Vec::new(),
    };
    AddressPool::new(
        &pools,
        &["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
    )
}

fn ue(address: &str) -> AddressClaim {
    AddressClaim::Ue(address.parse().unwrap())
}

#[test]
fn pool_allocates_each_address_once() {
    let pool = pool(&["10.0.0.0/29", "10.9.0.0/30"], 9);
    let given: BTreeSet<_> = (1..=8)
        .filter_map(|seid| pool.allocate_v4(Seid(seid)))
        .collect();
    assert_eq!(given.len(), 8);
    assert!(
        given
            .iter()
            .all(|address| !matches!(address.octets()[3], 0 | 255))
    );
    assert_eq!(pool.allocate_v4(Seid(9)), None);
    pool.release(Seid(3));
    assert!(pool.allocate_v4(Seid(9)).is_some());
    assert_eq!(pool.allocate_v4(Seid(10)), None);
}

#[test]
fn pool_allocates_each_teid_once_and_never_zero() {
    let pool = pool(&[], 5);
    let given: BTreeSet<_> = (1..=5)
        .filter_map(|seid| pool.allocate_teid(Seid(seid)))
        .collect();
    assert_eq!(given, BTreeSet::from([1, 2, 3, 4, 5]));
    assert_eq!(pool.allocate_teid(Seid(6)), None);
    pool.release(Seid(2));
    assert_eq!(pool.allocate_teid(Seid(6)), Some(2));
}

#[test]
fn peer_chosen_teid_is_not_allocated() {
    let pool = pool(&[], 9);
    let address: IpAddr = "127.0.0.1".parse().unwrap();
    pool.replace(Seid(1), vec![AddressClaim::Teid { teid: 1, address }])
        .unwrap();
    assert_eq!(pool.allocate_teid(Seid(2)), Some(2));
}

#[test]
fn ipv6_allocations_differ_in_their_64_bit_prefix() {
    let pool = pool(&["2001:db8::/63"], 9);
    let given = [1, 2].map(|seid| pool.allocate_v6(Seid(seid)).unwrap().to_string());
    assert_eq!(given, ["2001:db8::", "2001:db8:0:1::"]);
    assert_eq!(pool.allocate_v6(Seid(3)), None);
}

#[test]
fn conflicting_claim_is_refused_without_change() {
    let pool = pool(&[], 9);
    pool.replace(Seid(1), vec![ue("10.0.0.1")]).unwrap();
    pool.replace(Seid(2), vec![ue("10.0.0.2")]).unwrap();
    let taken = pool.replace(Seid(2), vec![ue("10.0.0.3"), ue("10.0.0.1")]);
    assert_eq!(
        taken,
        Err(ClaimConflict {
            claim: ue("10.0.0.1"),
            holder: Seid(1)
        })
    );
    assert_eq!(pool.held(Seid(2)), [ue("10.0.0.2")]);
    pool.replace(Seid(1), Vec::new()).unwrap();
    assert_eq!(
        pool.replace(Seid(2), vec![ue("10.0.0.1"), ue("10.0.0.1")]),
        Ok(())
    );
    assert_eq!(pool.replace(Seid(3), vec![ue("10.0.0.2")]), Ok(()));
}

#[test]
fn single_address_network_allocates_nothing() {
    for network in ["10.0.0.1/32", "10.0.0.0/31"] {
        assert_eq!(pool(&[network], 9).allocate_v4(Seid(1)), None, "{network}");
    }
    assert!(pool(&["0.0.0.0/0"], 9).allocate_v4(Seid(1)).is_some());
    assert!(pool(&["::/0"], 9).allocate_v6(Seid(1)).is_some());
}
