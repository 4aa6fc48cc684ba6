use proptest::prelude::*;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Set { after: u64 },
    Cancel { nth: usize },
    Move { by: u64 },
}

/// Near and far, within one tick, and at the edges of slots and levels.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..3 * TICK,
        0..100 * TICK,
        0..10_000_000 * TICK,
        (0..7u32, 0..4u64).prop_map(|(level, slot)| (slot << (6 * level)) * TICK),
        Just(u64::MAX / 4),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => span().prop_map(|after| Step::Set { after }),
        1 => any::<usize>().prop_map(|nth| Step::Cancel { nth }),
        2 => span().prop_map(|by| Step::Move { by }),
    ]
}

/// The reference model, a plain list: all that are due fire by time and then by number.
#[derive(Default)]
struct Model(Vec<(u64, u64)>);

impl Model {
    fn pop(&mut self, now: u64) -> Option<u64> {
        let place = (0..self.0.len())
            .filter(|at| self.0[*at].0 <= now)
            .min_by_key(|at| self.0[*at])?;
        Some(self.0.remove(place).1)
    }
}

proptest! {
    #[test]
    fn wheel_behaves_like_a_sorted_list(steps in prop::collection::vec(step(), 0..200)) {
        let mut wheel = Wheel::new();
        let mut model = Model::default();
        let mut keys = Vec::new();
        let mut now = 0_u64;
        for step in steps {
            match step {
                Step::Set { after } => {
                    let at = now.saturating_add(after).min(MAX_NANOS);
                    let number = keys.len() as u64;
                    keys.push((wheel.insert(at, number), number));
                    model.0.push((at, number));
                }
                Step::Cancel { nth } if !keys.is_empty() => {
                    let (key, number) = keys[nth % keys.len()];
                    let set = model.0.iter().position(|(_, one)| *one == number);
                    prop_assert_eq!(wheel.get_mut(key).is_some(), set.is_some());
                    prop_assert_eq!(wheel.remove(key), set.map(|_| number));
                    model.0.retain(|(_, one)| *one != number);
                }
                Step::Cancel { .. } => {}
                Step::Move { by } => {
                    now = now.saturating_add(by).min(MAX_NANOS);
                    loop {
                        let (fired, expected) = (wheel.pop(now), model.pop(now));
                        prop_assert_eq!(fired, expected);
                        if fired.is_none() {
                            break;
                        }
                    }
                }
            }
            prop_assert_eq!(wheel.len(), model.0.len());
            if let Some(earliest) = model.0.iter().min() {
                let next = wheel.next().expect("something is set");
                prop_assert!(next <= earliest.0, "{next} is later than {earliest:?}");
            }
        }
    }

    /// A caller that looks only when the wheel says so misses no timer, and rarely looks in vain.
    #[test]
    fn polling_at_next_finds_each_timer_on_time(
        spans in prop::collection::vec(span(), 1..50),
    ) {
        let mut wheel = Wheel::new();
        let mut expected: Vec<u64> = spans.iter().map(|at| (*at).min(MAX_NANOS)).collect();
        expected.sort_unstable();
        for at in &expected {
            wheel.insert(*at, *at);
        }
        let (mut found, mut looks) = (Vec::new(), 0);
        while let Some(now) = wheel.next() {
            looks += 1;
            while let Some(at) = wheel.pop(now) {
                prop_assert_eq!(at, now);
                found.push(at);
            }
        }
        prop_assert_eq!(found, expected);
        prop_assert!(looks <= 8 * spans.len(), "{looks} looks");
    }
}

#[test]
fn key_of_a_fired_timer_is_never_reused() {
    let mut wheel = Wheel::new();
    let first = wheel.insert(TICK, 1);
    assert_eq!(wheel.pop(TICK), Some(1));
    let second = wheel.insert(2 * TICK, 2);
    assert_eq!(wheel.remove(first), None);
    assert_eq!(wheel.remove(second), Some(2));
    assert_eq!(wheel.next(), None);
}

#[test]
fn million_timers_fire_in_order() {
    const MILLION: usize = 1_000_000;
    let mut numbers = SplitMix64::seed_from_u64(7);
    let mut wheel = Wheel::new();
    let mut keys = Vec::with_capacity(MILLION);
    for _ in 0..MILLION {
        let at = numbers.next_u64() % 60_000 * TICK;
        keys.push(wheel.insert(at, at));
    }
    // Every other timer is removed.
    let cancelled = keys.iter().step_by(2);
    assert_eq!(
        cancelled.filter_map(|key| wheel.remove(*key)).count(),
        MILLION / 2
    );
    let (mut before, mut fired) = (0, 0);
    for now in 0..60_000 {
        while let Some(at) = wheel.pop(now * TICK) {
            assert!(before <= at && at == now * TICK);
            (before, fired) = (at, fired + 1);
        }
    }
    assert_eq!((fired, wheel.len()), (MILLION / 2, 0));
}
