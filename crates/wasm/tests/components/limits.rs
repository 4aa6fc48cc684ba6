//! Hostile guests: each ends in its named fault, its neighbour is not affected, and with the limit
//! raised the same guest succeeds.

use strowger_wasm::fault::CallPhase;
use strowger_wasm::host::CapacityError;

use crate::kit::{Guest, Testbed, payload};

/// A hostile guest, the limit that stops it, and the limit under which it succeeds.
pub(crate) struct Attack {
    pub(crate) guest: Guest,
    pub(crate) tight: &'static str,
    pub(crate) raised: &'static str,
    pub(crate) fault: &'static str,
    pub(crate) phase: CallPhase,
}

impl Attack {
    /// Runs the guest beside a neighbour, with the tight limit and with the raised one.
    pub(crate) fn run(&self) {
        let testbed = Testbed::new();
        let neighbour = testbed.start(&Guest::new(), "neighbour", "");
        let told = |count| {
            for _ in 0..count {
                let message = strowger_wasm::Message(payload("x"));
                neighbour.actor.try_tell(message).expect("there is room");
            }
        };
        told(10);
        let attacker = self.start(&testbed, self.tight);
        told(10);
        testbed.system.run_until_idle();
        let info = attacker.info();
        let fault = info
            .fault
            .unwrap_or_else(|| panic!("{}: no fault", self.tight));
        assert_eq!(fault.kind.name(), self.fault, "{}: {fault}", self.tight);
        assert_eq!(fault.phase, self.phase, "{}", self.tight);
        assert_eq!(
            neighbour.args.info().calls,
            20,
            "the neighbour did not notice"
        );

        let testbed = Testbed::new();
        let attacker = self.start(&testbed, self.raised);
        let info = attacker.info();
        assert_eq!(info.fault, None, "{}: it goes through", self.raised);
        assert_eq!(info.incarnations, 1);
    }

    fn start(&self, testbed: &Testbed, limits: &str) -> strowger_wasm::ComponentArgs {
        let more = format!("{limits}\n[restart]\nintensity = 0\n[grant]\nsend = [\"*\"]");
        let image = testbed.image(&self.guest, "attacker", &more);
        let args = testbed
            .host
            .component(image, &testbed.directory)
            .expect("there is room");
        let key = format!("attackers-{}", testbed.host.live());
        let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
        let top = testbed.system.supervise(key.clone(), top);
        if testbed.system.run(top.start_child(args.child())).is_ok() {
            let place = format!("/{key}/attacker/guest");
            let actor = testbed
                .system
                .system()
                .find(place.as_str())
                .expect("it was started");
            let actor = actor
                .downcast::<strowger_wasm::message::ComponentMsg>()
                .expect("it is one");
            drop(actor.try_tell(strowger_wasm::Message(payload("x"))));
            testbed.system.run_until_idle();
            top.stop();
            testbed.system.run_until_idle();
        }
        args
    }
}

/// Computes for about half a second, ten times as long as the deadlines that cut it off: the thread
/// that looks at the time may have to wait for a processor itself.
pub(crate) const SPIN: &str = "(call $spin (i32.const 1000000000))";
pub(crate) const SPINS: &str = "(func $spin (param $n i32)
  (loop $again
    (local.set $n (i32.sub (local.get $n) (i32.const 1)))
    (br_if $again (local.get $n))))";

fn slow(guest: Guest, phase: CallPhase) {
    let init = if matches!(phase, CallPhase::Init | CallPhase::Instantiate) {
        "init"
    } else {
        "deadline"
    };
    let tight = match init {
        "init" => "[limits]\ninit = \"1ms\"",
        // Long enough for a call that does nothing, on a busy machine.
        _ => "[limits]\ndeadline = \"50ms\"",
    };
    let attack = Attack {
        guest: guest.more(SPINS),
        tight,
        raised: "[limits]\ndeadline = \"60s\"\ninit = \"60s\"",
        fault: "deadline",
        phase,
    };
    attack.run();
}

#[test]
fn endless_handle_is_interrupted() {
    slow(
        Guest::new().handle(&format!("{SPIN} (call $ok)")),
        CallPhase::Handle,
    );
}

#[test]
fn endless_init_is_interrupted() {
    slow(
        Guest::new().init(&format!("{SPIN} (call $ok)")),
        CallPhase::Init,
    );
}

#[test]
fn endless_stop_is_interrupted() {
    slow(Guest::new().stop(SPIN), CallPhase::Stop);
}

#[test]
fn endless_realloc_is_interrupted() {
    let realloc = format!("{SPIN} (call $bump (local.get $align) (local.get $size))");
    slow(Guest::new().realloc(&realloc), CallPhase::Handle);
}

#[test]
fn endless_post_return_is_interrupted() {
    slow(Guest::new().post(SPIN), CallPhase::Handle);
}

#[test]
fn endless_start_function_is_interrupted() {
    let start = format!("(start $begin) (func $begin {SPIN})");
    slow(Guest::new().more(&start), CallPhase::Instantiate);
}

#[test]
fn fuel_limit_ends_the_incarnation() {
    let attack = Attack {
        guest: Guest::new()
            .handle("(call $spin (i32.const 100000)) (call $ok)")
            .more(SPINS),
        tight: "[limits]\nfuel = 100000",
        raised: "[limits]\nfuel = 10000000",
        fault: "budget",
        phase: CallPhase::Handle,
    };
    attack.run();
}

#[test]
fn memory_beyond_the_limit_is_refused() {
    let grow = "(if (i32.eq (memory.grow (i32.const 100)) (i32.const -1)) (then unreachable))
                (call $ok)";
    let attack = Attack {
        guest: Guest::new().handle(grow),
        tight: "[limits]\nmemory = \"1MiB\"",
        raised: "[limits]\nmemory = \"8MiB\"",
        fault: "memory",
        phase: CallPhase::Handle,
    };
    attack.run();
}

#[test]
fn initial_memory_beyond_the_limit_fails_the_start() {
    let attack = Attack {
        guest: Guest::new().pages("100"),
        tight: "[limits]\nmemory = \"1MiB\"",
        raised: "[limits]\nmemory = \"8MiB\"",
        fault: "memory",
        phase: CallPhase::Instantiate,
    };
    attack.run();
}

#[test]
fn memory_limit_is_inclusive() {
    let grow = |pages: u32| {
        Guest::new().handle(&format!(
            "(if (i32.eq (memory.grow (i32.const {pages})) (i32.const -1)) (then unreachable))
             (call $ok)"
        ))
    };
    let testbed = Testbed::new();
    for (name, pages, faults) in [("fits", 15, 0), ("beyond", 16, 1)] {
        let guest = testbed.start(&grow(pages), name, "[limits]\nmemory = \"1MiB\"");
        testbed.tell(&guest, "x");
        assert_eq!(guest.args.info().faults, faults, "{name}");
    }
}

#[test]
fn table_beyond_the_limit_is_refused() {
    let grow = "(if (i32.eq (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))
                  (then unreachable))
                (call $ok)";
    let attack = Attack {
        guest: Guest::new().more("(table $t 1 funcref)").handle(grow),
        tight: "[limits]\ntable = 100",
        raised: "[limits]\ntable = 2000",
        fault: "memory",
        phase: CallPhase::Handle,
    };
    attack.run();
}

#[test]
fn answer_beyond_the_payload_limit_is_a_fault() {
    let attack = Attack {
        guest: Guest::new()
            .pages("4")
            .handle("(call $answer (i32.const 0) (i32.const 200000))"),
        tight: "[limits]\npayload = \"64KiB\"",
        raised: "[limits]\npayload = \"256KiB\"",
        fault: "budget",
        phase: CallPhase::Handle,
    };
    attack.run();
}

#[test]
fn sent_message_beyond_the_payload_limit_is_a_fault() {
    let attack = Attack {
        guest: Guest::new().import("messaging", "send").pages("4").handle(
            "(call $send (i64.const 0) (i32.const 0) (i32.const 200000) (i32.const 64))
                 (call $ok)",
        ),
        tight: "[limits]\npayload = \"64KiB\"",
        raised: "[limits]\npayload = \"256KiB\"",
        fault: "budget",
        phase: CallPhase::Handle,
    };
    attack.run();
}

/// Guests that violate a rule, so that no limit admits them, with their fault.
fn rule_breakers() -> Vec<(&'static str, Guest, &'static str)> {
    let result = |case: i64, ptr: i64, len: i64| {
        format!("(call $result (i32.const {case}) (i32.const {ptr}) (i32.const {len}))")
    };
    let deep = "(func $deep (param i32) (result i32)
        (i32.add (i32.const 1) (call $deep (i32.add (local.get 0) (i32.const 1)))))";
    vec![
        (
            "recursion",
            Guest::new().more(deep).handle("(call $deep (i32.const 0))"),
            "stack",
        ),
        ("unreachable", Guest::new().handle("unreachable"), "panic"),
        (
            "division",
            Guest::new().handle("(i32.div_u (i32.const 1) (i32.const 0))"),
            "bug",
        ),
        (
            "load",
            Guest::new().handle("(i32.load (i32.const -1))"),
            "bug",
        ),
        (
            "bytes outside",
            Guest::new().handle(&result(0, 65_530, 100)),
            "abi",
        ),
        ("length", Guest::new().handle(&result(0, 0, -1)), "abi"),
        ("overflow", Guest::new().handle(&result(0, -1, 2)), "abi"),
        ("discriminant", Guest::new().handle(&result(7, 0, 0)), "abi"),
        (
            "result outside",
            Guest::new().handle("(i32.const 65535)"),
            "abi",
        ),
        (
            "result misaligned",
            Guest::new().handle("(i32.const 17)"),
            "abi",
        ),
        (
            "not UTF-8",
            Guest::new().handle(&format!(
                "(i32.store8 (i32.const 1024) (i32.const 255)) {}",
                result(1, 1024, 1)
            )),
            "abi",
        ),
        (
            "lying realloc",
            Guest::new().realloc("(i32.const -8)"),
            "abi",
        ),
        (
            "realloc traps",
            Guest::new().realloc("unreachable"),
            "panic",
        ),
    ]
}

#[test]
fn contract_violations_end_in_their_fault() {
    let testbed = Testbed::new();
    let neighbour = testbed.start(&Guest::new(), "neighbour", "");
    for (at, (case, guest, expected)) in rule_breakers().into_iter().enumerate() {
        let started = testbed.start(&guest, &format!("guest{at}"), "[restart]\nintensity = 0");
        testbed.tell(&started, "0123456789");
        let fault = started
            .args
            .info()
            .fault
            .unwrap_or_else(|| panic!("{case}: no fault"));
        assert_eq!(fault.kind.name(), expected, "{case}: {fault}");
        testbed.tell(&neighbour, "x");
        assert_eq!(neighbour.args.info().calls, at as u64 + 1, "{case}");
    }
}

#[test]
fn component_beyond_host_capacity_is_refused() {
    let mut limits = crate::kit::limits();
    (limits.instances, limits.waiting, limits.maps) = (2, 1, 100);
    let testbed = Testbed {
        host: strowger_wasm::Host::new(limits).expect("it starts"),
        ..Testbed::new()
    };
    let more = "[grant]\nrequest = [\"*\"]";
    let waiting = Guest::new().import("rpc", "request").handle(
        "(call $request (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 64)) (call $ok)",
    );
    let place = |guest: &Guest| {
        testbed
            .host
            .component(testbed.image(guest, "x", more), &testbed.directory)
    };
    let refused = |full: Result<_, CapacityError>| full.map(|_: strowger_wasm::ComponentArgs| ());
    let first = place(&waiting).expect("there is room");
    let full = refused(place(&waiting)).expect_err("one stack only");
    assert_eq!((full.limit, full.max), ("waiting", 1));
    let second = place(&Guest::new()).expect("there is room");
    let full = refused(place(&Guest::new())).expect_err("two instances only");
    assert_eq!((full.limit, full.max), ("instances", 2));
    drop(first);
    let third = place(&waiting).expect("there is room again");
    assert_eq!(testbed.host.live(), 2);
    drop((second, third));
    assert_eq!(testbed.host.live(), 0);
}

#[test]
fn mappings_are_limited_separately() {
    let mut limits = crate::kit::limits();
    limits.maps = 9;
    let testbed = Testbed {
        host: strowger_wasm::Host::new(limits).expect("it starts"),
        ..Testbed::new()
    };
    let place = || {
        testbed
            .host
            .component(testbed.image(&Guest::new(), "x", ""), &testbed.directory)
    };
    let _first = place().expect("there is room");
    let full = place().expect_err("there is none");
    assert_eq!((full.limit, full.max), ("maps", 9));
    assert_eq!(testbed.host.live(), 1, "what is refused takes no room");
}
