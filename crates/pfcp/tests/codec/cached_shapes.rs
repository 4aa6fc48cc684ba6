//! The elements that an index remembers from earlier messages do not change its results for others.

use std::thread;

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::{Config as ProptestConfig, TestCaseError};
use strowger_pfcp::session::{NoAllocator, Refusal, RuleChange, RuleSet};
use strowger_pfcp::validate::findings;
use strowger_pfcp::wire::Part;
use strowger_pfcp::{Frame, Index, Interfaces, Message, MessageType, MessageView, validate};

use crate::bytes::{session_message, tlv};
use crate::values::{Choices, message};

/// All results of a view: its parts at every depth, its missing elements, and its values.
#[derive(Debug, PartialEq)]
struct IndexContents {
    parts: Vec<(usize, String)>,
    text: String,
    findings: Vec<String>,
    accepted: Vec<Option<Interfaces>>,
    message: Result<Message, String>,
}

fn index_contents(bytes: &[u8], index: &mut Index) -> Result<IndexContents, String> {
    let view = MessageView::decode(bytes, index).map_err(|error| error.to_string())?;
    let mut parts = Vec::new();
    visit(view.root(), 0, &mut parts);
    let found = findings(&view, Interfaces::ALL);
    let accepted = Interfaces::ALL.iter().chain([Interfaces::ALL]);
    Ok(IndexContents {
        parts,
        text: view.to_string(),
        findings: found.iter().map(ToString::to_string).collect(),
        accepted: accepted.map(|on| validate(&view, on).ok()).collect(),
        message: view.to_message().map_err(|error| error.to_string()),
    })
}

fn visit(part: Part<'_>, depth: usize, parts: &mut Vec<(usize, String)>) {
    for inner in part.parts() {
        let (ie, at, repeated) = (inner.ie(), inner.offset(), inner.is_repeated());
        let member = inner.member().map(|member| member.ie);
        let text = format!("{ie} {at} {:?} {repeated} {member:?}", inner.value());
        parts.push((depth, text));
        visit(inner, depth + 1, parts);
    }
}

fn is_the_same(bytes: &[u8], used: &mut Index) -> Result<(), TestCaseError> {
    let fresh = index_contents(bytes, &mut Index::new());
    prop_assert_eq!(index_contents(bytes, used), fresh, "{:02x?}", bytes);
    Ok(())
}

/// The elements of a message twice, so that each element equals an earlier one.
fn twice(bytes: &[u8]) -> Vec<u8> {
    let header = if bytes[0] & 1 == 1 { 16 } else { 8 };
    let mut bytes = [bytes, &bytes[header..]].concat();
    let length = u16::try_from(bytes.len() - 4).expect("a short message");
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn reused_index_matches_fresh_index(
        bytes in vec(any::<u8>(), 0..1024),
        changes in vec((any::<u16>(), any::<u8>()), 1..12),
    ) {
        let mut used = Index::new();
        for kind in MessageType::ALL {
            let bytes = message(*kind, &mut Choices::new(&bytes));
            let bytes = if bytes.len() < 30_000 { twice(&bytes) } else { bytes };
            // Twice without a change: the second pass uses remembered elements.
            is_the_same(&bytes, &mut used)?;
            is_the_same(&bytes, &mut used)?;
            for (place, flip) in &changes {
                let mut changed = bytes.clone();
                let place = 4 + usize::from(*place) % (bytes.len() - 4);
                changed[place] ^= flip;
                is_the_same(&changed, &mut used)?;
            }
        }
    }

    #[test]
    fn rules_of_a_request_do_not_depend_on_earlier_requests_of_the_thread(
        bytes in vec(any::<u8>(), 0..1024),
        changes in vec((any::<u16>(), any::<u8>()), 1..12),
    ) {
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let sound = request(&pdr(9, 1, &V4));
        for request in [message(kind, &mut Choices::new(&bytes)), sound] {
            // The request leads to the same rules before and after each damaged copy of it.
            let rules = established(&request);
            for (place, flip) in &changes {
                let mut changed = request.clone();
                let place = 4 + usize::from(*place) % (request.len() - 4);
                changed[place] ^= flip;
                let here = established(&changed);
                let elsewhere = thread::spawn(move || established(&changed)).join();
                prop_assert_eq!(Some(here), elsewhere.ok(), "byte {} ^ {}", place, flip);
                prop_assert_eq!(established(&request), rules.clone());
            }
        }
    }
}

/// The rules that a request leads to on this thread, or `None` if its header cannot be read.
fn established(request: &[u8]) -> Option<Result<RuleChange, Refusal>> {
    let frame = Frame::decode(request).ok()?;
    Some(RuleSet::establish(&frame, &mut NoAllocator))
}

/// A Create PDR with these leaves.
fn pdr(id: u16, interface: u8, teid: &[u8]) -> Vec<u8> {
    let pdi = [tlv(20, &[interface]), tlv(21, teid)].concat();
    let members = [
        tlv(56, &id.to_be_bytes()),
        tlv(29, &[0, 0, 0, 9]),
        tlv(2, &pdi),
        tlv(108, &[0, 0, 0, 1]),
    ];
    tlv(1, &members.concat())
}

/// A request with rules that are equal except for the last.
fn request(last: &[u8]) -> Vec<u8> {
    let node = tlv(60, &[0, 127, 0, 0, 1]);
    let session = tlv(57, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 1]);
    let rules: Vec<u8> = (1..9).flat_map(|id| pdr(id, 0, &V4)).collect();
    let far = tlv(3, &[tlv(108, &[0, 0, 0, 1]), tlv(44, &[1])].concat());
    session_message(50, &[&node[..], &session, &rules, last, &far].concat())
}

const V4: [u8; 9] = [1, 0, 0, 0, 7, 127, 0, 0, 1];

#[test]
fn dissimilar_rule_is_checked_on_its_own() -> Result<(), TestCaseError> {
    let mut used = Index::new();
    let refused = |last: &[u8]| {
        let bytes = request(last);
        let mut index = Index::new();
        let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
        validate(&view, Interfaces::N4).is_err()
    };
    prop_assert!(!refused(&pdr(9, 1, &[1, 0, 0, 0, 8, 127, 0, 0, 2])));
    let cases = [
        // An interface without a name, and an F-TEID without an address.
        pdr(9, 200, &V4),
        pdr(9, 0, &[0, 0, 0, 0, 7, 127, 0, 0, 1]),
    ];
    for case in cases {
        prop_assert!(refused(&case));
        for _ in 0..3 {
            is_the_same(&request(&case), &mut used)?;
            is_the_same(&request(&pdr(9, 1, &V4)), &mut used)?;
        }
    }
    Ok(())
}

#[test]
fn index_stays_correct_when_shape_cache_overflows() -> Result<(), TestCaseError> {
    let mut used = Index::new();
    for length in 0..700usize {
        let name = vec![b'a'; length % 300];
        let pdi = tlv(2, &[tlv(20, &[0]), tlv(22, &name)].concat());
        let rule = tlv(1, &[tlv(56, &[0, 1]), pdi].concat());
        is_the_same(
            &session_message(50, &[&rule[..], &rule, &rule].concat()),
            &mut used,
        )?;
    }
    Ok(())
}

#[test]
fn element_ending_like_a_rule_is_not_matched_as_rule() -> Result<(), TestCaseError> {
    let rule = pdr(1, 0, &V4);
    // A vendor's element and a text that end with the bytes of the rules before them.
    let vendor = tlv(0x8001, &[&[0, 9], &rule[..]].concat());
    let name = tlv(159, &rule);
    for other in [vendor, name] {
        let mut used = Index::new();
        let rules = [&rule[..], &rule, &rule].concat();
        for body in [&rules[..], &rules, &[&rules[..], &other].concat()] {
            is_the_same(&session_message(52, body), &mut used)?;
        }
    }
    Ok(())
}

#[test]
fn out_of_order_rule_is_detected() -> Result<(), TestCaseError> {
    let rule = pdr(1, 0, &V4);
    // An element that the table lists after the rules.
    let timer = tlv(117, &[0, 0, 0, 9]);
    let rules = [&rule[..], &rule].concat();
    let late = session_message(52, &[&rules[..], &timer, &rule].concat());
    let mut used = Index::new();
    for _ in 0..2 {
        is_the_same(&session_message(52, &rules), &mut used)?;
    }
    let view = MessageView::decode(&late, &mut used).expect("well-formed");
    let message = view.to_message().expect("whole");
    prop_assert_eq!(message.encode(), Ok(late), "it stays where it was");
    Ok(())
}
