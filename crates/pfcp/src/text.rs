//! Messages and elements as text, similar to the packet tree of tshark.
//!
//! The message takes one line, and each element follows on a line with its fields. The members of a
//! group are listed below it, indented by two more columns.

mod field;
mod vendor;

use std::fmt::{self, Display};

use crate::error::ErrorKind;
use crate::ie::value::Value;
use crate::ie::{Descriptor, FieldKind, IeType, Leaf, describe};
use crate::message::MessageView;
use crate::vendor::{self as rows, Dictionary};
use crate::wire::{Index, Part};

use field::{DisplayName, FieldText, Hex};

pub(crate) use vendor::field_text;

/// An element that can be formatted from its encoded value.
pub(crate) trait FormatEncoded {
    /// Appends the encoded value.
    fn encoded(&self, out: &mut Vec<u8>) -> Result<(), ErrorKind>;
}

/// Formats the value of an element.
pub(crate) fn value(
    f: &mut fmt::Formatter<'_>,
    what: Descriptor,
    value: &dyn FormatEncoded,
) -> fmt::Result {
    let mut bytes = Vec::new();
    if let Err(kind) = value.encoded(&mut bytes) {
        return kind.fmt(f);
    }
    match what {
        Descriptor::Leaf(leaf) => fields(f, leaf, &bytes),
        Descriptor::Group(group) => match Index::new().walk(&bytes, 0, group) {
            Ok(part) => parts(f, part, 0, &rows::NONE),
            Err(error) => error.fmt(f),
        },
    }
}

/// Formats a message.
pub(crate) fn message(
    f: &mut fmt::Formatter<'_>,
    view: &MessageView<'_>,
    vendors: &Dictionary,
) -> fmt::Result {
    let header = view.header();
    write!(f, "{} ({})", header.message_type, header.message_type.0)?;
    if let Some(seid) = header.seid {
        write!(f, ", SEID {seid}")?;
    }
    write!(f, ", sequence {}", header.sequence)?;
    if let Some(priority) = header.priority {
        write!(f, ", priority {priority}")?;
    }
    if header.follow_on {
        f.write_str(", another message follows")?;
    }
    parts(f, view.root(), 1, vendors)
}

/// Returns an element as text: the fields of a leaf on one line, or each member of a group on its
/// own line.
pub(crate) fn part(part: Part<'_>, vendors: &Dictionary) -> String {
    struct PartText<'a>(Part<'a>, &'a Dictionary);

    impl Display for PartText<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0.descriptor() {
                Some(Descriptor::Group(_)) => parts(f, self.0, 0, self.1),
                Some(Descriptor::Leaf(leaf)) => fields(f, leaf, self.0.value()),
                None => match self.1.row_of(self.0) {
                    Some(row) => vendor::value(f, self.0, row, 0, self.1),
                    None => Hex(self.0.value()).fmt(f),
                },
            }
        }
    }

    PartText(part, vendors).to_string()
}

/// Returns the name of a field in words.
pub(crate) fn field_name(name: &str) -> String {
    DisplayName(name).to_string()
}

/// Returns the value of a field as text.
pub(crate) fn field_value(ie: IeType, name: &str, kind: FieldKind, value: Value<'_>) -> String {
    FieldText {
        ie,
        name,
        kind,
        value,
    }
    .to_string()
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    Hex(bytes).to_string()
}

/// Formats the members of a group, one per line. The first member also starts a new line unless
/// `depth` is 0.
fn parts(
    f: &mut fmt::Formatter<'_>,
    group: Part<'_>,
    depth: usize,
    vendors: &Dictionary,
) -> fmt::Result {
    for (place, part) in group.parts().enumerate() {
        if depth > 0 || place > 0 {
            f.write_str("\n")?;
        }
        write!(f, "{:1$}", "", 2 * depth)?;
        if let Some(row) = vendors.row_of(part) {
            vendor::element(f, part, row, depth, vendors)?;
            continue;
        }
        write!(f, "{} ({})", part.ie(), part.ie().0)?;
        if let Some(role) = part.member().and_then(|member| member.role) {
            write!(f, " as {role}")?;
        }
        match part.descriptor() {
            Some(Descriptor::Group(_)) => parts(f, part, depth.max(1) + 1, vendors)?,
            Some(Descriptor::Leaf(leaf)) => {
                f.write_str(": ")?;
                fields(f, leaf, part.value())?;
            }
            None => unexpected(f, part, vendors)?,
        }
    }
    Ok(())
}

/// Formats an element that its group does not define: its fields if a row describes them, or else
/// its bytes and their number.
fn unexpected(f: &mut fmt::Formatter<'_>, part: Part<'_>, vendors: &Dictionary) -> fmt::Result {
    vendor::owner(f, part, vendors)?;
    f.write_str(if part.is_repeated() {
        " (again): "
    } else {
        " (unexpected): "
    })?;
    match describe(part.ie()) {
        Some(Descriptor::Leaf(leaf)) if (leaf.check)(part.raw()).is_ok() => {
            fields(f, leaf, part.raw())
        }
        _ => raw(f, part.value()),
    }
}

/// Formats bytes and their number.
fn raw(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let plural = if bytes.len() == 1 { "" } else { "s" };
    write!(f, "{}, {} byte{plural}", Hex(bytes), bytes.len())
}

/// Formats the fields of a value. If the row has a single field, its name is omitted.
fn fields(f: &mut fmt::Formatter<'_>, leaf: &'static Leaf, bytes: &[u8]) -> fmt::Result {
    let mut separator = "";
    let alone = leaf.fields.len() == 1;
    for (name, kind, value) in leaf.read(bytes) {
        match value {
            // Flags that are not set are omitted, and so are flags that only announce another
            // field.
            Value::Flag(flag) if !flag || leaf.fields.iter().all(|field| field.name != name) => {
                continue;
            }
            Value::Flag(true) => write!(f, "{separator}{}", DisplayName(name))?,
            _ => {
                f.write_str(separator)?;
                if !alone {
                    write!(f, "{} ", DisplayName(name))?;
                }
                FieldText {
                    ie: leaf.ie,
                    name,
                    kind,
                    value,
                }
                .fmt(f)?;
            }
        }
        separator = ", ";
    }
    if separator.is_empty() {
        f.write_str("none")?;
    }
    Ok(())
}

/// Formats seconds since 1900 as a UTC date. Values before 1968 count from 2036, as specified in
/// RFC 4330.
fn time(f: &mut fmt::Formatter<'_>, seconds: u32) -> fmt::Result {
    let era = if seconds & 0x8000_0000 == 0 {
        1_u64 << 32
    } else {
        0
    };
    let since_1900 = u64::from(seconds) + era;
    let (days, second) = (since_1900 / 86_400, since_1900 % 86_400);
    // Counting days from 1 March of year 0 makes the leap day the last day of a year.
    let days = days + 693_901;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + 400 * era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write!(
        f,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    )
}
