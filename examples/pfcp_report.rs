//! A UPF measures the usage of a session and reports it: usage reporting rule, usage report, and
//! the SMF's response.
//!
//! `cargo run -p strowger-examples pfcp_report`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use strowger_pfcp::ie::{
    Cause, CreateUrr, DownlinkDataReport, MeasurementMethod, PdrId, ReportType, ReportingTriggers,
    UsageReportRequest, UsageReportTrigger, VolumeMeasurement, VolumeThreshold,
};
use strowger_pfcp::message::{BodyView, SessionReportRequest, SessionReportResponse};
use strowger_pfcp::{Index, Message, MessageView, Seid, Sequence};

/// Seconds since 1900.
const NOON: u32 = 0xee00_0000;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // The SMF asks for a report after each mebibyte.
    let threshold = VolumeThreshold {
        total_volume: Some(1 << 20),
        ..VolumeThreshold::default()
    };
    let rule = CreateUrr::new(1, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH)
        .volume_threshold(threshold);
    println!("{rule}");

    // The UPF has reached the threshold, and packets for the UE are waiting.
    let measured = VolumeMeasurement {
        total_volume: Some((1 << 20) + 512),
        uplink_volume: Some(512),
        downlink_volume: Some(1 << 20),
        ..VolumeMeasurement::default()
    };
    let usage = UsageReportRequest::new(1, 0, UsageReportTrigger::VOLTH)
        .start_time(NOON)
        .end_time(NOON + 60)
        .volume_measurement(measured);
    let report = SessionReportRequest::new(ReportType::USAR | ReportType::DLDR)
        .usage_reports([usage])
        .downlink_data_report(DownlinkDataReport::new().pdr_ids([PdrId(2)]));
    let bytes = Message::session(Seid(1), Sequence::new(5), report).encode()?;

    // The SMF adds up the volumes without allocating.
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index)?;
    println!("{view}");
    if let BodyView::SessionReportRequest(report) = view.body() {
        let volumes = report
            .usage_reports()
            .filter_map(|usage| usage.volume_measurement());
        let bytes: u64 = volumes.filter_map(|volume| volume.total_volume).sum();
        println!("{bytes} bytes to pay for");
    }
    let answer = SessionReportResponse::new(Cause::REQUEST_ACCEPTED);
    println!(
        "{}",
        Message::session(Seid(0xa1), view.header().sequence, answer)
    );
    Ok(())
}
