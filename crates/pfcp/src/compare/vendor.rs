//! What an element of a vendor says, by the rows of a dictionary.

use std::collections::BTreeMap;

use super::Ignore;
use super::item::{Says, put_octets, put_value, row_of, said};
use crate::ie::{Descriptor, IeType, describe};
use crate::text;
use crate::vendor::{Dictionary, members};
use crate::wire::{DEPTH, Index, Part};

/// One thing that an element says, those in the groups below it too.
pub(super) struct Told {
    /// The way to it within the element.
    label: String,
    text: String,
    /// The value itself: two may look the same as text.
    exact: Vec<u8>,
}

impl Told {
    pub(super) fn tell(&self, out: &mut Vec<u8>) {
        put_octets(self.label.as_bytes(), out);
        put_octets(&self.exact, out);
    }
}

/// Collects what an element says, ordered by the ways to it.
pub(super) fn told(
    part: Part<'_>,
    ignore: &Ignore,
    vendors: &Dictionary,
    way: &mut Vec<IeType>,
) -> Vec<Told> {
    let mut teller = Teller {
        ignore,
        vendors,
        out: Vec::new(),
    };
    teller.element(part, "", way, 0);
    teller.out.sort_by(|a, b| a.label.cmp(&b.label));
    teller.out
}

/// Pairs what two elements say, and returns what is not the same: label, left, right.
pub(super) fn unequal<'a>(
    left: &'a [Told],
    right: &'a [Told],
) -> Vec<(&'a str, Option<String>, Option<String>)> {
    let mut pairs: BTreeMap<&str, [Option<&Told>; 2]> = BTreeMap::new();
    for (side, told) in [left, right].into_iter().enumerate() {
        for told in told {
            pairs.entry(&told.label).or_default()[side] = Some(told);
        }
    }
    let unequal = pairs.into_iter().filter(|(_, pair)| {
        let [left, right] = pair.map(|told| told.map(|told| &told.exact));
        left != right
    });
    unequal
        .map(|(label, pair)| {
            let [left, right] = pair.map(|told| told.map(|told| told.text.clone()));
            (label, left, right)
        })
        .collect()
}

struct Teller<'d> {
    ignore: &'d Ignore,
    vendors: &'d Dictionary,
    out: Vec<Told>,
}

impl Teller<'_> {
    fn element(&mut self, part: Part<'_>, at: &str, way: &mut Vec<IeType>, depth: usize) {
        let mut index = Index::new();
        let Some(row) = self.vendors.row_of(part) else {
            return self.other(part, at, way, depth);
        };
        if row.is_group() {
            let inner = (depth <= DEPTH).then(|| members(part.value(), &mut index));
            return match inner.flatten() {
                Some(inner) => self.members(inner, at, way, depth),
                None => self.octets(at, part.raw()),
            };
        }
        let Some(element) = self.vendors.element(part) else {
            return self.octets(at, part.raw());
        };
        for (field, value) in element.fields() {
            if self.ignore.field(part.ie(), field.name(), field.kind()) {
                continue;
            }
            let mut exact = Vec::new();
            put_value(value, &mut exact);
            self.out.push(Told {
                label: within(at, &text::field_name(field.name())),
                text: text::field_text(part, field, value),
                exact,
            });
        }
        if !self.ignore.spare() && !element.tail().is_empty() {
            self.octets(&within(at, "further octets"), element.tail());
        }
    }

    /// Tells what an element says that is in a vendor's group and not of the dictionary.
    fn other(&mut self, part: Part<'_>, at: &str, way: &mut Vec<IeType>, depth: usize) {
        if let Some(leaf) = row_of(part) {
            for said in said(leaf, part, self.ignore) {
                let empty = matches!(&said.value, Says::Octets(octets) if octets.is_empty());
                if empty {
                    continue;
                }
                let mut exact = Vec::new();
                said.value.tell(&mut exact);
                self.out.push(Told {
                    label: within(at, &text::field_name(said.name)),
                    text: said.value.text(),
                    exact,
                });
            }
            return;
        }
        if let Some(Descriptor::Group(_)) = part.descriptor() {
            return self.members(part, at, way, depth);
        }
        let mut index = Index::new();
        match describe(part.ie()) {
            Some(Descriptor::Group(table)) if depth <= DEPTH => {
                match index.walk(part.raw(), 0, table) {
                    Ok(inner) => self.members(inner, at, way, depth),
                    Err(_) => self.octets(at, part.raw()),
                }
            }
            _ => self.octets(at, part.raw()),
        }
    }

    fn members(&mut self, group: Part<'_>, at: &str, way: &mut Vec<IeType>, depth: usize) {
        let mut places: BTreeMap<(IeType, Option<u16>), usize> = BTreeMap::new();
        for part in group.parts() {
            way.push(part.ie());
            if !self.ignore.element(way) {
                let place = places.entry((part.ie(), part.enterprise())).or_default();
                let name = match self.vendors.row_of(part) {
                    Some(row) => row.name().to_owned(),
                    None => part.ie().to_string(),
                };
                let name = within(at, &format!("{name}[{place}]"));
                *place += 1;
                self.out.push(Told {
                    label: name.clone(),
                    text: "there".to_owned(),
                    exact: Vec::new(),
                });
                self.element(part, &name, way, depth + 1);
            }
            way.pop();
        }
    }

    fn octets(&mut self, label: &str, octets: &[u8]) {
        self.out.push(Told {
            label: within(label, "octets"),
            text: text::hex(octets),
            exact: octets.to_vec(),
        });
    }
}

/// A label below another one.
fn within(at: &str, label: &str) -> String {
    match (at, label) {
        ("", label) => label.to_owned(),
        (at, "") => at.to_owned(),
        (at, label) => format!("{at} / {label}"),
    }
}
