use std::borrow::Cow;

use crate::ie::descriptor::{FieldExtent, FieldKind};
use crate::ie::field_input::FieldInput;
use crate::ie::{IeType, Value};

/// Maximum number of fields of a row.
const MAX_FIELDS: usize = 64;

/// Maximum number of named values of a field.
const MAX_VALUES: usize = 1024;

/// Maximum number of characters of a name.
const MAX_NAME: usize = 64;

/// The description of a vendor-specific element.
#[derive(Clone, Debug)]
pub struct VendorRow {
    enterprise: u16,
    ie: IeType,
    name: Cow<'static, str>,
    content: RowContent,
}

#[derive(Clone, Debug)]
enum RowContent {
    Fields(Cow<'static, [VendorField]>),
    Group,
}

/// A field of a [`VendorRow`].
#[derive(Clone, Debug)]
pub struct VendorField {
    name: Cow<'static, str>,
    kind: FieldKind,
    values: Cow<'static, [(u64, Cow<'static, str>)]>,
}

/// The error returned when a row is invalid or cannot be added to a dictionary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VendorRowError {
    /// The type is not vendor-specific.
    #[error("type {} is not vendor-specific; vendor types start at 32768", .0.0)]
    Type(IeType),
    /// The vendor already has a row with this type or name.
    #[error("type {} is \"{name}\" already", ie.0)]
    Again {
        /// The type of the existing row.
        ie: IeType,
        /// The name of the existing row.
        name: String,
    },
    /// The dictionary is full.
    #[error("more than {max_rows} rows")]
    TooMany {
        /// Maximum number of rows.
        max_rows: usize,
    },
    /// A name is empty, too long, or contains control characters.
    #[error("a name has 1 to 64 characters and no control characters")]
    Name,
    /// A row has no field, or more than 64.
    #[error("a row has 1 to 64 fields")]
    Fields,
    /// A field name is invalid or clashes with a reserved JSON key.
    #[error(
        "field \"{0}\": a name has 1 to 64 of a-z, 0-9 and _, begins with a letter, does not end \
         in _name, and is not hex"
    )]
    FieldName(String),
    /// Two fields have the same name.
    #[error("field \"{0}\" is defined twice")]
    FieldAgain(String),
    /// The size of a number or of a field of fixed length is invalid.
    #[error("field \"{0}\": a number has 1 to 8 bytes, a fixed length 1 or more")]
    Bytes(String),
    /// A field that extends to the end of the element is not the last one.
    #[error("field \"{0}\" takes the rest of the element and is not the last")]
    NotLast(String),
    /// The kind of a field is not available for vendor-specific elements.
    #[error("field \"{0}\" is of a kind that a vendor's row does not have")]
    Kind(String),
    /// The named values of a field are invalid: the field is not a number, or a value is repeated
    /// or out of range.
    #[error("field \"{0}\": only numbers have named values, each once, that fit, 1024 at most")]
    Values(String),
}

/// The error returned when fields cannot be encoded according to a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A field of the row is missing, has the wrong kind, or does not fit.
    #[error("{0} is missing or malformed")]
    Field(String),
    /// The row has no field of this name.
    #[error("{0} is not a field of the element")]
    Unknown(String),
}

impl VendorRow {
    /// Creates the description of an element that consists of consecutive fields.
    #[must_use]
    pub const fn fields(
        enterprise: u16,
        ie: IeType,
        name: &'static str,
        fields: &'static [VendorField],
    ) -> Self {
        Self {
            enterprise,
            ie,
            name: Cow::Borrowed(name),
            content: RowContent::Fields(Cow::Borrowed(fields)),
        }
    }

    /// Creates the description of an element that consists of elements.
    #[must_use]
    pub const fn group(enterprise: u16, ie: IeType, name: &'static str) -> Self {
        Self {
            enterprise,
            ie,
            name: Cow::Borrowed(name),
            content: RowContent::Group,
        }
    }

    /// Creates a description from data read at run time. Without fields it describes a group.
    #[must_use]
    pub fn read(
        enterprise: u16,
        ie: IeType,
        name: String,
        fields: Option<Vec<VendorField>>,
    ) -> Self {
        Self {
            enterprise,
            ie,
            name: Cow::Owned(name),
            content: match fields {
                Some(fields) => RowContent::Fields(Cow::Owned(fields)),
                None => RowContent::Group,
            },
        }
    }

    /// Returns the enterprise number.
    #[must_use]
    pub const fn enterprise(&self) -> u16 {
        self.enterprise
    }

    /// Returns the type.
    #[must_use]
    pub const fn ie(&self) -> IeType {
        self.ie
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the element is a group, which consists of elements.
    #[must_use]
    pub const fn is_group(&self) -> bool {
        matches!(self.content, RowContent::Group)
    }

    /// Returns the fields. A group has none.
    #[must_use]
    pub fn layout(&self) -> &[VendorField] {
        match &self.content {
            RowContent::Fields(fields) => fields,
            RowContent::Group => &[],
        }
    }

    /// Encodes the value of the element: the enterprise number and the fields.
    ///
    /// [`Rest::push`](crate::ie::GroupRemainder::push) adds it to a message or a group.
    ///
    /// # Errors
    /// Returns an error if a field is missing or unknown, or a value is not valid for its field.
    pub fn value(&self, fields: &[(&str, Value<'_>)]) -> Result<Vec<u8>, WriteError> {
        let known = |name| self.layout().iter().any(|field| field.name == name);
        if let Some((name, _)) = fields.iter().find(|(name, _)| !known(*name)) {
            return Err(WriteError::Unknown((*name).to_owned()));
        }
        let mut out = self.enterprise.to_be_bytes().to_vec();
        let given = |field: &VendorField| {
            let (_, value) = fields.iter().find(|(name, _)| *name == field.name)?;
            FieldInput::of(*value, field.kind)
        };
        self.write(given, &mut out).map_err(WriteError::Field)?;
        Ok(out)
    }

    /// Appends the fields, whose values `get` returns. Returns the name of the field at fault if a
    /// value is missing or does not fit.
    pub(crate) fn write(
        &self,
        mut get: impl FnMut(&VendorField) -> Option<FieldInput>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.layout().iter().try_for_each(|field| {
            get(field)
                .and_then(|value| value.put(field.kind, 0, out))
                .ok_or_else(|| field.name.clone().into_owned())
        })
    }

    pub(super) fn check(&self) -> Result<(), VendorRowError> {
        if !self.ie.is_vendor() {
            return Err(VendorRowError::Type(self.ie));
        }
        check_name(&self.name)?;
        let RowContent::Fields(fields) = &self.content else {
            return Ok(());
        };
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            return Err(VendorRowError::Fields);
        }
        for (place, field) in fields.iter().enumerate() {
            field.check(place + 1 == fields.len())?;
            if fields[..place].iter().any(|other| other.name == field.name) {
                return Err(VendorRowError::FieldAgain(field.name.clone().into_owned()));
            }
        }
        Ok(())
    }
}

impl VendorField {
    const fn new(name: &'static str, kind: FieldKind) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            values: Cow::Borrowed(&[]),
        }
    }

    /// Creates an unsigned number of `bytes` bytes, at most 8, in big-endian order.
    #[must_use]
    pub const fn number(name: &'static str, bytes: usize) -> Self {
        Self::new(name, number(bytes))
    }

    /// Creates a time in seconds since 1900, in four bytes.
    #[must_use]
    pub const fn time(name: &'static str) -> Self {
        Self::new(name, FieldKind::Time)
    }

    /// Creates an IPv4 address.
    #[must_use]
    pub const fn ipv4(name: &'static str) -> Self {
        Self::new(name, FieldKind::Ipv4)
    }

    /// Creates an IPv6 address.
    #[must_use]
    pub const fn ipv6(name: &'static str) -> Self {
        Self::new(name, FieldKind::Ipv6)
    }

    /// Creates a MAC address.
    #[must_use]
    pub const fn mac(name: &'static str) -> Self {
        Self::new(name, FieldKind::Mac)
    }

    /// Creates a text, preferably in UTF-8.
    #[must_use]
    pub const fn text(name: &'static str, span: FieldExtent) -> Self {
        Self::new(name, FieldKind::Text(span))
    }

    /// Creates a field of raw bytes.
    #[must_use]
    pub const fn bytes(name: &'static str, span: FieldExtent) -> Self {
        Self::new(name, FieldKind::Bytes(span))
    }

    /// Creates a field from data read at run time.
    #[must_use]
    pub fn read(name: String, kind: FieldKind) -> Self {
        Self {
            name: Cow::Owned(name),
            kind,
            values: Cow::Borrowed(&[]),
        }
    }

    /// Sets the names of values of a number.
    #[must_use]
    pub fn with_values(mut self, values: Vec<(u64, String)>) -> Self {
        let owned = |(value, name)| (value, Cow::Owned(name));
        self.values = values.into_iter().map(owned).collect();
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the encoding of the field.
    #[must_use]
    pub const fn kind(&self) -> FieldKind {
        self.kind
    }

    /// Returns the name of a value.
    #[must_use]
    pub fn value_name(&self, value: u64) -> Option<&str> {
        let found = self.values.iter().find(|(number, _)| *number == value);
        found.map(|(_, name)| &**name)
    }

    fn check(&self, last: bool) -> Result<(), VendorRowError> {
        let name = || self.name.clone().into_owned();
        let mut letters = self.name.bytes();
        let starts = letters
            .next()
            .is_some_and(|first| first.is_ascii_lowercase());
        let goes_on = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !starts
            || !letters.all(goes_on)
            || self.name.len() > MAX_NAME
            || self.name.ends_with("_name")
            || self.name == "hex"
        {
            return Err(VendorRowError::FieldName(name()));
        }
        match self.kind {
            FieldKind::Number { bytes, width, .. } => {
                if !(1..=8).contains(&bytes) || width as usize != 8 * bytes {
                    return Err(VendorRowError::Bytes(name()));
                }
            }
            FieldKind::Signed { bytes } if !(1..=8).contains(&bytes) => {
                return Err(VendorRowError::Bytes(name()));
            }
            FieldKind::Signed { .. }
            | FieldKind::Time
            | FieldKind::Ipv4
            | FieldKind::Ipv6
            | FieldKind::Mac => {}
            FieldKind::Text(span)
            | FieldKind::Bytes(span)
            | FieldKind::Labels(span)
            | FieldKind::Digits(span) => match span {
                FieldExtent::Rest if !last => return Err(VendorRowError::NotLast(name())),
                FieldExtent::Fixed(0) => return Err(VendorRowError::Bytes(name())),
                FieldExtent::RestButLast | FieldExtent::Counted | FieldExtent::CountedItems => {
                    return Err(VendorRowError::Kind(name()));
                }
                _ => {}
            },
            FieldKind::Bits { .. } | FieldKind::List(..) => {
                return Err(VendorRowError::Kind(name()));
            }
        }
        self.check_values()
    }

    fn check_values(&self) -> Result<(), VendorRowError> {
        if self.values.is_empty() {
            return Ok(());
        }
        let most = match self.kind {
            FieldKind::Number { width, .. } => u64::MAX >> (64 - width),
            _ => 0,
        };
        let mut numbers: Vec<u64> = self.values.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let wrong = numbers.len() != self.values.len()
            || numbers.len() > MAX_VALUES
            || numbers.last().is_some_and(|last| *last > most)
            || !matches!(self.kind, FieldKind::Number { .. });
        if wrong {
            return Err(VendorRowError::Values(self.name.clone().into_owned()));
        }
        self.values
            .iter()
            .try_for_each(|(_, name)| check_name(name))
    }
}

/// Returns the kind of an unsigned number of `bytes` bytes.
const fn number(bytes: usize) -> FieldKind {
    #[expect(clippy::cast_possible_truncation, reason = "what exceeds 8 is refused")]
    FieldKind::Number {
        bytes,
        width: (bytes as u32).saturating_mul(8),
        names: None,
    }
}

pub(super) fn check_name(name: &str) -> Result<(), VendorRowError> {
    let bytes = name.chars().take(MAX_NAME + 1).count();
    if bytes == 0 || bytes > MAX_NAME || name.chars().any(char::is_control) {
        return Err(VendorRowError::Name);
    }
    Ok(())
}
