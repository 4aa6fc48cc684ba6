//! The memory and the tables of a component.

use wasmtime::ResourceLimiter;

use crate::manifest::Limits;

/// How much memory a component has, and whether it was refused more.
#[derive(Debug)]
pub(crate) struct Memory {
    max: usize,
    table: usize,
    used: usize,
    refused: Option<(&'static str, usize)>,
}

impl Memory {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self {
            max: limits.memory,
            table: limits.table,
            used: 0,
            refused: None,
        }
    }

    /// The octets of all its memories.
    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    /// The limit beyond which it was refused something, with its value.
    pub(crate) const fn refused(&self) -> Option<(&'static str, usize)> {
        self.refused
    }
}

impl ResourceLimiter for Memory {
    /// Memories count together: many small ones are no way around the limit.
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
        let mut memory = Memory::new(&Limits {
            memory: 100,
            table: 10,
            ..Limits::default()
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
