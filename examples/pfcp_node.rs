//! Two nodes check each other's liveness, and one reports that a third node does not respond:
//! heartbeat, node report.
//!
//! `cargo run -p strowger-examples pfcp_node`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::IpAddr;

use strowger_pfcp::ie::{Cause, NodeReportType, RemoteGtpuPeer, UserPlanePathFailureReport};
use strowger_pfcp::message::{
    BodyView, HeartbeatRequest, HeartbeatResponse, NodeReportRequest, NodeReportResponse,
};
use strowger_pfcp::{Index, Message, MessageView, Sequence};

/// Seconds since 1900.
const STARTED: u32 = 0xee00_0000;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // A constructor requires the mandatory elements: a heartbeat without a time stamp does not
    // compile.
    let request = Message::node(Sequence::new(7), HeartbeatRequest::new(STARTED));
    let bytes = request.encode()?;
    println!("{} bytes out: {request}", bytes.len());

    // The receiver reads the bytes in place. An index is a buffer that is reused for the next
    // message, without an allocation.
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index)?;
    if let BodyView::HeartbeatRequest(heartbeat) = view.body() {
        let since = heartbeat.recovery_time_stamp().ok_or("no time stamp")?;
        println!("the peer has been up since {since}");
    }
    let sequence = view.header().sequence;
    let response = Message::node(sequence, HeartbeatResponse::new(STARTED + 60));
    println!("{response}");

    // A UP function reports a peer of its user plane that no longer answers.
    let [upf, gnb]: [IpAddr; 2] = [[192, 0, 2, 7].into(), [192, 0, 2, 99].into()];
    let gone = RemoteGtpuPeer::from(gnb);
    let report = NodeReportRequest::new(upf, NodeReportType::UPFR).user_plane_path_failure_report(
        UserPlanePathFailureReport::new().remote_gtpu_peers([gone]),
    );
    let report = Message::node(Sequence::new(8), report);
    println!("{report}");
    let answer = NodeReportResponse::new(upf, Cause::REQUEST_ACCEPTED);
    println!("{}", Message::node(report.header.sequence, answer));
    Ok(())
}
