//! The configuration of code and programs, with their limits.

use std::time::Duration;

use serde::Deserialize;
use strowger_tools::code::{CodeLimits, CodeSpec};
use strowger_tools::program::ProgramsSpec;

use super::limit::{self, LimitSet};
use crate::config::Problem;

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
    pub(crate) limits: CodeLimits,
}

/// The section about published programs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProgramsSection {
    /// Set to `true` to enable programs.
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
    pub(crate) limits: CodeLimits,
}

/// The keys of limits.
pub(crate) const CODE_LIMITS: [&str; 9] = [
    "time", "deadline", "memory", "stack", "jobs", "output", "result", "calls", "source",
];

/// Sets a limit by its key.
pub(crate) fn set_code_limit(limits: &mut CodeLimits, key: &str, value: &str) -> LimitSet {
    match key {
        "time" => limit::set_duration(&mut limits.time, value),
        "deadline" => limit::set_duration(&mut limits.deadline, value),
        "memory" => limit::set_size(&mut limits.memory, value),
        "stack" => limit::set_size(&mut limits.stack, value),
        "jobs" => limit::set_number(&mut limits.jobs, value),
        "output" => limit::set_size(&mut limits.output, value),
        "result" => limit::set_size(&mut limits.result, value),
        "calls" => limit::set_number(&mut limits.calls, value),
        "source" => limit::set_size(&mut limits.source, value),
        _ => None,
    }
}

fn limit_problem(limits: &CodeLimits, at: &str) -> Option<Problem> {
    let wrong = |key: &str, what: &str| Problem::at(&format!("{at}.{key}"), what);
    let engine = MIN_MEMORY..=MAX_MEMORY;
    if !engine.contains(&limits.memory) {
        let what = format!(
            "is {}; must be from {MIN_MEMORY} to {MAX_MEMORY}",
            limits.memory
        );
        return Some(wrong("memory", &what));
    }
    if !(16 << 10..=ENGINE_STACK).contains(&limits.stack) {
        let what = format!("is {}; must be from 16384 to {ENGINE_STACK}", limits.stack);
        return Some(wrong("stack", &what));
    }
    if limits.time < Duration::from_millis(1) {
        return Some(wrong("time", "is less than 1ms"));
    }
    if limits.time > limits.deadline {
        return Some(wrong("time", "exceeds `deadline`"));
    }
    None
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
            limits: CodeLimits::default(),
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
            restarts: ProgramsSpec::INTENSITY.0,
            period: ProgramsSpec::INTENSITY.1,
            limits: CodeLimits::default(),
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
        spec.limits = self.limits;
    }

    /// Returns the first problem that the types cannot rule out.
    pub(super) fn problem(&self) -> Option<Problem> {
        if !(1..=64).contains(&self.runs) {
            let what = format!("is {}; must be from 1 to 64", self.runs);
            return Some(Problem::at("tools.code.runs", &what));
        }
        limit_problem(&self.limits, "tools.code.limits")
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
        spec.limits = self.limits;
    }

    /// Returns the first problem that the types cannot rule out. The host can hold `room` realms.
    pub(super) fn problem(&self, room: usize) -> Option<Problem> {
        if !(1..=room).contains(&self.residents) {
            let what = format!(
                "is {}; must be from 1 to `components.instances`, {room}",
                self.residents
            );
            return Some(Problem::at("tools.programs.residents", &what));
        }
        if self.mailbox == 0 {
            return Some(Problem::at("tools.programs.mailbox", "is 0"));
        }
        limit_problem(&self.limits, "tools.programs.limits")
    }
}
