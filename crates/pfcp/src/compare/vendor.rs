//! The content of a vendor-specific element, according to the rows of a dictionary.

use std::collections::BTreeMap;

use super::Ignore;
use super::item::{StatementValue, leaf_statements, put_bytes, put_value, row_of};
use crate::ie::{Descriptor, IeType, describe};
use crate::text;
use crate::vendor::{Dictionary, members};
use crate::wire::{DEPTH, Index, Part};

/// A statement of an element, or of an element in a group below it.
pub(super) struct VendorStatement {
    /// The path to the statement within the element.
    label: String,
    text: String,
    /// The value itself, because different values may have the same text.
    exact: Vec<u8>,
}

impl VendorStatement {
    pub(super) fn put_canonical(&self, out: &mut Vec<u8>) {
        put_bytes(self.label.as_bytes(), out);
        put_bytes(&self.exact, out);
    }
}

/// Collects the statements of an element, sorted by label.
pub(super) fn statements(
    part: Part<'_>,
    ignore: &Ignore,
    vendors: &Dictionary,
    path: &mut Vec<IeType>,
) -> Vec<VendorStatement> {
    let mut collector = StatementCollector {
        ignore,
        vendors,
        out: Vec::new(),
    };
    collector.element(part, "", path, 0);
    collector.out.sort_by(|a, b| a.label.cmp(&b.label));
    collector.out
}

/// Pairs the statements of two elements, and returns those that differ: label, left text, right
/// text.
pub(super) fn unequal_pairs<'a>(
    left: &'a [VendorStatement],
    right: &'a [VendorStatement],
) -> Vec<(&'a str, Option<String>, Option<String>)> {
    let mut pairs: BTreeMap<&str, [Option<&VendorStatement>; 2]> = BTreeMap::new();
    for (side, statements) in [left, right].into_iter().enumerate() {
        for statement in statements {
            pairs.entry(&statement.label).or_default()[side] = Some(statement);
        }
    }
    let unequal = pairs.into_iter().filter(|(_, pair)| {
        let [left, right] = pair.map(|side| side.map(|statement| &statement.exact));
        left != right
    });
    unequal
        .map(|(label, pair)| {
            let [left, right] = pair.map(|side| side.map(|statement| statement.text.clone()));
            (label, left, right)
        })
        .collect()
}

struct StatementCollector<'d> {
    ignore: &'d Ignore,
    vendors: &'d Dictionary,
    out: Vec<VendorStatement>,
}

impl StatementCollector<'_> {
    fn element(&mut self, part: Part<'_>, at: &str, path: &mut Vec<IeType>, depth: usize) {
        let mut index = Index::new();
        let Some(row) = self.vendors.row_of(part) else {
            return self.undescribed_member(part, at, path, depth);
        };
        if row.is_group() {
            let inner = (depth <= DEPTH).then(|| members(part.value(), &mut index));
            return match inner.flatten() {
                Some(inner) => self.members(inner, at, path, depth),
                None => self.bytes(at, part.raw()),
            };
        }
        let Some(element) = self.vendors.element(part) else {
            return self.bytes(at, part.raw());
        };
        for (field, value) in element.fields() {
            if self.ignore.field(part.ie(), field.name(), field.kind()) {
                continue;
            }
            let mut exact = Vec::new();
            put_value(value, &mut exact);
            self.out.push(VendorStatement {
                label: within(at, &text::field_name(field.name())),
                text: text::field_text(part, field, value),
                exact,
            });
        }
        if !self.ignore.spare() && !element.tail().is_empty() {
            self.bytes(&within(at, "trailing bytes"), element.tail());
        }
    }

    /// Adds the statements of a member of a vendor-specific group that the dictionary does not
    /// describe.
    fn undescribed_member(
        &mut self,
        part: Part<'_>,
        at: &str,
        path: &mut Vec<IeType>,
        depth: usize,
    ) {
        if let Some(leaf) = row_of(part) {
            for statement in leaf_statements(leaf, part, self.ignore) {
                let empty =
                    matches!(&statement.value, StatementValue::Bytes(bytes) if bytes.is_empty());
                if empty {
                    continue;
                }
                let mut exact = Vec::new();
                statement.value.put_canonical(&mut exact);
                self.out.push(VendorStatement {
                    label: within(at, &text::field_name(statement.name)),
                    text: statement.value.text(),
                    exact,
                });
            }
            return;
        }
        if let Some(Descriptor::Group(_)) = part.descriptor() {
            return self.members(part, at, path, depth);
        }
        let mut index = Index::new();
        match describe(part.ie()) {
            Some(Descriptor::Group(table)) if depth <= DEPTH => {
                match index.walk(part.raw(), 0, table) {
                    Ok(inner) => self.members(inner, at, path, depth),
                    Err(_) => self.bytes(at, part.raw()),
                }
            }
            _ => self.bytes(at, part.raw()),
        }
    }

    fn members(&mut self, group: Part<'_>, at: &str, path: &mut Vec<IeType>, depth: usize) {
        let mut places: BTreeMap<(IeType, Option<u16>), usize> = BTreeMap::new();
        for part in group.parts() {
            path.push(part.ie());
            if !self.ignore.element(path) {
                let place = places.entry((part.ie(), part.enterprise())).or_default();
                let name = match self.vendors.row_of(part) {
                    Some(row) => row.name().to_owned(),
                    None => part.ie().to_string(),
                };
                let name = within(at, &format!("{name}[{place}]"));
                *place += 1;
                self.out.push(VendorStatement {
                    label: name.clone(),
                    text: "there".to_owned(),
                    exact: Vec::new(),
                });
                self.element(part, &name, path, depth + 1);
            }
            path.pop();
        }
    }

    fn bytes(&mut self, label: &str, bytes: &[u8]) {
        self.out.push(VendorStatement {
            label: within(label, "octets"),
            text: text::hex(bytes),
            exact: bytes.to_vec(),
        });
    }
}

/// Returns the label `label` below `at`.
fn within(at: &str, label: &str) -> String {
    match (at, label) {
        ("", label) => label.to_owned(),
        (at, "") => at.to_owned(),
        (at, label) => format!("{at} / {label}"),
    }
}
