//! The key-value store of components, and the state that their host keeps there for them.

use std::time::Duration;

use strowger_wasm::kv::KvStore;
use strowger_wasm::{Call, Host, LoadError};

use crate::kit::{Guest, Started, Testbed, counter, manifest, text};

pub(crate) const KV: &str = "[grant.kv]\nsize = \"64KiB\"\n";

/// A testbed whose host uses this store.
pub(crate) fn testbed(store: &KvStore) -> Testbed {
    let mut limits = crate::kit::limits();
    (limits.instances, limits.waiting) = (16, 8);
    Testbed {
        host: Host::with_store(limits, store.clone()).expect("there is a thread to be had"),
        ..Testbed::new()
    }
}

/// A guest that does with the key `key` what the first byte of a message says: `=` writes the rest,
/// `?` reads, `-` removes, `+` writes the rest if the key is absent, `*` lists. It traps on other
/// bytes. A refusal is answered with its number as a digit.
pub(crate) fn keeper() -> Guest {
    let refused = "(if (i32.load8_u (i32.const 64)) (then
        (i32.store8 (i32.const 80) (i32.add (i32.const 48) (i32.load8_u (i32.const 68))))
        (i32.store8 (i32.const 81) (i32.add (i32.const 48) (i32.load8_u (i32.const 65))))
        (return (call $fail (i32.add (i32.const 80) (local.get $small)) (i32.const 1)))))";
    let rest = "(i32.add (local.get $ptr) (i32.const 1))
        (i32.sub (local.get $len) (i32.const 1))";
    let key = "(i32.const 1024) (i32.const 3)";
    let code = format!(
        "(local $small i32)
         (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const {set})) (then
           (call $set {key} {rest} (i32.const 64))
           (local.set $small (i32.const 1)) {refused} (return (call $ok))))
         (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const {swap})) (then
           (call $swap {key} (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1) {rest}
             (i32.const 64))
           (local.set $small (i32.const 1)) {refused}
           (i32.store8 (i32.const 80) (i32.add (i32.const 48) (i32.load8_u (i32.const 65))))
           (return (call $answer (i32.const 80) (i32.const 1)))))
         (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const {remove})) (then
           (call $remove {key} (i32.const 64))
           (local.set $small (i32.const 1)) {refused}
           (i32.store8 (i32.const 80) (i32.add (i32.const 48) (i32.load8_u (i32.const 65))))
           (return (call $answer (i32.const 80) (i32.const 1)))))
         (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const {get})) (then
           (call $get {key} (i32.const 64)) {refused}
           (if (i32.eqz (i32.load8_u (i32.const 68))) (then
             (return (call $fail (i32.const 0) (i32.const 0)))))
           (return (call $answer (i32.load (i32.const 72)) (i32.load (i32.const 76))))))
         (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const {list})) (then
           (call $keys (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 5)
             (i32.const 64)) {refused}
           (return (call $answer (i32.load (i32.load (i32.const 68)))
             (i32.load offset=4 (i32.load (i32.const 68)))))))
         unreachable",
        set = u32::from(b'='),
        swap = u32::from(b'+'),
        remove = u32::from(b'-'),
        get = u32::from(b'?'),
        list = u32::from(b'*'),
    );
    ["get", "set", "swap", "remove", "keys"]
        .into_iter()
        .fold(Guest::new(), |guest, function| guest.import("kv", function))
        .data("key")
        .handle(&code)
}

#[test]
fn kv_values_survive_faults() {
    let testbed = Testbed::new();
    let keeper = testbed.start(&keeper(), "keeper", KV);
    assert!(testbed.ask(&keeper, "?").is_err(), "there is nothing yet");
    assert_eq!(text(testbed.ask(&keeper, "+tea")), "1");
    assert_eq!(text(testbed.ask(&keeper, "+milk")), "0");
    assert_eq!(text(testbed.ask(&keeper, "?")), "tea");
    assert!(testbed.ask(&keeper, "!").is_err(), "it traps");
    assert_eq!(text(testbed.ask(&keeper, "?")), "tea");
    assert_eq!(text(testbed.ask(&keeper, "=milk")), "");
    assert_eq!(text(testbed.ask(&keeper, "?")), "milk");
    assert_eq!(text(testbed.ask(&keeper, "*")), "key");
    assert_eq!(text(testbed.ask(&keeper, "-")), "1");
    assert_eq!(text(testbed.ask(&keeper, "-")), "0");
    assert_eq!(keeper.args.info().faults, 1);
}

#[test]
fn kv_values_are_private_to_a_component() {
    let testbed = Testbed::new();
    let one = testbed.start(&keeper(), "one", KV);
    let other = testbed.start(&keeper(), "other", KV);
    assert_eq!(text(testbed.ask(&one, "=tea")), "");
    assert!(testbed.ask(&other, "?").is_err());
    assert_eq!(text(testbed.ask(&other, "+milk")), "1");
    assert_eq!(text(testbed.ask(&one, "?")), "tea");
}

#[test]
fn component_without_the_grant_is_not_loaded() {
    let testbed = Testbed::new();
    let loaded = testbed
        .host
        .load_blocking(&keeper().encode(), manifest("keeper", ""));
    let refused = loaded.expect_err("it is not granted");
    assert!(matches!(refused, LoadError::Denied(_)), "{refused}");
    assert!(refused.to_string().contains("[grant.kv]"), "{refused}");
}

#[test]
fn value_beyond_the_quota_is_refused() {
    let value = format!("={}", "x".repeat(2000));
    for (size, fits) in [("1KiB", false), ("4KiB", true)] {
        let testbed = Testbed::new();
        let more = format!("[grant.kv]\nsize = {size:?}");
        let keeper = testbed.start(&keeper(), "keeper", &more);
        let said = testbed.ask(&keeper, &value);
        assert_eq!(said.is_ok(), fits, "{said:?}");
        if let Err(refused) = said {
            assert_eq!(refused.to_string(), "refused: 5", "limit");
        }
        assert_eq!(keeper.args.info().faults, 0);
    }
}

/// Writes to one new four-byte key after the other until it is refused, at most 100 times, and
/// answers with the number of writes.
fn scatterer() -> Guest {
    Guest::new().import("kv", "set").handle(
        "(local $n i32)
         (block $done (loop $again
           (br_if $done (i32.eq (local.get $n) (i32.const 100)))
           (i32.store (i32.const 512) (i32.const 0x30303030))
           (i32.store8 (i32.const 512)
             (i32.add (i32.const 48) (i32.and (local.get $n) (i32.const 15))))
           (i32.store8 (i32.const 513)
             (i32.add (i32.const 48) (i32.shr_u (local.get $n) (i32.const 4))))
           (call $set (i32.const 512) (i32.const 4) (i32.const 0) (i32.const 0) (i32.const 64))
           (br_if $done (i32.load8_u (i32.const 64)))
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br $again)))
         (i32.store8 (i32.const 512) (local.get $n))
         (call $answer (i32.const 512) (i32.const 1))",
    )
}

fn scattered(more: &str) -> u8 {
    let testbed = Testbed::new();
    let guest = testbed.start(&scatterer(), "guest", more);
    let neighbour = testbed.start(&keeper(), "neighbour", KV);
    let count = testbed.ask(&guest, "x").expect("it answers")[0];
    assert_eq!(text(testbed.ask(&neighbour, "+x")), "1", "others have room");
    assert_eq!(guest.args.info().faults, 0, "a refusal is no fault");
    count
}

#[test]
fn quota_holds_against_tiny_keys() {
    assert_eq!(scattered("[grant.kv]\nkeys = 10"), 10);
    // Each key counts its kind, its four bytes and 64 more: 69 of 1024.
    assert_eq!(scattered("[grant.kv]\nsize = \"1KiB\""), 14);
    assert_eq!(scattered("[grant.kv]\nrate = 20"), 20);
    assert_eq!(scattered("[grant.kv]"), 100);
}

fn count(testbed: &Testbed, counter: &Started) -> u8 {
    testbed.ask(counter, "x").expect("it counts")[0]
}

#[test]
fn stored_state_survives_the_host() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let more = format!("{KV}[state]\nmode = \"kv\"");
    for run in 0..3 {
        let store = KvStore::open(folder.path()).expect("it opens");
        let testbed = testbed(&store);
        drop(store);
        let counter = testbed.start(&counter(), "counter", &more);
        assert_eq!(count(&testbed, &counter), run * 3 + 1);
        assert_eq!(count(&testbed, &counter), run * 3 + 2);
        let fatal = Call([255].as_slice().into());
        let asked = testbed.system.run(counter.actor.ask(fatal));
        assert!(asked.expect("it is answered").is_err());
        assert_eq!(count(&testbed, &counter), run * 3 + 3);
        testbed.system.shutdown(Duration::from_secs(1));
    }
}

#[test]
fn state_beyond_the_quota_is_a_quota_fault() {
    let more = |size: &str| format!("[grant.kv]\nsize = {size:?}\n[state]\nmode = \"kv\"");
    let large = counter().snapshot(
        "(i32.store (i32.const 16) (i32.const 1024))
         (i32.store (i32.const 20) (i32.const 2000))
         (i32.const 16)",
    );
    for (size, fault) in [("1KiB", Some("quota")), ("4KiB", None)] {
        let testbed = Testbed::new();
        let counter = testbed.start(&large, "counter", &more(size));
        testbed.tell(&counter, "x");
        let seen = counter.args.info().fault;
        assert_eq!(seen.map(|fault| fault.kind.name()), fault, "{size}");
    }
}

#[test]
fn inspection_lists_the_grants() {
    let more = format!("[grant]\nsend = [\"a\", \"b*\"]\nclock = true\n{KV}");
    let host = crate::kit::host();
    let seen = host.inspect(&keeper().encode(), &manifest("keeper", &more));
    let granted = seen.expect("it is a component").grants;
    let kv = "65536 bytes, 1000 keys, 1000 writes per second";
    let expected = [("send", "a, b*"), ("clock", "yes"), ("kv", kv)];
    let expected = expected.map(|(key, text)| (key, text.to_owned()));
    assert_eq!(granted, expected);
}
