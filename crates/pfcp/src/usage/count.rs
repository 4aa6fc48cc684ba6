//! Usage counters, and the thresholds and quotas that they reach.

use std::time::{Duration, Instant};

use crate::ie::{
    CreateUrr, SubsequentVolumeQuota, SubsequentVolumeThreshold, VolumeQuota, VolumeThreshold,
};

/// The mapping from an [`Instant`] to the time of day.
///
/// Reports and rules express times in seconds since 1900. Code without access to a clock is told
/// the time of day once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    at: Instant,
    since_1900: Duration,
}

impl Epoch {
    /// Creates a mapping in which `since_1900` has passed since the start of 1900 at `now`.
    #[must_use]
    pub const fn new(now: Instant, since_1900: Duration) -> Self {
        Self {
            at: now,
            since_1900,
        }
    }

    /// Returns the seconds since 1900 as elements encode them. The number wraps in 2036.
    #[must_use]
    pub fn seconds(&self, at: Instant) -> u32 {
        let since = match at.checked_duration_since(self.at) {
            Some(later) => self.since_1900 + later,
            // A rule may have started before the time of day was read.
            None => self.since_1900.saturating_sub(self.at - at),
        };
        // Elements have 32 bits (TS 29.244 §8.2.52), so the number wraps like an NTP time stamp.
        u32::try_from(since.as_secs() & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// Returns the instant that is `seconds` after the start of 1900, or `None` if it is before
    /// `now`.
    #[must_use]
    pub fn instant(&self, now: Instant, seconds: u32) -> Option<Instant> {
        // Modulo 2^32, so that times across the wrap in 2036 keep their order.
        let ahead = seconds.wrapping_sub(self.seconds(now));
        let passed = now.saturating_duration_since(self.at) + self.since_1900;
        // `seconds(now)` is rounded down. Without its fraction the instant would be late by as
        // much.
        let fraction = Duration::from_nanos(passed.subsec_nanos().into());
        // `None` for the current second, unless it begins just now: its start is over.
        let after = Duration::from_secs(ahead.into()).checked_sub(fraction)?;
        // A time more than half of the number range ahead is in the past.
        (ahead < 1 << 31).then(|| now + after)
    }
}

/// Bytes and packets in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) uplink: u64,
    pub(super) downlink: u64,
    pub(super) uplink_packets: u64,
    pub(super) downlink_packets: u64,
}

impl Volume {
    pub(super) const fn total(self) -> u64 {
        self.uplink.saturating_add(self.downlink)
    }
}

/// Volumes, time and events counted since the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) volume: Volume,
    pub(super) time: Duration,
    pub(super) events: u64,
}

impl Counts {
    pub(super) fn add(&mut self, volume: Volume, events: u64) {
        let sum = &mut self.volume;
        for (count, more) in [
            (&mut sum.uplink, volume.uplink),
            (&mut sum.downlink, volume.downlink),
            (&mut sum.uplink_packets, volume.uplink_packets),
            (&mut sum.downlink_packets, volume.downlink_packets),
            (&mut self.events, events),
        ] {
            // The numbers come from a data path that is not under control here, and must not wrap a
            // counter.
            *count = count.saturating_add(more);
        }
    }
}

/// A limit on bytes: in total and in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VolumeLimit {
    total: Option<u64>,
    uplink: Option<u64>,
    downlink: Option<u64>,
}

impl VolumeLimit {
    fn reached(self, volume: Volume) -> bool {
        // Each volume that is given is a limit of its own (§8.2.13, §8.2.50). A quota is exhausted
        // when it is reached, and not only when it is exceeded, hence `>=`.
        let over = |limit: Option<u64>, count| limit.is_some_and(|limit| count >= limit);
        over(self.total, volume.total())
            || over(self.uplink, volume.uplink)
            || over(self.downlink, volume.downlink)
    }
}

macro_rules! volume_limits {
    ($($name:ident)*) => { $(
        impl From<&$name> for VolumeLimit {
            fn from(value: &$name) -> Self {
                Self {
                    total: value.total_volume,
                    uplink: value.uplink_volume,
                    downlink: value.downlink_volume,
                }
            }
        }
    )* };
}

volume_limits! { VolumeThreshold VolumeQuota SubsequentVolumeThreshold SubsequentVolumeQuota }

/// Limits of all three kinds: the thresholds of a rule, or its quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UrrLimits {
    pub(super) volume: Option<VolumeLimit>,
    pub(super) time: Option<Duration>,
    pub(super) events: Option<u64>,
}

impl UrrLimits {
    pub(super) fn thresholds(urr: &CreateUrr) -> Self {
        // Volume, Time and Event Threshold: §8.2.13, §8.2.14, §8.2.113.
        let thresholds = Self {
            volume: urr.volume_threshold.as_ref().map(VolumeLimit::from),
            time: urr.time_threshold.map(|time| seconds(time.0)),
            events: urr.event_threshold.map(|events| events.0.into()),
        };
        thresholds.without_zeros()
    }

    /// Turns thresholds of zero off: each packet would reach them, and make a report. A zero among
    /// later thresholds replaces the previous one, so it becomes a value that is never reached.
    pub(super) fn without_zeros(self) -> Self {
        let never = |limit: u64| if limit == 0 { u64::MAX } else { limit };
        Self {
            volume: self.volume.map(|volume| VolumeLimit {
                total: volume.total.map(never),
                uplink: volume.uplink.map(never),
                downlink: volume.downlink.map(never),
            }),
            time: self.time.map(|time| match time.is_zero() {
                true => seconds(u32::MAX),
                false => time,
            }),
            events: self.events.map(never),
        }
    }

    pub(super) fn quotas(urr: &CreateUrr) -> Self {
        // Volume, Time and Event Quota: §8.2.50, §8.2.51, §8.2.112.
        Self {
            volume: urr.volume_quota.as_ref().map(VolumeLimit::from),
            time: urr.time_quota.map(|time| seconds(time.0)),
            events: urr.event_quota.map(|events| events.0.into()),
        }
    }

    /// Returns `true` if there is no limit.
    pub(super) const fn is_empty(&self) -> bool {
        self.volume.is_none() && self.time.is_none() && self.events.is_none()
    }

    pub(super) fn volume_reached(&self, counts: &Counts) -> bool {
        self.volume
            .is_some_and(|limit| limit.reached(counts.volume))
    }

    pub(super) fn time_reached(&self, counts: &Counts) -> bool {
        self.time.is_some_and(|limit| counts.time >= limit)
    }

    pub(super) fn events_reached(&self, counts: &Counts) -> bool {
        self.events.is_some_and(|limit| counts.events >= limit)
    }

    /// Returns `true` if at least one limit is reached.
    pub(super) fn reached(&self, counts: &Counts) -> bool {
        self.volume_reached(counts) || self.time_reached(counts) || self.events_reached(counts)
    }
}

pub(super) fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}
