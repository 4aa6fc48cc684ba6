//! What code may use up, and what it is granted.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::sandbox::Sandbox;
use super::watch::CodeWatch;

/// Where a [`Code`](crate::Code) actor runs code, and within which limits.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CodeSpec {
    /// Where it runs.
    pub sandbox: Arc<dyn Sandbox>,
    /// A script that defines a function `strip`, which makes JavaScript of TypeScript; without it
    /// there is no TypeScript.
    pub typescript: Option<Arc<str>>,
    /// The limits of each run.
    pub limits: CodeLimits,
    /// The runs under way at a time, at most 64.
    pub runs: usize,
    /// The runs that wait for their turn.
    pub waiting: usize,
    /// The realms that are kept; beyond that the one that was idle for longest ends.
    pub realms: usize,
    /// How long a realm is kept that nobody uses.
    pub idle: Duration,
    /// Where those who watch see what it does.
    pub watch: CodeWatch,
}

impl CodeSpec {
    /// Runs JavaScript in a sandbox, within the default limits, granted nothing.
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

    /// Takes TypeScript, too: the script defines the function `strip`.
    #[must_use]
    pub fn with_typescript(mut self, script: impl Into<Arc<str>>) -> Self {
        self.typescript = Some(script.into());
        self
    }

    /// Other limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: CodeLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// What a run may use up, and what it is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeLimits {
    /// How long it may compute.
    pub time: Duration,
    /// How long it may take in all, with what it waits for.
    pub deadline: Duration,
    /// The octets of its memory, with what the engine itself takes.
    pub memory: usize,
    /// The octets of its stack.
    pub stack: u32,
    /// The jobs of promises that may wait at a time.
    pub jobs: u32,
    /// The octets that it may write to the console; each line counts 32 more.
    pub output: usize,
    /// The octets of its result, of what it hands to a function, and of what a program is given.
    pub result: usize,
    /// The calls of functions that may be under way at a time.
    pub calls: usize,
    /// The octets of the code itself, with what it is given as `args`.
    pub source: usize,
    /// Whether it sees the time of day; else it is always 1970.
    pub clock: bool,
    /// Whether its random numbers cannot be foretold; else they are the same in each run.
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

/// Tighter limits for one run; what is more than the actor has is the actor's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CodeBudget {
    /// Milliseconds that it may compute.
    pub time_ms: Option<u64>,
    /// Milliseconds that it may take in all.
    pub deadline_ms: Option<u64>,
    /// Octets of memory.
    pub memory: Option<usize>,
    /// Octets of stack.
    pub stack: Option<u32>,
    /// Jobs of promises that may wait.
    pub jobs: Option<u32>,
    /// Octets of output.
    pub output: Option<usize>,
    /// Octets of its result.
    pub result: Option<usize>,
}

impl CodeLimits {
    /// These, or tighter ones.
    pub(crate) fn within(mut self, budget: &CodeBudget) -> Self {
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
