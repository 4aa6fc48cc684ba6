//! PFCP elements, simple, composite and grouped, encoded and decoded.

use std::fmt::Debug;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use strowger_benches::criterion;
use strowger_pfcp::ie::{
    ApplyAction, CreateFar, CreatePdr, DestinationInterface, FSeid, FTeid, FarId,
    ForwardingParameters, NodeId, OuterHeaderCreation, Pdi, PdrId, SourceInterface, UeIpAddress,
};
use strowger_pfcp::message::SessionEstablishmentRequest;
use strowger_pfcp::{Ie, Message, Seid, Sequence};

const NODE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Length of the header of an element: type and length.
const HEAD: usize = 4;

fn pdi() -> Pdi {
    Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::new(7, NODE))
}

fn create_pdr(id: u16) -> CreatePdr {
    CreatePdr::new(id, pdi()).precedence(100).far_id(1)
}

/// Encodes and decodes an element.
fn both<T: Ie + Debug + PartialEq>(c: &mut Criterion, name: &str, element: &T) {
    let mut bytes = Vec::new();
    element.encode_into(&mut bytes).expect("it is short");
    let again = T::decode(&bytes[HEAD..]).expect("it is well formed");
    assert_eq!(&again, element, "nothing is lost");
    let mut group = c.benchmark_group(format!("ie/{name}"));
    let mut buffer = Vec::with_capacity(bytes.len());
    group.bench_function("marshal", |b| {
        b.iter(|| {
            buffer.clear();
            black_box(element).encode_into(&mut buffer)
        });
        // Asserted in the closure, because a filter may skip this benchmark.
        assert_eq!(buffer, bytes, "the last bytes are the element");
    });
    group.bench_function("unmarshal", |b| {
        b.iter(|| T::decode(black_box(&bytes[HEAD..])))
    });
    group.finish();
}

/// Builders: a PDI and a FAR made from their parts, as a control plane does it.
fn builders(c: &mut Criterion) {
    let far = forwarding_far(black_box(2));
    let mut bytes = Vec::new();
    far.encode_into(&mut bytes).expect("it is short");
    let again = CreateFar::decode(&bytes[HEAD..]).expect("it is well formed");
    assert_eq!(again, far, "what is built is well-formed");
    let mut group = c.benchmark_group("builder");
    group.bench_function("pdi", |b| b.iter(|| uplink_pdi(black_box(7))));
    group.bench_function("far", |b| b.iter(|| forwarding_far(black_box(2))));
    group.finish();
}

/// Returns the PDI of uplink packets, with their tunnel, network and UE.
fn uplink_pdi(teid: u32) -> Pdi {
    let ue = Ipv4Addr::new(10, 60, 0, 1).into();
    Pdi::new(SourceInterface::ACCESS)
        .local_f_teid(FTeid::new(teid, NODE))
        .network_instance("internet")
        .ue_ip_addresses([UeIpAddress::source(ue)])
}

/// Returns the FAR of downlink packets, into a tunnel to the access network.
fn forwarding_far(id: u32) -> CreateFar {
    let tunnel = OuterHeaderCreation::from((7, NODE));
    let parameters = ForwardingParameters::new(DestinationInterface::ACCESS)
        .network_instance("internet")
        .outer_header_creation(tunnel);
    CreateFar::new(id, ApplyAction::FORW).forwarding_parameters(parameters)
}

fn elements(c: &mut Criterion) {
    both(c, "pdr_id", &PdrId(1));
    both(c, "far_id", &FarId(1));
    both(c, "node_id", &NodeId::from(NODE));
    both(c, "f_seid", &FSeid::new(Seid(1), NODE));
    both(c, "f_teid", &FTeid::new(7, NODE));
    both(c, "pdi", &pdi());
    both(c, "create_pdr", &create_pdr(1));
    both(c, "create_far", &CreateFar::new(1, ApplyAction::DROP));
    let mut group = c.benchmark_group("scalability");
    for size in [1_u16, 10, 50, 100] {
        let body = SessionEstablishmentRequest::new(NODE, (1, NODE))
            .create_pdrs((1..=size).map(create_pdr))
            .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
        let message = Message::session(Seid(0), Sequence::new(1), body);
        let bytes = message.encode().expect("it is short");
        let again = Message::decode(&bytes).expect("it is well formed");
        assert_eq!(again, message, "nothing is lost");
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let id = BenchmarkId::from_parameter(format!("{size}pdrs"));
        group.bench_function(id, |b| b.iter(|| Message::decode(black_box(&bytes))));
    }
    group.finish();
}

criterion_group! { name = group; config = criterion!(); targets = elements, builders }
