//! Vendor-specific elements, described by rows.
//!
//! An element whose type has its highest bit set belongs to an enterprise, whose number is at the
//! start of the value, TS 29.244 §8.1.1. Without a row, its bytes are kept and displayed as they
//! are. A [`Dictionary`] has rows for some of these elements, defined in a program or read from a
//! file, and displays messages with their names and fields:
//!
//! ```
//! use strowger_pfcp::ie::descriptor::FieldExtent;
//! use strowger_pfcp::ie::Value;
//! use strowger_pfcp::message::HeartbeatRequest;
//! use strowger_pfcp::vendor::{Dictionary, VendorField, VendorRow};
//! use strowger_pfcp::{IeType, Index, Message, MessageView, Sequence};
//!
//! static FIELDS: [VendorField; 2] = [
//!     VendorField::number("slice", 2),
//!     VendorField::text("label", FieldExtent::Rest),
//! ];
//! static SLICE: VendorRow = VendorRow::fields(35_818, IeType(0x8001), "Acme Slice", &FIELDS);
//!
//! let vendors = Dictionary::new().with_vendor(35_818, "Acme")?.with_rows([&SLICE])?;
//! let mut body = HeartbeatRequest::new(0);
//! let value = SLICE.value(&[("slice", Value::Number(7)), ("label", Value::Bytes(b"gold"))])?;
//! body.rest.push(SLICE.ie(), value);
//! let bytes = Message::node(Sequence::new(1), body).encode()?;
//!
//! let mut index = Index::new();
//! let view = MessageView::decode(&bytes, &mut index)?;
//! let text = vendors.show(&view).to_string();
//! assert!(text.ends_with("Acme Slice (32769) of Acme (35818): slice 7, label gold"));
//! let part = view.root().find(SLICE.ie()).ok_or("no such element")?;
//! let slice = vendors.element(part).ok_or("no row fits")?;
//! assert_eq!(slice.field("slice"), Some(Value::Number(7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A row is either a list of consecutive fields, or a group of arbitrary elements. Bytes after the
//! known fields are kept. A value shorter than its row is displayed as bytes.

mod row;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Display};

use crate::compare::{Difference, Ignore, compare_in};
use crate::ie::element::GROUP_WITHOUT_TABLE;
use crate::ie::field::Reader;
use crate::ie::{IeType, Value};
use crate::message::MessageView;
use crate::text;
use crate::wire::{Index, Part};

pub use row::{VendorField, VendorRow, VendorRowError, WriteError};

/// Maximum number of rows of a dictionary.
pub const MAX_ROWS: usize = 4096;

/// A dictionary of vendor-specific elements and of the names of vendors.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    rows: BTreeMap<(u16, IeType), VendorRow>,
    vendors: BTreeMap<u16, Cow<'static, str>>,
}

/// An empty dictionary.
pub(crate) static NONE: Dictionary = Dictionary::new();

impl Dictionary {
    /// Creates an empty dictionary.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rows: BTreeMap::new(),
            vendors: BTreeMap::new(),
        }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Returns the errors of [`add`](Self::add).
    pub fn with_rows<'a>(
        mut self,
        rows: impl IntoIterator<Item = &'a VendorRow>,
    ) -> Result<Self, VendorRowError> {
        let mut rows = rows.into_iter();
        rows.try_for_each(|row| self.add(row.clone()))?;
        Ok(self)
    }

    /// Sets the name of a vendor.
    ///
    /// # Errors
    /// Returns the errors of [`name_vendor`](Self::name_vendor).
    pub fn with_vendor(
        mut self,
        enterprise: u16,
        name: impl Into<Cow<'static, str>>,
    ) -> Result<Self, VendorRowError> {
        self.name_vendor(enterprise, name)?;
        Ok(self)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Returns an error if the row is invalid, if the dictionary already has a row with its type or
    /// name, or if it already has [`MAX_ROWS`] rows.
    pub fn add(&mut self, row: VendorRow) -> Result<(), VendorRowError> {
        row.check()?;
        if self.rows.len() >= MAX_ROWS {
            return Err(VendorRowError::TooMany { max_rows: MAX_ROWS });
        }
        let (enterprise, ie) = (row.enterprise(), row.ie());
        let types = (enterprise, IeType(0))..=(enterprise, IeType(u16::MAX));
        let mut others = self.rows.range(types).map(|(_, other)| other);
        if let Some(other) = others.find(|other| other.ie() == ie || other.name() == row.name()) {
            return Err(VendorRowError::Again {
                ie: other.ie(),
                name: other.name().to_owned(),
            });
        }
        self.rows.insert((enterprise, ie), row);
        Ok(())
    }

    /// Sets the name of a vendor, replacing an earlier one.
    ///
    /// # Errors
    /// Returns an error if the name is empty, is longer than 64 characters, or contains control
    /// characters.
    pub fn name_vendor(
        &mut self,
        enterprise: u16,
        name: impl Into<Cow<'static, str>>,
    ) -> Result<(), VendorRowError> {
        let name = name.into();
        row::check_name(&name)?;
        self.vendors.insert(enterprise, name);
        Ok(())
    }

    /// Returns the row of an element.
    #[must_use]
    pub fn row(&self, enterprise: u16, ie: IeType) -> Option<&VendorRow> {
        self.rows.get(&(enterprise, ie))
    }

    /// Returns an iterator over the rows, sorted by enterprise and type.
    pub fn rows(&self) -> impl Iterator<Item = &VendorRow> {
        self.rows.values()
    }

    /// Returns the name of a vendor.
    #[must_use]
    pub fn vendor(&self, enterprise: u16) -> Option<&str> {
        self.vendors.get(&enterprise).map(|name| &**name)
    }

    /// Returns an element with its row, or `None` if there is no row for it or the value is shorter
    /// than the row.
    #[must_use]
    pub fn element<'a>(&self, part: Part<'a>) -> Option<VendorElement<'_, 'a>> {
        let row = self.row_of(part)?;
        let element = VendorElement {
            row,
            value: part.value(),
        };
        let mut walk = element.walk();
        walk.by_ref().for_each(drop);
        walk.fields.is_empty().then_some(element)
    }

    pub(crate) fn row_of(&self, part: Part<'_>) -> Option<&VendorRow> {
        self.row(part.enterprise()?, part.ie())
    }

    /// Formats a message as its own `Display` does, but with the names and fields of this
    /// dictionary.
    #[must_use]
    pub fn show<'a>(&'a self, view: &'a MessageView<'_>) -> impl Display + 'a {
        struct MessageText<'a, 'b>(&'a Dictionary, &'a MessageView<'b>);

        impl Display for MessageText<'_, '_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                text::message(f, self.1, self.0)
            }
        }

        MessageText(self, view)
    }

    /// Compares two messages as [`compare`](crate::compare()) does, but also compares the elements
    /// in this dictionary field by field.
    #[must_use]
    pub fn compare(
        &self,
        left: &MessageView<'_>,
        right: &MessageView<'_>,
        ignore: &Ignore,
    ) -> Vec<Difference> {
        compare_in(left, right, ignore, self)
    }

    /// Converts a message to JSON as [`to_json`](crate::to_json) does, but with the names and
    /// fields of this dictionary.
    #[cfg(feature = "serde")]
    #[must_use]
    pub fn to_json(&self, view: &MessageView<'_>) -> serde_json::Value {
        crate::json::write(view, self)
    }

    /// Converts JSON to an encoded message as [`from_json`](crate::from_json) does. Elements in
    /// this dictionary may be specified by their fields.
    ///
    /// # Errors
    /// Returns the errors of [`from_json`](crate::from_json).
    #[cfg(feature = "serde")]
    pub fn from_json(&self, message: &serde_json::Value) -> Result<Vec<u8>, crate::JsonError> {
        crate::json::read(message, self)
    }
}

/// A vendor-specific element with its row.
#[derive(Clone, Copy, Debug)]
pub struct VendorElement<'d, 'a> {
    row: &'d VendorRow,
    /// The bytes after the enterprise number.
    value: &'a [u8],
}

impl<'d, 'a> VendorElement<'d, 'a> {
    /// Returns the row.
    #[must_use]
    pub const fn row(&self) -> &'d VendorRow {
        self.row
    }

    /// Returns an iterator over the fields in the order of the row. A group has no fields.
    pub fn fields(&self) -> impl Iterator<Item = (&'d VendorField, Value<'a>)> {
        self.walk()
    }

    /// Returns the value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        let found = self.walk().find(|(field, _)| field.name() == name);
        found.map(|(_, value)| value)
    }

    /// Returns the bytes after the fields. For a group these are all its elements.
    #[must_use]
    pub fn tail(&self) -> &'a [u8] {
        let mut walk = self.walk();
        walk.by_ref().for_each(drop);
        walk.reader.rest()
    }

    fn walk(&self) -> Fields<'d, 'a> {
        Fields {
            fields: self.row.layout(),
            reader: Reader::new(self.value),
        }
    }
}

struct Fields<'d, 'a> {
    fields: &'d [VendorField],
    reader: Reader<'a>,
}

impl<'d, 'a> Iterator for Fields<'d, 'a> {
    type Item = (&'d VendorField, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (field, rest) = self.fields.split_first()?;
        let value = field.kind().read(&mut self.reader, 0)?;
        self.fields = rest;
        Some((field, value))
    }
}

/// Decodes the members of a vendor-specific group. Returns `None` if the bytes are not elements.
pub(crate) fn members<'a>(value: &'a [u8], index: &'a mut Index) -> Option<Part<'a>> {
    index.walk(value, 0, &GROUP_WITHOUT_TABLE).ok()
}
