//! Paths that escape the root, and special files. Each attack succeeds against a twin that compares
//! paths; the files actor refuses it and names the rule.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use strowger_tools::files::{
    AppendRequest, BeginWriteRequest, CommitWriteRequest, CreateDirectoryRequest, DeleteRequest,
    EditRequest, FileError, FileRule, FilesSpec, ListRequest, ReadMediaRequest, ReadRequest,
    RenameRequest, SearchRequest, StatRequest, TreeRequest, WriteMode, WriteRequest,
};

use super::{Fixture, SECRET, naive, rule};

#[tokio::test]
async fn dot_dot_stays_below_the_root() {
    let fixture = Fixture::open(|_| {});
    fs::create_dir(fixture.root().join("a")).expect("a folder");
    for path in [
        "../secret",
        "a/../../secret",
        "./../secret",
        "a/../../data/../secret",
    ] {
        assert_eq!(
            naive::read(&fixture.root(), path).expect("it goes through"),
            SECRET
        );
        assert_eq!(rule(fixture.read(path).await), FileRule::Outside, "{path}");
        assert_eq!(
            rule(fixture.write(path, "x").await),
            FileRule::Outside,
            "{path}"
        );
    }
    fixture
        .write("a/../b", "stays below")
        .await
        .expect("it is below the root");
    assert_eq!(
        fs::read(fixture.outside().join("secret")).expect("it is there"),
        SECRET
    );
}

#[tokio::test]
async fn every_request_stays_below_the_root() {
    let fixture = Fixture::open(|_| {});
    let path = || "../secret".to_owned();
    fixture.write("own", "x").await.expect("there is room");
    let append = AppendRequest {
        path: path(),
        bytes: "x".into(),
    };
    assert_eq!(rule(fixture.ask(append).await), FileRule::Outside);
    let edit = EditRequest {
        path: path(),
        ..EditRequest::default()
    };
    assert_eq!(rule(fixture.ask(edit).await), FileRule::Outside);
    assert_eq!(
        rule(fixture.ask(ReadMediaRequest { path: path() }).await),
        FileRule::Outside
    );
    assert_eq!(
        rule(fixture.ask(StatRequest { path: path() }).await),
        FileRule::Outside
    );
    assert_eq!(
        rule(
            fixture
                .ask(CreateDirectoryRequest {
                    path: "../new".into()
                })
                .await
        ),
        FileRule::Outside
    );
    let list = ListRequest {
        path: "..".into(),
        ..ListRequest::default()
    };
    assert_eq!(rule(fixture.ask(list).await), FileRule::Outside);
    let tree = TreeRequest {
        path: "..".into(),
        ..TreeRequest::default()
    };
    assert_eq!(rule(fixture.ask(tree).await), FileRule::Outside);
    let search = SearchRequest {
        path: "..".into(),
        ..SearchRequest::default()
    };
    assert_eq!(rule(fixture.ask(search).await), FileRule::Outside);
    let delete = DeleteRequest {
        path: path(),
        recursive: true,
    };
    assert_eq!(rule(fixture.ask(delete).await), FileRule::Outside);
    let begin = BeginWriteRequest { path: path() };
    assert_eq!(rule(fixture.ask(begin).await), FileRule::Outside);
    let begin = BeginWriteRequest { path: "own".into() };
    let part = fixture.ask(begin).await.expect("there is room").part;
    for (part, path) in [(&*part, "../secret"), ("../secret", "own")] {
        let commit = CommitWriteRequest {
            part: part.into(),
            path: path.into(),
            ..CommitWriteRequest::default()
        };
        assert_eq!(rule(fixture.ask(commit).await), FileRule::Outside);
    }
    for (from, to) in [("own", "../own"), ("../secret", "mine")] {
        let rename = RenameRequest {
            from: from.into(),
            to: to.into(),
            replace: true,
        };
        assert_eq!(rule(fixture.ask(rename).await), FileRule::Outside);
    }
    for mode in [WriteMode::InPlace, WriteMode::Atomic, WriteMode::Durable] {
        let write = WriteRequest::new(path(), "x").with_mode(mode);
        assert_eq!(rule(fixture.ask(write).await), FileRule::Outside);
    }
    assert_eq!(
        fs::read(fixture.outside().join("secret")).expect("it is there"),
        SECRET
    );
    assert_eq!(
        fs::read_dir(fixture.outside()).expect("a folder").count(),
        3
    );
}

#[tokio::test]
async fn archive_names_stay_below_the_root() {
    let fixture = Fixture::open(|_| {});
    fixture
        .ask(CreateDirectoryRequest { path: "ok".into() })
        .await
        .expect("there is room");
    // Names as an archive contains them, each written verbatim.
    for name in ["../evil", "ok/../../evil", "/etc/evil-strowger"] {
        let refused = rule(fixture.write(name, "evil").await);
        assert!(
            matches!(refused, FileRule::Outside | FileRule::Absolute),
            "{name}: {refused:?}"
        );
    }
    naive::write(&fixture.root(), "../evil", b"evil").expect("it goes through");
    assert!(fixture.outside().join("evil").exists());
}

#[tokio::test]
async fn absolute_path_outside_the_root_is_refused() {
    let fixture = Fixture::open(|_| {});
    fixture.write("own", "x").await.expect("there is room");
    for path in ["/etc/passwd", "/", "/proc/self/root/etc/passwd"] {
        assert_eq!(rule(fixture.read(path).await), FileRule::Absolute, "{path}");
    }
    let own = fs::canonicalize(fixture.root().join("own")).expect("it is there");
    let read = fixture.read(own.to_str().expect("UTF-8")).await;
    assert_eq!(read.expect("it is below the root"), b"x");
}

#[tokio::test]
async fn sibling_with_the_same_prefix_is_outside() {
    let fixture = Fixture::open(|_| {});
    let root = fs::canonicalize(fixture.root()).expect("it is there");
    let path = format!("{}-secret/key", root.display());
    assert_eq!(naive::read(&root, &path).expect("it goes through"), SECRET);
    assert_eq!(rule(fixture.read(&path).await), FileRule::Absolute);
    assert_eq!(
        rule(fixture.read("../data-secret/key").await),
        FileRule::Outside
    );
}

#[tokio::test]
async fn nul_and_long_names_are_refused() {
    let fixture = Fixture::open(|_| {});
    let long = "x".repeat(5000);
    let part = "x".repeat(300);
    for path in ["secret\0.txt", &long, &part] {
        assert_eq!(rule(fixture.read(path).await), FileRule::Name);
        assert_eq!(rule(fixture.write(path, "x").await), FileRule::Name);
    }
    let deep = "d/".repeat(100) + "file";
    assert_eq!(rule(fixture.read(&deep).await), FileRule::Depth);
}

#[tokio::test]
async fn links_out_of_the_root_are_refused() {
    let fixture = Fixture::open(|_| {});
    let at = |name: &str| fixture.root().join(name);
    symlink("../secret", at("to-file")).expect("a link");
    symlink("..", at("to-directory")).expect("a link");
    symlink(fixture.outside().join("secret"), at("absolute")).expect("a link");
    symlink("to-directory", at("chain-1")).expect("a link");
    symlink("chain-1", at("chain-2")).expect("a link");
    for path in [
        "to-file",
        "to-directory/secret",
        "absolute",
        "chain-2/secret",
    ] {
        assert_eq!(
            naive::read(&fixture.root(), path).expect("it goes through"),
            SECRET,
            "{path}"
        );
        assert_eq!(rule(fixture.read(path).await), FileRule::Outside, "{path}");
        assert_eq!(
            rule(fixture.write(path, "x").await),
            FileRule::Outside,
            "{path}"
        );
        let atomic = WriteRequest::new(path, "x").with_mode(WriteMode::Atomic);
        assert_eq!(rule(fixture.ask(atomic).await), FileRule::Outside, "{path}");
    }
    let search = SearchRequest {
        text: Some("secret".into()),
        ..SearchRequest::default()
    };
    assert!(
        fixture
            .ask(search)
            .await
            .expect("it is a directory")
            .matches
            .is_empty()
    );
    symlink("round", at("round")).expect("a link");
    assert_eq!(rule(fixture.read("round").await), FileRule::Loop);
    assert_eq!(
        fs::read(fixture.outside().join("secret")).expect("it is there"),
        SECRET
    );
}

#[tokio::test]
async fn proc_root_link_is_refused() {
    let fixture = Fixture::open(|_| {});
    symlink("/proc/self/root", fixture.root().join("proc")).expect("a link");
    let path = format!("proc{}", fixture.outside().join("secret").display());
    assert_eq!(
        naive::read(&fixture.root(), &path).expect("it goes through"),
        SECRET
    );
    assert_eq!(rule(fixture.read(&path).await), FileRule::Outside);
}

#[tokio::test]
async fn root_may_be_reached_through_a_link() {
    let fixture = Fixture::open(|_| {});
    let link = fixture.outside().join("link");
    symlink("data", &link).expect("a link");
    fixture.write("own", "x").await.expect("there is room");
    let spec = FilesSpec::new(&link);
    let files = fixture
        .system
        .spawn::<strowger_tools::files::Files>("linked", spec)
        .expect("it starts");
    let own = files
        .ask(ReadRequest::new("own"))
        .await
        .expect("it answers");
    assert_eq!(own.expect("it is there"), b"x"[..]);
}

#[tokio::test]
async fn hard_linked_file_is_not_written_in_place() {
    let fixture = Fixture::open(|_| {});
    let secret = fixture.outside().join("secret");
    fs::hard_link(&secret, fixture.root().join("mine")).expect("a link");
    assert_eq!(fixture.read("mine").await.expect("it may be read"), SECRET);
    assert_eq!(rule(fixture.write("mine", "x").await), FileRule::Linked);
    let append = AppendRequest {
        path: "mine".into(),
        bytes: "x".into(),
    };
    assert_eq!(rule(fixture.ask(append).await), FileRule::Linked);
    assert_eq!(fs::read(&secret).expect("it is there"), SECRET);
    // A new file replaces the name and leaves the other file unchanged.
    let atomic = WriteRequest::new("mine", "x").with_mode(WriteMode::Atomic);
    fixture.ask(atomic).await.expect("it is another file then");
    assert_eq!(fs::read(&secret).expect("it is there"), SECRET);
    fs::remove_file(fixture.root().join("mine")).expect("ours");
    fs::hard_link(&secret, fixture.root().join("mine")).expect("a link");
    naive::write(&fixture.root(), "mine", b"x").expect("it goes through");
    assert_eq!(fs::read(&secret).expect("it is there"), b"x");
}

#[tokio::test]
async fn special_files_are_refused_without_blocking() {
    let fixture = Fixture::open(|_| {});
    let at = fixture.root().join("pipe");
    mknodat(CWD, &at, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
    assert!(
        fs::metadata(&at)
            .expect("it is there")
            .file_type()
            .is_fifo()
    );
    let socket = std::os::unix::net::UnixListener::bind(fixture.root().join("socket"));
    let _socket = socket.expect("a socket");
    for path in ["pipe", "socket"] {
        assert_eq!(rule(fixture.read(path).await), FileRule::Special, "{path}");
        assert_eq!(
            rule(fixture.write(path, "x").await),
            FileRule::Special,
            "{path}"
        );
        let atomic = WriteRequest::new(path, "x").with_mode(WriteMode::Atomic);
        assert_eq!(rule(fixture.ask(atomic).await), FileRule::Special, "{path}");
    }
    let search = SearchRequest {
        text: Some(".".into()),
        ..SearchRequest::default()
    };
    assert_eq!(
        fixture.ask(search).await.expect("it is a directory").files,
        0
    );
}

#[tokio::test]
async fn devices_are_refused() {
    let fixture = Fixture::open(|_| {});
    let device = rustix::fs::makedev(1, 5);
    let at = fixture.root().join("zero");
    if mknodat(CWD, &at, FileType::CharacterDevice, Mode::RWXU, device).is_err() {
        // Only root can create devices; a link to one is refused for every user.
        symlink("/dev/zero", &at).expect("a link");
        assert_eq!(rule(fixture.read("zero").await), FileRule::Outside);
        return;
    }
    assert_eq!(rule(fixture.read("zero").await), FileRule::Special);
    assert_eq!(rule(fixture.write("zero", "x").await), FileRule::Special);
}

#[tokio::test]
async fn root_is_neither_deleted_nor_replaced() {
    let fixture = Fixture::open(|_| {});
    for path in ["", ".", "./."] {
        let delete = DeleteRequest {
            path: path.into(),
            recursive: true,
        };
        assert_eq!(rule(fixture.ask(delete).await), FileRule::Root);
        assert_eq!(rule(fixture.write(path, "x").await), FileRule::Root);
    }
    assert_eq!(
        rule(
            fixture
                .ask(DeleteRequest {
                    path: "a/..".into(),
                    recursive: true
                })
                .await
        ),
        FileRule::Name
    );
}

#[tokio::test]
async fn read_only_root_refuses_changes() {
    let fixture = Fixture::open(|spec| spec.read_only = true);
    fs::write(fixture.root().join("own"), "x").expect("a file");
    assert_eq!(fixture.read("own").await.expect("it may be read"), b"x");
    assert_eq!(rule(fixture.write("own", "y").await), FileRule::ReadOnly);
    let pieces = fixture.write_pieces("own", &["y"]).await;
    assert_eq!(rule(pieces), FileRule::ReadOnly);
    assert_eq!(
        rule(
            fixture
                .ask(CreateDirectoryRequest { path: "new".into() })
                .await
        ),
        FileRule::ReadOnly
    );
    let delete = DeleteRequest {
        path: "own".into(),
        recursive: false,
    };
    assert_eq!(rule(fixture.ask(delete).await), FileRule::ReadOnly);
    let rename = RenameRequest {
        from: "own".into(),
        to: "other".into(),
        replace: false,
    };
    assert_eq!(rule(fixture.ask(rename).await), FileRule::ReadOnly);
    assert_eq!(
        fs::read(fixture.root().join("own")).expect("it is there"),
        b"x"
    );
}

/// Two threads swap what a name refers to as fast as they can: a directory inside the root, and a
/// link to the outside.
struct Swaps {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    writers: Vec<std::thread::JoinHandle<()>>,
}

impl Swaps {
    fn begin(root: &Path) -> Self {
        fs::create_dir(root.join("place")).expect("a folder");
        fs::write(root.join("place/key"), "ours").expect("a file");
        let stop = Arc::new(AtomicBool::new(false));
        let swaps = Arc::new(AtomicU64::new(0));
        let writer = |number: u32| {
            let (stop, swaps) = (Arc::clone(&stop), Arc::clone(&swaps));
            let (place, link) = (root.join("place"), root.join(format!("link-{number}")));
            symlink("../data-secret", &link).expect("a link");
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let swapped = renameat_with(CWD, &link, CWD, &place, RenameFlags::EXCHANGE);
                    swapped.expect("both are there");
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let writers = (0..2)
            .map(|number| std::thread::spawn(writer(number)))
            .collect();
        Self {
            stop,
            swaps,
            writers,
        }
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.join().expect("it only tries");
        }
        self.swaps.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapped_links_never_leave_the_root() {
    let fixture = Fixture::open(|_| {});
    let swaps = Swaps::begin(&fixture.root());
    // The twin checks the link and then opens the path: the swap happens in between.
    let mut leaked = 0_u64;
    let checked = |path: &Path| !path.parent().is_some_and(Path::is_symlink);
    let begun = Instant::now();
    let (mut ours, mut outside, mut neighbour) = (0_u64, 0_u64, 0_u64);
    while begun.elapsed() < RACE {
        for _ in 0..50 {
            let path = fixture.root().join("place/key");
            if checked(&path) && fs::read(&path).is_ok_and(|bytes| bytes == SECRET) {
                leaked += 1;
            }
        }
        match fixture.read("place/key").await {
            Ok(bytes) => {
                assert!(
                    b"ours".starts_with(&bytes[..]),
                    "{bytes:?} is not below the root"
                );
                ours += 1;
            }
            Err(FileError::Refused { rule, .. }) => {
                assert_eq!(rule, FileRule::Outside);
                outside += 1;
            }
            Err(_) => {}
        }
        for mode in [WriteMode::InPlace, WriteMode::Atomic] {
            let _ = fixture
                .ask(WriteRequest::new("place/key", "ours").with_mode(mode))
                .await;
        }
        fixture
            .write("neighbour", "goes on")
            .await
            .expect("nobody swaps it");
        neighbour += 1;
    }
    let swaps = swaps.end();
    let key = fs::read(fixture.outside().join("data-secret/key")).expect("it is there");
    assert_eq!(key, SECRET, "nothing was written outside");
    assert_eq!(
        fs::read_dir(fixture.outside().join("data-secret"))
            .expect("it is there")
            .count(),
        1
    );
    assert!(
        swaps > 100 && neighbour > 10 && outside + ours > 0,
        "there was a race"
    );
    println!("{swaps} swaps, {leaked} leaks through the twin, {outside} refused, {ours} read");
}

/// The duration of the race.
const RACE: Duration = Duration::from_secs(2);
