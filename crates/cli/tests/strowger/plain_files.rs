//! A component is read from a plain file only, never from a file on which a node would block.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode};

use crate::binary::strowger;
use crate::files::Files;
use crate::running::Running;

/// The time of an answer without any waiting, including the start of a process.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(5);

fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0)
        .expect("the file is accessible");
}

fn echo(files: &Files) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fixture = root.join("fixtures/components/echo.wasm");
    fs::copy(fixture, files.path("plain")).expect("the file is accessible");
    files.manifest("plain", "plain", "")
}

#[test]
fn special_files_are_refused_at_once_without_blocking_a_thread() {
    let files = Files::new();
    pipe(&files.path("pipe"));
    let _socket = UnixListener::bind(files.path("socket")).expect("the file is accessible");
    fs::create_dir(files.path("folder")).expect("the file is accessible");
    let sparse = File::create(files.path("sparse")).expect("the file is accessible");
    sparse.set_len(1 << 40).expect("it takes no room");
    let node = Running::start("");
    for (file, says) in [
        ("pipe", "is a named pipe"),
        ("socket", "is a socket"),
        ("folder", "is a directory"),
        ("/dev/zero", "is a device"),
        ("sparse", "limit is"),
        ("nothing", "No such file"),
    ] {
        let manifest = files.manifest("it", file, "");
        for asked in [
            node.ask(["component", "deploy", &manifest]),
            strowger(["component", "inspect", &manifest]),
        ] {
            assert_ne!(asked.code, 0, "{file}");
            assert!(asked.err.contains(says), "{file}: {}", asked.err);
            assert!(asked.err.contains("hint: "), "{file}: {}", asked.err);
        }
    }
    // The manifest itself may also be such a file.
    let began = Instant::now();
    let ran = node.ask(["component", "deploy", &files.place("pipe")]);
    assert!(ran.err.contains("is a named pipe"), "{}", ran.err);
    assert!(began.elapsed() < MAX_ANSWER_TIME, "{:?}", began.elapsed());
    let ran = node.ask(["component", "deploy", &echo(&files)]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let began = Instant::now();
    node.end();
    assert!(began.elapsed() < MAX_ANSWER_TIME, "{:?}", began.elapsed());
}

#[test]
fn tokens_are_read_from_plain_files_only() {
    let files = Files::new();
    pipe(&files.path("pipe"));
    let long = File::create(files.path("long")).expect("the file is accessible");
    long.set_len(1 << 40).expect("it takes no room");
    let mode = Permissions::from_mode(0o600);
    fs::set_permissions(files.path("long"), mode).expect("the file is accessible");
    for (file, says) in [("pipe", "is a named pipe"), ("long", "limit is 65536")] {
        let config = format!(
            "[gateway]\ntcp = \"127.0.0.1:0\"\ntoken_file = {:?}\n",
            files.place(file)
        );
        fs::write(files.path("node.toml"), config).expect("the file is accessible");
        let config = files.place("node.toml");
        for words in [
            &["check", &*config][..],
            &["run", "--port", "0", "--config", &*config],
        ] {
            let began = Instant::now();
            let ran = strowger(words.iter().copied());
            assert_eq!(ran.code, 2, "{words:?} {file}: {}", ran.err);
            assert!(ran.err.contains(says), "{words:?} {file}: {}", ran.err);
            assert!(began.elapsed() < MAX_ANSWER_TIME, "{:?}", began.elapsed());
        }
    }
}
