//! Code and programs of a node: whether there are any, and what they may use up.

use std::time::Duration;

use serde::Deserialize;
use strowger_tools::{CodeLimits, CodeSpec, ProgramsSpec};

use super::{Problem, span};

/// An actor that runs code.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CodeSection {
    /// Whether there is one.
    pub(crate) enabled: bool,
    /// The runs under way at a time.
    pub(crate) runs: usize,
    /// The runs that wait for their turn.
    pub(crate) waiting: usize,
    /// The realms that are kept.
    pub(crate) realms: usize,
    /// How long a realm is kept that nobody uses.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) idle: Duration,
    /// What each run may use up.
    pub(crate) limits: RunSection,
}

/// Programs that are published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProgramsSection {
    /// Whether there are any.
    pub(crate) enabled: bool,
    /// How many there may be.
    pub(crate) programs: usize,
    /// How many of them have a realm at a time.
    pub(crate) residents: usize,
    /// The messages that may wait for one.
    pub(crate) mailbox: usize,
    /// How often one may be started again within the period.
    pub(crate) restarts: u32,
    /// The period.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) period: Duration,
    /// What each message may use up.
    pub(crate) limits: RunSection,
}

/// What a run may use up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunSection {
    /// How long it may compute.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) time: Duration,
    /// How long it may take in all.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) deadline: Duration,
    /// Octets of memory.
    pub(crate) memory: usize,
    /// Octets of stack.
    pub(crate) stack: u32,
    /// Jobs of promises that may wait.
    pub(crate) jobs: u32,
    /// Octets of output.
    pub(crate) output: usize,
    /// Octets of its result.
    pub(crate) result: usize,
    /// Calls of functions under way at a time.
    pub(crate) calls: usize,
    /// Octets of the code.
    pub(crate) source: usize,
    /// Whether it sees the time of day.
    pub(crate) clock: bool,
    /// Whether its random numbers cannot be foretold.
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

impl RunSection {
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
        let engine = LEAST..=MOST;
        if !engine.contains(&self.memory) {
            let what = format!("is {}; it must be from {LEAST} to {MOST}", self.memory);
            return Some(wrong("memory", &what));
        }
        if !(16 << 10..=DEEPEST).contains(&self.stack) {
            let what = format!("is {}; it must be from 16384 to {DEEPEST}", self.stack);
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

/// The octets that the engine takes before any code runs, and some for the code.
const LEAST: usize = 3 << 20;
/// The octets of a place in the pool of the host.
const MOST: usize = 64 << 20;
/// The octets of stack that the engine has.
const DEEPEST: u32 = 640 << 10;

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
    /// Says in a specification what is configured.
    pub(crate) fn limits_into(&self, spec: &mut CodeSpec) {
        spec.runs = self.runs;
        spec.waiting = self.waiting;
        spec.realms = self.realms;
        spec.idle = self.idle;
        spec.limits = self.limits.limits();
    }

    /// What types cannot refuse.
    pub(super) fn problem(&self) -> Option<Problem> {
        if !(1..=64).contains(&self.runs) {
            let what = format!("is {}; it must be from 1 to 64", self.runs);
            return Some(Problem::at("tools.code.runs", &what));
        }
        self.limits.problem("tools.code.limits")
    }
}

impl ProgramsSection {
    /// Says in a specification what is configured.
    pub(crate) fn limits_into(&self, spec: &mut ProgramsSpec) {
        spec.programs = self.programs;
        spec.residents = self.residents;
        spec.mailbox = self.mailbox;
        spec.restarts = self.restarts;
        spec.period = self.period;
        spec.limits = self.limits.limits();
    }

    /// What types cannot refuse; the host has room for so many realms.
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
