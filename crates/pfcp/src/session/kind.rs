use std::fmt;

use super::reference::check_present;
use super::refusal::Refusal;
use crate::ie::{Cause, Descriptor, FailedRuleId, Ie, IeType, RuleType, describe};
use crate::wire::Tlvs;

/// The kinds of rules of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleKind {
    /// Packet detection rules.
    Pdr,
    /// Forwarding action rules.
    Far,
    /// Usage reporting rules.
    Urr,
    /// QoS enforcement rules.
    Qer,
    /// Buffering action rules.
    Bar,
    /// Multi-access rule (MAR).
    Mar,
    /// Session reporting rules.
    Srr,
    /// Traffic endpoints, which PDRs share.
    TrafficEndpoint,
}

/// The effect of an element of a request on a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleOperation {
    Create,
    Update,
    Remove,
}

/// The elements of one kind of rules.
struct RuleElements {
    kind: RuleKind,
    name: &'static str,
    create: IeType,
    update: IeType,
    remove: IeType,
    id: IeType,
    id_bytes: usize,
}

const fn row(
    kind: RuleKind,
    name: &'static str,
    [create, update, remove]: [IeType; 3],
    id: IeType,
    id_bytes: usize,
) -> RuleElements {
    RuleElements {
        kind,
        name,
        create,
        update,
        remove,
        id,
        id_bytes,
    }
}

/// The rows, in the order of [`RuleKind`].
const RULE_ELEMENTS: [RuleElements; 8] = {
    use IeType as I;
    use RuleKind as R;
    [
        row(
            R::Pdr,
            "PDR",
            [I::CREATE_PDR, I::UPDATE_PDR, I::REMOVE_PDR],
            I::PDR_ID,
            2,
        ),
        row(
            R::Far,
            "FAR",
            [I::CREATE_FAR, I::UPDATE_FAR, I::REMOVE_FAR],
            I::FAR_ID,
            4,
        ),
        row(
            R::Urr,
            "URR",
            [I::CREATE_URR, I::UPDATE_URR, I::REMOVE_URR],
            I::URR_ID,
            4,
        ),
        row(
            R::Qer,
            "QER",
            [I::CREATE_QER, I::UPDATE_QER, I::REMOVE_QER],
            I::QER_ID,
            4,
        ),
        row(
            R::Bar,
            "BAR",
            [I::CREATE_BAR, I::UPDATE_BAR, I::REMOVE_BAR],
            I::BAR_ID,
            1,
        ),
        row(
            R::Mar,
            "MAR",
            [I::CREATE_MAR, I::UPDATE_MAR, I::REMOVE_MAR],
            I::MAR_ID,
            2,
        ),
        row(
            R::Srr,
            "SRR",
            [I::CREATE_SRR, I::UPDATE_SRR, I::REMOVE_SRR],
            I::SRR_ID,
            1,
        ),
        row(
            R::TrafficEndpoint,
            "Traffic Endpoint",
            [
                I::CREATE_TRAFFIC_ENDPOINT,
                I::UPDATE_TRAFFIC_ENDPOINT,
                I::REMOVE_TRAFFIC_ENDPOINT,
            ],
            I::TRAFFIC_ENDPOINT_ID,
            1,
        ),
    ]
};

impl RuleKind {
    /// All kinds of rules, in the order of their groups.
    pub const ALL: [Self; 8] = [
        Self::Pdr,
        Self::Far,
        Self::Urr,
        Self::Qer,
        Self::Bar,
        Self::Mar,
        Self::Srr,
        Self::TrafficEndpoint,
    ];

    const fn row(self) -> &'static RuleElements {
        &RULE_ELEMENTS[self as usize]
    }

    /// Returns the element that creates a rule of this kind.
    #[must_use]
    pub const fn create(self) -> IeType {
        self.row().create
    }

    /// Returns the element that updates a rule of this kind.
    #[must_use]
    pub const fn update(self) -> IeType {
        self.row().update
    }

    /// Returns the element that removes a rule of this kind.
    #[must_use]
    pub const fn remove(self) -> IeType {
        self.row().remove
    }

    /// Returns the element that identifies a rule of this kind.
    #[must_use]
    pub const fn id(self) -> IeType {
        self.row().id
    }

    /// Checks that the value of a rule has the members that are mandatory on every interface.
    pub(crate) fn check(self, value: &[u8]) -> Result<(), Refusal> {
        match describe(self.create()) {
            Some(Descriptor::Group(group)) => check_present(value, group),
            Some(Descriptor::Leaf(_)) | None => Ok(()),
        }
    }

    pub(crate) const fn id_bytes(self) -> usize {
        self.row().id_bytes
    }

    /// Parses the value of a rule identifier. Returns `None` if it is too short.
    pub(crate) fn read_id(self, value: &[u8]) -> Option<u32> {
        let value = value.get(..self.id_bytes())?;
        Some(value.iter().fold(0, |id, byte| id << 8 | u32::from(*byte)))
    }

    /// Finds the identifier in the value of a rule's element.
    pub(crate) fn find_id(self, value: &[u8]) -> Result<RuleId, Refusal> {
        let ie = self.id();
        let found = Tlvs::new(value)
            .map_while(Result::ok)
            .find(|tlv| tlv.ie == ie)
            .ok_or_else(|| Refusal::new(Cause::MANDATORY_IE_MISSING).at(ie))?;
        self.read_id(found.value)
            .map(|id| RuleId { kind: self, id })
            .ok_or_else(|| Refusal::new(Cause::INVALID_LENGTH).at(ie))
    }

    /// Returns the kind of the rules that an element creates.
    pub(crate) fn created_by(ie: IeType) -> Option<Self> {
        let row = RULE_ELEMENTS.iter().find(|row| row.create == ie)?;
        Some(row.kind)
    }

    /// Returns the kind of rules that an element affects, and its effect.
    pub(crate) fn of(ie: IeType) -> Option<(Self, RuleOperation)> {
        RULE_ELEMENTS.iter().find_map(|row| {
            let operation = match ie {
                _ if ie == row.create => RuleOperation::Create,
                _ if ie == row.update => RuleOperation::Update,
                _ if ie == row.remove => RuleOperation::Remove,
                _ => return None,
            };
            Some((row.kind, operation))
        })
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().name)
    }
}

/// The identifier of a rule within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId {
    /// The kind of the rule.
    pub kind: RuleKind,
    /// The number of the rule, unique among the rules of its kind.
    pub id: u32,
}

impl RuleId {
    /// Returns the number in the length of its element.
    pub(crate) fn bytes(self) -> Vec<u8> {
        self.id.to_be_bytes()[4 - self.kind.id_bytes()..].to_vec()
    }

    /// Returns the identifier of the rule for an answer, TS 29.244 §8.2.80, or `None` for a traffic
    /// endpoint, which has no rule type there.
    #[must_use]
    pub fn failed_rule_id(self) -> Option<FailedRuleId> {
        let kind = match self.kind {
            RuleKind::Pdr => RuleType::PDR,
            RuleKind::Far => RuleType::FAR,
            RuleKind::Qer => RuleType::QER,
            RuleKind::Urr => RuleType::URR,
            RuleKind::Bar => RuleType::BAR,
            RuleKind::Mar => RuleType::MAR,
            RuleKind::Srr => RuleType::SRR,
            RuleKind::TrafficEndpoint => return None,
        };
        FailedRuleId::decode(&[vec![kind.0], self.bytes()].concat()).ok()
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}
