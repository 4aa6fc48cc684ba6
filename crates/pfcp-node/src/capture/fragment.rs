//! Reassembly of IP fragments, in bounded memory.

use std::collections::HashMap;
use std::net::IpAddr;

/// The maximum number of incomplete packets; the oldest is evicted first.
const MAX_WAITING: usize = 256;
/// The maximum length of a reassembled packet.
const MAX_PACKET: usize = 65_535;

/// The fields that the fragments of a packet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FragmentKey {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) identification: u32,
    pub(super) protocol: u8,
}

/// The position of a fragment in its packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentPosition {
    /// The offset in bytes.
    pub(super) offset: usize,
    pub(super) more: bool,
}

/// The result of adding a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reassembly {
    /// Other fragments are missing.
    Waiting,
    /// The packet is complete: the bytes after the IP header.
    Complete(Vec<u8>),
    /// The fragment contradicts the others; all of them are discarded.
    Refused,
}

#[derive(Debug, Default)]
pub(super) struct Fragments {
    waiting: HashMap<FragmentKey, Partial>,
    arrivals: u64,
    /// Number of packets that were discarded because too many were incomplete.
    pub(super) evicted: u64,
}

#[derive(Debug, Default)]
struct Partial {
    data: Vec<u8>,
    /// The filled ranges, sorted and not adjacent.
    filled: Vec<(usize, usize)>,
    end: Option<usize>,
    arrival: u64,
}

impl Fragments {
    pub(super) fn add(
        &mut self,
        key: FragmentKey,
        position: FragmentPosition,
        payload: &[u8],
    ) -> Reassembly {
        if !self.waiting.contains_key(&key) && self.waiting.len() == MAX_WAITING {
            let oldest = self
                .waiting
                .iter()
                .min_by_key(|(_, partial)| partial.arrival);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.waiting.remove(&oldest);
                self.evicted += 1;
            }
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        let partial = self.waiting.entry(key).or_insert_with(|| Partial {
            arrival,
            ..Partial::default()
        });
        if !partial.add(position, payload) {
            self.waiting.remove(&key);
            return Reassembly::Refused;
        }
        if !partial.is_complete() {
            return Reassembly::Waiting;
        }
        self.waiting
            .remove(&key)
            .map_or(Reassembly::Waiting, |partial| {
                Reassembly::Complete(partial.data)
            })
    }
}

impl Partial {
    /// Adds a fragment. Returns `false` if it contradicts the existing ones.
    fn add(&mut self, position: FragmentPosition, payload: &[u8]) -> bool {
        let (start, end) = (position.offset, position.offset + payload.len());
        let unaligned = position.more && !payload.len().is_multiple_of(8);
        let beyond_end = self
            .end
            .is_some_and(|last| end > last || (!position.more && end != last));
        let before_filled =
            !position.more && self.filled.last().is_some_and(|&(_, last)| last > end);
        if end > MAX_PACKET || unaligned || beyond_end || before_filled || payload.is_empty() {
            return false;
        }
        if self.filled.contains(&(start, end)) && self.data[start..end] == *payload {
            // A duplicate, as in captures on several interfaces.
            return true;
        }
        if self
            .filled
            .iter()
            .any(|&(from, to)| start < to && from < end)
        {
            // An overlap is harmless only if the fragment repeats data that is already there.
            return self
                .filled
                .iter()
                .any(|&(from, to)| from <= start && end <= to)
                && self.data[start..end] == *payload;
        }
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        self.data[start..end].copy_from_slice(payload);
        self.fill(start, end);
        if !position.more {
            self.end = Some(end);
        }
        true
    }

    fn fill(&mut self, start: usize, end: usize) {
        let at = self.filled.partition_point(|&(from, _)| from < start);
        self.filled.insert(at, (start, end));
        // Adjacent ranges are merged, so that the list is no longer than the number of gaps
        // requires.
        self.filled.dedup_by(|next, kept| {
            let touching = kept.1 == next.0;
            if touching {
                kept.1 = next.1;
            }
            touching
        });
    }

    fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.filled == [(0, end)])
    }
}
