//! What a node tells about itself besides its actors: limits, readiness, figures.

use std::fmt;
use std::sync::Arc;

use crate::metric::Exposition;

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// What is used.
    pub used: f64,
    /// The most that can be; `None` if it is not known.
    pub most: Option<f64>,
}

impl Usage {
    /// So much of so much.
    #[must_use]
    pub const fn new(used: f64, most: f64) -> Self {
        Self {
            used,
            most: Some(most),
        }
    }
}

type Limit = dyn Fn() -> Option<Usage> + Send + Sync;
type Check = dyn Fn() -> Result<(), String> + Send + Sync;
type Collect = dyn Fn(&mut Exposition) + Send + Sync;

/// What a node tells about itself: its limits, whether it is ready, figures of its own.
///
/// All of it are functions that are called when somebody looks; they must not block.
///
/// ```
/// use strowger_gateway::{Usage, Vitals};
///
/// let vitals = Vitals::new()
///     .limit("lines", || Some(Usage::new(3.0, 100.0)))
///     .check("trunk", || Err("the trunk is not connected".to_owned()));
/// assert_eq!(vitals.obstacles(), [("trunk", "the trunk is not connected".to_owned())]);
/// ```
#[derive(Clone)]
pub struct Vitals {
    limits: Vec<(&'static str, Arc<Limit>)>,
    checks: Vec<(&'static str, Arc<Check>)>,
    collect: Vec<Arc<Collect>>,
}

impl Vitals {
    /// The memory of the process, as far as the system tells, and nothing else.
    #[must_use]
    pub fn new() -> Self {
        let nothing = Self {
            limits: Vec::new(),
            checks: Vec::new(),
            collect: Vec::new(),
        };
        nothing.limit("memory", crate::process::memory)
    }

    /// Adds a limit that should not be reached. The function returns nothing while it cannot tell.
    #[must_use]
    pub fn limit(
        mut self,
        name: &'static str,
        usage: impl Fn() -> Option<Usage> + Send + Sync + 'static,
    ) -> Self {
        self.limits.push((name, Arc::new(usage)));
        self
    }

    /// Adds a condition of readiness: what stands in its way, in words.
    #[must_use]
    pub fn check(
        mut self,
        name: &'static str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.checks.push((name, Arc::new(check)));
        self
    }

    /// Adds figures that are read whenever metrics are.
    #[must_use]
    pub fn collect(mut self, collect: impl Fn(&mut Exposition) + Send + Sync + 'static) -> Self {
        self.collect.push(Arc::new(collect));
        self
    }

    /// All limits with what is used of them now.
    pub fn usages(&self) -> impl Iterator<Item = (&'static str, Usage)> {
        let usage = |(name, usage): &(&'static str, Arc<Limit>)| Some((*name, usage()?));
        self.limits.iter().filter_map(usage)
    }

    /// The checks that do not hold now, and why.
    #[must_use]
    pub fn obstacles(&self) -> Vec<(&'static str, String)> {
        let obstacle = |(name, check): &(&'static str, Arc<Check>)| Some((*name, check().err()?));
        self.checks.iter().filter_map(obstacle).collect()
    }

    pub(crate) fn write(&self, exposition: &mut Exposition) {
        for collect in &self.collect {
            collect(exposition);
        }
    }
}

impl Default for Vitals {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = self.limits.iter().map(|(name, _)| name);
        let checks = self.checks.iter().map(|(name, _)| name);
        f.debug_list().entries(limits.chain(checks)).finish()
    }
}
