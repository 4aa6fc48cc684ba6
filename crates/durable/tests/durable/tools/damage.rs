//! Stores whose files are not as they were written.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use strowger_durable::store::tools::{
    DamagedEntities, EntityCondition, ExistingEntities, RepairOptions, StoppedStore, ToolError,
    import, repair,
};
use strowger_durable::store::{
    FjallOptions, FjallStore, OpenError, Sequence, Store, StoreError, StoreFault,
};

use super::{check, entity, export, fill, open, put};

/// All files below a folder, with their contents.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            files.push((path, bytes));
        }
    }
    files.sort();
    files
}

/// Makes a store with one damaged entity among others.
async fn store_with_a_damaged_entity(path: &Path) -> Vec<u8> {
    let store = open(path);
    fill(&store, 1).await;
    put(&store, &entity("test", "damaged"), &[b"one", b"two"]).await;
    drop(store);
    let before = export(path);
    let store = open(path);
    store.inject(StoreFault::Damage).await;
    let name = entity("test", "damaged");
    let fence = store.lease(&name).await.expect("a lease");
    let mut batch = strowger_durable::store::Batch::new();
    batch.put(strowger_durable::store::Table::State, [], *b"three");
    let appended = store.append(&name, Sequence(2), fence, batch).await;
    appended.expect("it is written");
    before
}

#[tokio::test]
async fn damaged_entity_is_quarantined_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let backup = store_with_a_damaged_entity(&path).await;
    let name = entity("test", "damaged");
    let found = check(&path);
    assert_eq!(found.damaged.len(), 1, "{found:?}");
    assert_eq!(found.damaged[0].info.entity, name);
    assert_eq!(found.damaged[0].info.sequence, Sequence(3));
    assert_eq!(found.damaged[0].detail, "the digest of a row, in table 1");

    let unchanged = files(&path);
    let options = RepairOptions {
        dry_run: true,
        ..RepairOptions::default()
    };
    let planned = repair(&path, options, &mut |_| {}).expect("it is readable");
    assert_eq!(planned.quarantined, std::slice::from_ref(&name));
    assert_eq!(planned.old_database, None);
    assert_eq!(files(&path), unchanged, "a dry run changes nothing");

    let done = repair(&path, RepairOptions::default(), &mut |_| {}).expect("it is repaired");
    assert_eq!(
        (&done.before, &done.quarantined),
        (&found, &planned.quarantined)
    );
    assert_eq!(done.old_database, Some(path.join("damaged-1")));
    let after = check(&path);
    assert!(after.is_intact(), "{after:?}");
    assert_eq!((after.quarantined.len(), after.kinds), (1, found.kinds));
    let again = repair(&path, RepairOptions::default(), &mut |_| {}).expect("it is readable");
    assert!(!again.is_needed, "{again:?}");

    // The others are as they were, and the damaged one is refused with the remedy.
    let store = open(&path);
    let refused = store.lease(&name).await.expect_err("it is quarantined");
    assert!(
        matches!(
            &refused,
            StoreError::Quarantined {
                sequence: Sequence(3),
                ..
            }
        ),
        "{refused:?}"
    );
    let text = refused.to_string();
    assert!(text.contains("import it from a backup"), "{text}");
    put(&store, &entity("test", "other"), &[b"one"]).await;
    drop(store);
    let stopped = StoppedStore::open(&path).expect("it is stopped");
    let info = stopped
        .entity(&name)
        .expect("it is readable")
        .expect("it is known");
    assert_eq!(info.condition, EntityCondition::Quarantined);
    drop(stopped);
    let quarantined = String::from_utf8(export(&path)).expect("text");
    assert!(
        quarantined.contains("\"quarantined\":true"),
        "{quarantined}"
    );
    assert!(
        quarantined
            .lines()
            .any(|line| line.starts_with("{\"quarantined\":"))
    );

    // An export with a quarantine is imported the same.
    let copy = folder.path().join("copy");
    let mut text = Cursor::new(&quarantined);
    import(&copy, &mut text, ExistingEntities::Refuse, &mut |_| {}).expect("a valid export");
    assert_eq!(export(&copy), quarantined.as_bytes());

    // The remedy helps.
    let mut text = Cursor::new(&backup);
    import(&path, &mut text, ExistingEntities::Replace, &mut |_| {}).expect("a valid export");
    let store = open(&path);
    let found = store.read(&name).await.expect("it is restored");
    assert_eq!(
        (found.sequence, &*found.rows[0].value),
        (Sequence(2), &b"two"[..])
    );
}

#[tokio::test]
async fn damaged_entity_starts_empty_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    store_with_a_damaged_entity(&path).await;
    let name = entity("test", "damaged");
    repair(&path, RepairOptions::default(), &mut |_| {}).expect("it is repaired");
    let options = RepairOptions {
        damaged: DamagedEntities::StartEmpty,
        ..RepairOptions::default()
    };
    let done = repair(&path, options, &mut |_| {}).expect("it is repaired");
    assert_eq!(
        (done.emptied, done.quarantined),
        (vec![name.clone()], vec![])
    );
    assert_eq!(done.old_database, Some(path.join("damaged-2")));
    let store = open(&path);
    let found = store.read(&name).await.expect("it is readable");
    assert_eq!((found.sequence, found.rows), (Sequence(3), vec![]));
    put(&store, &name, &[b"new"]).await;
    assert_eq!(
        store.read(&name).await.expect("it is readable").sequence,
        Sequence(4)
    );
}

#[tokio::test]
async fn damaged_journal_is_refused_unchanged_and_accepted_by_a_repair() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = open(&path);
    let [early, late] = ["early", "late"].map(|key| entity("test", key));
    put(&store, &early, &[b"one", b"two"]).await;
    put(&store, &late, &[b"one", b"two", b"three"]).await;
    drop(store);
    let journal = path.join("db/0.jnl");
    let mut bytes = std::fs::read(&journal).expect("a journal");
    // The value of the last row but one, which is not where a crash would cut.
    let at = bytes
        .windows(3)
        .rposition(|part| part == b"two")
        .expect("it is there");
    bytes[at] ^= 1;
    std::fs::write(&journal, &bytes).expect("it is written");

    for _ in 0..2 {
        let refused = FjallStore::open(&path, FjallOptions::default());
        let Err(OpenError::Damaged { detail, .. }) = &refused else {
            panic!("{refused:?}");
        };
        assert!(detail.contains("0.jnl is damaged at byte"), "{detail}");
        assert!(
            std::fs::read(&journal).expect("a journal") == bytes,
            "evidence is kept"
        );
    }
    let found = check(&path);
    assert!(!found.is_intact());
    // The damaged group, and the one behind it.
    assert_eq!(
        (found.lost_groups, found.damaged_journals.len()),
        (2, 1),
        "{found:?}"
    );
    assert_eq!(found.damaged, []);
    let done = repair(&path, RepairOptions::default(), &mut |_| {}).expect("it is repaired");
    let old = done.old_database.expect("the old one is kept");
    assert!(std::fs::read(old.join("db/0.jnl")).expect("a journal") == bytes);
    assert!(check(&path).is_intact());
    let store = open(&path);
    assert_eq!(
        store.read(&early).await.expect("it is readable").sequence,
        Sequence(2)
    );
    assert_eq!(
        store.read(&late).await.expect("it is readable").sequence,
        Sequence(1)
    );
    put(&store, &late, &[b"two again"]).await;
}

#[tokio::test]
async fn interrupted_write_at_the_end_of_a_journal_is_no_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = open(&path);
    put(&store, &entity("test", "a"), &[b"one"]).await;
    let mark = std::fs::read(path.join("mark")).expect("a mark");
    put(&store, &entity("test", "a"), &[b"two"]).await;
    drop(store);
    let journal = path.join("db/0.jnl");
    let mut bytes = std::fs::read(&journal).expect("a journal");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("a batch");
    bytes.truncate(end - 5);
    std::fs::write(&journal, &bytes).expect("it is written");
    std::fs::write(path.join("mark"), mark).expect("it is written");
    let found = check(&path);
    assert!(found.is_intact(), "{found:?}");
    open(&path);
}

/// The number of bits that are flipped in each file.
const FLIPS: usize = 12;

#[tokio::test]
async fn flipped_bits_are_reported_wherever_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let [store, tables] = ["store", "tables"].map(|name| folder.path().join(name));
    let open_store = open(&store);
    fill(&open_store, 2).await;
    // A backup has its rows in tables, and later ones in the journal.
    open_store.backup(&tables).await.expect("it is copied");
    drop(open_store);
    let open_tables = open(&tables);
    put(&open_tables, &entity("test", "late"), &[b"one", b"two"]).await;
    drop(open_tables);
    let expected = export(&tables);
    let (mut intact, mut reported, mut refused) = (0, 0, 0);
    for (path, bytes) in files(&tables) {
        let written = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        let step = (written / FLIPS).max(1);
        for at in (0..written).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, &damaged).expect("it is written");
            let found = StoppedStore::open(&tables).and_then(|store| {
                let found = store.check(&mut |_| {})?;
                let mut text = Vec::new();
                store.export(&mut text, &mut |_| {})?;
                Ok((found, text))
            });
            match found {
                Ok((found, text)) if found.is_intact() => {
                    intact += 1;
                    assert!(
                        text == expected,
                        "silent damage of {} at {at}",
                        path.display()
                    );
                }
                Ok(_) => reported += 1,
                Err(ToolError::Unopened { .. } | ToolError::Open(_)) => refused += 1,
                Err(error) => panic!("{}: {at}: {error}", path.display()),
            }
        }
        std::fs::write(&path, &bytes).expect("it is written");
    }
    assert!(reported > 5 && refused > 5, "{intact} {reported} {refused}");
    assert!(export(&tables) == expected);
}

#[tokio::test]
async fn tables_are_kept_although_the_file_that_names_them_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let [source, path] = ["source", "copy"].map(|name| folder.path().join(name));
    let store = open(&source);
    fill(&store, 1).await;
    // A backup has its rows in tables, and later ones in the journal.
    store.backup(&path).await.expect("it is copied");
    drop(store);
    let store = open(&path);
    put(&store, &entity("test", "late"), &[b"one"]).await;
    drop(store);
    let expected = export(&path);
    for missing in ["keyspaces/0/current", "keyspaces/1/current"] {
        let file = path.join("db").join(missing);
        let bytes = std::fs::read(&file).expect("a file");
        std::fs::remove_file(&file).expect("it is there");
        let unchanged = files(&path);
        for accept_loss in [false, true] {
            let options = FjallOptions {
                accept_loss,
                ..FjallOptions::default()
            };
            let refused = FjallStore::open(&path, options);
            let Err(OpenError::Damaged { detail, .. }) = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(*detail, format!("{missing} is missing"));
        }
        let Err(refused) = StoppedStore::open(&path) else {
            panic!("without {missing}, rows would be missing");
        };
        let text = refused.to_string();
        assert!(text.contains(&format!("{missing} is missing")), "{text}");
        let refused = repair(&path, RepairOptions::default(), &mut |_| {});
        assert!(
            matches!(refused, Err(ToolError::Unopened { .. })),
            "{refused:?}"
        );
        assert!(files(&path) == unchanged, "nothing is deleted");
        std::fs::write(&file, &bytes).expect("it is written");
        assert!(export(&path) == expected);
    }
    assert!(check(&path).is_intact());
}

#[tokio::test]
async fn unreadable_part_of_a_table_costs_only_what_is_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let [store, path] = ["store", "copy"].map(|name| folder.path().join(name));
    let source = open(&store);
    for number in 0..200 {
        put(
            &source,
            &entity("test", &format!("{number:03}")),
            &[&[number; 400]],
        )
        .await;
    }
    source.backup(&path).await.expect("it is copied");
    drop(source);
    let table = files(&path.join("db/keyspaces/1/tables")).into_iter();
    let (table, mut bytes) = table.max_by_key(|(_, bytes)| bytes.len()).expect("a table");
    let middle = bytes
        .windows(100)
        .position(|part| part == [100; 100])
        .expect("a value");
    bytes[middle] ^= 1;
    std::fs::write(&table, &bytes).expect("it is written");

    let found = check(&path);
    assert_eq!(found.unreadable.len(), 1, "{found:?}");
    let intact = found.kinds["test"].entities;
    assert!((150..200).contains(&intact), "{intact}");
    repair(&path, RepairOptions::default(), &mut |_| {}).expect("it is repaired");
    let after = check(&path);
    assert!(after.is_intact(), "{after:?}");
    assert_eq!(after.kinds["test"].entities, intact);
    let store = open(&path);
    for key in ["000", "199"] {
        let read = store
            .read(&entity("test", key))
            .await
            .expect("it is readable");
        assert_eq!(read.sequence, Sequence(1));
    }
}
