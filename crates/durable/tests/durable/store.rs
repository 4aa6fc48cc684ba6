//! Both stores pass the conformance suite, and a store on disk reports its losses.

use std::sync::Arc;
use std::time::Duration;

use strowger_durable::conformance::{self, StoreUnderTest};
use strowger_durable::store::{
    Batch, Durability, EntityId, FjallOptions, FjallStore, MemoryStore, OpenError, Sequence, Store,
    StoreFault, Table,
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
