//! What a usage reporting rule says, read once.

use std::collections::VecDeque;
use std::time::Duration;

use super::count::{Marks, Octets, seconds};
use crate::ie::{
    AdditionalMonitoringTime, CreateUrr, MeasurementInformation, MeasurementMethod,
    ReportingTriggers,
};

/// A rule as it stands in the rule set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) method: MeasurementMethod,
    pub(super) triggers: ReportingTriggers,
    pub(super) information: MeasurementInformation,
    pub(super) thresholds: Marks,
    pub(super) quotas: Marks,
    pub(super) period: Option<Duration>,
    pub(super) holding: Option<Duration>,
    pub(super) validity: Option<Duration>,
    pub(super) inactivity: Option<Duration>,
    /// How long no packet may come before that is reported.
    pub(super) idle: Option<Duration>,
    /// Dropped packets, and octets, until a report.
    pub(super) dropped: (Option<u64>, Option<u64>),
    pub(super) moments: VecDeque<Moment>,
    pub(super) links: Vec<u32>,
    pub(super) quota_far: Option<u32>,
    pub(super) reports: Option<u16>,
}

/// A time of day at which marks change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Seconds since 1900.
    pub(super) at: u32,
    pub(super) thresholds: Marks,
    pub(super) quotas: Marks,
}

impl Setting {
    pub(super) fn of(urr: &CreateUrr) -> Self {
        let dropped = urr.dropped_dl_traffic_threshold.as_ref();
        // A period of nothing would report without end.
        let period = urr
            .measurement_period
            .map(|period| seconds(period.0.max(1)));
        Self {
            method: urr.measurement_method,
            triggers: urr.reporting_triggers,
            information: urr.measurement_information.unwrap_or_default(),
            thresholds: Marks::thresholds(urr),
            quotas: Marks::quotas(urr),
            period,
            holding: urr.quota_holding_time.map(|time| seconds(time.0)),
            validity: urr.quota_validity_time.map(|time| seconds(time.0)),
            inactivity: urr.inactivity_detection_time.map(|time| seconds(time.0)),
            idle: urr.user_plane_inactivity_timer.map(|time| seconds(time.0)),
            dropped: (
                dropped.and_then(|mark| mark.downlink_packets),
                dropped.and_then(|mark| mark.downlink_octets),
            ),
            moments: moments(urr),
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

    pub(super) fn says(&self, information: MeasurementInformation) -> bool {
        self.information.contains(information)
    }
}

/// The monitoring times of a rule, the next one first.
fn moments(urr: &CreateUrr) -> VecDeque<Moment> {
    let own = urr.monitoring_time.map(|at| Moment {
        at: at.0,
        thresholds: Marks {
            volume: urr.subsequent_volume_threshold.as_deref().map(Octets::from),
            time: urr.subsequent_time_threshold.map(|time| seconds(time.0)),
            events: urr.subsequent_event_threshold.map(|count| count.0.into()),
        },
        quotas: Marks {
            volume: urr.subsequent_volume_quota.as_deref().map(Octets::from),
            time: urr.subsequent_time_quota.map(|time| seconds(time.0)),
            events: urr.subsequent_event_quota.map(|count| count.0.into()),
        },
    });
    let further = urr.additional_monitoring_times.iter().map(Moment::of);
    let mut moments: Vec<Moment> = own.into_iter().chain(further).collect();
    moments.sort_by_key(|moment| moment.at);
    moments.into()
}

impl Moment {
    fn of(group: &AdditionalMonitoringTime) -> Self {
        let volume = group.subsequent_volume_threshold.as_ref();
        Self {
            at: group.monitoring_time.0,
            thresholds: Marks {
                volume: volume.map(Octets::from),
                time: group.subsequent_time_threshold.map(|time| seconds(time.0)),
                events: group.subsequent_event_threshold.map(|count| count.0.into()),
            },
            quotas: Marks {
                volume: group.subsequent_volume_quota.as_ref().map(Octets::from),
                time: group.subsequent_time_quota.map(|time| seconds(time.0)),
                events: group.subsequent_event_quota.map(|count| count.0.into()),
            },
        }
    }
}
