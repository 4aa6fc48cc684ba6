//! Large folders: the first write below many files, and a search of many bytes.

use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_bench::{Case, Counted, Plan};
use strowger_tools::files::{
    Files, FilesSpec, FilesUsageRequest, SearchRequest, SearchResults, WriteMode, WriteRequest,
};
use tokio::runtime::Runtime;

/// Environment variable and default for the number of files in the folder of the first write.
const FILES: (&str, u64) = ("STROWGER_BENCH_FILES", 200_000);
/// Total bytes of these files. They are sparse: they have sizes, but take no space on disk.
const SPARSE_BYTES: u64 = 4_000_000_000;
/// Number of files per folder.
const FILES_PER_FOLDER: u64 = 1000;
/// Environment variable and default for the number of bytes that are searched.
const BYTES: (&str, u64) = ("STROWGER_BENCH_BYTES", 1 << 30);
/// Bytes of a file that is searched.
const SIZE: u64 = 1 << 20;
/// One file in this number has a line that matches.
const MATCH_EVERY: u64 = 16;
/// The search pattern, a regular expression for both subjects.
const PATTERN: &str = "needle [0-9]";
/// The folder that a separate process searches, and does nothing else.
const SEARCHED_FOLDER: &str = "STROWGER_BENCH_SEARCHED";
/// The time limit of a search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the selected rows; files are only created for rows that are selected.
pub(super) fn cases(plan: &Plan, folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    if plan.wants("file_first_write_200k") {
        cases.push(first_write(&create_many_files(folder)));
    }
    let (search, memory) = ("file_search_1g", "file_search_1g_memory");
    if plan.wants(search) || plan.wants(memory) {
        let (at, lines) = create_long_texts(folder);
        cases.extend(searches(search, &at, lines));
        cases.push(Case::counted(memory, "strowger", "bytes", move || {
            peak_memory(&at, lines)
        }));
    }
    cases
}

fn size((key, usual): (&str, u64)) -> u64 {
    let set = env::var(key).ok();
    set.map_or(usual, |set| set.parse().expect("a whole number"))
}

/// Creates a folder of many files.
fn create_many_files(folder: &Path) -> PathBuf {
    let (at, files) = (folder.join("many"), size(FILES));
    fs::create_dir(&at).expect("the folder is writable");
    for number in 0..files {
        let below = at.join((number / FILES_PER_FOLDER).to_string());
        if number.is_multiple_of(FILES_PER_FOLDER) {
            fs::create_dir(&below).expect("the folder is writable");
        }
        let file = File::create(below.join(number.to_string())).expect("the file is accessible");
        file.set_len(SPARSE_BYTES / files)
            .expect("it takes no room");
    }
    at
}

/// Creates a folder of long texts, and returns the number of their lines that match.
fn create_long_texts(folder: &Path) -> (PathBuf, u64) {
    let (at, files) = (folder.join("long"), size(BYTES) / SIZE);
    fs::create_dir(&at).expect("the folder is writable");
    let mut lines = 0;
    for number in 0..files {
        let mut text = String::with_capacity(SIZE as usize + 100);
        let mut line = 0;
        while (text.len() as u64) < SIZE {
            line += 1;
            text.push_str(&format!(
                "{number} {line} a needless line of a log, as long as such lines are\n"
            ));
            if line == 5000 && number.is_multiple_of(MATCH_EVERY) {
                text.push_str(&format!("{number} {line} a needle {line}\n"));
                lines += 1;
            }
        }
        let file = File::create(at.join(format!("{number}.log")));
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.expect("there is room");
    }
    (at, lines)
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

/// Times the first write, from before the actor starts until the write is answered.
fn first_write(at: &Path) -> Case {
    let (at, mut number) = (at.to_owned(), 0_u64);
    Case::counted("file_first_write_200k", "strowger", "ns", move || {
        number += 1;
        let (runtime, name) = (runtime(), format!("0/written-{number}"));
        let took = runtime.block_on(async {
            let system = ActorSystem::new("bench").expect("it starts");
            let began = Instant::now();
            let files = system.spawn::<Files>("files", FilesSpec::new(&at));
            let files = files.expect("it starts");
            // Writes as agents do: the new file replaces the old one.
            let write = WriteRequest::new(&name, name.clone()).with_mode(WriteMode::Atomic);
            let written = files.ask_within(write, SEARCH_TIMEOUT).await;
            let took = began.elapsed();
            written.expect("it answers").expect("there is room");
            let looked = files
                .ask(FilesUsageRequest)
                .await
                .expect("it answers")
                .scanned;
            assert!(looked <= 2 * FILES_PER_FOLDER, "the folder was walked");
            took
        });
        let there = fs::read_to_string(at.join(&name)).expect("it was written");
        assert_eq!(there, name);
        Ok((took.as_nanos() as f64, 1))
    })
}

/// A search of all texts by the actor and by `grep -r`, on the same files in the same run.
fn searches(id: &str, at: &Path, lines: u64) -> [Case; 2] {
    let (ours, theirs) = (at.to_owned(), at.to_owned());
    let strowger = Case::counted(id, "strowger", "ns", move || {
        let (took, found) = search(&ours);
        checked(took, found.matches.len() as u64, lines)
    });
    let grep = Case::counted(id, "grep", "ns", move || {
        let began = Instant::now();
        let ran = Command::new("grep")
            .args(["-rn", PATTERN])
            .arg(&theirs)
            .output();
        let took = began.elapsed();
        let Ok(ran) = ran else {
            return Err("there is no grep here");
        };
        let found = ran.stdout.iter().filter(|byte| **byte == b'\n').count();
        checked(took, found as u64, lines)
    });
    [strowger, grep]
}

fn checked(took: Duration, found: u64, lines: u64) -> Counted {
    assert_eq!(found, lines, "other lines were found");
    Ok((took.as_nanos() as f64, lines))
}

/// Searches a folder, and returns the time that took.
fn search(at: &Path) -> (Duration, SearchResults) {
    let runtime = runtime();
    runtime.block_on(async {
        let system = ActorSystem::new("bench").expect("it starts");
        let files = system.spawn::<Files>("files", FilesSpec::new(at));
        let files = files.expect("it starts");
        let search = SearchRequest {
            text: Some(PATTERN.to_owned()),
            ..SearchRequest::default()
        };
        let began = Instant::now();
        let found = files.ask_within(search, SEARCH_TIMEOUT).await;
        let took = began.elapsed();
        let found = found.expect("it answers").expect("it is a directory");
        assert!(found.skipped.is_none() && found.cut.is_none(), "{found:?}");
        (took, found)
    })
}

/// Returns the peak memory of a process that did nothing but search.
fn peak_memory(at: &Path, lines: u64) -> Counted {
    let itself = env::current_exe().expect("it runs");
    let ran = Command::new(itself).env(SEARCHED_FOLDER, at).output();
    let ran = ran.expect("it runs again");
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let said = String::from_utf8(ran.stdout).expect("two numbers");
    let mut numbers = said.split_whitespace().map(|number| number.parse::<u64>());
    let mut number = || numbers.next().expect("there are two").expect("a number");
    let (found, peak) = (number(), number());
    assert_eq!(found, lines, "other lines were found");
    Ok((peak as f64, lines))
}

/// Returns `true` if this is the separate process, after it has searched and printed the number of
/// lines it found and its peak memory.
pub(super) fn is_search_alone() -> bool {
    let Some(at) = env::var_os(SEARCHED_FOLDER) else {
        return false;
    };
    let (_, found) = search(Path::new(&at));
    let status = fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let peak = kilobytes.expect("VmHWM is in kB") * 1024;
    println!("{} {peak}", found.matches.len());
    true
}
