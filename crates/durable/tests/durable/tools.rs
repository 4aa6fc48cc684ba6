//! The tools for operators: check, repair, export, import and backup, on real stores.

mod damage;
mod hostile;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use strowger::ActorSystem;
use strowger_durable::IdempotencyKey;
use strowger_durable::store::tools::{
    CheckReport, EntityCondition, ExistingEntities, StoppedStore, ToolError, import,
};
use strowger_durable::store::{
    Batch, Durability, EntityId, FjallOptions, FjallStore, OpenError, Sequence, Store, StoreError,
    StoreFault, Table,
};

use crate::ledger::{DurableLedger, Write, added, ledger};

fn entity(kind: &str, key: &str) -> EntityId {
    EntityId::new(kind, key).expect("a short name")
}

fn open(path: &Path) -> FjallStore {
    FjallStore::open(path, FjallOptions::default()).expect("it opens")
}

fn check(path: &Path) -> CheckReport {
    let store = StoppedStore::open(path).expect("it is stopped");
    store.check(&mut |_| {}).expect("it is readable")
}

fn export(path: &Path) -> Vec<u8> {
    let store = StoppedStore::open(path).expect("it is stopped");
    let mut text = Vec::new();
    let report = store
        .export(&mut text, &mut |_| {})
        .expect("it is readable");
    assert_eq!((report.damaged, report.unreadable), (vec![], vec![]));
    text
}

async fn put(store: &FjallStore, entity: &EntityId, values: &[&[u8]]) {
    let fence = store.lease(entity).await.expect("a lease");
    let mut at = store.read(entity).await.expect("it is readable").sequence;
    for value in values {
        let mut batch = Batch::new();
        batch.put(Table::State, [], *value);
        at = store
            .append(entity, at, fence, batch)
            .await
            .expect("it is written");
    }
}

/// Writes entities of several kinds, with rows of all tables, as a seed determines.
async fn fill(store: &FjallStore, seed: u64) {
    let mut random = SplitMix64::seed_from_u64(seed);
    let mut below = move |limit: usize| {
        let drawn = random.next_u64() % u64::try_from(limit).expect("small");
        usize::try_from(drawn).expect("small")
    };
    let texts = [
        "",
        "a",
        "a/b",
        "\u{fc}\u{1f600}",
        "two\nlines",
        "nul\0",
        "\"quoted\\",
    ];
    for number in 0..30 {
        let kind = ["account", "order", "a", ""][number % 4];
        let key = format!("{}{number}", texts[number % texts.len()]);
        let entity = entity(kind, &key);
        let fence = store.lease(&entity).await.expect("a lease");
        let mut at = Sequence(0);
        for _ in 0..below(6) {
            let mut batch = Batch::new();
            for _ in 0..below(4) {
                let table = [Table::State, Table::Answers, Table::Reminders];
                let table = table[below(3)];
                let mut value = vec![0; below(200)];
                for byte in &mut value {
                    *byte = u8::try_from(below(256)).expect("a byte");
                }
                let row = match below(3) {
                    0 => value.iter().take(20).copied().collect(),
                    _ => texts[below(texts.len())].as_bytes().to_vec(),
                };
                batch.put(table, row, value);
            }
            let wake = u64::try_from(below(5000)).expect("small");
            batch.set_wake((wake > 1000).then(|| Duration::from_millis(wake)));
            at = store
                .append(&entity, at, fence, batch)
                .await
                .expect("it is written");
        }
    }
}

async fn wakes(store: &FjallStore) -> Vec<(u128, String)> {
    let mut all = Vec::new();
    for kind in ["account", "order", "a", ""] {
        let found = store.wakes(kind, None, 1000).await.expect("a list");
        all.extend(
            found
                .iter()
                .map(|wake| (wake.at.as_millis(), wake.key.to_string())),
        );
    }
    all
}

#[tokio::test]
async fn exported_store_is_imported_the_same() {
    for seed in 0..5 {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        let store = open(&first);
        fill(&store, seed).await;
        let listed = wakes(&store).await;
        drop(store);
        let text = export(&first);
        let report = import(
            &second,
            &mut Cursor::new(&text),
            ExistingEntities::Refuse,
            &mut |_| {},
        );
        assert_eq!(report.expect("a valid export").entities, 30);
        assert_eq!(export(&second), text, "seed {seed}");
        let found = check(&second);
        assert!(found.is_intact(), "{found:?}");
        assert_eq!(wakes(&open(&second)).await, listed);
    }
}

#[tokio::test]
async fn import_into_a_store_with_entities_follows_the_policy() {
    let folder = tempfile::tempdir().expect("a folder");
    let [source, target] = ["source", "target"].map(|name| folder.path().join(name));
    let [shared, new, old] = ["shared", "new", "old"].map(|key| entity("test", key));
    put(&open(&source), &shared, &[b"from the export"]).await;
    put(&open(&source), &new, &[b"new"]).await;
    let text = export(&source);
    put(&open(&target), &shared, &[b"1", b"2", b"3"]).await;
    put(&open(&target), &old, &[b"old"]).await;
    let before = export(&target);
    let run = |existing| import(&target, &mut Cursor::new(&text), existing, &mut |_| {});

    let refused = run(ExistingEntities::Refuse);
    assert!(
        matches!(&refused, Err(ToolError::Conflict { count: 1, first }) if *first == shared),
        "{refused:?}"
    );
    assert_eq!(export(&target), before, "nothing was imported");

    let report = run(ExistingEntities::Skip).expect("it is imported");
    assert_eq!((report.entities, report.skipped), (1, 1));
    let store = open(&target);
    let found = store.read(&shared).await.expect("it is readable");
    assert_eq!(
        (found.sequence, &*found.rows[0].value),
        (Sequence(3), &b"3"[..])
    );
    let fence = store.lease(&shared).await.expect("a lease");
    drop(store);

    let report = run(ExistingEntities::Replace).expect("it is imported");
    assert_eq!((report.entities, report.replaced), (2, 2));
    let store = open(&target);
    let found = store.read(&shared).await.expect("it is readable");
    assert_eq!(
        (found.sequence, &*found.rows[0].value),
        (Sequence(1), &b"from the export"[..])
    );
    assert!(
        store.lease(&shared).await.expect("a lease") > fence,
        "fences rise"
    );
    assert_eq!(
        store.read(&old).await.expect("it is readable").sequence,
        Sequence(1)
    );
}

/// Appends to two entities in turn until it is told to stop. The value is the sequence.
async fn write_in_turn(
    store: FjallStore,
    pair: [EntityId; 2],
    acknowledged: Arc<parking_lot::Mutex<BTreeMap<EntityId, Sequence>>>,
    is_over: Arc<AtomicBool>,
) {
    let mut fences = Vec::new();
    for entity in &pair {
        fences.push(store.lease(entity).await.expect("a lease"));
    }
    let mut at = Sequence(0);
    while !is_over.load(Ordering::Relaxed) {
        for (entity, fence) in pair.iter().zip(&fences) {
            let mut batch = Batch::new();
            batch.put(Table::State, [], at.next().0.to_be_bytes());
            batch.put(Table::Answers, at.next().0.to_be_bytes(), vec![7; 500]);
            let appended = store.append(entity, at, *fence, batch).await;
            let appended = appended.expect("it is written");
            acknowledged.lock().insert(entity.clone(), appended);
        }
        at = at.next();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_of_a_store_that_is_written_is_of_one_moment() {
    const PAIRS: usize = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&folder.path().join("store"));
    let acknowledged = Arc::new(parking_lot::Mutex::new(BTreeMap::new()));
    let is_over = Arc::new(AtomicBool::new(false));
    let pairs: Vec<[EntityId; 2]> = (0..PAIRS)
        .map(|number| ["first", "second"].map(|part| entity(part, &number.to_string())))
        .collect();
    let writers: Vec<_> = pairs
        .iter()
        .map(|pair| {
            let (acknowledged, is_over) = (Arc::clone(&acknowledged), Arc::clone(&is_over));
            tokio::spawn(write_in_turn(
                store.clone(),
                pair.clone(),
                acknowledged,
                is_over,
            ))
        })
        .collect();
    let mut copies = Vec::new();
    for round in 0..5 {
        let wanted = (round + 1) * 20 * PAIRS as u64;
        let count = || acknowledged.lock().values().map(|at| at.0).sum::<u64>();
        while count() < wanted {
            tokio::task::yield_now().await;
        }
        let before = acknowledged.lock().clone();
        let target = folder.path().join(format!("copy-{round}"));
        let report = store.backup(&target).await.expect("it is copied");
        assert_eq!(
            (report.entities, report.damaged_rows),
            (2 * PAIRS as u64, 0)
        );
        copies.push((target, before));
    }
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("it has written");
    }
    for (target, before) in copies {
        let found = check(&target);
        assert!(found.is_intact(), "{found:?}");
        let copy = open(&target);
        let mut sequences = BTreeMap::new();
        for entity in pairs.iter().flatten() {
            let found = copy.read(entity).await.expect("it is readable");
            let at = found.sequence;
            let known = before.get(entity).copied().unwrap_or_default();
            assert!(
                at >= known,
                "{entity} is at {at}, and {known} was acknowledged"
            );
            assert_eq!(
                found.rows.len() as u64,
                at.0 + 1,
                "{entity} has all its rows"
            );
            assert_eq!(
                found.rows[0].value,
                at.0.to_be_bytes(),
                "{entity} is at one sequence"
            );
            sequences.insert(entity.clone(), at.0);
        }
        // The second of a pair is written when the first is acknowledged.
        for [first, second] in &pairs {
            let (first, second) = (sequences[first], sequences[second]);
            assert!(
                first == second || first == second + 1,
                "{first} and {second}"
            );
        }
        // The copy is a store of its own.
        put(&copy, &pairs[0][0], &[b"more"]).await;
    }
}

#[tokio::test]
async fn backup_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&folder.path().join("store"));
    fill(&store, 1).await;
    let names = || {
        let entries = std::fs::read_dir(folder.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).expect("a folder");
    std::fs::write(taken.join("file"), "here first").expect("it is written");
    let before = names();
    let refused = store.backup(&taken).await;
    assert!(
        matches!(refused, Err(ToolError::Exists { .. })),
        "{refused:?}"
    );
    let refused = store.backup(taken.join("file/copy")).await;
    assert!(matches!(refused, Err(ToolError::Io { .. })), "{refused:?}");
    // Dropped before it ends.
    let started = tokio::time::timeout(Duration::ZERO, store.backup(folder.path().join("dropped")));
    let _ = started.await;
    store.inject(StoreFault::SyncFailed).await;
    let name = entity("test", "a");
    let fence = store.lease(&name).await.expect("a lease");
    let failed = store.append(&name, Sequence(0), fence, Batch::new()).await;
    failed.expect_err("the sync fails");
    let refused = store.backup(folder.path().join("copy")).await;
    assert!(
        matches!(refused, Err(ToolError::Store(StoreError::Failed { .. }))),
        "{refused:?}"
    );
    let limit = std::time::Instant::now() + Duration::from_secs(20);
    while names() != before && std::time::Instant::now() < limit {
        tokio::task::yield_now().await;
    }
    let mut expected = before;
    // The one that was dropped may have been done already.
    if folder.path().join("dropped").exists() {
        expected.insert(0, "dropped".into());
    }
    assert_eq!(names(), expected);
}

#[tokio::test]
async fn stopped_store_is_listed_and_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    fill(&store, 3).await;
    put(
        &store,
        &entity("order", "shown"),
        &[b"\x01\x81\xa5count\x07"],
    )
    .await;
    let busy = StoppedStore::open(folder.path());
    let Err(ToolError::Open(OpenError::Locked { holder, .. })) = busy else {
        panic!("{busy:?}");
    };
    if Path::new("/proc/locks").exists() {
        assert_eq!(holder, Some(std::process::id()));
    }
    drop(store);
    let stopped = StoppedStore::open(folder.path()).expect("it is stopped");
    let mut listed = Vec::new();
    stopped
        .entities(
            Some("order"),
            &mut |info| {
                listed.push(info.clone());
                Ok(())
            },
            &mut |_| {},
        )
        .expect("it is readable");
    assert!(listed.iter().all(|info| info.entity.kind() == "order"));
    let name = entity("order", "shown");
    let shown = stopped.entity(&name).expect("it is readable");
    let shown = shown.expect("it is known");
    assert!(listed.contains(&shown));
    assert_eq!((shown.sequence, shown.rows), (Sequence(1), 1));
    assert_eq!(shown.condition, EntityCondition::Intact);
    let mut rows = Vec::new();
    stopped
        .rows(&name, &mut |row| {
            rows.push(row);
            Ok(())
        })
        .expect("it is readable");
    assert_eq!(rows[0].table_name, Some("state"));
    assert_eq!(rows[0].decoded, Some(serde_json::json!({"count": 7})));
    let unknown = stopped.entity(&entity("order", "unknown"));
    assert_eq!(unknown.expect("it is readable"), None);
    let none = StoppedStore::open(folder.path().join("none"));
    assert!(matches!(none, Err(ToolError::NotAStore { .. })), "{none:?}");
}

#[tokio::test]
async fn events_and_snapshots_are_shown_decoded() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = ActorSystem::new("ledger").expect("a system");
    let arguments = ledger::<2, true>(&open(folder.path()), "a", None);
    let actor = system.spawn::<DurableLedger<2, true>>("a", arguments);
    let actor = actor.expect("the key is free");
    let key = IdempotencyKey::new("1").expect("a short key");
    let write = Write(added([5, 6, 7]), key);
    assert_eq!(actor.ask(write).await.ok(), Some(3));
    drop(actor);
    system.shutdown(Duration::from_secs(10)).await;
    drop(system);
    let stopped = StoppedStore::open(folder.path()).expect("it is stopped");
    let mut shown = Vec::new();
    stopped
        .rows(&entity("ledger", "a"), &mut |row| {
            shown.extend(row.table_name.zip(row.decoded));
            Ok(())
        })
        .expect("it is readable");
    let event = |entry| ("events", serde_json::json!({"Added": {"entry": entry}}));
    let book = serde_json::json!({"entries": [5, 6, 7], "events": 3});
    let expected = [
        ("answers", serde_json::json!(3)),
        event(5),
        event(6),
        event(7),
        ("snapshot", book),
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn write_that_does_not_end_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FjallOptions {
        durability: Durability::Process,
        write_deadline: Duration::from_millis(50),
        ..FjallOptions::default()
    };
    let store = FjallStore::open(folder.path(), options).expect("it opens");
    let name = entity("test", "a");
    let fence = store.lease(&name).await.expect("a lease");
    store
        .inject(StoreFault::Stall(Duration::from_secs(1)))
        .await;
    let (appended, read) = tokio::join!(
        store.append(&name, Sequence(0), fence, Batch::new()),
        store.read(&name),
    );
    for error in [appended.map(|_| ()), read.map(|_| ())] {
        let Err(StoreError::Stalled { waited }) = error else {
            panic!("{error:?}");
        };
        assert!(waited >= Duration::from_millis(50) && waited < Duration::from_secs(1));
    }
    // The write takes effect in the end, and the store serves again.
    let found = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            match store.read(&name).await {
                Err(StoreError::Stalled { .. }) => tokio::task::yield_now().await,
                found => break found,
            }
        }
    });
    let found = found.await.expect("it responds again");
    assert_eq!(found.expect("it is readable").sequence, Sequence(1));
}
