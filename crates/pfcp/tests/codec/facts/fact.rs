//! The lines of the facts.

use super::*;

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn number(value: &Value, key: &str) -> u16 {
    let number = value[key]
        .as_u64()
        .and_then(|number| number.try_into().ok());
    number.unwrap_or(u16::MAX)
}

fn interfaces(value: &Value) -> Interfaces {
    let named = |name: &Value| {
        let named = |on: &Interfaces| Some(on.to_string().as_str()) == name.as_str();
        Interfaces::ALL.iter().find(named).expect("an interface")
    };
    let names = value["appl"].as_array().into_iter().flatten();
    names.map(named).fold(Interfaces::NONE, Interfaces::with)
}

/// The rows of a table for each type; rows of one type in several places are merged.
fn members(table: &Value) -> BTreeMap<u16, (&str, bool, Interfaces, &str)> {
    let mut rows = BTreeMap::new();
    for member in list(table, "members") {
        let presence = match text(member, "presence") {
            "M" => "Mandatory",
            "C" => "Conditional",
            "O" => "Optional",
            _ => "-",
        };
        let many = member["multiple"] == Value::Bool(true);
        let on = interfaces(member);
        rows.entry(number(member, "ie_type"))
            .and_modify(|row: &mut (&str, bool, Interfaces, &str)| {
                *row = (row.0, true, row.2.with(on), row.3);
            })
            .or_insert_with(|| (presence, many, on, text(member, "name")));
    }
    rows
}

/// The members of the tables, those of release 17 beside those of release 19.
fn tables(old: &Value, new: &Value, key: &str, lines: &mut BTreeSet<String>) {
    let same = |one: &Value, other: &Value| {
        ["type", "ie_type", "context"]
            .iter()
            .all(|key| one[key] == other[key])
    };
    for table in list(new, key) {
        let before = list(old, key).iter().find(|before| same(before, table));
        let before = before.map(members).unwrap_or_default();
        let label = text(table, "table");
        for (ie, (presence, many, on, name)) in members(table) {
            lines.insert(format!("role {label} {ie} {}", plain(name)));
            let many = if many { "many" } else { "once" };
            let then = before.get(&ie).map_or(Interfaces::NONE, |row| row.2);
            lines.insert(format!(
                "member {label} {ie} {presence} {many} [{on}] R17 [{then}]"
            ));
        }
        if key == "messages" {
            let name = text(table, "name").trim_start_matches("PFCP ");
            let header = if table["session_related"] == Value::Bool(true) {
                "session"
            } else {
                "node"
            };
            let number = number(table, "type");
            lines.insert(format!("message {number} {name}, {header}, {label}"));
        }
    }
}

fn since(old: bool) -> Release {
    if old { Release::R17 } else { Release::R19 }
}

fn elements(old: &Value, new: &Value, lines: &mut BTreeSet<String>) {
    let old: BTreeSet<u16> = list(old, "ie_types")
        .iter()
        .map(|ie| number(ie, "type"))
        .collect();
    for fact in list(new, "ie_types") {
        let ie = number(fact, "type");
        let clause = text(fact, "ref")
            .split_whitespace()
            .next_back()
            .unwrap_or_default();
        let clause = clause.trim_end_matches('.');
        let since = since(old.contains(&ie));
        if ie & 0x8000 == 0 {
            lines.insert(format!(
                "element {ie} {}, {clause} {since}",
                text(fact, "name")
            ));
        }
    }
}

/// The bit fields of a layout except for spare ones: byte and bit, width, name.
fn bits(layout: &Value) -> BTreeMap<(usize, usize), (usize, String)> {
    let mut found = BTreeMap::new();
    for row in list(layout, "rows") {
        let fields = list(row, "fields");
        let byte = text(row, "octets")
            .split(' ')
            .next()
            .and_then(|at| at.parse().ok());
        let Some(byte) = byte.filter(|_| fields.len() > 1) else {
            continue;
        };
        let drawn = |field: &Value| usize::from(number(field, "bits"));
        let right = fields.iter().map(drawn).sum::<usize>() == 8;
        let wide = WIDE
            .iter()
            .find(|(ie, at, _)| *ie == number(layout, "type") && *at == byte && !right);
        let mut bit = 1;
        for (place, field) in fields.iter().rev().enumerate() {
            let width = match wide {
                Some((.., widths)) => widths.get(place).copied().unwrap_or(0),
                None if right => drawn(field),
                None => 1,
            };
            let name = plain(text(field, "name"));
            if !name.starts_with("spare") && name != "reserved" {
                found.insert((byte, bit), (width, name));
            }
            bit += width;
        }
    }
    found
}

/// The names in the drawings, by type.
pub(super) fn drawn() -> Option<BTreeSet<(u16, String)>> {
    let layouts = shared_json("pfcp/spec/spec_r19_layouts.json")?;
    let names = list(&layouts, "layouts").iter().flat_map(|layout| {
        let fields = list(layout, "rows")
            .iter()
            .flat_map(|row| list(row, "fields"));
        fields.map(|field| (number(layout, "type"), short(text(field, "name"))))
    });
    Some(names.collect())
}

/// The sizes of the fields after a head.
fn sizes(layout: &Value, head: usize) -> String {
    let mut line = String::new();
    for row in list(layout, "rows")
        .iter()
        .filter(|row| !list(row, "fields").is_empty())
    {
        let bytes: String = text(row, "octets").split_whitespace().collect();
        let ends: Vec<Option<(String, usize)>> = bytes.split("to").map(place).collect();
        let size = match &ends[..] {
            [Some((letter, at))] if letter.is_empty() && *at < head + 5 => continue,
            [Some(_)] => " 1".to_owned(),
            [Some((letter, from)), Some((same, to))] if letter == same => {
                if letter.is_empty() && *to < head + 5 {
                    continue;
                }
                format!(" {}", to - from + 1)
            }
            _ => " *".to_owned(),
        };
        line.push_str(&size);
    }
    line
}

/// Reads `7`, `m` or `(m+3)`: the letter and the number.
fn place(text: &str) -> Option<(String, usize)> {
    let text = text.trim_matches(['(', ')']);
    let (letter, number) = text.split_once('+').unwrap_or_else(|| {
        text.split_at(
            text.find(|next: char| next.is_ascii_digit())
                .unwrap_or(text.len()),
        )
    });
    let known = letter.chars().all(|next| next.is_ascii_lowercase());
    let number = if number.is_empty() {
        Some(0)
    } else {
        number.parse().ok()
    };
    number
        .filter(|_| known)
        .map(|number| (letter.to_owned(), number))
}

fn layouts(old: &Value, new: &Value, lines: &mut BTreeSet<String>) {
    let of = |ie: u16| {
        list(old, "layouts")
            .iter()
            .find(move |one| number(one, "type") == ie)
    };
    for layout in list(new, "layouts") {
        let ie = number(layout, "type");
        let Some(Descriptor::Leaf(leaf)) = describe(IeType(ie)) else {
            continue;
        };
        let before = of(ie).map(bits);
        for ((byte, bit), (width, name)) in bits(layout) {
            let since = since(
                before
                    .as_ref()
                    .is_some_and(|old| old.contains_key(&(byte, bit))),
            );
            let name = if width == 1 { &name } else { "-" };
            lines.insert(format!(
                "bits {ie} {byte}/{bit} width {width} {name} {since}"
            ));
        }
        lines.insert(format!(
            "octets {ie} {}:{}",
            leaf.head,
            sizes(layout, leaf.head)
        ));
    }
}

/// A name as the row has it, if that is the name without the words that the table explains.
fn named(name: &str, leaf: Option<&Leaf>, field: &str, value: u64) -> String {
    let row = leaf.and_then(|leaf| leaf.fields.iter().find(|one| one.name == field));
    let ours = row.and_then(|row| match row.kind {
        FieldKind::Bits { names, .. } | FieldKind::Number { names, .. } => names?(value),
        _ => None,
    });
    let shorter = [" (", " - see"]
        .iter()
        .filter_map(|cut| Some(name.split_once(cut)?.0));
    let mut all = shorter.chain([name]).map(plain);
    let fits = |short: &String| ours.is_some_and(|ours| plain(ours) == *short);
    all.find(fits).unwrap_or_else(|| plain(name))
}

fn values(old: &Value, new: &Value, lines: &mut BTreeSet<String>) {
    let all = |facts: &Value| -> BTreeSet<(String, String)> {
        let tables = list(facts, "enums").iter();
        let rows = tables.flat_map(|table| {
            let at =
                text(&table["table"], "").to_owned() + table["table"][0].as_str().unwrap_or("");
            let at = if at.is_empty() {
                text(table, "clause").to_owned()
            } else {
                at
            };
            list(table, "values")
                .iter()
                .chain(list(table, "features"))
                .map(move |row| {
                    (
                        at.clone(),
                        text(row, "value").to_owned() + text(row, "octet_bit"),
                    )
                })
        });
        rows.collect()
    };
    let before = all(old);
    for table in list(new, "enums") {
        let at = table["table"][0].as_str().unwrap_or_default();
        for (_, ie, field) in VALUES.iter().filter(|(label, ..)| *label == at) {
            let leaf = leaves().find(|leaf| leaf.ie.0 == *ie);
            for row in list(table, "values") {
                let (value, name) = (text(row, "value"), text(row, "name"));
                let (Ok(number), false) = (value.parse(), plain(name).starts_with("spare")) else {
                    continue;
                };
                let since = since(before.contains(&(at.to_owned(), value.to_owned())));
                let since = since.max(IeType(*ie).since());
                let name = named(name, leaf, field, number);
                lines.insert(format!("value {ie} {field} {number} {name} {since}"));
            }
        }
        let clause = text(table, "clause");
        for (_, ie) in FEATURES.iter().filter(|(label, _)| *label == clause) {
            for row in list(table, "features") {
                let (bit, name) = (text(row, "octet_bit"), plain(text(row, "feature")));
                let since = since(before.contains(&(clause.to_owned(), bit.to_owned())));
                lines.insert(format!("bits {ie} {bit} width 1 {name} {since}"));
            }
        }
    }
    let causes: BTreeSet<u16> = list(old, "causes")
        .iter()
        .map(|one| number(one, "value"))
        .collect();
    for cause in list(new, "causes") {
        let (value, name) = (number(cause, "value"), plain(text(cause, "name")));
        let since = since(causes.contains(&value));
        lines.insert(format!("value 19 cause {value} {name} {since}"));
    }
}

pub(super) fn all() -> Option<BTreeSet<String>> {
    let read =
        |release: &str, name: &str| shared_json(&format!("pfcp/spec/spec_{release}_{name}.json"));
    let both = |name| Some((read("r17", name)?, read("r19", name)?));
    let mut lines = BTreeSet::new();
    for (name, key) in [("messages", "messages"), ("grouped", "grouped")] {
        let (old, new) = both(name)?;
        tables(&old, &new, key, &mut lines);
    }
    let (old, new) = both("ie_types")?;
    elements(&old, &new, &mut lines);
    let (old, new) = both("layouts")?;
    layouts(&old, &new, &mut lines);
    let (old, new) = both("causes_enums")?;
    values(&old, &new, &mut lines);
    Some(lines)
}
