//! Keys, which distinguish siblings.

use std::borrow::Cow;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

/// The name of an actor among its siblings: a text or a number.
///
/// A number is the same key as its decimal text. It is stored as a number until a path is built, so
/// a program that numbers its actors allocates no text for them. Short texts are stored inline.
///
/// ```
/// use strowger::Key;
///
/// assert_eq!(Key::from(42_u64), Key::from("42"));
/// assert_eq!(Key::from("0x2a").to_string(), "0x2a");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(KeyRepr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum KeyRepr {
    Number(u64),
    /// The length of the text, and a buffer with its bytes.
    Short(u8, [u8; INLINE_CAPACITY]),
    Long(Arc<str>),
}

/// The most text that fits beside the tag without making a key larger than three words.
const INLINE_CAPACITY: usize = 22;

impl Key {
    /// Returns `true` if an actor can have this key: it must not be empty or contain a slash.
    pub(crate) fn is_valid(&self) -> bool {
        match &self.0 {
            KeyRepr::Number(_) => true,
            KeyRepr::Short(length, text) => *length > 0 && !text.contains(&b'/'),
            KeyRepr::Long(text) => !text.contains('/'),
        }
    }

    pub(crate) fn hash_code(&self) -> u64 {
        match &self.0 {
            KeyRepr::Number(number) => FxBuildHasher.hash_one(number),
            KeyRepr::Short(length, text) => FxBuildHasher.hash_one(&text[..usize::from(*length)]),
            KeyRepr::Long(text) => FxBuildHasher.hash_one(text.as_bytes()),
        }
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            KeyRepr::Number(number) => Cow::Owned(number.to_string()),
            KeyRepr::Short(length, text) => String::from_utf8_lossy(&text[..usize::from(*length)]),
            KeyRepr::Long(text) => Cow::Borrowed(text),
        }
    }

    pub(crate) fn to_shared(&self) -> Arc<str> {
        match &self.0 {
            KeyRepr::Long(text) => Arc::clone(text),
            KeyRepr::Number(_) | KeyRepr::Short(..) => Arc::from(self.text()),
        }
    }

    fn from_short_text(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if let Some(number) = number(bytes) {
            return Some(Self(KeyRepr::Number(number)));
        }
        let mut short = [0; INLINE_CAPACITY];
        short.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let length = u8::try_from(bytes.len()).ok()?;
        Some(Self(KeyRepr::Short(length, short)))
    }
}

/// Parses a number, but only from the decimal text that it would be printed as.
fn number(text: &[u8]) -> Option<u64> {
    let plain = match text {
        [] | [b'0', _, ..] => false,
        _ => text.len() <= MAX_DIGITS,
    };
    plain.then_some(())?;
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        let number = number.checked_mul(10)?;
        (digit < 10).then_some(())?;
        number.checked_add(digit.into())
    })
}

/// The most digits that a number can have.
const MAX_DIGITS: usize = 20;

impl From<u64> for Key {
    fn from(number: u64) -> Self {
        Self(KeyRepr::Number(number))
    }
}

impl From<u32> for Key {
    fn from(number: u32) -> Self {
        Self(KeyRepr::Number(number.into()))
    }
}

impl From<usize> for Key {
    fn from(number: usize) -> Self {
        Self(KeyRepr::Number(number as u64))
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::from_short_text(text).unwrap_or_else(|| Self(KeyRepr::Long(text.into())))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self::from_short_text(&text).unwrap_or_else(|| Self(KeyRepr::Long(text.into())))
    }
}

impl From<Arc<str>> for Key {
    fn from(text: Arc<str>) -> Self {
        Self::from_short_text(&text).unwrap_or(Self(KeyRepr::Long(text)))
    }
}

impl From<Box<str>> for Key {
    fn from(text: Box<str>) -> Self {
        Self::from(&*text)
    }
}

impl From<Cow<'_, str>> for Key {
    fn from(text: Cow<'_, str>) -> Self {
        Self::from(&*text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            KeyRepr::Number(number) => fmt::Display::fmt(number, f),
            KeyRepr::Short(..) | KeyRepr::Long(_) => f.pad(&self.text()),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text(), f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn key_size_is_at_most_three_words() {
        assert_eq!(size_of::<Key>(), 24);
    }

    #[test]
    fn only_canonical_decimal_text_equals_a_number() {
        let number = Key::from(7_u64);
        assert_eq!(Key::from("7"), number);
        for other in ["07", "+7", "7 ", "0x7", "seven"] {
            assert_ne!(Key::from(other), number, "{other}");
            assert_eq!(Key::from(other).to_string(), other);
        }
        assert_eq!(Key::from("0"), Key::from(0_u32));
        assert_eq!(
            Key::from("18446744073709551616").text(),
            "18446744073709551616"
        );
    }

    #[test]
    fn empty_keys_and_keys_with_slash_are_invalid() {
        let long = "a/".repeat(20);
        for unfit in ["", "/", "a/b", &long] {
            assert!(!Key::from(unfit).is_valid(), "{unfit:?}");
        }
        assert!(Key::from("a").is_valid() && Key::from(0_usize).is_valid());
    }

    proptest! {
        #[test]
        fn key_text_round_trips(text in "\\PC{0,40}|[0-9]{1,25}") {
            let key = Key::from(text.as_str());
            prop_assert_eq!(&*key.text(), text.as_str());
            prop_assert_eq!(&*key.to_shared(), text.as_str());
            let others = [Key::from(text.clone()), Key::from(Arc::<str>::from(text.as_str()))];
            for other in others {
                prop_assert_eq!(&other, &key);
                prop_assert_eq!(other.hash_code(), key.hash_code());
            }
        }
    }
}
