//! A store on disk whose writes fail for lack of space, as the operating system reports it.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use strowger_durable::store::{
    Batch, EntityId, FjallOptions, FjallStore, Sequence, Store, StoreError, Table,
};

const FOLDER: &str = "STROWGER_DURABLE_FULL_FOLDER";

/// Limits the size of files, so that every write beyond it fails; `None` lifts the limit.
fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = bytes.or(maximum);
    let limit = Rlimit { current, maximum };
    setrlimit(Resource::Fsize, limit).expect("a limit below the maximum");
}

async fn fill_disk(folder: &str) {
    let store = FjallStore::open(folder, FjallOptions::default()).expect("it opens");
    let entity = EntityId::new("test", "a").expect("a short name");
    let fence = store.lease(&entity).await.expect("a lease");
    let put = |expected: Sequence| {
        let mut batch = Batch::new();
        batch.put(Table::State, [], expected.0.to_be_bytes());
        store.append(&entity, expected, fence, batch)
    };
    assert_eq!(put(Sequence(0)).await, Ok(Sequence(1)));
    limit_files(Some(0));
    for _ in 0..3 {
        let refused = put(Sequence(1)).await;
        assert!(
            matches!(refused, Err(StoreError::DiskFull { .. })),
            "{refused:?}"
        );
    }
    limit_files(None);
    let found = loop {
        match store.read(&entity).await {
            Ok(found) => break found.sequence,
            Err(StoreError::DiskFull { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    };
    let next = put(found).await.expect("there is room again");
    drop(store);
    let store = FjallStore::open(folder, FjallOptions::default()).expect("nothing is lost");
    let reopened = store.read(&entity).await.expect("it is readable");
    assert_eq!(reopened.sequence, next);
}

/// The program of the child; in the parent, it does nothing.
#[tokio::test]
async fn child_with_a_full_disk() {
    if let Ok(folder) = std::env::var(FOLDER) {
        fill_disk(&folder).await;
    }
}

#[test]
fn store_on_a_full_disk_refuses_and_recovers() {
    let folder = tempfile::tempdir().expect("a folder");
    // The limit is one of the process, and its signal would end it.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "full_disk::child_with_a_full_disk"])
        .env(FOLDER, folder.path())
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
}
