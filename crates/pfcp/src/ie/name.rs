//! Encoding of domain names as labels, and of digits as half bytes.

/// Encodes a dotted name as labels, without the empty label at the end. Longer labels are cut to 63
/// bytes.
pub(crate) fn to_labels(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + 1);
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label = &label.as_bytes()[..label.len().min(63)];
        bytes.extend(u8::try_from(label.len()));
        bytes.extend_from_slice(label);
    }
    bytes
}

/// Decodes labels as a dotted name. Returns `None` if encoding that name does not give the same
/// bytes.
pub(crate) fn from_labels(mut bytes: &[u8]) -> Option<String> {
    let mut name = String::with_capacity(bytes.len());
    while let Some((&length, rest)) = bytes.split_first() {
        let (label, rest) = rest.split_at_checked(usize::from(length))?;
        let label = std::str::from_utf8(label).ok()?;
        if label.is_empty() || label.contains('.') || length > 63 {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(label);
        bytes = rest;
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
    let byte = |pair: &[u8]| pair[0] | pair.get(1).copied().unwrap_or(0xf) << 4;
    Some(digits?.chunks(2).map(byte).collect())
}

/// Decodes digits. Returns `None` if encoding them does not give the same bytes.
pub(crate) fn from_digits(bytes: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(2 * bytes.len());
    for (position, byte) in bytes.iter().enumerate() {
        let last = position + 1 == bytes.len();
        for half in [byte & 0xf, byte >> 4] {
            if half <= 9 {
                text.push(char::from(b'0' + half));
            }
        }
        if byte & 0xf > 9 || (byte >> 4 > 9 && !(last && byte >> 4 == 0xf)) {
            return None;
        }
    }
    Some(text)
}
