//! A CP function describes the packets of applications to a UP function, and learns which
//! application it could not accept: PFD management.
//!
//! `cargo run -p strowger-examples pfcp_pfd`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::IpAddr;

use strowger_pfcp::ie::{
    ApplicationIdsPfds, Cause, PfdContents, PfdContext, PfdPartialFailureInformation,
};
use strowger_pfcp::message::{BodyView, PfdManagementRequest, PfdManagementResponse};
use strowger_pfcp::{IeType, Index, Interfaces, Message, MessageView, Sequence};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let smf: IpAddr = [192, 0, 2, 1].into();
    let video = PfdContext::new().pfd_contents([
        PfdContents::flow("permit out tcp from 198.51.100.0/24 443 to assigned"),
        PfdContents::domain("video.example.org"),
    ]);
    let radio = PfdContext::new().pfd_contents([PfdContents::url("http://radio.example.org/live")]);
    let request = PfdManagementRequest::new()
        .node_id(smf)
        .application_id_s_pfds([
            ApplicationIdsPfds::new("video").pfd_contexts([video]),
            ApplicationIdsPfds::new("radio").pfd_contexts([radio]),
        ]);
    let request = Message::node(Sequence::new(4), request);
    let mut bytes = Vec::new();
    request.encode_for(Interfaces::N4, &mut bytes)?;
    println!("{request}");

    // An empty set of descriptions is invalid, which is detected before anything is sent.
    let empty = ApplicationIdsPfds::new("video").pfd_contexts([PfdContext::new()]);
    let wrong = PfdManagementRequest::new().application_id_s_pfds([empty]);
    let wrong = Message::node(Sequence::new(5), wrong);
    match wrong.encode_for(Interfaces::N4, &mut Vec::new()) {
        Ok(_) => println!("it went out"),
        Err(error) => println!("it stays here: {error}"),
    }

    // This UP function can handle flows, but not URLs.
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index)?;
    let mut response = PfdManagementResponse::new(Cause::REQUEST_PARTIALLY_ACCEPTED);
    if let BodyView::PfdManagementRequest(asked) = view.body() {
        for application in asked.application_id_s_pfds() {
            let contents = application
                .pfd_contexts()
                .flat_map(|context| context.pfd_contents());
            let has_url = contents.into_iter().any(|contents| contents.url.is_some());
            let id = application.application_id().ok_or("no application ID")?;
            if has_url {
                let failed = PfdPartialFailureInformation::new(
                    id.as_text().unwrap_or_default(),
                    Cause::PFD_CONTENTS_SEMANTICS_ERROR,
                );
                response = response
                    .offending_ie(IeType::PFD_CONTENTS)
                    .pfd_partial_failure_informations([failed]);
            }
        }
    }
    println!("{}", Message::node(view.header().sequence, response));
    Ok(())
}
