//! The rules of real peers: rules that a capture's user plane accepted are accepted, and kept in
//! full.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use strowger_pfcp::ie::{Cause, FTeid};
use strowger_pfcp::session::{Allocator, RuleSet, UeAddressRequest};
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid, frames};
use strowger_pfcp_node::CaptureReader;

/// Allocates tunnels and addresses in sequence.
#[derive(Default)]
struct Counter(u32);

impl Allocator for Counter {
    fn f_teid(&mut self, _: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        self.0 += 1;
        Ok(FTeid::new(self.0, IpAddr::from([127, 0, 0, 1])))
    }

    fn ue_address(
        &mut self,
        _: UeAddressRequest,
        _: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        self.0 += 1;
        Ok((Some(Ipv4Addr::from_bits(self.0)), None))
    }
}

#[derive(Default)]
struct Replay {
    allocator: Counter,
    /// Requests by both endpoints and sequence number.
    asked: HashMap<(IpAddr, IpAddr, u32), Vec<u8>>,
    sessions: HashMap<(IpAddr, Seid), RuleSet>,
    accepted: usize,
}

fn value<'a>(frame: &Frame<'a>, ie: IeType) -> Option<&'a [u8]> {
    let found = frame.tlvs().flatten().find(|tlv| tlv.ie == ie)?;
    Some(found.value)
}

impl Replay {
    fn message(&mut self, src: IpAddr, dst: IpAddr, frame: &Frame<'_>) {
        let Header {
            message_type,
            sequence,
            ..
        } = frame.header;
        if message_type.is_request() {
            let key = (src, dst, sequence.get());
            self.asked.insert(key, frame.bytes.to_vec());
            return;
        }
        let accepted = value(frame, IeType::CAUSE).is_some_and(|cause| cause == [1]);
        let Some(request) = self.asked.remove(&(dst, src, sequence.get())) else {
            return;
        };
        if !accepted {
            return;
        }
        let request = Frame::decode(&request).expect("a message");
        let session = (src, request.header.seid.unwrap_or_default());
        match message_type {
            MessageType::SESSION_ESTABLISHMENT_RESPONSE => {
                let seid = value(frame, IeType::F_SEID).expect("an F-SEID")[1..9].try_into();
                let seid = Seid(u64::from_be_bytes(seid.expect("eight bytes")));
                let change = RuleSet::establish(&request, &mut self.allocator);
                let change = change.unwrap_or_else(|refusal| panic!("{request:?}: {refusal}"));
                self.sessions.insert((src, seid), change.rules);
            }
            MessageType::SESSION_MODIFICATION_RESPONSE => {
                let Some(rules) = self.sessions.get_mut(&session) else {
                    return;
                };
                let change = rules.modify(&request, &mut self.allocator);
                *rules = change
                    .unwrap_or_else(|refusal| panic!("{request:?}: {refusal}"))
                    .rules;
                assert_eq!(RuleSet::restore(rules.bytes()).as_ref(), Ok(&*rules));
                for pdr in rules.pdrs() {
                    pdr.expect("typed");
                }
                for far in rules.fars() {
                    far.expect("typed");
                }
                for urr in rules.urrs() {
                    urr.expect("typed");
                }
                for qer in rules.qers() {
                    qer.expect("typed");
                }
                assert!(rules.f_teids().iter().all(|tunnel| !tunnel.choose));
            }
            MessageType::SESSION_DELETION_RESPONSE => {
                self.sessions.remove(&session);
            }
            _ => return,
        }
        self.accepted += 1;
    }
}

#[test]
fn rules_accepted_by_real_user_planes_are_accepted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pfcp/captures");
    for name in [
        "testregistration.pcapng",
        "testattach.pcapng",
        "srsenb.pcapng",
        "5g-roaming-lbo.pcapng",
        "tc1.pcap",
        "pfcpsim_vs_omec-upf.pcapng",
    ] {
        let mut replay = Replay::default();
        let Ok(capture) = CaptureReader::open(folder.join(name)) else {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{name} is missing"
            );
            println!("left out: {name} is missing");
            continue;
        };
        for datagram in capture {
            let datagram = datagram.expect("a readable capture");
            if !datagram.is_pfcp() || datagram.quoted {
                continue;
            }
            for frame in frames(&datagram.payload).flatten() {
                replay.message(datagram.src.ip(), datagram.dst.ip(), &frame);
            }
        }
        assert!(replay.accepted > 0, "{name} has sessions");
    }
}
