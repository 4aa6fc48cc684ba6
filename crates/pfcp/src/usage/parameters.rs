//! The parameters of a usage reporting rule, decoded once.

use std::collections::VecDeque;
use std::time::Duration;

use super::count::{UrrLimits, VolumeLimit, seconds};
use crate::ie::{
    AdditionalMonitoringTime, CreateUrr, MeasurementInformation, MeasurementMethod,
    ReportingTriggers,
};

/// The parameters of a rule as provisioned in the rule set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UrrParameters {
    pub(super) method: MeasurementMethod,
    pub(super) triggers: ReportingTriggers,
    pub(super) information: MeasurementInformation,
    pub(super) thresholds: UrrLimits,
    pub(super) quotas: UrrLimits,
    pub(super) period: Option<Duration>,
    pub(super) holding: Option<Duration>,
    pub(super) validity: Option<Duration>,
    pub(super) inactivity: Option<Duration>,
    /// The time without packets after which inactivity is reported.
    pub(super) idle: Option<Duration>,
    /// The numbers of dropped packets and bytes that trigger a report.
    pub(super) dropped: (Option<u64>, Option<u64>),
    pub(super) monitoring_points: VecDeque<MonitoringPoint>,
    pub(super) links: Vec<u32>,
    pub(super) quota_far: Option<u32>,
    pub(super) reports: Option<u16>,
}

/// A monitoring time, at which thresholds and quotas change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MonitoringPoint {
    /// Seconds since 1900.
    pub(super) at: u32,
    pub(super) thresholds: UrrLimits,
    pub(super) quotas: UrrLimits,
}

impl UrrParameters {
    pub(super) fn of(urr: &CreateUrr) -> Self {
        let dropped = urr.dropped_dl_traffic_threshold.as_ref();
        // A period of zero would create reports endlessly.
        let period = urr
            .measurement_period
            .map(|period| seconds(period.0.max(1)));
        Self {
            method: urr.measurement_method,
            triggers: urr.reporting_triggers,
            information: urr.measurement_information.unwrap_or_default(),
            thresholds: UrrLimits::thresholds(urr),
            quotas: UrrLimits::quotas(urr),
            period,
            // TS 29.244 §8.2.48, §8.2.132 and §8.2.18.
            holding: urr.quota_holding_time.map(|time| seconds(time.0)),
            validity: urr.quota_validity_time.map(|time| seconds(time.0)),
            // Times and thresholds of zero are off: they would make reports for each packet.
            inactivity: urr
                .inactivity_detection_time
                .and_then(|time| nonzero(time.0)),
            // The traffic of this rule (UPINT, §8.2.83), and not that of the session.
            idle: urr
                .user_plane_inactivity_timer
                .and_then(|time| nonzero(time.0)),
            dropped: (
                // Either number triggers, if both are given (§8.2.49).
                dropped
                    .and_then(|threshold| threshold.downlink_packets)
                    .filter(|&count| count > 0),
                dropped
                    .and_then(|threshold| threshold.downlink_octets)
                    .filter(|&count| count > 0),
            ),
            monitoring_points: monitoring_points(urr),
            // A report of a linked rule triggers one of this rule, and not the other way round
            // (§8.2.55).
            links: urr.linked_urr_ids.iter().map(|link| link.0).collect(),
            quota_far: urr.far_id_for_quota_action.map(|far| far.0),
            reports: urr.number_of_reports.map(|number| number.0),
        }
    }

    pub(super) fn measures(&self, method: MeasurementMethod) -> bool {
        self.method.contains(method)
    }

    pub(super) fn wants(&self, trigger: ReportingTriggers) -> bool {
        self.triggers.contains(trigger)
    }

    pub(super) fn has(&self, information: MeasurementInformation) -> bool {
        self.information.contains(information)
    }
}

fn nonzero(time: u32) -> Option<Duration> {
    (time > 0).then(|| seconds(time))
}

/// Returns the monitoring times of a rule, earliest first.
fn monitoring_points(urr: &CreateUrr) -> VecDeque<MonitoringPoint> {
    // The first monitoring time and its subsequent limits are members of the rule; each further one
    // is a group (Tables 7.5.2.4-1 and 7.5.2.4-3).
    let own = urr.monitoring_time.map(|at| MonitoringPoint {
        at: at.0,
        thresholds: UrrLimits {
            volume: urr
                .subsequent_volume_threshold
                .as_deref()
                .map(VolumeLimit::from),
            time: urr.subsequent_time_threshold.map(|time| seconds(time.0)),
            events: urr.subsequent_event_threshold.map(|count| count.0.into()),
        }
        .without_zeros(),
        quotas: UrrLimits {
            volume: urr
                .subsequent_volume_quota
                .as_deref()
                .map(VolumeLimit::from),
            time: urr.subsequent_time_quota.map(|time| seconds(time.0)),
            events: urr.subsequent_event_quota.map(|count| count.0.into()),
        },
    });
    let further = urr
        .additional_monitoring_times
        .iter()
        .map(MonitoringPoint::of);
    let mut monitoring_points: Vec<MonitoringPoint> = own.into_iter().chain(further).collect();
    // The peer may list them in any order. `UrrState` passes them from the front.
    monitoring_points.sort_by_key(|moment| moment.at);
    monitoring_points.into()
}

impl MonitoringPoint {
    fn of(group: &AdditionalMonitoringTime) -> Self {
        let volume = group.subsequent_volume_threshold.as_ref();
        Self {
            at: group.monitoring_time.0,
            thresholds: UrrLimits {
                volume: volume.map(VolumeLimit::from),
                time: group.subsequent_time_threshold.map(|time| seconds(time.0)),
                events: group.subsequent_event_threshold.map(|count| count.0.into()),
            }
            .without_zeros(),
            quotas: UrrLimits {
                volume: group
                    .subsequent_volume_quota
                    .as_ref()
                    .map(VolumeLimit::from),
                time: group.subsequent_time_quota.map(|time| seconds(time.0)),
                events: group.subsequent_event_quota.map(|count| count.0.into()),
            },
        }
    }
}
