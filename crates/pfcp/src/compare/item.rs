use std::cell::OnceCell;
use std::cmp::Ordering;

use super::vendor::{self, Told};
use super::{Ignore, Name};
use crate::ie::IeType;
use crate::ie::descriptor::{Descriptor, Kind, Leaf, describe};
use crate::ie::value::Value;
use crate::text;
use crate::vendor::{self as rows, Dictionary};
use crate::wire::Part;

/// An element with what it says, less what is left out.
pub(super) struct Item<'a> {
    pub(super) part: Part<'a>,
    pub(super) content: Content<'a>,
    /// Its place among the elements of its type in its group.
    pub(super) place: usize,
    /// What it is: elements of different classes are never compared.
    pub(super) class: Class,
    /// The values of the element that names a group of which there may be several.
    pub(super) named: Vec<u8>,
    /// All that it says, the same octets for the same content in whatever order.
    pub(super) says: Vec<u8>,
    /// What people know it by, once somebody asks.
    name: OnceCell<Name>,
}

pub(super) enum Content<'a> {
    /// The members, ordered by class, name and what they say.
    Group(Vec<Item<'a>>),
    Leaf(&'static Leaf),
    /// A vendor's element with its name and what it says.
    Vendor(String, Vec<Told>),
    /// No row describes the octets.
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class {
    ie: IeType,
    enterprise: Option<u16>,
    /// It occurs again where one is allowed; the first one counts.
    repeated: bool,
    /// Whether its place says what it is.
    pub(super) placed: bool,
}

/// Collects the elements of a group that are not left out.
pub(super) fn items<'a>(group: Part<'a>, ignore: &Ignore, vendors: &Dictionary) -> Vec<Item<'a>> {
    below(group, ignore, vendors, &mut Vec::new())
}

fn below<'a>(
    group: Part<'a>,
    ignore: &Ignore,
    vendors: &Dictionary,
    way: &mut Vec<IeType>,
) -> Vec<Item<'a>> {
    let mut items: Vec<Item<'a>> = Vec::new();
    for part in group.parts() {
        way.push(part.ie());
        if !ignore.element(way) {
            items.push(Item::new(part, group.ie(), ignore, vendors, way));
        }
        way.pop();
    }
    // Those of a type have their places as they stand.
    sort(&mut items, |a, b| {
        (a.class.ie, a.part.offset()).cmp(&(b.class.ie, b.part.offset()))
    });
    for same in items.chunk_by_mut(|a, b| a.class.ie == b.class.ie) {
        for (place, item) in same.iter_mut().enumerate() {
            item.place = place;
        }
    }
    sort(&mut items, |a, b| a.order().cmp(&b.order()));
    items
}

/// Sorts by any order: one function for all of them.
fn sort(items: &mut [Item<'_>], order: fn(&Item<'_>, &Item<'_>) -> Ordering) {
    items.sort_by(order);
}

impl<'a> Item<'a> {
    fn new(
        part: Part<'a>,
        group: IeType,
        ignore: &Ignore,
        vendors: &Dictionary,
        way: &mut Vec<IeType>,
    ) -> Self {
        let class = Class {
            ie: part.ie(),
            enterprise: part.enterprise(),
            repeated: part.is_repeated(),
            placed: part.is_repeated() || is_placed(group, part.ie()),
        };
        let mut says = Vec::new();
        let mut named = Vec::new();
        let content = match part.descriptor() {
            Some(Descriptor::Group(_)) => {
                let items = below(part, ignore, vendors, way);
                for item in &items {
                    item.tell(&mut says);
                }
                named.extend(
                    name_of(&items)
                        .into_iter()
                        .flat_map(|name| name.says.clone()),
                );
                Content::Group(items)
            }
            _ => match (row_of(part), vendors.row_of(part)) {
                (_, Some(row)) => {
                    let told = vendor::told(part, ignore, vendors, way);
                    told.iter().for_each(|told| told.tell(&mut says));
                    Content::Vendor(row.name().to_owned(), told)
                }
                (Some(leaf), None) => {
                    tell_leaf(leaf, part, ignore, &mut says);
                    Content::Leaf(leaf)
                }
                (None, None) => {
                    says.extend_from_slice(part.raw());
                    Content::Opaque
                }
            },
        };
        if !part.member().is_some_and(|member| member.many) {
            named.clear();
        }
        Self {
            part,
            content,
            place: 0,
            class,
            named,
            says,
            name: OnceCell::new(),
        }
    }

    /// What the elements of a group are ordered by.
    fn order(&self) -> (Class, &[u8], usize, &[u8], usize) {
        let first = if self.class.placed { self.place } else { 0 };
        (self.class, &self.named, first, &self.says, self.place)
    }

    fn tell(&self, out: &mut Vec<u8>) {
        let Class { ie, repeated, .. } = self.class;
        out.extend_from_slice(&ie.0.to_be_bytes());
        out.push(u8::from(repeated));
        put_octets(&self.says, out);
    }

    /// Its place where there may be several.
    pub(super) fn index(&self) -> Option<usize> {
        let many = self.part.member().is_some_and(|member| member.many);
        (many || self.place > 0).then_some(self.place)
    }

    /// What people know it by: a group of which there may be several has a name.
    pub(super) fn name(&self) -> Name {
        self.name.get_or_init(|| self.find_name()).clone()
    }

    fn find_name(&self) -> Name {
        let named = match &self.content {
            Content::Vendor(name, _) => return Name::Vendor(name.clone()),
            Content::Group(items) if !self.named.is_empty() => name_of(items),
            _ => None,
        };
        named.map_or(Name::Type, |Item { part, .. }| {
            let mut text = text::part(*part, &rows::NONE);
            // Each difference below the group has the name in its path.
            if let Some((end, _)) = text.char_indices().nth(LONGEST_NAME) {
                text.truncate(end);
                text.push('…');
            }
            Name::Of(format!("{} {text}", part.ie()))
        })
    }
}

/// The characters of a name that stand in a path.
const LONGEST_NAME: usize = 64;

/// Returns the element that names a group: the first member in the order of its table that occurs
/// once and is a name.
fn name_of<'a, 'b>(items: &'b [Item<'a>]) -> Option<&'b Item<'a>> {
    let names = items.iter().filter(|item| {
        let once = item.part.member().is_some_and(|member| !member.many);
        once && is_name(item.class.ie)
    });
    names.min_by_key(|item| item.part.slot())
}

const fn is_name(ie: IeType) -> bool {
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

/// Says that the place of an element tells what it is for: of two tunnels that are created, the
/// second is the redundant one, TS 29.244 §7.5.3.2.
const fn is_placed(group: IeType, ie: IeType) -> bool {
    matches!(
        group,
        IeType::CREATED_PDR | IeType::UPDATED_PDR | IeType::CREATED_TRAFFIC_ENDPOINT
    ) && ie.0 == IeType::F_TEID.0
}

/// Returns the row that describes a value, also where the group does not have it.
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

fn tell_leaf(leaf: &'static Leaf, part: Part<'_>, ignore: &Ignore, out: &mut Vec<u8>) {
    let partly = leaf
        .fields
        .iter()
        .any(|field| ignore.field(leaf.ie, field.name, field.kind));
    if !partly && !ignore.spare() {
        out.extend_from_slice(part.raw());
        return;
    }
    for said in said(leaf, part, ignore) {
        out.extend(u8::try_from(said.order));
        said.value.tell(out);
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
        Value::Octets(octets) => put_octets(octets, out),
    }
}

/// Appends octets after their length, so that what follows is told apart.
pub(super) fn put_octets(octets: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(octets.len() as u64).to_be_bytes());
    out.extend_from_slice(octets);
}

/// One thing that the value of a row says.
pub(super) struct Said<'a> {
    /// Its place in the row.
    pub(super) order: usize,
    pub(super) name: &'static str,
    pub(super) value: Says<'a>,
}

pub(super) enum Says<'a> {
    Value(IeType, &'static str, Kind, Value<'a>),
    /// The flags that are set, of a row of flags.
    Flags(Vec<&'static str>),
    Octets(Vec<u8>),
}

impl PartialEq for Says<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(.., left), Self::Value(.., right)) => left == right,
            (Self::Flags(left), Self::Flags(right)) => left == right,
            (Self::Octets(left), Self::Octets(right)) => left == right,
            _ => false,
        }
    }
}

impl Says<'_> {
    /// Appends octets that no other value gives.
    pub(super) fn tell(&self, out: &mut Vec<u8>) {
        match self {
            Self::Value(.., value) => put_value(*value, out),
            Self::Flags(flags) => put_octets(flags.join(" ").as_bytes(), out),
            Self::Octets(octets) => put_octets(octets, out),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Value(ie, name, kind, value) => text::field_value(*ie, name, *kind, *value),
            Self::Flags(flags) if flags.is_empty() => "none".to_owned(),
            Self::Flags(flags) => flags.join(", "),
            Self::Octets(octets) if octets.is_empty() => "none".to_owned(),
            Self::Octets(octets) => text::hex(octets),
        }
    }
}

/// Collects what the value of a row says, in the order of the row: fields that are not left out,
/// then spare bits and octets that follow.
pub(super) fn said<'a>(leaf: &'static Leaf, part: Part<'a>, ignore: &Ignore) -> Vec<Said<'a>> {
    let octets = part.raw();
    let mut out = Vec::with_capacity(leaf.fields.len());
    let mut flags = Vec::new();
    for (name, kind, value) in leaf.read(octets) {
        // A flag that only says that a field is there is no field.
        let Some(order) = leaf.fields.iter().position(|field| field.name == name) else {
            continue;
        };
        if is_of_flags(leaf) {
            flags.extend((value == Value::Flag(true)).then_some(name));
        } else if !ignore.field(leaf.ie, name, kind) {
            let value = Says::Value(leaf.ie, name, kind, value);
            out.push(Said { order, name, value });
        }
    }
    let mut order = leaf.fields.len();
    let mut also = |name, value| {
        out.push(Said { order, name, value });
        order += 1;
    };
    if is_of_flags(leaf) {
        also("", Says::Flags(flags));
    }
    if !ignore.spare() {
        let mut again = Vec::with_capacity(octets.len());
        (leaf.again)(octets, &mut again);
        let flip: Vec<u8> = octets.iter().zip(&again).map(|(a, b)| a ^ b).collect();
        let used = flip
            .iter()
            .rposition(|bits| *bits != 0)
            .map_or(0, |last| last + 1);
        also("spare bits", Says::Octets(flip[..used].to_vec()));
        let tail = octets.get(again.len()..).unwrap_or_default();
        also("further octets", Says::Octets(tail.to_vec()));
    }
    out
}

fn is_of_flags(leaf: &Leaf) -> bool {
    let is_flag = |kind| matches!(kind, Kind::Bits { width: 1, .. });
    leaf.fields.iter().all(|field| is_flag(field.kind))
}
