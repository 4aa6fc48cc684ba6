//! Fault injection on the side of the load: datagrams that are dropped, or overtaken by the next
//! one.

use std::hash::{BuildHasher as _, RandomState};

use std::time::{Duration, Instant};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng as _;
use strowger_pfcp::endpoint::Transmit;

use super::LoadPlan;
use crate::scenario::draw;

/// The maximum time that a datagram is held for another one to overtake it.
const MAX_HOLD: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct LinkFaults {
    loss: f64,
    reordering: f64,
    random: SplitMix64,
    /// The datagram that the next one overtakes, and the time since which it is held.
    held: Option<(Instant, Transmit)>,
    /// Numbers of dropped and overtaken datagrams.
    pub(super) injected: (u64, u64),
}

impl LinkFaults {
    pub(super) fn of(plan: &LoadPlan) -> Self {
        Self {
            loss: plan.loss,
            reordering: plan.reordering,
            random: SplitMix64::seed_from_u64(RandomState::new().hash_one("trouble")),
            held: None,
            injected: (0, 0),
        }
    }

    /// Decides whether a datagram is dropped, and counts it. Returns `true` if it is dropped.
    pub(super) fn loses(&mut self) -> bool {
        let lost = self.loss > 0.0 && draw(&mut self.random, self.loss);
        self.injected.0 += u64::from(lost);
        lost
    }

    /// Passes a datagram on to be sent, unless it is dropped or held back.
    pub(super) fn pass(&mut self, now: Instant, transmit: Transmit, outgoing: &mut Vec<Transmit>) {
        if self.loses() {
            return;
        }
        let held = self.held.take();
        if held.is_none() && self.reordering > 0.0 && draw(&mut self.random, self.reordering) {
            self.injected.1 += 1;
            self.held = Some((now, transmit));
            return;
        }
        outgoing.push(transmit);
        outgoing.extend(held.map(|(_, transmit)| transmit));
    }

    /// Releases a held datagram that no other one has overtaken in time.
    pub(super) fn release_held(&mut self, now: Instant, outgoing: &mut Vec<Transmit>) {
        let waited = |held: &mut (Instant, Transmit)| now - held.0 >= MAX_HOLD;
        outgoing.extend(self.held.take_if(waited).map(|(_, transmit)| transmit));
    }
}
