//! Loading: the components that are accepted, and those that are refused before they run.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use strowger_wasm::host::ReserveError;
use strowger_wasm::load::Digest;
use strowger_wasm::{LoadError, Manifest};

use crate::kit::{Guest, Stand, host, manifest};

fn refused(guest: &Guest, more: &str) -> LoadError {
    host()
        .load_blocking(&guest.octets(), manifest("guest", more))
        .expect_err("it is refused")
}

/// A guest that imports everything that can be granted.
fn greedy() -> Guest {
    Guest::new()
        .import("messaging", "send")
        .import("rpc", "request")
        .import("log", "write")
        .import("clock", "now")
        .import("random", "bytes")
        .import("config", "get")
        .handle(
            "(call $send (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 64))
             (call $request (i64.const 0) (i32.const 0) (i32.const 0) (i32.const 64))
             (call $write (i32.const 0) (i32.const 0) (i32.const 0))
             (call $bytes (i32.const 0) (i32.const 64))
             (call $get (i32.const 0) (i32.const 0) (i32.const 64))
             (drop (call $now))
             (call $ok)",
        )
}

#[test]
fn imports_that_are_not_granted_are_all_named() {
    let LoadError::Denied(denied) = refused(&greedy(), "") else {
        panic!("it should have been denied");
    };
    let mut names: Vec<_> = denied.iter().map(|one| one.import.as_str()).collect();
    names.sort_unstable();
    let expected = ["clock", "config", "log", "messaging", "random", "rpc"];
    let expected = expected.map(|name| format!("strowger:component/{name}@0.1.0"));
    assert_eq!(names, expected);
    let said = LoadError::Denied(denied).to_string();
    assert!(said.contains("needs `clock = true` in [grant]"), "{said}");
}

#[test]
fn what_is_granted_is_linked() {
    let more = "[grant]\nsend = [\"a\"]\nrequest = [\"a\"]\nlog = true\nclock = true\n\
                random = true\n[config]\na = 1";
    let loaded = host().load_blocking(&greedy().octets(), manifest("guest", more));
    assert!(loaded.expect("it is granted").waits());
}

#[test]
fn an_interface_that_the_host_does_not_have_is_denied() {
    let octets = wat::parse_str("(component (import \"wasi:sockets/network@0.2.0\" (instance)))");
    let loaded = host().load_blocking(&octets.expect("it is text"), manifest("guest", ""));
    let said = loaded.expect_err("it is refused").to_string();
    assert!(said.contains("wasi:sockets/network@0.2.0"), "{said}");
    assert!(said.contains("without WASI"), "{said}");
}

/// Grants of everything that can be granted.
const ALL: &str = "[grant]\nsend = [\"*\"]\nrequest = [\"*\"]\nstream = [\"*\"]\nserve = true\n\
                   publish = [\"*\"]\nsubscribe = [\"*\"]\ntimer = true\nlog = true\nclock = true\n\
                   random = true\n[grant.kv]\n[grant.files.tmp]\npath = \"/tmp\"\n[config]\na = 1";

#[test]
fn what_is_said_to_be_grantable_is_and_nothing_else() {
    let contract = [
        "messaging",
        "rpc",
        "streams",
        "kv",
        "files",
        "log",
        "clock",
        "random",
        "config",
    ];
    let contract = contract.map(|name| format!("strowger:component/{name}@0.1.0"));
    let foreign = [
        "wasi:cli/environment@0.2.0",
        "wasi:io/streams@0.2.6",
        "wasi:http/types@0.2.0",
        "strowger:component/clock@0.2.0",
        "strowger:component/gateway@0.1.1",
        "acme:things/thing",
    ];
    let foreign = foreign.map(str::to_owned);
    let host = host();
    for (imports, grantable) in [(&contract[..], true), (&foreign[..], false)] {
        for import in imports {
            let text = format!("(component (import \"{import}\" (instance)))");
            let octets = wat::parse_str(text).expect("it is text");
            let refused = host.load_blocking(&octets, manifest("guest", ""));
            let Err(LoadError::Denied(denied)) = refused else {
                panic!("{import} is granted to nobody: {refused:?}");
            };
            assert_eq!(denied[0].is_grantable(), grantable, "{import}");
            // The message uses the key that grants it.
            let said = denied[0].needs.contains("[grant") || denied[0].needs.contains("[config]");
            assert_eq!(said, grantable, "{import}: {}", denied[0].needs);
            let granted = host.load_blocking(&octets, manifest("guest", ALL));
            let denied = matches!(granted, Err(LoadError::Denied(_)));
            assert_eq!(denied, !grantable, "{import}: {granted:?}");
        }
    }
}

#[test]
fn more_parts_than_a_pool_takes_are_named_with_the_limit() {
    let instances = |count: usize, module: &str| {
        let each = "(core instance (instantiate $m))".repeat(count);
        let text = format!("(component (core module $m {module}) {each})");
        wat::parse_str(text).expect("it is text")
    };
    let host = host();
    for (octets, limit) in [
        (instances(17, ""), "17 core module instances"),
        (instances(1, "(memory 1) (memory 1)"), "limit of 1"),
        (
            instances(1, "(table 1 funcref) (table 1 funcref)"),
            "limit of 1",
        ),
        (instances(1, "(memory 2000)"), "limit"),
        (instances(1, "(table 30000 funcref)"), "20000"),
    ] {
        let refused = host.load_blocking(&octets, manifest("guest", ""));
        let refused = refused.expect_err(limit);
        assert!(matches!(refused, LoadError::Parts { .. }), "{refused}");
        let said = refused.to_string();
        assert!(
            said.contains(limit) && !said.contains("not a valid"),
            "{said}"
        );
    }
    // A component with the permitted number of instances lacks only an export.
    let refused = host.load_blocking(&instances(16, ""), manifest("guest", ""));
    assert!(
        matches!(refused, Err(LoadError::Export { .. })),
        "{refused:?}"
    );
}

#[test]
fn as_many_instances_as_are_reserved_are_loaded_by_every_engine() {
    for instances in [1000, 10_000, 20_000] {
        let mut limits = crate::kit::limits();
        limits.instances = instances;
        limits.maps = usize::MAX;
        let host = strowger_wasm::Host::new(limits).expect("it starts");
        host.reserve().unwrap_or_else(|error| panic!("{error}"));
        for more in ["", "[limits]\nfuel = 1000000"] {
            let octets = Guest::new().octets();
            let loaded = host.load_blocking(&octets, manifest("guest", more));
            loaded.unwrap_or_else(|error| panic!("{instances}: {error}"));
        }
    }
}

#[test]
fn more_instances_than_the_machine_holds_are_refused_with_what_fits() {
    let mut limits = crate::kit::limits();
    (limits.instances, limits.waiting, limits.maps) = (1000, 0, 4999);
    let refused = strowger_wasm::Host::new(limits)
        .expect("it starts")
        .reserve();
    let Err(ReserveError::Maps { fits: 999, .. }) = refused else {
        panic!("{refused:?}");
    };
    // No process has room for a hundred thousand slots of 16 GiB each.
    let mut limits = crate::kit::limits();
    (limits.instances, limits.slot, limits.maps) = (100_000, 4 << 30, usize::MAX);
    let refused = strowger_wasm::Host::new(limits.clone())
        .expect("it starts")
        .reserve();
    let Err(ReserveError::Address { asked, fits, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(asked > 1 << 47 && fits > 0, "{refused:?}");
    limits.instances = fits;
    let host = strowger_wasm::Host::new(limits).expect("it starts");
    host.reserve()
        .unwrap_or_else(|error| panic!("{fits} are said to fit: {error}"));
}

#[test]
fn a_pinned_hash_must_match() {
    let octets = Guest::new().octets();
    let mut pinned = manifest("guest", "");
    pinned.component.sha256 = Some(Digest::of(&octets));
    let image = host()
        .load_blocking(&octets, pinned.clone())
        .expect("it matches");
    assert_eq!(image.digest(), Digest::of(&octets));
    pinned.component.sha256 = Some(Digest::of(b"other"));
    let refused = host()
        .load_blocking(&octets, pinned)
        .expect_err("it does not match");
    assert!(matches!(refused, LoadError::Digest { .. }), "{refused}");
}

#[test]
fn what_is_no_component_is_refused() {
    let host = host();
    let good = Guest::new().octets();
    let module = wat::parse_str(Guest::new().text()).expect("it is text");
    for octets in [&b""[..], b"\0asm", b"hello", &good[..good.len() / 2]] {
        let refused = host
            .load_blocking(octets, manifest("guest", ""))
            .expect_err("it is refused");
        assert!(matches!(refused, LoadError::Invalid { .. }), "{refused}");
    }
    let refused = host.load_blocking(&module, manifest("guest", ""));
    assert!(matches!(refused, Err(LoadError::Module)), "{refused:?}");
}

#[test]
fn a_component_that_lacks_an_export_is_refused() {
    let octets = wat::parse_str("(component)").expect("it is text");
    let refused = host()
        .load_blocking(&octets, manifest("guest", ""))
        .expect_err("it is refused");
    assert!(
        refused.to_string().contains("actor@0.1.0#init"),
        "{refused}"
    );
}

#[test]
fn a_component_longer_than_the_limit_is_refused_before_it_is_read() {
    let mut limits = crate::kit::limits();
    limits.component = 100;
    let host = strowger_wasm::Host::new(limits).expect("it starts");
    let refused = host
        .load_blocking(&[0; 101], Manifest::new("x"))
        .expect_err("it is refused");
    assert!(
        matches!(
            refused,
            LoadError::Size {
                octets: 101,
                max: 100
            }
        ),
        "{refused}"
    );
}

#[test]
fn ten_thousand_imports_are_refused_and_not_linked() {
    let imports: String = (0..10_000)
        .map(|n| format!("(import \"a{n}\" (func))"))
        .collect();
    let octets = wat::parse_str(format!("(component {imports})")).expect("it is text");
    let refused = host()
        .load_blocking(&octets, manifest("guest", ""))
        .expect_err("it is refused");
    assert!(matches!(
        refused,
        LoadError::Denied(_) | LoadError::Invalid { .. }
    ));
}

#[test]
fn an_inspection_shows_what_is_wanted_and_why_it_is_refused() {
    let host = host();
    let octets = greedy().octets();
    let manifest = manifest("guest", "[grant]\nclock = true");
    let seen = host.inspect(&octets, &manifest).expect("it is a component");
    let needs = |name: &str| {
        let import = format!("strowger:component/{name}@0.1.0");
        let found = seen.imports.iter().find(|(one, _)| *one == import);
        found.expect("it is imported").1
    };
    assert_eq!(needs("clock"), None);
    assert_eq!(needs("rpc"), Some("`request` in [grant]"));
    assert_eq!(seen.exports, ["strowger:component/actor@0.1.0"]);
    assert!(seen.waits);
    assert_eq!(seen.octets, octets.len());
}

#[test]
fn loading_beside_the_runtime_gives_the_same() {
    let stand = Stand::new();
    let octets = Guest::new().octets();
    let loading = stand.host.load(octets.clone(), manifest("guest", ""));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build();
    let image = runtime
        .expect("a runtime starts")
        .block_on(loading)
        .expect("it loads");
    assert_eq!(image.digest(), Digest::of(&octets));
}

#[test]
fn edited_octets_are_refused_or_run_within_their_limits() {
    let stand = Stand::new();
    let neighbour = stand.start(&Guest::new(), "neighbour", "");
    let good = crate::kit::counter().octets();
    let tight = "[limits]\ndeadline = \"20ms\"\ninit = \"20ms\"\n[restart]\nintensity = 0";
    let mut runner = TestRunner::new(Config {
        cases: 300,
        failure_persistence: None,
        ..Config::default()
    });
    let edit = (any::<proptest::sample::Index>(), any::<u8>());
    let edits = proptest::collection::vec(edit, 1..6);
    let (tried, ran) = (Cell::new(0), Cell::new(0));
    let outcome = runner.run(&edits, |edits| {
        let mut octets = good.clone();
        for (at, octet) in &edits {
            octets[at.index(good.len())] = *octet;
        }
        tried.update(|tried| tried + 1);
        let name = format!("guest{}", tried.get());
        let Ok(image) = stand.host.load_blocking(&octets, manifest(&name, tight)) else {
            return Ok(());
        };
        ran.update(|ran| ran + 1);
        let args = stand.host.component(image, &stand.directory);
        let args = args.expect("those before have ended");
        let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
        let top = stand.system.supervise(format!("top-{name}"), top);
        if stand.system.run(top.start_child(args.child())).is_ok() {
            let place = format!("/top-{name}/{name}/guest");
            let actor = stand.system.system().find(place.as_str());
            let actor =
                actor.and_then(|actor| actor.downcast::<strowger_wasm::message::ComponentMsg>());
            let call = strowger_wasm::Call(crate::kit::octets("x"));
            // Its answer does not matter here.
            if let Some(actor) = actor {
                drop(stand.system.run(actor.ask(call)));
            }
        }
        top.stop();
        stand.system.run_until_idle();
        let echoed = stand.ask(&neighbour, &name).expect("it answers");
        prop_assert_eq!(&*echoed, name.as_bytes());
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(ran.get() > 10, "{} of {}", ran.get(), tried.get());
}
