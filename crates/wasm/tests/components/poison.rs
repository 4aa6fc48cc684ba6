//! Messages that end incarnations: which are handled again, and which are given up.

use std::time::Duration;

use strowger::Event;
use strowger_wasm::{Call, CallError, Message};

use crate::kit::{Guest, Started, Testbed, counter, payload};

/// Number of messages that were reported as dead letters.
fn dead(events: &mut strowger::EventStream) -> u64 {
    let mut dead = 0;
    while let Some(event) = events.try_next() {
        if let Event::DeadLetter { count, .. } = event {
            dead += count;
        }
    }
    dead
}

/// Sends the bytes one by one, and waits until all restarts have happened.
fn send(testbed: &Testbed, to: &Started, bytes: &[u8]) {
    for byte in bytes {
        let message = Message([*byte].as_slice().into());
        to.actor.try_tell(message).expect("there is room");
    }
    testbed.system.advance(Duration::from_secs(2));
}

fn count(testbed: &Testbed, counter: &Started) -> u8 {
    let asked = testbed.system.run(counter.actor.ask(Call(payload("x"))));
    asked.expect("it is asked").expect("it counts")[0]
}

const SNAPSHOT: &str = "[state]\nmode = \"snapshot\"\n";

#[test]
fn poison_message_becomes_a_dead_letter_at_its_limit() {
    for (poison, lives) in [(1, 2), (2, 3), (3, 4)] {
        let testbed = Testbed::new();
        let more = format!("{SNAPSHOT}[restart]\npoison = {poison}");
        let counter = testbed.start(&counter(), "counter", &more);
        let mut events = testbed.system.events();
        send(&testbed, &counter, &[1, 255, 2, 3]);
        assert_eq!(dead(&mut events), 1, "once, whatever {poison} says");
        assert_eq!(count(&testbed, &counter), 4, "all others were counted once");
        let info = counter.args.info();
        assert_eq!(info.incarnations, lives);
        let given_up = u64::from(poison > 1);
        assert_eq!(info.poison, given_up, "one try is no poison");
    }
}

#[test]
fn failed_message_is_retried_in_place() {
    let testbed = Testbed::new();
    // The first incarnation traps on everything; the answer lists all messages received since, in
    // order.
    let guest = Guest::new()
        .global("(global $attempt (mut i32) (i32.const 0))")
        .global("(global $seen (mut i32) (i32.const 0))")
        .init("(global.set $attempt (local.get $attempt)) (call $ok)")
        .handle(
            "(if (i32.eqz (global.get $attempt)) (then unreachable))
             (i32.store8 (i32.add (i32.const 512) (global.get $seen))
               (i32.load8_u (local.get $ptr)))
             (global.set $seen (i32.add (global.get $seen) (i32.const 1)))
             (call $answer (i32.const 512) (global.get $seen))",
        );
    let guest = testbed.start(&guest, "guest", "[restart]\npoison = 2");
    let mut events = testbed.system.events();
    send(&testbed, &guest, b"abc");
    let seen = testbed.system.run(guest.actor.ask(Call(payload("d"))));
    let seen = seen.expect("it is asked").expect("it answers");
    assert_eq!(&*seen, b"abcd");
    assert_eq!(dead(&mut events), 0);
    assert_eq!(guest.args.info().poison, 0);
}

/// A counter that takes batches, and traps in them as in single messages.
fn batched() -> Guest {
    counter().batch(
        "(local $at i32)
         (block $done (loop $next
           (br_if $done (i32.eqz (local.get $count)))
           (local.set $at (i32.load (i32.add (local.get $ptr) (i32.const 16))))
           (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 255)) (then unreachable))
           (global.set $count (i32.add (global.get $count) (i32.const 1)))
           (local.set $ptr (i32.add (local.get $ptr) (i32.const 24)))
           (local.set $count (i32.sub (local.get $count) (i32.const 1)))
           (br $next)))
         (call $ok)",
    )
}

#[test]
fn only_the_poison_of_a_batch_is_given_up() {
    let testbed = Testbed::new();
    let more = format!("{SNAPSHOT}[restart]\npoison = 2\n[run]\nbatch = 4");
    let counter = testbed.start(&batched(), "counter", &more);
    let mut events = testbed.system.events();
    send(&testbed, &counter, &[1, 2, 255, 4, 5]);
    assert_eq!(dead(&mut events), 1);
    assert_eq!(count(&testbed, &counter), 5, "four, and this one");
    let info = counter.args.info();
    assert_eq!((info.incarnations, info.poison), (3, 1));
}

#[test]
fn lost_batch_is_reported_in_full() {
    let testbed = Testbed::new();
    let more = format!("{SNAPSHOT}[run]\nbatch = 4");
    let counter = testbed.start(&batched(), "counter", &more);
    let mut events = testbed.system.events();
    send(&testbed, &counter, &[1, 2, 255, 4, 5]);
    assert_eq!(dead(&mut events), 4);
    assert_eq!(count(&testbed, &counter), 2, "the fifth, and this one");
}

#[test]
fn request_after_a_failed_batch_is_answered_after_restart() {
    let testbed = Testbed::new();
    let counter = testbed.start(&batched(), "counter", "[run]\nbatch = 4");
    for byte in [1, 255] {
        let message = Message([byte].as_slice().into());
        counter.actor.try_tell(message).expect("there is room");
    }
    assert_eq!(count(&testbed, &counter), 1);
    assert_eq!(counter.args.info().incarnations, 2);
}

#[test]
fn failed_request_is_answered_and_not_retried() {
    let testbed = Testbed::new();
    let counter = testbed.start(&counter(), "counter", "[restart]\npoison = 3");
    let call = Call([255].as_slice().into());
    let asked = testbed.system.run(counter.actor.ask(call));
    let fault = asked.expect("it is answered").expect_err("it failed");
    assert!(matches!(fault, CallError::Fault(_)), "{fault}");
    testbed.system.advance(Duration::from_secs(1));
    let info = counter.args.info();
    assert_eq!((info.incarnations, info.poison), (2, 0));
}

#[test]
fn quarantine_reports_every_lost_message() {
    let testbed = Testbed::new();
    let rule = "[restart]\nintensity = 2\npoison = 2\nbackoff = \"1ms\"";
    let guest = testbed.start(&Guest::new().handle("unreachable"), "guest", rule);
    let mut events = testbed.system.events();
    send(&testbed, &guest, &[1, 2, 3, 4]);
    assert!(!guest.actor.is_alive());
    assert_eq!(dead(&mut events), 4);
    assert_eq!(guest.args.info().incarnations, 3);
}
