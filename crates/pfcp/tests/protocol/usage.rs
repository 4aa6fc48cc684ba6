//! Usage reporting on virtual time: the rules of TS 29.244 §5.2.2 as claims.

mod bench;
mod buffering;
mod memory;
mod random;
mod sending;

use strowger_pfcp::ie::{
    AdditionalMonitoringTime, ApplyAction, CreateUrr, DroppedDlTrafficThreshold, LinkedUrrId,
    MeasurementInformation as Information, MeasurementMethod as Method, PfcpsmreqFlags, QueryUrr,
    ReportingTriggers as On, SubsequentVolumeThreshold, UpdateFar, UpdatePdr, UpdateUrr,
    UsageInformation, UsageReportTrigger as Made, VolumeQuota, VolumeThreshold,
};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::usage::PacketOutcome::{Dropped, Forwarded};
use strowger_pfcp::usage::{Epoch, UsageLimits, UsageMeter};

use bench::{Bench, DOWN, START, UP, bytes_of, has};

fn volume(threshold: u64) -> CreateUrr {
    CreateUrr::new(1, Method::VOLUM, On::VOLTH).volume_threshold(VolumeThreshold::total(threshold))
}

fn quota(bytes: u64) -> CreateUrr {
    CreateUrr::new(1, Method::VOLUM, On::VOLQU).volume_quota(VolumeQuota::total(bytes))
}

fn grant(bytes: u64) -> SessionModificationRequest {
    let update = UpdateUrr::new(1).volume_quota(VolumeQuota::total(bytes));
    SessionModificationRequest::new().update_urrs([update])
}

fn query() -> SessionModificationRequest {
    SessionModificationRequest::new()
        .query_urrs([QueryUrr::new(1)])
        .query_urr_reference(77)
}

#[test]
fn a_volume_threshold_reports_and_starts_again() {
    let mut bench = Bench::new([volume(1000)]);
    bench.at(1.0);
    bench.traffic(UP, 400);
    bench.at(2.0);
    bench.traffic(DOWN, 500);
    assert_eq!(bench.reports(), []);
    bench.at(3.5);
    bench.traffic(UP, 200);
    let first = bench.report();
    assert!(has(&first, Made::VOLTH));
    assert_eq!(bytes_of(&first), (600, 500));
    let start = first.start_time.expect("figures have times").0;
    let end = first.end_time.expect("figures have times").0;
    assert_eq!((start - START, end - START), (0, 3));
    let stamps = (first.time_of_first_packet, first.time_of_last_packet);
    assert_eq!(stamps.0.expect("packets came").0 - START, 1);
    assert_eq!(stamps.1.expect("packets came").0 - START, 3);

    bench.traffic(UP, 999);
    assert_eq!(bench.reports(), []);
    bench.traffic(UP, 1);
    let second = bench.report();
    assert_eq!((first.ur_seqn.0, second.ur_seqn.0), (0, 1));
    assert_eq!(bytes_of(&second), (1000, 0));
}

#[test]
fn directional_threshold_ignores_other_direction() {
    let only_down = VolumeThreshold {
        downlink_volume: Some(1000),
        ..VolumeThreshold::default()
    };
    let urr = CreateUrr::new(1, Method::VOLUM, On::VOLTH).volume_threshold(only_down);
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 5000);
    assert_eq!(bench.reports(), []);
    bench.traffic(DOWN, 1000);
    assert_eq!(bytes_of(&bench.report()), (5000, 1000));
}

#[test]
fn packet_counts_are_reported_when_requested() {
    let mut bench = Bench::new([volume(1000).measurement_information(Information::MNOP)]);
    bench.packets(UP, 3, 900);
    bench.packets(DOWN, 2, 100);
    let volume = bench.report().volume_measurement.expect("volume");
    let packets = (
        volume.total_packets,
        volume.uplink_packets,
        volume.downlink_packets,
    );
    assert_eq!(packets, (Some(5), Some(3), Some(2)));
}

#[test]
fn an_exhausted_quota_reports_and_stops_traffic_until_the_next_grant() {
    let mut bench = Bench::new([quota(1000)]);
    assert_eq!(bench.traffic(UP, 999), Forwarded);
    assert_eq!(bench.traffic(DOWN, 1), Forwarded);
    let report = bench.report();
    assert!(has(&report, Made::VOLQU));
    assert_eq!(bytes_of(&report), (999, 1));
    assert_eq!(bench.traffic(UP, 1), Dropped);
    assert_eq!(bench.traffic(DOWN, 1), Dropped);
    assert_eq!(bench.reports(), []);
    bench.modify(grant(500));
    assert_eq!(bench.traffic(UP, 500), Forwarded);
    assert_eq!(bytes_of(&bench.report()), (500, 0));
    assert_eq!(bench.traffic(UP, 1), Dropped);
}

#[test]
fn a_quota_lasts_over_reports_that_thresholds_make() {
    let urr = CreateUrr::new(1, Method::VOLUM, On::VOLTH | On::VOLQU)
        .volume_threshold(VolumeThreshold::total(400))
        .volume_quota(VolumeQuota::total(1000));
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 400);
    assert!(has(&bench.report(), Made::VOLTH));
    bench.traffic(UP, 400);
    assert!(has(&bench.report(), Made::VOLTH));
    assert_eq!(bench.traffic(UP, 200), Forwarded);
    let last = bench.report();
    assert!(has(&last, Made::VOLQU));
    assert_eq!(bytes_of(&last), (200, 0));
    assert_eq!(bench.traffic(UP, 1), Dropped);
}

#[test]
fn unreported_usage_counts_towards_new_quota() {
    let mut bench = Bench::new([quota(10_000)]);
    bench.traffic(UP, 600);
    bench.modify(grant(1000));
    assert_eq!(bench.traffic(UP, 399), Forwarded);
    assert_eq!(bench.reports(), []);
    assert_eq!(bench.traffic(UP, 1), Forwarded);
    assert_eq!(bytes_of(&bench.report()), (1000, 0));
}

#[test]
fn zero_quota_blocks_without_report() {
    let mut bench = Bench::new([quota(0)]);
    assert_eq!(bench.traffic(UP, 1), Dropped);
    assert_eq!(bench.reports(), []);
    bench.modify(grant(0));
    assert_eq!(bench.traffic(UP, 1), Dropped);
    assert_eq!(bench.reports(), []);
}

#[test]
fn traffic_over_a_quota_goes_where_the_quota_action_says() {
    let mut bench = Bench::new([quota(100).far_id_for_quota_action(2)]);
    bench.traffic(UP, 100);
    assert_eq!(bytes_of(&bench.report()), (100, 0));
    assert_eq!(bench.traffic(UP, 50), Forwarded, "redirected");
    let (_, answer) = bench.modify(query());
    let volume = answer.usage_reports[0].volume_measurement;
    assert_eq!(
        volume.expect("volume").total_volume,
        Some(0),
        "and not counted"
    );
}

#[test]
fn time_counts_from_first_packet_in_whole_seconds() {
    let urr = CreateUrr::new(1, Method::DURAT, On::TIMTH).time_threshold(10);
    let mut bench = Bench::new([urr]);
    assert_eq!(bench.deadline(), None, "no packet, no time");
    bench.at(5.5);
    bench.traffic(UP, 1);
    assert_eq!(bench.deadline(), Some(15.5));
    bench.at(15.5);
    let report = bench.report();
    assert!(has(&report, Made::TIMTH));
    assert_eq!(report.duration_measurement.expect("time").0, 10);
    bench.at(17.2);
    let (_, answer) = bench.modify(query());
    let told = answer.usage_reports[0].duration_measurement;
    assert_eq!(told.expect("time").0, 1);
    bench.at(18.4);
    let (_, answer) = bench.modify(query());
    let told = answer.usage_reports[0].duration_measurement;
    assert_eq!(told.expect("time").0, 1, "0.7 s were left over");
}

#[test]
fn immediate_start_counts_time_at_once() {
    let urr = CreateUrr::new(1, Method::DURAT, On::TIMTH)
        .time_threshold(10)
        .measurement_information(Information::ISTM);
    let mut bench = Bench::new([urr]);
    assert_eq!(bench.deadline(), Some(10.0));
    bench.at(10.0);
    assert!(has(&bench.report(), Made::TIMTH));
}

#[test]
fn time_without_packets_is_not_counted() {
    let urr = CreateUrr::new(1, Method::DURAT, On::TIMTH)
        .time_threshold(10)
        .inactivity_detection_time(3);
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 1);
    bench.at(100.0);
    bench.traffic(UP, 1);
    bench.at(103.0);
    bench.traffic(UP, 1);
    bench.at(106.0);
    assert_eq!(bench.reports(), [], "9 s were counted");
    bench.at(200.0);
    assert_eq!(bench.reports(), []);
    bench.traffic(UP, 1);
    assert_eq!(bench.deadline(), Some(201.0));
    bench.at(201.0);
    assert_eq!(bench.report().duration_measurement.expect("time").0, 10);
}

#[test]
fn a_time_quota_stops_traffic_when_it_is_over() {
    let urr = CreateUrr::new(1, Method::DURAT, On::TIMQU).time_quota(10);
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 1);
    bench.at(9.0);
    assert_eq!(bench.traffic(UP, 1), Forwarded);
    bench.at(12.0);
    assert!(has(&bench.report(), Made::TIMQU));
    assert_eq!(bench.traffic(UP, 1), Dropped);
    let update = UpdateUrr::new(1).time_quota(5);
    bench.modify(SessionModificationRequest::new().update_urrs([update]));
    assert_eq!(bench.traffic(UP, 1), Forwarded);
    bench.at(17.0);
    assert_eq!(bench.report().duration_measurement.expect("time").0, 5);
}

fn grant_time(seconds: u32) -> SessionModificationRequest {
    let update = UpdateUrr::new(1).time_quota(seconds);
    SessionModificationRequest::new().update_urrs([update])
}

#[test]
fn unreported_time_counts_towards_new_quota_and_is_reported() {
    let urr = CreateUrr::new(1, Method::DURAT, On::TIMQU).time_quota(100);
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 1);
    bench.at(8.0);
    bench.modify(grant_time(5));
    let report = bench.report();
    assert!(has(&report, Made::TIMQU));
    assert_eq!(report.duration_measurement.expect("time").0, 8);
    assert_eq!(bench.traffic(UP, 1), Dropped);
    // Less than a second is no usage.
    bench.modify(grant_time(20));
    bench.traffic(UP, 1);
    bench.at(8.5);
    bench.modify(grant_time(0));
    assert_eq!(bench.reports(), []);
    assert_eq!(bench.traffic(UP, 1), Dropped);
}

#[test]
fn fraction_before_a_monitoring_time_counts_once_towards_new_quota() {
    let urr = CreateUrr::new(1, Method::DURAT, On::TIMQU)
        .time_quota(100)
        .monitoring_time(START + 10);
    let mut bench = Bench::new([urr]);
    bench.at(4.3);
    bench.traffic(UP, 1);
    bench.at(20.0);
    bench.modify(grant_time(16));
    assert_eq!(bench.deadline(), Some(20.3));
    bench.at(20.3);
    let reports = bench.reports();
    let time = |at: usize| reports[at].duration_measurement.expect("time").0;
    assert_eq!((time(0), time(1)), (5, 11));
}

#[test]
fn resuming_charging_leaves_running_clock() {
    let urr = CreateUrr::new(1, Method::DURAT, On::TIMTH).time_threshold(10);
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 1);
    bench.at(4.0);
    let resume = SessionModificationRequest::new().pfcpsmreq_flags(PfcpsmreqFlags::RUMUC);
    bench.modify(resume);
    assert_eq!(bench.deadline(), Some(10.0));
    bench.at(10.0);
    assert!(has(&bench.report(), Made::TIMTH));
}

#[test]
fn pause_of_charging_stops_time_until_it_ends() {
    let flags = |flags| SessionModificationRequest::new().pfcpsmreq_flags(flags);
    for (information, end) in [
        (Information::ASPOC | Information::ISTM, 14.0),
        (Information::ASPOC, 19.0),
        (Information::ISTM, 10.0),
    ] {
        let urr = CreateUrr::new(1, Method::DURAT, On::TIMTH)
            .time_threshold(10)
            .measurement_information(information);
        let mut bench = Bench::new([urr]);
        bench.traffic(UP, 1);
        bench.at(4.0);
        bench.modify(flags(PfcpsmreqFlags::SUMPC));
        bench.at(6.0);
        bench.modify(flags(PfcpsmreqFlags::SUMPC));
        bench.traffic(UP, 1);
        bench.at(8.0);
        bench.modify(flags(PfcpsmreqFlags::RUMUC));
        if !information.contains(Information::ISTM) {
            bench.at(13.0);
            assert_eq!(bench.deadline(), None, "the next packet starts the clock");
            bench.traffic(UP, 1);
        }
        assert_eq!(bench.deadline(), Some(end), "{information:?}");
        bench.at(end);
        assert_eq!(bench.report().duration_measurement.expect("time").0, 10);
    }
}

#[test]
fn reports_after_loss_are_numbered_in_seconds_from_2020() {
    let mut bench = Bench::new([volume(10)]);
    // 50 years with 12 leap days after 1970, which is 2 208 988 800 s after 1900.
    let since_1900 = 2_208_988_800 + (50 * 365 + 12) * 86_400 + 5;
    let epoch = Epoch::new(bench.zero, std::time::Duration::from_secs(since_1900));
    bench.usage = UsageMeter::resumed(bench.zero, epoch, UsageLimits::default(), &bench.rules);
    bench.traffic(UP, 10);
    assert_eq!(bench.report().ur_seqn.0, 5);
}

#[test]
fn unused_quota_is_returned_after_holding_time() {
    let urr = CreateUrr::new(1, Method::VOLUM, On::QUHTI)
        .volume_quota(VolumeQuota::total(1000))
        .quota_holding_time(30);
    let mut bench = Bench::new([urr]);
    bench.at(20.0);
    bench.traffic(UP, 10);
    assert_eq!(bench.deadline(), Some(50.0));
    bench.at(50.0);
    let report = bench.report();
    assert!(has(&report, Made::QUHTI));
    assert_eq!(bytes_of(&report), (10, 0));
    assert_eq!(bench.traffic(UP, 1), Dropped);
    bench.modify(grant(100));
    assert_eq!(bench.traffic(UP, 1), Forwarded);
}

#[test]
fn quota_validity_expiry_is_reported() {
    let urr = CreateUrr::new(1, Method::VOLUM, On::QUVTI)
        .volume_quota(VolumeQuota::total(1000))
        .quota_validity_time(30);
    let mut bench = Bench::new([urr]);
    bench.at(29.0);
    bench.traffic(UP, 10);
    bench.at(30.0);
    assert!(has(&bench.report(), Made::QUVTI));
    bench.at(100.0);
    assert_eq!(bench.reports(), []);
}

#[test]
fn events_are_reported_with_timestamps() {
    let urr = CreateUrr::new(1, Method::EVENT, On::EVETH | On::EVEQU)
        .event_threshold(2)
        .event_quota(3);
    let mut bench = Bench::new([urr]);
    let event = |bench: &mut Bench| {
        let traffic = strowger_pfcp::usage::PacketBurst {
            pdr: UP.into(),
            packets: 1,
            bytes: 1,
            events: 1,
        };
        bench.usage.handle_traffic(bench.now, traffic)
    };
    event(&mut bench);
    bench.at(3.0);
    event(&mut bench);
    let report = bench.report();
    assert!(has(&report, Made::EVETH));
    let times: Vec<u32> = report
        .event_time_stamps
        .iter()
        .map(|at| at.0 - START)
        .collect();
    assert_eq!(times, [0, 3]);
    assert_eq!(event(&mut bench), Forwarded);
    assert!(has(&bench.report(), Made::EVEQU));
    assert_eq!(event(&mut bench), Dropped);
}

#[test]
fn periodic_reports_come_with_traffic_and_without() {
    let urr = CreateUrr::new(1, Method::VOLUM, On::PERIO).measurement_period(10);
    let mut bench = Bench::new([urr]);
    bench.at(4.0);
    bench.traffic(UP, 10);
    bench.at(10.0);
    let report = bench.report();
    assert!(has(&report, Made::PERIO));
    assert_eq!(bytes_of(&report), (10, 0));
    bench.at(45.0);
    let reports = bench.reports();
    assert_eq!(reports.len(), 3);
    assert!(reports.iter().all(|report| bytes_of(report) == (0, 0)));
    let ends: Vec<u32> = reports
        .iter()
        .map(|report| report.end_time.expect("a time").0 - START)
        .collect();
    assert_eq!(
        ends,
        [20, 30, 40],
        "each tells its own time, however late it was made"
    );
}

#[test]
fn start_and_stop_of_traffic_reports_have_no_measurement() {
    let urr = CreateUrr::new(1, Method::VOLUM, On::START | On::STOPT).inactivity_detection_time(5);
    let mut bench = Bench::new([urr]);
    bench.at(1.0);
    bench.traffic(UP, 10);
    let start = bench.report();
    assert!(has(&start, Made::START));
    assert_eq!((start.start_time, start.volume_measurement), (None, None));
    bench.at(5.0);
    bench.traffic(UP, 10);
    bench.at(9.0);
    assert_eq!(bench.reports(), []);
    bench.at(10.0);
    assert!(has(&bench.report(), Made::STOPT));
    bench.traffic(UP, 10);
    assert!(has(&bench.report(), Made::START));
    let (_, answer, _) = bench.delete();
    let volume = answer.usage_reports[0].volume_measurement;
    assert_eq!(volume.expect("volume").total_volume, Some(30));
}

#[test]
fn dropped_packets_to_the_user_are_reported() {
    let threshold = DroppedDlTrafficThreshold {
        downlink_packets: Some(3),
        ..DroppedDlTrafficThreshold::default()
    };
    let urr = CreateUrr::new(1, Method::VOLUM, On::DROTH).dropped_dl_traffic_threshold(threshold);
    let mut bench = Bench::new([urr]);
    let drop = UpdateFar::new(2).apply_action(ApplyAction::DROP);
    bench.modify(SessionModificationRequest::new().update_fars([drop]));
    assert_eq!(bench.packets(DOWN, 2, 200), Dropped);
    assert_eq!(bench.reports(), []);
    assert_eq!(bench.packets(DOWN, 1, 100), Dropped);
    let report = bench.report();
    assert!(has(&report, Made::DROTH));
    assert_eq!(bytes_of(&report), (0, 0), "what is dropped is not used");
}

#[test]
fn linked_urr_reports_together() {
    let linked = CreateUrr::new(2, Method::VOLUM, On::LIUSA).linked_urr_ids([LinkedUrrId(1)]);
    let other = CreateUrr::new(3, Method::VOLUM, On::LIUSA).linked_urr_ids([LinkedUrrId(2)]);
    let mut bench = Bench::new([volume(100), linked, other]);
    bench.traffic(UP, 100);
    let reports = bench.reports();
    let made: Vec<_> = reports
        .iter()
        .map(|report| (report.urr_id.0, report.usage_report_trigger))
        .collect();
    assert_eq!(made, [(1, Made::VOLTH), (2, Made::LIUSA)]);
    assert_eq!(bytes_of(&reports[1]), (100, 0));
}

#[test]
fn monitoring_time_splits_usage() {
    let urr = volume(1000).monitoring_time(START + 10);
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 600);
    bench.at(20.0);
    assert_eq!(bench.reports(), [], "the time alone makes no report");
    bench.traffic(UP, 400);
    let reports = bench.reports();
    assert_eq!(reports.len(), 2);
    assert!(has(&reports[0], Made::MONIT) && has(&reports[1], Made::VOLTH));
    assert_eq!(
        (bytes_of(&reports[0]), bytes_of(&reports[1])),
        ((600, 0), (400, 0))
    );
    assert_eq!(reports[0].usage_information, Some(UsageInformation::BEF));
    assert_eq!(reports[1].usage_information, Some(UsageInformation::AFT));
    assert_eq!(reports[0].end_time.expect("a time").0, START + 10);
    assert_eq!(reports[1].start_time.expect("a time").0, START + 10);
    bench.traffic(UP, 1000);
    assert_eq!(bench.report().usage_information, None);
}

#[test]
fn subsequent_thresholds_hold_after_their_monitoring_times() {
    let after = |bytes| SubsequentVolumeThreshold {
        total_volume: Some(bytes),
        ..SubsequentVolumeThreshold::default()
    };
    let second = AdditionalMonitoringTime::new(START + 20).subsequent_volume_threshold(after(50));
    let urr = volume(1000)
        .monitoring_time(START + 10)
        .subsequent_volume_threshold(after(300))
        .additional_monitoring_times([second]);
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 900);
    bench.at(11.0);
    bench.traffic(UP, 299);
    assert_eq!(bench.reports(), []);
    bench.traffic(UP, 1);
    let reports = bench.reports();
    assert_eq!(
        (bytes_of(&reports[0]), bytes_of(&reports[1])),
        ((900, 0), (300, 0))
    );
    bench.traffic(UP, 299);
    assert_eq!(bench.reports(), [], "it holds on");
    bench.at(21.0);
    bench.traffic(UP, 50);
    let reports = bench.reports();
    assert_eq!(
        (bytes_of(&reports[0]), bytes_of(&reports[1])),
        ((299, 0), (50, 0))
    );
}

#[test]
fn a_query_is_answered_with_what_was_counted_so_far() {
    let mut bench = Bench::new([volume(1000), CreateUrr::new(2, Method::VOLUM, On::NONE)]);
    bench.traffic(UP, 30);
    let (_, answer) = bench.modify(query());
    assert_eq!(answer.usage_reports.len(), 1);
    let report = &answer.usage_reports[0];
    assert_eq!(report.usage_report_trigger, Made::IMMER);
    assert_eq!(
        report.query_urr_reference.expect("the one of the query").0,
        77
    );
    let all = SessionModificationRequest::new().pfcpsmreq_flags(PfcpsmreqFlags::QAURR);
    let (finals, answer) = bench.modify(all);
    assert_eq!((finals.reports, answer.usage_reports.len()), (2, 2));
    assert_eq!(answer.additional_usage_reports_information, None);
}

#[test]
fn removed_or_unlinked_urr_sends_final_report() {
    let mut bench = Bench::new([volume(1000), CreateUrr::new(2, Method::VOLUM, On::NONE)]);
    bench.traffic(UP, 30);
    let pdr = |id: u16| UpdatePdr::new(id).urr_id(2);
    let alone = SessionModificationRequest::new().update_pdrs([pdr(1), pdr(2)]);
    let (_, answer) = bench.modify(alone);
    let made: Vec<_> = answer
        .usage_reports
        .iter()
        .map(|report| (report.urr_id.0, report.usage_report_trigger))
        .collect();
    assert_eq!(made, [(1, Made::TERMR)]);
    let remove =
        SessionModificationRequest::new().remove_urrs([strowger_pfcp::ie::RemoveUrr::new(1)]);
    let (_, answer) = bench.modify(remove);
    assert_eq!(answer.usage_reports[0].usage_report_trigger, Made::TERMR);
    assert_eq!(answer.usage_reports[0].ur_seqn.0, 1);
    bench.traffic(UP, 30);
    assert_eq!(bench.tally.bytes(1.into()), (30, 0));
}

#[test]
fn deletion_response_has_final_report_per_urr() {
    let mut bench = Bench::new([volume(1000), CreateUrr::new(2, Method::DURAT, On::NONE)]);
    bench.traffic(UP, 30);
    bench.at(12.0);
    let (finals, answer, _) = bench.delete();
    assert_eq!(finals.reports, 2);
    assert!(
        answer
            .usage_reports
            .iter()
            .all(|report| report.usage_report_trigger == Made::TERMR)
    );
    assert_eq!(
        answer.usage_reports[1]
            .duration_measurement
            .expect("time")
            .0,
        12
    );
}

#[test]
fn number_of_reports_is_not_exceeded() {
    let mut bench = Bench::new([volume(10).number_of_reports(2)]);
    for _ in 0..5 {
        assert_eq!(bench.traffic(UP, 10), Forwarded);
    }
    assert_eq!(bench.reports().len(), 2);
}

#[test]
fn an_inactive_rule_counts_nothing() {
    let mut bench = Bench::new([volume(10).measurement_information(Information::INAM)]);
    bench.traffic(UP, 100);
    assert_eq!(bench.reports(), []);
    let update = UpdateUrr::new(1).measurement_information(Information::NONE);
    bench.modify(SessionModificationRequest::new().update_urrs([update]));
    bench.traffic(UP, 10);
    assert_eq!(bytes_of(&bench.report()), (10, 0));
}

#[test]
fn closed_gate_counts_only_before_qos_enforcement() {
    use strowger_pfcp::ie::{CreateQer, Gate, GateStatus};
    let before = volume(u64::MAX).measurement_information(Information::MBQE);
    let after = CreateUrr::new(2, Method::VOLUM, On::NONE);
    let mut request = bench::establishment(vec![before, after]);
    let shut = GateStatus {
        ul_gate: Gate::CLOSED,
        dl_gate: Gate::OPEN,
    };
    request = request.create_qers([CreateQer::new(1, shut)]);
    for pdr in &mut request.create_pdrs {
        pdr.qer_ids.push(1.into());
    }
    let mut bench = Bench::of(request, UsageLimits::default());
    assert_eq!(bench.traffic(UP, 10), Dropped);
    assert_eq!(bench.traffic(DOWN, 5), Forwarded);
    let (_, answer, tally) = bench.delete();
    assert_eq!(tally.bytes(1.into()), (10, 5));
    assert_eq!(tally.bytes(2.into()), (0, 5));
    let told = answer.usage_reports[0].usage_information;
    assert_eq!(told, Some(UsageInformation::UBE));
}

#[test]
fn inactive_session_is_reported_once() {
    let mut request = bench::establishment(Vec::new());
    request = request.user_plane_inactivity_timer(60);
    let mut bench = Bench::of(request, UsageLimits::default());
    bench.at(30.0);
    bench.traffic(UP, 1);
    assert_eq!(bench.deadline(), Some(90.0));
    bench.at(90.0);
    let request = bench.request().expect("a report");
    assert_eq!(request.report_type, strowger_pfcp::ie::ReportType::UPIR);
    let accepted = strowger_pfcp::message::SessionReportResponse::new(
        strowger_pfcp::ie::Cause::REQUEST_ACCEPTED,
    );
    bench.answer(accepted);
    assert_eq!(bench.deadline(), None);
    bench.traffic(UP, 1);
    assert_eq!(bench.deadline(), Some(150.0));
}

/// Each kind of report counts towards the Number of Reports (§8.2.133), and none follows the last.
#[test]
fn number_of_reports_bounds_every_trigger() {
    let urrs = [
        CreateUrr::new(1, Method::VOLUM, On::PERIO).measurement_period(10),
        CreateUrr::new(1, Method::EVENT | Method::VOLUM, On::START | On::STOPT),
        CreateUrr::new(1, Method::DURAT, On::TIMTH).time_threshold(5),
        CreateUrr::new(1, Method::VOLUM, On::UPINT).user_plane_inactivity_timer(5),
        volume(10),
    ];
    for urr in urrs {
        let triggers = urr.reporting_triggers;
        let mut bench = Bench::new([urr.number_of_reports(2)]);
        let mut told = 0;
        for second in 1..=600 {
            bench.at(f64::from(second));
            if second % 200 < 50 {
                bench.traffic(UP, 10);
            }
            told += bench.reports().len();
        }
        assert_eq!(told, 2, "{triggers:?}");
    }
}

/// Thresholds and times of zero would be reached by each packet.
#[test]
fn threshold_of_zero_is_off() {
    let dropped = DroppedDlTrafficThreshold {
        downlink_packets: Some(0),
        downlink_octets: Some(0),
    };
    let urrs = [
        volume(0),
        CreateUrr::new(1, Method::DURAT, On::TIMTH).time_threshold(0),
        CreateUrr::new(1, Method::VOLUM, On::UPINT).user_plane_inactivity_timer(0),
        CreateUrr::new(1, Method::VOLUM, On::DROTH).dropped_dl_traffic_threshold(dropped),
    ];
    for urr in urrs {
        let triggers = urr.reporting_triggers;
        let mut bench = Bench::new([urr]);
        for second in 1..10 {
            bench.at(f64::from(second));
            bench.traffic(UP, 10);
            bench.traffic(DOWN, 10);
            assert_eq!(bench.reports(), [], "{triggers:?}");
        }
    }
}

#[test]
fn later_threshold_of_zero_turns_the_previous_one_off() {
    let later = SubsequentVolumeThreshold {
        total_volume: Some(0),
        ..SubsequentVolumeThreshold::default()
    };
    let urr = volume(100)
        .monitoring_time(START + 10)
        .subsequent_volume_threshold(later);
    let mut bench = Bench::new([urr]);
    bench.traffic(UP, 100);
    assert_eq!(bench.reports().len(), 1);
    bench.at(11.0);
    bench.traffic(UP, 100_000);
    assert_eq!(bench.reports(), []);
}
