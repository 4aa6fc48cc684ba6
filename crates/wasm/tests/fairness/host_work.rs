//! Host operations that take long, beside a neighbour on the only worker.
//!
//! If an operation held the worker, the neighbour would not run before its end. The bounds compare
//! the delay of the neighbour with the duration of the operation, and the best of a few attempts
//! counts, so that a busy machine matters little.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strowger_wasm::HostLimits;
use strowger_wasm::kv::KvStore;
use tempfile::TempDir;

use crate::hogs::assert_bearable;
use crate::kit::{Guest, limits};
use crate::node::{DeployedComponent, Node, alone, cores, on_some_workers, run};

/// As many files as a folder may have by default, with some room.
const FILES: usize = 9900;
/// Part of an operation for which a neighbour may be late at most.
const HALF: f64 = 0.5;

const WRITE: &str = "(call $write (i32.const 1200) (i32.const 4) (i32.const 1204) (i32.const 4)
    (i64.const 0) (i32.const 1024) (i32.const 8) (i32.const 64))";
const REMOVE: &str = "(call $remove (i32.const 1200) (i32.const 4) (i32.const 1204) (i32.const 4)
    (i32.const 64))";
const NAMES: &str = "(call $names (i32.const 1200) (i32.const 4) (i32.const 0) (i32.const 0)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64))";
const SET: &str = "(call $set (i32.const 1204) (i32.const 4) (i32.const 1024) (i32.const 8)
    (i32.const 64))";

/// A folder with many files.
fn full_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for number in 0..FILES {
        fs::write(folder.path().join(format!("n{number:05}")), "x").expect("it is written");
    }
    folder
}

/// The grants of a component whose folder is `folder`.
fn grants(folder: &TempDir, more: &str) -> String {
    format!(
        "[grant.files.data]\npath = {:?}\nwrite = true\nfiles = 10000\nsize = \"1GiB\"\n\
         [grant.kv]\nsize = \"1GiB\"\nkeys = 1000000\nrate = 1000000\n\
         [limits]\nmemory = \"128MiB\"\npayload = \"100MiB\"\n{more}",
        folder.path()
    )
}

/// The longest time in which a task on the workers did not run, and the duration of the request.
async fn beside(component: &DeployedComponent) -> (Duration, Duration) {
    let moments = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&moments);
    let neighbour = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            written.lock().expect("no panic").push(Instant::now());
        }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let began = Instant::now();
    component.ask("x").await.expect("it answers");
    let ended = Instant::now();
    neighbour.abort();
    let mut before = began;
    let mut longest = Duration::ZERO;
    let moments = moments.lock().expect("no panic").clone();
    let within = moments.into_iter().filter(|at| (began..ended).contains(at));
    for at in within.chain([ended]) {
        longest = longest.max(at - before);
        before = at;
    }
    (longest, ended - began)
}

/// Asks a new component of a new node, beside a neighbour.
fn assert_frees_worker(name: &str, handle: &str, folder: &TempDir) {
    let guest = Guest::new().stores(1).handle(handle);
    let attempt = || {
        // A write that does not grow the folder would not measure it.
        let _ = fs::remove_file(folder.path().join("file"));
        on_some_workers(1, async {
            let node = Node::start(limits()).await;
            let component = node.deploy(&guest, "slow", &grants(folder, "")).await;
            let measured = beside(&component).await;
            node.end().await;
            measured
        })
    };
    assert_sometimes_early(name, attempt);
}

/// Makes up to five attempts, until a neighbour was late by a part of the time only.
fn assert_sometimes_early(name: &str, attempt: impl Fn() -> (Duration, Duration)) {
    let mut late = Vec::new();
    for _ in 0..5 {
        let (longest, whole) = alone(&attempt);
        eprintln!("{name}: {longest:?} of {whole:?}");
        if longest < whole.mul_f64(HALF) {
            return;
        }
        late.push((longest, whole));
    }
    panic!("{name}: the neighbour was late each time: {late:?}");
}

#[test]
fn file_operations_free_their_worker() {
    let folder = full_folder();
    // The first write of each node measures the folder.
    assert_frees_worker("measure", WRITE, &folder);
    assert_frees_worker("names", NAMES, &folder);
}

#[test]
fn components_that_use_their_stores_all_the_time_delay_no_others() {
    let (small, full) = (tempfile::tempdir().expect("there is room"), full_folder());
    let place = tempfile::tempdir().expect("there is room for a folder");
    let kv = KvStore::open(place.path()).expect("it opens");
    let file = "(i32.const 1200) (i32.const 4) (i32.const 1204) (i32.const 4) (i64.const 0)";
    let bytes = 1 << 20;
    let write = format!("(call $write {file} (i32.const 4096) (i32.const {bytes}) (i32.const 64))");
    let read = format!("(call $read {file} (i32.const {bytes}) (i32.const 64))");
    let both = format!("{write} {read} {REMOVE}");
    let keys = format!(
        "{SET} (call $keys (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
           (i32.const 64))"
    );
    for (name, work, folder) in [
        ("file", &*both, &small),
        ("churn", &format!("{WRITE} {REMOVE}"), &full),
        ("names", NAMES, &full),
        ("keys", &keys, &small),
    ] {
        run(async {
            let mut limits = limits();
            limits.nice = HostLimits::default().nice;
            let node = Node::with_store(limits, kv.clone()).await;
            let mut hogs = Vec::new();
            for number in 0..cores() {
                let name = format!("{name}-{number}");
                let guest = Guest::new().stores(20).sends_to(&name).handle(&format!(
                    "(call $resolve (i32.const 1024) (i32.const {}) (i32.const 64))
                     (i64.store (i32.const 96) (i64.load (i32.const 72)))
                     {work}
                     (call $send (i64.load (i32.const 96)) (i32.const 0) (i32.const 0)
                       (i32.const 128))",
                    name.len()
                ));
                let more = format!("[grant]\nsend = [{name:?}]\n");
                hogs.push(node.deploy(&guest, &name, &grants(folder, &more)).await);
            }
            for hog in &hogs {
                hog.tell("x");
            }
            eprintln!("{name}:");
            assert_bearable(&node).await;
            for hog in &hogs {
                let info = node.info(hog);
                assert!(info.cpu > Duration::ZERO && info.faults == 0, "{info:?}");
            }
            node.end().await;
        });
    }
}

#[test]
fn key_value_operations_on_disk_free_their_worker() {
    let place = tempfile::tempdir().expect("there is room for a folder");
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let kv = KvStore::open(place.path()).expect("it opens");
    // So many keys that measuring the space takes a while: each is written with its own name.
    let fill = "(local.set $len (i32.const 0))
        (loop $again
          (i32.store (i32.const 1204) (i32.or (i32.const 0x40404040)
            (i32.or (i32.and (local.get $len) (i32.const 0x3f))
              (i32.or (i32.shl (i32.and (i32.shr_u (local.get $len) (i32.const 6))
                  (i32.const 0x3f)) (i32.const 8))
                (i32.shl (i32.and (i32.shr_u (local.get $len) (i32.const 12))
                  (i32.const 0x3f)) (i32.const 16))))))
          SET
          (local.set $len (i32.add (local.get $len) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $len) (i32.const 20000))))"
        .replace("SET", SET);
    run(async {
        let node = Node::with_store(limits(), kv.clone()).await;
        let guest = Guest::new().stores(1).handle(&fill);
        let filler = node.deploy(&guest, "slow", &grants(&folder, "")).await;
        let began = Instant::now();
        filler.ask("x").await.expect("it has its time");
        eprintln!("filled in {:?}", began.elapsed());
        node.end().await;
    });
    drop(kv);
    // A store that is opened anew measures each space at its first write.
    let attempt = || {
        let kv = KvStore::open(place.path()).expect("it opens");
        let guest = Guest::new().stores(1).handle(SET);
        on_some_workers(1, async {
            let node = Node::with_store(limits(), kv).await;
            let component = node.deploy(&guest, "slow", &grants(&folder, "")).await;
            let measured = beside(&component).await;
            node.end().await;
            measured
        })
    };
    assert_sometimes_early("first write", attempt);
}

#[test]
fn files_are_removed_and_written_without_measuring_the_folder() {
    let folder = full_folder();
    run(async {
        let node = Node::start(limits()).await;
        // The default limit of a call, which measuring would exceed.
        let more = "deadline = \"10ms\"\n";
        let guest = Guest::new().stores(1).handle(&format!("{WRITE} {REMOVE}"));
        let component = node.deploy(&guest, "filer", &grants(&folder, more)).await;
        let began = Instant::now();
        component
            .ask("x")
            .await
            .expect("measuring costs it no time");
        let first = began.elapsed();
        let mut took = Vec::new();
        for _ in 0..20 {
            let began = Instant::now();
            component.ask("x").await.expect("it answers");
            took.push(began.elapsed());
        }
        took.sort_unstable();
        assert!(took[10] < first / 4, "{first:?}: {took:?}");
        assert!(!folder.path().join("file").exists());
        node.end().await;
    });
}

#[test]
fn host_operations_count_against_the_call_and_its_component() {
    let folder = full_folder();
    run(async {
        let node = Node::start(limits()).await;
        let guest = Guest::new().stores(1).handle(NAMES);
        let patient = node.deploy(&guest, "patient", &grants(&folder, "")).await;
        for _ in 0..3 {
            patient.ask("x").await.expect("it has its time");
        }
        let info = node.info(&patient);
        assert!(info.cpu > Duration::from_millis(2), "{info:?}");
        assert!(info.heavy, "{info:?}");
        let more = "deadline = \"1ms\"\n";
        let hasty = node.deploy(&guest, "hasty", &grants(&folder, more)).await;
        let answer = hasty.ask("x").await;
        assert!(answer.is_err(), "{answer:?}");
        while node.info(&hasty).faults == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let fault = node.info(&hasty).fault.expect("it failed");
        assert_eq!(fault.kind.name(), "deadline", "{fault}");
        node.end().await;
    });
}
