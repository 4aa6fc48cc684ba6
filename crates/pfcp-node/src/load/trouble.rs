//! Trouble that a load makes on its own side: datagrams that are lost, or overtaken by the next.

use std::hash::{BuildHasher as _, RandomState};

use std::time::{Duration, Instant};

use strowger_pfcp::endpoint::Transmit;

use super::LoadPlan;

/// So long a datagram waits for another to overtake it.
const PATIENCE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Trouble {
    loss: f64,
    reordering: f64,
    state: u64,
    /// What the next datagram overtakes, and since when.
    held: Option<(Instant, Transmit)>,
    /// How many datagrams were lost, and overtaken.
    pub(super) injected: (u64, u64),
}

impl Trouble {
    pub(super) fn of(plan: &LoadPlan) -> Self {
        Self {
            loss: plan.loss,
            reordering: plan.reordering,
            state: RandomState::new().hash_one("trouble"),
            held: None,
            injected: (0, 0),
        }
    }

    /// Whether a datagram is lost; counts it then.
    pub(super) fn loses(&mut self) -> bool {
        let lost = self.loss > 0.0 && self.strikes(self.loss);
        self.injected.0 += u64::from(lost);
        lost
    }

    /// Lets a datagram leave, unless it has trouble.
    pub(super) fn pass(&mut self, now: Instant, transmit: Transmit, leaving: &mut Vec<Transmit>) {
        if self.loses() {
            return;
        }
        let held = self.held.take();
        if held.is_none() && self.reordering > 0.0 && self.strikes(self.reordering) {
            self.injected.1 += 1;
            self.held = Some((now, transmit));
            return;
        }
        leaving.push(transmit);
        leaving.extend(held.map(|(_, transmit)| transmit));
    }

    /// Lets leave what nothing has overtaken for a while.
    pub(super) fn let_go(&mut self, now: Instant, leaving: &mut Vec<Transmit>) {
        let waited = |held: &mut (Instant, Transmit)| now - held.0 >= PATIENCE;
        leaving.extend(self.held.take_if(waited).map(|(_, transmit)| transmit));
    }

    fn strikes(&mut self, share: f64) -> bool {
        // SplitMix64; 32 of its bits make a number below one.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = u32::try_from((value ^ (value >> 31)) >> 32).unwrap_or(u32::MAX);
        f64::from(part) / 4_294_967_296.0 < share
    }
}
