//! Unrequested scans: none before the first call, and afterwards only in directories where killed
//! writers may have left files.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use strowger_tools::files::{FilesUsageRequest, WriteMode, WriteRequest};

use super::Fixture;

/// A file that was last modified `age` ago.
fn create_aged(path: &Path, age: Duration) {
    let file = File::create(path).expect("a file");
    let time = SystemTime::now() - age;
    file.set_modified(time).expect("it is ours");
}

#[tokio::test]
async fn first_write_scans_nothing() {
    let fixture = Fixture::open(|spec| {
        for dir in ["a", "b", "c"] {
            let dir = spec.root.join(dir);
            fs::create_dir(&dir).expect("a directory");
            for number in 0..100 {
                File::create(dir.join(number.to_string())).expect("a file");
            }
        }
        fs::create_dir(spec.root.join("own")).expect("a directory");
    });
    fixture.write("new", "text").await.expect("there is room");
    fixture.read("new").await.expect("it is there");
    assert_eq!(fixture.ask(FilesUsageRequest).await.scanned, 0);
    // Replacing a file scans its own directory, and no other.
    let write = WriteRequest::new("own/new", "text").with_mode(WriteMode::Atomic);
    fixture.ask(write).await.expect("there is room");
    let scanned = fixture.ask(FilesUsageRequest).await.scanned;
    assert!(scanned <= 1, "{scanned} entries were scanned");
}

#[tokio::test]
async fn only_abandoned_temp_files_are_removed() {
    let (long, short) = (Duration::from_secs(7200), Duration::from_secs(60));
    let fixture = Fixture::open(|spec| {
        fs::create_dir(spec.root.join("elsewhere")).expect("a directory");
        for (name, age) in [
            (".strowger-12-3", long),
            (".strowger-12-4", short),
            (".strowger-notes", long),
            (".strowger-12-3.bak", long),
            ("elsewhere/.strowger-12-3", long),
        ] {
            create_aged(&spec.root.join(name), age);
        }
    });
    let write = WriteRequest::new("text", "text").with_mode(WriteMode::Durable);
    fixture.ask(write).await.expect("there is room");
    let gone = async {
        while fixture.ask(FilesUsageRequest).await.scanned < 6
            || fixture.root().join(".strowger-12-3").exists()
        {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
    gone.expect("the leftover goes");
    for name in [
        ".strowger-12-4",
        ".strowger-notes",
        ".strowger-12-3.bak",
        "elsewhere/.strowger-12-3",
        "text",
    ] {
        assert!(fixture.root().join(name).exists(), "{name} stays");
    }
}
