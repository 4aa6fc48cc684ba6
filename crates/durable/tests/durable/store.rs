//! Both stores pass the conformance suite, and a store on disk reports its losses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger_durable::conformance::{self, StoreUnderTest};
use strowger_durable::store::{
    Batch, Durability, EntityId, FjallOptions, FjallStore, MemoryStore, OpenError, Sequence, Store,
    StoreError, StoreFault, Table,
};

struct InMemory(MemoryStore);

impl StoreUnderTest for InMemory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    async fn reopen(&mut self) {
        self.0 = self.0.reopen();
    }

    async fn inject(&self, fault: StoreFault) {
        self.0.inject(fault);
    }
}

struct OnDisk {
    folder: tempfile::TempDir,
    options: FjallOptions,
    store: Option<FjallStore>,
}

impl OnDisk {
    fn new(durability: Durability) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = FjallOptions {
            durability,
            ..FjallOptions::default()
        };
        let store = Some(FjallStore::open(folder.path(), options).expect("it opens"));
        Self {
            folder,
            options,
            store,
        }
    }

    fn open(&self) -> &FjallStore {
        self.store.as_ref().expect("it is open")
    }
}

impl StoreUnderTest for OnDisk {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.open().clone())
    }

    async fn reopen(&mut self) {
        self.store = None;
        self.store = Some(FjallStore::open(self.folder.path(), self.options).expect("it opens"));
    }

    async fn inject(&self, fault: StoreFault) {
        self.open().inject(fault).await;
    }
}

#[tokio::test]
async fn memory_store_conforms() {
    conformance::check(|| InMemory(MemoryStore::new())).await;
}

#[tokio::test(start_paused = true)]
async fn memory_store_with_delays_conforms() {
    for seed in 0..20 {
        let maximum = Duration::from_millis(3);
        conformance::check(|| InMemory(MemoryStore::seeded(seed, maximum))).await;
    }
}

#[tokio::test]
async fn store_on_disk_conforms_in_process_mode() {
    conformance::check(|| OnDisk::new(Durability::Process)).await;
}

#[tokio::test]
async fn store_on_disk_conforms_in_disk_mode() {
    conformance::check(|| OnDisk::new(Durability::Disk)).await;
}

async fn append(store: &FjallStore, count: u64) {
    let entity = EntityId::new("test", "a").expect("a short name");
    let fence = store.lease(&entity).await.expect("a lease");
    let from = store.read(&entity).await.expect("it is readable").sequence;
    for number in from.0..from.0 + count {
        let mut batch = Batch::new();
        batch.put(Table::State, [], number.to_be_bytes());
        let appended = store.append(&entity, Sequence(number), fence, batch).await;
        assert_eq!(appended, Ok(Sequence(number + 1)));
    }
}

/// Returns the folder of a store whose database was replaced by an earlier copy of itself.
async fn store_with_missing_groups() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
    append(&open(), 3).await;
    let mark = folder.path().join("mark");
    let early = std::fs::read(&mark).expect("a mark");
    append(&open(), 4).await;
    let late = std::fs::read(&mark).expect("a mark");
    assert_ne!(early, late);
    std::fs::remove_dir_all(folder.path().join("db")).expect("a database");
    folder
}

#[tokio::test]
async fn missing_groups_are_reported_and_accepted_on_request() {
    let folder = store_with_missing_groups().await;
    let lost = FjallStore::open(folder.path(), FjallOptions::default());
    // A lease and its batches are a group each.
    assert!(
        matches!(lost, Err(OpenError::Lost { groups: 9, .. })),
        "{lost:?}"
    );
    let options = FjallOptions {
        accept_loss: true,
        ..FjallOptions::default()
    };
    append(
        &FjallStore::open(folder.path(), options).expect("it opens"),
        1,
    )
    .await;
    append(
        &FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens"),
        1,
    )
    .await;
}

#[tokio::test]
async fn store_is_open_in_one_place_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
    let second = FjallStore::open(folder.path(), FjallOptions::default());
    assert!(
        matches!(second, Err(OpenError::Locked { .. })),
        "{second:?}"
    );
    drop(first);
    assert!(FjallStore::open(folder.path(), FjallOptions::default()).is_ok());
}

#[tokio::test]
async fn store_whose_creation_was_interrupted_opens() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new").join("store");
    let created = FjallStore::open(&path, FjallOptions::default()).expect("it opens");
    drop(created);
    // As it is before the last step, with a database that is not complete.
    let (database, new) = (path.join("db"), path.join("db.new"));
    std::fs::rename(database, &new).expect("it is there");
    std::fs::remove_file(new.join("version")).expect("it is there");
    append(
        &FjallStore::open(&path, FjallOptions::default()).expect("it opens"),
        1,
    )
    .await;
    assert!(!new.exists());
}

/// The files of a store by their paths in its folder.
type StoreFiles = BTreeMap<PathBuf, Vec<u8>>;

/// Reads the files of a store, without the zeros at the end of preallocated ones.
fn files_in(folder: &Path) -> StoreFiles {
    let mut files = StoreFiles::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut bytes = std::fs::read(&path).expect("a file");
            if bytes.len() > 1 << 20 {
                let end = bytes.iter().rposition(|byte| *byte != 0);
                bytes.truncate(end.map_or(0, |last| last + 1));
            }
            let name = path.strip_prefix(folder).expect("it is below");
            files.insert(name.to_owned(), bytes);
        }
    }
    files
}

/// Opens a copy of a store. Returns the last sequence of its entity, or `None` if damage is
/// reported.
async fn last_sequence(files: &StoreFiles) -> Option<Sequence> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("it is written");
    }
    let entity = EntityId::new("test", "a").expect("a short name");
    let store = match FjallStore::open(folder.path(), FjallOptions::default()) {
        Ok(store) => store,
        Err(OpenError::Lost { .. } | OpenError::Damaged { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    match store.read(&entity).await {
        Ok(found) => Some(found.sequence),
        Err(StoreError::Damaged { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn damaged_journal_is_never_silent() {
    const BATCHES: u64 = 7;
    let folder = tempfile::tempdir().expect("a folder");
    let store = FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
    append(&store, BATCHES).await;
    let files = files_in(folder.path());
    drop(store);
    assert_eq!(last_sequence(&files).await, Some(Sequence(BATCHES)));
    let is_journal = |path: &&PathBuf| path.extension().is_some_and(|it| it == "jnl");
    let journal = files.keys().find(is_journal).expect("a journal");
    let bytes = &files[journal];
    let cuts = (0..bytes.len())
        .step_by(53)
        .map(|cut| bytes[..cut].to_vec());
    let flips = (0..bytes.len()).step_by(31).map(|at| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    });
    let (mut whole, mut reported) = (0, 0);
    for damaged in cuts.chain(flips) {
        let mut files = files.clone();
        files.insert(journal.clone(), damaged);
        match last_sequence(&files).await {
            Some(found) => {
                assert_eq!(found, Sequence(BATCHES), "a silent loss");
                whole += 1;
            }
            None => reported += 1,
        }
    }
    assert!(reported > whole, "{reported} reported, {whole} whole");
}

#[tokio::test]
async fn store_whose_database_is_missing_is_not_created_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FjallOptions::default();
    append(
        &FjallStore::open(folder.path(), options).expect("it opens"),
        3,
    )
    .await;
    let database = folder.path().join("db");
    let aside = folder.path().join("aside");
    std::fs::rename(&database, &aside).expect("it is closed");
    let opened = FjallStore::open(folder.path(), options);
    assert!(matches!(opened, Err(OpenError::Lost { .. })), "{opened:?}");
    std::fs::rename(&aside, &database).expect("nothing is in its place");
    FjallStore::open(folder.path(), options).expect("all is there");
}

#[tokio::test]
async fn torn_group_that_was_not_acknowledged_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
    append(&open(), 6).await;
    let before = files_in(folder.path());
    append(&open(), 1).await;
    let mut files = files_in(folder.path());
    let journal = Path::new("db/0.jnl");
    let bytes = files.get_mut(journal).expect("a journal");
    // The number of the group, before the digest and the end of the batch.
    let at = bytes.len() - 14;
    bytes[at] ^= 1;
    assert_eq!(last_sequence(&files).await, None, "it was acknowledged");
    let mark = Path::new("mark");
    files.insert(mark.to_owned(), before[mark].clone());
    assert_eq!(last_sequence(&files).await, Some(Sequence(6)));
    // Not the last group: others behind it would be lost.
    let behind = before[journal].len();
    let bytes = files.get_mut(journal).expect("a journal");
    bytes[at] ^= 1;
    bytes[behind + 40] ^= 1;
    assert_eq!(last_sequence(&files).await, None, "others are behind it");
}

/// Returns the bytes of the journals of a store.
fn journal_length(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder.join("db")).expect("a database");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let journals = paths.filter(|path| path.extension().is_some_and(|end| end == "jnl"));
    journals
        .map(|path| path.metadata().expect("a file").len())
        .sum()
}

#[tokio::test]
async fn clean_stop_leaves_nothing_to_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
    let entity = |number: u64| EntityId::new("test", number.to_string()).expect("a short name");
    let value = |number: u64, round: u64| format!("{number}-{round} ").repeat(8 << 10).into_bytes();
    // Each round changes two entities. The second one also adds others, which is more than a clean
    // stop leaves for the next start.
    for round in 0..3 {
        let store = open();
        for number in 0..if round == 1 { 50 } else { 2 } {
            let (entity, expected) = (entity(number), if number < 2 { round } else { 0 });
            let fence = store.lease(&entity).await.expect("a lease");
            let mut batch = Batch::new();
            batch.put(Table::State, [], value(number, round));
            let appended = store
                .append(&entity, Sequence(expected), fence, batch)
                .await;
            assert_eq!(appended, Ok(Sequence(expected + 1)));
        }
        drop(store);
        let length = journal_length(folder.path());
        assert_eq!(length == 0, round == 1, "{length} bytes in round {round}");
        let store = open();
        for number in 0..if round == 0 { 2 } else { 50 } {
            let last = if number < 2 { round } else { 1 };
            let found = store.read(&entity(number)).await.expect("it is readable");
            let written = if number < 2 { round + 1 } else { 1 };
            assert_eq!(found.sequence, Sequence(written), "entity {number}");
            assert_eq!(found.rows[0].value, value(number, last), "entity {number}");
        }
    }
}

/// Opens a store that the thread of a backup may have open for a moment longer than its owner.
async fn open_when_free(path: &Path) -> FjallStore {
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        match FjallStore::open(path, FjallOptions::default()) {
            Err(OpenError::Locked { .. }) if Instant::now() < limit => {
                tokio::task::yield_now().await;
            }
            opened => return opened.expect("it opens once the backup has ended"),
        }
    }
}

#[tokio::test]
async fn clean_stop_while_a_backup_reads_loses_nothing() {
    const ENTITIES: u8 = 60;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let entity = |number: u8| EntityId::new("test", number.to_string()).expect("a short name");
    let value = |number| vec![number; 64 << 10];
    for round in 0..10 {
        let copies = folder.path().join(format!("copies-{round}"));
        std::fs::create_dir(&copies).expect("a folder");
        let store = open_when_free(&path).await;
        for number in 0..ENTITIES {
            let fence = store.lease(&entity(number)).await.expect("a lease");
            let mut batch = Batch::new();
            batch.put(Table::State, [], value(number));
            let appended = store.append(&entity(number), Sequence(round), fence, batch);
            assert_eq!(appended.await, Ok(Sequence(round + 1)));
        }
        let started = async {
            while std::fs::read_dir(&copies).expect("a folder").count() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            copied = store.backup(copies.join("copy")) => drop(copied.expect("it is copied")),
            () = started => {}
        }
        drop(store);
    }
    let store = open_when_free(&path).await;
    for number in 0..ENTITIES {
        let found = store.read(&entity(number)).await.expect("it is readable");
        assert_eq!(found.sequence, Sequence(10), "entity {number}");
        assert_eq!(found.rows[0].value, value(number));
    }
}
