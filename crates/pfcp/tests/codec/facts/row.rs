//! The lines of the rows.

use super::*;

pub(super) fn member(table: &str, member: &Member) -> String {
    let many = if member.many { "many" } else { "once" };
    let Member {
        ie,
        presence,
        on,
        on_r17,
        ..
    } = member;
    format!(
        "member {table} {} {presence:?} {many} [{on}] R17 [{on_r17}]",
        ie.0
    )
}

/// The name that a table gives a member.
pub(super) fn role(table: &str, member: &Member) -> String {
    let name = member.role.or_else(|| member.ie.name()).unwrap_or_default();
    format!("role {table} {} {}", member.ie.0, plain(name))
}

/// A line for the bits of a field; a field of one bit includes its name.
fn bit(ie: IeType, shift: u8, width: u32, name: &str, since: Release) -> String {
    let (byte, bit) = (shift / 8 + 5, shift % 8 + 1);
    let name = if width == 1 {
        plain(name)
    } else {
        "-".to_owned()
    };
    format!("bits {} {byte}/{bit} width {width} {name} {since}", ie.0)
}

/// The lines of a field: its bits and the flag that announces it, or its names of values.
pub(super) fn field(leaf: &Leaf, field: &Field) -> Vec<String> {
    let mut lines = Vec::new();
    if let FieldPresence::Flag { name, shift } = field.when {
        lines.push(bit(leaf.ie, shift, 1, name, field.since));
    }
    let names = match field.kind {
        FieldKind::Bits {
            shift,
            width,
            names,
        } => {
            let above = if width > 8 { width - 8 } else { width };
            lines.push(bit(leaf.ie, shift, above, field.name, field.since));
            if width > 8 {
                let low = (shift / 8 + 1) * 8;
                lines.push(bit(leaf.ie, low, 8, field.name, field.since));
            }
            names
        }
        FieldKind::Number {
            bytes: 1,
            width,
            names,
        } => {
            if width < 8 && leaf.head == 0 && field.name == leaf.fields[0].name {
                lines.push(bit(leaf.ie, 0, width, field.name, field.since));
            }
            names
        }
        _ => None,
    };
    for value in 0..=255 {
        if let Some(text) = names.and_then(|names| names(value)) {
            let since = field.values.map_or(field.since, |since| since(value));
            let since = since.max(field.since);
            let (ie, text) = (leaf.ie.0, plain(text));
            lines.push(format!("value {ie} {} {value} {text} {since}", field.name));
        }
    }
    lines
}

/// The sizes of the fields after the head, `*` for a variable size.
pub(super) fn sizes(ie: IeType, head: usize, fields: &[Field]) -> String {
    let mut line = format!("octets {} {head}:", ie.0);
    for field in fields {
        let size = match field.kind {
            FieldKind::Number { bytes, width, .. } if bytes * 8 == width as usize => {
                format!(" {bytes}")
            }
            FieldKind::Number { bytes: 1, .. } => " 1".to_owned(),
            FieldKind::Number { bytes, width, .. } => format!(" {bytes}/{width}"),
            FieldKind::Signed { bytes } => format!(" {bytes}"),
            FieldKind::Time | FieldKind::Ipv4 => " 4".to_owned(),
            FieldKind::Ipv6 => " 16".to_owned(),
            FieldKind::Mac => " 6".to_owned(),
            FieldKind::Text(span)
            | FieldKind::Bytes(span)
            | FieldKind::Labels(span)
            | FieldKind::Digits(span)
            | FieldKind::List(_, span) => match span {
                FieldExtent::Length8
                | FieldExtent::Address
                | FieldExtent::MacAddresses
                | FieldExtent::CountedItems => " 1 *".to_owned(),
                FieldExtent::Length16 => " 2 *".to_owned(),
                FieldExtent::Fixed(bytes) => format!(" {bytes}"),
                FieldExtent::Rest | FieldExtent::RestButLast | FieldExtent::Counted => {
                    " *".to_owned()
                }
            },
            _ => String::new(),
        };
        line.push_str(&size);
    }
    line
}

pub(super) fn all() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for table in tables() {
        lines.extend(table.members.iter().map(|one| member(table.table, one)));
        lines.extend(table.members.iter().map(|one| role(table.table, one)));
    }
    for ie in IeType::ALL {
        let (name, clause) = (ie.name().unwrap_or(""), ie.clause().unwrap_or(""));
        lines.insert(format!("element {} {name}, {clause} {}", ie.0, ie.since()));
    }
    for message in MessageType::ALL {
        let (name, table) = (
            message.name().unwrap_or(""),
            message.table().map(|one| one.table),
        );
        let header = if message.is_session() {
            "session"
        } else {
            "node"
        };
        let table = table.unwrap_or("");
        lines.insert(format!("message {} {name}, {header}, {table}", message.0));
    }
    for leaf in leaves() {
        lines.insert(sizes(leaf.ie, leaf.head, leaf.fields));
        lines.extend(leaf.fields.iter().flat_map(|one| field(leaf, one)));
    }
    lines
}
