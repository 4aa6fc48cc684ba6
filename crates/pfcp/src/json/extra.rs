//! JSON form of the vendor-specific elements that a dictionary describes.

use serde_json::{Map, Value as Json, json};

use super::{JsonError, element, field_input, hex, leaf_value, missing, parts, plain};
use crate::ie::{Descriptor, Value, describe};
use crate::vendor::{Dictionary, VendorRow, members};
use crate::wire::{DEPTH, Index, Part};

/// Adds everything but the type of an element to its JSON object.
pub(super) fn write(
    part: Part<'_>,
    row: &VendorRow,
    depth: usize,
    vendors: &Dictionary,
    object: &mut Map<String, Json>,
) {
    object.insert("name".into(), row.name().into());
    object.insert("enterprise".into(), row.enterprise().into());
    if let Some(name) = vendors.vendor(row.enterprise()) {
        object.insert("enterprise_name".into(), name.into());
    }
    if row.is_group() {
        let mut index = Index::new();
        let inner = (depth <= DEPTH).then(|| members(part.value(), &mut index));
        if let Some(inner) = inner.flatten() {
            let member = |part| member(part, depth + 1, vendors);
            object.insert("ies".into(), inner.parts().map(member).collect());
            return;
        }
    } else if let Some((value, tail)) = known(part, vendors) {
        object.insert("value".into(), value);
        if !tail.is_empty() {
            object.insert("tail".into(), hex(tail).into());
        }
        return;
    }
    object.insert("value".into(), json!({ "hex": hex(part.value()) }));
}

/// Converts a member of a vendor-specific group to JSON. Such a group may contain any element.
fn member(part: Part<'_>, depth: usize, vendors: &Dictionary) -> Json {
    let mut object = Map::new();
    object.insert("type".into(), part.ie().0.into());
    if let Some(row) = vendors.row_of(part) {
        write(part, row, depth, vendors, &mut object);
        return Json::Object(object);
    }
    let mut index = Index::new();
    match describe(part.ie()) {
        Some(Descriptor::Group(table)) if depth <= DEPTH => {
            let Ok(inner) = index.walk(part.raw(), 0, table) else {
                return element(part, vendors, depth);
            };
            object.insert("name".into(), part.ie().to_string().into());
            object.insert("ies".into(), parts(inner, vendors, depth + 1));
        }
        Some(Descriptor::Leaf(leaf)) => {
            object.insert("name".into(), part.ie().to_string().into());
            leaf_value(leaf, part.raw(), &mut object);
        }
        _ => return element(part, vendors, depth),
    }
    Json::Object(object)
}

/// Returns the fields of an element and the bytes after them, if encoding the fields restores the
/// value.
fn known<'a>(part: Part<'a>, vendors: &Dictionary) -> Option<(Json, &'a [u8])> {
    let element = vendors.element(part)?;
    let mut object = Map::new();
    for (field, value) in element.fields() {
        object.insert(field.name().to_owned(), plain(field.kind(), value));
        if let Value::Number(number) = value
            && let Some(name) = field.value_name(number)
        {
            object.insert(format!("{}_name", field.name()), name.into());
        }
    }
    let value = Json::Object(object);
    let tail = element.tail();
    let reencoded = fields(element.row(), &value).ok()?;
    let same = part.value().strip_prefix(&*reencoded) == Some(tail);
    same.then_some((value, tail))
}

/// Encodes fields from JSON.
pub(super) fn fields(row: &VendorRow, value: &Json) -> Result<Vec<u8>, JsonError> {
    let object = value.as_object().ok_or_else(|| missing("value"))?;
    let mut out = Vec::new();
    row.write(
        |field| field_input(object.get(field.name())?, field.kind()),
        &mut out,
    )
    .map_err(|name| missing(&name))?;
    Ok(out)
}
