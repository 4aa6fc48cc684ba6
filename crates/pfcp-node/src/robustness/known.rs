//! Faults that cannot be derived from a row of a table, written as data.

use strowger_pfcp::{IeType, MessageType};

use super::case::{CaseSender, ExpectedAnswer, RobustnessCase};
use super::valid::ValidRequest;

/// A valid request with an addition that makes it invalid.
struct KnownFault {
    name: &'static str,
    clause: &'static str,
    to: MessageType,
    /// Encoded IEs to append to those of the valid request.
    adds: &'static [u8],
    times: usize,
    /// The allowed causes; 0 stands for no response.
    causes: &'static [u8],
    offending: &'static [IeType],
    rule: bool,
}

const ESTABLISH: MessageType = MessageType::SESSION_ESTABLISHMENT_REQUEST;
const MODIFY: MessageType = MessageType::SESSION_MODIFICATION_REQUEST;

/// Defines a request that is refused because of one of its rules.
const fn rule(
    name: &'static str,
    clause: &'static str,
    to: MessageType,
    adds: &'static [u8],
) -> KnownFault {
    KnownFault {
        name,
        clause,
        to,
        adds,
        times: 1,
        causes: &[73],
        offending: &[],
        rule: true,
    }
}

/// Defines a request that is refused because of one of its IEs.
const fn element(
    name: &'static str,
    clause: &'static str,
    (to, adds): (MessageType, &'static [u8]),
    causes: &'static [u8],
    offending: &'static [IeType],
) -> KnownFault {
    KnownFault {
        name,
        clause,
        to,
        adds,
        times: 1,
        causes,
        offending,
        rule: false,
    }
}

/// Encodes Create PDR 77 with precedence 1, source interface Core, and further IEs; the lengths are
/// given.
macro_rules! pdr {
    ($length:literal, $inner:literal, [$($pdi:literal)*] $($more:literal)*) => {
        &[
            0, 1, 0, $length, 0, 56, 0, 2, 0, 77, 0, 29, 0, 4, 0, 0, 0, 1,
            0, 2, 0, $inner, 0, 20, 0, 1, 1, $($pdi,)* $($more,)*
        ]
    };
}

const KNOWN_FAULTS: &[KnownFault] = &[
    rule(
        "PDR of a FAR that is not there",
        "5.2.1",
        ESTABLISH,
        pdr!(31, 5, [] 0 108 0 4 0 0 0 99),
    ),
    rule(
        "PDR of a URR that is not there",
        "5.2.2",
        ESTABLISH,
        pdr!(39, 5, [] 0 108 0 4 0 0 0 1 0 81 0 4 0 0 0 99),
    ),
    rule(
        "PDR of a QER that is not there",
        "5.4.1",
        ESTABLISH,
        pdr!(39, 5, [] 0 108 0 4 0 0 0 1 0 109 0 4 0 0 0 99),
    ),
    rule(
        "update of a PDR that is not there",
        "7.5.4.2",
        MODIFY,
        &[0, 9, 0, 14, 0, 56, 0, 2, 0, 77, 0, 29, 0, 4, 0, 0, 0, 1],
    ),
    rule(
        "update of a FAR that is not there",
        "7.5.4.3",
        MODIFY,
        &[0, 10, 0, 14, 0, 108, 0, 4, 0, 0, 0, 99, 0, 44, 0, 2, 2, 0],
    ),
    rule(
        "update of a QER that is not there",
        "7.5.4.5",
        MODIFY,
        &[0, 14, 0, 13, 0, 109, 0, 4, 0, 0, 0, 99, 0, 25, 0, 1, 0],
    ),
    rule(
        "removal of a FAR that a PDR needs",
        "7.5.4.7",
        MODIFY,
        &[0, 16, 0, 8, 0, 108, 0, 4, 0, 0, 0, 1],
    ),
    rule(
        "PDR of a FAR that is not there, in a modification",
        "5.2.1",
        MODIFY,
        pdr!(31, 5, [] 0 108 0 4 0 0 0 99),
    ),
    element(
        "tunnel without an address",
        "8.2.3",
        (ESTABLISH, pdr!(36, 10, [0 21 0 1 0] 0 108 0 4 0 0 0 1)),
        &[68, 69, 73],
        &[IeType::F_TEID, IeType::PDI, IeType::CREATE_PDR],
    ),
    element(
        "filter of an empty description",
        "8.2.5",
        (
            ESTABLISH,
            pdr!(39, 13, [0 23 0 4 1 0 0 0] 0 108 0 4 0 0 0 1),
        ),
        &[68, 69, 73],
        &[IeType::SDF_FILTER],
    ),
    element(
        "filter whose description ends behind it",
        "8.2.5",
        (
            ESTABLISH,
            pdr!(41, 15, [0 23 0 6 1 0 0 50 97 97] 0 108 0 4 0 0 0 1),
        ),
        &[68, 69],
        &[IeType::SDF_FILTER],
    ),
    element(
        "element that ends behind its group",
        "7.6.7",
        (ESTABLISH, &[0, 1, 0, 6, 0, 56, 0, 99, 0, 77]),
        &[66, 68, 69],
        &[IeType::CREATE_PDR, IeType::PDR_ID],
    ),
    element(
        "element of an unknown type",
        "7.6.9",
        (ESTABLISH, &[0x7f, 0xff, 0, 3, 1, 2, 3]),
        &[1],
        &[],
    ),
    element(
        "element of a vendor",
        "7.6.9",
        (ESTABLISH, &[0x80, 1, 0, 4, 0, 0x28, 0xaf, 1]),
        &[1],
        &[],
    ),
    element(
        "element of a vendor without its number",
        "8.1.1",
        (ESTABLISH, &[0x80, 1, 0, 1, 0]),
        &[0, 68, 69],
        &[],
    ),
    element(
        "empty rule in a modification",
        "7.6.6",
        (MODIFY, &[0, 1, 0, 0]),
        &[66, 68],
        &[IeType::CREATE_PDR, IeType::PDR_ID, IeType::PDI],
    ),
    KnownFault {
        times: 5000,
        ..element(
            "5000 empty rules",
            "7.6.6",
            (ESTABLISH, &[0, 1, 0, 0]),
            &[66, 75],
            &[
                IeType::CREATE_PDR,
                IeType::PDR_ID,
                IeType::PDI,
                IeType::PRECEDENCE,
            ],
        )
    },
    KnownFault {
        times: 1000,
        ..element(
            "1000 rules of one number",
            "7.5.2.2",
            (MODIFY, pdr!(31, 5, [] 0 108 0 4 0 0 0 1)),
            &[1, 73, 75],
            &[],
        )
    },
];

/// Returns the cases that are written as data, applied to each valid request of their type.
pub(super) fn known(valid_requests: &[ValidRequest]) -> Vec<RobustnessCase> {
    let mut cases = Vec::new();
    for row in KNOWN_FAULTS {
        for valid in valid_requests
            .iter()
            .filter(|valid| valid.message_type == row.to)
        {
            cases.extend(row.case(valid));
        }
    }
    cases.extend(max_length_datagrams());
    cases
}

impl KnownFault {
    fn case(&self, valid: &ValidRequest) -> Option<RobustnessCase> {
        let mut bytes = valid.with(&valid.elements)?;
        bytes.extend(self.adds.repeat(self.times));
        let length = u16::try_from(bytes.len() - 4).ok()?;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let none = self.causes.contains(&0).then(ExpectedAnswer::none);
        let answer = ExpectedAnswer::one(valid.response()).causes(self.causes);
        let answer = answer.offending(self.offending.iter().copied());
        let answer = if self.rule { answer.rule() } else { answer };
        Some(RobustnessCase {
            family: "known to hurt".to_owned(),
            name: self.name.to_owned(),
            clause: self.clause.to_owned(),
            bytes,
            sender: valid.sender,
            expect: [answer].into_iter().chain(none).collect(),
        })
    }
}

/// Returns datagrams of the maximum length.
fn max_length_datagrams() -> Vec<RobustnessCase> {
    let case = |name: &str, bytes: Vec<u8>, expect| RobustnessCase {
        family: "known to hurt".to_owned(),
        name: name.to_owned(),
        clause: "7.6.3".to_owned(),
        bytes,
        sender: CaseSender::Owner,
        expect,
    };
    let whole = |body: Vec<u8>| {
        let length = u16::try_from(body.len() + 12)
            .unwrap_or(u16::MAX)
            .to_be_bytes();
        let head = [0x21, 50, length[0], length[1]];
        [&head[..], &[0; 12], &body].concat()
    };
    // Each Create PDR contains a PDI, which contains a Create PDR, and so on.
    let mut nested = Vec::new();
    for (place, kind) in (0..14_000u16).zip([1u8, 2].into_iter().cycle()) {
        let left = (13_999 - place) * 4;
        nested.extend([0, kind, left.to_be_bytes()[0], left.to_be_bytes()[1]]);
    }
    let either = || {
        let refused = ExpectedAnswer::one(51).causes(&[66, 68, 69, 73]);
        vec![refused, ExpectedAnswer::none()]
    };
    vec![
        case("64 KiB of 0xff", whole(vec![0xff; 65_000]), either()),
        case("14 000 groups in each other", whole(nested), either()),
        case("64 KiB of empty elements", whole(vec![0; 65_000]), either()),
        case("nothing at all", Vec::new(), vec![ExpectedAnswer::none()]),
    ]
}
