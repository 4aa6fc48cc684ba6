//! Lossless conversion of messages to JSON and back.
//!
//! A message is `{type, name, seid, sequence, ies}`. An element is `{type, name, value}` with an
//! object of named fields, or `{type, name, ies}`. If the fields do not describe the value
//! completely, `spare` holds the bits to flip and `tail` the trailing bytes, both in hexadecimal.
//! An element that no row describes has `hex` as its only field. A vendor-specific element has its
//! `enterprise` beside its type, and the fields for which a dictionary has a row. The reader
//! ignores `name` and fields that end in `_name`, and derives flags that announce a field from the
//! presence of that field.

mod extra;

use std::fmt::{self, Display};

use serde_json::{Map, Value as Json, json};

use crate::error::{Error, PathStep};
use crate::ie::field_input::{FieldInput, bytes_of, checked_signed_width, checked_width};
use crate::ie::value::{Value, text_of};
use crate::ie::{Descriptor, FieldKind, Group, IeType, Leaf, describe};
use crate::message::{MessageType, MessageView, table};
use crate::vendor::{self, Dictionary};
use crate::wire::{Header, Part, Seid, Sequence, Writer};

/// The error returned for JSON that is not a valid message.
///
/// The text contains the path as other errors do: `Session Establishment Request / Create PDR[1] /
/// PDI / F-TEID: teid is missing or malformed`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// A key is missing, or its value has the wrong type or does not fit the field.
    #[error("{path}: {key} is missing or malformed")]
    Key {
        /// The path to the object.
        path: Box<JsonPath>,
        /// The name of the key.
        key: String,
    },
    /// An element or the message is too long for its length field.
    #[error(transparent)]
    Encode(#[from] Error),
    /// Elements are nested deeper than any table allows.
    #[error("{path}: nested too deep")]
    Depth {
        /// The path to the element.
        path: Box<JsonPath>,
    },
}

/// The path to an object in the JSON form of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPath {
    message: Option<MessageType>,
    /// Innermost step first, because steps are added while an error propagates outwards. A
    /// vendor-specific element has the name that a dictionary gives it.
    inner_first: Vec<(JsonStep, Option<String>)>,
}

/// One step of a [`JsonPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonStep {
    /// The zero-based position in the array `ies`.
    pub place: usize,
    /// The element, if its type could be read.
    pub ie: Option<PathStep>,
}

impl JsonPath {
    /// Returns the type of the message, if it could be read.
    #[must_use]
    pub const fn message(&self) -> Option<MessageType> {
        self.message
    }

    /// Returns an iterator over the steps, outermost first.
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
    /// Prepends the enclosing element to the path.
    fn within(mut self, step: JsonStep, name: Option<&str>) -> Self {
        if let Self::Key { path, .. } | Self::Depth { path } = &mut self {
            path.inner_first.push((step, name.map(str::to_owned)));
        }
        self
    }

    /// Sets the message type at the start of the path.
    fn in_message(mut self, message: MessageType) -> Self {
        match &mut self {
            Self::Key { path, .. } | Self::Depth { path } => path.message = Some(message),
            Self::Encode(error) => *error = error.clone().in_message(message),
        }
        self
    }
}

/// Converts a message to JSON.
#[must_use]
pub fn to_json(view: &MessageView<'_>) -> Json {
    write(view, &vendor::NONE)
}

/// Converts a message to JSON, using the rows of a dictionary for vendor-specific elements.
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

fn leaf_value(leaf: &'static Leaf, bytes: &[u8], object: &mut Map<String, Json>) {
    // Encoding the fields again shows the spare bits and the tail, which they do not express.
    let value = (leaf.check)(bytes).ok().map(|_| fields(leaf, bytes));
    let reencoded = value
        .as_ref()
        .and_then(|value| from_fields(leaf, value).ok());
    let (Some(value), Some(reencoded)) = (
        value,
        reencoded.filter(|reencoded| reencoded.len() <= bytes.len()),
    ) else {
        object.insert("value".into(), json!({ "hex": hex(bytes) }));
        return;
    };
    object.insert("value".into(), value);
    let flip: Vec<u8> = bytes.iter().zip(&reencoded).map(|(a, b)| a ^ b).collect();
    if flip.iter().any(|&bits| bits != 0) {
        object.insert("spare".into(), hex(&flip).into());
    }
    if reencoded.len() < bytes.len() {
        object.insert("tail".into(), hex(&bytes[reencoded.len()..]).into());
    }
}

fn fields(leaf: &'static Leaf, bytes: &[u8]) -> Json {
    let mut object = Map::new();
    for (name, kind, value) in leaf.read(bytes) {
        let name = name.to_ascii_lowercase();
        let value = match value {
            Value::Number(number) => {
                let (FieldKind::Bits { names, .. } | FieldKind::Number { names, .. }) = kind else {
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

/// Converts a value without a name to JSON.
fn plain(kind: FieldKind, value: Value<'_>) -> Json {
    match value {
        Value::Flag(flag) => flag.into(),
        Value::Number(number) => number.into(),
        Value::Signed(number) => number.into(),
        Value::Time(seconds) => seconds.into(),
        Value::Ipv4(address) => address.to_string().into(),
        Value::Ipv6(address) => address.to_string().into(),
        Value::Mac(address) => address.map(|byte| format!("{byte:02x}")).join(":").into(),
        Value::Bytes(bytes) => match (kind, text_of(kind, bytes)) {
            (FieldKind::Bytes(_), _) => hex(bytes).into(),
            (FieldKind::List(each, _), _) => {
                let values = each.values(bytes);
                values.map(|value| plain(each.kind(), value)).collect()
            }
            (_, Some(text)) => text.into(),
            (_, None) => json!({ "hex": hex(bytes) }),
        },
    }
}

/// Maximum nesting depth: the members of a table below vendor-specific groups, which may contain
/// any element.
const MAX_DEPTH: usize = 2 * crate::wire::DEPTH + 1;

/// Converts JSON to an encoded message.
///
/// # Errors
/// Returns an error if a required key is missing or malformed, or the message would be too long.
pub fn from_json(message: &Json) -> Result<Vec<u8>, JsonError> {
    read(message, &vendor::NONE)
}

/// Converts JSON to an encoded message, using the rows of a dictionary for vendor-specific
/// elements.
pub(crate) fn read(message: &Json, vendors: &Dictionary) -> Result<Vec<u8>, JsonError> {
    let message_type: u8 = number(message, "type", 0xff)?;
    let message_type = MessageType(message_type);
    bytes(message, message_type, vendors).map_err(|error| error.in_message(message_type))
}

fn bytes(
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
    let mut out = Vec::with_capacity(header.encoded_len() + body.len());
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
    if depth > MAX_DEPTH {
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
            .map(|member| member.descriptor)
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
            error.within(step, row.map(vendor::VendorRow::name))
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
    if let Some(bytes) = value.get("hex") {
        out.out.extend(unhex(bytes).ok_or_else(|| missing("hex"))?);
        return Ok(());
    }
    let row = enterprise.and_then(|enterprise| vendors.row(enterprise, number));
    let mut bytes = match (row, what) {
        (Some(row), _) => extra::fields(row, value)?,
        (None, Some(Descriptor::Leaf(leaf))) => from_fields(leaf, value)?,
        _ => return Err(missing("hex")),
    };
    if let Some(flip) = ie.get("spare") {
        let flip = unhex(flip).ok_or_else(|| missing("spare"))?;
        bytes
            .iter_mut()
            .zip(flip)
            .for_each(|(byte, bits)| *byte ^= bits);
    }
    if let Some(tail) = ie.get("tail") {
        bytes.extend(unhex(tail).ok_or_else(|| missing("tail"))?);
    }
    out.out.extend(bytes);
    Ok(())
}

fn from_fields(leaf: &Leaf, value: &Json) -> Result<Vec<u8>, JsonError> {
    let object = value.as_object().ok_or_else(|| missing("value"))?;
    let mut out = Vec::new();
    leaf.write(
        &mut |name, kind| field_input(object.get(&name.to_ascii_lowercase())?, kind),
        &mut out,
    )
    .map_err(|name| missing(&name.to_ascii_lowercase()))?;
    Ok(out)
}

fn field_input(value: &Json, kind: FieldKind) -> Option<FieldInput> {
    if let Some(bytes) = value.get("hex") {
        return unhex(bytes).map(FieldInput::Bytes);
    }
    Some(match kind {
        FieldKind::Bits { width, .. } => {
            let number = value.as_bool().map(u64::from).or_else(|| value.as_u64())?;
            FieldInput::Number(checked_width(number, width)?)
        }
        FieldKind::Number { width, .. } => {
            FieldInput::Number(checked_width(value.as_u64()?, width)?)
        }
        FieldKind::Signed { bytes } => {
            FieldInput::Number(checked_signed_width(value.as_i64()?, bytes)?)
        }
        FieldKind::Time => FieldInput::Number(checked_width(value.as_u64()?, u32::BITS)?),
        FieldKind::Ipv4 => {
            let address: std::net::Ipv4Addr = value.as_str()?.parse().ok()?;
            FieldInput::Bytes(address.octets().to_vec())
        }
        FieldKind::Ipv6 => {
            let address: std::net::Ipv6Addr = value.as_str()?.parse().ok()?;
            FieldInput::Bytes(address.octets().to_vec())
        }
        FieldKind::Mac => FieldInput::Bytes(
            value
                .as_str()?
                .split(':')
                .map(|byte| u8::from_str_radix(byte, 16).ok())
                .collect::<Option<Vec<u8>>>()?,
        ),
        FieldKind::Bytes(_) => FieldInput::Bytes(unhex(value)?),
        FieldKind::List(each, _) => {
            let mut bytes = Vec::new();
            for value in value.as_array()? {
                field_input(value, each.kind())?.put(each.kind(), 0, &mut bytes)?;
            }
            FieldInput::Bytes(bytes)
        }
        FieldKind::Text(_) | FieldKind::Labels(_) | FieldKind::Digits(_) => {
            FieldInput::Bytes(bytes_of(kind, value.as_str()?)?)
        }
    })
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;

    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes all text");
            text
        })
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
