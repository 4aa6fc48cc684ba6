//! Idle components: reduced to their state, and activated by the next message.

use std::time::Duration;

use strowger_wasm::component::Stage;
use strowger_wasm::message::{Health, Upgrade};
use strowger_wasm::{Host, Message};

use crate::kit::{Guest, Stand, Started, counter, octets, text};

const REST: &str = "[state]\nmode = \"snapshot\"\ninterval = 1000\npassivate = \"30s\"\n";

fn count(stand: &Stand, counter: &Started) -> u8 {
    stand.ask(counter, "x").expect("it counts")[0]
}

fn seconds(stand: &Stand, seconds: u64) {
    stand.system.advance(Duration::from_secs(seconds));
}

#[test]
fn a_component_without_work_is_its_state_and_takes_no_room() {
    let stand = Stand::new();
    let counter = stand.start(&counter(), "counter", REST);
    assert_eq!(count(&stand, &counter), 1);
    assert_eq!(count(&stand, &counter), 2);
    seconds(&stand, 29);
    assert_eq!(stand.host.live(), 1);
    seconds(&stand, 32);
    assert_eq!(stand.host.live(), 0);
    let info = counter.args.info();
    assert!(info.passive && counter.actor.is_alive());
    assert_eq!((info.memory, info.lives), (0, 1));
    for round in 1..4 {
        assert_eq!(count(&stand, &counter), 2 + round, "it goes on");
        assert_eq!(stand.host.live(), 1);
        seconds(&stand, 61);
        assert!(counter.args.info().passive);
    }
    let info = counter.args.info();
    assert_eq!((info.lives, info.faults), (4, 0));
}

#[test]
fn one_with_work_stays() {
    let stand = Stand::new();
    let counter = stand.start(&counter(), "counter", REST);
    for n in 1..10 {
        seconds(&stand, 20);
        assert_eq!(count(&stand, &counter), n);
    }
    assert_eq!(counter.args.info().lives, 1);
}

#[test]
fn looking_after_its_health_does_not_wake_it_nor_keep_it() {
    let stand = Stand::new();
    let counter = stand.start(&counter(), "counter", REST);
    for _ in 0..10 {
        seconds(&stand, 20);
        let asked = stand.system.run(counter.actor.ask(Health));
        assert_eq!(asked.expect("it is answered"), Ok(()));
    }
    assert!(counter.args.info().passive);
}

#[test]
fn all_that_came_is_handled_in_order_when_it_wakes() {
    let stand = Stand::new();
    let guest = Guest::new()
        .global("(global $seen (mut i32) (i32.const 0))")
        .handle(
            "(i32.store8 (i32.add (i32.const 512) (global.get $seen))
               (i32.load8_u (local.get $ptr)))
             (global.set $seen (i32.add (global.get $seen) (i32.const 1)))
             (call $answer (i32.const 512) (global.get $seen))",
        )
        .snapshot("(call $ok)");
    let guest = stand.start(&guest, "guest", REST);
    seconds(&stand, 61);
    assert!(guest.args.info().passive);
    for text in ["a", "b", "c"] {
        let message = Message(octets(text));
        guest.actor.try_tell(message).expect("there is room");
    }
    assert_eq!(text(stand.ask(&guest, "d")), "abcd");
}

#[test]
fn a_sleeper_s_room_is_another_s_and_what_comes_for_it_waits() {
    let mut limits = crate::kit::limits();
    limits.instances = 1;
    let stand = Stand {
        host: Host::new(limits).expect("there is a thread to be had"),
        ..Stand::new()
    };
    let first = stand.start(&counter(), "first", REST);
    assert_eq!(count(&stand, &first), 1);
    let image = stand.image(&counter(), "second", REST);
    let full = stand.host.component(image, &stand.directory);
    assert_eq!(full.expect_err("one only").limit, "instances");
    seconds(&stand, 61);
    let second = stand.start(&counter(), "second", REST);
    assert_eq!(count(&stand, &second), 1);
    stand.tell(&first, "x");
    assert_eq!(first.args.info().calls, 1, "there is no room for it");
    seconds(&stand, 61);
    let info = first.args.info();
    assert_eq!((info.calls, info.faults), (2, 0), "there is now");
    assert!(second.args.info().passive);
}

/// A guest that records the events of a subscription, as its state and its answer.
fn listener() -> Guest {
    Guest::new()
        .import("messaging", "subscribe")
        .global("(global $heard (mut i32) (i32.const 0))")
        .data("news")
        .init(
            "(if (local.get $some) (then
               (global.set $heard (i32.load8_u (local.get $ptr)))))
             (call $subscribe (i32.const 1024) (i32.const 4) (i32.const 64))
             (if (i32.load8_u (i32.const 64)) (then unreachable))
             (call $ok)",
        )
        .handle(
            "(if (i32.eq (local.get $kind) (i32.const 4)) (then
               (global.set $heard (i32.add (global.get $heard) (i32.const 1)))))
             (i32.store8 (i32.const 512) (global.get $heard))
             (call $answer (i32.const 512) (i32.const 1))",
        )
        .snapshot(
            "(i32.store8 (i32.const 520) (global.get $heard))
             (i32.store (i32.const 16) (i32.const 520))
             (i32.store (i32.const 20) (i32.const 1))
             (i32.const 16)",
        )
}

#[test]
fn an_event_wakes_who_subscribed_and_is_handled_once() {
    let stand = Stand::new();
    let more = format!("{REST}[grant]\nsubscribe = [\"news\"]");
    let listener = stand.start(&listener(), "listener", &more);
    let topic = stand
        .system
        .system()
        .topic::<strowger_wasm::message::Event>("news");
    let topic = topic.expect("it is a name");
    let publish = || {
        let event = strowger_wasm::message::Event {
            topic: "news".into(),
            payload: octets("x"),
        };
        let published = topic.publish(event);
        stand.system.run_until_idle();
        published.delivered
    };
    for round in 1..4 {
        seconds(&stand, 61);
        assert!(listener.args.info().passive);
        assert_eq!(publish(), 1);
        assert_eq!(publish(), 1, "one subscription, not two");
        assert_eq!(stand.ask(&listener, "").expect("it answers")[0], 2 * round);
    }
}

#[test]
fn who_waits_for_a_timer_is_not_idle() {
    let stand = Stand::new();
    let guest = counter().import("messaging", "after").handle(
        "(if (i32.eqz (local.get $kind)) (then
           (call $after (i64.const 300000) (i32.const 0) (i32.const 0) (i32.const 64))))
         (call $ok)",
    );
    let more = format!("{REST}[grant]\ntimer = true");
    let guest = stand.start(&guest, "guest", &more);
    stand.tell(&guest, "x");
    seconds(&stand, 299);
    assert!(!guest.args.info().passive);
    seconds(&stand, 62);
    let info = guest.args.info();
    assert!(info.passive);
    assert_eq!(info.calls, 2, "the timer came");
}

#[test]
fn a_trap_in_the_snapshot_is_a_fault_as_every_trap() {
    let stand = Stand::new();
    let counter = stand.start(&counter().snapshot("unreachable"), "counter", REST);
    seconds(&stand, 61);
    let info = counter.args.info();
    let fault = info.fault.expect("it failed");
    assert_eq!(fault.phase.to_string(), "snapshot");
    assert!(!info.passive && info.lives > 1);
}

#[test]
fn a_sleeper_is_upgraded_and_ends_in_order() {
    let stand = Stand::new();
    let image = stand.image(&counter(), "counter", REST);
    let (told, stages) = std::sync::mpsc::channel();
    let args = stand.host.component(image, &stand.directory);
    let args = args.expect("there is room");
    let args = args.on_stage(move |stage| {
        let _ = told.send(stage);
    });
    let counter = stand.start_args(args);
    assert_eq!(count(&stand, &counter), 1);
    seconds(&stand, 61);
    let next = stand.image(&crate::kit::counter(), "counter", REST);
    let upgraded = stand.system.run(counter.actor.ask(Upgrade::to(next)));
    assert_eq!(upgraded.expect("it is answered"), Ok(()));
    assert_eq!(count(&stand, &counter), 2);
    seconds(&stand, 61);
    assert!(counter.args.info().passive);
    stand.system.shutdown(Duration::from_secs(1));
    let last: Vec<Stage> = stages.try_iter().collect();
    assert_eq!(last.last_chunk(), Some(&[Stage::PreStop, Stage::PostStop]));
    assert_eq!(counter.args.info().faults, 0);
}
