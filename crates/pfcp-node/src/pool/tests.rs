use std::collections::BTreeSet;
use std::net::IpAddr;

use strowger_pfcp::Seid;

use super::{AddressClaim, AddressPool, ClaimConflict, InstanceKey, Ipv6Prefix};
use crate::config::{InstancePool, Pools};

fn pool(ue: &[&str], last_teid: u32) -> AddressPool {
    let pools = Pools {
        ue: ue.iter().map(|network| network.parse().unwrap()).collect(),
        teid_last: last_teid,
        ..Pools::default()
    };
    AddressPool::new(
        &pools,
        &["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
    )
}

const NONE: InstanceKey = InstanceKey(0);

fn ue(address: &str) -> AddressClaim {
    AddressClaim::Ue {
        instance: NONE,
        address: address.parse().unwrap(),
    }
}

#[test]
fn pool_allocates_each_address_once() {
    let pool = pool(&["10.0.0.0/29", "10.9.0.0/30"], 9);
    let given: BTreeSet<_> = (1..=8)
        .filter_map(|seid| pool.allocate_v4(Seid(seid), NONE))
        .collect();
    assert_eq!(given.len(), 8);
    assert!(
        given
            .iter()
            .all(|address| !matches!(address.octets()[3], 0 | 255))
    );
    assert_eq!(pool.allocate_v4(Seid(9), NONE), None);
    pool.release(Seid(3));
    assert!(pool.allocate_v4(Seid(9), NONE).is_some());
    assert_eq!(pool.allocate_v4(Seid(10), NONE), None);
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
    let given = [1, 2].map(|seid| pool.allocate_v6(Seid(seid), NONE, 64).unwrap().to_string());
    assert_eq!(given, ["2001:db8::", "2001:db8:0:1::"]);
    assert_eq!(pool.allocate_v6(Seid(3), NONE, 64), None);
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
        assert_eq!(
            pool(&[network], 9).allocate_v4(Seid(1), NONE),
            None,
            "{network}"
        );
    }
    assert!(pool(&["0.0.0.0/0"], 9).allocate_v4(Seid(1), NONE).is_some());
    assert!(pool(&["::/0"], 9).allocate_v6(Seid(1), NONE, 64).is_some());
}

fn prefix(text: &str) -> AddressClaim {
    let (address, length) = text.split_once('/').unwrap();
    AddressClaim::Prefix {
        instance: NONE,
        prefix: Ipv6Prefix::new(address.parse().unwrap(), length.parse().unwrap()),
    }
}

fn prefix_of(claim: AddressClaim) -> Ipv6Prefix {
    match claim {
        AddressClaim::Prefix { prefix, .. } => prefix,
        other => panic!("{other:?}"),
    }
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
            let (first, second) = (prefix_of(prefix(one)), prefix_of(prefix(other)));
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
        let first = pool.allocate_v6(Seid(seid), NONE, length).unwrap();
        let prefix = Ipv6Prefix::new(first, length);
        assert_eq!(prefix.first, first.to_bits(), "aligned");
        given.push(prefix);
    }
    let fixed = prefix("2001:db8:0:101::/64");
    given.push(prefix_of(fixed));
    for (at, one) in given.iter().enumerate() {
        for other in &given[at + 1..] {
            assert!(!one.contains(*other) && !other.contains(*one), "{given:?}");
        }
    }
    assert_eq!(
        pool.allocate_v6(Seid(9), NONE, 51),
        None,
        "larger than the pool"
    );
    // The other address in the same 64 bits keeps them in use.
    pool.release(Seid(90));
    (1..=9).for_each(|seid| pool.release(Seid(seid)));
    assert_eq!(pool.allocate_v6(Seid(1), NONE, 52), None);
    pool.release(Seid(91));
    assert!(pool.allocate_v6(Seid(1), NONE, 52).is_some());
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
            let claimed = pool.replace(
                Seid(seid),
                vec![AddressClaim::Ue {
                    instance: NONE,
                    address: wanted,
                }],
            );
            let is_free = held.values().all(|one| *one != wanted);
            assert_eq!(claimed.is_ok(), is_free, "{round}");
            if is_free {
                held.insert(seid, wanted);
            }
        } else if let Some(given) = pool.allocate_v4(Seid(seid), NONE) {
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
        assert!(pool.allocate_v4(Seid(seid), NONE).is_some());
    }
    // A search through the pool for each of these would take minutes.
    for _ in 0..100_000 {
        assert_eq!(pool.allocate_v4(Seid(size + 1), NONE), None);
    }
    for seid in 1..=size {
        pool.release(Seid(seid));
        assert!(pool.allocate_v4(Seid(size + 1), NONE).is_some());
        pool.release(Seid(size + 1));
        assert!(pool.allocate_v4(Seid(seid), NONE).is_some());
    }
}

/// No two neighbours are free, so there is no prefix of 63 bits among many free ones of 64 bits.
#[test]
fn fragmented_pool_is_known_at_once() {
    let pool = pool(&["2001:db8::/48"], 9);
    let size = 1 << 16;
    for seid in 1..=size {
        assert!(pool.allocate_v6(Seid(seid), NONE, 64).is_some());
    }
    for seid in (1..=size).step_by(2) {
        pool.release(Seid(seid));
    }
    // A search through the ranges for each of these would take minutes.
    for _ in 0..100_000 {
        assert_eq!(pool.allocate_v6(Seid(size + 1), NONE, 63), None);
    }
    pool.release(Seid(1000));
    let given = pool.allocate_v6(Seid(size + 1), NONE, 63);
    assert_eq!(given, Some("2001:db8:0:3e6::".parse().unwrap()));
}

fn overlap(one: AddressClaim, other: AddressClaim) -> bool {
    match (one, other) {
        (AddressClaim::Prefix { prefix: one, .. }, AddressClaim::Prefix { prefix: other, .. }) => {
            one.contains(other) || other.contains(one)
        }
        (AddressClaim::Ue { address: one, .. }, AddressClaim::Ue { address: other, .. }) => {
            one == other
        }
        _ => false,
    }
}

fn instance_of(claim: AddressClaim) -> InstanceKey {
    match claim {
        AddressClaim::Ue { instance, .. } | AddressClaim::Prefix { instance, .. } => instance,
        AddressClaim::Teid { .. } => panic!("no address of a UE"),
    }
}

/// Pools of the same networks: one that instances share, and one of this instance alone.
fn pool_with_own(network_instance: &str) -> AddressPool {
    let networks = || ["10.0.0.0/28", "2001:db8::/60"].map(|one| one.parse().unwrap());
    let pools = Pools {
        ue: networks().to_vec(),
        instances: vec![InstancePool {
            network_instance: network_instance.to_owned(),
            ue: networks().to_vec(),
        }],
        ..Pools::default()
    };
    AddressPool::new(&pools, &[])
}

/// One to three claims in any of the instances.
fn random_claims(
    below: &mut impl FnMut(u64) -> u64,
    instances: [InstanceKey; 3],
) -> Vec<AddressClaim> {
    let mut claims = Vec::new();
    for _ in 0..1 + below(3) {
        let instance = instances[usize::try_from(below(3)).unwrap()];
        let last = u8::try_from(below(18)).unwrap();
        let length = [48, 59, 60, 62, 63, 64, 65, 128];
        let length = length[usize::try_from(below(8)).unwrap()];
        let address = [0x2001, 0xdb8, 0, last.into(), 0, 0, 0, last.into()];
        claims.push(match below(2) {
            0 => AddressClaim::Ue {
                instance,
                address: [10, 0, 0, last].into(),
            },
            _ => AddressClaim::Prefix {
                instance,
                prefix: Ipv6Prefix::new(address.into(), length),
            },
        });
    }
    claims
}

/// Random claims, allocations and releases in three network instances, of which two share a pool:
/// claims of one instance never overlap, what is allocated is free in all that share the pool, and
/// what all of them have released can be allocated.
#[test]
fn claims_of_a_network_instance_never_overlap() {
    let own = InstanceKey::of(b"own");
    let instances = [NONE, InstanceKey::of(b"common"), own];
    let pool = pool_with_own("own");
    let mut state = 7_u64;
    let mut below = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % limit
    };
    let (mut refused, mut full) = (0, 0);
    for round in 0..30_000 {
        let session = Seid(1 + below(20));
        let instance = instances[usize::try_from(below(3)).unwrap()];
        let others: Vec<AddressClaim> = {
            let held = pool.all().into_iter();
            let held = held.filter(|(holder, _)| *holder != session);
            held.flat_map(|(_, claims)| claims).collect()
        };
        let shares = |claim: AddressClaim| (instance_of(claim) == own) == (instance == own);
        let in_use: Vec<AddressClaim> = {
            let held = others.iter().copied().chain(pool.held(session));
            held.filter(|claim| shares(*claim)).collect()
        };
        match below(6) {
            0 | 1 => pool.release(session),
            2 => {
                let given = pool.allocate_v4(session, instance);
                let all = (1..=14).map(|last| {
                    let address = [10, 0, 0, last].into();
                    AddressClaim::Ue { instance, address }
                });
                let mut free = all.filter(|one| !in_use.iter().any(|used| overlap(*one, *used)));
                match given {
                    Some(address) => {
                        let claim = AddressClaim::Ue { instance, address };
                        assert!(free.any(|one| one == claim), "{round}: {address}");
                    }
                    None => {
                        full += 1;
                        assert_eq!(free.next(), None, "{round}");
                    }
                }
            }
            3 => {
                let length = [62, 63, 64, 64, 128][usize::try_from(below(5)).unwrap()];
                let given = pool.allocate_v6(session, instance, length);
                let base = "2001:db8::"
                    .parse::<std::net::Ipv6Addr>()
                    .unwrap()
                    .to_bits();
                let block = length.min(64);
                let all = (0..1_u128 << (block - 60)).map(|number| {
                    let first = base + (number << (128 - u32::from(block)));
                    Ipv6Prefix::new(first.into(), block)
                });
                let is_free = |prefix: &Ipv6Prefix| {
                    let claim = AddressClaim::Prefix {
                        instance,
                        prefix: *prefix,
                    };
                    !in_use.iter().any(|used| overlap(claim, *used))
                };
                let mut free = all.filter(is_free);
                match given {
                    Some(first) => assert!(
                        free.any(|one| one == Ipv6Prefix::new(first, block)),
                        "{round}: {first}/{length}"
                    ),
                    None => {
                        full += 1;
                        assert_eq!(free.next(), None, "{round}");
                    }
                }
            }
            _ => {
                let claims = random_claims(&mut below, instances);
                let is_taken = claims.iter().any(|&claim| {
                    let of_it = |one: &&AddressClaim| instance_of(**one) == instance_of(claim);
                    let mut others = others.iter().filter(of_it);
                    others.any(|one| overlap(*one, claim))
                });
                refused += usize::from(is_taken);
                let claimed = pool.replace(session, claims);
                assert_eq!(claimed.is_err(), is_taken, "{round}: {claimed:?}");
            }
        }
    }
    assert!(refused > 1000 && full > 100, "{refused} {full}");
    (1..=20).for_each(|seid| pool.release(Seid(seid)));
    for instance in [NONE, own] {
        assert!(pool.allocate_v6(Seid(1), instance, 60).is_some());
        let given = (0..15).filter_map(|_| pool.allocate_v4(Seid(1), instance));
        assert_eq!(given.count(), 14);
    }
}
