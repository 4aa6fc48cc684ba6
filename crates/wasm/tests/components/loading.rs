//! Loading: the components that are accepted, and those that are refused before they run.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use strowger_wasm::host::ReserveError;
use strowger_wasm::load::Digest;
use strowger_wasm::{LoadError, Manifest};

use crate::kit::{Guest, Testbed, host, manifest};

fn refused(guest: &Guest, more: &str) -> LoadError {
    host()
        .load_blocking(&guest.encode(), manifest("guest", more))
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
fn all_denied_imports_are_reported() {
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
fn granted_imports_are_linked() {
    let more = "[grant]\nsend = [\"a\"]\nrequest = [\"a\"]\nlog = true\nclock = true\n\
                random = true\n[config]\na = 1";
    let loaded = host().load_blocking(&greedy().encode(), manifest("guest", more));
    assert!(loaded.expect("it is granted").waits());
}

#[test]
fn unknown_interface_is_denied() {
    let bytes = wat::parse_str("(component (import \"wasi:sockets/network@0.2.0\" (instance)))");
    let loaded = host().load_blocking(&bytes.expect("it is text"), manifest("guest", ""));
    let said = loaded.expect_err("it is refused").to_string();
    assert!(said.contains("wasi:sockets/network@0.2.0"), "{said}");
    assert!(said.contains("without WASI"), "{said}");
}

/// Grants of everything that can be granted.
const ALL: &str = "[grant]\nsend = [\"*\"]\nrequest = [\"*\"]\nstream = [\"*\"]\nserve = true\n\
                   publish = [\"*\"]\nsubscribe = [\"*\"]\ntimer = true\nlog = true\nclock = true\n\
                   random = true\n[grant.kv]\n[grant.files.tmp]\npath = \"/tmp\"\n[config]\na = 1";

#[test]
fn is_grantable_matches_the_loader() {
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
            let bytes = wat::parse_str(text).expect("it is text");
            let refused = host.load_blocking(&bytes, manifest("guest", ""));
            let Err(LoadError::Denied(denied)) = refused else {
                panic!("{import} is granted to nobody: {refused:?}");
            };
            assert_eq!(denied[0].is_grantable(), grantable, "{import}");
            // The message uses the key that grants it.
            let said = denied[0].needs.contains("[grant") || denied[0].needs.contains("[config]");
            assert_eq!(said, grantable, "{import}: {}", denied[0].needs);
            let granted = host.load_blocking(&bytes, manifest("guest", ALL));
            let denied = matches!(granted, Err(LoadError::Denied(_)));
            assert_eq!(denied, !grantable, "{import}: {granted:?}");
        }
    }
}

#[test]
fn too_many_parts_are_reported_with_the_limit() {
    let instances = |count: usize, module: &str| {
        let each = "(core instance (instantiate $m))".repeat(count);
        let text = format!("(component (core module $m {module}) {each})");
        wat::parse_str(text).expect("it is text")
    };
    let host = host();
    for (bytes, limit) in [
        (instances(17, ""), "17 core module instances"),
        (instances(1, "(memory 1) (memory 1)"), "limit of 1"),
        (
            instances(1, "(table 1 funcref) (table 1 funcref)"),
            "limit of 1",
        ),
        (instances(1, "(memory 2000)"), "limit"),
        (instances(1, "(table 30000 funcref)"), "20000"),
    ] {
        let refused = host.load_blocking(&bytes, manifest("guest", ""));
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
fn reserved_instances_load_on_every_engine() {
    for instances in [1000, 10_000, 20_000] {
        let mut limits = crate::kit::limits();
        limits.instances = instances;
        limits.maps = usize::MAX;
        let host = strowger_wasm::Host::new(limits).expect("it starts");
        host.reserve().unwrap_or_else(|error| panic!("{error}"));
        for more in ["", "[limits]\nfuel = 1000000"] {
            let bytes = Guest::new().encode();
            let loaded = host.load_blocking(&bytes, manifest("guest", more));
            loaded.unwrap_or_else(|error| panic!("{instances}: {error}"));
        }
    }
}

#[test]
fn too_many_instances_are_refused_with_the_number_that_fits() {
    let mut limits = crate::kit::limits();
    (limits.instances, limits.waiting, limits.maps) = (1000, 0, 4999);
    let refused = strowger_wasm::Host::new(limits)
        .expect("it starts")
        .reserve();
    let Err(ReserveError::Maps {
        max_instances: 999, ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    // No process has room for a hundred thousand slots of 16 GiB each.
    let mut limits = crate::kit::limits();
    (limits.instances, limits.slot, limits.maps) = (100_000, 4 << 30, usize::MAX);
    let refused = strowger_wasm::Host::new(limits.clone())
        .expect("it starts")
        .reserve();
    let Err(ReserveError::Address {
        requested,
        max_instances,
        ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert!(requested > 1 << 47 && max_instances > 0, "{refused:?}");
    limits.instances = max_instances;
    let host = strowger_wasm::Host::new(limits).expect("it starts");
    host.reserve()
        .unwrap_or_else(|error| panic!("{max_instances} should fit: {error}"));
}

#[test]
fn pinned_hash_must_match() {
    let bytes = Guest::new().encode();
    let mut pinned = manifest("guest", "");
    pinned.component.sha256 = Some(Digest::of(&bytes));
    let image = host()
        .load_blocking(&bytes, pinned.clone())
        .expect("it matches");
    assert_eq!(image.digest(), Digest::of(&bytes));
    pinned.component.sha256 = Some(Digest::of(b"other"));
    let refused = host()
        .load_blocking(&bytes, pinned)
        .expect_err("it does not match");
    assert!(matches!(refused, LoadError::Digest { .. }), "{refused}");
}

#[test]
fn invalid_components_are_refused() {
    let host = host();
    let good = Guest::new().encode();
    let module = wat::parse_str(Guest::new().text()).expect("it is text");
    for bytes in [&b""[..], b"\0asm", b"hello", &good[..good.len() / 2]] {
        let refused = host
            .load_blocking(bytes, manifest("guest", ""))
            .expect_err("it is refused");
        assert!(matches!(refused, LoadError::Invalid { .. }), "{refused}");
    }
    let refused = host.load_blocking(&module, manifest("guest", ""));
    assert!(matches!(refused, Err(LoadError::Module)), "{refused:?}");
}

#[test]
fn missing_export_is_refused() {
    let bytes = wat::parse_str("(component)").expect("it is text");
    let refused = host()
        .load_blocking(&bytes, manifest("guest", ""))
        .expect_err("it is refused");
    assert!(
        refused.to_string().contains("actor@0.1.0#init"),
        "{refused}"
    );
}

#[test]
fn component_size_is_checked_before_parsing() {
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
                size: 101,
                max: 100
            }
        ),
        "{refused}"
    );
}

#[test]
fn ten_thousand_unknown_imports_are_refused() {
    let imports: String = (0..10_000)
        .map(|n| format!("(import \"a{n}\" (func))"))
        .collect();
    let bytes = wat::parse_str(format!("(component {imports})")).expect("it is text");
    let refused = host()
        .load_blocking(&bytes, manifest("guest", ""))
        .expect_err("it is refused");
    assert!(matches!(
        refused,
        LoadError::Denied(_) | LoadError::Invalid { .. }
    ));
}

#[test]
fn inspection_shows_imports_and_denials() {
    let host = host();
    let bytes = greedy().encode();
    let manifest = manifest("guest", "[grant]\nclock = true");
    let seen = host.inspect(&bytes, &manifest).expect("it is a component");
    let needs = |name: &str| {
        let import = format!("strowger:component/{name}@0.1.0");
        let found = seen.imports.iter().find(|(one, _)| *one == import);
        found.expect("it is imported").1
    };
    assert_eq!(needs("clock"), None);
    assert_eq!(needs("rpc"), Some("`request` in [grant]"));
    assert_eq!(seen.exports, ["strowger:component/actor@0.1.0"]);
    assert!(seen.waits);
    assert_eq!(seen.size, bytes.len());
}

#[test]
fn async_load_equals_blocking_load() {
    let testbed = Testbed::new();
    let bytes = Guest::new().encode();
    let loading = testbed.host.load(bytes.clone(), manifest("guest", ""));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build();
    let image = runtime
        .expect("a runtime starts")
        .block_on(loading)
        .expect("it loads");
    assert_eq!(image.digest(), Digest::of(&bytes));
}

#[test]
fn edited_bytes_are_refused_or_run_within_limits() {
    let testbed = Testbed::new();
    let neighbour = testbed.start(&Guest::new(), "neighbour", "");
    let good = crate::kit::counter().encode();
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
        let mut bytes = good.clone();
        for (at, byte) in &edits {
            bytes[at.index(good.len())] = *byte;
        }
        tried.update(|tried| tried + 1);
        let name = format!("guest{}", tried.get());
        let Ok(image) = testbed.host.load_blocking(&bytes, manifest(&name, tight)) else {
            return Ok(());
        };
        ran.update(|ran| ran + 1);
        let args = testbed.host.component(image, &testbed.directory);
        let args = args.expect("those before have ended");
        let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
        let top = testbed.system.supervise(format!("top-{name}"), top);
        if testbed.system.run(top.start_child(args.child())).is_ok() {
            let place = format!("/top-{name}/{name}/guest");
            let actor = testbed.system.system().find(place.as_str());
            let actor =
                actor.and_then(|actor| actor.downcast::<strowger_wasm::message::ComponentMsg>());
            let call = strowger_wasm::Call(crate::kit::payload("x"));
            // Its answer does not matter here.
            if let Some(actor) = actor {
                drop(testbed.system.run(actor.ask(call)));
            }
        }
        top.stop();
        testbed.system.run_until_idle();
        let echoed = testbed.ask(&neighbour, &name).expect("it answers");
        prop_assert_eq!(&*echoed, name.as_bytes());
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(ran.get() > 10, "{} of {}", ran.get(), tried.get());
}
