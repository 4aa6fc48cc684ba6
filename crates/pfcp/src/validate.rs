//! Validation of messages against the specification, for each interface.
//!
//! A message may be checked for several interfaces at once. Each finding lists the interfaces to
//! which it applies, and the message is refused when no interface is left. Unexpected and repeated
//! elements are findings without a cause: they are kept and ignored, TS 29.244 §7.6.
//!
//! ```
//! use strowger_pfcp::ie::Cause;
//! use strowger_pfcp::{IeType, Index, Interfaces, MessageView, validate};
//!
//! let bytes = [0x20, 5, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 1, 2, 3, 4];
//! let mut index = Index::new();
//! let view = MessageView::decode(&bytes, &mut index)?;
//! let rejection = validate(&view, Interfaces::N4).expect_err("no Node ID");
//! assert_eq!(rejection.cause, Cause::MANDATORY_IE_MISSING);
//! assert_eq!(rejection.offending_ie, Some(IeType::NODE_ID));
//! assert_eq!(rejection.to_string(), "Association Setup Request: Node ID is missing");
//! # Ok::<(), strowger_pfcp::Error>(())
//! ```
//!
//! A [`Scope`] combines interfaces with a release. A receiver of release 17 requires nothing that
//! was introduced later, and ignores it.

mod condition;
mod deviation;
mod release;
mod rule;
mod scope;
mod value;

use std::fmt;

use crate::error::{Error, ErrorKind, IePath, PathStep};
use crate::ie::{Cause, Descriptor, FailedRuleId, Group, Ie, IeType, Interfaces, Release};
use crate::message::MessageView;
use crate::wire::Part;

pub use deviation::Deviation;
pub use release::newer;
pub use scope::Scope;

pub(crate) use release::{encode_for_older, refuse_newer};

pub(crate) use condition::of_message;
pub(crate) use value::{
    incorrect, is_checked_by_head_only, is_closed, is_value_checked, valid_first_bytes,
};

/// A difference between a message and the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The element that is missing or wrong, or [`IeType::RESERVED`] if the message itself is at
    /// fault.
    pub ie: IeType,
    /// The group or message that the element belongs to.
    pub path: IePath,
    /// The interfaces to which the finding applies.
    pub on: Interfaces,
    /// The rule that the element belongs to.
    pub failed_rule: Option<FailedRuleId>,
}

/// The kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// A mandatory element is missing.
    Missing,
    /// A conditional element is missing although its condition holds. The clause states the
    /// condition.
    ConditionalMissing(&'static str),
    /// A value is not among those that the clause allows.
    Incorrect(&'static str),
    /// The message is not used on the interface. No element is at fault.
    WrongInterface,
    /// A value has a length that the clause does not allow.
    Length(&'static str),
    /// A deviation that [`tolerate`] accepts.
    Tolerated(Deviation),
    /// An element that may occur only once is repeated. The first one counts.
    Repeated,
    /// An element that the group does not have on any of the interfaces.
    Unexpected,
    /// The element, or one of its flags or values, is newer than a release.
    Newer {
        /// The flag, or the field with the value. `None` for the element itself.
        what: Option<&'static str>,
        /// First release that defines the element.
        release: Release,
    },
}

impl FindingKind {
    /// Returns the cause for a refusal, or `None` if the finding is no reason to refuse.
    #[must_use]
    pub const fn cause(self) -> Option<Cause> {
        match self {
            // The causes are those of TS 29.244 §7.6: missing elements §7.6.6, lengths §7.6.7,
            // values §7.6.8. A receiver ignores unknown and unexpected elements (§7.6.9) and
            // repetitions (§7.6.10).
            Self::Missing => Some(Cause::MANDATORY_IE_MISSING),
            Self::ConditionalMissing(_) => Some(Cause::CONDITIONAL_IE_MISSING),
            Self::Incorrect(_) => Some(Cause::MANDATORY_IE_INCORRECT),
            Self::Length(_) => Some(Cause::INVALID_LENGTH),
            // The message is known, but it is not part of the service on the interface.
            Self::WrongInterface => Some(Cause::SERVICE_NOT_SUPPORTED),
            Self::Tolerated(_) | Self::Repeated | Self::Unexpected | Self::Newer { .. } => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == FindingKind::WrongInterface {
            return write!(f, "{}: no message of {}", self.path, self.on);
        }
        write!(f, "{}: {} ", self.path, self.ie)?;
        match self.kind {
            FindingKind::Missing => f.write_str("is missing"),
            FindingKind::ConditionalMissing(clause) => write!(f, "is missing (§{clause})"),
            FindingKind::Incorrect(clause) => {
                write!(f, "has a value that §{clause} does not define")
            }
            FindingKind::Length(clause) => write!(f, "has a length that §{clause} does not allow"),
            FindingKind::Tolerated(deviation) => write!(f, "deviates: {deviation}"),
            FindingKind::WrongInterface => Ok(()),
            FindingKind::Repeated => f.write_str("occurs again"),
            FindingKind::Unexpected => f.write_str("is unexpected"),
            FindingKind::Newer { what, release } => match what {
                Some(what) => write!(f, "has {what}, which {release} does not have"),
                None => write!(f, "is newer than {release}"),
            },
        }
    }
}

/// The rejection of a message: the content of the answer, and the location of the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The cause for the answer.
    pub cause: Cause,
    /// The element at fault.
    pub offending_ie: Option<IeType>,
    /// The rule at fault.
    pub failed_rule: Option<FailedRuleId>,
    /// The path to the group or message at fault.
    pub path: IePath,
    text: String,
}

impl Rejection {
    /// Returns the rejection for bytes that could not be decoded, or `None` if they are to be
    /// discarded because not even the boundaries of the message's elements are known.
    #[must_use]
    pub fn of(error: &Error, bytes: &[u8]) -> Option<Self> {
        let cause = match error.kind() {
            // §7.6.6 to §7.6.8 call for an answer to each request whose elements can be told apart.
            ErrorKind::Missing(_) => Cause::MANDATORY_IE_MISSING,
            ErrorKind::Length { .. } | ErrorKind::Excess { .. } => Cause::INVALID_LENGTH,
            // The boundaries within a group are unknown, but those of the elements around it are
            // known.
            ErrorKind::ElementHeader { .. } if error.path().steps().count() > 0 => {
                Cause::INVALID_LENGTH
            }
            ErrorKind::Overrun { .. } | ErrorKind::Enterprise { .. }
                if error.path().steps().count() > 1 =>
            {
                Cause::INVALID_LENGTH
            }
            ErrorKind::Malformed { .. } | ErrorKind::Depth { .. } => Cause::MANDATORY_IE_INCORRECT,
            // A header or a top-level length is wrong, so the message is discarded (§7.6.3).
            _ => return None,
        };
        let offending_ie = match error.kind() {
            ErrorKind::Missing(ie) => Some(ie),
            _ => error.path().last(),
        };
        Some(Self {
            cause,
            offending_ie,
            // The message has no checked parts, so the rule is looked for in its bytes.
            failed_rule: rule::of_path(error.path(), bytes),
            path: error.path().clone(),
            text: error.to_string(),
        })
    }

    fn of_finding(finding: &Finding) -> Option<Self> {
        Some(Self {
            cause: finding.kind.cause()?,
            // No element is at fault if the message itself is.
            offending_ie: (finding.kind != FindingKind::WrongInterface).then_some(finding.ie),
            failed_rule: finding.failed_rule.clone(),
            path: finding.path.clone(),
            text: finding.to_string(),
        })
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Rejection {}

/// Checks a message for a set of interfaces, and returns those on which it is valid.
///
/// # Errors
/// Returns an error if no interface is left: the first finding that applies to all of them, or else
/// the one that excluded the last interface.
#[inline]
pub fn validate(view: &MessageView<'_>, scope: impl Into<Scope>) -> Result<Interfaces, Rejection> {
    let scope = scope.into();
    // The decoder has already determined the interfaces on which the message is valid in the newest
    // release.
    let valid_on = view.valid_on().and(scope.on);
    // For an older release the result would be too strict: it requires elements that are newer. And
    // if no interface is left, only the full check knows the reason.
    if !valid_on.is_empty() && scope.release == Release::R19 {
        return Ok(valid_on);
    }
    validate_in_full(view, scope)
}

/// A message accepted with the known deviations of real peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tolerated {
    /// The interfaces on which the message is accepted.
    pub on: Interfaces,
    /// The deviations that [`validate`] would have refused, in the order of the message.
    pub deviations: Vec<Deviation>,
}

/// Checks a message as [`validate`] does, but tolerates the known deviations of real peers.
///
/// # Errors
/// Returns an error if no interface is left, for a reason that is not a [`Deviation`].
///
/// ```
/// use strowger_pfcp::validate::{Deviation, tolerate};
/// use strowger_pfcp::{Index, Interfaces, MessageView, validate};
///
/// // Association Setup Response: a cause, and neither Node ID nor Recovery Time Stamp.
/// let bytes = [0x20, 6, 0, 9, 0, 0, 1, 0, 0, 19, 0, 1, 64];
/// let mut index = Index::new();
/// let view = MessageView::decode(&bytes, &mut index)?;
/// assert!(validate(&view, Interfaces::N4).is_err());
/// let tolerated = tolerate(&view, Interfaces::N4)?;
/// assert_eq!(tolerated.deviations, [Deviation::BareRejection; 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn tolerate(view: &MessageView<'_>, scope: impl Into<Scope>) -> Result<Tolerated, Rejection> {
    let scope = scope.into();
    let valid_on = view.valid_on().and(scope.on);
    // A message that is valid deviates in nothing.
    if !valid_on.is_empty() && scope.release == Release::R19 {
        return Ok(Tolerated {
            on: valid_on,
            deviations: Vec::new(),
        });
    }
    let mut validation = Validation::new(view, scope);
    validation.tolerant = true;
    let on = validation.run()?;
    let deviations = validation
        .findings
        .iter()
        .filter_map(|finding| match finding.kind {
            FindingKind::Tolerated(deviation) => Some(deviation),
            _ => None,
        });
    Ok(Tolerated {
        on,
        deviations: deviations.collect(),
    })
}

#[cold]
fn validate_in_full(view: &MessageView<'_>, scope: Scope) -> Result<Interfaces, Rejection> {
    Validation::new(view, scope).run()
}

/// Checks a message for a set of interfaces and returns all findings, including anything newer than
/// the release.
#[must_use]
pub fn findings(view: &MessageView<'_>, scope: impl Into<Scope>) -> Vec<Finding> {
    let mut validation = Validation::new(view, scope.into());
    validation.all = true;
    validation.message();
    validation.findings
}

struct Validation<'a, 'b> {
    view: &'b MessageView<'a>,
    on: Interfaces,
    release: Release,
    candidates: Interfaces,
    /// Continues when no interface is left, and includes findings that are no reason to refuse.
    all: bool,
    /// Set if known deviations of peers are accepted.
    tolerant: bool,
    findings: Vec<Finding>,
}

/// The path to a group, as a list on the stack.
struct GroupPath<'a, 'b> {
    outer: Option<&'b Self>,
    part: Part<'a>,
    /// The index among the elements of the same type, if the element may occur several times.
    index: Option<usize>,
}

impl<'a, 'b> Validation<'a, 'b> {
    const fn new(view: &'b MessageView<'a>, scope: Scope) -> Self {
        let Scope { on, release } = scope;
        Self {
            view,
            on,
            release,
            candidates: on,
            all: false,
            tolerant: false,
            findings: Vec::new(),
        }
    }

    /// Returns the interfaces that are left, or the rejection if there is none.
    fn run(&mut self) -> Result<Interfaces, Rejection> {
        let on = self.on;
        self.message();
        if !self.candidates.is_empty() {
            return Ok(self.candidates);
        }
        let refusals = self
            .findings
            .iter()
            .filter(|finding| finding.kind.cause().is_some());
        // A fault on all interfaces is the reason whichever one is meant. Without such a fault, the
        // last one decided.
        let worst = refusals.clone().find(|finding| finding.on.contains(on));
        match worst
            .or_else(|| refusals.clone().next_back())
            .and_then(Rejection::of_finding)
        {
            Some(rejection) => Err(rejection),
            // No interface was asked for, so none was excluded.
            None => Ok(on),
        }
    }

    /// Excludes the interfaces that do not use the message, and checks the message for the others.
    fn message(&mut self) {
        // First, because the tables of a message say nothing about interfaces that do not use it.
        let home = self.view.message_type().interfaces_in(self.release);
        let foreign = self.on.without(home);
        if !foreign.is_empty() {
            self.push_finding(FindingKind::WrongInterface, IeType::RESERVED, foreign, None);
        }
        self.on = self.on.and(home);
        if !self.on.is_empty() {
            self.group(self.view.root(), None);
        }
    }

    fn group(&mut self, group: Part<'a>, path: Option<&GroupPath<'a, '_>>) {
        let Some(Descriptor::Group(table)) = group.descriptor() else {
            return;
        };
        let may_lack = self.may_lack(path);
        self.mandatory(group, table, path, may_lack);
        condition::missing(
            group,
            table,
            self.view.message_type(),
            self.release,
            |ie, clause| {
                let kind = match may_lack {
                    true => FindingKind::Tolerated(Deviation::BareRejection),
                    false => FindingKind::ConditionalMissing(clause),
                };
                self.push_finding(kind, ie, self.on, path);
            },
        );
        let mut places = [0usize; 64];
        for part in group.parts() {
            // The message is refused already; more findings would not change the answer, which
            // names one element (Offending IE, §8.2.22).
            if self.candidates.is_empty() && !self.all {
                return;
            }
            // An element without a row has NO_SLOT, beyond the array. Its index is not used.
            let place = places.get_mut(usize::from(part.slot())).map_or(0, |next| {
                *next += 1;
                *next - 1
            });
            self.part(part, place, path);
        }
    }

    fn part(&mut self, part: Part<'a>, place: usize, path: Option<&GroupPath<'a, '_>>) {
        let Some(member) = part.member() else {
            // The decoder gives an element with a wrong length no row, so that nothing reads its
            // fields. The table says whether the element is expected here at all.
            let has_row = |path: &GroupPath<'_, '_>| match path.part.descriptor() {
                Some(Descriptor::Group(table)) => table.member(part.ie()).is_some(),
                _ => false,
            };
            if let Some(deviation) = Deviation::of_length(part.ie(), part.raw())
                && !part.is_repeated()
                && path.is_some_and(has_row)
            {
                let strict = FindingKind::Length(deviation.clause());
                self.push_deviation(deviation, strict, part.ie(), path);
                return;
            }
            // Vendor-specific elements may be in any message, so none is unexpected.
            if self.all && !part.ie().is_vendor() {
                let repeated = part.is_repeated();
                let kind = if repeated {
                    FindingKind::Repeated
                } else {
                    FindingKind::Unexpected
                };
                self.push_finding(kind, part.ie(), self.on, path);
            }
            return;
        };
        // A receiver of the release does not know the element, and ignores it with its contents
        // (§7.6.9).
        if release::is_newer(part, self.release) {
            if self.all {
                let kind = FindingKind::Newer {
                    what: None,
                    release: self.release,
                };
                self.push_finding(kind, part.ie(), self.on, path);
            }
            return;
        }
        if self.all
            && self
                .on
                .and(member.interfaces_in_release(self.release))
                .is_empty()
        {
            self.push_finding(FindingKind::Unexpected, part.ie(), self.on, path);
        }
        match member.descriptor {
            Descriptor::Leaf(_) => {
                if let Some(clause) = incorrect(part.ie(), part.raw()) {
                    // The cause is that for a mandatory element also where the element is optional:
                    // the value asks for something that cannot be done, and ignoring it would
                    // accept a rule without its effect.
                    let strict = FindingKind::Incorrect(clause);
                    match Deviation::of_value(part) {
                        Some(deviation) => self.push_deviation(deviation, strict, part.ie(), path),
                        None => self.push_finding(strict, part.ie(), self.on, path),
                    }
                }
                if self.all {
                    self.newer_fields(part, path);
                }
            }
            Descriptor::Group(_) => {
                let index = member.many.then_some(place);
                self.group(
                    part,
                    Some(&GroupPath {
                        outer: path,
                        part,
                        index,
                    }),
                );
            }
        }
    }

    /// Adds a deviation as a finding: tolerated, or else of kind `strict`.
    fn push_deviation(
        &mut self,
        deviation: Deviation,
        strict: FindingKind,
        ie: IeType,
        path: Option<&GroupPath<'a, '_>>,
    ) {
        let kind = match self.tolerant {
            true => FindingKind::Tolerated(deviation),
            false => strict,
        };
        self.push_finding(kind, ie, self.on, path);
    }

    /// Returns `true` if missing elements are tolerated in this group: the top level of a response
    /// whose Cause is a rejection.
    fn may_lack(&self, path: Option<&GroupPath<'a, '_>>) -> bool {
        // Rejections have rules of their own (§7.2.3.2). A group inside one must be complete all
        // the same.
        self.tolerant
            && path.is_none()
            && self.view.message_type().is_response()
            && self
                .view
                .root()
                .find(IeType::CAUSE)
                .and_then(Cause::view)
                .is_some_and(Cause::is_rejection)
    }

    /// Adds findings for the flags and values that the release does not define.
    fn newer_fields(&mut self, part: Part<'a>, path: Option<&GroupPath<'a, '_>>) {
        let Some(Descriptor::Leaf(leaf)) = part.descriptor() else {
            return;
        };
        for what in release::newer_fields(leaf, part.raw(), self.release) {
            let kind = FindingKind::Newer {
                what: Some(what),
                release: self.release,
            };
            self.push_finding(kind, part.ie(), self.on, path);
        }
    }

    /// Adds findings for the missing mandatory members.
    fn mandatory(
        &mut self,
        group: Part<'a>,
        table: &'static Group,
        path: Option<&GroupPath<'a, '_>>,
        may_lack: bool,
    ) {
        // One comparison for nearly all groups; members are looked at one by one only where bits
        // remain.
        let lacking = table.required_by(self.on) & !condition::filled_slots(group);
        for (slot, member) in table.members.iter().enumerate() {
            let on = table
                .interfaces_requiring(member, self.release)
                .and(self.on);
            // A member that the release does not have is required nowhere.
            if lacking >> slot & 1 == 1 && !on.is_empty() {
                let kind = match may_lack {
                    true => FindingKind::Tolerated(Deviation::BareRejection),
                    false => FindingKind::Missing,
                };
                self.push_finding(kind, member.ie, on, path);
            }
        }
    }

    #[cold]
    fn push_finding(
        &mut self,
        kind: FindingKind,
        ie: IeType,
        on: Interfaces,
        path: Option<&GroupPath<'a, '_>>,
    ) {
        // Findings that are ignored exclude no interface.
        if kind.cause().is_some() {
            self.candidates = self.candidates.without(on);
        }
        let mut steps = Vec::new();
        let mut failed_rule = None;
        let mut next = path;
        while let Some(GroupPath { outer, part, index }) = next {
            steps.push(PathStep {
                ie: part.ie(),
                index: *index,
            });
            // Outwards, so the outermost group that is a rule wins.
            failed_rule = rule::named_by(*part).or(failed_rule);
            next = *outer;
        }
        let path = IePath::new(self.view.message_type(), steps);
        self.findings.push(Finding {
            kind,
            ie,
            path,
            on,
            failed_rule,
        });
    }
}
