//! Reports sent to a control plane that answers, or does not.

use std::time::Duration;

use strowger_pfcp::ie::{
    Cause, CreateUrr, MeasurementMethod as Method, PfcpsmreqFlags, ReportType,
    ReportingTriggers as On, UsageReportTrigger as Made, VolumeThreshold,
};
use strowger_pfcp::message::{SessionModificationRequest, SessionReportResponse};
use strowger_pfcp::usage::{Epoch, ReportArrival, UsageLimits, UsageMeter, UsageTotals};

use crate::usage::bench::{Bench, START, UP, establishment};

fn volume(id: u32, threshold: u64) -> CreateUrr {
    CreateUrr::new(id, Method::VOLUM, On::VOLTH).volume_threshold(VolumeThreshold::total(threshold))
}

fn answer(cause: Cause) -> SessionReportResponse {
    SessionReportResponse::new(cause)
}

#[test]
fn only_one_report_request_is_outstanding() {
    let mut bench = Bench::new([volume(1, 10)]);
    bench.traffic(UP, 10);
    let first = bench.request().expect("a report");
    assert_eq!(first.report_type, ReportType::USAR);
    bench.traffic(UP, 10);
    bench.traffic(UP, 10);
    assert_eq!(bench.request(), None);
    let settled = bench.answer(answer(Cause::REQUEST_ACCEPTED));
    assert_eq!(
        (settled.delivered, settled.refused, settled.again),
        (1, 0, false)
    );
    let second = bench.request().expect("what came meanwhile");
    let numbers: Vec<u32> = second
        .usage_reports
        .iter()
        .map(|one| one.ur_seqn.0)
        .collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn unanswered_report_is_resent_with_same_number() {
    let mut bench = Bench::new([volume(1, 10)]);
    bench.traffic(UP, 10);
    let first = bench.request().expect("a report");
    bench.at(9.0);
    assert!(bench.usage.handle_no_answer(bench.now).again);
    assert_eq!(bench.request(), None, "not at once");
    assert_eq!(bench.deadline(), Some(14.0));
    bench.at(14.0);
    let second = bench.request().expect("the same again");
    assert_eq!(second.usage_reports, first.usage_reports);
    bench.usage.handle_no_answer(bench.now);
    assert_eq!(bench.deadline(), Some(24.0), "a longer pause");
    bench.at(24.0);
    assert!(bench.request().is_some());
    bench.answer(answer(Cause::REQUEST_ACCEPTED));
    assert_eq!((bench.request(), bench.usage.waiting()), (None, 0));
}

#[test]
fn report_with_unknown_outcome_is_resent() {
    let mut bench = Bench::new([volume(1, 10)]);
    bench.traffic(UP, 10);
    bench.request().expect("a report");
    assert_eq!(bench.deadline(), Some(30.0));
    bench.at(30.0);
    assert_eq!(bench.request(), None);
    bench.at(35.0);
    assert!(bench.request().is_some());
}

/// What a session does with each answer that its peer may give to a report.
#[test]
fn every_cause_delivers_retries_or_keeps_the_report() {
    for value in 1..=u8::MAX {
        let cause = Cause(value);
        let mut bench = Bench::new([volume(1, 10)]);
        bench.traffic(UP, 10);
        let sent = bench.request().expect("a report").usage_reports;
        let settled = bench.answer(answer(cause));
        let outcome = (settled.delivered, settled.refused, settled.again);
        let wanted = match cause {
            _ if value < 64 => (1, 0, false),
            Cause::CONGESTION | Cause::SYSTEM_FAILURE | Cause::SESSION_CONTEXT_NOT_FOUND => {
                (0, 0, true)
            }
            _ => (0, 1, false),
        };
        assert_eq!(outcome, wanted, "{value}");
        bench.at(5.0);
        let again = bench.request().map(|request| request.usage_reports);
        assert_eq!(again, settled.again.then_some(sent), "{value}");
        // Nothing is lost that the peer did not accept.
        let (_, answer, _) = bench.delete();
        let told = answer.usage_reports.iter().map(|one| one.ur_seqn.0);
        let first = u32::from(settled.delivered > 0);
        assert_eq!(told.collect::<Vec<_>>(), (first..2).collect::<Vec<_>>());
    }
}

#[test]
fn refused_reports_are_bounded() {
    let limits = UsageLimits {
        waiting: 4,
        ..UsageLimits::default()
    };
    let mut bench = Bench::of(establishment(vec![volume(1, 10)]), limits);
    for round in 0..10 {
        bench.traffic(UP, 10);
        let Some(_) = bench.request() else { continue };
        let settled = bench.answer(answer(Cause::REQUEST_REJECTED));
        assert_eq!(settled.again, round >= 4, "{round}");
    }
    let (_, _, tally) = bench.delete();
    assert_eq!((tally.bytes(1.into()), tally.missing()), ((100, 0), 0));
}

#[test]
fn queued_reports_are_merged_at_limit() {
    let limits = UsageLimits {
        waiting: 4,
        ..UsageLimits::default()
    };
    let mut bench = Bench::of(establishment(vec![volume(1, 10)]), limits);
    for _ in 0..100 {
        bench.traffic(UP, 10);
    }
    assert_eq!(bench.usage.waiting(), 4);
    let told = bench.reports();
    assert_eq!(told.len(), 5, "the last one was owed");
    assert_eq!(bench.tally.bytes(1.into()), (1000, 0));
    assert_eq!(bench.tally.missing(), 0);
}

#[test]
fn deletion_repeats_unacknowledged_reports_with_same_numbers() {
    let mut bench = Bench::new([volume(1, 10)]);
    bench.traffic(UP, 10);
    let sent = bench.request().expect("a report");
    bench.traffic(UP, 10);
    bench.traffic(UP, 3);
    let (_, answer, tally) = bench.delete();
    let made: Vec<_> = answer
        .usage_reports
        .iter()
        .map(|one| (one.ur_seqn.0, one.usage_report_trigger))
        .collect();
    let all = [(0, Made::VOLTH), (1, Made::VOLTH), (2, Made::TERMR)];
    assert_eq!(made, all, "a peer that had no request has all of it");
    assert_eq!((tally.bytes(1.into()), tally.missing()), ((23, 0), 0));

    let mut tally = UsageTotals::default();
    assert_eq!(tally.add(&sent.usage_reports[0]), ReportArrival::New);
    let arrivals = answer.usage_reports.iter().map(|one| tally.add(one));
    let arrivals: Vec<_> = arrivals.collect();
    assert_eq!(
        arrivals,
        [
            ReportArrival::Repeated,
            ReportArrival::New,
            ReportArrival::New
        ]
    );
    assert_eq!(tally.bytes(1.into()), (23, 0), "nothing counts twice");
}

#[test]
fn deletion_omits_acknowledged_reports() {
    let mut bench = Bench::new([volume(1, 10)]);
    bench.traffic(UP, 10);
    bench.request().expect("a report");
    bench.answer(answer(Cause::REQUEST_ACCEPTED));
    let (_, answer, _) = bench.delete();
    let made: Vec<_> = answer
        .usage_reports
        .iter()
        .map(|one| (one.ur_seqn.0, one.usage_report_trigger))
        .collect();
    assert_eq!(made, [(1, Made::TERMR)]);
}

#[test]
fn overflowing_final_reports_follow_in_requests() {
    let urrs: Vec<CreateUrr> = (1..=300).map(|id| volume(id, 1000)).collect();
    let mut bench = Bench::new(urrs);
    bench.traffic(UP, 7);
    let query = SessionModificationRequest::new()
        .pfcpsmreq_flags(PfcpsmreqFlags::QAURR)
        .query_urr_reference(5);
    let (finals, answer) = bench.modify(query);
    let more = answer
        .additional_usage_reports_information
        .expect("not all of them fit");
    assert!(!more.auri, "the number is told");
    let follow = usize::from(more.number);
    assert_eq!(finals.reports + follow, 300);
    let told = bench.reports();
    assert_eq!(told.len(), follow);
    assert!(
        told.iter()
            .all(|one| one.query_urr_reference.map(|one| one.0) == Some(5))
    );

    bench.traffic(UP, 1);
    let (finals, _, tally) = bench.delete();
    assert!(!finals.more.is_empty());
    for id in 1..=300 {
        assert_eq!(
            (tally.bytes(id.into()), tally.reports(id.into())),
            ((8, 0), 2)
        );
    }
}

#[test]
fn restart_never_repeats_report_number_and_leaves_gap() {
    let mut bench = Bench::new([volume(1, 10)]);
    bench.traffic(UP, 10);
    bench.traffic(UP, 10);
    assert_eq!(bench.reports().len(), 2);
    bench.at(3.0);
    let epoch = Epoch::new(bench.zero, Duration::from_secs(START.into()));
    bench.usage = UsageMeter::resumed(bench.now, epoch, UsageLimits::default(), &bench.rules);
    bench.traffic(UP, 10);
    bench.reports();
    assert_eq!(bench.tally.bytes(1.into()), (30, 0));
    assert!(bench.tally.missing() > 0);
}
