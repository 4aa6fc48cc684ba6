//! What two messages say differently.
//!
//! The order of elements does not count: elements are paired by their type, groups of which there
//! may be several by the element that names them (the PDR ID of a Create PDR), other elements of
//! which there may be several by what they say, and what is left over by its place. Spare bits,
//! unknown elements and octets after the fields do count. [`Ignore`] names what is left out.
//!
//! ```text
//!  left                          right
//!  Create PDR (PDR ID 1) ------- Create PDR (PDR ID 1)
//!  Create PDR (PDR ID 2) --.  .- Create PDR (PDR ID 3)     added
//!  Create FAR (FAR ID 1) -. \/
//!                          \ `-- Create PDR (PDR ID 2)
//!                           `--- Create FAR (FAR ID 1)
//! ```
//!
//! ```
//! use strowger_pfcp::message::HeartbeatRequest;
//! use strowger_pfcp::{Ignore, Message, Sequence};
//!
//! let left = Message::node(Sequence::new(1), HeartbeatRequest::new(0));
//! let right = Message::node(Sequence::new(2), HeartbeatRequest::new(60));
//! let differences = left.differences(&right, &Ignore::nothing().sequences())?;
//! assert_eq!(
//!     differences[0].to_string(),
//!     "Heartbeat Request / Recovery Time Stamp: 2036-02-07T06:28:16Z -> 2036-02-07T06:29:16Z"
//! );
//! assert_eq!(left.differences(&right, &Ignore::nothing().sequences().times())?, []);
//! # Ok::<(), strowger_pfcp::Error>(())
//! ```

mod ignore;
mod item;
mod pair;
mod vendor;

use std::fmt::{self, Display};

use crate::error::{Error, IePath, PathStep};
use crate::ie::Leaf;
use crate::message::{Message, MessageType, MessageView};
use crate::text;
use crate::vendor::{self as rows, Dictionary};
use crate::wire::{Header, Index, Part};

use item::{Content, Item, Says, said};

pub use ignore::Ignore;

/// Compares two messages.
///
/// The differences come in the order of the left message, in each group first what it has, then
/// what only the right one has. The time grows as `n log n` with the octets, whatever they are.
#[must_use]
pub fn compare(
    left: &MessageView<'_>,
    right: &MessageView<'_>,
    ignore: &Ignore,
) -> Vec<Difference> {
    compare_in(left, right, ignore, &rows::NONE)
}

/// Compares two messages with rows for elements of vendors.
pub(crate) fn compare_in(
    left: &MessageView<'_>,
    right: &MessageView<'_>,
    ignore: &Ignore,
    vendors: &Dictionary,
) -> Vec<Difference> {
    let mut walk = Walk {
        message: left.message_type(),
        ignore,
        vendors,
        out: Vec::new(),
    };
    if left.message_type() != right.message_type() {
        let name = |view: &MessageView<'_>| Some(view.message_type().to_string());
        walk.change(None, "message", name(left), name(right));
        return walk.out;
    }
    walk.headers(left.header(), right.header());
    walk.groups(
        &item::items(left.root(), ignore, vendors),
        &item::items(right.root(), ignore, vendors),
        None,
    );
    walk.out
}

impl Message {
    /// Compares the message with another one; see [`compare`].
    ///
    /// # Errors
    /// When one of them cannot be encoded.
    pub fn differences(&self, right: &Self, ignore: &Ignore) -> Result<Vec<Difference>, Error> {
        let octets = [self.encode()?, right.encode()?];
        let mut indexes = [Index::new(), Index::new()];
        let [left, right] = &mut indexes;
        let left = MessageView::decode(&octets[0], left)?;
        let right = MessageView::decode(&octets[1], right)?;
        Ok(compare(&left, &right, ignore))
    }
}

/// One thing that two messages say differently.
///
/// As text it is one line that names the place:
/// `Session Establishment Request / Create PDR[0] (PDR ID 1) / PDI / F-TEID: TEID 0x1 -> 0x2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The place in the left message, or in the right one of what only that one has.
    pub path: IePath,
    /// What it is.
    pub kind: DifferenceKind,
    /// The names of the elements on the path, the innermost last.
    names: Vec<Name>,
}

/// What people know an element of a path by.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    /// Its type alone.
    Type,
    /// The element that names it: the PDR ID of a Create PDR.
    Of(String),
    /// The name that a dictionary gives a vendor's element.
    Vendor(String),
}

/// What a [`Difference`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// A field of an element, or of the header, says something else.
    Changed {
        /// The name of the field.
        field: String,
        /// What the left one says, `None` where it has no such field.
        left: Option<String>,
        /// What the right one says.
        right: Option<String>,
    },
    /// The right message has an element that the left one has not.
    Added {
        /// What it says; a group has a line for each of its members.
        value: String,
    },
    /// The left message has an element that the right one has not.
    Removed {
        /// What it says; a group has a line for each of its members.
        value: String,
    },
}

impl Difference {
    /// Walks the path as text: each step with its place and, in a group that has one, its name;
    /// a vendor's element has the name that the dictionary gives it.
    pub fn steps(&self) -> impl Iterator<Item = String> + '_ {
        let step = |(step, name): (PathStep, &Name)| match (name, step.index) {
            (Name::Type, _) => step.to_string(),
            (Name::Of(name), _) => format!("{step} ({name})"),
            (Name::Vendor(name), Some(index)) => format!("{name}[{index}]"),
            (Name::Vendor(name), None) => name.clone(),
        };
        self.path.steps().zip(&self.names).map(step)
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = self.path.message() {
            message.fmt(f)?;
        }
        self.steps().try_for_each(|step| write!(f, " / {step}"))?;
        let what = |f: &mut fmt::Formatter<'_>, what: &str, value: &str| {
            // The lines of a group are for those who ask for them.
            if value.contains('\n') {
                write!(f, ": {what}")
            } else {
                write!(f, ": {what} {value}")
            }
        };
        match &self.kind {
            DifferenceKind::Changed { field, left, right } => {
                let space = if field.is_empty() { "" } else { " " };
                let [left, right] = [left, right].map(|side| side.as_deref().unwrap_or("none"));
                write!(f, ": {field}{space}{left} -> {right}")
            }
            DifferenceKind::Added { value } => what(f, "added", value),
            DifferenceKind::Removed { value } => what(f, "removed", value),
        }
    }
}

struct Walk<'i> {
    message: MessageType,
    ignore: &'i Ignore,
    vendors: &'i Dictionary,
    out: Vec<Difference>,
}

/// The way to an element, on the stack.
struct Trail<'a, 'b> {
    outer: Option<&'b Self>,
    item: &'b Item<'a>,
}

impl Walk<'_> {
    fn headers(&mut self, left: &Header, right: &Header) {
        let ignore = self.ignore;
        let shown = |value: Option<&dyn Display>| value.map(ToString::to_string);
        if left.seid != right.seid && !ignore.header_seid() {
            let [left, right] = [&left.seid, &right.seid]
                .map(|seid| shown(seid.as_ref().map(|seid| -> &dyn Display { seid })));
            self.change(None, "SEID", left, right);
        }
        if left.sequence != right.sequence && !ignore.header_sequence() {
            let [left, right] = [left, right].map(|header| shown(Some(&header.sequence)));
            self.change(None, "sequence", left, right);
        }
        if left.priority != right.priority {
            let [left, right] =
                [left, right].map(|header| header.priority.map(|priority| priority.to_string()));
            self.change(None, "priority", left, right);
        }
        if left.follow_on != right.follow_on {
            let [left, right] = [left, right].map(|header| shown(Some(&header.follow_on)));
            self.change(None, "another message follows", left, right);
        }
        if left.spare != right.spare && !ignore.spare() {
            let [left, right] = [left, right].map(|header| Some(format!("{:#06x}", header.spare)));
            self.change(None, "spare bits", left, right);
        }
    }

    fn groups(&mut self, left: &[Item<'_>], right: &[Item<'_>], trail: Option<&Trail<'_, '_>>) {
        for pair in pair::unequal(left, right) {
            match pair {
                (Some(left), Some(right)) => self.elements(left, right, trail),
                (Some(item), None) => {
                    let value = text::part(item.part, self.vendors);
                    let trail = Trail { outer: trail, item };
                    self.note(Some(&trail), DifferenceKind::Removed { value });
                }
                (None, Some(item)) => {
                    let value = text::part(item.part, self.vendors);
                    let trail = Trail { outer: trail, item };
                    self.note(Some(&trail), DifferenceKind::Added { value });
                }
                (None, None) => {}
            }
        }
    }

    fn elements(&mut self, left: &Item<'_>, right: &Item<'_>, outer: Option<&Trail<'_, '_>>) {
        let trail = Trail { outer, item: left };
        let known = self.out.len();
        match (&left.content, &right.content) {
            (Content::Group(left), Content::Group(right)) => {
                return self.groups(left, right, Some(&trail));
            }
            (Content::Leaf(leaf), Content::Leaf(_)) => {
                self.fields(leaf, left.part, right.part, &trail);
            }
            (Content::Vendor(_, left), Content::Vendor(_, right)) => {
                for (label, left, right) in vendor::unequal(left, right) {
                    self.change(Some(&trail), label, left, right);
                }
            }
            _ => {}
        }
        if self.out.len() == known {
            self.octets(left.part, right.part, &trail);
        }
    }

    fn octets(&mut self, left: Part<'_>, right: Part<'_>, trail: &Trail<'_, '_>) {
        let [left, right] = [left, right].map(|part| Some(text::hex(part.raw())));
        self.change(Some(trail), "", left, right);
    }

    /// Compares the fields of two values of a row, each with the field of the same name.
    fn fields(
        &mut self,
        leaf: &'static Leaf,
        left: Part<'_>,
        right: Part<'_>,
        trail: &Trail<'_, '_>,
    ) {
        let (left, right) = (
            said(leaf, left, self.ignore),
            said(leaf, right, self.ignore),
        );
        let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
        loop {
            // Both are in the order of the row, and either may lack a field.
            let next = match (lefts.peek(), rights.peek()) {
                (None, None) => return,
                (Some(left), Some(right)) => left.order.min(right.order),
                (Some(one), None) | (None, Some(one)) => one.order,
            };
            let left = lefts.next_if(|said| said.order == next);
            let right = rights.next_if(|said| said.order == next);
            let Some(name) = left.or(right).map(|said| said.name) else {
                return;
            };
            let [left, right] = [left, right].map(|said| said.map(|said| &said.value));
            if left != right {
                let alone = matches!(leaf.fields, [field] if field.name == name);
                let name = if alone { "" } else { &*text::field_name(name) };
                let [left, right] = [left, right].map(|says| says.map(Says::text));
                self.change(Some(trail), name, left, right);
            }
        }
    }

    fn change(
        &mut self,
        trail: Option<&Trail<'_, '_>>,
        field: &str,
        left: Option<String>,
        right: Option<String>,
    ) {
        let field = field.to_owned();
        self.note(trail, DifferenceKind::Changed { field, left, right });
    }

    fn note(&mut self, trail: Option<&Trail<'_, '_>>, kind: DifferenceKind) {
        let (mut steps, mut names) = (Vec::new(), Vec::new());
        let mut next = trail;
        while let Some(Trail { outer, item }) = next {
            steps.push(PathStep {
                ie: item.part.ie(),
                index: item.index(),
            });
            names.push(item.name());
            next = *outer;
        }
        names.reverse();
        self.out.push(Difference {
            path: IePath::new(self.message, steps),
            kind,
            names,
        });
    }
}
