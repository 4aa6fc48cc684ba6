//! Connections of clients that have not shown who they are: a small budget for each door.
//!
//! Nobody can be told from an attacker before it has sent something, so nobody is turned away for
//! being too many. When all places are taken, the one makes room whose patience ended first: it has
//! had its time to send what shows who it is, and whoever does so leaves the budget at once. Those
//! who come meanwhile wait with the system.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// The places of a door for strangers.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: usize,
    places: Mutex<Vec<Place>>,
    /// A place is free, or one has less patience.
    changed: Notify,
}

#[derive(Debug)]
struct Place {
    number: u64,
    /// From then on it makes room for others.
    patience: Instant,
    out: CancellationToken,
}

/// A place of a stranger, until it is dropped.
#[derive(Debug)]
pub(crate) struct Stranger {
    of: Arc<Strangers>,
    number: u64,
    out: CancellationToken,
}

/// How long a stranger keeps its place though others wait for it: longer than it takes to read
/// what an honest client sent when it came.
const PATIENCE: Duration = Duration::from_millis(100);

impl Strangers {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            places: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// A place, as soon as one is free or can be taken from another.
    pub(crate) async fn enter(self: &Arc<Self>, number: u64) -> Stranger {
        loop {
            // Registered before the look, so that nothing between the two is missed.
            let changed = self.changed.notified();
            let until = match self.try_enter(number) {
                Ok(stranger) => return stranger,
                Err(until) => until,
            };
            let _ = timeout_at(until, changed).await;
        }
    }

    /// A place, or when one can be taken from another.
    fn try_enter(self: &Arc<Self>, number: u64) -> Result<Stranger, Instant> {
        let mut places = self.places.lock();
        if places.len() >= self.most {
            let first = places.iter().enumerate();
            let first = first.min_by_key(|(_, place)| place.patience);
            if let Some((at, place)) = first {
                if place.patience > Instant::now() {
                    return Err(place.patience);
                }
                places.swap_remove(at).out.cancel();
            }
        }
        let out = CancellationToken::new();
        places.push(Place {
            number,
            patience: Instant::now() + PATIENCE,
            out: out.clone(),
        });
        Ok(Stranger {
            of: Arc::clone(self),
            number,
            out,
        })
    }
}

impl Stranger {
    /// Lets it keep its place for longer: it has asked for something.
    pub(crate) fn has_asked(&self, patience: Duration) {
        let mut places = self.of.places.lock();
        let mine = places.iter_mut().find(|place| place.number == self.number);
        if let Some(place) = mine {
            place.patience = Instant::now() + patience;
        }
    }

    /// Waits until it has to make room.
    pub(crate) async fn turned_out(&self) {
        self.out.cancelled().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut places = self.of.places.lock();
        places.retain(|place| place.number != self.number);
        drop(places);
        self.of.changed.notify_one();
    }
}

/// How many clients are let in. A clone is the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Arc<AtomicUsize>);

/// A client that was let in, until it is dropped.
#[derive(Debug)]
pub(crate) struct LetIn(Known);

impl Known {
    /// Lets one more in, if there are fewer than so many.
    pub(crate) fn enter(&self, most: usize) -> Option<LetIn> {
        let add = |now| (now < most).then_some(now + 1);
        let entered = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        entered.ok().map(|_| LetIn(self.clone()))
    }
}

impl Drop for LetIn {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
