//! Tests of the shapes that are kept, from inside. From outside they only show in the time taken.

use std::net::Ipv4Addr;

use super::{ElementShape, MAX_BLOCKS, MAX_LENGTH, MAX_NODES, MAX_SHAPES};
use crate::message::{MessageType, table};
use crate::wire::{Frame, Index, IndexNode};
use crate::{IeType, Interfaces, MessageView};

fn tlv(ie: IeType, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("a short value");
    [&ie.0.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

fn message(kind: MessageType, body: &[u8]) -> Vec<u8> {
    let seid = if kind.is_session() { 8 } else { 0 };
    let length = u16::try_from(body.len() + 4 + seid).expect("a short message");
    let flags = 0x20 | u8::from(kind.is_session());
    let head = [&[flags, kind.0][..], &length.to_be_bytes()].concat();
    [&head[..], &vec![0; seid], &[0, 0, 1, 0], body].concat()
}

const MODIFICATION: MessageType = MessageType::SESSION_MODIFICATION_REQUEST;

/// Returns a rule of a modification, with the given members after its identifier.
fn pdr(id: u16, members: &[u8]) -> Vec<u8> {
    let id = tlv(IeType::PDR_ID, &id.to_be_bytes());
    tlv(IeType::CREATE_PDR, &[&id, members].concat())
}

fn pdi(members: &[u8]) -> Vec<u8> {
    tlv(IeType::PDI, members)
}

fn read(bytes: &[u8], index: &mut Index) {
    MessageView::decode(bytes, index).expect("well-formed");
}

/// Returns `true` if a message matches one that the index has kept.
fn is_known(bytes: &[u8], index: &Index) -> bool {
    let frame = Frame::decode(bytes).expect("a message");
    let group = table(frame.header.message_type);
    let shapes = index.shapes();
    shapes
        .find_message(group, frame.body.len(), bytes)
        .is_some()
}

/// Returns `true` if one message matches the other once the other has been kept.
fn alike(one: &[u8], other: &[u8]) -> bool {
    let mut index = Index::new();
    read(one, &mut index);
    assert!(!is_known(one, &index), "what is met once is not kept");
    read(one, &mut index);
    assert!(is_known(one, &index), "what is met again is kept");
    is_known(other, &index)
}

/// Returns `true` if two values of an element of a PDI match, tested alone.
fn alike_in_pdi(ie: IeType, one: &[u8], other: &[u8]) -> bool {
    let [one, other] = [one, other].map(|value| {
        let members = pdi(&tlv(ie, value));
        message(MODIFICATION, &pdr(1, &members))
    });
    alike(&one, &other)
}

#[test]
fn shape_ignores_numbers_addresses_and_texts() {
    let rule = |id: u16| message(MODIFICATION, &pdr(id, &[]));
    assert!(alike(&rule(0x82ff), &rule(0xc801)), "a number of any size");
    let name = |text: &[u8]| tlv(IeType::NETWORK_INSTANCE, text);
    let [one, other, longer] = [&b"one"[..], b"two", b"three"]
        .map(|text| message(MODIFICATION, &pdr(1, &pdi(&name(text)))));
    assert!(alike(&one, &other));
    assert!(!alike(&one, &longer));
    let interface = |one, other| alike_in_pdi(IeType::SOURCE_INTERFACE, &[one], &[other]);
    assert!(
        interface(0, 3) && interface(2, 1),
        "three has the most ones in the range"
    );
    assert!(!interface(0, 4) && !interface(4, 0) && !interface(0, 5));
    assert!(interface(4, 4));
}

#[test]
fn shape_includes_flags_lengths_and_checked_values() {
    let address = Ipv4Addr::LOCALHOST.octets();
    let f_teid = |flags: u8, teid: u8| [&[flags, 0, 0, 0, teid], &address[..]].concat();
    let f_teids = |one: &[u8], other: &[u8]| alike_in_pdi(IeType::F_TEID, one, other);
    assert!(f_teids(&f_teid(1, 7), &f_teid(1, 9)));
    assert!(!f_teids(&f_teid(1, 7), &f_teid(0x11, 7)), "a spare bit");
    // Its bytes are validated, not only its head.
    let filter = |byte| [1, 0, 0, 1, byte];
    assert!(!alike_in_pdi(
        IeType::SDF_FILTER,
        &filter(b'a'),
        &filter(b'b')
    ));
    // There are lengths among the bytes.
    let tags = |byte| [1, 2, 3, 4, 5, 6, byte];
    let mac = IeType::MAC_ADDRESSES_DETECTED;
    assert!(
        !alike_in_pdi(mac, &tags(0), &tags(1)),
        "nothing that the group knows"
    );
    let node = |bytes: &[u8]| setup(bytes, 0);
    assert!(alike(&node(&[0, 10, 0, 0, 1]), &node(&[0, 10, 0, 0, 2])));
    assert!(!alike(&node(&[0, 10, 0, 0, 1]), &node(&[2, 10, 0, 0, 1])));
    assert!(!alike(&node(&[0, 10, 0, 0, 1]), &node(&[3, 10, 0, 0, 1])));
}

#[test]
fn shape_includes_condition_inputs() {
    let far = |action: u8, id: u8| {
        let id = tlv(IeType::FAR_ID, &[0, 0, 0, id]);
        let members = [id, tlv(IeType::APPLY_ACTION, &[action])].concat();
        message(MODIFICATION, &tlv(IeType::CREATE_FAR, &members))
    };
    assert!(alike(&far(1, 1), &far(1, 2)));
    assert!(!alike(&far(1, 1), &far(2, 1)));
}

/// Returns the index of the first node inside each rule.
fn insides(bytes: &[u8], index: &mut Index) -> Vec<usize> {
    let view = MessageView::decode(bytes, index).expect("well-formed");
    let (tree, root) = view.root().tree_and_node();
    let mut below = tree.below(root);
    let rules = std::iter::from_fn(|| below.next_node());
    rules.map(|node: IndexNode| node.members().0).collect()
}

#[test]
fn similar_rules_share_one_shape() {
    let members = pdi(&tlv(IeType::SOURCE_INTERFACE, &[0]));
    let other = tlv(IeType::PRECEDENCE, &[0, 0, 0, 9]);
    let rules = [
        pdr(1, &members),
        pdr(2, &members),
        pdr(3, &members),
        pdr(4, &other),
        pdr(5, &members),
    ];
    let bytes = message(MODIFICATION, &rules.concat());
    let mut index = Index::new();
    let first = insides(&bytes, &mut index);
    assert_ne!(first[0], first[1], "the first is met once");
    assert_eq!(first[1], first[2], "the second is met again");
    assert_ne!(first[2], first[3], "another form");
    assert_eq!(first[2], first[4], "whatever stands between");
    // The order and number of the rules are new, the rules are not.
    let two = message(MODIFICATION, &[pdr(7, &members), pdr(6, &members)].concat());
    let again = insides(&two, &mut index);
    assert_eq!(again[0], again[1]);
}

#[test]
fn cache_holds_shapes_of_all_rule_kinds() {
    let long = |ie: IeType| tlv(ie, &[0, 0, 0, 1]);
    let rules = [
        pdr(1, &pdi(&tlv(IeType::SOURCE_INTERFACE, &[0]))),
        tlv(IeType::CREATE_FAR, &long(IeType::FAR_ID)),
        tlv(IeType::CREATE_URR, &long(IeType::URR_ID)),
        tlv(
            IeType::CREATE_QER,
            &[long(IeType::QER_ID), tlv(IeType::GATE_STATUS, &[0])].concat(),
        ),
        tlv(IeType::CREATE_BAR, &tlv(IeType::BAR_ID, &[1])),
        tlv(IeType::REMOVE_FAR, &long(IeType::FAR_ID)),
        tlv(IeType::REMOVE_PDR, &tlv(IeType::PDR_ID, &[0, 1])),
    ];
    let mut index = Index::new();
    for _ in 0..2 {
        read(&message(MODIFICATION, &rules.concat()), &mut index);
    }
    let (ours, other) = (MODIFICATION, MessageType::SESSION_ESTABLISHMENT_REQUEST);
    for rule in &rules {
        let head = u32::from_be_bytes(*rule.first_chunk().expect("a header"));
        // A rule is compared from its end, in blocks that reach into the bytes before it.
        let bytes = message(MODIFICATION, rule);
        let found = |kind, head| index.shapes().find(table(kind), head, &bytes);
        let known = found(ours, head);
        assert!(known.is_some_and(|shape| shape.head == head), "{rule:02x?}");
        assert!(found(ours, head + 1).is_none());
        assert!(found(other, head).is_none());
    }
}

/// Returns the result of the walk alone for a message that is decoded repeatedly.
fn valid_on(bytes: &[u8], index: &mut Index) -> [Interfaces; 3] {
    [(); 3].map(|()| {
        let view = MessageView::decode(bytes, index).expect("well-formed");
        view.valid_on()
    })
}

#[test]
fn walk_determines_valid_interfaces() {
    let precedence = tlv(IeType::PRECEDENCE, &[0, 0, 0, 9]);
    let far_id = tlv(IeType::FAR_ID, &[0, 0, 0, 1]);
    let interface = |value| pdi(&tlv(IeType::SOURCE_INTERFACE, &[value]));
    let rule = |parts: &[&[u8]]| pdr(1, &parts.concat());
    let far = |action, parameters: &[u8]| {
        let action = tlv(IeType::APPLY_ACTION, &[action]);
        tlv(
            IeType::CREATE_FAR,
            &[&far_id[..], &action, parameters].concat(),
        )
    };
    let parameters = |to| {
        let to = tlv(IeType::DESTINATION_INTERFACE, &[to]);
        tlv(IeType::FORWARDING_PARAMETERS, &to)
    };
    let (all, none) = (Interfaces::ALL, Interfaces::NONE);
    let rules = [
        (rule(&[&precedence, &interface(0), &far_id]), all),
        (rule(&[&interface(0), &far_id]), Interfaces::SXA),
        (rule(&[&precedence, &interface(9), &far_id]), none),
        (rule(&[&precedence, &interface(0)]), none),
        (rule(&[&far_id, &interface(0), &precedence]), all),
        (far(1, &[]), all),
        (far(2, &[]), none),
        (far(2, &parameters(1)), all),
        (far(2, &parameters(9)), none),
        // Forwards and duplicates, with parameters for forwarding only.
        (far(0x12, &parameters(1)), none),
        (tlv(IeType::REMOVE_PDR, &[]), none),
        (tlv(IeType(999), &[]), all),
    ];
    let mut index = Index::new();
    for (rule, expected) in &rules {
        let bytes = message(MODIFICATION, rule);
        assert_eq!(valid_on(&bytes, &mut index), [*expected; 3], "{rule:02x?}");
        assert_eq!(
            valid_on(&bytes, &mut Index::new()),
            [*expected; 3],
            "{rule:02x?}"
        );
    }
    for (one, first) in &rules {
        for (other, second) in &rules {
            let bytes = message(MODIFICATION, &[&one[..], other, one].concat());
            let expected = [first.and(*second); 3];
            assert_eq!(valid_on(&bytes, &mut index), expected, "{bytes:02x?}");
        }
    }
    let time = tlv(IeType::RECOVERY_TIME_STAMP, &[0; 4]);
    let heartbeat = |body: &[u8]| message(MessageType::HEARTBEAT_REQUEST, body);
    assert_eq!(valid_on(&heartbeat(&time), &mut index), [all; 3]);
    assert_eq!(valid_on(&heartbeat(&precedence), &mut index), [none; 3]);
    assert_eq!(valid_on(&heartbeat(&[]), &mut index), [none; 3]);
    let cause = tlv(IeType::CAUSE, &[1]);
    let answer = message(MessageType::PFD_MANAGEMENT_RESPONSE, &cause);
    let described = MessageType::PFD_MANAGEMENT_RESPONSE.interfaces();
    assert_eq!(valid_on(&answer, &mut index), [described; 3]);
    // One element that is valid itself, although another one or a further one is required.
    let release = message(MessageType::ASSOCIATION_RELEASE_RESPONSE, &cause);
    assert_eq!(valid_on(&release, &mut index), [none; 3]);
    let features = tlv(IeType::UP_FUNCTION_FEATURES, &[0; 4]);
    let lacking = message(MessageType::ASSOCIATION_SETUP_REQUEST, &features);
    assert_eq!(valid_on(&lacking, &mut index), [none; 3]);
    let flags = tlv(IeType::PFCPSRREQ_FLAGS, &[1]);
    let report = message(MessageType::SESSION_REPORT_REQUEST, &flags);
    assert_eq!(valid_on(&report, &mut index), [none; 3], "no report type");
    // A value that its row alone does not decide.
    assert_eq!(valid_on(&setup(&[0, 10, 0, 0, 1], 1), &mut index), [all; 3]);
    assert_eq!(
        valid_on(&setup(&[3, 10, 0, 0, 1], 1), &mut index),
        [none; 3]
    );
}

/// Returns a setup request long enough that the header leaves room to compare it in blocks.
fn setup(node: &[u8], time: u8) -> Vec<u8> {
    let body = [
        tlv(IeType::NODE_ID, node),
        tlv(IeType::RECOVERY_TIME_STAMP, &[0, 0, 0, time]),
        tlv(IeType::UP_FUNCTION_FEATURES, &[1, 0, 0, 0]),
    ];
    message(MessageType::ASSOCIATION_SETUP_REQUEST, &body.concat())
}

#[test]
fn similar_leaves_are_cached_individually() {
    let setup = |time| setup(&[0, 10, 0, 0, 1], time);
    let mut index = Index::new();
    read(&setup(1), &mut index);
    assert_eq!(index.shapes().known.len(), 0);
    read(&setup(2), &mut index);
    // The two elements that their rows alone do not decide, and the whole.
    assert_eq!(index.shapes().known.len(), 3);
    let is_message = |shape: &&ElementShape| shape.is_message;
    assert_eq!(index.shapes().known.iter().filter(is_message).count(), 1);
    read(&setup(3), &mut index);
    assert_eq!(index.shapes().known.len(), 3, "it is known");
    // The first of them in a message of another length, which is not known.
    let time = tlv(IeType::RECOVERY_TIME_STAMP, &[0; 4]);
    let short = [tlv(IeType::NODE_ID, &[0, 10, 0, 0, 9]), time].concat();
    read(
        &message(MessageType::ASSOCIATION_SETUP_REQUEST, &short),
        &mut index,
    );
    assert_eq!(index.shapes().known.len(), 3, "whatever is before it");
}

#[test]
fn regular_single_element_is_not_cached() {
    let heartbeat = |value: &[u8]| {
        let time = tlv(IeType::RECOVERY_TIME_STAMP, value);
        message(MessageType::HEARTBEAT_RESPONSE, &time)
    };
    let mut index = Index::new();
    for time in 0..4 {
        read(&heartbeat(&[0, 0, 0, time]), &mut index);
    }
    assert_eq!(index.shapes().known.len(), 0);
    // An oddity of a single element must be found too.
    for _ in 0..3 {
        read(&heartbeat(&[0, 0, 0, 1, 0]), &mut index);
    }
    assert!(is_known(&heartbeat(&[0, 0, 0, 1, 0]), &index));
}

#[test]
fn long_elements_are_not_cached() {
    let name = |bytes: usize| {
        let name = tlv(IeType::NETWORK_INSTANCE, &vec![b'a'; bytes]);
        message(MODIFICATION, &pdr(1, &pdi(&name)))
    };
    // The headers of the rule, the identifier, the PDI and the text.
    let around = 4 + 6 + 4 + 4;
    let mut index = Index::new();
    for _ in 0..3 {
        read(&name(MAX_LENGTH - around + 1), &mut index);
    }
    assert!(!is_known(&name(MAX_LENGTH - around + 1), &index));
    for _ in 0..3 {
        read(&name(MAX_LENGTH - around), &mut index);
    }
    assert!(is_known(&name(MAX_LENGTH - around), &index));
}

fn kept(index: &Index) -> (usize, usize) {
    (index.shapes().known.len(), index.shapes().blocks.len())
}

#[test]
fn cache_is_cleared_at_max_shapes() {
    let mut index = Index::new();
    let mut most = 0;
    for length in 0..80 {
        let name = tlv(IeType::NETWORK_INSTANCE, &vec![b'a'; length]);
        let far = [
            tlv(IeType::FAR_ID, &[0, 0, 0, 1]),
            tlv(IeType::APPLY_ACTION, &[2]),
            tlv(IeType::FORWARDING_PARAMETERS, &name),
        ];
        let bodies = [
            pdr(1, &pdi(&name)),
            tlv(IeType::CREATE_FAR, &far.concat()),
            tlv(IeType::CREATE_TRAFFIC_ENDPOINT, &name),
        ];
        for body in bodies {
            let bytes = message(MODIFICATION, &body);
            read(&bytes, &mut index);
            read(&bytes, &mut index);
            most = most.max(kept(&index).0);
        }
    }
    assert_eq!(most, MAX_SHAPES, "as many as there may be");
    assert!(kept(&index).0 < MAX_SHAPES, "they were forgotten");
}

#[test]
fn cache_is_cleared_at_max_blocks() {
    let mut index = Index::new();
    let mut most = 0;
    for length in 3000..3060 {
        let name = tlv(IeType::NETWORK_INSTANCE, &vec![b'a'; length]);
        let bytes = message(MODIFICATION, &pdr(1, &pdi(&name)));
        read(&bytes, &mut index);
        read(&bytes, &mut index);
        most = most.max(kept(&index).1);
    }
    // At most the amount that one message adds just below the limit.
    assert!(most >= MAX_BLOCKS, "{most}");
    assert!(most < MAX_BLOCKS + 3 * MAX_LENGTH / 16, "{most}");
}

#[test]
fn cache_is_cleared_at_max_nodes() {
    let mut index = Index::new();
    let mut most = 0;
    for count in 100..160 {
        let qfis: Vec<u8> = (0..count).flat_map(|_| tlv(IeType::QFI, &[9])).collect();
        let bytes = message(MODIFICATION, &pdr(1, &pdi(&qfis)));
        read(&bytes, &mut index);
        read(&bytes, &mut index);
        most = most.max(index.cached_node_count());
    }
    assert!(most >= MAX_NODES, "{most}");
    assert!(most < MAX_NODES + 3 * MAX_LENGTH / 4, "{most}");
}

#[test]
fn irregular_siblings_do_not_affect_cached_shape() {
    let stray = tlv(IeType(0x7fff), &[]);
    let own = tlv(IeType::F_SEID, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 1]);
    let bytes = message(MODIFICATION, &[stray, own].concat());
    let mut index = Index::new();
    read(&bytes, &mut index);
    read(&bytes, &mut index);
    let head = u32::from(IeType::F_SEID.0) << 16 | 13;
    let kept = index.shapes().find(table(MODIFICATION), head, &bytes);
    assert!(!kept.expect("it was met again").irregular);
}
