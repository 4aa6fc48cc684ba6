//! Operations on many sessions at once: the sessions of a set that failed are deleted, and those of
//! an SMF that leaves are moved to another SMF.
//!
//! `cargo run -p strowger-examples pfcp_sets`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::IpAddr;

use strowger_pfcp::ie::{
    AlternativeSmfIpAddress, Cause, CpIpAddress, FqCsid, PfcpSessionChangeInfo,
};
use strowger_pfcp::message::{
    BodyView, SessionSetDeletionRequest, SessionSetDeletionResponse, SessionSetModificationRequest,
    SessionSetModificationResponse,
};
use strowger_pfcp::{Index, Interfaces, Message, MessageView, Sequence};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let smf: IpAddr = [192, 0, 2, 1].into();
    let other_smf: IpAddr = [192, 0, 2, 2].into();
    let upf: IpAddr = [192, 0, 2, 7].into();

    // Sessions belong to sets: the address of a node, and numbers that the node assigned.
    let failed = FqCsid::of(smf, &[3, 4]);
    let request = SessionSetDeletionRequest::new(smf).fq_csids([failed]);
    let request = Message::node(Sequence::new(1), request);
    println!("{request}");
    let answer = SessionSetDeletionResponse::new(upf, Cause::REQUEST_ACCEPTED);
    println!("{}", Message::node(request.header.sequence, answer));

    // All sessions of one SMF now belong to another.
    let moved = PfcpSessionChangeInfo::new(AlternativeSmfIpAddress::from(other_smf))
        .cp_ip_address([CpIpAddress::from(smf)]);
    let request = SessionSetModificationRequest::new(smf).pfcp_session_change_infos([moved]);
    let request = Message::node(Sequence::new(2), request);
    let mut bytes = Vec::new();
    let on = request.encode_for(Interfaces::SXB.with(Interfaces::N4), &mut bytes)?;
    println!("fit for {on}\n{request}");

    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index)?;
    if let BodyView::SessionSetModificationRequest(asked) = view.body() {
        for info in asked.pfcp_session_change_infos() {
            let to = info.alternative_smf_pgw_c_ip_address();
            println!("to: {:?}", to.and_then(|to| to.ipv4));
        }
    }
    let answer = SessionSetModificationResponse::new(upf, Cause::REQUEST_ACCEPTED);
    println!("{}", Message::node(view.header().sequence, answer));
    Ok(())
}
