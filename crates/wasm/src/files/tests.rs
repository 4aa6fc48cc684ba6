use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::host_call::NoCall;
use crate::manifest::resolve;

/// A granted directory beside files that are not granted.
struct TestDirs {
    folder: tempfile::TempDir,
}

impl TestDirs {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("data/in/ner")).expect("it is made");
        fs::create_dir(at("data-secret")).expect("it is made");
        fs::write(at("secret"), "secret").expect("it is written");
        fs::write(at("data-secret/file"), "secret").expect("it is written");
        fs::write(at("data/file"), "0123456789").expect("it is written");
        fs::write(at("data/in/ner/file"), "inner").expect("it is written");
        Self { folder }
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn grant(&self) -> FilesGrant {
        FilesGrant {
            path: self.at("data"),
            write: true,
            size: 1 << 20,
            files: 100,
        }
    }

    fn root(&self) -> GrantedDir {
        GrantedDir::open(&self.grant(), &DirUsages::default()).expect("it is there")
    }

    /// Returns `true` if the files outside the grant are unchanged.
    fn is_untouched(&self) -> bool {
        let read = |name| fs::read_to_string(self.at(name)).expect("it is there");
        read("secret") == "secret" && read("data-secret/file") == "secret"
    }
}

fn link(to: impl AsRef<Path>, at: impl AsRef<Path>) {
    symlink(to, at).expect("there is room for a link");
}

#[test]
fn file_is_written_read_and_removed() {
    let dirs = TestDirs::new();
    let root = dirs.root();
    assert_eq!(
        root.read("file", 0, 100, &mut NoCall),
        Ok(b"0123456789".to_vec())
    );
    assert_eq!(root.read("file", 8, 100, &mut NoCall), Ok(b"89".to_vec()));
    assert_eq!(root.read("file", 1 << 60, 100, &mut NoCall), Ok(vec![]));
    assert_eq!(
        root.read("in/ner/file", 0, 3, &mut NoCall),
        Ok(b"inn".to_vec())
    );
    assert_eq!(root.write("in/new", 2, b"x", &mut NoCall), Ok(()));
    assert_eq!(
        root.read("in/new", 0, 100, &mut NoCall),
        Ok(b"\0\0x".to_vec())
    );
    assert_eq!(root.resize("in/new", 1, &mut NoCall), Ok(()));
    assert_eq!(root.size("in/new"), Ok(1));
    assert_eq!(root.remove("in/new"), Ok(()));
    assert_eq!(
        root.read("in/new", 0, 1, &mut NoCall),
        Err(Refusal::Unknown)
    );
}

#[test]
fn listing_continues_after_the_last_name() {
    let dirs = TestDirs::new();
    let root = dirs.root();
    let names = |path, after, most| {
        root.list(path, after, most, &mut NoCall)
            .map(|names| names.join(" "))
    };
    assert_eq!(names("", "", 10), Ok("file in/".to_owned()));
    assert_eq!(names("", "file", 10), Ok("in/".to_owned()));
    assert_eq!(names("", "", 1), Ok("file".to_owned()));
    assert_eq!(names("in/ner", "", 10), Ok("file".to_owned()));
    assert_eq!(names("file", "", 10), Err(Refusal::Unknown));
}

#[test]
fn paths_cannot_leave_the_granted_directory() {
    let dirs = TestDirs::new();
    let root = dirs.root();
    let absolute = dirs.at("secret").display().to_string();
    let paths = [
        "../secret",
        "in/../../secret",
        "in/ner/../../../secret",
        "./../secret",
        "..",
        ".",
        "",
        "/",
        "/etc/passwd",
        &absolute,
        "//etc/passwd",
        "../data-secret/file",
        "..\0/secret",
        "file\0",
        "in//ner/file",
        "in/",
    ];
    for path in paths {
        assert_eq!(
            root.read(path, 0, 100, &mut NoCall),
            Err(Refusal::Denied),
            "{path:?}"
        );
        assert_eq!(
            root.write(path, 0, b"x", &mut NoCall),
            Err(Refusal::Denied),
            "{path:?}"
        );
        assert_eq!(
            root.resize(path, 0, &mut NoCall),
            Err(Refusal::Denied),
            "{path:?}"
        );
        assert_eq!(root.remove(path), Err(Refusal::Denied), "{path:?}");
        assert!(
            path.is_empty() || root.list(path, "", 10, &mut NoCall).is_err(),
            "{path:?}"
        );
    }
    let deep = "d/".repeat(MAX_DEPTH) + "file";
    assert_eq!(root.read(&deep, 0, 1, &mut NoCall), Err(Refusal::Denied));
    let long = "x".repeat(MAX_PATH + 1);
    assert_eq!(root.read(&long, 0, 1, &mut NoCall), Err(Refusal::Denied));
    assert!(dirs.is_untouched());
}

#[test]
fn links_are_not_followed() {
    let dirs = TestDirs::new();
    link("../secret", dirs.at("data/file-link"));
    link("file-link", dirs.at("data/chain"));
    link("..", dirs.at("data/folder-link"));
    link("/", dirs.at("data/everything"));
    link("/proc/self/root", dirs.at("data/magic"));
    link("file", dirs.at("data/within"));
    link("../not-there", dirs.at("data/dangling"));
    let root = dirs.root();
    let secret = dirs.at("secret").display().to_string();
    let paths = [
        "file-link".to_owned(),
        "chain".to_owned(),
        "folder-link".to_owned(),
        "folder-link/secret".to_owned(),
        format!("everything{secret}"),
        format!("magic{secret}"),
        "within".to_owned(),
        "dangling".to_owned(),
    ];
    for path in &paths {
        assert!(root.read(path, 0, 100, &mut NoCall).is_err(), "{path}");
        assert!(root.write(path, 0, b"x", &mut NoCall).is_err(), "{path}");
        assert!(root.resize(path, 0, &mut NoCall).is_err(), "{path}");
        assert!(root.list(path, "", 10, &mut NoCall).is_err(), "{path}");
    }
    let names = root.list("", "", 10, &mut NoCall).expect("it is a folder");
    assert_eq!(names, ["file", "in/"], "links are not listed");
    assert_eq!(
        root.remove("file-link"),
        Ok(()),
        "a link is removed, not its end"
    );
    assert!(root.remove("folder-link/secret").is_err());
    assert!(!dirs.at("not-there").exists());
    assert!(dirs.is_untouched());
}

#[test]
fn link_swapped_in_concurrently_is_not_followed() {
    let dirs = TestDirs::new();
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, link_at) = (dirs.at("data/in"), dirs.at("data/in.link"));
            let aside = dirs.at("data/in.aside");
            link("../data-secret", &link_at);
            while !ending.load(Ordering::Relaxed) {
                // A directory and a link keep swapping under one name.
                fs::rename(&folder, &aside).expect("it is there");
                fs::rename(&link_at, &folder).expect("it is there");
                fs::rename(&folder, &link_at).expect("it is there");
                fs::rename(&aside, &folder).expect("it is there");
            }
        });
        let root = dirs.root();
        let escaped = (0..2000).any(|_| {
            let _ = root.write("in/file", 0, b"x", &mut NoCall);
            // The file may hold what this test wrote, or be one that it created and could not
            // write.
            root.read("in/file", 0, 100, &mut NoCall)
                .is_ok_and(|bytes| bytes.starts_with(b"secret"))
        });
        ending.store(true, Ordering::Relaxed);
        assert!(!escaped);
    });
    assert!(dirs.is_untouched());
}

#[test]
fn hard_linked_file_is_readable_not_writable() {
    let dirs = TestDirs::new();
    fs::hard_link(dirs.at("secret"), dirs.at("data/hard")).expect("it is linked");
    let root = dirs.root();
    assert_eq!(
        root.read("hard", 0, 100, &mut NoCall),
        Ok(b"secret".to_vec())
    );
    assert_eq!(
        root.write("hard", 0, b"x", &mut NoCall),
        Err(Refusal::Denied)
    );
    assert_eq!(root.resize("hard", 0, &mut NoCall), Err(Refusal::Denied));
    assert!(dirs.is_untouched());
}

#[test]
fn special_files_are_refused_without_blocking() {
    let dirs = TestDirs::new();
    let pipe = dirs.at("data/pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).expect("it is made");
    let _socket = std::os::unix::net::UnixListener::bind(dirs.at("data/socket"));
    let root = dirs.root();
    for name in ["pipe", "socket", "in"] {
        assert_eq!(
            root.read(name, 0, 1, &mut NoCall),
            Err(Refusal::Denied),
            "{name}"
        );
        assert_eq!(
            root.write(name, 0, b"x", &mut NoCall),
            Err(Refusal::Denied),
            "{name}"
        );
    }
}

#[test]
fn read_grant_does_not_allow_writes() {
    let dirs = TestDirs::new();
    let grant = FilesGrant {
        write: false,
        ..dirs.grant()
    };
    let root = GrantedDir::open(&grant, &DirUsages::default()).expect("it is there");
    assert_eq!(root.read("file", 0, 1, &mut NoCall), Ok(b"0".to_vec()));
    assert_eq!(
        root.write("file", 0, b"x", &mut NoCall),
        Err(Refusal::Denied)
    );
    assert_eq!(
        root.write("new", 0, b"x", &mut NoCall),
        Err(Refusal::Denied)
    );
    assert_eq!(root.resize("file", 0, &mut NoCall), Err(Refusal::Denied));
    assert_eq!(root.remove("file"), Err(Refusal::Denied));
}

#[test]
fn link_above_the_granted_directory_is_not_followed() {
    let dirs = TestDirs::new();
    link("data", dirs.at("alias"));
    let grant = FilesGrant {
        path: resolve(&dirs.at("alias")),
        ..dirs.grant()
    };
    let root = GrantedDir::open(&grant, &DirUsages::default()).expect("the manifest may say so");
    assert_eq!(root.read("file", 0, 1, &mut NoCall), Ok(b"0".to_vec()));
    // After the path was resolved, a link replaces an intermediate directory or the directory
    // itself.
    fs::create_dir_all(dirs.at("real/deep")).expect("it is ours");
    let way = resolve(&dirs.at("real/deep"));
    fs::rename(dirs.at("real"), dirs.at("moved")).expect("it is there");
    link("moved", dirs.at("real"));
    for path in [
        way,
        resolve(&dirs.at("data")).join("../real"),
        "data".into(),
        "".into(),
    ] {
        let grant = FilesGrant {
            path,
            ..dirs.grant()
        };
        assert!(
            GrantedDir::open(&grant, &DirUsages::default()).is_err(),
            "{:?}",
            grant.path
        );
    }
    let grant = FilesGrant {
        path: "/".into(),
        ..dirs.grant()
    };
    assert!(GrantedDir::open(&grant, &DirUsages::default()).is_ok());
}

#[test]
fn writes_stop_at_the_quota() {
    let dirs = TestDirs::new();
    for (size, fits) in [(100, false), (1000, true)] {
        let root = GrantedDir::open(
            &FilesGrant {
                size,
                ..dirs.grant()
            },
            &DirUsages::default(),
        )
        .expect("it is there");
        assert_eq!(root.write("a", 0, &[0; 200], &mut NoCall).is_ok(), fits);
        assert_eq!(
            root.write("file", 199, b"x", &mut NoCall).is_ok(),
            fits,
            "holes count"
        );
        assert_eq!(root.resize("file", 300, &mut NoCall).is_ok(), fits);
        assert_eq!(
            root.write("sparse", 1 << 40, b"x", &mut NoCall),
            Err(Refusal::Limit)
        );
        assert_eq!(
            root.write("far", u64::MAX, b"x", &mut NoCall),
            Err(Refusal::Limit)
        );
    }
    let root = GrantedDir::open(
        &FilesGrant {
            files: 5,
            ..dirs.grant()
        },
        &DirUsages::default(),
    )
    .expect("it is there");
    let written = (0..10).filter(|n| root.write(&format!("n{n}"), 0, b"", &mut NoCall).is_ok());
    assert_eq!(written.count(), 2, "three were there");
}

/// A call that counts measurements, and ends after a number of checks.
struct CountedCall {
    measured: usize,
    steps: usize,
}

impl CountedCall {
    const fn new() -> Self {
        Self {
            measured: 0,
            steps: usize::MAX,
        }
    }
}

impl HostCall for CountedCall {
    fn may_continue(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }

    fn run_aside(&mut self, work: &mut (dyn FnMut(&AtomicBool) + Send)) {
        self.measured += 1;
        work(&AtomicBool::new(false));
    }
}

/// Returns the counted and the true usage below a directory.
fn counted_and_measured(root: &GrantedDir) -> [Option<(u64, usize)>; 2] {
    let sum = |used: DirUsage| (used.bytes, used.files);
    let measured = root.measure(&AtomicBool::new(false)).expect("it is there");
    [root.usage.lock().map(sum), Some(sum(measured))]
}

#[test]
fn each_operation_is_counted_without_measuring_again() {
    let dirs = TestDirs::new();
    let root = dirs.root();
    let call = &mut CountedCall::new();
    for round in 0..50_u64 {
        let name = format!("in/n{}", round % 7);
        assert_eq!(root.write(&name, round, b"abc", call), Ok(()));
        assert_eq!(root.write("file", round * 3, b"x", call), Ok(()));
        if round % 3 == 0 {
            assert_eq!(root.resize(&name, round * 5 % 11, call), Ok(()));
        }
        if round % 4 == 0 {
            assert_eq!(root.remove(&name), Ok(()));
        }
        let [counted, measured] = counted_and_measured(&root);
        assert_eq!(counted, measured, "round {round}");
    }
    assert_eq!(root.remove("missing"), Err(Refusal::Unknown));
    link("file", dirs.at("data/link"));
    assert_eq!(root.remove("link"), Ok(()), "links are not counted");
    let [counted, measured] = counted_and_measured(&root);
    assert_eq!(counted, measured);
    assert_eq!(call.measured, 1, "before the first write");
}

#[test]
fn writes_that_do_not_grow_need_no_measurement() {
    let dirs = TestDirs::new();
    let root = dirs.root();
    let call = &mut CountedCall::new();
    assert_eq!(root.write("file", 0, b"abc", call), Ok(()));
    assert_eq!(root.resize("file", 5, call), Ok(()));
    assert_eq!(call.measured, 0);
}

#[test]
fn all_that_open_a_directory_share_one_count() {
    let dirs = TestDirs::new();
    let usages = DirUsages::default();
    let open = || GrantedDir::open(&dirs.grant(), &usages).expect("it is there");
    let call = &mut CountedCall::new();
    let (one, other) = (open(), open());
    assert_eq!(one.write("a", 0, b"abc", call), Ok(()));
    assert_eq!(other.write("b", 0, b"abc", call), Ok(()));
    drop((one, other));
    let next = open();
    assert_eq!(next.write("c", 0, b"abc", call), Ok(()));
    let [counted, measured] = counted_and_measured(&next);
    assert_eq!(counted, measured);
    assert_eq!(call.measured, 1);
}

/// Makes the last measurement older.
fn age(root: &GrantedDir, by: Duration) {
    if let Some(usage) = &mut *root.usage.lock() {
        (usage.measured, usage.took) = (usage.measured - by, Duration::ZERO);
    }
}

#[test]
fn changes_by_others_are_seen_before_a_refusal() {
    let dirs = TestDirs::new();
    let grant = FilesGrant {
        files: 3,
        ..dirs.grant()
    };
    let root = GrantedDir::open(&grant, &DirUsages::default()).expect("it is there");
    let write = |name| root.write(name, 0, b"x", &mut NoCall);
    assert_eq!(write("a"), Ok(()));
    assert_eq!(write("b"), Err(Refusal::Limit));
    fs::remove_file(dirs.at("data/in/ner/file")).expect("it is there");
    age(&root, RECHECK_AGE);
    assert_eq!(write("b"), Ok(()));
    fs::rename(dirs.at("data-secret"), dirs.at("data/in/more")).expect("it is there");
    let usage = *root.usage.lock();
    *root.usage.lock() = usage.map(|usage| usage.shrunk(0, 3));
    age(&root, MAX_AGE);
    assert_eq!(write("c"), Err(Refusal::Limit));
}

#[test]
fn interrupted_write_is_measured_by_the_next() {
    let dirs = TestDirs::new();
    let root = dirs.root();
    let call = &mut CountedCall::new();
    let bytes = vec![0; STEP_BYTES + 1];
    call.steps = 2;
    assert_eq!(root.write("big", 0, &bytes, call), Err(Refusal::Failed));
    assert!(root.usage.lock().is_none());
    call.steps = usize::MAX;
    assert_eq!(root.write("small", 0, b"x", call), Ok(()));
    assert_eq!(call.measured, 2);
    let [counted, measured] = counted_and_measured(&root);
    assert_eq!(counted, measured);
    for steps in [1, 2] {
        call.steps = steps;
        assert_eq!(
            root.read("big", 0, bytes.len(), call),
            Err(Refusal::Failed),
            "{steps}"
        );
    }
}
