//! Valid requests, to be made invalid in one place.

use std::net::IpAddr;

use strowger_pfcp::association::NodeName;
use strowger_pfcp::endpoint::message;
use strowger_pfcp::ie::Ie as _;
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Header, IeType, MessageType, Seid, Sequence};

use super::case::CaseSender;
use super::peer::RECOVERY_TIME;
use super::tree::{TestElement, written};
use crate::profile::{Direction, SessionProfile};

/// A valid request as a list of IEs.
#[derive(Clone, Debug)]
pub(super) struct ValidRequest {
    pub(super) message_type: MessageType,
    pub(super) elements: Vec<TestElement>,
    pub(super) sender: CaseSender,
}

impl ValidRequest {
    /// Encodes the request with these IEs instead of its own.
    pub(super) fn with(&self, elements: &[TestElement]) -> Option<Vec<u8>> {
        let mut header = Header::node(self.message_type, Sequence::new(0));
        header.seid = self.message_type.is_session().then_some(Seid(0));
        message(&header, &written(elements)).ok()
    }

    pub(super) fn response(&self) -> u8 {
        self.message_type.0 + 1
    }
}

/// The identity of the test towards a node.
#[derive(Clone, Debug)]
pub(super) struct TestIdentity {
    pub(super) address: IpAddr,
    /// The value of our Node ID.
    pub(super) node: Vec<u8>,
    /// The value of the Node ID of the peer without sessions.
    pub(super) apart: Vec<u8>,
    /// Set if the node allocates F-TEIDs.
    pub(super) chooses: bool,
    pub(super) profile: SessionProfile,
}

impl TestIdentity {
    /// Returns the Node ID of the peer with the sessions.
    pub(super) fn node_id(&self) -> TestElement {
        TestElement::leaf(IeType::NODE_ID, self.node.clone())
    }

    /// Returns the Node ID of the peer without sessions.
    pub(super) fn apart_id(&self) -> TestElement {
        TestElement::leaf(IeType::NODE_ID, self.apart.clone())
    }

    /// Returns the identity of another host, whose Node ID is its address.
    pub(super) fn at(&self, address: IpAddr) -> Self {
        Self {
            address,
            node: NodeName::from(address).value().to_vec(),
            ..self.clone()
        }
    }

    fn network(&self) -> TestElement {
        let named = self.profile.network_instance();
        let bytes = named.map_or_else(|| b"internet".to_vec(), |named| named.0.into());
        TestElement::leaf(IeType::NETWORK_INSTANCE, bytes)
    }

    /// Returns the addresses of the UE of a session, as matched in one direction.
    fn ue(&self, number: u32, direction: Direction) -> Option<TestElement> {
        let mut bytes = Vec::new();
        let address = self.profile.ue(number, direction)?;
        address.encode_into(&mut bytes).ok()?;
        // The value follows the header of the IE.
        Some(TestElement::leaf(IeType::UE_IP_ADDRESS, bytes.split_off(4)))
    }

    /// Returns the IEs of an establishment besides its rules.
    fn elements(&self) -> Vec<TestElement> {
        let bytes = self.profile.elements().unwrap_or_default();
        let tlvs = Tlvs::new(&bytes).filter_map(Result::ok);
        tlvs.map(|tlv| TestElement::leaf(tlv.ie, tlv.value))
            .collect()
    }
}

/// The SEID of the tested peer's live session.
pub(super) const OWN: Seid = Seid(0x7057_0001);
/// The SEID of the sessions that cases establish. With that of a live session, they might end it.
pub(super) const NEW: Seid = Seid(0x7057_0000);

/// The default Node ID of the peer without sessions.
pub(super) const APART: &str = "apart.robustness";

/// Returns every request, as sent by a node in the CP role.
pub(super) fn requests(identity: &TestIdentity) -> Vec<ValidRequest> {
    let node = || identity.apart_id();
    let time = TestElement::leaf(IeType::RECOVERY_TIME_STAMP, RECOVERY_TIME.to_be_bytes());
    let features = TestElement::leaf(IeType::CP_FUNCTION_FEATURES, [3]);
    let apart = |message_type, elements: Vec<TestElement>| ValidRequest {
        message_type,
        elements,
        sender: CaseSender::Disposable,
    };
    let session = |message_type, elements, sender| ValidRequest {
        message_type,
        elements,
        sender,
    };
    vec![
        apart(MessageType::HEARTBEAT_REQUEST, vec![time.clone()]),
        apart(
            MessageType::ASSOCIATION_SETUP_REQUEST,
            vec![node(), time, features.clone()],
        ),
        apart(
            MessageType::ASSOCIATION_UPDATE_REQUEST,
            vec![node(), features],
        ),
        apart(MessageType::PFD_MANAGEMENT_REQUEST, pfds()),
        apart(
            MessageType::SESSION_SET_DELETION_REQUEST,
            vec![
                node(),
                TestElement::leaf(IeType::FQ_CSID, [1, 10, 9, 8, 7, 0, 9]),
            ],
        ),
        apart(MessageType::ASSOCIATION_RELEASE_REQUEST, vec![node()]),
        session(
            MessageType::SESSION_ESTABLISHMENT_REQUEST,
            establishment(identity, NEW, 250),
            CaseSender::Owner,
        ),
        session(
            MessageType::SESSION_MODIFICATION_REQUEST,
            modification(),
            CaseSender::OfSession,
        ),
        session(
            MessageType::SESSION_DELETION_REQUEST,
            Vec::new(),
            CaseSender::OfSession,
        ),
    ]
}

fn pfds() -> Vec<TestElement> {
    let contents = b"\x01\x00\x00\x22permit out ip from 10.9.9.9 to any";
    let context = TestElement::group(
        IeType::PFD_CONTEXT,
        [TestElement::leaf(IeType::PFD_CONTENTS, *contents)],
    );
    let of_one = [
        TestElement::leaf(IeType::APPLICATION_ID, *b"robustness"),
        context,
    ];
    vec![TestElement::group(IeType::APPLICATION_IDS_PFDS, of_one)]
}

/// Returns an establishment with rules of each common kind; `number` determines its addresses.
pub(super) fn establishment(identity: &TestIdentity, seid: Seid, number: u32) -> Vec<TestElement> {
    let mut f_seid = vec![if identity.address.is_ipv4() { 2 } else { 1 }];
    f_seid.extend(seid.0.to_be_bytes());
    match identity.address {
        IpAddr::V4(address) => f_seid.extend(address.octets()),
        IpAddr::V6(address) => f_seid.extend(address.octets()),
    }
    let mut elements = vec![
        identity.node_id(),
        TestElement::leaf(IeType::F_SEID, f_seid),
    ];
    elements.extend(pdrs(identity, number));
    elements.extend([
        far(1, 1, None),
        far(2, 0, Some(0x0a00_0001)),
        TestElement::group(
            IeType::CREATE_URR,
            [
                long(IeType::URR_ID, 1),
                TestElement::leaf(IeType::MEASUREMENT_METHOD, [2]),
                TestElement::leaf(IeType::REPORTING_TRIGGERS, [2, 0, 0]),
                TestElement::leaf(IeType::VOLUME_THRESHOLD, [1, 0, 0, 0, 0x10, 0, 0, 0, 0]),
            ],
        ),
        TestElement::group(
            IeType::CREATE_QER,
            [
                long(IeType::QER_ID, 1),
                TestElement::leaf(IeType::GATE_STATUS, [0]),
                TestElement::leaf(IeType::MBR, [0, 0, 1, 0, 0, 0, 0, 1, 0, 0]),
                TestElement::leaf(IeType::QFI, [9]),
            ],
        ),
    ]);
    elements.extend(identity.elements());
    elements
}

fn pdrs(identity: &TestIdentity, number: u32) -> [TestElement; 2] {
    let tunnel = if identity.chooses {
        vec![5]
    } else {
        let teid = (0x7057_0000 + number).to_be_bytes();
        [&[1][..], &teid, &[127, 0, 0, 1]].concat()
    };
    let mut uplink = vec![
        TestElement::leaf(IeType::SOURCE_INTERFACE, [0]),
        TestElement::leaf(IeType::F_TEID, tunnel),
        identity.network(),
    ];
    uplink.extend(identity.ue(number, Direction::Uplink));
    if !identity.profile.is_ethernet() {
        uplink.push(TestElement::leaf(
            IeType::SDF_FILTER,
            *b"\x01\x00\x00\x20permit out ip from any to any   ",
        ));
    }
    uplink.push(TestElement::leaf(IeType::QFI, [9]));
    let uplink = TestElement::group(IeType::PDI, uplink);
    let mut downlink = vec![
        TestElement::leaf(IeType::SOURCE_INTERFACE, [1]),
        identity.network(),
    ];
    downlink.extend(identity.ue(number, Direction::Downlink));
    if identity.profile.is_ethernet() {
        let ethernet = IeType::ETHERNET_PDU_SESSION_INFORMATION;
        downlink.push(TestElement::leaf(ethernet, [1]));
    }
    let downlink = TestElement::group(IeType::PDI, downlink);
    let removal = TestElement::leaf(IeType::OUTER_HEADER_REMOVAL, [0]);
    [pdr(1, uplink, Some(removal)), pdr(2, downlink, None)]
}

/// Returns a Create PDR whose FAR ID equals its PDR ID.
pub(super) fn pdr(id: u16, pdi: TestElement, removal: Option<TestElement>) -> TestElement {
    let mut elements = vec![
        TestElement::leaf(IeType::PDR_ID, id.to_be_bytes()),
        long(IeType::PRECEDENCE, 255),
        pdi,
    ];
    elements.extend(removal);
    elements.extend([
        long(IeType::FAR_ID, id.into()),
        long(IeType::URR_ID, 1),
        long(IeType::QER_ID, 1),
    ]);
    TestElement::group(IeType::CREATE_PDR, elements)
}

/// Returns a Create FAR that forwards to an interface, through a tunnel if a TEID is given.
pub(super) fn far(id: u32, interface: u8, teid: Option<u32>) -> TestElement {
    let mut parameters = vec![
        TestElement::leaf(IeType::DESTINATION_INTERFACE, [interface]),
        TestElement::leaf(IeType::NETWORK_INSTANCE, *b"internet"),
    ];
    parameters.extend(teid.map(tunnel));
    let elements = [
        long(IeType::FAR_ID, id),
        TestElement::leaf(IeType::APPLY_ACTION, [2, 0]),
        TestElement::group(IeType::FORWARDING_PARAMETERS, parameters),
    ];
    TestElement::group(IeType::CREATE_FAR, elements)
}

fn tunnel(teid: u32) -> TestElement {
    let value = [&[1, 0][..], &teid.to_be_bytes(), &[127, 0, 0, 1]].concat();
    TestElement::leaf(IeType::OUTER_HEADER_CREATION, value)
}

pub(super) fn long(ie: IeType, number: u32) -> TestElement {
    TestElement::leaf(ie, number.to_be_bytes())
}

/// Returns a modification of a session that was established with [`establishment`], with changes of
/// each common kind.
fn modification() -> Vec<TestElement> {
    let pdi = TestElement::group(
        IeType::PDI,
        [
            TestElement::leaf(IeType::SOURCE_INTERFACE, [1]),
            TestElement::leaf(IeType::APPLICATION_ID, *b"any"),
        ],
    );
    let parameters = [
        TestElement::leaf(IeType::DESTINATION_INTERFACE, [0]),
        tunnel(0x0a00_0002),
    ];
    vec![
        pdr(3, pdi, None),
        far(3, 1, None),
        update_pdr(),
        TestElement::group(
            IeType::UPDATE_FAR,
            [
                long(IeType::FAR_ID, 2),
                TestElement::leaf(IeType::APPLY_ACTION, [2, 0]),
                TestElement::group(IeType::UPDATE_FORWARDING_PARAMETERS, parameters),
            ],
        ),
        TestElement::group(
            IeType::UPDATE_URR,
            [
                long(IeType::URR_ID, 1),
                TestElement::leaf(IeType::VOLUME_THRESHOLD, [1, 0, 0, 0, 0x20, 0, 0, 0, 0]),
            ],
        ),
        TestElement::group(
            IeType::UPDATE_QER,
            [
                long(IeType::QER_ID, 1),
                TestElement::leaf(IeType::GATE_STATUS, [0]),
            ],
        ),
    ]
}

/// Returns an Update PDR of a rule that every session of the test has, so that it is always
/// accepted.
pub(super) fn update_pdr() -> TestElement {
    let elements = [
        TestElement::leaf(IeType::PDR_ID, 1u16.to_be_bytes()),
        long(IeType::PRECEDENCE, 254),
    ];
    TestElement::group(IeType::UPDATE_PDR, elements)
}
