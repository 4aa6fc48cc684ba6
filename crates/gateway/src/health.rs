//! The health of a node beyond its actors: limits, readiness checks and metrics.

use std::fmt;
use std::sync::Arc;

use crate::metrics::MetricsPage;

/// The usage of a limit, in the unit of the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LimitUsage {
    /// The amount used.
    pub used: f64,
    /// The limit; `None` if unknown.
    pub limit: Option<f64>,
}

impl LimitUsage {
    /// Creates a usage from the amount used and the limit.
    #[must_use]
    pub const fn new(used: f64, limit: f64) -> Self {
        Self {
            used,
            limit: Some(limit),
        }
    }
}

type LimitFn = dyn Fn() -> Option<LimitUsage> + Send + Sync;
type CheckFn = dyn Fn() -> Result<(), String> + Send + Sync;
type CollectFn = dyn Fn(&mut MetricsPage) + Send + Sync;

/// The health of a node: its limits, its readiness checks, and its own metrics.
///
/// All of these are functions that are called on each request; they must not block.
///
/// ```
/// use strowger_gateway::health::{HealthRegistry, LimitUsage};
///
/// let health = HealthRegistry::new()
///     .limit("lines", || Some(LimitUsage::new(3.0, 100.0)))
///     .check("trunk", || Err("the trunk is not connected".to_owned()));
/// assert_eq!(health.failed_checks(), [("trunk", "the trunk is not connected".to_owned())]);
/// ```
#[derive(Clone)]
pub struct HealthRegistry {
    limits: Vec<(&'static str, Arc<LimitFn>)>,
    checks: Vec<(&'static str, Arc<CheckFn>)>,
    collect: Vec<Arc<CollectFn>>,
}

impl HealthRegistry {
    /// Creates a registry with one limit: the memory of the process, if the system reports it.
    #[must_use]
    pub fn new() -> Self {
        let nothing = Self {
            limits: Vec::new(),
            checks: Vec::new(),
            collect: Vec::new(),
        };
        nothing.limit("memory", crate::process::memory)
    }

    /// Adds a limit that should not be reached. The function returns `None` while the usage is
    /// unknown.
    #[must_use]
    pub fn limit(
        mut self,
        name: &'static str,
        usage: impl Fn() -> Option<LimitUsage> + Send + Sync + 'static,
    ) -> Self {
        self.limits.push((name, Arc::new(usage)));
        self
    }

    /// Adds a readiness check, which returns a description of the obstacle while the node is not
    /// ready.
    #[must_use]
    pub fn check(
        mut self,
        name: &'static str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.checks.push((name, Arc::new(check)));
        self
    }

    /// Adds metrics, which are collected whenever metrics are requested.
    #[must_use]
    pub fn collect(mut self, collect: impl Fn(&mut MetricsPage) + Send + Sync + 'static) -> Self {
        self.collect.push(Arc::new(collect));
        self
    }

    /// Returns the limits whose current usage is known.
    pub fn limit_usages(&self) -> impl Iterator<Item = (&'static str, LimitUsage)> {
        let usage = |(name, usage): &(&'static str, Arc<LimitFn>)| Some((*name, usage()?));
        self.limits.iter().filter_map(usage)
    }

    /// Runs the checks, and returns the failed ones with their reasons.
    #[must_use]
    pub fn failed_checks(&self) -> Vec<(&'static str, String)> {
        let obstacle = |(name, check): &(&'static str, Arc<CheckFn>)| Some((*name, check().err()?));
        self.checks.iter().filter_map(obstacle).collect()
    }

    pub(crate) fn write(&self, page: &mut MetricsPage) {
        for collect in &self.collect {
            collect(page);
        }
    }
}

impl Default for HealthRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HealthRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = self.limits.iter().map(|(name, _)| name);
        let checks = self.checks.iter().map(|(name, _)| name);
        f.debug_list().entries(limits.chain(checks)).finish()
    }
}
