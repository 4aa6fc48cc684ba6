//! Idle components: reduced to their state, and activated by the next message.

use std::time::Duration;

use strowger_wasm::component::LifecycleStage;
use strowger_wasm::message::{CheckHealth, Upgrade};
use strowger_wasm::{Host, Message};

use crate::kit::{Guest, Started, Testbed, counter, payload, text};

const REST: &str = "[state]\nmode = \"snapshot\"\ninterval = 1000\npassivate = \"30s\"\n";

fn count(testbed: &Testbed, counter: &Started) -> u8 {
    testbed.ask(counter, "x").expect("it counts")[0]
}

fn seconds(testbed: &Testbed, seconds: u64) {
    testbed.system.advance(Duration::from_secs(seconds));
}

#[test]
fn idle_component_is_passivated_and_releases_capacity() {
    let testbed = Testbed::new();
    let counter = testbed.start(&counter(), "counter", REST);
    assert_eq!(count(&testbed, &counter), 1);
    assert_eq!(count(&testbed, &counter), 2);
    seconds(&testbed, 29);
    assert_eq!(testbed.host.live(), 1);
    seconds(&testbed, 32);
    assert_eq!(testbed.host.live(), 0);
    let info = counter.args.info();
    assert!(info.passivated && counter.actor.is_alive());
    assert_eq!((info.memory, info.incarnations), (0, 1));
    for round in 1..4 {
        assert_eq!(count(&testbed, &counter), 2 + round, "it goes on");
        assert_eq!(testbed.host.live(), 1);
        seconds(&testbed, 61);
        assert!(counter.args.info().passivated);
    }
    let info = counter.args.info();
    assert_eq!((info.incarnations, info.faults), (4, 0));
}

#[test]
fn busy_component_is_not_passivated() {
    let testbed = Testbed::new();
    let counter = testbed.start(&counter(), "counter", REST);
    for n in 1..10 {
        seconds(&testbed, 20);
        assert_eq!(count(&testbed, &counter), n);
    }
    assert_eq!(counter.args.info().incarnations, 1);
}

#[test]
fn health_checks_neither_activate_nor_keep_active() {
    let testbed = Testbed::new();
    let counter = testbed.start(&counter(), "counter", REST);
    for _ in 0..10 {
        seconds(&testbed, 20);
        let asked = testbed.system.run(counter.actor.ask(CheckHealth));
        assert_eq!(asked.expect("it is answered"), Ok(()));
    }
    assert!(counter.args.info().passivated);
}

#[test]
fn queued_messages_are_handled_in_order_after_activation() {
    let testbed = Testbed::new();
    let guest = Guest::new()
        .global("(global $seen (mut i32) (i32.const 0))")
        .handle(
            "(i32.store8 (i32.add (i32.const 512) (global.get $seen))
               (i32.load8_u (local.get $ptr)))
             (global.set $seen (i32.add (global.get $seen) (i32.const 1)))
             (call $answer (i32.const 512) (global.get $seen))",
        )
        .snapshot("(call $ok)");
    let guest = testbed.start(&guest, "guest", REST);
    seconds(&testbed, 61);
    assert!(guest.args.info().passivated);
    for text in ["a", "b", "c"] {
        let message = Message(payload(text));
        guest.actor.try_tell(message).expect("there is room");
    }
    assert_eq!(text(testbed.ask(&guest, "d")), "abcd");
}

#[test]
fn activation_waits_for_capacity() {
    let mut limits = crate::kit::limits();
    limits.instances = 1;
    let testbed = Testbed {
        host: Host::new(limits).expect("there is a thread to be had"),
        ..Testbed::new()
    };
    let first = testbed.start(&counter(), "first", REST);
    assert_eq!(count(&testbed, &first), 1);
    let image = testbed.image(&counter(), "second", REST);
    let full = testbed.host.component(image, &testbed.directory);
    assert_eq!(full.expect_err("one only").limit, "instances");
    seconds(&testbed, 61);
    let second = testbed.start(&counter(), "second", REST);
    assert_eq!(count(&testbed, &second), 1);
    testbed.tell(&first, "x");
    assert_eq!(first.args.info().calls, 1, "there is no room for it");
    seconds(&testbed, 61);
    let info = first.args.info();
    assert_eq!((info.calls, info.faults), (2, 0), "there is now");
    assert!(second.args.info().passivated);
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
fn event_activates_its_subscriber_and_is_handled_once() {
    let testbed = Testbed::new();
    let more = format!("{REST}[grant]\nsubscribe = [\"news\"]");
    let listener = testbed.start(&listener(), "listener", &more);
    let topic = testbed
        .system
        .system()
        .topic::<strowger_wasm::message::Event>("news");
    let topic = topic.expect("it is a name");
    let publish = || {
        let event = strowger_wasm::message::Event {
            topic: "news".into(),
            payload: payload("x"),
        };
        let published = topic.publish(event);
        testbed.system.run_until_idle();
        published.delivered
    };
    for round in 1..4 {
        seconds(&testbed, 61);
        assert!(listener.args.info().passivated);
        assert_eq!(publish(), 1);
        assert_eq!(publish(), 1, "one subscription, not two");
        assert_eq!(
            testbed.ask(&listener, "").expect("it answers")[0],
            2 * round
        );
    }
}

#[test]
fn component_with_a_timer_is_not_idle() {
    let testbed = Testbed::new();
    let guest = counter().import("messaging", "after").handle(
        "(if (i32.eqz (local.get $kind)) (then
           (call $after (i64.const 300000) (i32.const 0) (i32.const 0) (i32.const 64))))
         (call $ok)",
    );
    let more = format!("{REST}[grant]\ntimer = true");
    let guest = testbed.start(&guest, "guest", &more);
    testbed.tell(&guest, "x");
    seconds(&testbed, 299);
    assert!(!guest.args.info().passivated);
    seconds(&testbed, 62);
    let info = guest.args.info();
    assert!(info.passivated);
    assert_eq!(info.calls, 2, "the timer came");
}

#[test]
fn trap_in_passivation_snapshot_is_a_fault() {
    let testbed = Testbed::new();
    let counter = testbed.start(&counter().snapshot("unreachable"), "counter", REST);
    seconds(&testbed, 61);
    let info = counter.args.info();
    let fault = info.fault.expect("it failed");
    assert_eq!(fault.phase.to_string(), "snapshot");
    assert!(!info.passivated && info.incarnations > 1);
}

#[test]
fn passivated_component_is_upgraded_and_stopped() {
    let testbed = Testbed::new();
    let image = testbed.image(&counter(), "counter", REST);
    let (told, stages) = std::sync::mpsc::channel();
    let args = testbed.host.component(image, &testbed.directory);
    let args = args.expect("there is room");
    let args = args.on_stage(move |stage| {
        let _ = told.send(stage);
    });
    let counter = testbed.start_args(args);
    assert_eq!(count(&testbed, &counter), 1);
    seconds(&testbed, 61);
    let next = testbed.image(&crate::kit::counter(), "counter", REST);
    let upgraded = testbed.system.run(counter.actor.ask(Upgrade::to(next)));
    assert_eq!(upgraded.expect("it is answered"), Ok(()));
    assert_eq!(count(&testbed, &counter), 2);
    seconds(&testbed, 61);
    assert!(counter.args.info().passivated);
    testbed.system.shutdown(Duration::from_secs(1));
    let last: Vec<LifecycleStage> = stages.try_iter().collect();
    assert_eq!(
        last.last_chunk(),
        Some(&[LifecycleStage::PreStop, LifecycleStage::PostStop])
    );
    assert_eq!(counter.args.info().faults, 0);
}
