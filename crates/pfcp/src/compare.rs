//! The differences between two messages.
//!
//! The order of elements is ignored: elements are paired by type. Groups that may occur several
//! times are paired by the element that identifies them (the PDR ID of a Create PDR), other
//! elements that may occur several times by their content, and the remaining ones by position.
//! Spare bits, unknown elements and trailing bytes do count. [`Ignore`] selects what is left out of
//! the comparison.
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

use item::{Item, ItemContent, StatementValue, leaf_statements};

pub use ignore::Ignore;

/// Compares two messages.
///
/// Differences are returned in the order of the left message; within each group, the elements that
/// only the right message has come last. The time grows as `n log n` with the number of bytes,
/// whatever the messages contain.
#[must_use]
pub fn compare(
    left: &MessageView<'_>,
    right: &MessageView<'_>,
    ignore: &Ignore,
) -> Vec<Difference> {
    compare_in(left, right, ignore, &rows::NONE)
}

/// Compares two messages, using the rows of a dictionary for vendor-specific elements.
pub(crate) fn compare_in(
    left: &MessageView<'_>,
    right: &MessageView<'_>,
    ignore: &Ignore,
    vendors: &Dictionary,
) -> Vec<Difference> {
    let mut comparison = Comparison {
        message: left.message_type(),
        ignore,
        vendors,
        out: Vec::new(),
    };
    if left.message_type() != right.message_type() {
        let name = |view: &MessageView<'_>| Some(view.message_type().to_string());
        comparison.change(None, "message", name(left), name(right));
        return comparison.out;
    }
    comparison.headers(left.header(), right.header());
    comparison.groups(
        &item::items(left.root(), ignore, vendors),
        &item::items(right.root(), ignore, vendors),
        None,
    );
    comparison.out
}

impl Message {
    /// Compares this message with `right`; see [`compare`].
    ///
    /// # Errors
    /// Returns an error if one of the messages cannot be encoded.
    pub fn differences(&self, right: &Self, ignore: &Ignore) -> Result<Vec<Difference>, Error> {
        let bytes = [self.encode()?, right.encode()?];
        let mut indexes = [Index::new(), Index::new()];
        let [left, right] = &mut indexes;
        let left = MessageView::decode(&bytes[0], left)?;
        let right = MessageView::decode(&bytes[1], right)?;
        Ok(compare(&left, &right, ignore))
    }
}

/// A difference between two messages.
///
/// Its text is one line that contains the path: `Session Establishment Request / Create PDR[0] (PDR
/// ID 1) / PDI / F-TEID: TEID 0x1 -> 0x2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path in the left message, or in the right message for an element that only the right one
    /// has.
    pub path: IePath,
    /// The kind of the difference.
    pub kind: DifferenceKind,
    /// The names of the elements on the path, innermost last.
    names: Vec<Name>,
}

/// The name by which users know an element of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    /// The type alone.
    Type,
    /// The element that identifies it: the PDR ID of a Create PDR.
    Of(String),
    /// The name that a dictionary gives to a vendor-specific element.
    Vendor(String),
}

/// The kind of a [`Difference`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// A field of an element, or of the header, has another value.
    Changed {
        /// The name of the field.
        field: String,
        /// The value in the left message, or `None` if the field is absent there.
        left: Option<String>,
        /// The value in the right message, or `None` if the field is absent there.
        right: Option<String>,
    },
    /// An element exists only in the right message.
    Added {
        /// The value of the element. A group has a line for each of its members.
        value: String,
    },
    /// An element exists only in the left message.
    Removed {
        /// The value of the element. A group has a line for each of its members.
        value: String,
    },
}

impl Difference {
    /// Returns an iterator over the path as text. Each step has its index or, for an identified
    /// group, its name; a vendor-specific element has the name that the dictionary gives it.
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
            // A summary on one line: callers that want the members of a group read `value`.
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

struct Comparison<'i> {
    message: MessageType,
    ignore: &'i Ignore,
    vendors: &'i Dictionary,
    out: Vec<Difference>,
}

/// The path to an element, as a list on the stack.
struct ItemPath<'a, 'b> {
    outer: Option<&'b Self>,
    item: &'b Item<'a>,
}

impl Comparison<'_> {
    fn headers(&mut self, left: &Header, right: &Header) {
        let ignore = self.ignore;
        let text = |value: Option<&dyn Display>| value.map(ToString::to_string);
        if left.seid != right.seid && !ignore.header_seid() {
            let [left, right] = [&left.seid, &right.seid]
                .map(|seid| text(seid.as_ref().map(|seid| -> &dyn Display { seid })));
            self.change(None, "SEID", left, right);
        }
        if left.sequence != right.sequence && !ignore.header_sequence() {
            let [left, right] = [left, right].map(|header| text(Some(&header.sequence)));
            self.change(None, "sequence", left, right);
        }
        if left.priority != right.priority {
            let [left, right] =
                [left, right].map(|header| header.priority.map(|priority| priority.to_string()));
            self.change(None, "priority", left, right);
        }
        if left.follow_on != right.follow_on {
            let [left, right] = [left, right].map(|header| text(Some(&header.follow_on)));
            self.change(None, "another message follows", left, right);
        }
        if left.spare != right.spare && !ignore.spare() {
            let [left, right] = [left, right].map(|header| Some(format!("{:#06x}", header.spare)));
            self.change(None, "spare bits", left, right);
        }
    }

    fn groups(&mut self, left: &[Item<'_>], right: &[Item<'_>], path: Option<&ItemPath<'_, '_>>) {
        for pair in pair::unequal_pairs(left, right) {
            match pair {
                (Some(left), Some(right)) => self.elements(left, right, path),
                (Some(item), None) => {
                    let value = text::part(item.part, self.vendors);
                    let path = ItemPath { outer: path, item };
                    self.note(Some(&path), DifferenceKind::Removed { value });
                }
                (None, Some(item)) => {
                    let value = text::part(item.part, self.vendors);
                    let path = ItemPath { outer: path, item };
                    self.note(Some(&path), DifferenceKind::Added { value });
                }
                (None, None) => {}
            }
        }
    }

    fn elements(&mut self, left: &Item<'_>, right: &Item<'_>, outer: Option<&ItemPath<'_, '_>>) {
        let path = ItemPath { outer, item: left };
        let known = self.out.len();
        match (&left.content, &right.content) {
            (ItemContent::Group(left), ItemContent::Group(right)) => {
                return self.groups(left, right, Some(&path));
            }
            (ItemContent::Leaf(leaf), ItemContent::Leaf(_)) => {
                self.fields(leaf, left.part, right.part, &path);
            }
            (ItemContent::Vendor(_, left), ItemContent::Vendor(_, right)) => {
                for (label, left, right) in vendor::unequal_pairs(left, right) {
                    self.change(Some(&path), label, left, right);
                }
            }
            _ => {}
        }
        if self.out.len() == known {
            self.bytes(left.part, right.part, &path);
        }
    }

    fn bytes(&mut self, left: Part<'_>, right: Part<'_>, path: &ItemPath<'_, '_>) {
        let [left, right] = [left, right].map(|part| Some(text::hex(part.raw())));
        self.change(Some(path), "", left, right);
    }

    /// Compares the fields of two values of the same row, each with the field of the same name.
    fn fields(
        &mut self,
        leaf: &'static Leaf,
        left: Part<'_>,
        right: Part<'_>,
        path: &ItemPath<'_, '_>,
    ) {
        let (left, right) = (
            leaf_statements(leaf, left, self.ignore),
            leaf_statements(leaf, right, self.ignore),
        );
        let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
        loop {
            // Both sides are sorted by the order of the row, and either may lack a field.
            let next = match (lefts.peek(), rights.peek()) {
                (None, None) => return,
                (Some(left), Some(right)) => left.order.min(right.order),
                (Some(one), None) | (None, Some(one)) => one.order,
            };
            let left = lefts.next_if(|statement| statement.order == next);
            let right = rights.next_if(|statement| statement.order == next);
            let Some(name) = left.or(right).map(|statement| statement.name) else {
                return;
            };
            let [left, right] =
                [left, right].map(|statement| statement.map(|statement| &statement.value));
            if left != right {
                let alone = matches!(leaf.fields, [field] if field.name == name);
                let name = if alone { "" } else { &*text::field_name(name) };
                let [left, right] = [left, right].map(|value| value.map(StatementValue::text));
                self.change(Some(path), name, left, right);
            }
        }
    }

    fn change(
        &mut self,
        path: Option<&ItemPath<'_, '_>>,
        field: &str,
        left: Option<String>,
        right: Option<String>,
    ) {
        let field = field.to_owned();
        self.note(path, DifferenceKind::Changed { field, left, right });
    }

    fn note(&mut self, path: Option<&ItemPath<'_, '_>>, kind: DifferenceKind) {
        let (mut steps, mut names) = (Vec::new(), Vec::new());
        let mut next = path;
        while let Some(ItemPath { outer, item }) = next {
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
