//! Fault injection on the side of the load: datagrams that are dropped, or overtaken by the next
//! one.

use std::hash::{BuildHasher as _, RandomState};

use std::time::{Duration, Instant};

use strowger_pfcp::endpoint::Transmit;

use super::LoadPlan;

/// The maximum time that a datagram is held for another one to overtake it.
const MAX_HOLD: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct LinkFaults {
    loss: f64,
    reordering: f64,
    state: u64,
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
            state: RandomState::new().hash_one("trouble"),
            held: None,
            injected: (0, 0),
        }
    }

    /// Decides whether a datagram is dropped, and counts it. Returns `true` if it is dropped.
    pub(super) fn loses(&mut self) -> bool {
        let lost = self.loss > 0.0 && self.happens(self.loss);
        self.injected.0 += u64::from(lost);
        lost
    }

    /// Passes a datagram on to be sent, unless it is dropped or held back.
    pub(super) fn pass(&mut self, now: Instant, transmit: Transmit, outgoing: &mut Vec<Transmit>) {
        if self.loses() {
            return;
        }
        let held = self.held.take();
        if held.is_none() && self.reordering > 0.0 && self.happens(self.reordering) {
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

    fn happens(&mut self, share: f64) -> bool {
        // SplitMix64; 32 of its bits make a number below one.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = u32::try_from((value ^ (value >> 31)) >> 32).unwrap_or(u32::MAX);
        f64::from(part) / 4_294_967_296.0 < share
    }
}
