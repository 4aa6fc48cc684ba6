use std::borrow::Cow;

use crate::ie::descriptor::{Kind, Span};
use crate::ie::given::Given;
use crate::ie::{IeType, Value};

/// The fields that a row has at most.
const MOST_FIELDS: usize = 64;

/// The named values that a field has at most.
const MOST_VALUES: usize = 1024;

/// The characters of a name at most.
const MOST_NAME: usize = 64;

/// What is known about an element of a vendor.
#[derive(Clone, Debug)]
pub struct Row {
    enterprise: u16,
    ie: IeType,
    name: Cow<'static, str>,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Fields(Cow<'static, [Field]>),
    Group,
}

/// One field of a [`Row`].
#[derive(Clone, Debug)]
pub struct Field {
    name: Cow<'static, str>,
    kind: Kind,
    values: Cow<'static, [(u64, Cow<'static, str>)]>,
}

/// A row that a dictionary does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// The type is not of the vendors' half.
    #[error("type {} is not a vendor's: those are 32768 and more", .0.0)]
    Type(IeType),
    /// The vendor has a row of this type or name.
    #[error("type {} is \"{name}\" already", ie.0)]
    Again {
        /// The type of the row that is there.
        ie: IeType,
        /// Its name.
        name: String,
    },
    /// The dictionary is full.
    #[error("more than {most} rows")]
    TooMany {
        /// The rows that it has at most.
        most: usize,
    },
    /// A name is empty, too long or has control characters.
    #[error("a name has 1 to 64 characters and no control characters")]
    Name,
    /// A row has no field, or more than 64.
    #[error("a row has 1 to 64 fields")]
    Fields,
    /// A name of a field is not one that JSON can have beside the others.
    #[error(
        "field \"{0}\": a name has 1 to 64 of a-z, 0-9 and _, begins with a letter, does not end \
         in _name, and is not hex"
    )]
    FieldName(String),
    /// Two fields have one name.
    #[error("field \"{0}\" is there twice")]
    FieldAgain(String),
    /// A number or a fixed length has octets that it cannot have.
    #[error("field \"{0}\": a number has 1 to 8 octets, a fixed length 1 or more")]
    Octets(String),
    /// A field goes to the end of the element, and another one follows.
    #[error("field \"{0}\" takes the rest of the element and is not the last")]
    NotLast(String),
    /// A field is of a kind that rows of vendors do not have.
    #[error("field \"{0}\" is of a kind that a vendor's row does not have")]
    Kind(String),
    /// Values have names and cannot, or two of them the same number.
    #[error("field \"{0}\": only numbers have named values, each once, that fit, 1024 at most")]
    Values(String),
}

/// Fields that are not what a row needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A field of the row is not given, or not as its kind says, or does not fit.
    #[error("{0} is missing or malformed")]
    Field(String),
    /// A name is none of the row's.
    #[error("{0} is no field of the element")]
    Unknown(String),
}

impl Row {
    /// Describes an element of fields that follow one another.
    #[must_use]
    pub const fn fields(
        enterprise: u16,
        ie: IeType,
        name: &'static str,
        fields: &'static [Field],
    ) -> Self {
        Self {
            enterprise,
            ie,
            name: Cow::Borrowed(name),
            content: Content::Fields(Cow::Borrowed(fields)),
        }
    }

    /// Describes an element of elements.
    #[must_use]
    pub const fn group(enterprise: u16, ie: IeType, name: &'static str) -> Self {
        Self {
            enterprise,
            ie,
            name: Cow::Borrowed(name),
            content: Content::Group,
        }
    }

    /// Describes an element that is read at run time; without fields it is a group.
    #[must_use]
    pub fn read(enterprise: u16, ie: IeType, name: String, fields: Option<Vec<Field>>) -> Self {
        Self {
            enterprise,
            ie,
            name: Cow::Owned(name),
            content: match fields {
                Some(fields) => Content::Fields(Cow::Owned(fields)),
                None => Content::Group,
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

    /// Says that the element consists of elements.
    #[must_use]
    pub const fn is_group(&self) -> bool {
        matches!(self.content, Content::Group)
    }

    /// Returns the fields; a group has none.
    #[must_use]
    pub fn layout(&self) -> &[Field] {
        match &self.content {
            Content::Fields(fields) => fields,
            Content::Group => &[],
        }
    }

    /// Writes everything after the length of the element: enterprise number and fields.
    ///
    /// [`Rest::push`](crate::ie::Rest::push) adds it to a message or a group.
    ///
    /// # Errors
    /// When a field is missing or unknown, or a value is not one that its field can have.
    pub fn value(&self, fields: &[(&str, Value<'_>)]) -> Result<Vec<u8>, WriteError> {
        let known = |name| self.layout().iter().any(|field| field.name == name);
        if let Some((name, _)) = fields.iter().find(|(name, _)| !known(*name)) {
            return Err(WriteError::Unknown((*name).to_owned()));
        }
        let mut out = self.enterprise.to_be_bytes().to_vec();
        let given = |field: &Field| {
            let (_, value) = fields.iter().find(|(name, _)| *name == field.name)?;
            Given::of(*value, field.kind)
        };
        self.write(given, &mut out).map_err(WriteError::Field)?;
        Ok(out)
    }

    /// Appends the fields; `get` returns the value of each. Returns the name of a field that has
    /// none, or one that does not fit.
    pub(crate) fn write(
        &self,
        mut get: impl FnMut(&Field) -> Option<Given>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.layout().iter().try_for_each(|field| {
            get(field)
                .and_then(|value| value.put(field.kind, 0, out))
                .ok_or_else(|| field.name.clone().into_owned())
        })
    }

    pub(super) fn check(&self) -> Result<(), RowError> {
        if !self.ie.is_vendor() {
            return Err(RowError::Type(self.ie));
        }
        check_name(&self.name)?;
        let Content::Fields(fields) = &self.content else {
            return Ok(());
        };
        if fields.is_empty() || fields.len() > MOST_FIELDS {
            return Err(RowError::Fields);
        }
        for (place, field) in fields.iter().enumerate() {
            field.check(place + 1 == fields.len())?;
            if fields[..place].iter().any(|other| other.name == field.name) {
                return Err(RowError::FieldAgain(field.name.clone().into_owned()));
            }
        }
        Ok(())
    }
}

impl Field {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            values: Cow::Borrowed(&[]),
        }
    }

    /// An unsigned number of so many octets, 8 at most, the highest first.
    #[must_use]
    pub const fn number(name: &'static str, octets: usize) -> Self {
        Self::new(name, number(octets))
    }

    /// Seconds since 1900, four octets.
    #[must_use]
    pub const fn time(name: &'static str) -> Self {
        Self::new(name, Kind::Time)
    }

    /// An IPv4 address.
    #[must_use]
    pub const fn ipv4(name: &'static str) -> Self {
        Self::new(name, Kind::Ipv4)
    }

    /// An IPv6 address.
    #[must_use]
    pub const fn ipv6(name: &'static str) -> Self {
        Self::new(name, Kind::Ipv6)
    }

    /// A MAC address.
    #[must_use]
    pub const fn mac(name: &'static str) -> Self {
        Self::new(name, Kind::Mac)
    }

    /// Text, UTF-8 where it can be.
    #[must_use]
    pub const fn text(name: &'static str, span: Span) -> Self {
        Self::new(name, Kind::Text(span))
    }

    /// Octets.
    #[must_use]
    pub const fn octets(name: &'static str, span: Span) -> Self {
        Self::new(name, Kind::Octets(span))
    }

    /// Describes a field that is read at run time.
    #[must_use]
    pub fn read(name: String, kind: Kind) -> Self {
        Self {
            name: Cow::Owned(name),
            kind,
            values: Cow::Borrowed(&[]),
        }
    }

    /// Names values of a number.
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

    /// Returns how the field stands on the wire.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the name of a value.
    #[must_use]
    pub fn value_name(&self, value: u64) -> Option<&str> {
        let found = self.values.iter().find(|(number, _)| *number == value);
        found.map(|(_, name)| &**name)
    }

    fn check(&self, last: bool) -> Result<(), RowError> {
        let name = || self.name.clone().into_owned();
        let mut letters = self.name.bytes();
        let starts = letters
            .next()
            .is_some_and(|first| first.is_ascii_lowercase());
        let goes_on =
            |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'_';
        if !starts
            || !letters.all(goes_on)
            || self.name.len() > MOST_NAME
            || self.name.ends_with("_name")
            || self.name == "hex"
        {
            return Err(RowError::FieldName(name()));
        }
        match self.kind {
            Kind::Number { octets, width, .. } => {
                if !(1..=8).contains(&octets) || width as usize != 8 * octets {
                    return Err(RowError::Octets(name()));
                }
            }
            Kind::Signed { octets } if !(1..=8).contains(&octets) => {
                return Err(RowError::Octets(name()));
            }
            Kind::Signed { .. } | Kind::Time | Kind::Ipv4 | Kind::Ipv6 | Kind::Mac => {}
            Kind::Text(span) | Kind::Octets(span) | Kind::Labels(span) | Kind::Digits(span) => {
                match span {
                    Span::Rest if !last => return Err(RowError::NotLast(name())),
                    Span::Fixed(0) => return Err(RowError::Octets(name())),
                    Span::RestButLast | Span::Counted => return Err(RowError::Kind(name())),
                    _ => {}
                }
            }
            Kind::Bits { .. } | Kind::List(..) => return Err(RowError::Kind(name())),
        }
        self.check_values()
    }

    fn check_values(&self) -> Result<(), RowError> {
        if self.values.is_empty() {
            return Ok(());
        }
        let most = match self.kind {
            Kind::Number { width, .. } => u64::MAX >> (64 - width),
            _ => 0,
        };
        let mut numbers: Vec<u64> = self.values.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let wrong = numbers.len() != self.values.len()
            || numbers.len() > MOST_VALUES
            || numbers.last().is_some_and(|last| *last > most)
            || !matches!(self.kind, Kind::Number { .. });
        if wrong {
            return Err(RowError::Values(self.name.clone().into_owned()));
        }
        self.values
            .iter()
            .try_for_each(|(_, name)| check_name(name))
    }
}

/// The kind of an unsigned number of so many octets.
const fn number(octets: usize) -> Kind {
    #[expect(clippy::cast_possible_truncation, reason = "what exceeds 8 is refused")]
    Kind::Number {
        octets,
        width: (octets as u32).saturating_mul(8),
        names: None,
    }
}

pub(super) fn check_name(name: &str) -> Result<(), RowError> {
    let octets = name.chars().take(MOST_NAME + 1).count();
    if octets == 0 || octets > MOST_NAME || name.chars().any(char::is_control) {
        return Err(RowError::Name);
    }
    Ok(())
}
