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
const AT_ONCE: Duration = Duration::from_secs(5);

fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0).expect("it is ours");
}

fn echo(files: &Files) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fixture = root.join("fixtures/components/echo.wasm");
    fs::copy(fixture, files.path("plain")).expect("it is ours");
    files.manifest("plain", "plain", "")
}

#[test]
fn what_is_no_plain_file_is_refused_at_once_and_keeps_no_thread() {
    let files = Files::new();
    pipe(&files.path("pipe"));
    let _socket = UnixListener::bind(files.path("socket")).expect("it is ours");
    fs::create_dir(files.path("folder")).expect("it is ours");
    let sparse = File::create(files.path("sparse")).expect("it is ours");
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
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let ran = node.ask(["component", "deploy", &echo(&files)]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let began = Instant::now();
    node.end();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

#[test]
fn a_token_is_read_from_a_plain_file_alone() {
    let files = Files::new();
    pipe(&files.path("pipe"));
    let long = File::create(files.path("long")).expect("it is ours");
    long.set_len(1 << 40).expect("it takes no room");
    let mode = Permissions::from_mode(0o600);
    fs::set_permissions(files.path("long"), mode).expect("it is ours");
    for (file, says) in [("pipe", "is a named pipe"), ("long", "limit is 65536")] {
        let config = format!(
            "[gateway]\ntcp = \"127.0.0.1:0\"\ntoken_file = {:?}\n",
            files.place(file)
        );
        fs::write(files.path("node.toml"), config).expect("it is ours");
        let config = files.place("node.toml");
        for words in [
            &["check", &*config][..],
            &["run", "--port", "0", "--config", &*config],
        ] {
            let began = Instant::now();
            let ran = strowger(words.iter().copied());
            assert_eq!(ran.code, 2, "{words:?} {file}: {}", ran.err);
            assert!(ran.err.contains(says), "{words:?} {file}: {}", ran.err);
            assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        }
    }
}
