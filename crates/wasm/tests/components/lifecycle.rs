//! The lifecycle of components: starts, faults, state, upgrades.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger_wasm::CallError;
use strowger_wasm::component::Stage;
use strowger_wasm::fault::{FaultKind, Phase};
use strowger_wasm::manifest::StateMode;
use strowger_wasm::message::{Health, Upgrade};

use crate::kit::{Guest, Stand, Started, counter, octets, text};

fn count(stand: &Stand, counter: &Started) -> u8 {
    stand.ask(counter, "x").expect("it counts")[0]
}

/// Sends the message on which the counter traps.
fn trap(stand: &Stand, counter: &Started) {
    let fatal = strowger_wasm::Message([255_u8].as_slice().into());
    counter.actor.try_tell(fatal).expect("there is room");
    stand.system.run_until_idle();
}

#[test]
fn a_component_answers() {
    let stand = Stand::new();
    let echo = stand.start(&Guest::new(), "echo", "");
    assert_eq!(text(stand.ask(&echo, "hello")), "hello");
    assert_eq!(text(stand.ask(&echo, "")), "");
    let info = echo.args.info();
    assert_eq!(
        (info.calls, info.refused, info.faults, info.lives),
        (2, 0, 0, 1)
    );
    assert_eq!(info.memory, 65_536);
}

#[test]
fn a_refusal_is_an_answer_and_no_fault() {
    let stand = Stand::new();
    let guest = Guest::new().handle("(call $fail (local.get $ptr) (local.get $len))");
    let refuser = stand.start(&guest, "refuser", "");
    let answer = stand.ask(&refuser, "not today");
    assert_eq!(answer, Err(CallError::Refused("not today".to_owned())));
    let info = refuser.args.info();
    assert_eq!((info.refused, info.faults, info.lives), (1, 0, 1));
}

#[test]
fn a_trap_comes_with_the_line_that_was_logged_before_it() {
    let stand = Stand::new();
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
        let guest = stand.start(&guest, word, more);
        // A line of another call says nothing about this one.
        assert_eq!(text(stand.ask(&guest, "silence")), "");
        for (message, said) in [("trap", false), ("log", true), ("trap", false)] {
            let failed = stand.ask(&guest, message).expect_err("it traps");
            let CallError::Fault(fault) = failed else {
                panic!("{failed:?}");
            };
            assert_eq!(fault.kind.word(), word, "{fault}");
            assert_eq!(fault.to_string().contains(traceback), said, "{fault}");
        }
    }
}

#[test]
fn a_trap_restarts_the_component_with_fresh_state_and_all_that_waits() {
    let stand = Stand::new();
    let counter = stand.start(&counter(), "counter", "");
    assert_eq!(count(&stand, &counter), 1);
    for payload in [vec![255], vec![1], vec![2]] {
        let message = strowger_wasm::Message(payload.into());
        counter.actor.try_tell(message).expect("there is room");
    }
    stand.system.run_until_idle();
    assert_eq!(count(&stand, &counter), 3, "two waited, and this one");
    let info = counter.args.info();
    assert_eq!((info.faults, info.lives), (1, 2));
    let fault = info.fault.expect("it failed");
    assert_eq!((fault.phase, fault.kind.word()), (Phase::Handle, "panic"));
}

#[test]
fn who_asks_is_told_of_the_fault() {
    let stand = Stand::new();
    let guest = Guest::new().handle("unreachable");
    let guest = stand.start(&guest, "guest", "");
    let Err(CallError::Fault(fault)) = stand.ask(&guest, "x") else {
        panic!("it should have failed");
    };
    assert!(matches!(fault.kind, FaultKind::Panic { .. }), "{fault}");
}

#[test]
fn kept_state_is_given_to_the_next_life() {
    let stand = Stand::new();
    let state = "[state]\nmode = \"snapshot\"\ninterval = 2";
    let counter = stand.start(&counter(), "counter", state);
    assert_eq!(count(&stand, &counter), 1);
    trap(&stand, &counter);
    assert_eq!(count(&stand, &counter), 1, "one was not yet kept");
    assert_eq!(count(&stand, &counter), 2);
    trap(&stand, &counter);
    assert_eq!(count(&stand, &counter), 3, "two were kept");
}

#[test]
fn a_snapshot_needs_a_component_that_gives_one() {
    let stand = Stand::new();
    let mut manifest = crate::kit::manifest("echo", "");
    manifest.state.mode = StateMode::Snapshot;
    let loaded = stand.host.load_blocking(&Guest::new().octets(), manifest);
    assert!(
        loaded
            .expect_err("it gives none")
            .to_string()
            .contains("stateful")
    );
}

#[test]
fn init_may_refuse_and_say_why() {
    let stand = Stand::new();
    let guest = Guest::new()
        .data("no slice")
        .init("(call $fail (i32.const 1024) (i32.const 8))");
    let image = stand.image(&guest, "picky", "[restart]\nintensity = 0");
    let args = stand
        .host
        .component(image, &stand.directory)
        .expect("there is room");
    let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
    let top = stand.system.supervise("top", top);
    let started = stand.system.run(top.start_child(args.child()));
    assert!(started.is_err(), "it does not start");
    let fault = args.info().fault.expect("it failed");
    assert_eq!(fault.to_string(), "init: refused: no slice");
}

#[test]
fn too_many_faults_end_in_quarantine_and_take_nobody_along() {
    let stand = Stand::new();
    let neighbour = stand.start(&Guest::new(), "echo", "");
    let rule = "[restart]\nintensity = 2\nbackoff = \"1ms\"";
    let counter = stand.start(&counter(), "counter", rule);
    for _ in 0..3 {
        assert!(counter.actor.is_alive());
        trap(&stand, &counter);
        stand.system.advance(Duration::from_millis(10));
    }
    assert!(!counter.actor.is_alive());
    assert_eq!(counter.args.info().lives, 3);
    assert_eq!(text(stand.ask(&neighbour, "hello")), "hello");
}

#[test]
fn stages_are_told_in_their_order() {
    let stand = Stand::new();
    let image = stand.image(&counter(), "counter", "");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let args = stand
        .host
        .component(image, &stand.directory)
        .expect("there is room");
    let started = stand.start_args(args.on_stage(move |stage| noted.lock().push(stage)));
    trap(&stand, &started);
    stand.system.shutdown(Duration::from_secs(1));
    use Stage::{PostStart, PostStop, PreStart, PreStop};
    let first = [PreStart, PostStart, PostStop];
    let second = [PreStart, PostStart, PreStop, PostStop];
    assert_eq!(*seen.lock(), [&first[..], &second[..]].concat());
}

#[test]
fn health_is_its_own_word() {
    let stand = Stand::new();
    let well = stand.start(&Guest::new(), "well", "");
    let asked = stand
        .system
        .run(well.actor.ask(Health))
        .expect("it is answered");
    assert_eq!(asked, Ok(()));
    let ill = Guest::new()
        .data("no disk")
        .health("(call $fail (i32.const 1024) (i32.const 7))");
    let ill = stand.start(&ill, "ill", "");
    let asked = stand
        .system
        .run(ill.actor.ask(Health))
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
fn an_upgrade_hands_the_state_over_and_loses_no_message() {
    let stand = Stand::new();
    let counter = stand.start(&counter(), "counter", "");
    assert_eq!(count(&stand, &counter), 1);
    let upgrade = Upgrade::to(stand.image(&next_counter(), "counter", ""));
    for _ in 0..5 {
        counter
            .actor
            .try_tell(strowger_wasm::Message(octets("x")))
            .expect("there is room");
    }
    let upgraded = stand
        .system
        .run(counter.actor.ask(upgrade))
        .expect("it is answered");
    assert_eq!(upgraded, Ok(()));
    assert_eq!(count(&stand, &counter), 107);
    assert_eq!(counter.args.info().faults, 0);
    assert_eq!(
        stand.host.live(),
        1,
        "the room of the old version is given back"
    );
}

#[test]
fn an_upgrade_that_fails_is_rolled_back() {
    let stand = Stand::new();
    let counter = stand.start(&counter(), "counter", "");
    assert_eq!(count(&stand, &counter), 1);
    let bad = [
        next_counter().init("unreachable"),
        next_counter().init("(call $fail (i32.const 0) (i32.const 0))"),
        next_counter().health("(call $fail (i32.const 0) (i32.const 0))"),
        next_counter().pages("500"),
    ];
    for (at, guest) in bad.iter().enumerate() {
        let upgrade = Upgrade::to(stand.image(guest, "counter", ""));
        let upgraded = stand
            .system
            .run(counter.actor.ask(upgrade))
            .expect("it is answered");
        assert!(upgraded.is_err(), "{at}");
    }
    assert_eq!(count(&stand, &counter), 2, "the old version goes on");
    assert_eq!(counter.args.info().lives, 1);
    assert_eq!(stand.host.live(), 1);
}

#[test]
fn a_trap_in_the_snapshot_for_an_upgrade_ends_that_life_and_the_version_stays() {
    let stand = Stand::new();
    let old = stand.start(&counter().snapshot("unreachable"), "counter", "");
    assert_eq!(count(&stand, &old), 1);
    let digest = old.args.info().digest;
    let upgrade = Upgrade::to(stand.image(&next_counter(), "counter", ""));
    old.actor
        .try_tell(strowger_wasm::Message(octets("x")))
        .expect("there is room");
    let upgraded = stand.system.run(old.actor.ask(upgrade));
    let fault = upgraded.expect("it is answered").expect_err("it trapped");
    assert_eq!((fault.phase, fault.kind.word()), (Phase::Snapshot, "panic"));
    assert_eq!(count(&stand, &old), 1, "a life of its own");
    let info = old.args.info();
    assert_eq!((info.digest, info.faults, info.lives), (digest, 1, 2));
    assert_eq!(stand.host.live(), 1);
}

#[test]
fn a_component_of_the_end_is_gone_from_the_host() {
    let stand = Stand::new();
    let echo = stand.start(&Guest::new(), "echo", "");
    assert_eq!(stand.host.live(), 1);
    drop(echo);
    stand.directory.remove("echo");
    stand.system.shutdown(Duration::from_secs(1));
    let host = stand.host.clone();
    drop(stand);
    assert_eq!(host.live(), 0);
}
