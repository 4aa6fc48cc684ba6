//! Names of nodes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The name of a node: the bytes of its Node ID, TS 29.244 §8.2.38.
///
/// Names that are displayed alike are equal, so that no node can pass for another. A domain name is
/// stored in lower case (RFC 4343) and as labels without the root, even if a peer sends it as text.
/// A domain name that spells an IP address is stored as that address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Box<[u8]>);

impl NodeName {
    /// Parses the value of a Node ID. Returns `None` for an unknown type, too few bytes, malformed
    /// labels, or an empty name.
    #[must_use]
    pub fn from_value(value: &[u8]) -> Option<Self> {
        let (kind, rest) = value.split_first()?;
        let known = match kind & 0x0f {
            0 => rest.get(..4)?,
            1 => rest.get(..16)?,
            2 if is_canonical(rest) => rest,
            2 => {
                let name = labels(rest)?.join(&b'.');
                match Self::from_name(&name) {
                    Some(name) => return Some(name),
                    None => rest,
                }
            }
            _ => return None,
        };
        let mut bytes = Vec::with_capacity(1 + known.len());
        bytes.push(kind & 0x0f);
        bytes.extend_from_slice(known);
        if kind & 0x0f == 2 {
            // The length byte of a valid label is at most 63, and so not a letter.
            bytes.make_ascii_lowercase();
        }
        Some(Self(bytes.into()))
    }

    /// Creates a node name from a domain name.
    ///
    /// Returns `None` if the name is empty, if a label is empty or longer than 63 bytes, or if the
    /// encoded labels are longer than 254 bytes.
    #[must_use]
    pub fn from_fqdn(name: &str) -> Option<Self> {
        Self::of_labels(name.trim_end_matches('.').as_bytes())
    }

    /// Parses an IP address, or the labels of a domain name separated by dots.
    fn from_name(name: &[u8]) -> Option<Self> {
        let address = std::str::from_utf8(name).ok();
        let address = address.and_then(|text| text.parse::<IpAddr>().ok());
        match address {
            Some(address) => Some(address.into()),
            None => Self::of_labels(name.strip_suffix(b".").unwrap_or(name)),
        }
    }

    fn of_labels(name: &[u8]) -> Option<Self> {
        let mut bytes = vec![2];
        for label in name.split(|letter| *letter == b'.') {
            let length = u8::try_from(label.len())
                .ok()
                .filter(|length| (1..=LABEL).contains(length))?;
            bytes.push(length);
            bytes.extend(label.iter().map(u8::to_ascii_lowercase));
        }
        (bytes.len() <= 255).then(|| Self(bytes.into()))
    }

    /// Parses a name in textual form: an IP address, or a domain name as in
    /// [`NodeName::from_fqdn`].
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        match text.parse::<IpAddr>() {
            Ok(address) => Some(address.into()),
            Err(_) => Self::from_fqdn(text),
        }
    }

    /// Returns the value of the Node ID.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.0
    }

    /// Returns the IP address, or `None` for a domain name.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        let (kind, rest) = self.0.split_first()?;
        match kind {
            0 => Some(IpAddr::from(<[u8; 4]>::try_from(rest).ok()?)),
            1 => Some(IpAddr::from(<[u8; 16]>::try_from(rest).ok()?)),
            _ => None,
        }
    }
}

impl From<IpAddr> for NodeName {
    fn from(address: IpAddr) -> Self {
        let mut bytes = Vec::with_capacity(17);
        match address {
            IpAddr::V4(address) => {
                bytes.push(0);
                bytes.extend_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                bytes.push(1);
                bytes.extend_from_slice(&address.octets());
            }
        }
        Self(bytes.into())
    }
}

/// Maximum length of a label of a domain name.
const LABEL: u8 = 63;

/// Returns `true` for labels that have only one spelling apart from the case of their letters: each
/// has a valid length and contains neither a dot nor a colon, there is no root label, and the whole
/// is not an IP address as text.
fn is_canonical(bytes: &[u8]) -> bool {
    let (mut rest, mut last) = (bytes, None);
    while let Some((&length, tail)) = rest.split_first() {
        let Some((label, tail)) = tail.split_at_checked(usize::from(length)) else {
            return false;
        };
        let is_odd = |letter: &u8| matches!(letter, b'.' | b':');
        if !(1..=LABEL).contains(&length) || label.iter().any(is_odd) {
            return false;
        }
        (rest, last) = (tail, Some(label));
    }
    last.is_some_and(|label| !label.iter().all(u8::is_ascii_digit))
}

/// Returns the labels of a domain name. Some peers send the name as plain text, which is returned
/// as one label.
fn labels(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    if bytes.is_empty() {
        return None;
    }
    let (mut rest, mut labels) = (bytes, Vec::new());
    while let Some((&length, tail)) = rest.split_first() {
        let Some((label, tail)) = tail.split_at_checked(usize::from(length)) else {
            return Some(vec![bytes]);
        };
        if length == 0 {
            return (tail.is_empty() && !labels.is_empty()).then_some(labels);
        }
        labels.push(label);
        rest = tail;
    }
    Some(labels)
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((kind, rest)) = self.0.split_first() else {
            return Ok(());
        };
        match kind {
            0 => match <[u8; 4]>::try_from(rest) {
                Ok(bytes) => Ipv4Addr::from(bytes).fmt(f),
                Err(_) => Ok(()),
            },
            1 => match <[u8; 16]>::try_from(rest) {
                Ok(bytes) => Ipv6Addr::from(bytes).fmt(f),
                Err(_) => Ok(()),
            },
            _ => {
                let mut separator = "";
                for label in labels(rest).unwrap_or_default() {
                    write!(f, "{separator}{}", label.escape_ascii())?;
                    separator = ".";
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeName({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_encodings_are_one_name() {
        let value = |bytes: &[u8]| NodeName::from_value(bytes).unwrap();
        for (text, values) in [
            (
                "smf.lab",
                &[
                    &b"\x02\x03smf\x03lab"[..],
                    b"\x02\x03SMF\x03Lab",
                    b"\x02\x03smf\x03lab\x00",
                    b"\x02\x07smf.lab",
                    b"\x02\x07smf.lab\x00",
                    b"\x02smf.lab",
                    b"\x02SMF.LAB.",
                    b"\xf2\x03smf\x03lab",
                ][..],
            ),
            (
                "127.0.0.2",
                &[
                    b"\x00\x7f\x00\x00\x02",
                    b"\x02\x03127\x010\x010\x012",
                    b"\x02\x09127.0.0.2",
                    b"\x02127.0.0.2",
                ],
            ),
            (
                "2001:db8::1",
                &[
                    b"\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01",
                    b"\x02\x0b2001:db8::1",
                    b"\x022001:DB8:0::1",
                ],
            ),
        ] {
            let name = NodeName::from_text(text).unwrap();
            assert_eq!(name.to_string(), text);
            for bytes in values {
                let other = value(bytes);
                assert_eq!(other, name, "{} as {}", text, bytes.escape_ascii());
                assert_eq!(value(other.value()), other);
            }
        }
    }

    #[test]
    fn distinct_names_stay_distinct() {
        let values: [&[u8]; 7] = [
            b"\x02\x03smf\x03lab",
            b"\x02\x03smf\x03la2",
            b"\x02\x06smflab",
            b"\x02\x03smf\x03lab\x012",
            b"\x02\x03127\x010\x010\x03256",
            b"\x02a..b",
            b"\x00\x7f\x00\x00\x02",
        ];
        let names = values.map(|bytes| NodeName::from_value(bytes).unwrap());
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
        }
    }
}
