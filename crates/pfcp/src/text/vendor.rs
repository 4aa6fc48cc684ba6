//! The elements of vendors that a dictionary has rows for.

use std::fmt::{self, Display};

use crate::ie::{Descriptor, Value, describe};
use crate::vendor::{Dictionary, Field, Row, members};
use crate::wire::{DEPTH, Index, Part};

use super::field::{Hex, Label, Shown};
use super::{fields, parts, raw};

/// Writes an element with its name; what a group has stands below, further to the right.
pub(super) fn element(
    f: &mut fmt::Formatter<'_>,
    part: Part<'_>,
    row: &Row,
    depth: usize,
    vendors: &Dictionary,
) -> fmt::Result {
    write!(f, "{} ({})", row.name().escape_debug(), part.ie().0)?;
    owner(f, part, vendors)?;
    if row.is_group() && !part.value().is_empty() {
        return group(f, part.value(), depth.max(1) + 1, vendors);
    }
    f.write_str(": ")?;
    value(f, part, row, depth, vendors)
}

/// Writes whose element it is, if it is a vendor's.
pub(super) fn owner(
    f: &mut fmt::Formatter<'_>,
    part: Part<'_>,
    vendors: &Dictionary,
) -> fmt::Result {
    let Some(enterprise) = part.enterprise() else {
        return Ok(());
    };
    match vendors.vendor(enterprise) {
        Some(name) => write!(f, " of {} ({enterprise})", name.escape_debug()),
        None => write!(f, " of enterprise {enterprise}"),
    }
}

/// Writes the fields of an element on a line, or the members of a group on one each.
pub(super) fn value(
    f: &mut fmt::Formatter<'_>,
    part: Part<'_>,
    row: &Row,
    depth: usize,
    vendors: &Dictionary,
) -> fmt::Result {
    if row.is_group() {
        if part.value().is_empty() {
            return f.write_str("none");
        }
        return group(f, part.value(), depth, vendors);
    }
    let Some(element) = vendors.element(part) else {
        f.write_str("shorter than its fields: ")?;
        return raw(f, part.value());
    };
    let mut separator = "";
    for (field, value) in element.fields() {
        f.write_str(separator)?;
        if row.layout().len() > 1 {
            write!(f, "{} ", Label(field.name()))?;
        }
        shown(f, part, field, value)?;
        separator = ", ";
    }
    match element.tail() {
        [] => Ok(()),
        tail => write!(f, "{separator}further octets {}", Hex(tail)),
    }
}

fn shown(
    f: &mut fmt::Formatter<'_>,
    part: Part<'_>,
    field: &Field,
    value: Value<'_>,
) -> fmt::Result {
    match value {
        // Units are those of the specification: a vendor's field of the same name may have others.
        Value::Number(number) => match field.value_name(number) {
            Some(name) => write!(f, "{} ({number})", name.escape_debug()),
            None => number.fmt(f),
        },
        value => Shown {
            ie: part.ie(),
            name: field.name(),
            kind: field.kind(),
            value,
        }
        .fmt(f),
    }
}

/// Returns the value of a field as text.
pub(crate) fn field_text(part: Part<'_>, field: &Field, value: Value<'_>) -> String {
    struct Text<'a>(Part<'a>, &'a Field, Value<'a>);

    impl Display for Text<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            shown(f, self.0, self.1, self.2)
        }
    }

    Text(part, field, value).to_string()
}

/// Writes the members of a vendor's group, a line each: whatever they are, they belong there.
fn group(
    f: &mut fmt::Formatter<'_>,
    octets: &[u8],
    depth: usize,
    vendors: &Dictionary,
) -> fmt::Result {
    let mut index = Index::new();
    let whole = (depth <= DEPTH + 1).then(|| members(octets, &mut index));
    let Some(whole) = whole.flatten() else {
        f.write_str(if depth == 0 { "" } else { ": " })?;
        return raw(f, octets);
    };
    for (place, part) in whole.parts().enumerate() {
        if depth > 0 || place > 0 {
            f.write_str("\n")?;
        }
        write!(f, "{:1$}", "", 2 * depth)?;
        if let Some(row) = vendors.row_of(part) {
            element(f, part, row, depth, vendors)?;
            continue;
        }
        write!(f, "{} ({})", part.ie(), part.ie().0)?;
        owner(f, part, vendors)?;
        member(f, part, depth, vendors)?;
    }
    Ok(())
}

/// Writes what a member of a vendor's group says that is not a vendor's itself.
fn member(
    f: &mut fmt::Formatter<'_>,
    part: Part<'_>,
    depth: usize,
    vendors: &Dictionary,
) -> fmt::Result {
    match describe(part.ie()) {
        Some(Descriptor::Leaf(leaf)) if (leaf.check)(part.raw()).is_ok() => {
            f.write_str(": ")?;
            fields(f, leaf, part.raw())
        }
        Some(Descriptor::Group(table)) => match Index::new().walk(part.raw(), 0, table) {
            Ok(inner) => parts(f, inner, depth.max(1) + 1, vendors),
            Err(_) => {
                f.write_str(": ")?;
                raw(f, part.raw())
            }
        },
        _ => {
            f.write_str(": ")?;
            raw(f, part.value())
        }
    }
}
