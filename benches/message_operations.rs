//! PFCP messages: bytes from values, values from bytes, and both.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use criterion::{Criterion, Throughput, criterion_group};
use strowger_benches::criterion;
use strowger_pfcp::ie::{ApplyAction, CreateFar, CreatePdr, FTeid, Pdi, SourceInterface};
use strowger_pfcp::message::{HeartbeatRequest, SessionEstablishmentRequest};
use strowger_pfcp::{Index, Interfaces, Message, MessageView, Seid, Sequence, validate};

const NODE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn heartbeat() -> Message {
    Message::node(Sequence::new(1), HeartbeatRequest::new(0xe000_0000))
}

fn heartbeat_from_an_address() -> Message {
    let body = HeartbeatRequest::new(0xe000_0000).source_ip_address(NODE);
    Message::node(Sequence::new(1), body)
}

/// Returns a request with the same number of Create PDR and Create FAR.
fn establishment(size: u16) -> Message {
    let pdr = |id: u16| {
        let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::new(id.into(), NODE));
        CreatePdr::new(id, pdi)
            .precedence(100)
            .far_id(u32::from(id))
    };
    let far = |id: u16| CreateFar::new(u32::from(id), ApplyAction::DROP);
    let body = SessionEstablishmentRequest::new(NODE, (1, NODE))
        .create_pdrs((1..=size).map(pdr))
        .create_fars((1..=size).map(far));
    Message::session(Seid(0), Sequence::new(1), body)
}

/// Marshal, unmarshal and round trip of a message; the timed operations are asserted first.
fn operations(c: &mut Criterion, name: &str, message: &Message) {
    let bytes = message.encode().expect("it is short");
    let again = Message::decode(&bytes).expect("it is well formed");
    assert_eq!(&again, message, "nothing is lost");
    let view = MessageView::decode(&bytes, &mut Index::new()).map(|view| {
        assert!(validate(&view, Interfaces::N4).is_ok(), "it is acceptable");
    });
    assert!(view.is_ok(), "it is well-formed");
    let size = Throughput::Bytes(bytes.len() as u64);
    let mut buffer = Vec::with_capacity(bytes.len());
    let mut group = c.benchmark_group("marshal");
    group.throughput(size.clone());
    group.bench_function(name, |b| {
        b.iter(|| {
            buffer.clear();
            black_box(message).encode_into(&mut buffer)
        });
        // Asserted in the closure, because a filter may skip this benchmark.
        assert_eq!(buffer, bytes, "the last bytes are the message");
    });
    group.finish();
    let mut group = c.benchmark_group("unmarshal");
    group.throughput(size.clone());
    group.bench_function(name, |b| b.iter(|| Message::decode(black_box(&bytes))));
    group.finish();
    let mut group = c.benchmark_group("roundtrip");
    group.throughput(size);
    group.bench_function(name, |b| {
        b.iter(|| {
            buffer.clear();
            black_box(message).encode_into(&mut buffer)?;
            Message::decode(&buffer)
        });
    });
    group.finish();
    let mut group = c.benchmark_group("view");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function(name, |b| {
        // The steps of a node before it looks at a request: find its end, index it and validate it.
        let mut index = Index::new();
        b.iter(|| {
            let view = MessageView::decode(black_box(&bytes), &mut index)?;
            Ok::<bool, strowger_pfcp::Error>(validate(&view, Interfaces::N4).is_ok())
        });
    });
    group.finish();
}

fn messages(c: &mut Criterion) {
    operations(c, "heartbeat_minimal", &heartbeat());
    operations(c, "heartbeat_with_timestamp", &heartbeat_from_an_address());
    for size in [1, 5, 10, 50] {
        let name = format!("session_establishment/{size}pdrs_{size}fars");
        operations(c, &name, &establishment(size));
    }
    let built = establishment(1).encode_for(Interfaces::N4, &mut Vec::new());
    assert!(built.is_ok(), "what is built is acceptable");
    let mut group = c.benchmark_group("builder");
    group.bench_function("session_establishment_1pdr_1far", |b| {
        b.iter(|| establishment(black_box(1)));
    });
    group.finish();
    let bytes = establishment(1).encode().expect("it is short");
    let mut group = c.benchmark_group("parse");
    group.bench_function("generic", |b| {
        // One walk over a message of any type: finds every element and checks its length.
        let mut index = Index::new();
        let found = MessageView::decode(&bytes, &mut index).map(|view| view.root().parts().count());
        assert_eq!(found, Ok(4), "Node ID, F-SEID, Create PDR, Create FAR");
        b.iter(|| MessageView::decode(black_box(&bytes), &mut index).is_ok());
    });
    group.finish();
}

criterion_group! { name = group; config = criterion!(); targets = messages }
