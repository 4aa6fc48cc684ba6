//! `strowger pfcp load` and `robustness` against a node that is as strict as the UPF of Open5GS: it
//! cannot resolve names, and accepts no session without a PDN Type.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};

use strowger_pfcp::ie::Cause;
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, Header, IeType, MessageType, frames};

use crate::binary::strowger;
use crate::peer::value;

/// A node in the UP role that runs until it is dropped.
struct StrictUpf {
    address: SocketAddr,
    answering: Option<JoinHandle<Vec<Vec<u8>>>>,
}

/// A byte that starts no message: a request to close the socket.
const STOP: [u8; 1] = [0];

impl StrictUpf {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        let address = socket.local_addr().expect("bound");
        let answering = thread::spawn(move || serve(&socket));
        Self {
            address,
            answering: Some(answering),
        }
    }

    /// Stops the node; returns the establishments that it accepted.
    fn accepted(mut self) -> Vec<Vec<u8>> {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        socket.send_to(&STOP, self.address).expect("it takes it");
        let answering = self.answering.take().expect("stopped once");
        answering.join().expect("the answers were sent")
    }
}

fn serve(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let (mut accepted, mut last) = (Vec::new(), 0);
    let mut buffer = vec![0; 65_536];
    loop {
        let (length, peer) = match socket.recv_from(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            received => received.expect("the socket is open"),
        };
        if buffer[..length] == STOP {
            return accepted;
        }
        for frame in frames(&buffer[..length]).filter_map(Result::ok) {
            if !frame.header.message_type.is_request() {
                continue;
            }
            let cause = check_request(frame.bytes);
            let answer = answer(&frame, cause, &mut last);
            if cause == Cause::REQUEST_ACCEPTED
                && frame.header.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST
            {
                accepted.push(frame.bytes.to_vec());
            }
            socket.send_to(&answer, peer).expect("the peer is there");
        }
    }
}

fn check_request(bytes: &[u8]) -> Cause {
    let kind = bytes.get(1).copied().map(MessageType);
    let is_named = value(bytes, IeType::NODE_ID).is_some_and(|node| node.first() == Some(&2));
    match kind {
        Some(MessageType::ASSOCIATION_SETUP_REQUEST) if is_named => Cause::REQUEST_REJECTED,
        Some(MessageType::SESSION_ESTABLISHMENT_REQUEST)
            if is_named || value(bytes, IeType::PDN_TYPE).is_none() =>
        {
            Cause::CONDITIONAL_IE_MISSING
        }
        _ => Cause::REQUEST_ACCEPTED,
    }
}

fn answer(request: &Frame<'_>, cause: Cause, last: &mut u64) -> Vec<u8> {
    let kind = request.header.message_type;
    let mut body = match kind {
        MessageType::HEARTBEAT_REQUEST => vec![0, 96, 0, 4, 1, 2, 3, 4],
        _ => vec![0, 60, 0, 5, 0, 127, 0, 0, 1, 0, 19, 0, 1, cause.0],
    };
    match kind {
        // A Recovery Time Stamp, and the feature FTUP.
        MessageType::ASSOCIATION_SETUP_REQUEST => {
            body.extend_from_slice(&[0, 96, 0, 4, 1, 2, 3, 4, 0, 43, 0, 2, 0x10, 0]);
        }
        MessageType::SESSION_ESTABLISHMENT_REQUEST => {
            *last += 1;
            body.extend_from_slice(&[0, 57, 0, 13, 2]);
            body.extend_from_slice(&last.to_be_bytes());
            body.extend_from_slice(&[127, 0, 0, 1]);
        }
        _ => {}
    }
    let header = Header {
        message_type: MessageType(kind.0 + 1),
        ..request.header
    };
    let mut bytes = Vec::new();
    header.encode(body.len(), &mut bytes).expect("short");
    bytes.extend_from_slice(&body);
    bytes
}

/// The values of an element in the PDIs of an establishment.
fn in_pdis(bytes: &[u8], wanted: IeType) -> Vec<Vec<u8>> {
    let frame = Frame::decode(bytes).expect("it was accepted");
    let of = |ie: IeType, bytes: Vec<u8>| -> Vec<Vec<u8>> {
        let found = Tlvs::new(&bytes).map(|tlv| tlv.expect("whole"));
        let found = found.filter(|tlv| tlv.ie == ie);
        found.map(|tlv| tlv.value.to_vec()).collect()
    };
    let pdrs = of(IeType::CREATE_PDR, frame.body.to_vec()).into_iter();
    let pdis = pdrs.flat_map(|pdr| of(IeType::PDI, pdr));
    pdis.flat_map(|pdi| of(wanted, pdi)).collect()
}

const LABELS: &[u8] = b"\x08internet";

#[test]
fn load_names_what_a_strict_upf_requires() {
    let upf = StrictUpf::start();
    let to = upf.address.to_string();
    let load = ["pfcp", "load", "--to", &to, "--in-flight", "1"];
    let load = load.into_iter().chain(["--sessions", "5", "--json"]);
    let load = load.chain(["--for", "100ms", "--wait", "10s"]);
    let refused = strowger(load.clone());
    assert_eq!(refused.code, 3, "{}", refused.err);
    assert!(refused.err.contains("--node-id"), "{}", refused.err);

    let identity = ["--from", "127.0.0.4:0", "--node-id", "127.0.0.4"];
    let network = ["--dnn", "internet", "--s-nssai", "1-0a0b0c"];
    let pool = ["--ue-pool", "10.45.0.0/16", "--mix"];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mix = folder.path().join("mix.toml");
    std::fs::write(&mix, "[shares]\nhandover = 1\nqos = 1\n").expect("the folder is writable");
    let mix = mix.display().to_string();
    let ran = strowger(
        load.chain(identity)
            .chain(network)
            .chain(pool)
            .chain([&*mix]),
    );
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let told = ran.last_object();
    assert!(told["changes"]["handover"].as_u64() > Some(0), "{told}");
    assert!(told["changes"]["qos"].as_u64() > Some(0), "{told}");
    assert_eq!(told["changes"]["idle"], 0, "{told}");

    for bytes in upf.accepted() {
        let top = |ie| value(&bytes, ie);
        assert_eq!(top(IeType::NODE_ID), Some(&[0, 127, 0, 0, 4][..]));
        assert_eq!(top(IeType::PDN_TYPE), Some(&[1][..]));
        assert_eq!(top(IeType::APN_DNN), Some(LABELS));
        assert_eq!(top(IeType::S_NSSAI), Some(&[1, 10, 11, 12][..]));
        assert_eq!(in_pdis(&bytes, IeType::NETWORK_INSTANCE), [LABELS; 2]);
        let ues = in_pdis(&bytes, IeType::UE_IP_ADDRESS);
        assert_eq!(ues.len(), 2);
        assert!(ues.iter().all(|ue| ue[1..3] == [10, 45]), "{ues:?}");
    }
}

#[test]
fn robustness_tests_name_what_a_strict_upf_requires() {
    let upf = StrictUpf::start();
    let to = upf.address.to_string();
    let robustness = ["pfcp", "robustness", &to, "--from", "127.0.0.4:0", "--json"];
    let robustness = robustness.into_iter().chain(["--sessions", "1"]);
    let unusable = strowger(robustness.clone());
    assert_eq!(unusable.code, 3, "{}", unusable.err);
    assert!(
        unusable.err.contains("--second-node-id"),
        "{}",
        unusable.err
    );

    let identity = [
        "--node-id",
        "127.0.0.4",
        "--dnn",
        "internet",
        "--wait",
        "50ms",
    ];
    let pool = ["--pdn-type", "ipv4v6", "--ue-pool", "10.45.0.0/16"];
    let pools = pool.into_iter().chain(["--ue-pool", "2001:db8:cafe::/48"]);
    let ran = strowger(robustness.chain(identity).chain(pools));
    // The node is usable, and it accepts invalid requests.
    assert_eq!(ran.code, 1, "{}", ran.err);
    let first = upf.accepted().swap_remove(0);
    assert_eq!(value(&first, IeType::PDN_TYPE), Some(&[3][..]));
    assert_eq!(value(&first, IeType::APN_DNN), Some(LABELS));
    assert_eq!(in_pdis(&first, IeType::NETWORK_INSTANCE), [LABELS; 2]);
    for ue in in_pdis(&first, IeType::UE_IP_ADDRESS) {
        // Both versions, and nothing but the addresses.
        assert_eq!((ue[0] & 3, ue.len()), (3, 21), "{ue:?}");
        assert_eq!(ue[1..3], [10, 45]);
    }
}

#[test]
fn unusable_profile_is_an_input_error() {
    let far = SocketAddr::from((Ipv4Addr::LOCALHOST, 9)).to_string();
    for (verb, args, said) in [
        ("load", &["--ue-pool", "10.0.0.0/28"][..], "14 addresses"),
        ("load", &["--dnn", "a..b"], "is not a DNN"),
        (
            "load",
            &["--pdn-type", "ipv6", "--ue-pool", "10.0.0.0/8"],
            "take no address",
        ),
        ("load", &["--node-id", "a..b"], "neither an IP address"),
        ("load", &["--s-nssai", "1-2"], "SST-SD"),
        (
            "robustness",
            &["--node-id", "a..b"],
            "neither an IP address",
        ),
        ("robustness", &["--ue-pool", "10.0.0.0/30"], "2 addresses"),
        ("robustness", &["--pdn-type", "ipx"], "non-ip"),
    ] {
        let to = match verb {
            "load" => vec!["--to", &far],
            _ => vec![&*far],
        };
        let ran = strowger(
            ["pfcp", verb]
                .into_iter()
                .chain(to)
                .chain(args.iter().copied()),
        );
        assert_eq!(ran.code, 2, "{verb} {args:?}: {}", ran.err);
        assert!(ran.err.contains(said), "{verb} {args:?}: {}", ran.err);
    }
}

#[test]
fn invalid_mix_is_reported_with_its_key() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("mix.toml");
    let name = path.display().to_string();
    for (text, said) in [
        ("[shares]\nhandovers = 1", "handovers"),
        ("modifications = 101.0", "`modifications` is 101"),
        ("[shares]", "no modification to send"),
    ] {
        std::fs::write(&path, text).expect("the folder is writable");
        let ran = strowger(["pfcp", "load", "--to", "127.0.0.1:9", "--mix", &name]);
        assert_eq!(ran.code, 2, "{text}: {}", ran.err);
        assert!(ran.err.contains(said), "{text}: {}", ran.err);
        assert!(ran.err.contains("\nhint: "), "{}", ran.err);
    }
    let absent = strowger([
        "pfcp",
        "load",
        "--to",
        "127.0.0.1:9",
        "--mix",
        "no-such.toml",
    ]);
    assert_eq!(absent.code, 3, "{}", absent.err);
}
