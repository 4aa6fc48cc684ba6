//! The configuration of code and programs, with their limits.

use std::time::Duration;

use serde::Deserialize;
use strowger_tools::{CodeLimits, CodeSpec, ProgramsSpec};

use super::Problem;
use super::limit::{self, LimitSet};

/// The actor that runs code.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CodeSection {
    /// Starts the actor.
    pub(crate) enabled: bool,
    /// Maximum number of concurrent runs.
    pub(crate) runs: usize,
    /// Maximum number of runs that wait for their turn.
    pub(crate) waiting: usize,
    /// Maximum number of realms kept.
    pub(crate) realms: usize,
    /// Time for which an unused realm is kept.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) idle: Duration,
    /// Limits of each run.
    pub(crate) limits: RunSection,
}

/// Published programs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProgramsSection {
    /// Enables programs.
    pub(crate) enabled: bool,
    /// Maximum number of programs.
    pub(crate) programs: usize,
    /// Maximum number of programs that have a realm at a time.
    pub(crate) residents: usize,
    /// Maximum number of messages that wait for a program.
    pub(crate) mailbox: usize,
    /// Maximum number of restarts of a program within the period.
    pub(crate) restarts: u32,
    /// The period for `restarts`.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) period: Duration,
    /// Limits of each message.
    pub(crate) limits: RunSection,
}

/// The limits of a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunSection {
    /// Maximum computing time.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) time: Duration,
    /// Maximum duration in total.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) deadline: Duration,
    /// Maximum memory, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) memory: usize,
    /// Maximum stack, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) stack: u32,
    /// Maximum number of pending promise jobs.
    pub(crate) jobs: u32,
    /// Maximum size of the output, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) output: usize,
    /// Maximum size of the result, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) result: usize,
    /// Maximum number of concurrent function calls.
    pub(crate) calls: usize,
    /// Maximum size of the code, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) source: usize,
    /// Lets the code read the time of day.
    pub(crate) clock: bool,
    /// Makes random numbers unpredictable.
    pub(crate) random: bool,
}

impl Default for RunSection {
    fn default() -> Self {
        let limits = CodeLimits::default();
        Self {
            time: limits.time,
            deadline: limits.deadline,
            memory: limits.memory,
            stack: limits.stack,
            jobs: limits.jobs,
            output: limits.output,
            result: limits.result,
            calls: limits.calls,
            source: limits.source,
            clock: limits.clock,
            random: limits.random,
        }
    }
}

/// The keys of limits.
pub(crate) const CODE_LIMITS: [&str; 9] = [
    "time", "deadline", "memory", "stack", "jobs", "output", "result", "calls", "source",
];

impl RunSection {
    /// Sets a limit by its key.
    pub(crate) fn set_limit(&mut self, key: &str, value: &str) -> LimitSet {
        match key {
            "time" => limit::span(&mut self.time, value),
            "deadline" => limit::span(&mut self.deadline, value),
            "memory" => limit::size(&mut self.memory, value),
            "stack" => limit::size(&mut self.stack, value),
            "jobs" => limit::number(&mut self.jobs, value),
            "output" => limit::size(&mut self.output, value),
            "result" => limit::size(&mut self.result, value),
            "calls" => limit::number(&mut self.calls, value),
            "source" => limit::size(&mut self.source, value),
            _ => None,
        }
    }

    pub(crate) fn limits(&self) -> CodeLimits {
        let mut limits = CodeLimits::default();
        limits.time = self.time;
        limits.deadline = self.deadline;
        limits.memory = self.memory;
        limits.stack = self.stack;
        limits.jobs = self.jobs;
        limits.output = self.output;
        limits.result = self.result;
        limits.calls = self.calls;
        limits.source = self.source;
        limits.clock = self.clock;
        limits.random = self.random;
        limits
    }

    fn problem(&self, at: &str) -> Option<Problem> {
        let wrong = |key: &str, what: &str| Problem::at(&format!("{at}.{key}"), what);
        let engine = MIN_MEMORY..=MAX_MEMORY;
        if !engine.contains(&self.memory) {
            let what = format!(
                "is {}; it must be from {MIN_MEMORY} to {MAX_MEMORY}",
                self.memory
            );
            return Some(wrong("memory", &what));
        }
        if !(16 << 10..=ENGINE_STACK).contains(&self.stack) {
            let what = format!("is {}; it must be from 16384 to {ENGINE_STACK}", self.stack);
            return Some(wrong("stack", &what));
        }
        if self.time < Duration::from_millis(1) {
            return Some(wrong("time", "is less than 1ms"));
        }
        if self.time > self.deadline {
            return Some(wrong("time", "is longer than the `deadline`"));
        }
        None
    }
}

/// Minimum memory in bytes: what the engine takes before any code runs, and some for the code.
const MIN_MEMORY: usize = 3 << 20;
/// Maximum memory in bytes: the size of a slot in the pool of the host.
const MAX_MEMORY: usize = 64 << 20;
/// Stack of the engine, in bytes.
const ENGINE_STACK: u32 = 640 << 10;

impl Default for CodeSection {
    fn default() -> Self {
        Self {
            enabled: false,
            runs: 16,
            waiting: 64,
            realms: 32,
            idle: Duration::from_secs(600),
            limits: RunSection::default(),
        }
    }
}

impl Default for ProgramsSection {
    fn default() -> Self {
        Self {
            enabled: false,
            programs: 10_000,
            residents: 500,
            mailbox: 64,
            restarts: 3,
            period: Duration::from_secs(60),
            limits: RunSection::default(),
        }
    }
}

impl CodeSection {
    /// Copies the limits to a specification.
    pub(crate) fn limits_into(&self, spec: &mut CodeSpec) {
        spec.runs = self.runs;
        spec.waiting = self.waiting;
        spec.realms = self.realms;
        spec.idle = self.idle;
        spec.limits = self.limits.limits();
    }

    /// Returns the first problem that the types cannot rule out.
    pub(super) fn problem(&self) -> Option<Problem> {
        if !(1..=64).contains(&self.runs) {
            let what = format!("is {}; it must be from 1 to 64", self.runs);
            return Some(Problem::at("tools.code.runs", &what));
        }
        self.limits.problem("tools.code.limits")
    }
}

impl ProgramsSection {
    /// Copies the limits to a specification.
    pub(crate) fn limits_into(&self, spec: &mut ProgramsSpec) {
        spec.programs = self.programs;
        spec.residents = self.residents;
        spec.mailbox = self.mailbox;
        spec.restarts = self.restarts;
        spec.period = self.period;
        spec.limits = self.limits.limits();
    }

    /// Returns the first problem that the types cannot rule out. The host can hold `room` realms.
    pub(super) fn problem(&self, room: usize) -> Option<Problem> {
        if !(1..=room).contains(&self.residents) {
            let what = format!(
                "is {}; it must be from 1 to `components.instances`, {room}",
                self.residents
            );
            return Some(Problem::at("tools.programs.residents", &what));
        }
        if self.mailbox == 0 {
            return Some(Problem::at("tools.programs.mailbox", "is 0"));
        }
        self.limits.problem("tools.programs.limits")
    }
}
