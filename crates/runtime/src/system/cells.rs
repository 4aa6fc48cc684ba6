//! The table of all actors of a system, by identifier.

use std::mem;
use std::sync::Arc;

use crate::cell::{ActorId, ErasedCell};
use crate::path::Key;
use crate::schedule::strand::{SpinLock, UniqueArc};

/// The table of all actors that have not ended. An actor is looked up here by its identifier, and
/// is no longer found once it has ended.
pub(crate) struct ActorSlab(SpinLock<CellTable>);

/// Number of slots that are read under one lock.
const PAGE_SIZE: usize = 256;

impl ActorSlab {
    pub(super) fn new() -> Self {
        Self(SpinLock::new(CellTable::default()))
    }

    /// Builds a cell in preallocated memory, with a new identifier, and adds it to the table.
    #[inline(always)]
    pub(super) fn insert_with<C: ErasedCell + 'static>(
        &self,
        unique: UniqueArc<C>,
        make: impl FnOnce(ActorId) -> C,
    ) -> Arc<C> {
        let mut table = self.0.lock();
        let id = table.reserve();
        let cell = unique.fill(|| make(id));
        table.set(id.slot, CellSlot::Taken(Arc::<C>::clone(&cell)));
        cell
    }

    pub(crate) fn get(&self, id: ActorId) -> Option<Arc<dyn ErasedCell>> {
        self.0.lock().get(id).cloned()
    }

    /// Returns `true` if there is an actor with this identifier and this key.
    pub(crate) fn has_key(&self, id: ActorId, key: &Key) -> bool {
        let table = self.0.lock();
        table.get(id).is_some_and(|cell| cell.core().key == *key)
    }

    /// Returns those of the given actors that have not ended.
    pub(crate) fn get_all(&self, ids: &[ActorId]) -> Vec<Arc<dyn ErasedCell>> {
        let mut all = Vec::with_capacity(ids.len());
        for page in ids.chunks(PAGE_SIZE) {
            let table = self.0.lock();
            all.extend(page.iter().filter_map(|id| table.get(*id)).cloned());
        }
        all
    }

    #[inline]
    pub(super) fn remove(&self, id: ActorId) -> Option<Arc<dyn ErasedCell>> {
        self.0.lock().remove(id)
    }

    pub(super) fn len(&self) -> usize {
        let table = self.0.lock();
        table.used as usize - table.free.len()
    }

    /// Appends the actors of one page, which begins at `slot`, and returns where the next page
    /// begins.
    pub(super) fn page(&self, slot: usize, into: &mut Vec<Arc<dyn ErasedCell>>) -> Option<usize> {
        let table = self.0.lock();
        let used = table.used as usize;
        let end = used.min(slot.saturating_add(PAGE_SIZE));
        into.extend((slot..end).filter_map(|slot| {
            match &table.pieces[slot / CHUNK_SIZE][slot % CHUNK_SIZE] {
                CellSlot::Taken(cell) => Some(Arc::clone(cell)),
                CellSlot::Free { .. } => None,
            }
        }));
        (end < used).then_some(end)
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn ErasedCell>> {
        let mut all = Vec::with_capacity(self.len());
        let mut slot = Some(0);
        while let Some(from) = slot {
            slot = self.page(from, &mut all);
        }
        all
    }
}

#[derive(Default)]
struct CellTable {
    /// Split into pieces, so that growing neither copies slots nor leaves half of an allocation
    /// empty.
    pieces: Vec<Box<[CellSlot]>>,
    used: u32,
    free: Vec<u32>,
}

/// A slot of the table. The generation of a taken slot is stored in the actor's cell.
#[derive(Clone)]
enum CellSlot {
    Free { generation: u32 },
    Taken(Arc<dyn ErasedCell>),
}

/// Number of slots in a piece.
const CHUNK_SIZE: usize = 256;

impl CellTable {
    #[inline(always)]
    fn slot(&mut self, slot: u32) -> Option<&mut CellSlot> {
        let slot = slot as usize;
        self.pieces
            .get_mut(slot / CHUNK_SIZE)?
            .get_mut(slot % CHUNK_SIZE)
    }

    /// Takes a free slot and returns it with an identifier that no actor has had before.
    #[inline(always)]
    fn reserve(&mut self) -> ActorId {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow(),
        };
        let generation = match self.slot(slot) {
            Some(CellSlot::Free { generation }) => *generation,
            Some(CellSlot::Taken(_)) | None => {
                unreachable!("a place exists, and is given to one actor at a time")
            }
        };
        ActorId { slot, generation }
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        if self.used as usize == self.pieces.len() * CHUNK_SIZE {
            self.pieces
                .push(vec![CellSlot::Free { generation: 0 }; CHUNK_SIZE].into());
        }
        let slot = self.used;
        self.used = slot
            .checked_add(1)
            .expect("fewer than 2^32 actors fit into memory");
        slot
    }

    #[inline(always)]
    fn set(&mut self, slot: u32, to: CellSlot) {
        if let Some(place) = self.slot(slot) {
            *place = to;
        }
    }

    #[inline(always)]
    fn get(&self, id: ActorId) -> Option<&Arc<dyn ErasedCell>> {
        let slot = id.slot as usize;
        match self.pieces.get(slot / CHUNK_SIZE)?.get(slot % CHUNK_SIZE)? {
            CellSlot::Taken(cell) if cell.core().id == id => Some(cell),
            CellSlot::Taken(_) | CellSlot::Free { .. } => None,
        }
    }

    #[inline(always)]
    fn remove(&mut self, id: ActorId) -> Option<Arc<dyn ErasedCell>> {
        let place = self.slot(id.slot)?;
        match place {
            CellSlot::Taken(cell) if cell.core().id == id => {}
            CellSlot::Taken(_) | CellSlot::Free { .. } => return None,
        }
        let generation = id.generation.wrapping_add(1);
        let removed = mem::replace(place, CellSlot::Free { generation });
        self.free.push(id.slot);
        match removed {
            CellSlot::Taken(cell) => Some(cell),
            CellSlot::Free { .. } => None,
        }
    }
}
