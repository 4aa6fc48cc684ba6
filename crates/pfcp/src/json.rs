//! Messages as JSON and back, without loss.
//!
//! A message is `{type, name, seid, sequence, ies}`; an element is `{type, name, value}` with an
//! object of named fields, or `{type, name, ies}`. Where the fields do not tell all, `spare` holds
//! the bits to flip and `tail` the octets that follow, both in hexadecimal; an element that no row
//! describes has `hex` for its only field; a vendor's element has its `enterprise` beside its type,
//! and the fields that a dictionary has a row of. Back, `name` and fields that end in `_name` are
//! not read, and flags that say that a field is there follow from the field.

mod extra;

use std::fmt::{self, Display};

use serde_json::{Map, Value as Json, json};

use crate::error::{Error, PathStep};
use crate::ie::given::{Given, fitting, fitting_signed, octets_of};
use crate::ie::value::{Value, text_of};
use crate::ie::{Descriptor, Group, IeType, Kind, Leaf, describe};
use crate::message::{MessageType, MessageView, table};
use crate::vendor::{self, Dictionary};
use crate::wire::{Header, Part, Seid, Sequence, Writer};

/// JSON that is not a message.
///
/// The text names the way as other errors do:
/// `Session Establishment Request / Create PDR[1] / PDI / F-TEID: teid is missing or malformed`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// A key is missing or has a value of another kind, or one that does not fit its field.
    #[error("{path}: {key} is missing or malformed")]
    Key {
        /// The way to the object.
        path: Box<JsonPath>,
        /// The key.
        key: String,
    },
    /// A length cannot say how long an element or the message is.
    #[error(transparent)]
    Encode(#[from] Error),
    /// Elements are nested deeper than any table.
    #[error("{path}: nested too deep")]
    Depth {
        /// The way to the element.
        path: Box<JsonPath>,
    },
}

/// The way to an object in the JSON of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPath {
    message: Option<MessageType>,
    /// Innermost first: steps are added while an error travels outwards. A vendor's element has
    /// the name that a dictionary gives it.
    inner_first: Vec<(JsonStep, Option<String>)>,
}

/// One step of a [`JsonPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonStep {
    /// The place in the array `ies`, from 0.
    pub place: usize,
    /// The element, where its type could be read.
    pub ie: Option<PathStep>,
}

impl JsonPath {
    /// Returns the type of the message, where it could be read.
    #[must_use]
    pub const fn message(&self) -> Option<MessageType> {
        self.message
    }

    /// Walks the steps from the outside to the inside.
    #[must_use]
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = JsonStep> + '_ {
        self.inner_first.iter().rev().map(|(step, _)| *step)
    }
}

impl Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message {
            Some(message) => message.fmt(f)?,
            None => f.write_str("message")?,
        }
        let mut steps = self.inner_first.iter().rev();
        steps.try_for_each(|(step, name)| match (name, step.ie) {
            (Some(name), _) => write!(f, " / {name}"),
            (None, Some(ie)) => write!(f, " / {ie}"),
            (None, None) => write!(f, " / ies[{}]", step.place),
        })
    }
}

impl JsonError {
    /// Adds the element that the error is in.
    fn within(mut self, step: JsonStep, name: Option<&str>) -> Self {
        if let Self::Key { path, .. } | Self::Depth { path } = &mut self {
            path.inner_first.push((step, name.map(str::to_owned)));
        }
        self
    }

    /// Names the message.
    fn in_message(mut self, message: MessageType) -> Self {
        match &mut self {
            Self::Key { path, .. } | Self::Depth { path } => path.message = Some(message),
            Self::Encode(error) => *error = error.clone().in_message(message),
        }
        self
    }
}

/// Writes a message as JSON.
#[must_use]
pub fn to_json(view: &MessageView<'_>) -> Json {
    write(view, &vendor::NONE)
}

/// Writes a message with rows for elements of vendors.
pub(crate) fn write(view: &MessageView<'_>, vendors: &Dictionary) -> Json {
    let header = view.header();
    let mut object = Map::new();
    object.insert("type".into(), header.message_type.0.into());
    object.insert("name".into(), header.message_type.to_string().into());
    if let Some(seid) = header.seid {
        object.insert("seid".into(), seid.0.into());
    }
    object.insert("sequence".into(), header.sequence.get().into());
    if let Some(priority) = header.priority {
        object.insert("priority".into(), priority.into());
    }
    if header.follow_on {
        object.insert("follow_on".into(), true.into());
    }
    if header.spare != 0 {
        object.insert("spare".into(), header.spare.into());
    }
    object.insert("ies".into(), parts(view.root(), vendors, 0));
    Json::Object(object)
}

fn parts(group: Part<'_>, vendors: &Dictionary, depth: usize) -> Json {
    let element = |part| element(part, vendors, depth);
    group.parts().map(element).collect()
}

fn element(part: Part<'_>, vendors: &Dictionary, depth: usize) -> Json {
    let mut object = Map::new();
    object.insert("type".into(), part.ie().0.into());
    if let Some(row) = vendors.row_of(part) {
        extra::write(part, row, depth, vendors, &mut object);
        return Json::Object(object);
    }
    object.insert("name".into(), part.ie().to_string().into());
    if let Some(enterprise) = part.enterprise() {
        object.insert("enterprise".into(), enterprise.into());
    }
    match part.descriptor().or_else(|| describe(part.ie())) {
        Some(Descriptor::Group(_)) if part.descriptor().is_some() => {
            object.insert("ies".into(), parts(part, vendors, depth + 1));
        }
        Some(Descriptor::Leaf(leaf)) => leaf_value(leaf, part.raw(), &mut object),
        _ => {
            object.insert("value".into(), json!({ "hex": hex(part.value()) }));
        }
    }
    Json::Object(object)
}

fn leaf_value(leaf: &'static Leaf, octets: &[u8], object: &mut Map<String, Json>) {
    let value = (leaf.check)(octets).ok().map(|_| fields(leaf, octets));
    let again = value
        .as_ref()
        .and_then(|value| from_fields(leaf, value).ok());
    let (Some(value), Some(again)) = (value, again.filter(|again| again.len() <= octets.len()))
    else {
        object.insert("value".into(), json!({ "hex": hex(octets) }));
        return;
    };
    object.insert("value".into(), value);
    let flip: Vec<u8> = octets.iter().zip(&again).map(|(a, b)| a ^ b).collect();
    if flip.iter().any(|&bits| bits != 0) {
        object.insert("spare".into(), hex(&flip).into());
    }
    if again.len() < octets.len() {
        object.insert("tail".into(), hex(&octets[again.len()..]).into());
    }
}

fn fields(leaf: &'static Leaf, octets: &[u8]) -> Json {
    let mut object = Map::new();
    for (name, kind, value) in leaf.read(octets) {
        let name = name.to_ascii_lowercase();
        let value = match value {
            Value::Number(number) => {
                let (Kind::Bits { names, .. } | Kind::Number { names, .. }) = kind else {
                    continue;
                };
                if let Some(text) = names.and_then(|names| names(number)) {
                    object.insert(name.clone(), number.into());
                    object.insert(format!("{name}_name"), text.into());
                    continue;
                }
                number.into()
            }
            value => plain(kind, value),
        };
        object.insert(name, value);
    }
    Json::Object(object)
}

/// A value without a name.
fn plain(kind: Kind, value: Value<'_>) -> Json {
    match value {
        Value::Flag(flag) => flag.into(),
        Value::Number(number) => number.into(),
        Value::Signed(number) => number.into(),
        Value::Time(seconds) => seconds.into(),
        Value::Ipv4(address) => address.to_string().into(),
        Value::Ipv6(address) => address.to_string().into(),
        Value::Mac(address) => address.map(|octet| format!("{octet:02x}")).join(":").into(),
        Value::Octets(octets) => match (kind, text_of(kind, octets)) {
            (Kind::Octets(_), _) => hex(octets).into(),
            (Kind::List(each, _), _) => {
                let values = each.values(octets);
                values.map(|value| plain(each.kind(), value)).collect()
            }
            (_, Some(text)) => text.into(),
            (_, None) => json!({ "hex": hex(octets) }),
        },
    }
}

/// The levels of groups: a table's members below a vendor's groups, which may contain any.
const MOST_DEPTH: usize = 2 * crate::wire::DEPTH + 1;

/// Reads a message from JSON and returns its octets.
///
/// # Errors
/// When a key that is needed is missing or malformed, or the message would be too long.
pub fn from_json(message: &Json) -> Result<Vec<u8>, JsonError> {
    read(message, &vendor::NONE)
}

/// Reads a message with rows for elements of vendors.
pub(crate) fn read(message: &Json, vendors: &Dictionary) -> Result<Vec<u8>, JsonError> {
    let message_type: u8 = number(message, "type", 0xff)?;
    let message_type = MessageType(message_type);
    octets(message, message_type, vendors).map_err(|error| error.in_message(message_type))
}

fn octets(
    message: &Json,
    message_type: MessageType,
    vendors: &Dictionary,
) -> Result<Vec<u8>, JsonError> {
    let header = header(message, message_type)?;
    let ies = message.get("ies").ok_or_else(|| missing("ies"))?;
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body);
    write_group(ies, Some(table(message_type)), vendors, &mut writer, 0)?;
    writer.finish_in(Some(table(message_type)))?;
    let mut out = Vec::with_capacity(header.octets() + body.len());
    header.encode(body.len(), &mut out)?;
    out.extend_from_slice(&body);
    Ok(out)
}

fn header(message: &Json, message_type: MessageType) -> Result<Header, JsonError> {
    let sequence = number(message, "sequence", u64::from(Sequence::MAX.get()))?;
    let mut header = Header::node(message_type, Sequence::new(sequence));
    header.seid = optional(message, "seid", u64::MAX)?.map(Seid);
    header.priority = optional(message, "priority", 15)?;
    header.follow_on = match message.get("follow_on") {
        Some(flag) => flag.as_bool().ok_or_else(|| missing("follow_on"))?,
        None => false,
    };
    header.spare = optional(message, "spare", 0xffff)?.unwrap_or(0);
    Ok(header)
}

fn number<T: TryFrom<u64>>(object: &Json, key: &str, most: u64) -> Result<T, JsonError> {
    let value = object.get(key).and_then(Json::as_u64);
    value
        .filter(|&value| value <= most)
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| missing(key))
}

fn optional<T: TryFrom<u64>>(object: &Json, key: &str, most: u64) -> Result<Option<T>, JsonError> {
    object
        .get(key)
        .map(|_| number(object, key, most))
        .transpose()
}

fn missing(key: &str) -> JsonError {
    JsonError::Key {
        path: Box::default(),
        key: key.to_owned(),
    }
}

fn write_group(
    ies: &Json,
    group: Option<&'static Group>,
    vendors: &Dictionary,
    out: &mut Writer<'_>,
    depth: usize,
) -> Result<(), JsonError> {
    if depth > MOST_DEPTH {
        return Err(JsonError::Depth {
            path: Box::default(),
        });
    }
    let ies = ies.as_array().ok_or_else(|| missing("ies"))?;
    for (place, ie) in ies.iter().enumerate() {
        let number = number(ie, "type", 0xffff).map(IeType);
        let number = number.map_err(|error| error.within(JsonStep { place, ie: None }, None))?;
        let member = group.and_then(|group| group.member(number));
        let what = member
            .map(|member| member.what)
            .or_else(|| describe(number));
        let mut result = Ok(());
        out.element(number, |out| {
            result = write_element(ie, number, what, vendors, out, depth);
        });
        result.map_err(|error| {
            let before = ies[..place].iter();
            let same = before.filter(|ie| ie.get("type") == Some(&number.0.into()));
            let index = member
                .is_some_and(|member| member.many)
                .then(|| same.count());
            let step = JsonStep {
                place,
                ie: Some(PathStep { ie: number, index }),
            };
            let enterprise = optional(ie, "enterprise", 0xffff).ok().flatten();
            let row = enterprise.and_then(|enterprise| vendors.row(enterprise, number));
            error.within(step, row.map(vendor::Row::name))
        })?;
    }
    Ok(())
}

fn write_element(
    ie: &Json,
    number: IeType,
    what: Option<Descriptor>,
    vendors: &Dictionary,
    out: &mut Writer<'_>,
    depth: usize,
) -> Result<(), JsonError> {
    let enterprise = optional::<u16>(ie, "enterprise", 0xffff)?;
    if let Some(enterprise) = enterprise {
        out.out.extend_from_slice(&enterprise.to_be_bytes());
    }
    if let Some(ies) = ie.get("ies") {
        let group = match what {
            Some(Descriptor::Group(group)) => Some(group),
            _ => None,
        };
        return write_group(ies, group, vendors, out, depth + 1);
    }
    let value = ie.get("value").ok_or_else(|| missing("value"))?;
    if let Some(octets) = value.get("hex") {
        out.out.extend(unhex(octets).ok_or_else(|| missing("hex"))?);
        return Ok(());
    }
    let row = enterprise.and_then(|enterprise| vendors.row(enterprise, number));
    let mut octets = match (row, what) {
        (Some(row), _) => extra::fields(row, value)?,
        (None, Some(Descriptor::Leaf(leaf))) => from_fields(leaf, value)?,
        _ => return Err(missing("hex")),
    };
    if let Some(flip) = ie.get("spare") {
        let flip = unhex(flip).ok_or_else(|| missing("spare"))?;
        octets
            .iter_mut()
            .zip(flip)
            .for_each(|(octet, bits)| *octet ^= bits);
    }
    if let Some(tail) = ie.get("tail") {
        octets.extend(unhex(tail).ok_or_else(|| missing("tail"))?);
    }
    out.out.extend(octets);
    Ok(())
}

fn from_fields(leaf: &Leaf, value: &Json) -> Result<Vec<u8>, JsonError> {
    let object = value.as_object().ok_or_else(|| missing("value"))?;
    let mut out = Vec::new();
    leaf.write(
        &mut |name, kind| given(object.get(&name.to_ascii_lowercase())?, kind),
        &mut out,
    )
    .map_err(|name| missing(&name.to_ascii_lowercase()))?;
    Ok(out)
}

fn given(value: &Json, kind: Kind) -> Option<Given> {
    if let Some(octets) = value.get("hex") {
        return unhex(octets).map(Given::Octets);
    }
    Some(match kind {
        Kind::Bits { width, .. } => {
            let number = value.as_bool().map(u64::from).or_else(|| value.as_u64())?;
            Given::Number(fitting(number, width)?)
        }
        Kind::Number { width, .. } => Given::Number(fitting(value.as_u64()?, width)?),
        Kind::Signed { octets } => Given::Number(fitting_signed(value.as_i64()?, octets)?),
        Kind::Time => Given::Number(fitting(value.as_u64()?, u32::BITS)?),
        Kind::Ipv4 => {
            let address: std::net::Ipv4Addr = value.as_str()?.parse().ok()?;
            Given::Octets(address.octets().to_vec())
        }
        Kind::Ipv6 => {
            let address: std::net::Ipv6Addr = value.as_str()?.parse().ok()?;
            Given::Octets(address.octets().to_vec())
        }
        Kind::Mac => Given::Octets(
            value
                .as_str()?
                .split(':')
                .map(|octet| u8::from_str_radix(octet, 16).ok())
                .collect::<Option<Vec<u8>>>()?,
        ),
        Kind::Octets(_) => Given::Octets(unhex(value)?),
        Kind::List(each, _) => {
            let mut octets = Vec::new();
            for value in value.as_array()? {
                given(value, each.kind())?.put(each.kind(), 0, &mut octets)?;
            }
            Given::Octets(octets)
        }
        Kind::Text(_) | Kind::Labels(_) | Kind::Digits(_) => {
            Given::Octets(octets_of(kind, value.as_str()?)?)
        }
    })
}

fn hex(octets: &[u8]) -> String {
    use std::fmt::Write;

    octets.iter().fold(
        String::with_capacity(2 * octets.len()),
        |mut text, octet| {
            write!(text, "{octet:02x}").expect("a String takes all text");
            text
        },
    )
}

fn unhex(value: &Json) -> Option<Vec<u8>> {
    let text = value.as_str()?.as_bytes();
    let digit = |digit: u8| {
        char::from(digit)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    text.chunks(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?))
        .collect()
}
