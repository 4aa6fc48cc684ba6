//! Putting IP fragments together, in bounded memory.

use std::collections::HashMap;
use std::net::IpAddr;

/// The most packets that wait for fragments at once; the oldest goes first.
const MAX_WAITING: usize = 256;
/// The longest packet that fragments can make.
const MAX_PACKET: usize = 65_535;

/// What belongs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FragmentKey {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) identification: u32,
    pub(super) protocol: u8,
}

/// The place of one fragment in its packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// In octets.
    pub(super) offset: usize,
    pub(super) more: bool,
}

/// The result of adding a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// Others are missing.
    Waiting,
    /// The packet is whole: the octets after the IP header.
    Whole(Vec<u8>),
    /// The fragment contradicts the others; all of them are given up.
    Refused,
}

#[derive(Debug, Default)]
pub(super) struct Fragments {
    waiting: HashMap<FragmentKey, Partial>,
    arrivals: u64,
    /// Packets given up because too many were waiting.
    pub(super) evicted: u64,
}

#[derive(Debug, Default)]
struct Partial {
    data: Vec<u8>,
    /// Filled ranges, sorted, with gaps between them.
    filled: Vec<(usize, usize)>,
    end: Option<usize>,
    arrival: u64,
}

impl Fragments {
    pub(super) fn add(&mut self, key: FragmentKey, place: Place, payload: &[u8]) -> Added {
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
        if !partial.add(place, payload) {
            self.waiting.remove(&key);
            return Added::Refused;
        }
        if !partial.is_whole() {
            return Added::Waiting;
        }
        self.waiting
            .remove(&key)
            .map_or(Added::Waiting, |partial| Added::Whole(partial.data))
    }
}

impl Partial {
    /// Adds a fragment, or says that it contradicts what is there.
    fn add(&mut self, place: Place, payload: &[u8]) -> bool {
        let (start, end) = (place.offset, place.offset + payload.len());
        let unaligned = place.more && !payload.len().is_multiple_of(8);
        let beyond_end = self
            .end
            .is_some_and(|last| end > last || (!place.more && end != last));
        let before_filled = !place.more && self.filled.last().is_some_and(|&(_, last)| last > end);
        if end > MAX_PACKET || unaligned || beyond_end || before_filled || payload.is_empty() {
            return false;
        }
        if self.filled.contains(&(start, end)) && self.data[start..end] == *payload {
            // The same fragment again, as captures on several interfaces show it.
            return true;
        }
        if self
            .filled
            .iter()
            .any(|&(from, to)| start < to && from < end)
        {
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
        if !place.more {
            self.end = Some(end);
        }
        true
    }

    fn fill(&mut self, start: usize, end: usize) {
        let at = self.filled.partition_point(|&(from, _)| from < start);
        self.filled.insert(at, (start, end));
        // Neighbours that touch become one, so that the list is as short as the gaps are few.
        self.filled.dedup_by(|next, kept| {
            let touching = kept.1 == next.0;
            if touching {
                kept.1 = next.1;
            }
            touching
        });
    }

    fn is_whole(&self) -> bool {
        self.end.is_some_and(|end| self.filled == [(0, end)])
    }
}
