//! More hostile guests: guests that need others, and guests that leave something behind.

use std::time::Duration;

use strowger_wasm::fault::CallPhase;
use strowger_wasm::{Host, LoadError};

use crate::kit::{Guest, Testbed, counter, manifest, payload};
use crate::limits::{Attack, SPIN, SPINS};

#[test]
fn endless_snapshot_is_interrupted() {
    let attack = Attack {
        guest: counter()
            .more(SPINS)
            .snapshot(&format!("{SPIN} (call $ok)")),
        // Long enough for a call that does nothing.
        tight: "[state]\nmode = \"snapshot\"\n[limits]\ndeadline = \"50ms\"",
        raised: "[state]\nmode = \"snapshot\"\n[limits]\ndeadline = \"60s\"",
        fault: "deadline",
        phase: CallPhase::Snapshot,
    };
    attack.run();
}

#[test]
fn misaligned_result_pointer_is_an_abi_fault() {
    let testbed = Testbed::new();
    let guest = Guest::new().batch("(call $ok)").realloc(
        "(i32.add (i32.const 1)
               (call $bump (i32.const 8) (i32.add (local.get $size) (i32.const 8))))",
    );
    let guest = testbed.start(
        &guest,
        "guest",
        "[run]\nbatch = 2\n[restart]\nintensity = 0",
    );
    testbed.tell(&guest, "x");
    let fault = guest.args.info().fault.expect("it failed");
    assert_eq!((fault.phase, fault.kind.name()), (CallPhase::Batch, "abi"));
}

#[test]
fn overlapping_result_is_read_as_is() {
    let testbed = Testbed::new();
    let guest = Guest::new().handle("(call $answer (i32.const 16) (i32.const 12))");
    let guest = testbed.start(&guest, "guest", "");
    let answer = testbed.ask(&guest, "x").expect("it is within its memory");
    assert_eq!(*answer, [0, 0, 0, 0, 16, 0, 0, 0, 12, 0, 0, 0]);
}

/// A guest that searches its memory, whose slot another guest used before, for leftovers.
fn reader() -> Guest {
    Guest::new().pages("4").handle(
        "(local $at i32) (local $found i64)
         (local.set $at (i32.const 8192))
         (loop $next
           (local.set $found (i64.or (local.get $found) (i64.load (local.get $at))))
           (local.set $at (i32.add (local.get $at) (i32.const 8)))
           (br_if $next (i32.lt_u (local.get $at) (i32.const 262144))))
         (i32.store8 (i32.const 512) (i64.ne (local.get $found) (i64.const 0)))
         (call $answer (i32.const 512) (i32.const 1))",
    )
}

#[test]
fn memory_is_zeroed_after_a_fault() {
    let testbed = Testbed::new();
    let scribble = "(memory.fill (i32.const 8192) (i32.const 170) (i32.const 253952))";
    let dirty = Guest::new()
        .pages("4")
        .handle(&format!("{scribble} unreachable"));
    let honest = Guest::new()
        .pages("4")
        .handle(&format!("{scribble} (call $ok)"));
    let rule = "[restart]\nintensity = 1000\nbackoff = \"1us\"\nbackoff_max = \"1us\"";
    let guests = [
        testbed.start(&dirty, "dirty", rule),
        testbed.start(&honest, "honest", ""),
    ];
    // More incarnations than the pool has slots.
    for _ in 0..40 {
        for guest in &guests {
            testbed.tell(guest, "");
            testbed.system.advance(Duration::from_millis(1));
        }
    }
    testbed.system.advance(Duration::from_secs(1));
    assert_eq!(guests[0].args.info().faults, 40);
    for n in 0..14 {
        let reader = testbed.start(&reader(), &format!("reader{n}"), "");
        assert_eq!(*testbed.ask(&reader, "").expect("it answers"), [0], "{n}");
    }
}

/// Number of calls that a guest which calls itself, directly or by way of others, receives before
/// its limits end it; a neighbour is served meanwhile.
fn rounds(guests: &[(&str, Guest)], more: &str) -> u64 {
    let testbed = Testbed::new();
    let neighbour = testbed.start(&Guest::new(), "neighbour", "");
    let grants = "[grant]\nsend = [\"*\"]\npublish = [\"*\"]\nsubscribe = [\"*\"]\n";
    let started: Vec<_> = guests
        .iter()
        .map(|(name, guest)| testbed.start(guest, name, &format!("{grants}{more}")))
        .collect();
    for told in 1..6 {
        for to in [&neighbour, &started[0]] {
            let message = strowger_wasm::Message(payload("x"));
            to.actor.try_tell(message).expect("there is room");
        }
        testbed.system.run_until_idle();
        assert_eq!(neighbour.args.info().calls, told, "it is served");
    }
    let infos = started.iter().map(|one| one.args.info());
    infos
        .map(|info| {
            assert_eq!(info.faults, 0, "a refusal is no fault");
            info.calls
        })
        .sum()
}

/// A guest that calls the actor whose name is its data, for everything that it receives.
fn caller(name: &str, function: &str, times: usize) -> Guest {
    let call =
        format!("(call ${function} (global.get $to) (i32.const 0) (i32.const 1) (i32.const 64))");
    Guest::new()
        .import("messaging", "resolve")
        .import("messaging", function)
        .global("(global $to (mut i64) (i64.const 0))")
        .data(name)
        .handle(&format!(
            "(if (i64.eqz (global.get $to)) (then
               (call $resolve (i32.const 1024) (i32.const {}) (i32.const 64))
               (if (i32.load8_u (i32.const 64)) (then unreachable))
               (global.set $to (i64.load (i32.const 72)))))
             {} (call $ok)",
            name.len(),
            call.repeat(times)
        ))
}

#[test]
fn sending_to_itself_is_rate_limited() {
    let itself = [("itself", caller("itself", "send", 2))];
    assert_eq!(rounds(&itself, "[limits]\nsend_rate = 20"), 5 + 20);
    assert_eq!(rounds(&itself, "[limits]\nsend_rate = 200"), 5 + 200);
}

#[test]
fn asking_itself_is_rate_limited() {
    // Each of them is an ask and an answer.
    let itself = [("itself", caller("itself", "ask", 1))];
    assert_eq!(rounds(&itself, "[limits]\nsend_rate = 20"), 5 + 2 * 20);
    assert_eq!(rounds(&itself, "[limits]\nsend_rate = 200"), 5 + 2 * 200);
}

#[test]
fn two_components_asking_each_other_are_rate_limited() {
    let both = [
        ("one", caller("other", "ask", 1)),
        ("other", caller("one", "ask", 1)),
    ];
    assert_eq!(rounds(&both, "[limits]\nsend_rate = 20"), 5 + 4 * 20);
    assert_eq!(rounds(&both, "[limits]\nsend_rate = 200"), 5 + 4 * 200);
}

/// A guest that publishes everything it receives on one topic, and subscribes to another.
fn echo(topics: &str) -> Guest {
    Guest::new()
        .import("messaging", "subscribe")
        .import("messaging", "topic")
        .import("messaging", "publish")
        .global("(global $to (mut i64) (i64.const 0))")
        .data(topics)
        .init(
            "(call $subscribe (i32.const 1024) (i32.const 1) (i32.const 64))
             (if (i32.load8_u (i32.const 64)) (then unreachable))
             (call $topic (i32.const 1025) (i32.const 1) (i32.const 64))
             (if (i32.load8_u (i32.const 64)) (then unreachable))
             (global.set $to (i64.load (i32.const 72)))
             (call $ok)",
        )
        .handle(
            "(call $publish (global.get $to) (i32.const 0) (i32.const 1) (i32.const 64))
             (call $ok)",
        )
}

#[test]
fn topic_cycle_is_rate_limited() {
    let both = [("one", echo("ab")), ("other", echo("ba"))];
    assert_eq!(rounds(&both, "[limits]\nsend_rate = 20"), 5 + 2 * 20);
    assert_eq!(rounds(&both, "[limits]\nsend_rate = 200"), 5 + 2 * 200);
}

/// 50 MB of code that does nothing, in one function.
fn nops() -> Vec<u8> {
    fn leb(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 128 {
            bytes.push(u8::try_from(number % 128).expect("it is less") | 128);
            number /= 128;
        }
        bytes.push(u8::try_from(number).expect("it is less"));
        bytes
    }
    let section = |id: u8, content: &[u8]| [&[id][..], &leb(content.len()), content].concat();
    let body = [&[0][..], &vec![1; 50_000_000], &[11]].concat();
    let code = [&[1][..], &leb(body.len()), &body].concat();
    let module = [
        b"\0asm\x01\0\0\0",
        &section(1, &[1, 0x60, 0, 0])[..],
        &section(3, &[1, 0]),
        &section(10, &code),
    ]
    .concat();
    [&b"\0asm\x0d\0\x01\0"[..], &section(1, &module)].concat()
}

#[test]
fn oversized_component_is_refused_before_parsing() {
    let bytes = nops();
    for (max, by_size) in [(32 << 20, true), (64 << 20, false)] {
        let mut limits = crate::kit::limits();
        limits.component = max;
        let host = Host::new(limits).expect("there is a thread to be had");
        let refused = host.load_blocking(&bytes, manifest("nops", ""));
        let refused = refused.expect_err("no function is as long");
        assert_eq!(
            matches!(refused, LoadError::Size { .. }),
            by_size,
            "{refused}"
        );
        assert_eq!(host.info().compiled, 0);
    }
}

#[test]
fn compilation_has_a_time_limit() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("a runtime starts");
    for (limit, fits) in [
        (Duration::from_nanos(1), false),
        (Duration::from_secs(600), true),
    ] {
        let mut limits = crate::kit::limits();
        limits.compilation = limit;
        let host = Host::new(limits).expect("there is a thread to be had");
        let loading = host.load(Guest::new().encode(), manifest("guest", ""));
        let loaded = runtime.block_on(loading);
        let slow = matches!(loaded, Err(LoadError::Slow { .. }));
        assert_eq!((slow, loaded.is_ok()), (!fits, fits));
    }
}
