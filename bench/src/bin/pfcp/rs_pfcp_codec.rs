//! `rs-pfcp`: its messages hold rules as bytes, so reading them as typed values is a second step.

use std::time::{Duration, SystemTime};

use rs_pfcp::ie::Ie;
use rs_pfcp::ie::apply_action::ApplyAction;
use rs_pfcp::ie::create_far::CreateFar;
use rs_pfcp::ie::create_pdr::CreatePdr;
use rs_pfcp::ie::far_id::FarId;
use rs_pfcp::ie::pdi::Pdi;
use rs_pfcp::ie::pdr_id::PdrId;
use rs_pfcp::ie::precedence::Precedence;
use rs_pfcp::ie::source_interface::{SourceInterface, SourceInterfaceValue};
use rs_pfcp::message::Message;
use rs_pfcp::message::heartbeat_request::{HeartbeatRequest, HeartbeatRequestBuilder};
use rs_pfcp::message::session_establishment_request::{
    SessionEstablishmentRequest, SessionEstablishmentRequestBuilder,
};

use crate::codec::Codec;
use crate::message::{self, fold};

/// The codec of `rs-pfcp`.
pub struct RsPfcp;

/// A message with its rules typed.
pub struct TypedMessage {
    request: SessionEstablishmentRequest,
    pdrs: Vec<CreatePdr>,
    fars: Vec<CreateFar>,
}

/// Seconds from 1900 to 1970.
const NTP_TO_UNIX: u64 = 2_208_988_800;

impl Codec for RsPfcp {
    const NAME: &'static str = "rs-pfcp";
    type Scratch = ();
    type Owned = TypedMessage;
    type Values = (Vec<CreatePdr>, Vec<CreateFar>);
    type HeartbeatValues = SystemTime;

    fn read((): &mut (), bytes: &[u8]) -> Option<u64> {
        let request = SessionEstablishmentRequest::unmarshal(bytes).ok()?;
        let mut sum = 0;
        for rule in &request.create_pdrs {
            sum = fold_pdr(sum, &CreatePdr::unmarshal(&rule.payload).ok()?);
        }
        for rule in &request.create_fars {
            sum = fold_far(sum, &CreateFar::unmarshal(&rule.payload).ok()?);
        }
        Some(sum)
    }

    fn decode(bytes: &[u8]) -> Option<TypedMessage> {
        let request = SessionEstablishmentRequest::unmarshal(bytes).ok()?;
        let pdr = |rule: &Ie| CreatePdr::unmarshal(&rule.payload).ok();
        let pdrs = request.create_pdrs.iter().map(pdr).collect::<Option<_>>()?;
        let far = |rule: &Ie| CreateFar::unmarshal(&rule.payload).ok();
        let fars = request.create_fars.iter().map(far).collect::<Option<_>>()?;
        Some(TypedMessage {
            request,
            pdrs,
            fars,
        })
    }

    fn fold(owned: &TypedMessage) -> u64 {
        assert_eq!(
            owned.request.create_pdrs.len(),
            owned.pdrs.len(),
            "every rule is typed"
        );
        owned
            .fars
            .iter()
            .fold(owned.pdrs.iter().fold(0, fold_pdr), fold_far)
    }

    fn values(pairs: usize) -> Self::Values {
        let interface = || SourceInterface::new(SourceInterfaceValue::Core);
        let pdr = |pair: message::RulePair| {
            let precedence = Precedence::new(pair.precedence);
            let mut pdr = CreatePdr::new(PdrId::new(pair.pdr), precedence, Pdi::new(interface()));
            pdr.far_id = Some(FarId::new(pair.far));
            pdr
        };
        let far = |pair: message::RulePair| {
            CreateFar::new(FarId::new(pair.far), ApplyAction::new(message::ACTION))
        };
        (
            message::pairs(pairs, 0).map(pdr).collect(),
            message::pairs(pairs, 0).map(far).collect(),
        )
    }

    fn encode((pdrs, fars): &Self::Values, buffer: &mut Vec<u8>) {
        SessionEstablishmentRequestBuilder::new(message::SEID, message::SEQUENCE)
            .node_id(message::NODE)
            .fseid(message::cp_seid(0), message::NODE)
            .create_pdrs(pdrs.iter().map(CreatePdr::to_ie).collect())
            .create_fars(fars.iter().map(CreateFar::to_ie).collect())
            .build()
            .expect("the values make a message")
            .marshal_into(buffer);
    }

    fn read_heartbeat((): &mut (), bytes: &[u8]) -> Option<u32> {
        let request = HeartbeatRequest::unmarshal(bytes).ok()?;
        Some(request.recovery_time_stamp().ok()?.ntp_seconds())
    }

    fn heartbeat_values() -> SystemTime {
        let seconds = u64::from(message::RECOVERY) - NTP_TO_UNIX;
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn encode_heartbeat(time: &SystemTime, buffer: &mut Vec<u8>) {
        HeartbeatRequestBuilder::new(message::SEQUENCE)
            .recovery_time_stamp(*time)
            .build()
            .marshal_into(buffer);
    }
}

fn fold_pdr(sum: u64, pdr: &CreatePdr) -> u64 {
    let sum = fold(sum, pdr.pdr_id.value.into());
    let sum = fold(sum, pdr.precedence.value.into());
    let sum = fold(sum, pdr.pdi.source_interface.value as u64);
    fold(sum, pdr.far_id.map_or(0, |far| far.value).into())
}

fn fold_far(sum: u64, far: &CreateFar) -> u64 {
    let action = far
        .apply_action
        .octets()
        .first()
        .copied()
        .unwrap_or_default();
    fold(fold(sum, far.far_id.value.into()), action.into())
}
