//! Missing and wrong elements, and the answer about them.

use crate::bytes::{hex, node_message, session_message, shared_json, tlv};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::validate::{FindingKind, findings};
use strowger_pfcp::{IeType, Index, Interfaces, MessageView, Rejection, frames, validate};

/// Decodes and validates one message; returns the remaining interfaces, or the rejection.
fn check(bytes: &[u8], on: Interfaces) -> Result<Interfaces, Option<Rejection>> {
    let mut index = Index::new();
    let view =
        MessageView::decode(bytes, &mut index).map_err(|error| Rejection::of(&error, bytes))?;
    validate(&view, on).map_err(Some)
}

fn f_seid() -> Vec<u8> {
    tlv(57, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 7])
}

fn pdr(id: u8, more: &[Vec<u8>]) -> Vec<u8> {
    let pdi = tlv(2, &tlv(20, &[0]));
    tlv(1, &[tlv(56, &[0, id]), pdi, more.concat()].concat())
}

fn far() -> Vec<u8> {
    tlv(3, &[tlv(108, &[0, 0, 0, 1]), tlv(44, &[1])].concat())
}

fn establishment(rules: &[Vec<u8>]) -> Vec<u8> {
    let node = tlv(60, &[0, 127, 0, 0, 7]);
    session_message(50, &[node, f_seid(), rules.concat()].concat())
}

fn refused(bytes: &[u8], on: Interfaces) -> Rejection {
    check(bytes, on).expect_err("refused").expect("answered")
}

#[test]
fn missing_member_finding_names_rule_and_path() {
    let far_id = tlv(108, &[0, 0, 0, 1]);
    let good = pdr(1, &[tlv(29, &[0; 4]), far_id.clone()]);
    let bytes = establishment(&[good, pdr(9, &[far_id]), far()]);
    let rejection = refused(&bytes, Interfaces::N4);
    assert_eq!(rejection.cause, Cause::MANDATORY_IE_MISSING);
    assert_eq!(rejection.offending_ie, Some(IeType::PRECEDENCE));
    let failed = rejection.failed_rule.as_ref().expect("a rule");
    assert_eq!((failed.rule_id_type.0, failed.pdr_id), (0, Some(9)));
    let path = "Session Establishment Request / Create PDR[1]: Precedence is missing";
    assert_eq!(rejection.to_string(), path);
}

#[test]
fn findings_narrow_candidate_interfaces() {
    let bytes = establishment(&[pdr(1, &[tlv(108, &[0, 0, 0, 1])]), far()]);
    assert_eq!(check(&bytes, Interfaces::ALL), Ok(Interfaces::SXA));
    assert!(check(&bytes, Interfaces::SXA.with(Interfaces::SXB)).is_ok());
    assert!(check(&bytes, Interfaces::SXB.with(Interfaces::N4)).is_err());
}

#[test]
fn conditional_member_is_required_when_condition_holds() {
    let precedence = tlv(29, &[0; 4]);
    let rejection = refused(
        &establishment(&[pdr(1, std::slice::from_ref(&precedence)), far()]),
        Interfaces::N4,
    );
    assert_eq!(rejection.cause, Cause::CONDITIONAL_IE_MISSING);
    assert_eq!(rejection.offending_ie, Some(IeType::FAR_ID));
    let predefined = pdr(1, &[precedence, tlv(106, b"gold")]);
    assert!(check(&establishment(&[predefined, far()]), Interfaces::N4).is_ok());
}

#[test]
fn repeated_and_unexpected_elements_are_reported_not_refused() {
    let body = [tlv(96, &[0; 4]), tlv(96, &[0; 4]), tlv(29, &[0; 4])].concat();
    let bytes = node_message(1, &body);
    assert!(check(&bytes, Interfaces::N4).is_ok());
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let kinds: Vec<_> = findings(&view, Interfaces::N4)
        .iter()
        .map(|finding| (finding.kind, finding.ie))
        .collect();
    assert_eq!(
        kinds,
        [
            (FindingKind::Repeated, IeType::RECOVERY_TIME_STAMP),
            (FindingKind::Unexpected, IeType::PRECEDENCE),
        ]
    );
}

#[test]
fn findings_reports_every_finding() {
    let bytes = session_message(50, &tlv(1, &[]));
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let found = findings(&view, Interfaces::N4);
    let missing: Vec<u16> = found
        .iter()
        .filter(|finding| finding.kind == FindingKind::Missing)
        .map(|finding| finding.ie.0)
        .collect();
    assert_eq!(missing, [60, 57, 3, 56, 29, 2]);
}

#[test]
fn a_malformed_leaf_is_answered_with_its_type_and_rule() {
    let far_id = tlv(108, &[0, 0, 0, 1]);
    let short = tlv(84, &[1, 0, 0]);
    let bad = tlv(
        3,
        &[
            far_id,
            tlv(44, &[2]),
            tlv(4, &[tlv(42, &[1]), short].concat()),
        ]
        .concat(),
    );
    let rejection = refused(&establishment(&[bad]), Interfaces::N4);
    assert_eq!(rejection.cause, Cause::INVALID_LENGTH);
    assert_eq!(rejection.offending_ie, Some(IeType::OUTER_HEADER_CREATION));
    let failed = rejection.failed_rule.as_ref().expect("a rule");
    assert_eq!((failed.rule_id_type.0, failed.rule_id), (1, Some(1)));
}

#[test]
fn known_crash_inputs_have_expected_outcome() {
    let Some(file) = shared_json("pfcp/bad-inputs.json") else {
        return;
    };
    let cases = file["cases"].as_array().expect("cases");
    for case in cases {
        let name = case["name"].as_str().expect("a name");
        let bytes = hex(case["hex"].as_str().expect("octets"));
        let outcome = outcome(&bytes);
        let expectations = match case["expect"].get("any") {
            Some(any) => any.as_array().expect("a list").clone(),
            None => vec![case["expect"].clone()],
        };
        let fits = expectations.iter().any(|expected| fits(expected, &outcome));
        assert!(fits, "{name}: {outcome:?}, expected {expectations:?}");
    }
}

/// The outcome that the codec alone decides: nothing to answer, rejected, or well-formed.
fn outcome(bytes: &[u8]) -> Result<(), Option<Rejection>> {
    for frame in frames(bytes) {
        let frame = frame.map_err(|_| None)?;
        check(frame.bytes, Interfaces::ALL)?;
    }
    Ok(())
}

/// Other layers answer unknown sessions, versions and types; the codec answers rejections.
fn fits(expected: &serde_json::Value, outcome: &Result<(), Option<Rejection>>) -> bool {
    let numbers = |key: &str| -> Vec<u64> {
        expected[key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|n| n.as_u64())
            .collect()
    };
    let (causes, offending) = (numbers("cause"), numbers("offending_ie"));
    match outcome {
        Ok(()) => !causes.iter().any(|cause| (66..=69).contains(cause)),
        Err(None) => causes.is_empty(),
        Err(Some(rejection)) => {
            let cause = causes.contains(&u64::from(rejection.cause.0));
            let ie = rejection.offending_ie.map(|ie| u64::from(ie.0));
            let unknown_session = causes == [65];
            let discarded = expected["answer"] == "none";
            (cause && (offending.is_empty() || ie.is_some_and(|ie| offending.contains(&ie))))
                || unknown_session
                || discarded
        }
    }
}
