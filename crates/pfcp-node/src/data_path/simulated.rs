//! Traffic of a model.

use std::time::{Duration, Instant};

use strowger_pfcp::Seid;
use strowger_pfcp::usage::{Detector, Traffic};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{DataPath, Span};

/// What passes each session, on the average.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficModel {
    /// The same seed gives each session the same traffic.
    pub seed: u64,
    /// Octets a second from the user.
    pub uplink: u64,
    /// Octets a second to the user.
    pub downlink: u64,
    /// The mean size of a packet, in octets; packets have from half to one and a half times it.
    pub packet: u32,
    /// How often a session looks what came.
    pub tick: Duration,
}

/// A [`DataPath`] that counts what a [`TrafficModel`] says.
///
/// Packets come at even intervals, with a start of its own for each session. What is less than 10
/// milliseconds apart comes together.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use strowger_pfcp::Seid;
/// use strowger_pfcp::usage::Detector;
/// use strowger_pfcp_node::{DataPath, SimulatedTraffic, Span, TrafficModel};
///
/// let start = Instant::now();
/// let model = TrafficModel {
///     seed: 1,
///     uplink: 10_000,
///     downlink: 0,
///     packet: 100,
///     tick: Duration::from_millis(100),
/// };
/// let path = SimulatedTraffic::new(start, model);
/// let detectors = [Detector { pdr: 1.into(), uplink: true }];
/// let span = Span { after: start, until: start + Duration::from_secs(10) };
/// let traffic = path.traffic(Seid(7), &detectors, span);
/// let octets: u64 = traffic.iter().map(|(_, traffic)| traffic.octets).sum();
/// assert!((90_000..110_000).contains(&octets));
/// assert_eq!(path.traffic(Seid(7), &detectors, span), traffic);
/// ```
#[derive(Clone, Debug)]
pub struct SimulatedTraffic {
    start: Instant,
    model: TrafficModel,
}

impl SimulatedTraffic {
    /// Makes the traffic of all sessions, which starts at `start`.
    #[must_use]
    pub const fn new(start: Instant, model: TrafficModel) -> Self {
        Self { start, model }
    }

    /// The time between two packets of a direction, and how many of them come together.
    fn rhythm(&self, uplink: bool) -> Option<(u128, u64)> {
        let octets = match uplink {
            true => self.model.uplink,
            false => self.model.downlink,
        };
        let packet = u128::from(self.model.packet.max(1));
        let each = (packet * SECOND).checked_div(octets.into())?.max(1);
        let together = u64::try_from((TOGETHER / each).max(1)).unwrap_or(u64::MAX);
        Some((each * u128::from(together), together))
    }

    /// A number of a session and direction, always the same.
    fn dice(&self, seid: Seid, uplink: bool, turn: u64) -> u64 {
        let mut octets = [0; 17];
        octets[..8].copy_from_slice(&seid.0.to_be_bytes());
        octets[8..16].copy_from_slice(&turn.to_be_bytes());
        octets[16] = u8::from(uplink);
        xxh3_64_with_seed(&octets, self.model.seed)
    }

    /// The number of the first turn after a time.
    fn turn_after(&self, seid: Seid, uplink: bool, after: Instant, interval: u128) -> u64 {
        let phase = u128::from(self.dice(seid, uplink, u64::MAX)) % interval;
        let passed = after.saturating_duration_since(self.start).as_nanos();
        let turn = match passed.checked_sub(phase) {
            Some(since) => since / interval + 1,
            None => 0,
        };
        u64::try_from(turn).unwrap_or(u64::MAX)
    }

    fn at(&self, seid: Seid, uplink: bool, turn: u64, interval: u128) -> Instant {
        let phase = u128::from(self.dice(seid, uplink, u64::MAX)) % interval;
        let nanos = phase + u128::from(turn) * interval;
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn one_way(
        &self,
        seid: Seid,
        detectors: &[Detector],
        span: Span,
        uplink: bool,
    ) -> Vec<(Instant, Traffic)> {
        let here: Vec<Detector> = detectors
            .iter()
            .copied()
            .filter(|one| one.uplink == uplink)
            .collect();
        let (Some((interval, packets)), false) = (self.rhythm(uplink), here.is_empty()) else {
            return Vec::new();
        };
        let mut turn = self.turn_after(seid, uplink, span.after, interval);
        let mut traffic = Vec::new();
        loop {
            let at = self.at(seid, uplink, turn, interval);
            if at > span.until {
                return traffic;
            }
            let dice = self.dice(seid, uplink, turn);
            let size = u64::from(self.model.packet.max(1));
            let octets = (size / 2 + dice % (size + 1))
                .saturating_mul(packets)
                .max(1);
            let place = usize::try_from(turn % here.len() as u64).unwrap_or_default();
            let pdr = here[place].pdr;
            traffic.push((
                at,
                Traffic {
                    pdr,
                    packets,
                    octets,
                    events: 0,
                },
            ));
            turn += 1;
        }
    }
}

impl DataPath for SimulatedTraffic {
    fn traffic(&self, seid: Seid, detectors: &[Detector], span: Span) -> Vec<(Instant, Traffic)> {
        let mut both = self.one_way(seid, detectors, span, true);
        both.extend(self.one_way(seid, detectors, span, false));
        both.sort_by_key(|(at, _)| *at);
        both
    }

    fn next(&self, seid: Seid, detectors: &[Detector], after: Instant) -> Option<Instant> {
        let first = [true, false]
            .into_iter()
            .filter(|uplink| detectors.iter().any(|one| one.uplink == *uplink))
            .filter_map(|uplink| {
                let (interval, _) = self.rhythm(uplink)?;
                let turn = self.turn_after(seid, uplink, after, interval);
                Some(self.at(seid, uplink, turn, interval))
            })
            .min()?;
        // What comes until then is counted together, each packet at its own time.
        Some(first.max(after + self.model.tick))
    }
}

const SECOND: u128 = 1_000_000_000;
/// Nanoseconds within which packets come together.
const TOGETHER: u128 = 10_000_000;
