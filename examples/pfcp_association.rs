//! An SMF and a UPF set up an association, update it, and release it; a request that lacks a
//! mandatory element is rejected with the name of the element.
//!
//! `cargo run -p strowger-examples pfcp_association`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::IpAddr;

use strowger_pfcp::ie::{
    Cause, CpFunctionFeatures, GracefulReleasePeriod, PfcpAssociationReleaseRequest, TimerUnit,
    UpFunctionFeatures,
};
use strowger_pfcp::message::{
    AssociationReleaseRequest, AssociationReleaseResponse, AssociationSetupRequest,
    AssociationSetupResponse, AssociationUpdateRequest, AssociationUpdateResponse,
};
use strowger_pfcp::{Index, Interfaces, Message, MessageView, Sequence, validate};

const STARTED: u32 = 0xee00_0000;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let smf: IpAddr = [192, 0, 2, 1].into();
    let upf: IpAddr = [192, 0, 2, 7].into();

    let setup = AssociationSetupRequest::new(smf, STARTED)
        .cp_function_features(CpFunctionFeatures::LOAD | CpFunctionFeatures::BUNDL);
    let setup = Message::node(Sequence::new(1), setup);
    println!("{setup}");
    let answer = AssociationSetupResponse::new(upf, Cause::REQUEST_ACCEPTED, STARTED)
        .up_function_features(UpFunctionFeatures::FTUP | UpFunctionFeatures::BUCP);
    println!("{}", Message::node(setup.header.sequence, answer));

    // A peer can send messages that the constructors would not allow. Validation returns the
    // interfaces on which a message is acceptable, or the reason why there are none.
    let bytes = [0x20, 5, 0, 12, 0, 0, 2, 0, 0, 96, 0, 4, 0xee, 0, 0, 0];
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index)?;
    match validate(&view, Interfaces::N4) {
        Ok(on) => println!("acceptable on {on}"),
        Err(rejection) => {
            println!("refused: {rejection}");
            let refusal = AssociationSetupResponse::new(upf, rejection.cause, STARTED);
            println!("{}", Message::node(view.header().sequence, refusal));
        }
    }

    // The UPF has to leave, and asks for the time that its sessions need.
    let leaving = PfcpAssociationReleaseRequest::SARR;
    let update = AssociationUpdateRequest::new(upf)
        .pfcp_association_release_request(leaving)
        .graceful_release_period(GracefulReleasePeriod {
            timer_value: 5,
            timer_unit: TimerUnit::MINUTE,
        });
    let update = Message::node(Sequence::new(9), update);
    println!("{update}");
    let answer = AssociationUpdateResponse::new(smf, Cause::REQUEST_ACCEPTED);
    println!("{}", Message::node(update.header.sequence, answer));

    let release = Message::node(Sequence::new(3), AssociationReleaseRequest::new(smf));
    println!("{release}");
    let answer = AssociationReleaseResponse::new(upf, Cause::REQUEST_ACCEPTED);
    println!("{}", Message::node(release.header.sequence, answer));
    Ok(())
}
