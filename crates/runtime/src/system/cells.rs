//! All actors of a system, by identifier.

use std::mem;
use std::sync::Arc;

use crate::cell::{ActorId, AnyCell};
use crate::path::Key;
use crate::schedule::strand::{Berth, Lock};

/// The table that holds every actor which has not ended: whoever else knows one by its identifier
/// finds it here, and nothing once it has ended.
pub(crate) struct Cells(Lock<Table>);

/// So many slots are read under one lock.
const PAGE: usize = 256;

impl Cells {
    pub(super) fn new() -> Self {
        Self(Lock::new(Table::default()))
    }

    /// Finds a place for the cell that is made with its identifier, in a berth that is there.
    #[inline(always)]
    pub(super) fn put<C: AnyCell + 'static>(
        &self,
        berth: Berth<C>,
        make: impl FnOnce(ActorId) -> C,
    ) -> Arc<C> {
        let mut table = self.0.lock();
        let id = table.reserve();
        let cell = berth.fill(|| make(id));
        table.set(id.slot, Slot::Taken(Arc::<C>::clone(&cell)));
        cell
    }

    pub(crate) fn get(&self, id: ActorId) -> Option<Arc<dyn AnyCell>> {
        self.0.lock().get(id).cloned()
    }

    /// Whether there is an actor of this identifier that has this key.
    pub(crate) fn has_key(&self, id: ActorId, key: &Key) -> bool {
        let table = self.0.lock();
        table.get(id).is_some_and(|cell| cell.node().key == *key)
    }

    /// Those of these actors that there are.
    pub(crate) fn each(&self, ids: &[ActorId]) -> Vec<Arc<dyn AnyCell>> {
        let mut all = Vec::with_capacity(ids.len());
        for page in ids.chunks(PAGE) {
            let table = self.0.lock();
            all.extend(page.iter().filter_map(|id| table.get(*id)).cloned());
        }
        all
    }

    #[inline]
    pub(super) fn remove(&self, id: ActorId) -> Option<Arc<dyn AnyCell>> {
        self.0.lock().remove(id)
    }

    pub(super) fn len(&self) -> usize {
        let table = self.0.lock();
        table.used as usize - table.free.len()
    }

    /// The actors in some slots from `slot` on, and where the next of them are.
    pub(super) fn page(&self, slot: usize, into: &mut Vec<Arc<dyn AnyCell>>) -> Option<usize> {
        let table = self.0.lock();
        let used = table.used as usize;
        let end = used.min(slot.saturating_add(PAGE));
        into.extend((slot..end).filter_map(|slot| {
            match &table.pieces[slot / PIECE][slot % PIECE] {
                Slot::Taken(cell) => Some(Arc::clone(cell)),
                Slot::Free { .. } => None,
            }
        }));
        (end < used).then_some(end)
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn AnyCell>> {
        let mut all = Vec::with_capacity(self.len());
        let mut slot = Some(0);
        while let Some(from) = slot {
            slot = self.page(from, &mut all);
        }
        all
    }
}

#[derive(Default)]
struct Table {
    /// In pieces, so that growing copies nothing and leaves no half empty.
    pieces: Vec<Box<[Slot]>>,
    used: u32,
    free: Vec<u32>,
}

/// A place in the table. The generation of an actor in it stands in its cell.
#[derive(Clone)]
enum Slot {
    Free { generation: u32 },
    Taken(Arc<dyn AnyCell>),
}

/// How many places a piece has.
const PIECE: usize = 256;

impl Table {
    #[inline(always)]
    fn slot(&mut self, slot: u32) -> Option<&mut Slot> {
        let slot = slot as usize;
        self.pieces.get_mut(slot / PIECE)?.get_mut(slot % PIECE)
    }

    /// Gives a free place away, with an identifier that no actor had.
    #[inline(always)]
    fn reserve(&mut self) -> ActorId {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow(),
        };
        let generation = match self.slot(slot) {
            Some(Slot::Free { generation }) => *generation,
            Some(Slot::Taken(_)) | None => {
                unreachable!("a place exists, and is given to one actor at a time")
            }
        };
        ActorId { slot, generation }
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        if self.used as usize == self.pieces.len() * PIECE {
            self.pieces
                .push(vec![Slot::Free { generation: 0 }; PIECE].into());
        }
        let slot = self.used;
        self.used = slot
            .checked_add(1)
            .expect("fewer than 2^32 actors fit into memory");
        slot
    }

    #[inline(always)]
    fn set(&mut self, slot: u32, to: Slot) {
        if let Some(place) = self.slot(slot) {
            *place = to;
        }
    }

    #[inline(always)]
    fn get(&self, id: ActorId) -> Option<&Arc<dyn AnyCell>> {
        let slot = id.slot as usize;
        match self.pieces.get(slot / PIECE)?.get(slot % PIECE)? {
            Slot::Taken(cell) if cell.node().id == id => Some(cell),
            Slot::Taken(_) | Slot::Free { .. } => None,
        }
    }

    #[inline(always)]
    fn remove(&mut self, id: ActorId) -> Option<Arc<dyn AnyCell>> {
        let place = self.slot(id.slot)?;
        match place {
            Slot::Taken(cell) if cell.node().id == id => {}
            Slot::Taken(_) | Slot::Free { .. } => return None,
        }
        let generation = id.generation.wrapping_add(1);
        let removed = mem::replace(place, Slot::Free { generation });
        self.free.push(id.slot);
        match removed {
            Slot::Taken(cell) => Some(cell),
            Slot::Free { .. } => None,
        }
    }
}
