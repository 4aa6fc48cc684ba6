//! Values that a clause forbids, and known deviations, against a live node and a client.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_pfcp::endpoint::BodyBuilder;
use strowger_pfcp::ie::{Cause, FSeid, Ie as _};
use strowger_pfcp::validate::Deviation;
use strowger_pfcp::{Frame, IeType, Message, MessageType};
use strowger_pfcp_node::{
    Association, Client, ClientConfig, ClientError, Load, LoadPace, LoadPlan, Node, NodeConfig,
    NodeHandle, SessionRules,
};

async fn bench() -> (ActorSystem, NodeHandle, Association) {
    let system = ActorSystem::new("test").unwrap();
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    let node = Node::start(&system, config).await.unwrap();
    let peer = client(&system).await.associate(node.local_addr()).await;
    (system, node, peer.unwrap())
}

async fn client(system: &ActorSystem) -> Client {
    let mut config = ClientConfig::default();
    config.listen = (Ipv4Addr::new(127, 0, 0, 2), 0).into();
    (config.t1, config.n1) = (Duration::from_millis(100), 300);
    Client::bind(system, config).await.unwrap()
}

fn ue() -> IpAddr {
    Ipv4Addr::new(10, 46, 0, 1).into()
}

fn far(action: &[u8], header: Option<&[u8]>) -> BodyBuilder {
    let far = BodyBuilder::new()
        .with(IeType::FAR_ID, &[0, 0, 0, 77])
        .with(IeType::APPLY_ACTION, action);
    let far = match header {
        Some(header) => {
            let parameters = BodyBuilder::new()
                .with(IeType::DESTINATION_INTERFACE, &[0])
                .with(IeType::OUTER_HEADER_CREATION, header);
            far.with(IeType::FORWARDING_PARAMETERS, parameters.as_slice())
        }
        None => far,
    };
    BodyBuilder::new().with(IeType::CREATE_FAR, far.as_slice())
}

fn pdr(ie: IeType, value: &[u8]) -> BodyBuilder {
    let pdi = BodyBuilder::new()
        .with(IeType::SOURCE_INTERFACE, &[0])
        .with(ie, value);
    let pdr = BodyBuilder::new()
        .with(IeType::PDR_ID, &[0, 77])
        .with(IeType::PRECEDENCE, &[0, 0, 0, 1])
        .with(IeType::PDI, pdi.as_slice())
        .with(IeType::FAR_ID, &[0, 0, 0, 1]);
    BodyBuilder::new().with(IeType::CREATE_PDR, pdr.as_slice())
}

fn seid(value: &[u8]) -> BodyBuilder {
    BodyBuilder::new().with(IeType::F_SEID, value)
}

/// The cause of an answer, and the element that it names.
fn said(answer: &Message) -> (Cause, Option<IeType>) {
    let bytes = answer.encode().unwrap();
    let frame = Frame::decode(&bytes).unwrap();
    let find = |ie| frame.tlvs().map(Result::unwrap).find(|tlv| tlv.ie == ie);
    let cause = Cause(find(IeType::CAUSE).unwrap().value[0]);
    let offending = find(IeType::OFFENDING_IE)
        .map(|tlv| IeType(u16::from_be_bytes([tlv.value[0], tlv.value[1]])));
    (cause, offending)
}

#[tokio::test]
async fn node_refuses_forbidden_values() {
    let (system, node, peer) = bench().await;
    let session = peer
        .establish(SessionRules::pdu_session(ue()))
        .await
        .unwrap();
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    let accepted = Cause::REQUEST_ACCEPTED;
    let rows: [(BodyBuilder, Option<IeType>); 13] = [
        (far(&[0], None), Some(IeType::APPLY_ACTION)),
        (
            far(&[3], Some(&[1, 0, 0, 0, 0, 1, 127, 0, 0, 1])),
            Some(IeType::APPLY_ACTION),
        ),
        (
            far(&[2], Some(&[0, 0])),
            Some(IeType::OUTER_HEADER_CREATION),
        ),
        (
            pdr(IeType::UE_IP_ADDRESS, &[0]),
            Some(IeType::UE_IP_ADDRESS),
        ),
        (
            pdr(IeType::UE_IP_ADDRESS, &[4]),
            Some(IeType::UE_IP_ADDRESS),
        ),
        (pdr(IeType::F_TEID, &[0, 0, 0, 0, 9]), Some(IeType::F_TEID)),
        (seid(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), Some(IeType::F_SEID)),
        // Their valid neighbours.
        (far(&[1], None), None),
        (
            BodyBuilder::new().with(IeType::REMOVE_FAR, &[0, 108, 0, 4, 0, 0, 0, 77]),
            None,
        ),
        (far(&[2], Some(&[1, 0, 0, 0, 0, 1, 127, 0, 0, 1])), None),
        (pdr(IeType::UE_IP_ADDRESS, &[2, 10, 46, 0, 1]), None),
        (
            BodyBuilder::new().with(IeType::REMOVE_PDR, &[0, 56, 0, 2, 0, 77]),
            None,
        ),
        (seid(&[2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 2]), None),
    ];
    for (request, wrong) in rows {
        let answer = peer.send(kind, session.remote_seid(), request.as_slice());
        let said = said(&answer.await.unwrap());
        let expected = match wrong {
            Some(ie) => (Cause::MANDATORY_IE_INCORRECT, Some(ie)),
            None => (accepted, None),
        };
        assert_eq!(said, expected, "{request:02x?}");
    }
    assert!(node.stats().deviations.iter().all(|(_, count)| *count == 0));
    system.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn unversioned_tunnel_is_allocated_and_counted() {
    let (system, node, peer) = bench().await;
    let session = peer
        .establish(SessionRules::pdu_session(ue()))
        .await
        .unwrap();
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    let counted = || {
        let deviations = node.stats().deviations;
        let mut of = deviations
            .iter()
            .filter(|(one, _)| *one == Deviation::UnversionedTunnel);
        of.next().unwrap().1
    };
    for (value, count) in [(&[5][..], 0), (&[4], 1), (&[4], 2)] {
        let request = pdr(IeType::F_TEID, value);
        let answer = peer.send(kind, session.remote_seid(), request.as_slice());
        let answer = answer.await.unwrap();
        assert_eq!(said(&answer), (Cause::REQUEST_ACCEPTED, None), "{value:?}");
        let bytes = answer.encode().unwrap();
        let frame = Frame::decode(&bytes).unwrap();
        let mut tlvs = frame.tlvs().map(Result::unwrap);
        let created = tlvs.find(|tlv| tlv.ie == IeType::CREATED_PDR).unwrap();
        // The PDR ID, then an F-TEID over IPv4.
        assert_eq!(created.value[6..11], [0, 21, 0, 9, 1]);
        assert_eq!(counted(), count);
        let remove = BodyBuilder::new().with(IeType::REMOVE_PDR, &[0, 56, 0, 2, 0, 77]);
        let removed = peer.send(kind, session.remote_seid(), remove.as_slice());
        assert_eq!(said(&removed.await.unwrap()).0, Cause::REQUEST_ACCEPTED);
    }
    system.shutdown(Duration::from_secs(10)).await;
}

/// A user plane that answers each request with the body that a closure returns, and ends with the
/// test.
fn user_plane(answer: impl Fn(MessageType) -> BodyBuilder + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        // The SEID of the last session that the client requested.
        let mut client = strowger_pfcp::Seid(0);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let Ok(frame) = Frame::decode(&buffer[..length]) else {
                continue;
            };
            let mut tlvs = frame.tlvs().map_while(Result::ok);
            if let Some(f_seid) = tlvs.find(|tlv| tlv.ie == IeType::F_SEID) {
                client = FSeid::decode(f_seid.value).unwrap().seid.into();
            }
            let seid = frame.header.seid.map(|_| client);
            let header = strowger_pfcp::endpoint::answer_header(&frame.header, seid);
            let body = answer(frame.header.message_type);
            let bytes = strowger_pfcp::endpoint::message(&header, body.as_slice()).unwrap();
            let _ = socket.send_to(&bytes, from);
        }
    });
    address
}

fn setup() -> BodyBuilder {
    BodyBuilder::new()
        .with(IeType::NODE_ID, &[0, 127, 0, 0, 1])
        .cause(Cause::REQUEST_ACCEPTED)
        .with(IeType::RECOVERY_TIME_STAMP, &[0, 0, 0, 1])
}

fn refused(error: &ClientError) -> Option<(Cause, Option<IeType>)> {
    match error {
        ClientError::Refused {
            cause,
            offending_ie,
            ..
        } => Some((*cause, *offending_ie)),
        _ => None,
    }
}

#[tokio::test]
async fn client_accepts_bare_rejection() {
    let system = ActorSystem::new("test").unwrap();
    let client = client(&system).await;
    let started = Instant::now();
    // Neither a Node ID nor a Recovery Time Stamp.
    let busy = user_plane(|_| BodyBuilder::new().cause(Cause::NO_RESOURCES_AVAILABLE));
    let error = client.associate(busy).await.unwrap_err();
    assert_eq!(
        refused(&error),
        Some((Cause::NO_RESOURCES_AVAILABLE, None)),
        "{error}"
    );
    // No Node ID, with and without the offending element.
    let bare = user_plane(|kind| match kind {
        MessageType::SESSION_ESTABLISHMENT_REQUEST => BodyBuilder::new()
            .cause(Cause::MANDATORY_IE_INCORRECT)
            .with(IeType::OFFENDING_IE, &[0, 44]),
        _ => setup(),
    });
    let peer = client.associate(bare).await.unwrap();
    let error = peer
        .establish(SessionRules::pdu_session(ue()))
        .await
        .unwrap_err();
    let expected = (Cause::MANDATORY_IE_INCORRECT, Some(IeType::APPLY_ACTION));
    assert_eq!(refused(&error), Some(expected), "{error}");
    // A response that accepts must name its sender and an identifier.
    let careless = user_plane(|kind| match kind {
        MessageType::SESSION_ESTABLISHMENT_REQUEST => {
            BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED)
        }
        _ => setup(),
    });
    let peer = client.associate(careless).await.unwrap();
    let error = peer
        .establish(SessionRules::pdu_session(ue()))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Answer { .. }), "{error}");
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "it did not wait"
    );
    system.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn client_accepts_short_bridge_id() {
    let system = ActorSystem::new("test").unwrap();
    let client = client(&system).await;
    // The MAC address of a bridge, where a clause asks for eight bytes.
    let bridge = [&[0, 198, 0, 7, 1][..], &[0, 0, 0x5e, 0, 0x53, 1]].concat();
    let bridged = user_plane(move |kind| match kind {
        MessageType::SESSION_ESTABLISHMENT_REQUEST => BodyBuilder::new()
            .with(IeType::NODE_ID, &[0, 127, 0, 0, 1])
            .cause(Cause::REQUEST_ACCEPTED)
            .with(IeType::F_SEID, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 1])
            .with(IeType(195), &bridge),
        _ => setup(),
    });
    let peer = client.associate(bridged).await.unwrap();
    let session = peer.establish(SessionRules::pdu_session(ue())).await;
    assert!(session.is_ok(), "{:?}", session.err());
    system.shutdown(Duration::from_secs(10)).await;
}

/// Elements that an answer which accepts must have are named when they are missing.
#[tokio::test]
async fn client_names_what_a_setup_response_lacks() {
    let system = ActorSystem::new("test").unwrap();
    let client = client(&system).await;
    let node = || BodyBuilder::new().with(IeType::NODE_ID, &[0, 127, 0, 0, 1]);
    let stamp: &[u8] = &[0, 0, 0, 1];
    let recovery = IeType::RECOVERY_TIME_STAMP;
    let without_node = BodyBuilder::new()
        .cause(Cause::REQUEST_ACCEPTED)
        .with(recovery, stamp);
    for (body, ie) in [
        (without_node, IeType::NODE_ID),
        (node().with(recovery, stamp), IeType::CAUSE),
        (node().cause(Cause::REQUEST_ACCEPTED), recovery),
        (
            node().cause(Cause::REQUEST_ACCEPTED).with(recovery, &[1]),
            recovery,
        ),
    ] {
        let upf = user_plane(move |_| body.clone());
        let error = client.associate(upf).await.unwrap_err();
        assert!(
            matches!(error, ClientError::InvalidAnswer { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(&ie.to_string()), "{error}");
    }
    system.shutdown(Duration::from_secs(10)).await;
}

/// Sessions that a load can neither change nor delete are counted, and do not count as established.
#[tokio::test]
async fn load_counts_acceptances_without_usable_f_seid() {
    let f_seids: [Option<&[u8]>; 4] = [
        None,
        Some(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1]),
        Some(&[0, 0, 0, 0, 0, 0, 0, 0, 9]),
        Some(&[2, 0, 0, 0, 0, 0, 0, 0, 9]),
    ];
    for f_seid in f_seids {
        let upf = user_plane(move |kind| match kind {
            MessageType::ASSOCIATION_SETUP_REQUEST => setup(),
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                let body = BodyBuilder::new()
                    .with(IeType::NODE_ID, &[0, 127, 0, 0, 1])
                    .cause(Cause::REQUEST_ACCEPTED);
                match f_seid {
                    Some(value) => body.with(IeType::F_SEID, value),
                    None => body,
                }
            }
            _ => BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED),
        });
        let system = ActorSystem::new("load").unwrap();
        let mut plan = LoadPlan::new(upf);
        plan.pace = LoadPace::Rate(100.0);
        plan.sessions = 10;
        let load = Load::start(&system, plan).await.unwrap();
        while load.snapshot().invalid < 3 {
            load.held().await.unwrap();
            tokio::task::yield_now().await;
        }
        load.stop();
        let stats = load.finished().await;
        assert_eq!((stats.established, stats.held), (0, 0), "{f_seid:?}");
        assert_eq!(stats.invalid, stats.accepted, "{f_seid:?}");
    }
}
