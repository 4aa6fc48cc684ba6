//! The memory use of a search, measured in a process of its own.

use std::fs::File;
use std::io::Write as _;

use strowger::ActorSystem;
use strowger_tools::files::{Files, FilesSpec, SearchRequest};

/// A memory statistic of this process, in bytes.
fn process_memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    number.expect("it is in kB") * 1024
}

/// Covers a line without an end, bytes that are not text, and many lines.
#[tokio::test]
async fn search_memory_is_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, piece) in [
        ("line", b"\xff".repeat(1 << 16)),
        ("lines", b"a line\n".repeat(1 << 13)),
    ] {
        let mut file = File::create(folder.path().join(name)).expect("a file");
        for _ in 0..(64 << 20) / piece.len() {
            file.write_all(&piece).expect("there is room");
        }
    }
    let system = ActorSystem::new("office").expect("it starts");
    let spec = FilesSpec::new(folder.path());
    let files = system.spawn::<Files>("files", spec).expect("it starts");
    let before = process_memory("VmRSS:");
    let search = SearchRequest {
        text: Some("needle".into()),
        ..SearchRequest::default()
    };
    let found = files.ask_within(search, std::time::Duration::from_secs(300));
    let found = found.await.expect("it answers").expect("it is a directory");
    assert_eq!((found.matches.len(), found.skipped.long_lines), (0, 1));
    let grown = process_memory("VmHWM:").saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more were in use");
}
