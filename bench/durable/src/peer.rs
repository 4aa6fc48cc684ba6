//! Peers that run in a process of their own, such as on the virtual machine of Java.
//!
//! A peer reads requests from its standard input, a line for each, and answers each with a line: to
//! `save N`, which saves the next N values, with `saved N NANOSECONDS`; to `check`, which opens its
//! database again and compares the last value of each entity, with `checked ENTITIES`. It exits at
//! the end of its input, and when an answer is wrong.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use strowger_bench::Sample;

use crate::save::{CALLERS, MANY};

/// The time in which a peer must answer a request.
const LIMIT: Duration = Duration::from_secs(300);

/// The minimum time of saves before the first sample: a just-in-time compiler takes as long.
const WARM_UP: Duration = Duration::from_secs(10);

/// A program that does the work of a row.
pub(crate) struct PeerProgram {
    pub(crate) subject: &'static str,
    /// The kind of its journal.
    journal: &'static str,
}

/// The programs, each of which syncs a save before it acknowledges it.
pub(crate) const PROGRAMS: [PeerProgram; 2] = [
    PeerProgram {
        subject: "pekko",
        journal: "leveldb",
    },
    PeerProgram {
        subject: "pekko jdbc",
        journal: "jdbc",
    },
];

/// The environment variable with the folder of the jars. `cargo xtask bench durable` sets it once
/// they are built.
const PEKKO: &str = "STROWGER_BENCH_PEKKO";

/// The reason of a row without the program.
const MISSING: &str =
    "it is not built; `cargo xtask bench durable` builds it with a JDK 17 and Maven";

impl PeerProgram {
    /// Returns the command that starts it with a database at a path, or the reason why there is
    /// none.
    pub(crate) fn command(&self, database: &Path) -> Result<Command, &'static str> {
        let folder = std::env::var_os(PEKKO).ok_or(MISSING)?;
        let folder = PathBuf::from(folder);
        let jars = [folder.join("pekko.jar"), folder.join("lib/*")];
        let class_path = std::env::join_paths(jars).expect("the path has no colon");
        let mut java = Command::new("java");
        java.arg("-cp").arg(class_path);
        java.args(["strowger.bench.Main", self.journal]);
        java.arg(database);
        Ok(java)
    }
}

/// A peer and what it has saved.
pub(crate) struct PeerSaver {
    command: Command,
    /// `None` before the first sample.
    process: Option<PeerProcess>,
}

impl PeerSaver {
    pub(crate) fn new(command: Command) -> Self {
        Self {
            command,
            process: None,
        }
    }

    /// Saves about `operations` values. All entities are stored before the clock starts.
    pub(crate) fn sample(&mut self, operations: u64) -> Sample {
        let process = self.process.get_or_insert_with(|| {
            let mut process = PeerProcess::start(&mut self.command);
            let begun = Instant::now();
            process.save(MANY);
            while begun.elapsed() < WARM_UP {
                process.save(MANY);
            }
            process
        });
        let operations = operations.max(CALLERS);
        Sample {
            time: process.save(operations),
            done: operations,
            checked: operations,
        }
    }

    /// Has it compare the last value of each entity in a database that was opened again, and ends
    /// it.
    pub(crate) fn check(&mut self) {
        if let Some(mut process) = self.process.take() {
            let checked = process.ask("check");
            assert_eq!(checked, format!("checked {MANY}"));
        }
    }
}

/// A running peer. Dropping it kills it.
struct PeerProcess {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    shown: String,
}

impl PeerProcess {
    fn start(command: &mut Command) -> Self {
        let shown = format!("{command:?}");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn();
        let mut child = child.unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        let requests = child.stdin.take().expect("its input is a pipe");
        let output = child.stdout.take().expect("its output is a pipe");
        let (sender, answers) = channel();
        // Ends with the output of the peer.
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for line in lines {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            requests,
            answers,
            shown,
        }
    }

    /// Saves the next `count` values, and returns the time that it took.
    fn save(&mut self, count: u64) -> Duration {
        let answer = self.ask(&format!("save {count}"));
        let nanoseconds = answer.strip_prefix(&format!("saved {count} "));
        let nanoseconds = nanoseconds.and_then(|nanoseconds| nanoseconds.parse().ok());
        match nanoseconds {
            Some(nanoseconds) => Duration::from_nanos(nanoseconds),
            None => panic!("{} answered `{answer}` to `save {count}`", self.shown),
        }
    }

    fn ask(&mut self, request: &str) -> String {
        let written = writeln!(self.requests, "{request}");
        let answer = match written {
            Ok(()) => self.answers.recv_timeout(LIMIT).map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        answer.unwrap_or_else(|error| {
            panic!(
                "{} did not answer `{request}` within {LIMIT:?}: {error}",
                self.shown
            )
        })
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // Both fail if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
