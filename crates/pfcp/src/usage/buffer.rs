//! Packets to a user who cannot be reached, and what the control plane is told of them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use litemap::LiteMap;

use super::Traffic;
use super::path::{Action, Paths};
use crate::ie::{
    ApplyAction, BarId, DataStatus, DlBufferingDuration, DownlinkDataReport,
    DownlinkDataServiceInformation, PdrId, TimerUnit, UpdateBarReportResponse,
};

/// The packets that wait in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Buffers {
    /// What waits, by detection rule.
    waiting: LiteMap<u16, Traffic>,
    /// Where the telling stands, by forwarding rule.
    told: LiteMap<u32, Telling>,
    /// What is to be told, with the next report.
    news: LiteMap<u16, News>,
    /// What a response said of a buffering rule.
    said: LiteMap<u8, Said>,
}

/// What the control plane knows of the packets of a forwarding rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Telling {
    /// That packets wait is told then.
    at: Option<Instant>,
    waits: bool,
    status_waits: bool,
    status_dropped: bool,
}

/// What is told about the packets of a detection rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct News {
    status: Option<DataStatus>,
    qfi: Option<u8>,
}

/// The wishes of the control plane after it was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    /// Until when packets are kept without telling again.
    until: Option<Instant>,
    /// How many packets are kept.
    packets: Option<u64>,
}

/// What became of a packet that was to be buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Yes,
    /// There was no room for it.
    No,
}

impl Buffers {
    /// Keeps traffic of a detection rule, if there is room for it.
    pub(super) fn keep(
        &mut self,
        at: Instant,
        paths: &Paths,
        traffic: Traffic,
        room: u64,
    ) -> Option<Kept> {
        let path = paths.pdrs.get(&traffic.pdr.0)?;
        let far = path.far?;
        let action = paths.action(path);
        let said = action.bar.and_then(|bar| self.said.get(&bar));
        let suggested = action
            .bar
            .and_then(|bar| paths.bars.get(&bar)?.suggested_buffering_packets_count);
        let room = said
            .and_then(|said| said.packets)
            .or_else(|| suggested.map(|count| count.0.into()))
            .map_or(room, |wish| wish.min(room));
        let here: u64 = self
            .waiting
            .iter()
            .filter(|(pdr, _)| paths.pdrs.get(pdr).is_some_and(|one| one.far == Some(far)))
            .map(|(_, waiting)| waiting.packets)
            .sum();
        let telling = self.told.entry(far).or_default();
        let news = News {
            status: None,
            qfi: path.qfi,
        };
        if here.saturating_add(traffic.packets) > room {
            if action.does(ApplyAction::DDPN)
                && !std::mem::replace(&mut telling.status_dropped, true)
            {
                let status = Some(DataStatus::DROP);
                self.news.insert(traffic.pdr.0, News { status, ..news });
            }
            return Some(Kept::No);
        }
        if action.does(ApplyAction::NOCP) && !std::mem::replace(&mut telling.waits, true) {
            let delay = action
                .bar
                .and_then(|bar| paths.bars.get(&bar)?.downlink_data_notification_delay)
                .map_or(Duration::ZERO, |delay| DELAY * delay.0.into());
            telling.at = Some(at + delay);
        }
        if action.does(ApplyAction::BDPN) && !std::mem::replace(&mut telling.status_waits, true) {
            let status = Some(DataStatus::BUFF);
            self.news.insert(traffic.pdr.0, News { status, ..news });
        }
        self.waiting
            .entry(traffic.pdr.0)
            .and_modify(|waiting| waiting.join(traffic))
            .or_insert(traffic);
        Some(Kept::Yes)
    }

    /// Tells what is due, and drops what was kept for long enough.
    pub(super) fn due(&mut self, now: Instant, paths: &Paths) -> Vec<Traffic> {
        let mut due = BTreeSet::new();
        for (far, telling) in &mut self.told {
            if telling.at.is_some_and(|at| at <= now) {
                telling.at = None;
                due.insert(*far);
            }
        }
        for &pdr in self.waiting.keys() {
            let Some(path) = paths.pdrs.get(&pdr) else {
                continue;
            };
            if path.far.is_some_and(|far| due.contains(&far)) {
                let qfi = path.qfi;
                self.news.entry(pdr).or_insert(News { status: None, qfi });
            }
        }
        let over = |(_, said): &(&u8, &mut Said)| said.until.is_some_and(|until| until <= now);
        let ended: Vec<u8> = self
            .said
            .iter_mut()
            .filter(over)
            .map(|(bar, said)| {
                said.until = None;
                *bar
            })
            .collect();
        let mut dropped = Vec::new();
        for (far, action) in &paths.fars {
            if action.bar.is_some_and(|bar| ended.contains(&bar)) {
                dropped.extend(self.take(paths, *far));
            }
        }
        dropped
    }

    /// Returns when something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let tellings = self.told.values().filter_map(|telling| telling.at);
        let ends = self.said.values().filter_map(|said| said.until);
        tellings.chain(ends).min()
    }

    /// Takes what waits for a forwarding rule; the next packet is news again.
    pub(super) fn take(&mut self, paths: &Paths, far: u32) -> Vec<Traffic> {
        self.told.remove(&far);
        let mut taken = Vec::new();
        self.waiting.retain(|pdr, traffic| {
            let path = paths.pdrs.get(pdr);
            let goes = path.is_some_and(|path| path.far == Some(far));
            taken.extend(goes.then_some(*traffic));
            !goes
        });
        if !taken.is_empty() {
            let of_taken = |pdr: &u16| taken.binary_search_by_key(pdr, |one| one.pdr.0).is_ok();
            self.news.retain(|pdr, _| !of_taken(pdr));
        }
        taken
    }

    /// Takes what waits for rules that do not let it wait any more.
    pub(super) fn released(&mut self, before: &Paths, after: &Paths) -> Vec<Traffic> {
        let mut released = Vec::new();
        for (far, action) in &before.fars {
            let waits = |action: &Action| action.does(ApplyAction::BUFF);
            let now = after.fars.get(far);
            if waits(action) && now != Some(action) {
                let stays = now.is_some_and(waits);
                let taken = self.take(before, *far);
                if stays {
                    for traffic in taken {
                        self.waiting.insert(traffic.pdr.0, traffic);
                    }
                } else {
                    released.extend(taken);
                }
            }
        }
        self.said.retain(|bar, _| after.bars.contains_key(bar));
        released
    }

    /// Forgets everything that waits, and returns it.
    pub(super) fn empty(&mut self) -> Vec<Traffic> {
        self.told.clear();
        self.news.clear();
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.map(|(_, traffic)| traffic).collect()
    }

    /// Notes what the control plane wishes after it was told.
    pub(super) fn wish(&mut self, now: Instant, update: &UpdateBarReportResponse) {
        let BarId(bar) = update.bar_id;
        let said = self.said.entry(bar).or_default();
        if let Some(lasts) = &update.dl_buffering_duration {
            // For ever is as long as nobody says otherwise.
            said.until = duration(lasts).map(|lasts| now + lasts);
        }
        let count = update.dl_buffering_suggested_packet_count.as_ref();
        // One octet or two.
        let number = |octets: &[u8]| octets.iter().fold(0, |sum, one| sum << 8 | u64::from(*one));
        let suggested = update.suggested_buffering_packets_count;
        let packets = count.map(|count| number(&count.0));
        said.packets = packets
            .or_else(|| suggested.map(|count| count.0.into()))
            .or(said.packets);
    }

    /// Says that there is something to tell.
    pub(super) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Takes the report of what is new: of one status, so that a second one may follow.
    pub(super) fn report(&mut self) -> Option<DownlinkDataReport> {
        let News { status, qfi } = *self.news.values().next()?;
        let fits = |news: &News| news.status == status && news.qfi == qfi;
        let pdrs: Vec<u16> = self
            .news
            .iter()
            .filter(|(_, news)| fits(news))
            .map(|(pdr, _)| *pdr)
            .collect();
        self.news.retain(|_, news| !fits(news));
        let mut report = DownlinkDataReport::new().pdr_ids(pdrs.into_iter().map(PdrId));
        report.dl_data_status = status;
        if let Some(qfi) = qfi {
            let service = DownlinkDataServiceInformation {
                qfi: Some(qfi),
                ..DownlinkDataServiceInformation::default()
            };
            report.downlink_data_service_information = Some(service);
        }
        Some(report)
    }
}

/// How long packets are kept; `None` for ever.
fn duration(lasts: &DlBufferingDuration) -> Option<Duration> {
    let unit = match lasts.timer_unit {
        TimerUnit::TWO_SECONDS => 2,
        TimerUnit::TEN_MINUTES => 600,
        TimerUnit::HOUR => 3600,
        TimerUnit::TEN_HOURS => 36_000,
        TimerUnit::INFINITE => return None,
        // Other values are to be read as minutes, TS 29.244 §8.2.29.
        _ => 60,
    };
    Some(Duration::from_secs(unit * u64::from(lasts.timer_value)))
}

/// The unit of a notification delay, TS 29.244 §8.2.28.
const DELAY: Duration = Duration::from_millis(50);
