//! Requests that nothing is wrong with, to be made wrong in one place.

use std::net::{IpAddr, Ipv4Addr};

use strowger_pfcp::endpoint::message;
use strowger_pfcp::{Header, IeType, MessageType, Seid, Sequence};

use super::case::TortureSender;
use super::peer::STARTED;
use super::tree::{Element, written};

/// A request as elements.
#[derive(Clone, Debug)]
pub(super) struct Sound {
    pub(super) message_type: MessageType,
    pub(super) elements: Vec<Element>,
    pub(super) sender: TortureSender,
}

impl Sound {
    /// The datagram with these elements instead of its own.
    pub(super) fn with(&self, elements: &[Element]) -> Option<Vec<u8>> {
        let mut header = Header::node(self.message_type, Sequence::new(0));
        header.seid = self.message_type.is_session().then_some(Seid(0));
        message(&header, &written(elements)).ok()
    }

    pub(super) fn response(&self) -> u8 {
        self.message_type.0 + 1
    }
}

/// Who we are towards a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) address: IpAddr,
    /// Whether the node chooses tunnels.
    pub(super) chooses: bool,
}

/// What the sessions of the tortured peer are called by it.
pub(super) const OWN: Seid = Seid(0x7057_0001);

/// The Node ID of the peer that nothing depends on.
pub(super) const APART: &[u8] = b"\x02\x05apart\x07torture";

/// Every request, as a node in the CP role sends it.
pub(super) fn requests(setting: Setting) -> Vec<Sound> {
    let node = || Element::leaf(IeType::NODE_ID, APART);
    let time = Element::leaf(IeType::RECOVERY_TIME_STAMP, STARTED.to_be_bytes());
    let features = Element::leaf(IeType::CP_FUNCTION_FEATURES, [3]);
    let apart = |message_type, elements: Vec<Element>| Sound {
        message_type,
        elements,
        sender: TortureSender::Apart,
    };
    let session = |message_type, elements, sender| Sound {
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
                Element::leaf(IeType::FQ_CSID, [1, 10, 9, 8, 7, 0, 9]),
            ],
        ),
        apart(MessageType::ASSOCIATION_RELEASE_REQUEST, vec![node()]),
        session(
            MessageType::SESSION_ESTABLISHMENT_REQUEST,
            establishment(setting, OWN, 250),
            TortureSender::Owner,
        ),
        session(
            MessageType::SESSION_MODIFICATION_REQUEST,
            modification(),
            TortureSender::OfSession,
        ),
        session(
            MessageType::SESSION_DELETION_REQUEST,
            Vec::new(),
            TortureSender::OfSession,
        ),
    ]
}

fn pfds() -> Vec<Element> {
    let contents = b"\x01\x00\x00\x22permit out ip from 10.9.9.9 to any";
    let context = Element::group(
        IeType::PFD_CONTEXT,
        [Element::leaf(IeType::PFD_CONTENTS, *contents)],
    );
    let of_one = [Element::leaf(IeType::APPLICATION_ID, *b"torture"), context];
    vec![Element::group(IeType::APPLICATION_IDS_PFDS, of_one)]
}

/// The Node ID of an address.
pub(super) fn node_id(address: IpAddr) -> Element {
    let value = strowger_pfcp::association::NodeName::from(address);
    Element::leaf(IeType::NODE_ID, value.value())
}

/// A session with rules of each usual kind. `number` tells its addresses from those of others.
pub(super) fn establishment(setting: Setting, seid: Seid, number: u32) -> Vec<Element> {
    let mut f_seid = vec![if setting.address.is_ipv4() { 2 } else { 1 }];
    f_seid.extend(seid.0.to_be_bytes());
    match setting.address {
        IpAddr::V4(address) => f_seid.extend(address.octets()),
        IpAddr::V6(address) => f_seid.extend(address.octets()),
    }
    let mut elements = vec![
        node_id(setting.address),
        Element::leaf(IeType::F_SEID, f_seid),
    ];
    elements.extend(pdrs(setting, number));
    elements.extend([
        far(1, 1, None),
        far(2, 0, Some(0x0a00_0001)),
        Element::group(
            IeType::CREATE_URR,
            [
                long(IeType::URR_ID, 1),
                Element::leaf(IeType::MEASUREMENT_METHOD, [2]),
                Element::leaf(IeType::REPORTING_TRIGGERS, [2, 0, 0]),
                Element::leaf(IeType::VOLUME_THRESHOLD, [1, 0, 0, 0, 0x10, 0, 0, 0, 0]),
            ],
        ),
        Element::group(
            IeType::CREATE_QER,
            [
                long(IeType::QER_ID, 1),
                Element::leaf(IeType::GATE_STATUS, [0]),
                Element::leaf(IeType::MBR, [0, 0, 1, 0, 0, 0, 0, 1, 0, 0]),
                Element::leaf(IeType::QFI, [9]),
            ],
        ),
        Element::leaf(IeType::PDN_TYPE, [1]),
    ]);
    elements
}

/// The address of the UE of a session.
fn ue(number: u32) -> [u8; 4] {
    Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(10, 201, 0, 0)) + number).octets()
}

fn pdrs(setting: Setting, number: u32) -> [Element; 2] {
    let tunnel = if setting.chooses {
        vec![5]
    } else {
        let teid = (0x7057_0000 + number).to_be_bytes();
        [&[1][..], &teid, &[127, 0, 0, 1]].concat()
    };
    let network = || Element::leaf(IeType::NETWORK_INSTANCE, *b"internet");
    let address = |flags: u8| {
        let value = [&[flags][..], &ue(number)].concat();
        Element::leaf(IeType::UE_IP_ADDRESS, value)
    };
    let uplink = Element::group(
        IeType::PDI,
        [
            Element::leaf(IeType::SOURCE_INTERFACE, [0]),
            Element::leaf(IeType::F_TEID, tunnel),
            network(),
            address(2),
            Element::leaf(
                IeType::SDF_FILTER,
                *b"\x01\x00\x00\x20permit out ip from any to any   ",
            ),
            Element::leaf(IeType::QFI, [9]),
        ],
    );
    let downlink = Element::group(
        IeType::PDI,
        [
            Element::leaf(IeType::SOURCE_INTERFACE, [1]),
            network(),
            address(6),
        ],
    );
    let removal = Element::leaf(IeType::OUTER_HEADER_REMOVAL, [0]);
    [pdr(1, uplink, Some(removal)), pdr(2, downlink, None)]
}

/// A packet detection rule whose action has its number.
pub(super) fn pdr(id: u16, pdi: Element, removal: Option<Element>) -> Element {
    let mut elements = vec![
        Element::leaf(IeType::PDR_ID, id.to_be_bytes()),
        long(IeType::PRECEDENCE, 255),
        pdi,
    ];
    elements.extend(removal);
    elements.extend([
        long(IeType::FAR_ID, id.into()),
        long(IeType::URR_ID, 1),
        long(IeType::QER_ID, 1),
    ]);
    Element::group(IeType::CREATE_PDR, elements)
}

/// An action that forwards to an interface, through a tunnel if a TEID is given.
pub(super) fn far(id: u32, interface: u8, teid: Option<u32>) -> Element {
    let mut parameters = vec![
        Element::leaf(IeType::DESTINATION_INTERFACE, [interface]),
        Element::leaf(IeType::NETWORK_INSTANCE, *b"internet"),
    ];
    parameters.extend(teid.map(tunnel));
    let elements = [
        long(IeType::FAR_ID, id),
        Element::leaf(IeType::APPLY_ACTION, [2, 0]),
        Element::group(IeType::FORWARDING_PARAMETERS, parameters),
    ];
    Element::group(IeType::CREATE_FAR, elements)
}

fn tunnel(teid: u32) -> Element {
    let value = [&[1, 0][..], &teid.to_be_bytes(), &[127, 0, 0, 1]].concat();
    Element::leaf(IeType::OUTER_HEADER_CREATION, value)
}

pub(super) fn long(ie: IeType, number: u32) -> Element {
    Element::leaf(ie, number.to_be_bytes())
}

/// What changes a session that was established with [`establishment`], in each usual way.
fn modification() -> Vec<Element> {
    let pdi = Element::group(
        IeType::PDI,
        [
            Element::leaf(IeType::SOURCE_INTERFACE, [1]),
            Element::leaf(IeType::APPLICATION_ID, *b"any"),
        ],
    );
    let parameters = [
        Element::leaf(IeType::DESTINATION_INTERFACE, [0]),
        tunnel(0x0a00_0002),
    ];
    vec![
        pdr(3, pdi, None),
        far(3, 1, None),
        update_pdr(),
        Element::group(
            IeType::UPDATE_FAR,
            [
                long(IeType::FAR_ID, 2),
                Element::leaf(IeType::APPLY_ACTION, [2, 0]),
                Element::group(IeType::UPDATE_FORWARDING_PARAMETERS, parameters),
            ],
        ),
        Element::group(
            IeType::UPDATE_URR,
            [
                long(IeType::URR_ID, 1),
                Element::leaf(IeType::VOLUME_THRESHOLD, [1, 0, 0, 0, 0x20, 0, 0, 0, 0]),
            ],
        ),
        Element::group(
            IeType::UPDATE_QER,
            [
                long(IeType::QER_ID, 1),
                Element::leaf(IeType::GATE_STATUS, [0]),
            ],
        ),
    ]
}

/// What every session of a torture accepts at any time: it names a rule of its own.
pub(super) fn update_pdr() -> Element {
    let elements = [
        Element::leaf(IeType::PDR_ID, 1u16.to_be_bytes()),
        long(IeType::PRECEDENCE, 254),
    ];
    Element::group(IeType::UPDATE_PDR, elements)
}
