//! The backend in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::RwLock;

use super::{Backend, BackendError};

#[derive(Debug, Default)]
pub(super) struct MemoryBackend(RwLock<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Backend for MemoryBackend {
    fn may_block(&self) -> bool {
        false
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.0.read().get(key).cloned())
    }

    fn size(&self, key: &[u8]) -> Result<Option<usize>, BackendError> {
        Ok(self.0.read().get(key).map(Vec::len))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), BackendError> {
        self.0.write().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), BackendError> {
        self.0.write().remove(key);
        Ok(())
    }

    fn scan(
        &self,
        prefix: &[u8],
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], usize) -> bool,
    ) -> Result<(), BackendError> {
        let table = self.0.read();
        let keys = table.range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
        for (key, value) in keys {
            if !key.starts_with(prefix) || !visit(key, value.len()) {
                break;
            }
        }
        Ok(())
    }
}
