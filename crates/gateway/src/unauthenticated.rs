//! Connections of unauthenticated clients: a small budget per endpoint.
//!
//! Before a client has sent anything, it is indistinguishable from an attacker. So no client has to
//! wait to be accepted, and none is rejected for arriving late. A new client has a moment to send
//! its token or its request, whatever the others do. After that moment, and as soon as it has its
//! answer, it stays only while the budget is not exceeded. A client that shows a token leaves the
//! budget at once. The number of clients within their first moment is bounded as well: beyond it,
//! the client whose moment ends first is disconnected at once.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The budget of an endpoint for unauthenticated clients.
#[derive(Debug)]
pub(crate) struct UnauthenticatedBudget {
    limit: usize,
    entries: Mutex<Vec<SlotEntry>>,
}

#[derive(Debug)]
struct SlotEntry {
    number: u64,
    /// Time from which the client is disconnected if others need the slot.
    protected_until: Instant,
    eviction: CancellationToken,
}

/// A slot in the budget, freed on drop.
#[derive(Debug)]
pub(crate) struct UnauthenticatedSlot {
    budget: Arc<UnauthenticatedBudget>,
    number: u64,
    eviction: CancellationToken,
}

/// Time for which a new client keeps its slot even if others need it: longer than an honest client
/// on a busy machine takes to send its first bytes.
const GRACE: Duration = Duration::from_secs(1);

/// Maximum number of new clients beyond the budget: as many as the system's accept queue would
/// hold.
pub(crate) const BURST: usize = 1024;

impl UnauthenticatedBudget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(1),
            entries: Mutex::default(),
        })
    }

    /// Takes a slot, possibly one that belongs to another client.
    pub(crate) fn admit(self: &Arc<Self>, number: u64) -> UnauthenticatedSlot {
        let eviction = CancellationToken::new();
        self.entries.lock().push(SlotEntry {
            number,
            protected_until: Instant::now() + GRACE,
            eviction: eviction.clone(),
        });
        UnauthenticatedSlot {
            budget: Arc::clone(self),
            number,
            eviction,
        }
    }

    /// Disconnects clients beyond the budget whose protection has ended. Returns the time when the
    /// next client's protection ends, if there are still too many.
    pub(crate) fn evict_excess(&self) -> Option<Instant> {
        let (now, mut entries) = (Instant::now(), self.entries.lock());
        while entries.len() > self.limit {
            let protected_until = entries.iter().map(|entry| entry.protected_until).min()?;
            if protected_until > now && entries.len() <= self.limit.saturating_add(BURST) {
                return Some(protected_until);
            }
            evict_first(&mut entries);
        }
        None
    }

    /// Disconnects one client, because the process has no file descriptors left.
    pub(crate) fn evict_one(&self) {
        evict_first(&mut self.entries.lock());
    }
}

/// Disconnects the client whose protection ends first.
fn evict_first(entries: &mut Vec<SlotEntry>) {
    let first = entries.iter().enumerate();
    if let Some((at, _)) = first.min_by_key(|(_, entry)| entry.protected_until) {
        entries.swap_remove(at).eviction.cancel();
    }
}

/// Evicts clients beyond the budget, and completes when that has to be done again, if ever.
pub(crate) async fn make_room_and_wait(budget: &UnauthenticatedBudget) {
    match budget.evict_excess() {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}

impl UnauthenticatedSlot {
    /// Keeps the slot for this long from now, because the client is being served. Zero once it has
    /// its answer: it is disconnected as soon as there are too many.
    pub(crate) fn protect_for(&self, span: Duration) {
        let mut entries = self.budget.entries.lock();
        let mine = entries.iter_mut().find(|entry| entry.number == self.number);
        if let Some(entry) = mine {
            entry.protected_until = Instant::now() + span;
        }
    }

    /// Returns `true` if there are too many clients, so that this one leaves once it is answered.
    pub(crate) fn is_contended(&self) -> bool {
        self.budget.entries.lock().len() > self.budget.limit
    }

    /// Returns a token that is cancelled when the client has to leave.
    pub(crate) fn eviction(&self) -> CancellationToken {
        self.eviction.clone()
    }

    /// Waits until the client has to leave.
    pub(crate) async fn evicted(&self) {
        self.eviction.cancelled().await;
    }
}

impl Drop for UnauthenticatedSlot {
    fn drop(&mut self) {
        let mut entries = self.budget.entries.lock();
        entries.retain(|entry| entry.number != self.number);
    }
}

/// Number of authenticated clients. Clones share the same counter.
#[derive(Debug, Clone, Default)]
pub(crate) struct AdmittedCount(Arc<AtomicUsize>);

/// The slot of an authenticated client, freed on drop.
#[derive(Debug)]
pub(crate) struct AdmittedSlot(AdmittedCount);

impl AdmittedCount {
    /// Takes a slot, if fewer than `limit` are taken.
    pub(crate) fn admit(&self, limit: usize) -> Option<AdmittedSlot> {
        let add = |now| (now < limit).then_some(now + 1);
        let admitted = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        admitted.ok().map(|_| AdmittedSlot(self.clone()))
    }
}

impl Drop for AdmittedSlot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn unauthenticated_client_is_protected_only_for_a_moment() {
        let budget = UnauthenticatedBudget::new(2);
        let first = budget.admit(1);
        let answered = budget.admit(2);
        let asks = budget.admit(3);
        assert_eq!(budget.evict_excess(), Some(Instant::now() + GRACE));
        answered.protect_for(Duration::ZERO);
        assert_eq!(budget.evict_excess(), None);
        assert!(answered.eviction.is_cancelled(), "it has what it wanted");
        asks.protect_for(Duration::from_secs(60));
        let _last = budget.admit(4);
        assert!(!first.eviction.is_cancelled());
        assert!(asks.is_contended());
        tokio::time::advance(GRACE).await;
        assert_eq!(budget.evict_excess(), None);
        assert!(!asks.is_contended());
        assert!(
            first.eviction.is_cancelled(),
            "it has been silent the longest"
        );
        assert!(!asks.eviction.is_cancelled(), "it is being answered");
    }

    #[tokio::test(start_paused = true)]
    async fn unauthenticated_clients_are_bounded_by_the_burst() {
        let budget = UnauthenticatedBudget::new(2);
        let crowd = (0..2 * BURST as u64).map(|number| {
            let slot = budget.admit(number);
            budget.evict_excess();
            slot
        });
        let crowd: Vec<_> = crowd.collect();
        let (gone, here): (Vec<_>, Vec<_>) =
            crowd.iter().partition(|slot| slot.eviction.is_cancelled());
        assert_eq!((gone.len(), here.len()), (BURST - 2, BURST + 2));
        tokio::time::advance(GRACE).await;
        budget.evict_excess();
        let here = here.iter().filter(|slot| !slot.eviction.is_cancelled());
        assert_eq!(here.count(), 2, "the rest had its moment");
    }

    #[test]
    fn one_client_is_evicted_if_descriptors_run_out() {
        let budget = UnauthenticatedBudget::new(8);
        budget.evict_one();
        let first = budget.admit(1);
        budget.evict_one();
        assert!(first.eviction.is_cancelled());
    }
}
