use std::collections::BTreeSet;
use std::net::IpAddr;

use strowger_pfcp::Seid;

use super::{AddressClaim, AddressPool, ClaimConflict, Ipv6Prefix};
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
    let given = [1, 2].map(|seid| pool.allocate_v6(Seid(seid), 64).unwrap().to_string());
    assert_eq!(given, ["2001:db8::", "2001:db8:0:1::"]);
    assert_eq!(pool.allocate_v6(Seid(3), 64), None);
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
    assert!(pool(&["::/0"], 9).allocate_v6(Seid(1), 64).is_some());
}

fn prefix(text: &str) -> AddressClaim {
    let (address, length) = text.split_once('/').unwrap();
    AddressClaim::Prefix(Ipv6Prefix::new(
        address.parse().unwrap(),
        length.parse().unwrap(),
    ))
}

/// Whichever comes first, a prefix that overlaps it belongs to no other session.
#[test]
fn overlapping_prefixes_belong_to_one_session() {
    let claims = [
        "2001:db8::/56",
        "2001:db8:0:1::/64",
        "2001:db8:0:f0::/60",
        "2001:db8:0:f1::/64",
        "2001:db8:0:f1::9/128",
    ];
    for one in claims {
        for other in claims {
            let pool = pool(&["2001:db8::/48"], 9);
            pool.replace(Seid(1), vec![prefix(one)]).unwrap();
            let (AddressClaim::Prefix(first), AddressClaim::Prefix(second)) =
                (prefix(one), prefix(other))
            else {
                panic!("prefixes");
            };
            let overlap = first.contains(second) || second.contains(first);
            let taken = pool.replace(Seid(2), vec![prefix(other)]);
            assert_eq!(taken.is_err(), overlap, "{one} {other}");
            // The twin: the session itself may hold both.
            let both = pool.replace(Seid(1), vec![prefix(one), prefix(other)]);
            assert_eq!(both.is_ok(), overlap, "{one} {other}");
        }
    }
}

#[test]
fn allocated_prefixes_are_aligned_and_disjoint() {
    let pool = pool(&["2001:db8::/52"], 9);
    pool.replace(Seid(90), vec![prefix("2001:db8:0:101::7/128")])
        .unwrap();
    pool.replace(Seid(91), vec![prefix("2001:db8:0:101::8/128")])
        .unwrap();
    let lengths = [64, 56, 60, 128, 56, 63, 64];
    let mut given = Vec::new();
    for (seid, length) in (1..).zip(lengths) {
        let first = pool.allocate_v6(Seid(seid), length).unwrap();
        let prefix = Ipv6Prefix::new(first, length);
        assert_eq!(prefix.first, first.to_bits(), "aligned");
        given.push(prefix);
    }
    let fixed = prefix("2001:db8:0:101::/64");
    let AddressClaim::Prefix(fixed) = fixed else {
        panic!("a prefix");
    };
    given.push(fixed);
    for (at, one) in given.iter().enumerate() {
        for other in &given[at + 1..] {
            assert!(!one.contains(*other) && !other.contains(*one), "{given:?}");
        }
    }
    assert_eq!(pool.allocate_v6(Seid(9), 51), None, "larger than the pool");
    // The other address in the same 64 bits keeps them in use.
    pool.release(Seid(90));
    (1..=9).for_each(|seid| pool.release(Seid(seid)));
    assert_eq!(pool.allocate_v6(Seid(1), 52), None);
    pool.release(Seid(91));
    assert!(pool.allocate_v6(Seid(1), 52).is_some());
}

/// Random claims and releases: what is allocated is free, and all that is free can be allocated.
#[test]
fn allocation_agrees_with_a_model() {
    let pool = pool(&["10.0.0.0/26", "10.0.0.32/27"], 40);
    let mut held: std::collections::BTreeMap<u64, std::net::Ipv4Addr> = Default::default();
    let mut state = 7_u64;
    for round in 0..20_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let seid = 1 + (state >> 33) % 80;
        if held.remove(&seid).is_some() {
            pool.release(Seid(seid));
            continue;
        }
        let wanted = std::net::Ipv4Addr::new(10, 0, 0, u8::try_from((state >> 40) % 64).unwrap());
        if state >> 63 == 0 {
            let claimed = pool.replace(Seid(seid), vec![AddressClaim::Ue(wanted)]);
            let is_free = held.values().all(|one| *one != wanted);
            assert_eq!(claimed.is_ok(), is_free, "{round}");
            if is_free {
                held.insert(seid, wanted);
            }
        } else if let Some(given) = pool.allocate_v4(Seid(seid)) {
            assert!(held.values().all(|one| *one != given), "{round}");
            held.insert(seid, given);
        } else {
            let used = held
                .values()
                .filter(|one| !matches!(one.octets()[3], 0 | 63));
            assert_eq!(used.count(), 62, "{round}: all are in use");
        }
    }
}

/// A full pool refuses at once, and finds the one that is released.
#[test]
fn full_pool_is_known_at_once() {
    let pool = pool(&["10.0.0.0/16"], 9);
    let size = (1 << 16) - 2;
    for seid in 1..=size {
        assert!(pool.allocate_v4(Seid(seid)).is_some());
    }
    // A search through the pool for each of these would take minutes.
    for _ in 0..100_000 {
        assert_eq!(pool.allocate_v4(Seid(size + 1)), None);
    }
    for seid in 1..=size {
        pool.release(Seid(seid));
        assert!(pool.allocate_v4(Seid(size + 1)).is_some());
        pool.release(Seid(size + 1));
        assert!(pool.allocate_v4(Seid(seid)).is_some());
    }
}

/// No two neighbours are free, so there is no prefix of 63 bits among many free ones of 64 bits.
#[test]
fn fragmented_pool_is_known_at_once() {
    let pool = pool(&["2001:db8::/48"], 9);
    let size = 1 << 16;
    for seid in 1..=size {
        assert!(pool.allocate_v6(Seid(seid), 64).is_some());
    }
    for seid in (1..=size).step_by(2) {
        pool.release(Seid(seid));
    }
    // A search through the ranges for each of these would take minutes.
    for _ in 0..100_000 {
        assert_eq!(pool.allocate_v6(Seid(size + 1), 63), None);
    }
    pool.release(Seid(1000));
    let given = pool.allocate_v6(Seid(size + 1), 63);
    assert_eq!(given, Some("2001:db8:0:3e6::".parse().unwrap()));
}
