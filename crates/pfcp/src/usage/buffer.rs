//! Packets buffered for a UE that cannot be reached, and the notifications about them, TS 29.244
//! §5.2.4.
//!
//! Data: packets by PDR, as sums; notifications by FAR, because its action asks for them (§8.2.26);
//! pending reports by PDR; instructions by BAR.
//!
//! States of a FAR: nothing buffered; buffered, with a notification that is made or that the delay
//! of its BAR puts off. Taking the packets of a FAR ends all of them, so that the next packet
//! notifies again.
//!
//! Invariants: the packets of a FAR do not exceed its limit at the time when they are buffered,
//! which is the smaller one of the peer's and `UsageLimits::buffer`; and each of the three
//! notifications is made once until the packets are taken.
//!
//! Cost: linear in the PDRs of the session for each burst that is buffered.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use litemap::LiteMap;

use super::PacketBurst;
use super::path::{FarAction, SessionForwarding};
use crate::ie::{
    ApplyAction, BarId, DataStatus, DlBufferingDuration, DownlinkDataReport,
    DownlinkDataServiceInformation, PdrId, TimerUnit, UpdateBarReportResponse,
};

/// The buffered packets of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Buffers {
    /// The buffered packets, by PDR.
    buffered: LiteMap<u16, PacketBurst>,
    /// The state of the notifications, by FAR.
    notifications: LiteMap<u32, NotificationState>,
    /// The contents of the next downlink data reports, by PDR.
    pending: LiteMap<u16, PendingReport>,
    /// The instructions in the responses of the control plane, by BAR.
    instructions: LiteMap<u8, BarInstructions>,
}

/// The state of the notifications about the packets of a FAR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NotificationState {
    /// The time at which the arrival of packets is reported.
    at: Option<Instant>,
    arrival_reported: bool,
    buffering_reported: bool,
    drop_reported: bool,
}

/// The contents of a report about the packets of a PDR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PendingReport {
    status: Option<DataStatus>,
    qfi: Option<u8>,
}

/// The instructions of the control plane in response to a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BarInstructions {
    /// The time until which packets are buffered without another report.
    until: Option<Instant>,
    /// Maximum number of buffered packets.
    packets: Option<u64>,
}

/// The outcome of an attempt to buffer packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferOutcome {
    Buffered,
    /// There was no room for the packets.
    Full,
}

impl Buffers {
    /// Buffers the traffic of a PDR if there is room for it.
    pub(super) fn buffer(
        &mut self,
        at: Instant,
        paths: &SessionForwarding,
        traffic: PacketBurst,
        room: u64,
    ) -> Option<BufferOutcome> {
        let path = paths.pdrs.get(&traffic.pdr.0)?;
        let far = path.far?;
        let action = paths.action(path);
        let instructions = action.bar.and_then(|bar| self.instructions.get(&bar));
        let suggested = action
            .bar
            .and_then(|bar| paths.bars.get(&bar)?.suggested_buffering_packets_count);
        // The newest limit counts: the answer to a report (§7.5.9.2), then the BAR (§7.5.2.6).
        // Neither raises the limit of this node.
        let room = instructions
            .and_then(|instructions| instructions.packets)
            .or_else(|| suggested.map(|count| count.0.into()))
            .map_or(room, |limit| limit.min(room));
        // Several PDRs may share a FAR, and the limit is that of the FAR.
        let here: u64 = self
            .buffered
            .iter()
            .filter(|(pdr, _)| paths.pdrs.get(pdr).is_some_and(|one| one.far == Some(far)))
            .map(|(_, buffered)| buffered.packets)
            .sum();
        let notification = self.notifications.entry(far).or_default();
        let pending = PendingReport {
            status: None,
            qfi: path.qfi,
        };
        if here.saturating_add(traffic.packets) > room {
            // DDPN asks for a report about discarded packets (§8.2.26).
            if action.has_action(ApplyAction::DDPN)
                && !std::mem::replace(&mut notification.drop_reported, true)
            {
                let status = Some(DataStatus::DROP);
                self.pending
                    .insert(traffic.pdr.0, PendingReport { status, ..pending });
            }
            return Some(BufferOutcome::Full);
        }
        // NOCP asks for a report when the first packet arrives (§8.2.26), after the delay of the
        // BAR (§8.2.28).
        if action.has_action(ApplyAction::NOCP)
            && !std::mem::replace(&mut notification.arrival_reported, true)
        {
            let delay = action
                .bar
                .and_then(|bar| paths.bars.get(&bar)?.downlink_data_notification_delay)
                .map_or(Duration::ZERO, |delay| DELAY * delay.0.into());
            notification.at = Some(at + delay);
        }
        // BDPN asks for a report about buffered packets (§8.2.26), which no delay puts off.
        if action.has_action(ApplyAction::BDPN)
            && !std::mem::replace(&mut notification.buffering_reported, true)
        {
            let status = Some(DataStatus::BUFF);
            self.pending
                .insert(traffic.pdr.0, PendingReport { status, ..pending });
        }
        self.buffered
            .entry(traffic.pdr.0)
            .and_modify(|buffered| buffered.join(traffic))
            .or_insert(traffic);
        Some(BufferOutcome::Buffered)
    }

    /// Prepares the reports that are due, and returns the packets whose buffering time is over.
    pub(super) fn due(&mut self, now: Instant, paths: &SessionForwarding) -> Vec<PacketBurst> {
        let mut due = BTreeSet::new();
        for (far, notification) in &mut self.notifications {
            if notification.at.is_some_and(|at| at <= now) {
                notification.at = None;
                due.insert(*far);
            }
        }
        for &pdr in self.buffered.keys() {
            let Some(path) = paths.pdrs.get(&pdr) else {
                continue;
            };
            if path.far.is_some_and(|far| due.contains(&far)) {
                let qfi = path.qfi;
                self.pending
                    .entry(pdr)
                    // A report with a status says more, and is not replaced.
                    .or_insert(PendingReport { status: None, qfi });
            }
        }
        let over = |(_, instructions): &(&u8, &mut BarInstructions)| {
            instructions.until.is_some_and(|until| until <= now)
        };
        let ended: Vec<u8> = self
            .instructions
            .iter_mut()
            .filter(over)
            .map(|(bar, instructions)| {
                // Only the duration is over (§8.2.29); the number of packets stays in force.
                instructions.until = None;
                *bar
            })
            .collect();
        let mut dropped = Vec::new();
        // Several FARs may name one BAR.
        for (far, action) in &paths.fars {
            if action.bar.is_some_and(|bar| ended.contains(&bar)) {
                dropped.extend(self.take(paths, *far));
            }
        }
        dropped
    }

    /// Returns the time at which something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let due = self
            .notifications
            .values()
            .filter_map(|notification| notification.at);
        let ends = self
            .instructions
            .values()
            .filter_map(|instructions| instructions.until);
        due.chain(ends).min()
    }

    /// Takes the packets that are buffered for a FAR. The next packet is reported again.
    pub(super) fn take(&mut self, paths: &SessionForwarding, far: u32) -> Vec<PacketBurst> {
        self.notifications.remove(&far);
        let mut taken = Vec::new();
        self.buffered.retain(|pdr, traffic| {
            let path = paths.pdrs.get(pdr);
            let goes = path.is_some_and(|path| path.far == Some(far));
            taken.extend(goes.then_some(*traffic));
            !goes
        });
        // A report about packets that are gone would page the UE for nothing.
        if !taken.is_empty() {
            // `taken` has the order of the map, which is sorted by PDR.
            let of_taken = |pdr: &u16| taken.binary_search_by_key(pdr, |one| one.pdr.0).is_ok();
            self.pending.retain(|pdr, _| !of_taken(pdr));
        }
        taken
    }

    /// Takes the packets of FARs that no longer buffer.
    pub(super) fn released(
        &mut self,
        before: &SessionForwarding,
        after: &SessionForwarding,
    ) -> Vec<PacketBurst> {
        let mut released = Vec::new();
        for (far, action) in &before.fars {
            let waits = |action: &FarAction| action.has_action(ApplyAction::BUFF);
            let now = after.fars.get(far);
            // Any change of the action is a new instruction, so the notifications start again even
            // if the FAR still buffers.
            if waits(action) && now != Some(action) {
                let stays = now.is_some_and(waits);
                let taken = self.take(before, *far);
                if stays {
                    for traffic in taken {
                        // `take` has reset the notifications; the packets stay.
                        self.buffered.insert(traffic.pdr.0, traffic);
                    }
                } else {
                    released.extend(taken);
                }
            }
        }
        self.instructions
            // A BAR that is created later under the same ID must not inherit instructions.
            .retain(|bar, _| after.bars.contains_key(bar));
        released
    }

    /// Takes all buffered packets.
    pub(super) fn empty(&mut self) -> Vec<PacketBurst> {
        self.notifications.clear();
        self.pending.clear();
        let buffered = std::mem::take(&mut self.buffered).into_iter();
        buffered.map(|(_, traffic)| traffic).collect()
    }

    /// Records the instructions of the control plane in response to a report.
    pub(super) fn instruct(&mut self, now: Instant, update: &UpdateBarReportResponse) {
        let BarId(bar) = update.bar_id;
        let instructions = self.instructions.entry(bar).or_default();
        if let Some(lasts) = &update.dl_buffering_duration {
            // An infinite duration lasts until the control plane changes it.
            instructions.until = duration(lasts).map(|lasts| now + lasts);
        }
        let count = update.dl_buffering_suggested_packet_count.as_ref();
        // The value has one or two bytes.
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, one| sum << 8 | u64::from(*one));
        let suggested = update.suggested_buffering_packets_count;
        let packets = count.map(|count| number(&count.0));
        instructions.packets = packets
            .or_else(|| suggested.map(|count| count.0.into()))
            // An answer without a count leaves the earlier one in force.
            .or(instructions.packets);
    }

    /// Returns `true` if a report is waiting.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes the next report. A report covers one status and QFI, so another one may follow.
    pub(super) fn report(&mut self) -> Option<DownlinkDataReport> {
        // A Downlink Data Report has one status and one QFI for all its PDRs (Table 7.5.8.2-1).
        let PendingReport { status, qfi } = *self.pending.values().next()?;
        let fits = |pending: &PendingReport| pending.status == status && pending.qfi == qfi;
        let pdrs: Vec<u16> = self
            .pending
            .iter()
            .filter(|(_, pending)| fits(pending))
            .map(|(pdr, _)| *pdr)
            .collect();
        self.pending.retain(|_, pending| !fits(pending));
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

/// Returns the time for which packets are buffered, or `None` for an infinite time.
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
