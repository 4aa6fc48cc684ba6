//! Responses about a session, and the addresses that its rules claim.

use std::net::IpAddr;

use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::{Cause, UeIpAddress};
use strowger_pfcp::session::{Refusal, RuleKind, RuleSet, UeDestination};
use strowger_pfcp::usage::FinalReports;
use strowger_pfcp::{Frame, IeType, MessageType, Seid};

use crate::pool::{AddressClaim, InstanceKey, Ipv6Prefix};
use crate::shared::Shared;
use crate::store::SessionRecord;

/// Returns the SEID that the peer assigns to the session.
pub(crate) fn peer_seid(frame: &Frame<'_>) -> Option<Seid> {
    let f_seid = frame
        .tlvs()
        .filter_map(Result::ok)
        .find(|tlv| tlv.ie == IeType::F_SEID)?;
    let seid = f_seid.value.get(1..9)?.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*seid)))
}

/// Returns the claims of a session: those of its rules, and the addresses that it keeps.
pub(crate) fn claims(record: &SessionRecord) -> Vec<AddressClaim> {
    let mut claims = claims_of_rules(&record.rules);
    claims.extend(&record.kept);
    claims
}

/// Returns the claims of the rules of a session: tunnels, and the addresses of its UE in the
/// network instances from which packets reach it. Sources of packets from the access side claim
/// nothing, so that the uplink classifier of a UE and its anchor can share a node, TS 23.501
/// §5.6.4.2.
pub(super) fn claims_of_rules(rules: &RuleSet) -> Vec<AddressClaim> {
    let mut claims = Vec::new();
    for tunnel in rules.f_teids() {
        let addresses = [tunnel.ipv4.map(IpAddr::V4), tunnel.ipv6.map(IpAddr::V6)];
        for address in addresses.into_iter().flatten() {
            claims.extend(tunnel.teid.map(|teid| AddressClaim::Teid { teid, address }));
        }
    }
    for destination in rules.ue_destinations() {
        claims.extend(claims_of_ue(&destination));
    }
    claims
}

/// Returns the claims of a UE address: at most one for each family.
pub(super) fn claims_of_ue(ue: &UeDestination<'_>) -> impl Iterator<Item = AddressClaim> + use<> {
    let instance = InstanceKey::of(ue.network_instance.unwrap_or_default());
    let ipv4 = ue.address.ipv4;
    let ipv4 = ipv4.map(|address| AddressClaim::Ue { instance, address });
    let prefix = prefix_of(&ue.address);
    let prefix = prefix.map(|prefix| AddressClaim::Prefix { instance, prefix });
    ipv4.into_iter().chain(prefix)
}

/// Returns those of `held` that a rule names and no rule claims; `claimed` are the claims of the
/// rules.
///
/// An address that the node chose for uplink rules alone must not be given to another session.
pub(super) fn kept(
    mut held: Vec<AddressClaim>,
    claimed: &[AddressClaim],
    rules: &RuleSet,
) -> Box<[AddressClaim]> {
    held.retain(|claim| !claimed.contains(claim));
    if held.is_empty() {
        return Box::default();
    }
    let named = rules.ue_addresses();
    held.retain(|claim| match *claim {
        AddressClaim::Teid { .. } => false,
        AddressClaim::Ue { address, .. } => named.iter().any(|ue| ue.ipv4 == Some(address)),
        AddressClaim::Prefix { prefix, .. } => named.iter().any(|ue| prefix_of(ue) == Some(prefix)),
    });
    held.into_boxed_slice()
}

/// Returns the IPv6 prefix of a UE: the one that IPv6D or IP6PL describes, or the /64 for which an
/// address without either stands, TS 29.244 §8.2.62.
pub(super) fn prefix_of(ue: &UeIpAddress) -> Option<Ipv6Prefix> {
    let address = ue.ipv6?;
    let is_described = ue.ipv6_prefix_length.is_some() || ue.ipv6_prefix_delegation_bits.is_some();
    let has_interface = address.to_bits() & u128::from(u64::MAX) != 0;
    let length = if !is_described && has_interface {
        // Some SMFs give each UE one address of a common /64. It cannot belong to two of them, so
        // the address alone is claimed.
        128
    } else {
        ue.prefix_length().unwrap_or(64)
    };
    Some(Ipv6Prefix::new(address, length))
}

/// Encodes the response that accepts an establishment.
pub(super) fn established(
    frame: &Frame<'_>,
    shared: &Shared,
    record: &SessionRecord,
    created: &[u8],
) -> Vec<u8> {
    let f_seid = f_seid(record.seid, record.owner.local);
    let body = BodyBuilder::new()
        .node(&shared.name)
        .cause(Cause::REQUEST_ACCEPTED)
        .with(IeType::F_SEID, &f_seid)
        .bytes(created);
    encode_response(frame, Some(record.peer_seid), &body)
}

/// Encodes the response that accepts a modification.
pub(super) fn modified(frame: &Frame<'_>, record: &SessionRecord, created: &[u8]) -> Vec<u8> {
    let body = BodyBuilder::new()
        .cause(Cause::REQUEST_ACCEPTED)
        .bytes(created);
    encode_response(frame, Some(record.peer_seid), &body)
}

/// Encodes the response that accepts a deletion.
pub(super) fn deleted(frame: &Frame<'_>, record: &SessionRecord, finals: &FinalReports) -> Vec<u8> {
    let body = BodyBuilder::new()
        .cause(Cause::REQUEST_ACCEPTED)
        .bytes(&finals.elements);
    encode_response(frame, Some(record.peer_seid), &body)
}

/// Encodes a rejection; the SEID in its header is 0 if `peer_seid` is `None`.
pub(crate) fn refusal_message(
    frame: &Frame<'_>,
    shared: &Shared,
    peer_seid: Option<Seid>,
    refusal: &Refusal,
) -> Vec<u8> {
    let mut body = BodyBuilder::new();
    if frame.header.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST {
        body = body.node(&shared.name);
    }
    let body = body.refusal(refusal);
    encode_response(frame, peer_seid, &body)
}

fn encode_response(frame: &Frame<'_>, peer_seid: Option<Seid>, body: &BodyBuilder) -> Vec<u8> {
    message(&answer_header(&frame.header, peer_seid), body.as_slice()).unwrap_or_default()
}

fn f_seid(seid: Seid, address: IpAddr) -> Vec<u8> {
    let mut value = vec![if address.is_ipv4() { 0x02 } else { 0x01 }];
    value.extend_from_slice(&seid.0.to_be_bytes());
    match address {
        IpAddr::V4(address) => value.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => value.extend_from_slice(&address.octets()),
    }
    value
}

/// The identifiers and claims of the rules of a session.
#[derive(Debug, Default)]
pub(crate) struct RuleIds {
    pub(crate) pdrs: Vec<u32>,
    pub(crate) fars: Vec<u32>,
    pub(crate) urrs: Vec<u32>,
    pub(crate) qers: Vec<u32>,
    pub(crate) claims: Vec<AddressClaim>,
    pub(crate) ue_addresses: Vec<IpAddr>,
}

/// Returns the identifiers and claims of the rules of a session.
pub(crate) fn rule_ids(record: &SessionRecord) -> RuleIds {
    let rules = &record.rules;
    let of = |kind| rules.rules(kind).map(|rule| rule.id.id).collect();
    let mut claims = claims(record);
    claims.sort_unstable();
    claims.dedup();
    let given = rules.ue_addresses();
    let families = given
        .iter()
        .map(|ue| [ue.ipv4.map(IpAddr::V4), ue.ipv6.map(IpAddr::V6)]);
    let mut ue_addresses: Vec<IpAddr> = families.flatten().flatten().collect();
    ue_addresses.sort_unstable();
    ue_addresses.dedup();
    RuleIds {
        pdrs: of(RuleKind::Pdr),
        fars: of(RuleKind::Far),
        urrs: of(RuleKind::Urr),
        qers: of(RuleKind::Qer),
        claims,
        ue_addresses,
    }
}
