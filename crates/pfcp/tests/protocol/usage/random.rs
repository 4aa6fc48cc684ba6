//! Random steps: all counted usage is reported once, and no sequence number is skipped.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::{Strategy, any, prop, proptest};
use proptest::{option, prop_assert_eq, prop_oneof};
use strowger_pfcp::ie::{
    CreateUrr, MeasurementMethod as Method, PfcpsmreqFlags, QueryUrr, RemoveUrr,
    ReportingTriggers as On, SubsequentVolumeThreshold, UpdatePdr, UpdateUrr, UrrId, VolumeQuota,
    VolumeThreshold,
};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::usage::{PacketOutcome, UsageLimits, UsageTotals};

use crate::usage::bench::{Bench, START, establishment};

#[derive(Clone, Debug)]
struct Wanted {
    threshold: Option<u64>,
    quota: Option<u64>,
    period: Option<u32>,
    monitoring: Option<(u32, u64)>,
    holding: Option<u32>,
    links: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Step {
    Packet { pdr: u16, bytes: u64 },
    Wait { milliseconds: u64 },
    Deliver,
    Lose,
    Query(u32),
    QueryAll,
    Remove(u32),
    Create(u32, Wanted),
    Grant(u32, u64),
    Threshold(u32, u64),
    Detach { pdr: u16, urr: u32 },
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (
        option::of(1u64..3000),
        option::of(0u64..10_000),
        option::of(1u32..20),
        option::of((0u32..60, 1u64..2000)),
        option::of(1u32..30),
        prop::collection::vec(1u32..4, 0..2),
    )
        .prop_map(
            |(threshold, quota, period, monitoring, holding, links)| Wanted {
                threshold,
                quota,
                period,
                monitoring,
                holding,
                links,
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1u16..3, 1u64..1500).prop_map(|(pdr, bytes)| Step::Packet { pdr, bytes }),
        3 => (0u64..8000).prop_map(|milliseconds| Step::Wait { milliseconds }),
        3 => any::<bool>().prop_map(|_| Step::Deliver),
        1 => any::<bool>().prop_map(|_| Step::Lose),
        1 => (1u32..4).prop_map(Step::Query),
        1 => any::<bool>().prop_map(|_| Step::QueryAll),
        1 => (1u32..4).prop_map(Step::Remove),
        1 => (1u32..4, wanted()).prop_map(|(id, wanted)| Step::Create(id, wanted)),
        2 => (1u32..4, 0u64..5000).prop_map(|(id, bytes)| Step::Grant(id, bytes)),
        1 => (1u32..4, 1u64..5000).prop_map(|(id, bytes)| Step::Threshold(id, bytes)),
        1 => (1u16..3, 1u32..4).prop_map(|(pdr, urr)| Step::Detach { pdr, urr }),
    ]
}

/// The rule, with links only to rules that exist.
fn urr(id: u32, wanted: &Wanted, exist: &[u32]) -> CreateUrr {
    let triggers = On::VOLTH | On::VOLQU | On::PERIO | On::LIUSA | On::QUHTI;
    let without = [
        (wanted.threshold.is_none(), On::VOLTH),
        (wanted.quota.is_none(), On::VOLQU),
        (wanted.period.is_none(), On::PERIO),
        (wanted.holding.is_none(), On::QUHTI),
        (
            !wanted.links.iter().any(|link| exist.contains(link)),
            On::LIUSA,
        ),
    ];
    let triggers = without
        .into_iter()
        .filter(|(gone, _)| *gone)
        .fold(triggers, |triggers, (_, on)| triggers.without(on));
    let mut urr = CreateUrr::new(id, Method::VOLUM | Method::DURAT, triggers);
    urr.volume_threshold = wanted.threshold.map(VolumeThreshold::total);
    urr.volume_quota = wanted.quota.map(VolumeQuota::total);
    urr.measurement_period = wanted.period.map(Into::into);
    urr.quota_holding_time = wanted.holding.map(Into::into);
    if let Some((at, bytes)) = wanted.monitoring {
        urr = urr.monitoring_time(START + at).subsequent_volume_threshold(
            SubsequentVolumeThreshold {
                total_volume: Some(bytes),
                ..SubsequentVolumeThreshold::default()
            },
        );
    }
    let links = wanted.links.iter().filter(|link| exist.contains(link));
    urr.linked_urr_ids = links.map(|link| (*link).into()).collect();
    urr
}

/// The expected reports, computed beside the session in the simplest way.
#[derive(Default)]
struct Expected {
    /// Bytes forwarded in each direction while the rule existed and counted them.
    bytes: BTreeMap<u32, (u64, u64)>,
    /// The rules that count the packets of each detection rule.
    counts: BTreeMap<u16, Vec<u32>>,
}

impl Expected {
    fn pass(&mut self, pdr: u16, bytes: u64, verdict: PacketOutcome) {
        if verdict != PacketOutcome::Forwarded {
            return;
        }
        for id in self.counts.get(&pdr).into_iter().flatten() {
            if let Some((up, down)) = self.bytes.get_mut(id) {
                *if pdr == 1 { up } else { down } += bytes;
            }
        }
    }
}

/// Sums of removed rules, so that a new rule with the same number starts again.
type Past = Vec<(u32, (u64, u64))>;

fn retire(bench: &mut Bench, expected: &mut Expected, id: u32, past: &mut Past) {
    let told = bench.tally.bytes(UrrId(id));
    past.push((id, told));
    let counted = expected.bytes.remove(&id).unwrap_or_default();
    assert_eq!(
        told, counted,
        "URR {id} is gone, and not all of it was told"
    );
    bench.tally.forget(UrrId(id));
}

/// Takes all waiting reports, including those in flight, before a rule is removed: afterwards its
/// number may refer to another rule.
fn drain(bench: &mut Bench) {
    loop {
        bench.reports();
        if bench.usage.waiting() == 0 {
            return;
        }
        let at = bench.usage.poll_timeout().expect("there is a next attempt");
        bench.now = bench.now.max(at);
        bench.usage.handle_timeout(bench.now);
    }
}

/// Executes a step; returns `true` if it was possible.
fn take(bench: &mut Bench, expected: &mut Expected, past: &mut Past, step: Step) {
    let exist: Vec<u32> = expected.bytes.keys().copied().collect();
    let none = SessionModificationRequest::new;
    match step {
        Step::Packet { pdr, bytes } => {
            let verdict = bench.traffic(pdr, bytes);
            expected.pass(pdr, bytes, verdict);
        }
        Step::Wait { milliseconds } => {
            bench.now += Duration::from_millis(milliseconds);
            bench.usage.handle_timeout(bench.now);
        }
        Step::Deliver => _ = bench.reports(),
        Step::Lose => {
            // The peer has received everything, and its answer is lost.
            if let Some(request) = bench.request() {
                for report in &request.usage_reports {
                    bench.hear(report);
                }
                bench.lossy = true;
                bench.usage.handle_no_answer(bench.now);
            }
        }
        Step::Query(id) if exist.contains(&id) => {
            bench.modify(none().query_urrs([QueryUrr::new(id)]));
        }
        Step::QueryAll => _ = bench.modify(none().pfcpsmreq_flags(PfcpsmreqFlags::QAURR)),
        Step::Remove(id) if exist.contains(&id) => {
            // No other rule may refer to it.
            drain(bench);
            let others = unlinked(bench, id);
            let Some(other) = exist.iter().copied().find(|one| *one != id) else {
                return;
            };
            let pdrs = [1u16, 2].map(|pdr| UpdatePdr::new(pdr).urr_id(other));
            if !others {
                return;
            }
            bench.modify(none().update_pdrs(pdrs).remove_urrs([RemoveUrr::new(id)]));
            expected.counts = [(1, vec![other]), (2, vec![other])].into();
            retire(bench, expected, id, past);
        }
        Step::Create(id, wanted) if !exist.contains(&id) => {
            bench.modify(none().create_urrs([urr(id, &wanted, &exist)]));
            expected.bytes.insert(id, (0, 0));
        }
        Step::Grant(id, bytes) if exist.contains(&id) => {
            let update = UpdateUrr::new(id).volume_quota(VolumeQuota::total(bytes));
            bench.modify(none().update_urrs([update]));
        }
        Step::Threshold(id, bytes) if exist.contains(&id) => {
            let update = UpdateUrr::new(id).volume_threshold(VolumeThreshold::total(bytes));
            bench.modify(none().update_urrs([update]));
        }
        Step::Detach { pdr, urr } if exist.contains(&urr) => {
            bench.modify(none().update_pdrs([UpdatePdr::new(pdr).urr_id(urr)]));
            expected.counts.insert(pdr, vec![urr]);
        }
        _ => {}
    }
}

/// Returns `true` if no other rule is linked to this one.
fn unlinked(bench: &Bench, id: u32) -> bool {
    bench
        .rules
        .urrs()
        .filter_map(Result::ok)
        .all(|urr| urr.urr_id.0 == id || !urr.linked_urr_ids.iter().any(|link| link.0 == id))
}

proptest! {
    #[test]
    fn counted_usage_is_reported_exactly_once(
        first in wanted(),
        second in wanted(),
        steps in prop::collection::vec(step(), 0..80),
        waiting in 1usize..6,
    ) {
        let limits = UsageLimits { waiting, ..UsageLimits::default() };
        let urrs = vec![urr(1, &first, &[1, 2]), urr(2, &second, &[1, 2])];
        let mut bench = Bench::of(establishment(urrs), limits);
        let mut expected = Expected {
            bytes: [(1, (0, 0)), (2, (0, 0))].into(),
            counts: [(1, vec![1, 2]), (2, vec![1, 2])].into(),
        };
        let mut past = Past::new();
        for step in steps {
            take(&mut bench, &mut expected, &mut past, step);
        }
        let (_, _, tally): (_, _, UsageTotals) = bench.delete();
        for (id, bytes) in expected.bytes {
            prop_assert_eq!(tally.bytes(UrrId(id)), bytes, "URR {}", id);
        }
        prop_assert_eq!(tally.missing(), 0);
    }
}
