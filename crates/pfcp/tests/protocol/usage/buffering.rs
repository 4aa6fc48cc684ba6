//! Packets to a user who cannot be reached.

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreatePdr, CreateUrr, DestinationInterface, DlBufferingDuration,
    MeasurementMethod as Method, PfcpsrrspFlags, ReportType, ReportingTriggers as On, TimerUnit,
    UpdateBarReportResponse, UpdateFar, UpdateForwardingParameters, UpdatePdr, VolumeThreshold,
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
        .update_forwarding_parameters(
            UpdateForwardingParameters::new().destination_interface(DestinationInterface::ACCESS),
        )])
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

/// A second flow to the user, with its own FAR.
const OTHER: u16 = 3;

const NONE: [u16; 0] = [];

/// A session with two flows to the user. Their FARs are different, or the same.
fn two_flows(far: u32, delay: u8, count: Option<u8>) -> Bench {
    let mut request = establishment(Vec::new());
    let mut other: CreatePdr = request.create_pdrs[1].clone();
    other.pdr_id = OTHER.into();
    other.far_id = Some(far.into());
    request.create_pdrs.push(other);
    let action = ApplyAction::BUFF | ApplyAction::NOCP;
    let buffering = |id: u32| {
        let mut far = forwarding(id).apply_action(action).bar_id(1);
        far.forwarding_parameters = None;
        far
    };
    request.create_fars[1] = buffering(2);
    request.create_fars.push(buffering(3));
    let mut bar = bar(1).downlink_data_notification_delay(delay);
    if let Some(count) = count {
        bar = bar.suggested_buffering_packets_count(count);
    }
    Bench::of(request.create_bar(bar), UsageLimits::default())
}

fn notified(bench: &mut Bench) -> Vec<u16> {
    let Some(request) = bench.request() else {
        return Vec::new();
    };
    bench.answer(accepted());
    let report = request.downlink_data_report.expect("of downlink data");
    report.pdr_ids.iter().map(|pdr| pdr.0).collect()
}

/// A report names the PDR of the packets (Table 7.5.8.2-1), and the control plane may page for each
/// flow (TS 23.502, 4.2.3.3).
#[test]
fn first_packet_of_each_pdr_is_reported_after_its_delay() {
    for far in [2, 3] {
        let mut bench = two_flows(far, 4, None);
        bench.traffic(DOWN, 10);
        bench.at(0.15);
        bench.traffic(OTHER, 10);
        bench.at(0.2);
        assert_eq!(notified(&mut bench), [DOWN]);
        assert_eq!(notified(&mut bench), NONE);
        assert_eq!(bench.deadline(), Some(0.35));
        bench.at(0.35);
        assert_eq!(notified(&mut bench), [OTHER]);
        bench.traffic(DOWN, 10);
        bench.traffic(OTHER, 10);
        bench.at(1.0);
        assert_eq!(notified(&mut bench), NONE);
    }
}

/// A BAR controls the buffering of all FARs that name it (§5.2.4.1).
#[test]
fn packet_count_of_a_bar_is_shared_by_its_fars() {
    for far in [2, 3] {
        let mut bench = two_flows(far, 0, Some(3));
        assert_eq!(bench.packets(DOWN, 2, 10), Buffered);
        assert_eq!(bench.packets(OTHER, 2, 10), Dropped);
        assert_eq!(bench.packets(OTHER, 1, 10), Buffered);
        assert_eq!(bench.packets(DOWN, 1, 10), Dropped);
    }
}

#[test]
fn a_session_shares_one_buffer() {
    let mut bench = two_flows(3, 0, None);
    let most = UsageLimits::default().buffer;
    assert_eq!(bench.packets(DOWN, most - 1, 1), Buffered);
    assert_eq!(bench.packets(OTHER, 1, 1), Buffered);
    assert_eq!(bench.packets(OTHER, 1, 1), Dropped);
}

fn extended(unit: TimerUnit, value: u8) -> UpdateBarReportResponse {
    UpdateBarReportResponse::new(1).dl_buffering_duration(DlBufferingDuration {
        timer_value: value,
        timer_unit: unit,
    })
}

/// Unit and value 0 mean that the timer is stopped (§8.2.29); 0 minutes are over at once.
#[test]
fn stopped_buffering_duration_does_not_expire() {
    for (unit, lasts) in [
        (TimerUnit::TWO_SECONDS, true),
        (TimerUnit::INFINITE, true),
        (TimerUnit::MINUTE, false),
    ] {
        let mut bench = waiting(None);
        bench.traffic(DOWN, 600);
        bench.request().expect("a report");
        bench.answer(accepted().update_bar(extended(unit, 0)));
        bench.at(5.0);
        let page = page(&mut bench);
        bench.modify(page);
        let counted = bench.delete().2.bytes(1.into());
        assert_eq!(counted, (0, if lasts { 600 } else { 0 }), "{unit:?}");
    }
}

#[test]
fn stopped_buffering_duration_ends_the_previous_one() {
    let mut bench = two_flows(3, 0, None);
    bench.traffic(DOWN, 10);
    bench.request().expect("a report");
    bench.answer(accepted().update_bar(extended(TimerUnit::TWO_SECONDS, 5)));
    assert_eq!(bench.deadline(), Some(10.0));
    bench.traffic(OTHER, 10);
    bench.request().expect("a report");
    bench.answer(accepted().update_bar(extended(TimerUnit::TWO_SECONDS, 0)));
    assert_eq!(bench.deadline(), None);
}

/// The count for extended buffering ends with it (§5.2.4.2), and so does its duration.
#[test]
fn extended_buffering_ends_when_the_user_is_reached() {
    let mut bench = waiting(None);
    bench.traffic(DOWN, 10);
    bench.request().expect("a report");
    let update = extended(TimerUnit::TWO_SECONDS, 20).dl_buffering_suggested_packet_count(vec![1]);
    bench.answer(accepted().update_bar(update));
    assert_eq!(bench.traffic(DOWN, 10), Dropped);
    let page = page(&mut bench);
    bench.modify(page);
    let idle = UpdateFar::new(2).apply_action(ApplyAction::BUFF | ApplyAction::NOCP);
    bench.modify(SessionModificationRequest::new().update_fars([idle]));
    bench.at(39.0);
    assert_eq!(bench.packets(DOWN, 5, 10), Buffered);
    assert_eq!(notified(&mut bench), [DOWN]);
    bench.at(41.0);
    assert_eq!(bench.traffic(DOWN, 10), Buffered);
    assert_eq!(
        notified(&mut bench),
        NONE,
        "the packets of this period stay"
    );
}

#[test]
fn packets_of_a_pdr_follow_it_to_another_far() {
    let mut bench = waiting(None);
    bench.traffic(DOWN, 600);
    bench.request().expect("a report");
    bench.answer(accepted());
    let update = UpdatePdr::new(DOWN).far_id(1);
    bench.modify(SessionModificationRequest::new().update_pdrs([update]));
    assert_eq!(bench.delete().2.bytes(1.into()), (0, 600));
}
