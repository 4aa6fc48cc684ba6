//! This repository's codec: a view with validation for reads, owned values for whatever is kept.

use std::net::IpAddr;

use strowger_pfcp::ie::{ApplyAction, CreateFar, CreatePdr, FSeid, NodeId, Pdi, SourceInterface};
use strowger_pfcp::message::{Body, BodyView, HeartbeatRequest, SessionEstablishmentRequest};
use strowger_pfcp::{Index, Interfaces, Message, MessageView, Seid, Sequence, validate};

use crate::codec::Codec;
use crate::message::{self, fold};

/// The codec of this repository.
pub struct Strowger;

impl Codec for Strowger {
    const NAME: &'static str = "strowger";
    type Scratch = Index;
    type Owned = Message;
    type Values = Message;
    type HeartbeatValues = Message;

    fn read(index: &mut Index, bytes: &[u8]) -> Option<u64> {
        let view = MessageView::decode(bytes, index).ok()?;
        validate(&view, Interfaces::N4).ok()?;
        let BodyView::SessionEstablishmentRequest(request) = view.body() else {
            return None;
        };
        let mut sum = 0;
        for pdr in request.create_pdrs() {
            sum = fold(sum, pdr.pdr_id()?.0.into());
            sum = fold(sum, pdr.precedence()?.0.into());
            sum = fold(sum, pdr.pdi()?.source_interface()?.0.into());
            sum = fold(sum, pdr.far_id()?.0.into());
        }
        for far in request.create_fars() {
            sum = fold(sum, far.far_id()?.0.into());
            sum = fold(sum, action(far.apply_action()?));
        }
        Some(sum)
    }

    fn decode(bytes: &[u8]) -> Option<Message> {
        Message::decode(bytes).ok()
    }

    fn fold(owned: &Message) -> u64 {
        let Body::SessionEstablishmentRequest(request) = &owned.body else {
            return 0;
        };
        let pdrs = request.create_pdrs.iter().fold(0, |sum, pdr| {
            let sum = fold(sum, pdr.pdr_id.0.into());
            let sum = fold(
                sum,
                pdr.precedence.map_or(0, |precedence| precedence.0).into(),
            );
            let sum = fold(sum, pdr.pdi.source_interface.0.into());
            fold(sum, pdr.far_id.map_or(0, |far| far.0).into())
        });
        request.create_fars.iter().fold(pdrs, |sum, far| {
            fold(fold(sum, far.far_id.0.into()), action(far.apply_action))
        })
    }

    fn values(pairs: usize) -> Message {
        let node = IpAddr::V4(message::NODE);
        let f_seid = FSeid::new(Seid(message::cp_seid(0)), node);
        let pdr = |pair: message::RulePair| {
            CreatePdr::new(pair.pdr, Pdi::new(SourceInterface::CORE))
                .precedence(pair.precedence)
                .far_id(pair.far)
        };
        let far = |pair: message::RulePair| CreateFar::new(pair.far, ApplyAction::BUFF);
        let request = SessionEstablishmentRequest::new(NodeId::from(node), f_seid)
            .create_pdrs(message::pairs(pairs, 0).map(pdr))
            .create_fars(message::pairs(pairs, 0).map(far));
        Message::session(
            Seid(message::SEID),
            Sequence::new(message::SEQUENCE),
            request,
        )
    }

    fn encode(values: &Message, buffer: &mut Vec<u8>) {
        values
            .encode_into(buffer)
            .expect("the values make a message");
    }

    fn read_heartbeat(index: &mut Index, bytes: &[u8]) -> Option<u32> {
        let view = MessageView::decode(bytes, index).ok()?;
        validate(&view, Interfaces::N4).ok()?;
        let BodyView::HeartbeatRequest(heartbeat) = view.body() else {
            return None;
        };
        Some(heartbeat.recovery_time_stamp()?.0)
    }

    fn heartbeat_values() -> Message {
        let heartbeat = HeartbeatRequest::new(message::RECOVERY);
        Message::node(Sequence::new(message::SEQUENCE), heartbeat)
    }

    fn encode_heartbeat(values: &Message, buffer: &mut Vec<u8>) {
        values
            .encode_into(buffer)
            .expect("the values make a message");
    }
}

/// The first byte of the flags, which is all that the message has.
fn action(action: ApplyAction) -> u64 {
    u64::from(action.contains(ApplyAction::BUFF)) * u64::from(message::ACTION)
}
