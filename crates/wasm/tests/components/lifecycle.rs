//! The lifecycle of components: starts, faults, state, upgrades.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use strowger_wasm::CallError;
use strowger_wasm::component::LifecycleStage;
use strowger_wasm::fault::{CallPhase, FaultKind};
use strowger_wasm::manifest::StateMode;
use strowger_wasm::message::{CheckHealth, Upgrade};

use crate::kit::{Guest, Started, Testbed, counter, payload, text};

fn count(testbed: &Testbed, counter: &Started) -> u8 {
    testbed.ask(counter, "x").expect("it counts")[0]
}

/// Sends the message on which the counter traps.
fn trap(testbed: &Testbed, counter: &Started) {
    let fatal = strowger_wasm::Message([255_u8].as_slice().into());
    counter.actor.try_tell(fatal).expect("there is room");
    testbed.system.run_until_idle();
}

#[test]
fn component_answers() {
    let testbed = Testbed::new();
    let echo = testbed.start(&Guest::new(), "echo", "");
    assert_eq!(text(testbed.ask(&echo, "hello")), "hello");
    assert_eq!(text(testbed.ask(&echo, "")), "");
    let info = echo.args.info();
    assert_eq!(
        (info.calls, info.refused, info.faults, info.incarnations),
        (2, 0, 0, 1)
    );
    assert_eq!(info.memory, 65_536);
}

#[test]
fn refusal_is_an_answer_not_a_fault() {
    let testbed = Testbed::new();
    let guest = Guest::new().handle("(call $fail (local.get $ptr) (local.get $len))");
    let refuser = testbed.start(&guest, "refuser", "");
    let answer = testbed.ask(&refuser, "not today");
    assert_eq!(answer, Err(CallError::Refused("not today".to_owned())));
    let info = refuser.args.info();
    assert_eq!((info.refused, info.faults, info.incarnations), (1, 0, 1));
}

/// Another thread reads the stats while a component fails over and over again, alternately in two
/// ways: each count comes with the fault that was counted last.
#[test]
fn stats_count_a_fault_together_with_its_description() {
    const FAULTS: u64 = 2000;
    const KINDS: [&str; 2] = ["bug", "panic"];
    let testbed = Testbed::new();
    let guest = Guest::new().handle(
        "(if (local.get $len) (then unreachable))
         (i32.div_u (i32.const 1) (local.get $len))",
    );
    let rule = "[restart]\nintensity = 10000\nbackoff = \"1us\"\nbackoff_max = \"1us\"";
    let guest = testbed.start(&guest, "guest", rule);
    let args = guest.args.clone();
    let reader = thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(60);
        let mut counts = 0;
        let mut last = 0;
        while last < FAULTS {
            assert!(Instant::now() < until, "only {last} faults");
            let info = args.info();
            let kind = info.fault.as_ref().map(|fault| fault.kind.name());
            let expected = (info.faults > 0).then(|| KINDS[(info.faults % 2) as usize]);
            assert_eq!(kind, expected, "after {} faults", info.faults);
            counts += u64::from(info.faults != last);
            last = info.faults;
        }
        counts
    });
    for fault in 1..=FAULTS {
        testbed.tell(&guest, if fault % 2 == 0 { "" } else { "x" });
        testbed.system.advance(Duration::from_millis(1));
    }
    let counts = reader.join().expect("each count has its fault");
    assert!(counts > 1, "the reader saw {counts} counts");
}

#[test]
fn trap_fault_contains_the_last_log_line() {
    let testbed = Testbed::new();
    let traceback = "ValueError: no such user";
    let say = format!(
        "(call $write (i32.const 0) (i32.const 1024) (i32.const {}))",
        traceback.len()
    );
    for (body, word) in [
        ("unreachable", "panic"),
        ("(drop (i32.load (i32.const -8)))", "bug"),
    ] {
        let guest = Guest::new()
            .import("log", "write")
            .data(traceback)
            .handle(&format!(
                "(if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const 108)) (then {say}))
                 (if (i32.ne (i32.load8_u (local.get $ptr)) (i32.const 115)) (then {body}))
                 {say} (call $ok)"
            ));
        let more = "[grant]\nlog = true";
        let guest = testbed.start(&guest, word, more);
        // A line of another call says nothing about this one.
        assert_eq!(text(testbed.ask(&guest, "silence")), "");
        for (message, said) in [("trap", false), ("log", true), ("trap", false)] {
            let failed = testbed.ask(&guest, message).expect_err("it traps");
            let CallError::Fault(fault) = failed else {
                panic!("{failed:?}");
            };
            assert_eq!(fault.kind.name(), word, "{fault}");
            assert_eq!(fault.to_string().contains(traceback), said, "{fault}");
        }
    }
}

#[test]
fn trap_restarts_with_fresh_state_and_queued_messages() {
    let testbed = Testbed::new();
    let counter = testbed.start(&counter(), "counter", "");
    assert_eq!(count(&testbed, &counter), 1);
    for payload in [vec![255], vec![1], vec![2]] {
        let message = strowger_wasm::Message(payload.into());
        counter.actor.try_tell(message).expect("there is room");
    }
    testbed.system.run_until_idle();
    assert_eq!(count(&testbed, &counter), 3, "two waited, and this one");
    let info = counter.args.info();
    assert_eq!((info.faults, info.incarnations), (1, 2));
    let fault = info.fault.expect("it failed");
    assert_eq!(
        (fault.phase, fault.kind.name()),
        (CallPhase::Handle, "panic")
    );
}

#[test]
fn caller_receives_the_fault() {
    let testbed = Testbed::new();
    let guest = Guest::new().handle("unreachable");
    let guest = testbed.start(&guest, "guest", "");
    let Err(CallError::Fault(fault)) = testbed.ask(&guest, "x") else {
        panic!("it should have failed");
    };
    assert!(matches!(fault.kind, FaultKind::Panic { .. }), "{fault}");
}

#[test]
fn saved_state_is_passed_to_the_next_incarnation() {
    let testbed = Testbed::new();
    let state = "[state]\nmode = \"snapshot\"\ninterval = 2";
    let counter = testbed.start(&counter(), "counter", state);
    assert_eq!(count(&testbed, &counter), 1);
    trap(&testbed, &counter);
    assert_eq!(count(&testbed, &counter), 1, "one was not yet kept");
    assert_eq!(count(&testbed, &counter), 2);
    trap(&testbed, &counter);
    assert_eq!(count(&testbed, &counter), 3, "two were kept");
}

#[test]
fn snapshot_mode_needs_the_stateful_export() {
    let testbed = Testbed::new();
    let mut manifest = crate::kit::manifest("echo", "");
    manifest.state.mode = StateMode::Snapshot;
    let loaded = testbed.host.load_blocking(&Guest::new().encode(), manifest);
    assert!(
        loaded
            .expect_err("it gives none")
            .to_string()
            .contains("stateful")
    );
}

#[test]
fn init_can_refuse_with_a_reason() {
    let testbed = Testbed::new();
    let guest = Guest::new()
        .data("no slice")
        .init("(call $fail (i32.const 1024) (i32.const 8))");
    let image = testbed.image(&guest, "picky", "[restart]\nintensity = 0");
    let args = testbed
        .host
        .component(image, &testbed.directory)
        .expect("there is room");
    let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
    let top = testbed.system.supervise("top", top);
    let started = testbed.system.run(top.start_child(args.child()));
    assert!(started.is_err(), "it does not start");
    let fault = args.info().fault.expect("it failed");
    assert_eq!(fault.to_string(), "init: refused: no slice");
}

#[test]
fn too_many_faults_quarantine_only_the_component() {
    let testbed = Testbed::new();
    let neighbour = testbed.start(&Guest::new(), "echo", "");
    let rule = "[restart]\nintensity = 2\nbackoff = \"1ms\"";
    let counter = testbed.start(&counter(), "counter", rule);
    for _ in 0..3 {
        assert!(counter.actor.is_alive());
        trap(&testbed, &counter);
        testbed.system.advance(Duration::from_millis(10));
    }
    assert!(!counter.actor.is_alive());
    assert_eq!(counter.args.info().incarnations, 3);
    assert_eq!(text(testbed.ask(&neighbour, "hello")), "hello");
}

#[test]
fn lifecycle_stages_are_reported_in_order() {
    let testbed = Testbed::new();
    let image = testbed.image(&counter(), "counter", "");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let args = testbed
        .host
        .component(image, &testbed.directory)
        .expect("there is room");
    let started = testbed.start_args(args.on_stage(move |stage| noted.lock().push(stage)));
    trap(&testbed, &started);
    testbed.system.shutdown(Duration::from_secs(1));
    use LifecycleStage::{PostStart, PostStop, PreStart, PreStop};
    let first = [PreStart, PostStart, PostStop];
    let second = [PreStart, PostStart, PreStop, PostStop];
    assert_eq!(*seen.lock(), [&first[..], &second[..]].concat());
}

#[test]
fn health_is_reported_by_the_component() {
    let testbed = Testbed::new();
    let well = testbed.start(&Guest::new(), "well", "");
    let asked = testbed
        .system
        .run(well.actor.ask(CheckHealth))
        .expect("it is answered");
    assert_eq!(asked, Ok(()));
    let ill = Guest::new()
        .data("no disk")
        .health("(call $fail (i32.const 1024) (i32.const 7))");
    let ill = testbed.start(&ill, "ill", "");
    let asked = testbed
        .system
        .run(ill.actor.ask(CheckHealth))
        .expect("it is answered");
    assert_eq!(
        asked.expect_err("it is ill").to_string(),
        "health: refused: no disk"
    );
    assert!(ill.actor.is_alive(), "to be ill is no fault");
}

/// A counter that starts again at 100 when it takes over.
fn next_counter() -> Guest {
    counter().init(
        "(if (i32.eq (local.get $reason) (i32.const 2)) (then
           (global.set $count (i32.add (i32.const 100) (i32.load8_u (local.get $ptr))))))
         (call $ok)",
    )
}

#[test]
fn upgrade_hands_over_state_and_loses_no_message() {
    let testbed = Testbed::new();
    let counter = testbed.start(&counter(), "counter", "");
    assert_eq!(count(&testbed, &counter), 1);
    let upgrade = Upgrade::to(testbed.image(&next_counter(), "counter", ""));
    for _ in 0..5 {
        counter
            .actor
            .try_tell(strowger_wasm::Message(payload("x")))
            .expect("there is room");
    }
    let upgraded = testbed
        .system
        .run(counter.actor.ask(upgrade))
        .expect("it is answered");
    assert_eq!(upgraded, Ok(()));
    assert_eq!(count(&testbed, &counter), 107);
    assert_eq!(counter.args.info().faults, 0);
    assert_eq!(
        testbed.host.live(),
        1,
        "the room of the old version is given back"
    );
}

#[test]
fn failed_upgrade_is_rolled_back() {
    let testbed = Testbed::new();
    let counter = testbed.start(&counter(), "counter", "");
    assert_eq!(count(&testbed, &counter), 1);
    let bad = [
        next_counter().init("unreachable"),
        next_counter().init("(call $fail (i32.const 0) (i32.const 0))"),
        next_counter().health("(call $fail (i32.const 0) (i32.const 0))"),
        next_counter().pages("500"),
    ];
    for (at, guest) in bad.iter().enumerate() {
        let upgrade = Upgrade::to(testbed.image(guest, "counter", ""));
        let upgraded = testbed
            .system
            .run(counter.actor.ask(upgrade))
            .expect("it is answered");
        assert!(upgraded.is_err(), "{at}");
    }
    assert_eq!(count(&testbed, &counter), 2, "the old version goes on");
    assert_eq!(counter.args.info().incarnations, 1);
    assert_eq!(testbed.host.live(), 1);
}

#[test]
fn trap_in_upgrade_snapshot_keeps_the_version() {
    let testbed = Testbed::new();
    let old = testbed.start(&counter().snapshot("unreachable"), "counter", "");
    assert_eq!(count(&testbed, &old), 1);
    let digest = old.args.info().digest;
    let upgrade = Upgrade::to(testbed.image(&next_counter(), "counter", ""));
    old.actor
        .try_tell(strowger_wasm::Message(payload("x")))
        .expect("there is room");
    let upgraded = testbed.system.run(old.actor.ask(upgrade));
    let fault = upgraded.expect("it is answered").expect_err("it trapped");
    assert_eq!(
        (fault.phase, fault.kind.name()),
        (CallPhase::Snapshot, "panic")
    );
    assert_eq!(count(&testbed, &old), 1, "a life of its own");
    let info = old.args.info();
    assert_eq!(
        (info.digest, info.faults, info.incarnations),
        (digest, 1, 2)
    );
    assert_eq!(testbed.host.live(), 1);
}

#[test]
fn stopped_component_releases_its_capacity() {
    let testbed = Testbed::new();
    let echo = testbed.start(&Guest::new(), "echo", "");
    assert_eq!(testbed.host.live(), 1);
    drop(echo);
    testbed.directory.remove("echo");
    testbed.system.shutdown(Duration::from_secs(1));
    let host = testbed.host.clone();
    drop(testbed);
    assert_eq!(host.live(), 0);
}
