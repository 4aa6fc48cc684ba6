use proptest::prelude::{Just, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;

use super::*;

fn policy(strategy: Strategy) -> SupervisionPolicy {
    SupervisionPolicy {
        strategy,
        intensity: RestartIntensity::new((u32::MAX, Duration::from_secs(5))),
        backoff: Backoff::NONE,
    }
}

fn running(restarts: &[Restart]) -> Vec<ChildState> {
    restarts
        .iter()
        .map(|&restart| ChildState {
            running: true,
            ..ChildState::new(restart)
        })
        .collect()
}

fn panicked() -> Exit {
    Exit::Panicked("boom".into())
}

fn decide(
    strategy: Strategy,
    children: &mut [ChildState],
    failed: usize,
    exit: &Exit,
) -> GroupDecision {
    policy(strategy).decide(children, failed, exit, Instant::now(), 0)
}

fn restart(stop: &[usize], start: &[usize]) -> GroupDecision {
    GroupDecision::Restart {
        stop: stop.to_vec(),
        remove: Vec::new(),
        start: start.to_vec(),
        after: Duration::ZERO,
    }
}

const PERMANENT: [Restart; 4] = [Restart::Permanent; 4];

/// OTP: "if a child process terminates, only that process is restarted".
#[test]
fn one_for_one_restarts_only_the_child_that_ended() {
    let mut children = running(&PERMANENT);
    let decision = decide(Strategy::OneForOne, &mut children, 1, &panicked());
    assert_eq!(decision, restart(&[], &[1]));
}

/// OTP: "if a child process terminates, all other child processes are terminated, and then all
/// child processes, including the terminated one, are restarted"; started "from left to right",
/// terminated "in reversed start order".
#[test]
fn one_for_all_stops_the_others_in_reverse_and_starts_all_in_order() {
    let mut children = running(&PERMANENT);
    let decision = decide(Strategy::OneForAll, &mut children, 1, &panicked());
    assert_eq!(decision, restart(&[3, 2, 0], &[0, 1, 2, 3]));
}

/// OTP: "the rest of the child processes (that is, the child processes after the terminated
/// process in start order) are terminated. Then the terminated child process and all child
/// processes after it are restarted."
#[test]
fn rest_for_one_restarts_later_children() {
    let mut children = running(&PERMANENT);
    let decision = decide(Strategy::RestForOne, &mut children, 1, &panicked());
    assert_eq!(decision, restart(&[3, 2], &[1, 2, 3]));
}

/// OTP: "If the start function returns `ignore`, the child specification is kept in the supervisor,
/// unless it is a temporary child".
#[test]
fn ignored_child_is_not_restarted() {
    for (restart, expected) in [
        (Restart::Permanent, GroupDecision::Nothing),
        (Restart::Transient, GroupDecision::Nothing),
        (Restart::Temporary, GroupDecision::Remove),
    ] {
        let mut children = running(&[restart, Restart::Permanent]);
        let mut policy = policy(Strategy::OneForAll);
        policy.intensity = RestartIntensity::new((0, Duration::ZERO));
        let decision = policy.decide(&mut children, 0, &Exit::Ignored, Instant::now(), 0);
        assert_eq!(decision, expected);
        assert!(!children[0].running && children[1].running);
    }
}

/// OTP: "A permanent child process is always restarted."
#[test]
fn a_permanent_child_is_always_restarted() {
    for exit in [Exit::Normal, Exit::Shutdown, Exit::Killed, panicked()] {
        let mut children = running(&[Restart::Permanent]);
        let decision = decide(Strategy::OneForOne, &mut children, 0, &exit);
        assert_eq!(decision, restart(&[], &[0]), "{exit}");
    }
}

/// OTP: "A transient child process is restarted only if it terminates abnormally, that is, with
/// another exit reason than normal, shutdown, or {shutdown,Term}."
#[test]
fn a_transient_child_is_restarted_only_after_an_abnormal_exit() {
    for exit in [Exit::Normal, Exit::Shutdown] {
        let mut children = running(&[Restart::Transient, Restart::Permanent]);
        assert_eq!(
            decide(Strategy::OneForAll, &mut children, 0, &exit),
            GroupDecision::Nothing
        );
        assert!(!children[0].running);
    }
    let failed = Exit::failed("disk full");
    for exit in [Exit::Killed, panicked(), failed] {
        let mut children = running(&[Restart::Transient, Restart::Permanent]);
        let decision = decide(Strategy::OneForOne, &mut children, 0, &exit);
        assert_eq!(decision, restart(&[], &[0]), "{exit}");
    }
}

/// A supervisor that gave up has failed. This differs from OTP, where it ends with `shutdown` and
/// so is not restarted if it is transient.
#[test]
fn escalated_transient_supervisor_is_restarted() {
    let exit = Exit::Escalated {
        child: "/a/b".into(),
        exit: panicked().into(),
    };
    let mut children = running(&[Restart::Transient]);
    assert_eq!(
        decide(Strategy::OneForOne, &mut children, 0, &exit),
        restart(&[], &[0])
    );
}

/// OTP: "A temporary child process is never restarted (even when the supervisor's restart
/// strategy is rest_for_one or one_for_all and a sibling's death causes the temporary process to
/// be terminated)."
#[test]
fn a_temporary_child_is_never_restarted() {
    for strategy in [
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ] {
        let mut children = running(&[Restart::Permanent, Restart::Temporary]);
        assert_eq!(
            decide(strategy, &mut children, 1, &panicked()),
            GroupDecision::Remove
        );
    }
    let mut children = running(&[Restart::Permanent, Restart::Temporary, Restart::Transient]);
    let decision = decide(Strategy::OneForAll, &mut children, 0, &panicked());
    let expected = GroupDecision::Restart {
        stop: vec![2, 1],
        remove: vec![1],
        start: vec![0, 2],
        after: Duration::ZERO,
    };
    assert_eq!(decision, expected);
}

/// OTP on `terminate_child`: "The child process can later be restarted by the supervisor."
#[test]
fn a_stopped_sibling_is_started_with_its_group() {
    let mut children = running(&PERMANENT);
    children[2].running = false;
    let decision = decide(Strategy::RestForOne, &mut children, 1, &panicked());
    assert_eq!(decision, restart(&[3], &[1, 2, 3]));
}

/// OTP: "When the restart limit is passed, the supervisor terminates all the child processes and
/// then itself", in reversed start order.
#[test]
fn exceeded_intensity_stops_all_in_reverse() {
    let mut policy = policy(Strategy::OneForOne);
    policy.intensity = RestartIntensity::new((1, Duration::from_secs(5)));
    let mut children = running(&PERMANENT);
    let now = Instant::now();
    assert_eq!(
        policy.decide(&mut children, 1, &panicked(), now, 0),
        restart(&[], &[1])
    );
    children[1].running = true;
    let decision = policy.decide(&mut children, 1, &panicked(), now, 0);
    assert_eq!(
        decision,
        GroupDecision::Escalate {
            stop: vec![3, 2, 0]
        }
    );
}

#[test]
fn exits_without_a_restart_do_not_count_towards_the_intensity() {
    let mut policy = policy(Strategy::OneForOne);
    policy.intensity = RestartIntensity::new((1, Duration::from_secs(5)));
    let now = Instant::now();
    let mut children = running(&[
        Restart::Transient,
        Restart::Temporary,
        Restart::Temporary,
        Restart::Permanent,
    ]);
    assert_eq!(
        policy.decide(&mut children, 0, &Exit::Normal, now, 0),
        GroupDecision::Nothing
    );
    assert_eq!(
        policy.decide(&mut children, 1, &panicked(), now, 0),
        GroupDecision::Remove
    );
    assert_eq!(
        policy.decide(&mut children, 2, &panicked(), now, 0),
        GroupDecision::Remove
    );
    assert_eq!(
        policy.decide(&mut children, 3, &panicked(), now, 0),
        restart(&[], &[3])
    );
}

#[test]
fn each_child_has_its_own_restart_streak() {
    let mut policy = policy(Strategy::OneForOne);
    policy.backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    let mut children = running(&PERMANENT);
    let now = Instant::now();
    let mut after =
        |place: usize| match policy.decide_child(&mut children[place], &panicked(), || now, 0) {
            ChildVerdict::Restart { after } => after.as_millis(),
            other => panic!("{other:?}"),
        };
    assert_eq!(
        (after(0), after(0), after(1), after(0), after(1)),
        (0, 50, 0, 100, 50)
    );
}

fn any_child() -> impl Generator<Value = ChildState> {
    let restart = prop_oneof![
        Just(Restart::Permanent),
        Just(Restart::Transient),
        Just(Restart::Temporary)
    ];
    (restart, any::<bool>()).prop_map(|(restart, running)| ChildState {
        running,
        ..ChildState::new(restart)
    })
}

fn any_strategy() -> impl Generator<Value = Strategy> {
    prop_oneof![
        Just(Strategy::OneForOne),
        Just(Strategy::OneForAll),
        Just(Strategy::RestForOne)
    ]
}

proptest! {
    #[test]
    fn restarts_keep_order_and_scope(
        strategy in any_strategy(),
        mut children in prop::collection::vec(any_child(), 1..12),
        place in any::<prop::sample::Index>(),
        orderly in any::<bool>(),
    ) {
        let failed = place.index(children.len());
        children[failed].running = true;
        let before = children.clone();
        let exit = if orderly { Exit::Normal } else { Exit::Killed };
        match decide(strategy, &mut children, failed, &exit) {
            GroupDecision::Nothing => {
                prop_assert!(orderly && before[failed].restart == Restart::Transient);
            }
            GroupDecision::Remove => prop_assert_eq!(before[failed].restart, Restart::Temporary),
            GroupDecision::Escalate { .. } => prop_assert!(false, "the intensity was not passed"),
            GroupDecision::Restart { stop, remove, start, .. } => {
                prop_assert!(stop.is_sorted_by(|a, b| a > b));
                prop_assert!(start.is_sorted_by(|a, b| a < b));
                prop_assert!(start.contains(&failed) && !stop.contains(&failed));
                prop_assert!(stop.iter().all(|&c| before[c].running));
                prop_assert!(stop.iter().all(|c| start.contains(c) != remove.contains(c)));
                prop_assert!(start.iter().all(|&c| before[c].restart != Restart::Temporary));
                let first = match strategy {
                    Strategy::OneForAll => 0,
                    _ => failed,
                };
                let end = if strategy == Strategy::OneForOne { failed + 1 } else { children.len() };
                let touched = stop.iter().chain(&start).chain(&remove);
                prop_assert!(touched.clone().all(|c| (first..end).contains(c)));
                for c in first..end {
                    prop_assert!(touched.clone().any(|t| *t == c), "{} was left out", c);
                }
            }
        }
        prop_assert!(!children[failed].running);
    }
}
