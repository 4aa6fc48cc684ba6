//! `--dictionary FILE`: vendor-specific elements, described by a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use strowger_pfcp::IeType;
use strowger_pfcp::ie::descriptor::{FieldExtent, FieldKind};
use strowger_pfcp::vendor::{Dictionary, VendorField, VendorRow};
use toml::Spanned;

use crate::exit::{CliResult, Failure};
use crate::problem::Problem;

/// Maximum size of a dictionary, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct DictionaryArgs {
    /// Describe vendor-specific elements by this file (TOML); may be repeated.
    #[arg(long = "dictionary", value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl DictionaryArgs {
    /// Reads the files, in their order, into one dictionary.
    pub(crate) fn read(&self) -> CliResult<Dictionary> {
        let mut dictionary = Dictionary::new();
        for path in &self.files {
            let text = read_text(path)?;
            parse_into(&text, &mut dictionary).map_err(|problem| {
                problem.to_failure_without_hint(&text, &path.display().to_string())
            })?;
        }
        Ok(dictionary)
    }
}

fn read_text(path: &Path) -> CliResult<String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| Failure::file(path, &error))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let what = format!(
            "{}: larger than the limit of {MAX_FILE_BYTES} bytes",
            path.display()
        );
        return Err(Failure::input(what));
    }
    Ok(text)
}

/// Adds the elements that a text describes.
fn parse_into(text: &str, dictionary: &mut Dictionary) -> Result<(), Problem> {
    let file: Dictionaries = toml::from_str(text).map_err(|error| Problem::of_toml(&error))?;
    for vendor in file.vendor {
        if let Some(name) = vendor.name {
            let span = name.span();
            dictionary
                .name_vendor(vendor.enterprise, name.into_inner())
                .map_err(|error| problem_at(&error, span))?;
        }
        for element in vendor.element {
            let span = element.span();
            let row = vendor_row(vendor.enterprise, element.into_inner(), &span)?;
            dictionary
                .add(row)
                .map_err(|error| problem_at(&error, span))?;
        }
    }
    Ok(())
}

fn problem_at(what: &dyn ToString, span: Range<usize>) -> Problem {
    Problem::in_place(what.to_string(), span)
}

fn vendor_row(
    enterprise: u16,
    element: Element,
    span: &Range<usize>,
) -> Result<VendorRow, Problem> {
    let fields = match (element.group, element.fields) {
        (true, None) => None,
        (false, Some(fields)) => Some(
            fields
                .into_iter()
                .map(vendor_field)
                .collect::<Result<_, _>>()?,
        ),
        (true, Some(_)) | (false, None) => {
            let what = "an element needs either `fields` or `group = true`";
            return Err(problem_at(&what, span.clone()));
        }
    };
    let ie = IeType(element.number);
    Ok(VendorRow::read(enterprise, ie, element.name, fields))
}

fn vendor_field(described: Spanned<FieldEntry>) -> Result<VendorField, Problem> {
    let span = described.span();
    let FieldEntry {
        name,
        kind,
        length,
        values,
    } = described.into_inner();
    let number = |bytes: u8| FieldKind::Number {
        bytes: bytes.into(),
        width: 8 * u32::from(bytes),
        names: None,
    };
    let until = match length {
        None => FieldExtent::Rest,
        Some(Length::Bytes(bytes)) => FieldExtent::Fixed(bytes),
        Some(Length::Prefix(Prefix::U8)) => FieldExtent::Length8,
        Some(Length::Prefix(Prefix::U16)) => FieldExtent::Length16,
    };
    let kind = match kind {
        FieldType::U8 => number(1),
        FieldType::U16 => number(2),
        FieldType::U24 => number(3),
        FieldType::U32 => number(4),
        FieldType::U40 => number(5),
        FieldType::U48 => number(6),
        FieldType::U56 => number(7),
        FieldType::U64 => number(8),
        FieldType::Time => FieldKind::Time,
        FieldType::Ipv4 => FieldKind::Ipv4,
        FieldType::Ipv6 => FieldKind::Ipv6,
        FieldType::Mac => FieldKind::Mac,
        FieldType::Text => FieldKind::Text(until),
        FieldType::Bytes => FieldKind::Bytes(until),
        FieldType::Domain => FieldKind::Labels(until),
        FieldType::Digits => FieldKind::Digits(until),
    };
    let of_length = matches!(
        kind,
        FieldKind::Text(_) | FieldKind::Bytes(_) | FieldKind::Labels(_) | FieldKind::Digits(_)
    );
    if length.is_some() && !of_length {
        let what = format!("field \"{name}\": its kind determines the length; remove `length`");
        return Err(problem_at(&what, span));
    }
    let mut named = Vec::with_capacity(values.len());
    for (value, text) in values {
        let parsed = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => value.parse(),
        };
        let Ok(value) = parsed else {
            let what = format!("field \"{name}\": \"{value}\" is not a number");
            return Err(problem_at(&what, span));
        };
        named.push((value, text));
    }
    Ok(VendorField::read(name, kind).with_values(named))
}

/// A dictionary file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dictionaries {
    #[serde(default)]
    vendor: Vec<Vendor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vendor {
    enterprise: u16,
    name: Option<Spanned<String>>,
    #[serde(default)]
    element: Vec<Spanned<Element>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Element {
    #[serde(rename = "type")]
    number: u16,
    name: String,
    #[serde(default)]
    group: bool,
    fields: Option<Vec<Spanned<FieldEntry>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldEntry {
    name: String,
    kind: FieldType,
    length: Option<Length>,
    #[serde(default)]
    values: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FieldType {
    U8,
    U16,
    U24,
    U32,
    U40,
    U48,
    U56,
    U64,
    Time,
    Ipv4,
    Ipv6,
    Mac,
    Text,
    #[serde(rename = "octets")]
    Bytes,
    Domain,
    Digits,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(
    untagged,
    expecting = "`length` must be a number of bytes from 1 to 255, or \"u8\" or \"u16\" for a \
                 length prefix"
)]
enum Length {
    Bytes(u8),
    Prefix(Prefix),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Prefix {
    U8,
    U16,
}

#[cfg(test)]
mod tests;
