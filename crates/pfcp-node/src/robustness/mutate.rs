//! Invalid requests, derived from valid ones by the rows of their tables.

use strowger_pfcp::IeType;
use strowger_pfcp::ie::descriptor::{Descriptor, Group, Interfaces, Member, Presence};

use super::case::{ExpectedAnswer, RobustnessCase};
use super::tree::TestElement;
use super::valid::ValidRequest;

/// The maximum depth of nested groups.
const MAX_DEPTH: usize = 5;

/// Returns cases for each row of a request's table and of the grouped IEs in it: the IE is missing,
/// empty, too short, too long, out of range, duplicated, or in the wrong place.
pub(super) fn elements(valid: &ValidRequest) -> Vec<RobustnessCase> {
    let Some(table) = valid.message_type.table() else {
        return Vec::new();
    };
    let mut mutations = Mutations {
        valid,
        top: table,
        cases: Vec::new(),
    };
    let position = GroupPosition {
        path: Vec::new(),
        in_valid_request: true,
        rebuild: &|elements| elements,
    };
    mutations.group(table, &valid.elements, &position);
    mutations.cases
}

struct Mutations<'a> {
    valid: &'a ValidRequest,
    top: &'static Group,
    cases: Vec<RobustnessCase>,
}

/// The position of a group in the message.
struct GroupPosition<'a> {
    path: Vec<IeType>,
    /// Set if the valid message contains the group, so that the mutation is its only fault.
    in_valid_request: bool,
    /// Builds the IEs of the message from those of the group.
    rebuild: &'a dyn Fn(Vec<TestElement>) -> Vec<TestElement>,
}

/// A kind of fault of an IE.
#[derive(Clone, Copy)]
struct FaultKind {
    family: &'static str,
    clause: &'static str,
}

impl FaultKind {
    const fn new(family: &'static str, clause: &'static str) -> Self {
        Self { family, clause }
    }
}

const MISSING: FaultKind = FaultKind::new("element missing", "7.6.6");
const EMPTY: FaultKind = FaultKind::new("element empty", "7.6.7");
const SHORT: FaultKind = FaultKind::new("element short", "7.6.7");
const LONG: FaultKind = FaultKind::new("element long", "7.6.7");
const RANGE: FaultKind = FaultKind::new("element out of range", "7.6.8");
const DOUBLED: FaultKind = FaultKind::new("element doubled", "7.6.10");
const MISPLACED: FaultKind = FaultKind::new("element in the wrong place", "7.6.9");

impl Mutations<'_> {
    fn group(&mut self, table: &'static Group, here: &[TestElement], position: &GroupPosition<'_>) {
        for member in table.members {
            if member.on.and(Interfaces::N4).is_empty() {
                continue;
            }
            let at = here.iter().position(|element| element.ie == member.ie);
            let valid = at.map_or_else(|| TestElement::least(member), |at| here[at].clone());
            let in_valid_request = position.in_valid_request && at.is_some();
            let put = |element: TestElement| {
                let mut elements = here.to_vec();
                match at {
                    Some(at) => elements[at] = element,
                    None => elements.push(element),
                }
                (position.rebuild)(elements)
            };
            if at.is_some() {
                self.missing(table, member, here, position);
                self.doubled(member, &valid, here, position);
            }
            self.values(member, &valid, in_valid_request, position, &put);
            if in_valid_request && !position.path.is_empty() {
                self.misplaced(member, &valid);
            }
            if let Descriptor::Group(inner) = member.descriptor
                && position.path.len() + 1 < MAX_DEPTH
            {
                let mut path = position.path.clone();
                path.push(member.ie);
                let rebuild = |elements| put(TestElement::group(member.ie, elements));
                let inner_position = GroupPosition {
                    path,
                    in_valid_request,
                    rebuild: &rebuild,
                };
                self.group(inner, valid.elements(), &inner_position);
            }
        }
    }

    fn missing(
        &mut self,
        table: &Group,
        member: &Member,
        here: &[TestElement],
        position: &GroupPosition<'_>,
    ) {
        let mut left = here.to_vec();
        left.retain(|element| element.ie != member.ie);
        let expect = match position.in_valid_request && is_needed(table, member) {
            true => refused(self.valid, &[66], member.ie, &position.path),
            false => answered(self.valid),
        };
        self.add(MISSING, member, position, &(position.rebuild)(left), expect);
    }

    fn doubled(
        &mut self,
        member: &Member,
        valid: &TestElement,
        here: &[TestElement],
        position: &GroupPosition<'_>,
    ) {
        let mut elements = here.to_vec();
        elements.push(valid.clone());
        let leaf = matches!(member.descriptor, Descriptor::Leaf(_));
        // If an IE may occur only once, the first occurrence counts. If it may occur several times,
        // two with the same ID may be an error.
        let expect = match position.in_valid_request && leaf && !member.many {
            true => accepted(self.valid),
            false => answered(self.valid),
        };
        self.add(
            DOUBLED,
            member,
            position,
            &(position.rebuild)(elements),
            expect,
        );
    }

    fn values(
        &mut self,
        member: &Member,
        valid: &TestElement,
        in_valid_request: bool,
        position: &GroupPosition<'_>,
        put: &dyn Fn(TestElement) -> Vec<TestElement>,
    ) {
        let value = valid.value();
        let least = match member.descriptor {
            Descriptor::Leaf(leaf) => leaf.min,
            Descriptor::Group(_) => 0,
        };
        let is_bad = in_valid_request && member.presence == Presence::Mandatory && least > 0;
        let short = value.get(..least.saturating_sub(1)).unwrap_or_default();
        let long = [&value[..], &[0; 3]].concat();
        let full = vec![0xff; value.len().max(least).max(1)];
        let rows = [
            (EMPTY, Vec::new(), is_bad),
            (SHORT, short.to_vec(), is_bad),
            (LONG, long, false),
            (RANGE, full, false),
        ];
        for (kind, bytes, is_bad) in rows {
            let same = bytes == value || (kind.family == SHORT.family && bytes.is_empty());
            // Every time stamp is within range, and a later one indicates that the sender has
            // restarted.
            let is_time = member.ie == IeType::RECOVERY_TIME_STAMP;
            if same || (is_time && kind.family == RANGE.family) {
                continue;
            }
            let expect = match is_bad {
                true => refused(self.valid, &[66, 68, 69], member.ie, &position.path),
                false => answered(self.valid),
            };
            let elements = put(TestElement::leaf(member.ie, bytes));
            self.add(kind, member, position, &elements, expect);
        }
    }

    /// Adds a valid IE of a group to the top level of the message, where it has no meaning.
    fn misplaced(&mut self, member: &Member, valid: &TestElement) {
        if self.top.member(member.ie).is_some() {
            return;
        }
        let mut elements = self.valid.elements.clone();
        elements.push(valid.clone());
        let top = GroupPosition {
            path: Vec::new(),
            in_valid_request: true,
            rebuild: &|elements| elements,
        };
        let expect = accepted(self.valid);
        self.add(MISPLACED, member, &top, &elements, expect);
    }

    fn add(
        &mut self,
        kind: FaultKind,
        member: &Member,
        position: &GroupPosition<'_>,
        elements: &[TestElement],
        expect: Vec<ExpectedAnswer>,
    ) {
        let Some(bytes) = self.valid.with(elements) else {
            return;
        };
        let mut name = self.valid.message_type.to_string();
        for ie in position.path.iter().chain([&member.ie]) {
            name.push_str(" / ");
            name.push_str(&ie.to_string());
        }
        self.cases.push(RobustnessCase {
            family: kind.family.to_owned(),
            name,
            clause: kind.clause.to_owned(),
            bytes,
            sender: self.valid.sender,
            expect,
        });
    }
}

/// Returns `true` if every interface that has the message requires the member.
fn is_needed(table: &Group, member: &Member) -> bool {
    let of_message = table.members.iter().map(|one| one.on);
    let all = of_message.fold(Interfaces::NONE, Interfaces::with);
    member.presence == Presence::Mandatory && member.on.contains(all)
}

/// Expects that the node accepts the request.
pub(super) fn accepted(valid: &ValidRequest) -> Vec<ExpectedAnswer> {
    if valid.message_type == strowger_pfcp::MessageType::HEARTBEAT_REQUEST {
        return answered(valid);
    }
    vec![ExpectedAnswer::one(valid.response()).causes(&[1, 76])]
}

/// Expects any response of the node.
fn answered(valid: &ValidRequest) -> Vec<ExpectedAnswer> {
    let one = ExpectedAnswer::one(valid.response());
    match valid.message_type.0 {
        // A Heartbeat Response cannot report an error, so the node may also omit it.
        1 => vec![one, ExpectedAnswer::none()],
        _ => vec![one],
    }
}

/// Expects that the node refuses the request.
fn refused(
    valid: &ValidRequest,
    causes: &[u8],
    ie: IeType,
    path: &[IeType],
) -> Vec<ExpectedAnswer> {
    if valid.message_type == strowger_pfcp::MessageType::HEARTBEAT_REQUEST {
        return vec![ExpectedAnswer::none()];
    }
    let mut causes = causes.to_vec();
    // A node that does not support the service need not examine the rest of the request.
    if !valid.message_type.is_session() {
        causes.push(76);
    }
    let offending = path.iter().copied().chain([ie]);
    let one = ExpectedAnswer::one(valid.response());
    vec![one.causes(&causes).offending(offending)]
}
