//! Packets to a user who cannot be reached.

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateUrr, DlBufferingDuration, MeasurementMethod as Method,
    PfcpsrrspFlags, ReportType, ReportingTriggers as On, TimerUnit, UpdateBarReportResponse,
    UpdateFar, VolumeThreshold,
};
use strowger_pfcp::message::{SessionModificationRequest, SessionReportResponse};
use strowger_pfcp::usage::PacketOutcome::{Buffered, Dropped, Forwarded};
use strowger_pfcp::usage::UsageLimits;

use crate::usage::bench::{Bench, DOWN, UP, bar, establishment, forwarding};

fn accepted() -> SessionReportResponse {
    SessionReportResponse::new(Cause::REQUEST_ACCEPTED)
}

/// A session whose packets to the user are buffered.
fn waiting(delay: Option<u8>) -> Bench {
    let urr =
        CreateUrr::new(1, Method::VOLUM, On::VOLTH).volume_threshold(VolumeThreshold::total(1000));
    let mut request = establishment(vec![urr]);
    let action = ApplyAction::BUFF | ApplyAction::NOCP;
    let mut buffering = forwarding(2).apply_action(action).bar_id(1);
    buffering.forwarding_parameters = None;
    request.create_fars[1] = buffering;
    let mut bar = bar(1);
    if let Some(delay) = delay {
        bar = bar.downlink_data_notification_delay(delay);
    }
    Bench::of(request.create_bar(bar), UsageLimits::default())
}

fn page(bench: &mut Bench) -> SessionModificationRequest {
    bench.at(10.0);
    SessionModificationRequest::new().update_fars([UpdateFar::new(2)
        .apply_action(ApplyAction::FORW)
        .update_forwarding_parameters(strowger_pfcp::ie::UpdateForwardingParameters::new())])
}

#[test]
fn first_buffered_packet_is_reported_once() {
    let mut bench = waiting(None);
    assert_eq!(bench.traffic(UP, 10), Forwarded);
    assert_eq!(bench.traffic(DOWN, 10), Buffered);
    let request = bench.request().expect("a report");
    assert_eq!(request.report_type, ReportType::DLDR);
    let report = request.downlink_data_report.expect("of downlink data");
    assert_eq!(report.pdr_ids, [DOWN.into()]);
    assert_eq!(bench.traffic(DOWN, 10), Buffered);
    bench.answer(accepted());
    assert_eq!(bench.traffic(DOWN, 10), Buffered);
    assert_eq!(bench.request(), None);
}

#[test]
fn buffered_packets_count_when_forwarded() {
    let mut bench = waiting(None);
    bench.traffic(DOWN, 600);
    bench.traffic(DOWN, 400);
    bench.request().expect("a report");
    bench.answer(accepted());
    assert_eq!(bench.tally.bytes(1.into()), (0, 0));
    let page = page(&mut bench);
    bench.modify(page);
    assert_eq!(bench.reports().len(), 1);
    assert_eq!(bench.tally.bytes(1.into()), (0, 1000));
    assert_eq!(bench.traffic(DOWN, 1), Forwarded);
}

#[test]
fn notification_delay_follows_bar() {
    let mut bench = waiting(Some(4));
    bench.at(1.0);
    bench.traffic(DOWN, 10);
    assert_eq!(bench.request(), None);
    assert_eq!(bench.deadline(), Some(1.2));
    bench.at(1.2);
    assert!(bench.request().is_some());
}

#[test]
fn delayed_notification_is_cancelled_by_forwarding() {
    let mut bench = waiting(Some(255));
    bench.traffic(DOWN, 10);
    let page = page(&mut bench);
    bench.modify(page);
    bench.at(100.0);
    assert_eq!(bench.request(), None);
    assert_eq!(bench.usage.waiting(), 0);
}

#[test]
fn report_response_sets_buffering_duration_and_count() {
    let mut bench = waiting(None);
    bench.traffic(DOWN, 10);
    bench.request().expect("a report");
    let lasts = DlBufferingDuration {
        timer_value: 10,
        timer_unit: TimerUnit::TWO_SECONDS,
    };
    let update = UpdateBarReportResponse::new(1)
        .dl_buffering_duration(lasts)
        .suggested_buffering_packets_count(2);
    bench.answer(accepted().update_bar(update));
    assert_eq!(bench.traffic(DOWN, 10), Buffered);
    assert_eq!(bench.traffic(DOWN, 10), Dropped, "two wait already");
    assert_eq!(bench.deadline(), Some(20.0));
    bench.at(20.0);
    assert_eq!(bench.request(), None, "what waited is dropped, silently");
    assert_eq!(bench.traffic(DOWN, 10), Buffered);
    assert!(
        bench.request().is_some(),
        "and the next packet is news again"
    );
}

#[test]
fn report_response_can_drop_buffered_packets() {
    let mut bench = waiting(None);
    bench.traffic(DOWN, 600);
    bench.request().expect("a report");
    bench.answer(accepted().pfcpsrrsp_flags(PfcpsrrspFlags::DROBU));
    let page = page(&mut bench);
    bench.modify(page);
    let (_, _, tally) = bench.delete();
    assert_eq!(tally.bytes(1.into()), (0, 0));
}

#[test]
fn a_buffer_is_bounded() {
    let mut bench = waiting(None);
    let most = UsageLimits::default().buffer;
    for _ in 0..most {
        assert_eq!(bench.traffic(DOWN, 1), Buffered);
    }
    assert_eq!(bench.traffic(DOWN, 1), Dropped);
}
