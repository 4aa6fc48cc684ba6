//! Encoding of domain names as labels, and of digits as half bytes.

/// Encodes a dotted name as labels, without the empty label at the end. Longer labels are cut to 63
/// bytes.
pub(crate) fn to_labels(name: &str) -> Vec<u8> {
    let mut octets = Vec::with_capacity(name.len() + 1);
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label = &label.as_bytes()[..label.len().min(63)];
        octets.extend(u8::try_from(label.len()));
        octets.extend_from_slice(label);
    }
    octets
}

/// Decodes labels as a dotted name. Returns `None` if encoding that name does not give the same
/// bytes.
pub(crate) fn from_labels(mut octets: &[u8]) -> Option<String> {
    let mut name = String::with_capacity(octets.len());
    while let Some((&length, rest)) = octets.split_first() {
        let (label, rest) = rest.split_at_checked(usize::from(length))?;
        let label = std::str::from_utf8(label).ok()?;
        if label.is_empty() || label.contains('.') || length > 63 {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(label);
        octets = rest;
    }
    Some(name)
}

/// Encodes decimal digits, two per byte and low half first. An odd number of digits is padded with
/// a filler.
#[cfg(feature = "serde")]
pub(crate) fn to_digits(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .bytes()
        .map(|digit| digit.is_ascii_digit().then(|| digit - b'0'))
        .collect();
    let octet = |pair: &[u8]| pair[0] | pair.get(1).copied().unwrap_or(0xf) << 4;
    Some(digits?.chunks(2).map(octet).collect())
}

/// Decodes digits. Returns `None` if encoding them does not give the same bytes.
pub(crate) fn from_digits(octets: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(2 * octets.len());
    for (position, octet) in octets.iter().enumerate() {
        let last = position + 1 == octets.len();
        for half in [octet & 0xf, octet >> 4] {
            if half <= 9 {
                text.push(char::from(b'0' + half));
            }
        }
        if octet & 0xf > 9 || (octet >> 4 > 9 && !(last && octet >> 4 == 0xf)) {
            return None;
        }
    }
    Some(text)
}
