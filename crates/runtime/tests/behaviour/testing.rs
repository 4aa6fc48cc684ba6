//! The test kit: virtual time, seeded schedules, probes and faults.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use strowger::Exit;
use strowger::testing::{
    Hook, InjectedFault, RecordedEvent, ScheduleTrace, ScriptCommand, ScriptedActor, TestSystem,
};

const SECOND: Duration = Duration::from_secs(1);

/// A few scripted_actors that all have work at the same time.
fn bustle(seed: u64) -> (ScheduleTrace, Vec<String>) {
    let system = TestSystem::new(seed);
    let probe = system.probe();
    for key in ["a", "b", "c", "d"] {
        let scripted = system.spawn::<ScriptedActor>(key, probe.recipient());
        for number in 0..3 {
            scripted
                .try_tell(ScriptCommand::Note(number))
                .expect("there is room");
            scripted
                .try_tell(ScriptCommand::Sleep(SECOND))
                .expect("there is room");
        }
        scripted
            .try_tell(ScriptCommand::NoteAfter(SECOND, 9))
            .expect("there is room");
    }
    system.advance(5 * SECOND);
    (system.trace(), probe.event_lines())
}

#[test]
fn same_seed_reproduces_the_run() {
    for seed in 0..20 {
        assert_eq!(bustle(seed), bustle(seed), "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_orders_of_the_same_events() {
    let mut stories: Vec<_> = (0..20).map(|seed| bustle(seed).1).collect();
    let sorted = |story: &Vec<String>| {
        let mut story = story.clone();
        story.sort();
        story
    };
    let first = sorted(&stories[0]);
    assert!(stories.iter().all(|story| sorted(story) == first));
    stories.sort();
    stories.dedup();
    assert!(stories.len() > 15, "{} of 20 are distinct", stories.len());
}

#[test]
fn trace_lists_the_actors_that_ran() {
    let (trace, _) = bustle(3);
    assert_eq!(trace.seed(), 3);
    assert!(
        trace
            .steps()
            .iter()
            .any(|step| step.path.as_str() == "/b" && step.at >= SECOND)
    );
    assert!(trace.to_string().starts_with("seed 3, "));
}

#[test]
fn virtual_time_is_manual() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    scripted
        .try_tell(ScriptCommand::NoteAfter(SECOND, 1))
        .expect("there is room");
    system.run_until_idle();
    assert_eq!(system.elapsed(), Duration::ZERO);
    system.advance(SECOND - Duration::from_millis(1));
    assert_eq!(probe.event_lines(), ["/p started"]);
    system.advance(Duration::from_millis(1));
    assert_eq!(probe.event_lines(), ["/p noted 1"]);
    assert_eq!(system.elapsed(), SECOND);
}

#[test]
fn advance_stops_at_each_timer() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    // The second timer is set while the first wait is handled, half way through.
    scripted
        .try_tell(ScriptCommand::Sleep(SECOND))
        .expect("there is room");
    scripted
        .try_tell(ScriptCommand::NoteAfter(SECOND, 2))
        .expect("there is room");
    system.advance(3 * SECOND);
    let trace = system.trace();
    let at: Vec<_> = trace
        .steps()
        .iter()
        .filter(|s| s.path.key() == "p")
        .map(|s| s.at)
        .collect();
    assert!(at.contains(&SECOND) && at.contains(&(2 * SECOND)), "{at:?}");
    assert_eq!(probe.event_lines(), ["/p started", "/p noted 2"]);
}

#[test]
fn run_advances_time_until_the_future_completes() {
    let system = TestSystem::new(1);
    let waited = system.run(async {
        tokio::time::sleep(10 * SECOND).await;
        7
    });
    assert_eq!((waited, system.elapsed()), (7, 10 * SECOND));
}

#[test]
#[should_panic(expected = "not done within 3600s of virtual time")]
fn run_panics_on_a_future_that_never_completes() {
    TestSystem::new(1).run(std::future::pending::<()>());
}

#[test]
fn probe_expect_waits_up_to_its_limit() {
    let system = TestSystem::new(1);
    let probe = system.probe::<RecordedEvent>();
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    assert_eq!(probe.expect(SECOND).to_string(), "/p started");
    scripted
        .try_tell(ScriptCommand::NoteAfter(3 * SECOND, 1))
        .expect("there is room");
    probe.expect_none(2 * SECOND);
    assert_eq!(probe.expect(SECOND).to_string(), "/p noted 1");
    let none = AssertUnwindSafe(|| probe.expect(SECOND));
    assert!(catch_unwind(none).is_err());
}

#[test]
fn probe_records_one_down_per_monitor() {
    let system = TestSystem::new(1);
    let probe = system.probe::<RecordedEvent>();
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    probe.monitor(&scripted);
    scripted.kill();
    assert!(matches!(probe.expect_down(&scripted, SECOND), Exit::Killed));
    system.advance(SECOND);
    assert!(probe.take_downs().is_empty());
}

#[test]
fn injected_fault_fires_once_at_the_nth_call() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.inject("/p", Hook::Handle, 3, InjectedFault::error("disk full"));
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    (1..=4).for_each(|number| {
        scripted
            .try_tell(ScriptCommand::Note(number))
            .expect("there is room")
    });
    let told = [
        "/p started",
        "/p noted 1",
        "/p noted 2",
        "/p stopped: failed: disk full",
    ];
    assert_eq!(probe.event_lines(), told);
}

#[test]
fn faults_can_be_injected_in_every_hook() {
    let exit_of = |hook, fault: InjectedFault| {
        let system = TestSystem::new(1);
        let probe = system.probe::<RecordedEvent>();
        let other = system.spawn::<ScriptedActor>("other", probe.recipient());
        system.inject("/p", hook, 1, fault);
        let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
        let watched = ScriptCommand::Monitor(other.erase());
        let _sent = scripted.try_tell(watched);
        system.run_until_idle();
        other.stop();
        system.run_until_idle();
        scripted.stop();
        system.run(scripted.stopped()).to_string()
    };
    for hook in [Hook::PreStart, Hook::Handle, Hook::Signal] {
        assert_eq!(
            exit_of(hook, InjectedFault::panic("boom")),
            "panicked: boom",
            "{hook:?}"
        );
        assert_eq!(
            exit_of(hook, InjectedFault::error("no")),
            "failed: no",
            "{hook:?}"
        );
    }
    assert_eq!(
        exit_of(Hook::PostStop, InjectedFault::panic("boom")),
        "shutdown"
    );
}

#[test]
fn stall_delays_the_hook() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.inject("/p", Hook::PostStop, 1, InjectedFault::Stall(2 * SECOND));
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    scripted.stop();
    assert_eq!(probe.event_lines(), ["/p started"]);
    let exit = system.run(scripted.stopped());
    assert!(matches!(exit, Exit::Shutdown));
    assert_eq!(system.elapsed(), 2 * SECOND);
    assert_eq!(probe.event_lines(), ["/p stopped: shutdown"]);
}

#[test]
fn check_runs_all_seeds_and_stops_at_the_first_failure() {
    let seen = Mutex::new(Vec::new());
    let run = AssertUnwindSafe(|| {
        TestSystem::check(0..10, |system| {
            seen.lock()
                .expect("no panic while it is held")
                .push(system.seed());
            if system.seed() == 4 {
                std::panic::resume_unwind(Box::new("the fourth"));
            }
        });
    });
    assert!(catch_unwind(run).is_err());
    assert_eq!(
        *seen.lock().expect("no panic while it is held"),
        [0, 1, 2, 3, 4]
    );
}

#[test]
fn dropped_system_frees_its_memory() {
    let held = std::sync::Arc::new(());
    let system = TestSystem::new(1);
    let probe = system.probe::<RecordedEvent>();
    let inside = std::sync::Arc::clone(&held);
    let recipient = probe.recipient().contramap(move |story: RecordedEvent| {
        let _inside = &inside;
        story
    });
    for key in ["a", "b"] {
        let scripted = system.spawn::<ScriptedActor>(key, recipient.clone());
        scripted
            .try_tell(ScriptCommand::Sleep(SECOND))
            .expect("there is room");
        scripted
            .try_tell(ScriptCommand::Spawn("child".into()))
            .expect("there is room");
        scripted
            .try_tell(ScriptCommand::Sleep(SECOND))
            .expect("there is room");
    }
    system.advance(SECOND + SECOND / 2);
    drop(recipient);
    drop(system);
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
}
