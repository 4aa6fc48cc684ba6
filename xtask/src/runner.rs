//! The program through which cargo runs test programs: it ends those that hang, and names the tests
//! that were still running.
//!
//! Cargo calls it as `xtask run-test PROGRAM ARGUMENTS`, with the environment that tests rely on.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::process;
use crate::{step, term};

/// The verb that cargo calls.
pub(crate) const VERB: &str = "run-test";

/// The variable that sets the limit of each test program.
pub(crate) const LIMIT_VARIABLE: &str = "XTASK_TEST_LIMIT";

/// Limits of test programs, in minutes: those that start many programs, build, or look at many
/// seeds.
const LIMITS: [(&str, u64); 5] = [
    ("code", 20),
    ("codec", 20),
    ("compile_fail", 30),
    ("storm", 20),
    ("strowger", 30),
];

/// The limit of other test programs, in minutes. None takes a minute on two idle cores.
const DEFAULT_LIMIT: u64 = 10;

/// Test programs whose tests wait more than they compute, and the number of tests that run at a
/// time unless the caller says otherwise.
const THREADS: [(&str, usize); 2] = [("hang", 4), ("lifetime", 6)];

/// Time in which a test program lists its tests.
const LISTING: Duration = Duration::from_secs(20);

/// The results of tests that have finished.
const RESULTS: [&str; 3] = ["ok", "FAILED", "ignored"];

/// The beginning of a line that names a test program that hung.
pub(crate) const HUNG: &str = "hung: ";

/// The beginning of a line that names programs that a test program left running.
pub(crate) const LEFT: &str = "left running: ";

/// Returns a cargo command that runs its test programs through this program.
///
/// # Errors
/// Returns an error if this program does not know where it is.
pub(crate) fn limited(cargo: &Command) -> Result<Command, String> {
    let me = std::env::current_exe().map_err(|error| format!("no path of xtask: {error}"))?;
    let me = me.to_str().ok_or("the path of xtask is no text")?;
    // A literal string, in which nothing is escaped.
    let runner = format!("target.'cfg(all())'.runner = ['{me}', '{VERB}']");
    let mut limited = Command::new(cargo.get_program());
    // Before the verb, because what follows `--` is for the test programs.
    limited.args(["--config", &runner]).args(cargo.get_args());
    if let Some(folder) = cargo.get_current_dir() {
        limited.current_dir(folder);
    }
    for (name, value) in cargo.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    Ok(limited)
}

/// Runs a test program and returns its exit code.
pub(crate) fn run(args: &[String]) -> ExitCode {
    match run_program(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            term::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run_program(args: &[String]) -> Result<u8, String> {
    let (program, args) = args.split_first().ok_or("no test program is named")?;
    let program = Arc::new(TestProgram::new(program, args));
    let limit = process::limit_or(LIMIT_VARIABLE, program.limit());
    // Only now, because an interrupt ends every process it finds, even one that lists tests.
    program.list();
    // Before the program starts: an interrupt that comes right after its start finds the hook.
    let interrupted = Arc::clone(&program);
    process::on_interrupt(move || interrupted.report("interrupted"));
    let mut running = process::spawn(program.command().stdout(Stdio::piped()))?;
    let out = running.take_stdout()?;
    let reader = {
        let program = Arc::clone(&program);
        thread::spawn(move || program.follow(out))
    };
    let status = running.wait_within(limit)?;
    let mut left = running.left().to_vec();
    left.extend(process::sweep_descendants());
    // Every process that could hold the pipe open has been ended.
    let _ended = reader.join();
    let Some(status) = status else {
        let why = format!("not over after {}", term::format_duration(limit));
        program.report(&why);
        term::line(&program.advice());
        return Ok(1);
    };
    if !left.is_empty() {
        let name = &program.name;
        term::line(&format!("{LEFT}{name} ended without {}", left.join(", ")));
        return Ok(1);
    }
    if status.code().is_none() {
        // An interrupt may reach the test program before this program.
        program.report(&format!("ended with {status}"));
    }
    Ok(status
        .code()
        .and_then(|code| code.try_into().ok())
        .unwrap_or(1))
}

/// A test program, and what its output says.
struct TestProgram {
    /// The name of the target: `storm`.
    name: String,
    path: String,
    args: Vec<String>,
    progress: Mutex<TestProgress>,
    is_reported: Mutex<bool>,
}

/// The tests that a test program has mentioned.
#[derive(Debug, Default, PartialEq, Eq)]
struct TestProgress {
    /// All tests, in the order in which they begin.
    listed: Vec<String>,
    finished: HashSet<String>,
    /// Those that have been running for more than a minute.
    slow: Vec<String>,
}

impl TestProgram {
    fn new(path: &str, args: &[String]) -> Self {
        let stem = Path::new(path).file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy();
        // Cargo appends a hash.
        let name = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
        Self {
            name: name.to_owned(),
            path: path.to_owned(),
            args: args.to_vec(),
            progress: Mutex::default(),
            is_reported: Mutex::default(),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.args);
        // As an argument, because the programs that a test starts inherit the environment.
        if self.given_threads().is_none()
            && let Some(threads) = self.own_threads()
        {
            command.arg(format!("--test-threads={threads}"));
        }
        command
    }

    fn limit(&self) -> Duration {
        let own = LIMITS.iter().find(|(name, _)| *name == self.name);
        Duration::from_secs(own.map_or(DEFAULT_LIMIT, |(_, minutes)| *minutes) * 60)
    }

    /// Passes the output on, and notes which tests it mentions.
    fn follow(&self, out: impl Read) {
        let mut out = BufReader::new(out);
        let mut line = Vec::new();
        while out.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
            self.progress().parse_line(&String::from_utf8_lossy(&line));
            let mut ours = std::io::stdout().lock();
            // A closed pipe is the reader's choice, not an error.
            let _ = ours.write_all(&line).and_then(|()| ours.flush());
            line.clear();
        }
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, TestProgress> {
        // A line that was half noted does no harm.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the tests that have not finished, once.
    fn report(&self, why: &str) {
        let is_reported = self.is_reported.lock();
        let mut is_reported = is_reported.unwrap_or_else(PoisonError::into_inner);
        if !*is_reported {
            *is_reported = true;
            term::line(&self.hung(why));
        }
    }

    /// Describes the tests that have not finished.
    fn hung(&self, why: &str) -> String {
        let unfinished = self.progress().unfinished(self.threads());
        format!("{HUNG}{}, {why}; {unfinished}", self.name)
    }

    fn advice(&self) -> String {
        let mut alone = self.command();
        alone.arg("--nocapture");
        let alone = step::display(&alone);
        format!(
            "  it was ended with all that it started; alone: {alone}; more time: \
             {LIMIT_VARIABLE}=1h"
        )
    }

    /// Notes the names of its tests, in the order in which they begin.
    fn list(&self) {
        let output = process::output_within(self.command().arg("--list"), LISTING);
        let text = output.ok().flatten().map(|output| output.stdout);
        let text = text.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        self.progress().listed = names.map(str::to_owned).collect();
    }

    /// Returns the number of tests that run at a time.
    fn threads(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let threads = self.given_threads().or_else(|| self.own_threads());
        threads.unwrap_or_else(cores)
    }

    /// Returns the number of tests at a time for which the caller asks.
    fn given_threads(&self) -> Option<usize> {
        let option = self.args.iter().position(|arg| arg == "--test-threads");
        let given = option.and_then(|at| self.args.get(at + 1)).cloned();
        let joined = self
            .args
            .iter()
            .find_map(|arg| Some(arg.strip_prefix("--test-threads=")?.to_owned()));
        let given = given.or(joined);
        let given = given.or_else(|| std::env::var("RUST_TEST_THREADS").ok());
        given?.parse().ok()
    }

    fn own_threads(&self) -> Option<usize> {
        let own = THREADS.iter().find(|(name, _)| *name == self.name);
        own.map(|(_, threads)| *threads)
    }
}

impl TestProgress {
    fn parse_line(&mut self, line: &str) {
        let Some(rest) = line.trim_end().strip_prefix("test ") else {
            return;
        };
        if let Some((name, _)) = rest.split_once(" has been running for over ") {
            self.slow.push(name.to_owned());
        } else if let Some((name, result)) = rest.rsplit_once(" ... ")
            && RESULTS.iter().any(|word| result.starts_with(word))
        {
            // Tests that are expected to panic are marked as such.
            let name = name.strip_suffix(" - should panic").unwrap_or(name);
            self.finished.insert(name.to_owned());
        }
    }

    /// Describes the tests that have not finished.
    fn unfinished(&self, threads: usize) -> String {
        let is_open = |name: &&String| !self.finished.contains(*name);
        let open: Vec<&str> = self
            .listed
            .iter()
            .filter(is_open)
            .map(String::as_str)
            .collect();
        let slow = self.slow.iter().filter(is_open).map(String::as_str);
        let slow: Vec<&str> = slow.collect();
        // Without a complaint about slow tests, those that begin first have begun.
        let running = if slow.is_empty() {
            open[..threads.min(open.len())].to_vec()
        } else {
            slow
        };
        if running.is_empty() {
            return "no test was running".to_owned();
        }
        let others = open.len().saturating_sub(running.len());
        let running = running.join(", ");
        match others {
            0 => format!("still running: {running}"),
            others => format!("still running: {running}; not finished: {others} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn unfinished_tests_count_as_running() {
        let mut progress = TestProgress::default();
        progress.parse_line("running 5 tests\n");
        progress.parse_line("test a ... ok\n");
        progress.parse_line("test b - should panic ... ok\n");
        progress.parse_line("test d ... FAILED\n");
        progress.listed = names(&["a", "b", "c", "d", "e", "f"]);
        assert_eq!(
            progress.unfinished(1),
            "still running: c; not finished: 2 more"
        );
        assert_eq!(progress.unfinished(9), "still running: c, e, f");
    }

    #[test]
    fn slow_tests_count_as_running() {
        let mut progress = TestProgress::default();
        progress.parse_line("test a has been running for over 60 seconds\n");
        progress.parse_line("test c has been running for over 60 seconds\n");
        progress.parse_line("test a ... ignored, not here\n");
        progress.listed = names(&["a", "b", "c"]);
        assert_eq!(
            progress.unfinished(2),
            "still running: c; not finished: 1 more"
        );
        assert_eq!(TestProgress::default().unfinished(2), "no test was running");
    }

    #[test]
    fn name_and_limit_follow_the_target() {
        let storm = TestProgram::new("/target/debug/deps/storm-0123456789abcdef", &[]);
        assert_eq!(
            (storm.name.as_str(), storm.limit().as_secs()),
            ("storm", 1200)
        );
        let own = TestProgram::new(
            "/target/debug/deps/other-1",
            &names(&["--test-threads", "3"]),
        );
        assert_eq!((own.limit().as_secs(), own.threads()), (600, 3));
        let own = TestProgram::new("other", &names(&["--test-threads=4"]));
        assert_eq!(own.threads(), 4);
        let args = names(&["--test-threads=1"]);
        let waits = TestProgram::new("/target/debug/deps/lifetime-1", &args);
        assert_eq!((waits.threads(), waits.own_threads()), (1, Some(6)));
    }
}
