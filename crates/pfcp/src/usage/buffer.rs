//! Packets buffered for a UE that cannot be reached, and the notifications about them, TS 29.244
//! §5.2.4.
//!
//! Data: packets, notifications and pending reports by PDR, because a report names the PDR of the
//! packets that arrived (Table 7.5.8.2-1); instructions by BAR.
//!
//! States of a PDR: nothing buffered; buffered, with a notification that is made or that the delay
//! of its BAR puts off. Taking its packets ends all of them, so that the next packet notifies
//! again.
//!
//! Invariants: the packets of a session do not exceed `UsageLimits::buffer` when they are buffered,
//! nor those of all FARs with a BAR the peer's limit for that BAR (§5.2.4.1); and each of the three
//! notifications is made once for a PDR until its packets are taken.
//!
//! Cost: linear in the PDRs of the session for each burst that is buffered.

use std::time::{Duration, Instant};

use litemap::LiteMap;

use super::PacketBurst;
use super::path::SessionForwarding;
use crate::ie::{
    ApplyAction, BarId, DataStatus, DlBufferingDuration, DownlinkDataReport,
    DownlinkDataServiceInformation, PdrId, TimerUnit, UpdateBarReportResponse,
};

/// The buffered packets of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Buffers {
    /// The buffered packets, by PDR.
    buffered: LiteMap<u16, PacketBurst>,
    /// The state of the notifications, by PDR.
    notifications: LiteMap<u16, NotificationState>,
    /// The contents of the next downlink data reports, by PDR.
    pending: LiteMap<u16, PendingReport>,
    /// The instructions in the responses of the control plane, by BAR.
    instructions: LiteMap<u8, BarInstructions>,
}

/// The state of the notifications about the packets of a PDR.
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
    /// Maximum number of packets while the buffering is extended (§8.2.30).
    extended: Option<u64>,
    /// Maximum number of packets until another one is given (§8.2.100).
    suggested: Option<u64>,
}

/// The outcome of an attempt to buffer packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferOutcome {
    Buffered,
    /// There was no room for the packets.
    Full,
}

impl Buffers {
    /// Buffers the traffic of a PDR if the session has room for it.
    pub(super) fn buffer(
        &mut self,
        at: Instant,
        paths: &SessionForwarding,
        traffic: PacketBurst,
        room: u64,
    ) -> Option<BufferOutcome> {
        let path = paths.pdrs.get(&traffic.pdr.0)?;
        let action = paths.action(path);
        let with_bar = |pdr: &u16| {
            let path = paths.pdrs.get(pdr);
            path.is_some_and(|path| paths.action(path).bar == action.bar)
        };
        let (mut of_session, mut of_bar) = (traffic.packets, traffic.packets);
        for (pdr, buffered) in &self.buffered {
            of_session = of_session.saturating_add(buffered.packets);
            if with_bar(pdr) {
                of_bar = of_bar.saturating_add(buffered.packets);
            }
        }
        let allowed = action.bar.and_then(|bar| self.allowed(bar, paths));
        let is_full = of_session > room || allowed.is_some_and(|allowed| of_bar > allowed);
        let notification = self.notifications.entry(traffic.pdr.0).or_default();
        let pending = PendingReport {
            status: None,
            qfi: path.qfi,
        };
        if is_full {
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

    /// Returns the peer's limit on the packets of all FARs with a BAR: the newest one counts, from
    /// the answer to a report (Table 7.5.9.2-1) or from the BAR (Table 7.5.2.6-1).
    fn allowed(&self, bar: u8, paths: &SessionForwarding) -> Option<u64> {
        let given = self.instructions.get(&bar).copied().unwrap_or_default();
        let of_bar = || paths.bars.get(&bar)?.suggested_buffering_packets_count;
        given
            .extended
            .or(given.suggested)
            .or_else(|| of_bar().map(|count| count.0.into()))
    }

    /// Prepares the reports that are due, and returns the packets whose buffering time is over.
    pub(super) fn due(&mut self, now: Instant, paths: &SessionForwarding) -> Vec<PacketBurst> {
        for (pdr, notification) in &mut self.notifications {
            if notification.at.is_some_and(|at| at <= now) {
                notification.at = None;
                let qfi = paths.pdrs.get(pdr).and_then(|path| path.qfi);
                self.pending
                    .entry(*pdr)
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
                instructions.end_extension();
                *bar
            })
            .collect();
        self.take(|pdr| {
            let path = paths.pdrs.get(&pdr);
            path.and_then(|path| paths.action(path).bar)
                .is_some_and(|bar| ended.contains(&bar))
        })
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

    /// Takes the packets of the PDRs that `wanted` selects. The next packet is reported again.
    fn take(&mut self, wanted: impl Fn(u16) -> bool) -> Vec<PacketBurst> {
        self.notifications.retain(|pdr, _| !wanted(*pdr));
        // A report about packets that are gone would page the UE for nothing.
        self.pending
            .retain(|pdr, _| !(wanted(*pdr) && self.buffered.contains_key(pdr)));
        let mut taken = Vec::new();
        self.buffered.retain(|pdr, traffic| {
            let goes = wanted(*pdr);
            taken.extend(goes.then_some(*traffic));
            !goes
        });
        taken
    }

    /// Takes the packets of PDRs that no longer buffer.
    pub(super) fn released(
        &mut self,
        before: &SessionForwarding,
        after: &SessionForwarding,
    ) -> Vec<PacketBurst> {
        // Any change of the action is a new instruction, so the notifications start again even if
        // the FAR, or another one that the PDR names now, still buffers.
        let action = |paths: &SessionForwarding, pdr: u16| {
            let path = paths.pdrs.get(&pdr);
            path.map(|path| paths.action(path))
        };
        let taken = self.take(|pdr| action(before, pdr) != action(after, pdr));
        let mut released = Vec::new();
        for traffic in taken {
            let now = action(after, traffic.pdr.0);
            if now.is_some_and(|action| action.has_action(ApplyAction::BUFF)) {
                self.buffered.insert(traffic.pdr.0, traffic);
            } else {
                released.push(traffic);
            }
        }
        self.instructions
            // A BAR that is created later under the same ID must not inherit instructions.
            .retain(|bar, _| after.bars.contains_key(bar));
        for (bar, instructions) in &mut self.instructions {
            let buffers = after
                .fars
                .values()
                .any(|action| action.bar == Some(*bar) && action.has_action(ApplyAction::BUFF));
            // Or the duration would drop the packets of a later idle period.
            if !buffers {
                instructions.end_extension();
            }
        }
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
            // Without an end, it lasts until the control plane changes it.
            instructions.until = duration(lasts).map(|lasts| now + lasts);
        }
        // The value has one or two bytes.
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, one| sum << 8 | u64::from(*one));
        // An answer without a count leaves the earlier one in force.
        if let Some(count) = &update.dl_buffering_suggested_packet_count {
            instructions.extended = Some(number(&count.0));
        }
        if let Some(count) = update.suggested_buffering_packets_count {
            instructions.suggested = Some(count.0.into());
        }
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

impl BarInstructions {
    /// Ends the extended buffering, and with it the duration and the count for it (§5.2.4.2).
    const fn end_extension(&mut self) {
        self.until = None;
        self.extended = None;
    }
}

/// Returns the time for which packets are buffered, or `None` for a time without end.
fn duration(lasts: &DlBufferingDuration) -> Option<Duration> {
    let unit = match lasts.timer_unit {
        // Unit and value 0 stop the timer (§8.2.29), which is not the same as its expiry.
        TimerUnit::TWO_SECONDS if lasts.timer_value == 0 => return None,
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
