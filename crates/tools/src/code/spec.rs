//! Limits and grants of code.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::error::{CodeError, CodeLimit, ExceededLimit};
use super::sandbox::Sandbox;
use super::stats::CodeWatch;

/// The configuration of a [`Code`](super::Code) actor: its sandbox and its limits, with their
/// defaults in parentheses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CodeSpec {
    /// The sandbox that runs the code.
    pub sandbox: Arc<dyn Sandbox>,
    /// A script that defines a function `strip`, which converts TypeScript to JavaScript. Without
    /// it the actor rejects TypeScript.
    pub typescript: Option<Arc<str>>,
    /// The limits of each run.
    pub limits: CodeLimits,
    /// Maximum number of concurrent runs, 1 to 64 (16).
    pub runs: usize,
    /// Maximum number of runs that wait for a slot or a realm (64); one more fails with
    /// [`CodeError::Full`].
    pub waiting: usize,
    /// Maximum number of named realms (32); one more drops the realm that has been idle for
    /// longest.
    pub realms: usize,
    /// Time after which an idle realm is dropped (10 minutes).
    pub idle: Duration,
    /// The handle that observes the stats of the actor.
    pub watch: CodeWatch,
}

impl CodeSpec {
    /// Creates a spec that runs JavaScript within the default limits, with no grants.
    #[must_use]
    pub fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self {
            sandbox,
            typescript: None,
            limits: CodeLimits::default(),
            runs: 16,
            waiting: 64,
            realms: 32,
            idle: Duration::from_secs(600),
            watch: CodeWatch::default(),
        }
    }

    /// Accepts TypeScript, too: the script defines the function `strip`.
    #[must_use]
    pub fn with_typescript(mut self, script: impl Into<Arc<str>>) -> Self {
        self.typescript = Some(script.into());
        self
    }

    /// Sets the limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: CodeLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// Limits and grants of a run, with their defaults in parentheses. In configurations, missing
/// fields have their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CodeLimits {
    /// Maximum computing time (1 s).
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub time: Duration,
    /// Maximum total time, including waits (30 s).
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub deadline: Duration,
    /// Maximum memory in bytes, including that of the engine (16 MiB).
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub memory: usize,
    /// Maximum stack size in bytes (512 KiB).
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub stack: u32,
    /// Maximum number of pending promise jobs (10 000).
    pub jobs: u32,
    /// Maximum console output in bytes (256 KiB); each line counts 32 more.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub output: usize,
    /// Maximum size in bytes of the result, of the arguments of a function call, and of a message
    /// to a program (1 MiB).
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub result: usize,
    /// Maximum number of concurrent function calls (16).
    pub calls: usize,
    /// Maximum size in bytes of the code and its `args` together (256 KiB).
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub source: usize,
    /// `true` if the code sees the time of day; else (the default) it is always 1970.
    pub clock: bool,
    /// `true` if random numbers are unpredictable; else (the default) they are the same in each
    /// run.
    pub random: bool,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            deadline: Duration::from_secs(30),
            memory: 16 << 20,
            stack: 512 << 10,
            jobs: 10_000,
            output: 256 << 10,
            result: 1 << 20,
            calls: 16,
            source: 256 << 10,
            clock: false,
            random: false,
        }
    }
}

/// Tighter limits for a single run. A value above the limit of the actor has no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CodeBudget {
    /// Computing time in milliseconds.
    pub time_ms: Option<u64>,
    /// Total time in milliseconds.
    pub deadline_ms: Option<u64>,
    /// Memory in bytes.
    pub memory: Option<usize>,
    /// Stack size in bytes.
    pub stack: Option<u32>,
    /// Number of pending promise jobs.
    pub jobs: Option<u32>,
    /// Console output in bytes.
    pub output: Option<usize>,
    /// Size of the result in bytes.
    pub result: Option<usize>,
}

impl CodeLimits {
    /// The value of a limit: milliseconds, bytes or jobs.
    #[must_use]
    pub fn value(&self, limit: CodeLimit) -> u64 {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        match limit {
            CodeLimit::Time => millis(self.time),
            CodeLimit::Deadline => millis(self.deadline),
            CodeLimit::Memory => self.memory as u64,
            CodeLimit::Stack => self.stack.into(),
            CodeLimit::Jobs => self.jobs.into(),
            CodeLimit::Output => self.output as u64,
            CodeLimit::Result => self.result as u64,
            CodeLimit::Source => self.source as u64,
        }
    }

    /// Builds the error for a run that exceeded a limit, with the amount used if it is known.
    pub(crate) fn exceeded(&self, limit: CodeLimit, used: Option<u64>) -> CodeError {
        CodeError::Limit(ExceededLimit::new(limit, self.value(limit), used))
    }

    /// Tightens the limits by a budget.
    pub(crate) fn tightened_by(mut self, budget: &CodeBudget) -> Self {
        fn least<T: Ord>(limit: &mut T, wanted: Option<T>) {
            if let Some(wanted) = wanted
                && wanted < *limit
            {
                *limit = wanted;
            }
        }
        least(&mut self.time, budget.time_ms.map(Duration::from_millis));
        let deadline = budget.deadline_ms.map(Duration::from_millis);
        least(&mut self.deadline, deadline);
        least(&mut self.memory, budget.memory);
        least(&mut self.stack, budget.stack);
        least(&mut self.jobs, budget.jobs);
        least(&mut self.output, budget.output);
        least(&mut self.result, budget.result);
        self
    }
}
