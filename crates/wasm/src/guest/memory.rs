//! The memories and tables of a component.

use wasmtime::ResourceLimiter;

use crate::manifest::ComponentLimits;

/// The resource limiter of a component: its memory use, and whether it was refused more.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    max: usize,
    table: usize,
    used: usize,
    refused: Option<(&'static str, usize)>,
}

impl MemoryLimiter {
    pub(super) const fn new(limits: &ComponentLimits) -> Self {
        Self {
            max: limits.memory,
            table: limits.table,
            used: 0,
            refused: None,
        }
    }

    /// Returns the size of all memories in bytes.
    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    /// Returns the limit at which growth was refused, with its value.
    pub(crate) const fn refused(&self) -> Option<(&'static str, usize)> {
        self.refused
    }
}

impl ResourceLimiter for MemoryLimiter {
    /// All memories count together, so that many small ones do not bypass the limit.
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > self.max {
            self.refused = Some(("memory", self.max));
            return Ok(false);
        }
        self.used = used;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.table {
            self.refused = Some(("table", self.table));
            return Ok(false);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_inclusive() {
        let mut memory = MemoryLimiter::new(&ComponentLimits {
            memory: 100,
            table: 10,
            ..ComponentLimits::default()
        });
        assert!(memory.memory_growing(0, 60, None).is_ok_and(|may| may));
        assert!(memory.memory_growing(0, 40, None).is_ok_and(|may| may));
        assert!(memory.table_growing(0, 10, None).is_ok_and(|may| may));
        assert_eq!(memory.refused(), None);
        assert!(memory.table_growing(0, 11, None).is_ok_and(|may| !may));
        assert_eq!(memory.refused(), Some(("table", 10)));
        assert!(memory.memory_growing(60, 61, None).is_ok_and(|may| !may));
        assert_eq!(memory.refused(), Some(("memory", 100)));
    }
}
