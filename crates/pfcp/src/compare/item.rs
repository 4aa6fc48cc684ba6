use std::cell::OnceCell;
use std::cmp::Ordering;

use super::vendor::{self, VendorStatement};
use super::{Ignore, Name};
use crate::ie::IeType;
use crate::ie::descriptor::{Descriptor, FieldKind, Leaf, describe};
use crate::ie::value::Value;
use crate::text;
use crate::vendor::{self as rows, Dictionary};
use crate::wire::Part;

/// An element and its content, without the parts that are left out.
pub(super) struct Item<'a> {
    pub(super) part: Part<'a>,
    pub(super) content: ItemContent<'a>,
    /// The index among the elements of the same type in the group.
    pub(super) type_index: usize,
    /// The class of the element. Elements of different classes are never compared.
    pub(super) class: ItemClass,
    /// The value of the element that identifies this group, for groups that may occur several
    /// times.
    pub(super) identifier: Vec<u8>,
    /// The content in a canonical form: equal content gives equal bytes, regardless of its order.
    pub(super) canonical: Vec<u8>,
    /// The name for users, computed on first use.
    name: OnceCell<Name>,
}

pub(super) enum ItemContent<'a> {
    /// The members, sorted by class, name and content.
    Group(Vec<Item<'a>>),
    Leaf(&'static Leaf),
    /// A vendor-specific element with its name and statements.
    Vendor(String, Vec<VendorStatement>),
    /// Bytes that no row describes.
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ItemClass {
    ie: IeType,
    enterprise: Option<u16>,
    /// `true` for a further occurrence of an element that may occur only once. The first one
    /// counts.
    repeated: bool,
    /// `true` if the position of the element determines its meaning.
    pub(super) positional: bool,
}

/// Collects the elements of a group that are not left out.
pub(super) fn items<'a>(group: Part<'a>, ignore: &Ignore, vendors: &Dictionary) -> Vec<Item<'a>> {
    below(group, ignore, vendors, &mut Vec::new())
}

fn below<'a>(
    group: Part<'a>,
    ignore: &Ignore,
    vendors: &Dictionary,
    path: &mut Vec<IeType>,
) -> Vec<Item<'a>> {
    let mut items: Vec<Item<'a>> = Vec::new();
    for part in group.parts() {
        path.push(part.ie());
        if !ignore.element(path) {
            items.push(Item::new(part, group.ie(), ignore, vendors, path));
        }
        path.pop();
    }
    // Indexes count the elements of a type in wire order.
    sort(&mut items, |a, b| {
        (a.class.ie, a.part.offset()).cmp(&(b.class.ie, b.part.offset()))
    });
    for same in items.chunk_by_mut(|a, b| a.class.ie == b.class.ie) {
        for (type_index, item) in same.iter_mut().enumerate() {
            item.type_index = type_index;
        }
    }
    sort(&mut items, |a, b| a.order().cmp(&b.order()));
    items
}

/// Sorts by any order. Taking a function pointer keeps this a single function instead of one copy
/// for each order.
fn sort(items: &mut [Item<'_>], order: fn(&Item<'_>, &Item<'_>) -> Ordering) {
    items.sort_by(order);
}

impl<'a> Item<'a> {
    fn new(
        part: Part<'a>,
        group: IeType,
        ignore: &Ignore,
        vendors: &Dictionary,
        path: &mut Vec<IeType>,
    ) -> Self {
        let class = ItemClass {
            ie: part.ie(),
            enterprise: part.enterprise(),
            repeated: part.is_repeated(),
            positional: part.is_repeated() || is_positional(group, part.ie()),
        };
        let mut canonical = Vec::new();
        let mut identifier = Vec::new();
        let content = match part.descriptor() {
            Some(Descriptor::Group(_)) => {
                let items = below(part, ignore, vendors, path);
                for item in &items {
                    item.put_canonical(&mut canonical);
                }
                identifier.extend(
                    identifier_of(&items)
                        .into_iter()
                        .flat_map(|name| name.canonical.clone()),
                );
                ItemContent::Group(items)
            }
            _ => match (row_of(part), vendors.row_of(part)) {
                (_, Some(row)) => {
                    let statements = vendor::statements(part, ignore, vendors, path);
                    statements
                        .iter()
                        .for_each(|statement| statement.put_canonical(&mut canonical));
                    ItemContent::Vendor(row.name().to_owned(), statements)
                }
                (Some(leaf), None) => {
                    put_leaf(leaf, part, ignore, &mut canonical);
                    ItemContent::Leaf(leaf)
                }
                (None, None) => {
                    canonical.extend_from_slice(part.raw());
                    ItemContent::Opaque
                }
            },
        };
        if !part.member().is_some_and(|member| member.many) {
            identifier.clear();
        }
        Self {
            part,
            content,
            type_index: 0,
            class,
            identifier,
            canonical,
            name: OnceCell::new(),
        }
    }

    /// Returns the sort key of the elements of a group.
    fn order(&self) -> (ItemClass, &[u8], usize, &[u8], usize) {
        let first = if self.class.positional {
            self.type_index
        } else {
            0
        };
        (
            self.class,
            &self.identifier,
            first,
            &self.canonical,
            self.type_index,
        )
    }

    fn put_canonical(&self, out: &mut Vec<u8>) {
        let ItemClass { ie, repeated, .. } = self.class;
        out.extend_from_slice(&ie.0.to_be_bytes());
        out.push(u8::from(repeated));
        put_bytes(&self.canonical, out);
    }

    /// Returns the index of the element, if it may occur several times or is a further occurrence.
    pub(super) fn index(&self) -> Option<usize> {
        let many = self.part.member().is_some_and(|member| member.many);
        (many || self.type_index > 0).then_some(self.type_index)
    }

    /// Returns the name for users. A group that may occur several times is named by the element
    /// that identifies it.
    pub(super) fn name(&self) -> Name {
        self.name.get_or_init(|| self.find_name()).clone()
    }

    fn find_name(&self) -> Name {
        let identifier = match &self.content {
            ItemContent::Vendor(name, _) => return Name::Vendor(name.clone()),
            ItemContent::Group(items) if !self.identifier.is_empty() => identifier_of(items),
            _ => None,
        };
        identifier.map_or(Name::Type, |Item { part, .. }| {
            let mut text = text::part(*part, &rows::NONE);
            // The name is limited because it is repeated in the path of each difference below the
            // group.
            if let Some((end, _)) = text.char_indices().nth(MAX_NAME) {
                text.truncate(end);
                text.push('…');
            }
            Name::Of(format!("{} {text}", part.ie()))
        })
    }
}

/// Maximum number of characters of a name in a path.
const MAX_NAME: usize = 64;

/// Returns the element that identifies a group: the first member, in the order of its table, that
/// may occur once and is an identifier.
fn identifier_of<'a, 'b>(items: &'b [Item<'a>]) -> Option<&'b Item<'a>> {
    let names = items.iter().filter(|item| {
        let once = item.part.member().is_some_and(|member| !member.many);
        once && is_identifier(item.class.ie)
    });
    names.min_by_key(|item| item.part.slot())
}

const fn is_identifier(ie: IeType) -> bool {
    matches!(
        ie,
        IeType::PDR_ID
            | IeType::FAR_ID
            | IeType::URR_ID
            | IeType::QER_ID
            | IeType::BAR_ID
            | IeType::MAR_ID
            | IeType::SRR_ID
            | IeType::TRAFFIC_ENDPOINT_ID
            | IeType::ETHERNET_FILTER_ID
            | IeType::AGGREGATED_URR_ID
            | IeType::APPLICATION_ID
            | IeType::FAILED_RULE_ID
            | IeType::QFI
            | IeType::MONITORING_TIME
            | IeType::REMOTE_GTPU_PEER
            | IeType::NW_TT_PORT_NUMBER
            | IeType::TIME_DOMAIN_NUMBER
            | IeType::IP_MULTICAST_ADDRESS
            | IeType::LNS_ADDRESS
            | IeType::MBS_SESSION_IDENTIFIER
            | IeType::MBS_UNICAST_PARAMETERS_ID
            | IeType::REPORTING_ENDPOINT_ID
            | IeType::HEADER_HANDLING_CONTROL_ID
            | IeType::HEADER_HANDLING_CONTROL_RULE_ID
            | IeType::N6_DELAY_MEASUREMENT_CONTROL_INFORMATION_ID
    )
}

/// Returns `true` if the position of an element determines its meaning: of two created tunnels, the
/// second is the redundant one, TS 29.244 §7.5.3.2.
const fn is_positional(group: IeType, ie: IeType) -> bool {
    matches!(
        group,
        IeType::CREATED_PDR | IeType::UPDATED_PDR | IeType::CREATED_TRAFFIC_ENDPOINT
    ) && ie.0 == IeType::F_TEID.0
}

/// Returns the row that describes a value, even if the group does not allow the element.
pub(super) fn row_of(part: Part<'_>) -> Option<&'static Leaf> {
    match part.descriptor() {
        Some(Descriptor::Leaf(leaf)) => Some(leaf),
        Some(Descriptor::Group(_)) => None,
        None => match describe(part.ie()) {
            Some(Descriptor::Leaf(leaf)) if (leaf.check)(part.raw()).is_ok() => Some(leaf),
            _ => None,
        },
    }
}

fn put_leaf(leaf: &'static Leaf, part: Part<'_>, ignore: &Ignore, out: &mut Vec<u8>) {
    let partly = leaf
        .fields
        .iter()
        .any(|field| ignore.field(leaf.ie, field.name, field.kind));
    if !partly && !ignore.spare() {
        out.extend_from_slice(part.raw());
        return;
    }
    for statement in leaf_statements(leaf, part, ignore) {
        out.extend(u8::try_from(statement.order));
        statement.value.put_canonical(out);
    }
}

pub(super) fn put_value(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Flag(flag) => out.push(u8::from(flag)),
        Value::Number(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::Signed(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::Time(seconds) => out.extend_from_slice(&seconds.to_be_bytes()),
        Value::Ipv4(address) => out.extend_from_slice(&address.octets()),
        Value::Ipv6(address) => out.extend_from_slice(&address.octets()),
        Value::Mac(address) => out.extend_from_slice(&address),
        Value::Bytes(bytes) => put_bytes(bytes, out),
    }
}

/// Appends a length and then the bytes, so that they cannot be confused with the bytes that follow.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A statement of the value of a leaf element: a field, its flags, spare bits, or trailing bytes.
pub(super) struct LeafStatement<'a> {
    /// The position in the row.
    pub(super) order: usize,
    pub(super) name: &'static str,
    pub(super) value: StatementValue<'a>,
}

pub(super) enum StatementValue<'a> {
    Value(IeType, &'static str, FieldKind, Value<'a>),
    /// The flags that are set, for a row that consists of flags.
    Flags(Vec<&'static str>),
    Bytes(Vec<u8>),
}

impl PartialEq for StatementValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(.., left), Self::Value(.., right)) => left == right,
            (Self::Flags(left), Self::Flags(right)) => left == right,
            (Self::Bytes(left), Self::Bytes(right)) => left == right,
            _ => false,
        }
    }
}

impl StatementValue<'_> {
    /// Appends a form of the value that no other value shares.
    pub(super) fn put_canonical(&self, out: &mut Vec<u8>) {
        match self {
            Self::Value(.., value) => put_value(*value, out),
            Self::Flags(flags) => put_bytes(flags.join(" ").as_bytes(), out),
            Self::Bytes(bytes) => put_bytes(bytes, out),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Value(ie, name, kind, value) => text::field_value(*ie, name, *kind, *value),
            Self::Flags(flags) if flags.is_empty() => "none".to_owned(),
            Self::Flags(flags) => flags.join(", "),
            Self::Bytes(bytes) if bytes.is_empty() => "none".to_owned(),
            Self::Bytes(bytes) => text::hex(bytes),
        }
    }
}

/// Collects the statements of a value in the order of its row: the fields that are not left out,
/// then spare bits and trailing bytes.
pub(super) fn leaf_statements<'a>(
    leaf: &'static Leaf,
    part: Part<'a>,
    ignore: &Ignore,
) -> Vec<LeafStatement<'a>> {
    let bytes = part.raw();
    let mut out = Vec::with_capacity(leaf.fields.len());
    let mut flags = Vec::new();
    for (name, kind, value) in leaf.read(bytes) {
        // A flag that only announces the presence of a field is not a field of the row.
        let Some(order) = leaf.fields.iter().position(|field| field.name == name) else {
            continue;
        };
        if is_of_flags(leaf) {
            flags.extend((value == Value::Flag(true)).then_some(name));
        } else if !ignore.field(leaf.ie, name, kind) {
            let value = StatementValue::Value(leaf.ie, name, kind, value);
            out.push(LeafStatement { order, name, value });
        }
    }
    let mut order = leaf.fields.len();
    let mut also = |name, value| {
        out.push(LeafStatement { order, name, value });
        order += 1;
    };
    if is_of_flags(leaf) {
        also("", StatementValue::Flags(flags));
    }
    if !ignore.spare() {
        let mut reencoded = Vec::with_capacity(bytes.len());
        (leaf.reencode)(bytes, &mut reencoded);
        let flip: Vec<u8> = bytes.iter().zip(&reencoded).map(|(a, b)| a ^ b).collect();
        let used = flip
            .iter()
            .rposition(|bits| *bits != 0)
            .map_or(0, |last| last + 1);
        also("spare bits", StatementValue::Bytes(flip[..used].to_vec()));
        let tail = bytes.get(reencoded.len()..).unwrap_or_default();
        also("trailing bytes", StatementValue::Bytes(tail.to_vec()));
    }
    out
}

fn is_of_flags(leaf: &Leaf) -> bool {
    let is_flag = |kind| matches!(kind, FieldKind::Bits { width: 1, .. });
    leaf.fields.iter().all(|field| is_flag(field.kind))
}
