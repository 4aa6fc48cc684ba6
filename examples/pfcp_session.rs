//! A session is established, modified and deleted; the differences of two requests are shown as
//! text.
//!
//! `cargo run -p strowger-examples pfcp_session`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::IpAddr;

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, CreatedPdr, DestinationInterface, FTeid,
    ForwardingParameters, OuterHeaderCreation, Pdi, SourceInterface, UeIpAddress, UpdateFar,
    UpdateForwardingParameters,
};
use strowger_pfcp::message::{
    BodyView, SessionDeletionRequest, SessionDeletionResponse, SessionEstablishmentRequest,
    SessionEstablishmentResponse, SessionModificationRequest, SessionModificationResponse,
};
use strowger_pfcp::{Ignore, Index, Interfaces, Message, MessageView, Seid, Sequence};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let smf: IpAddr = [192, 0, 2, 1].into();
    let upf: IpAddr = [192, 0, 2, 7].into();
    let gnb: IpAddr = [192, 0, 2, 99].into();
    let ue: IpAddr = [10, 45, 0, 9].into();

    // Uplink: packets in a tunnel that the UPF chooses go to the data network. Downlink: packets to
    // the UE are buffered until the gNB's tunnel is known.
    let from_access = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::choose_ipv4());
    let from_core = Pdi::new(SourceInterface::CORE).ue_ip_addresses([UeIpAddress::destination(ue)]);
    let to_core =
        ForwardingParameters::new(DestinationInterface::CORE).network_instance("internet");
    let request = SessionEstablishmentRequest::new(smf, (1, smf))
        .create_pdrs([
            CreatePdr::new(1, from_access).precedence(100).far_id(1),
            CreatePdr::new(2, from_core).precedence(100).far_id(2),
        ])
        .create_fars([
            CreateFar::new(1, ApplyAction::FORW).forwarding_parameters(to_core),
            CreateFar::new(2, ApplyAction::BUFF | ApplyAction::NOCP),
        ]);
    let request = Message::session(Seid(0), Sequence::new(1), request);

    // A buffer is used again and again; a message that no N4 peer may send stays out of it.
    let mut buffer = Vec::with_capacity(2048);
    request.encode_for(Interfaces::N4, &mut buffer)?;
    println!("{} bytes\n{request}", buffer.len());

    // The UPF reads the fields it needs directly from the bytes.
    let mut index = Index::new();
    let view = MessageView::decode(&buffer, &mut index)?;
    if let BodyView::SessionEstablishmentRequest(asked) = view.body() {
        for pdr in asked.create_pdrs() {
            let chosen = pdr.pdi().and_then(|pdi| pdi.local_f_teid());
            println!("{:?} asks for a tunnel: {}", pdr.pdr_id(), chosen.is_some());
        }
    }
    let created = CreatedPdr::new(1).f_teids([FTeid::new(0x1001, upf)]);
    let answer = SessionEstablishmentResponse::new(upf, Cause::REQUEST_ACCEPTED)
        .up_f_seid((0xa1, upf))
        .created_pdrs([created]);
    println!(
        "{}",
        Message::session(Seid(1), view.header().sequence, answer)
    );

    // The gNB's tunnel is known now: buffered packets go there.
    let tunnel = UpdateForwardingParameters::new()
        .destination_interface(DestinationInterface::ACCESS)
        .outer_header_creation(OuterHeaderCreation::from((0x2002, gnb)));
    let forward = UpdateFar::new(2)
        .apply_action(ApplyAction::FORW)
        .update_forwarding_parameters(tunnel);
    let change = SessionModificationRequest::new().update_fars([forward]);
    let change = Message::session(Seid(0xa1), Sequence::new(2), change);
    println!("{change}");
    let answer = SessionModificationResponse::new(Cause::REQUEST_ACCEPTED);
    println!("{}", Message::session(Seid(1), Sequence::new(2), answer));

    // The same session for another UE: only the elements that have to differ do.
    let mut other = request.clone();
    other.header.sequence = Sequence::new(3);
    if let strowger_pfcp::message::Body::SessionEstablishmentRequest(body) = &mut other.body {
        let other_ue: IpAddr = [10, 45, 0, 10].into();
        body.create_pdrs[1].pdi.ue_ip_addresses = vec![UeIpAddress::destination(other_ue)];
        body.create_fars.reverse();
    }
    for difference in request.differences(&other, &Ignore::nothing().sequences())? {
        println!("{difference}");
    }

    let end = SessionDeletionRequest::new();
    println!("{}", Message::session(Seid(0xa1), Sequence::new(4), end));
    let answer = SessionDeletionResponse::new(Cause::REQUEST_ACCEPTED);
    println!("{}", Message::session(Seid(1), Sequence::new(4), answer));
    Ok(())
}
