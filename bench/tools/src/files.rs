//! Files: read, overwritten, listed, deleted.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use strowger::{ActorRef, ActorSystem};
use strowger_bench::{Case, Sample};
use strowger_tools::files::{
    DeleteRequest, Files, FilesMessage, FilesSpec, ListRequest, ReadRequest, WriteMode,
    WriteRequest,
};
use tokio::runtime::Runtime;

/// Number of files that take turns.
const FILES: u64 = 64;
/// Number of entries of a directory that is listed.
const ENTRIES: usize = 100;
/// Bytes of a file that is replaced, or read together with others.
const ATOMIC: usize = 10_000;
/// Number of files that are read at the same time.
const AT_ONCE: usize = 10;
/// Number of directories that take turns.
const FOLDERS: u64 = 8;

const SIZES: [(&str, usize); 3] = [("100", 100), ("10k", 10_000), ("100k", 100_000)];

/// The file operations of one subject below a folder; names are relative to the folder.
trait Subject {
    fn read(&mut self, name: &str) -> Vec<u8>;
    fn write(&mut self, name: &str, bytes: Vec<u8>);
    /// Replaces an old file by a new one.
    fn replace(&mut self, name: &str, bytes: Vec<u8>);
    /// Reads several files at a time, as far as the subject can; returns them in order.
    fn read_all(&mut self, names: &[String]) -> Vec<Vec<u8>>;
    fn list(&mut self, name: &str) -> usize;
    fn delete(&mut self, name: &str);
}

/// Returns the rows of all subjects, each in its own folder.
pub(super) fn cases(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for (size, length) in SIZES {
        let read = format!("file_read_{size}");
        let write = format!("file_write_{size}");
        for subject in SUBJECTS {
            let at = made(folder, &format!("{read}-{subject}"));
            fill(&at, length);
            cases.push(reads(&read, subject, open(subject, &at), length));
            let at = made(folder, &format!("{write}-{subject}"));
            fill(&at, length);
            cases.push(writes(&write, subject, at, length, Mode::Inplace));
        }
    }
    for subject in SUBJECTS {
        let at = made(folder, &format!("list-{subject}"));
        for number in 0..FOLDERS {
            let below = made(&at, &number.to_string());
            for entry in 0..ENTRIES {
                fs::write(below.join(format!("entry-{entry}")), "")
                    .expect("the file is accessible");
            }
        }
        cases.push(lists(subject, open(subject, &at)));
        let at = made(folder, &format!("atomic-{subject}"));
        fill(&at, ATOMIC);
        let id = "file_write_atomic_10k";
        cases.push(writes(id, subject, at, ATOMIC, Mode::Atomic));
        let at = made(folder, &format!("at-once-{subject}"));
        fill(&at, ATOMIC);
        cases.push(at_once(subject, open(subject, &at), ATOMIC));
        cases.push(deletes(subject, made(folder, &format!("delete-{subject}"))));
    }
    cases
}

/// The subjects: the actor; the library below it, on the same handle; the system, by path.
const SUBJECTS: [&str; 3] = ["strowger", "cap-std", "std"];

fn open(subject: &str, at: &Path) -> Box<dyn Subject> {
    match subject {
        "strowger" => Box::new(Actor::open(at)),
        "cap-std" => Box::new(Handle::open(at)),
        _ => Box::new(Paths(at.to_owned())),
    }
}

fn made(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir(&path).expect("the folder is writable");
    path
}

fn fill(at: &Path, length: usize) {
    for number in 0..FILES {
        fs::write(at.join(number.to_string()), content(number, length))
            .expect("the file is accessible");
    }
}

/// Returns content that distinguishes one file and one call from another, at both ends.
fn content(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; length];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[length - 8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn is_content(bytes: &[u8], number: u64, length: usize) -> bool {
    let number = number.to_be_bytes();
    bytes.len() == length && bytes[..8] == number && bytes[length - 8..] == number
}

fn reads(id: &str, subject: &'static str, mut files: Box<dyn Subject>, length: usize) -> Case {
    let mut next = 0;
    Case::new(id, subject, move |count| {
        let names: Vec<String> = (0..FILES).map(|number| number.to_string()).collect();
        let began = Instant::now();
        for _ in 0..count {
            next = (next + 1) % FILES;
            let bytes = files.read(&names[next as usize]);
            assert!(is_content(&bytes, next, length), "another file came");
        }
        sample(began, count)
    })
}

/// The way a file is overwritten.
#[derive(Clone, Copy)]
enum Mode {
    Inplace,
    Atomic,
}

fn writes(id: &str, subject: &'static str, at: PathBuf, length: usize, mode: Mode) -> Case {
    let mut files = open(subject, &at);
    let mut next = FILES;
    Case::new(id, subject, move |count| {
        let name = |number: u64| (number % FILES).to_string();
        let names: Vec<String> = (0..FILES).map(name).collect();
        let mut bytes = content(0, length);
        let began = Instant::now();
        for _ in 0..count {
            next += 1;
            bytes[..8].copy_from_slice(&next.to_be_bytes());
            bytes[length - 8..].copy_from_slice(&next.to_be_bytes());
            let (name, bytes) = (&names[(next % FILES) as usize], bytes.clone());
            match mode {
                Mode::Inplace => files.write(name, bytes),
                Mode::Atomic => files.replace(name, bytes),
            }
        }
        let done = sample(began, count);
        // The last content written to each file must be there.
        let last = next.saturating_sub(FILES.min(count) - 1)..=next;
        for number in last {
            let there = fs::read(at.join(name(number))).expect("it was written");
            assert!(is_content(&there, number, length), "another text is there");
        }
        done
    })
}

/// Ten files at the same time; the figure is for all of them together.
fn at_once(subject: &'static str, mut files: Box<dyn Subject>, length: usize) -> Case {
    let mut next = 0;
    Case::new("file_read_10_at_once", subject, move |count| {
        let began = Instant::now();
        for _ in 0..count {
            let wanted: Vec<u64> = (0..AT_ONCE as u64).map(|at| (next + at) % FILES).collect();
            next += AT_ONCE as u64;
            let names: Vec<String> = wanted.iter().map(u64::to_string).collect();
            let read = files.read_all(&names);
            assert_eq!(read.len(), AT_ONCE);
            for (bytes, number) in read.iter().zip(wanted) {
                assert!(is_content(bytes, number, length), "another file came");
            }
        }
        sample(began, count)
    })
}

fn lists(subject: &'static str, mut files: Box<dyn Subject>) -> Case {
    let mut next = 0;
    Case::new("file_list_100", subject, move |count| {
        let names: Vec<String> = (0..FOLDERS).map(|number| number.to_string()).collect();
        let began = Instant::now();
        for _ in 0..count {
            next = (next + 1) % FOLDERS;
            assert_eq!(files.list(&names[next as usize]), ENTRIES);
        }
        sample(began, count)
    })
}

fn deletes(subject: &'static str, at: PathBuf) -> Case {
    let mut next = 0_u64;
    Case::new("file_delete", subject, move |count| {
        let names: Vec<String> = (next..next + count)
            .map(|number| number.to_string())
            .collect();
        next += count;
        for name in &names {
            File::create(at.join(name)).expect("the file is accessible");
        }
        // Opened after the files were created, so that its accounting of them is right.
        let mut files = open(subject, &at);
        let began = Instant::now();
        for name in &names {
            files.delete(name);
        }
        let done = sample(began, count);
        assert_eq!(
            fs::read_dir(&at).expect("the file is accessible").count(),
            0,
            "some are left"
        );
        done
    })
}

fn sample(began: Instant, count: u64) -> Sample {
    Sample {
        time: began.elapsed(),
        done: count,
        checked: count,
    }
}

/// The subject that uses the actor.
struct Actor {
    runtime: Runtime,
    files: ActorRef<FilesMessage>,
    _system: ActorSystem,
}

impl Actor {
    fn open(at: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (system, files) = runtime.block_on(async {
            let system = ActorSystem::new("bench").expect("it starts");
            let mut spec = FilesSpec::new(at);
            spec.limits.entries = 10_000_000;
            let files = system.spawn::<Files>("files", spec).expect("it starts");
            (system, files)
        });
        Self {
            runtime,
            files,
            _system: system,
        }
    }
}

impl Subject for Actor {
    fn read(&mut self, name: &str) -> Vec<u8> {
        let read = self
            .runtime
            .block_on(self.files.ask(ReadRequest::new(name)));
        // The buffer is unique, so this does not copy it.
        read.expect("it answers").expect("it exists").into()
    }

    fn write(&mut self, name: &str, bytes: Vec<u8>) {
        let written = self
            .runtime
            .block_on(self.files.ask(WriteRequest::new(name, bytes)));
        written.expect("it answers").expect("there is room");
    }

    fn replace(&mut self, name: &str, bytes: Vec<u8>) {
        let mut write = WriteRequest::new(name, bytes);
        write.mode = WriteMode::Atomic;
        let written = self.runtime.block_on(self.files.ask(write));
        written.expect("it answers").expect("there is room");
    }

    fn read_all(&mut self, names: &[String]) -> Vec<Vec<u8>> {
        self.runtime.block_on(async {
            let asks = names.iter().map(|name| {
                let (files, read) = (self.files.clone(), ReadRequest::new(name));
                tokio::spawn(async move { files.ask(read).await })
            });
            let asks: Vec<_> = asks.collect();
            let mut read = Vec::new();
            for ask in asks {
                let bytes = ask.await.expect("no panic").expect("it answers");
                read.push(bytes.expect("it exists").into());
            }
            read
        })
    }

    fn list(&mut self, name: &str) -> usize {
        let list = ListRequest {
            path: name.to_owned(),
            ..ListRequest::default()
        };
        let listed = self.runtime.block_on(self.files.ask(list));
        let listed = listed.expect("it answers").expect("it exists");
        assert!(
            listed
                .entries
                .iter()
                .all(|entry| entry.name.starts_with("entry-"))
        );
        listed.entries.len()
    }

    fn delete(&mut self, name: &str) {
        let delete = DeleteRequest {
            path: name.to_owned(),
            recursive: false,
        };
        let deleted = self.runtime.block_on(self.files.ask(delete));
        deleted.expect("it answers").expect("it exists");
    }
}

/// The name of a file that then replaces another one.
const REPLACEMENT: &str = ".beside";

/// The subject that uses the library which resolves paths below a handle.
struct Handle(Dir);

impl Handle {
    fn open(at: &Path) -> Self {
        Self(Dir::open_ambient_dir(at, ambient_authority()).expect("the file is accessible"))
    }
}

impl Subject for Handle {
    fn read(&mut self, name: &str) -> Vec<u8> {
        read(self.0.open(name).expect("it exists").into_std())
    }

    fn write(&mut self, name: &str, bytes: Vec<u8>) {
        let mut options = cap_std::fs::OpenOptions::new();
        let file = self.0.open_with(name, options.write(true));
        write(file.expect("it exists").into_std(), &bytes);
    }

    fn replace(&mut self, name: &str, bytes: Vec<u8>) {
        let mut options = cap_std::fs::OpenOptions::new();
        let file = self
            .0
            .open_with(REPLACEMENT, options.write(true).create_new(true));
        let mut file = file.expect("there is none").into_std();
        file.write_all(&bytes).expect("there is room");
        let renamed = self.0.rename(REPLACEMENT, &self.0, name);
        renamed.expect("the file is accessible");
    }

    fn read_all(&mut self, names: &[String]) -> Vec<Vec<u8>> {
        names.iter().map(|name| self.read(name)).collect()
    }

    fn list(&mut self, name: &str) -> usize {
        let entries = self.0.read_dir(name).expect("it exists");
        let names = entries.map(|entry| {
            let name = entry.expect("it can be read").file_name();
            name.into_string().expect("a text")
        });
        sorted(names)
    }

    fn delete(&mut self, name: &str) {
        self.0.remove_file(name).expect("it exists");
    }
}

/// The subject that calls the system by path, as programs do that check nothing.
struct Paths(PathBuf);

impl Subject for Paths {
    fn read(&mut self, name: &str) -> Vec<u8> {
        read(File::open(self.0.join(name)).expect("it exists"))
    }

    fn write(&mut self, name: &str, bytes: Vec<u8>) {
        // Truncating a file first costs many times as much as overwriting it.
        let file = OpenOptions::new().write(true).open(self.0.join(name));
        write(file.expect("it exists"), &bytes);
    }

    fn replace(&mut self, name: &str, bytes: Vec<u8>) {
        let beside = self.0.join(REPLACEMENT);
        let mut file = File::create_new(&beside).expect("there is none");
        file.write_all(&bytes).expect("there is room");
        fs::rename(&beside, self.0.join(name)).expect("the file is accessible");
    }

    fn read_all(&mut self, names: &[String]) -> Vec<Vec<u8>> {
        names.iter().map(|name| self.read(name)).collect()
    }

    fn list(&mut self, name: &str) -> usize {
        let entries = fs::read_dir(self.0.join(name)).expect("it exists");
        let names = entries.map(|entry| {
            let name = entry.expect("it can be read").file_name();
            name.into_string().expect("a text")
        });
        sorted(names)
    }

    fn delete(&mut self, name: &str) {
        fs::remove_file(self.0.join(name)).expect("it exists");
    }
}

fn read(mut file: File) -> Vec<u8> {
    let length = file.metadata().expect("it is open").len();
    let mut bytes = Vec::with_capacity(length as usize);
    file.read_to_end(&mut bytes).expect("it can be read");
    bytes
}

fn write(mut file: File, bytes: &[u8]) {
    let before = file.metadata().expect("it is open").len();
    file.write_all(bytes).expect("there is room");
    if (bytes.len() as u64) < before {
        file.set_len(bytes.len() as u64)
            .expect("the file is accessible");
    }
}

fn sorted(names: impl Iterator<Item = String>) -> usize {
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    assert!(names.iter().all(|name| name.starts_with("entry-")));
    names.len()
}
