//! Formatting of the vendor-specific elements that a dictionary describes.

use std::fmt::{self, Display};

use crate::ie::{Descriptor, Value, describe};
use crate::vendor::{Dictionary, VendorField, VendorRow, members};
use crate::wire::{DEPTH, Index, Part};

use super::field::{DisplayName, FieldText, Hex};
use super::{fields, parts, raw};

/// Formats an element with its name. The members of a group follow below it, indented further.
pub(super) fn element(
    f: &mut fmt::Formatter<'_>,
    part: Part<'_>,
    row: &VendorRow,
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

/// Formats the enterprise of a vendor-specific element. Formats nothing for other elements.
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

/// Formats the fields of an element on one line, or each member of a group on its own line.
pub(super) fn value(
    f: &mut fmt::Formatter<'_>,
    part: Part<'_>,
    row: &VendorRow,
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
            write!(f, "{} ", DisplayName(field.name()))?;
        }
        field_value(f, part, field, value)?;
        separator = ", ";
    }
    match element.tail() {
        [] => Ok(()),
        tail => write!(f, "{separator}trailing bytes {}", Hex(tail)),
    }
}

fn field_value(
    f: &mut fmt::Formatter<'_>,
    part: Part<'_>,
    field: &VendorField,
    value: Value<'_>,
) -> fmt::Result {
    match value {
        // Units are those of 3GPP fields: a vendor's field of the same name may have another unit.
        Value::Number(number) => match field.value_name(number) {
            Some(name) => write!(f, "{} ({number})", name.escape_debug()),
            None => number.fmt(f),
        },
        value => FieldText {
            ie: part.ie(),
            name: field.name(),
            kind: field.kind(),
            value,
        }
        .fmt(f),
    }
}

/// Returns the value of a field as text.
pub(crate) fn field_text(part: Part<'_>, field: &VendorField, value: Value<'_>) -> String {
    struct VendorFieldText<'a>(Part<'a>, &'a VendorField, Value<'a>);

    impl Display for VendorFieldText<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            field_value(f, self.0, self.1, self.2)
        }
    }

    VendorFieldText(part, field, value).to_string()
}

/// Formats the members of a vendor-specific group, one per line. Such a group may contain any
/// element.
fn group(
    f: &mut fmt::Formatter<'_>,
    bytes: &[u8],
    depth: usize,
    vendors: &Dictionary,
) -> fmt::Result {
    let mut index = Index::new();
    let whole = (depth <= DEPTH + 1).then(|| members(bytes, &mut index));
    let Some(whole) = whole.flatten() else {
        f.write_str(if depth == 0 { "" } else { ": " })?;
        return raw(f, bytes);
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

/// Formats the content of a member that is not vendor-specific.
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
