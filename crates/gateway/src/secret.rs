//! What clients have to know.

/// Whether two secrets are the same; it takes as long whatever part of the given one is right.
pub(crate) fn is_same(given: &[u8], secret: &[u8]) -> bool {
    let mut other = u8::from(given.len() != secret.len());
    for (at, octet) in given.iter().enumerate() {
        other |= octet ^ secret.get(at % secret.len().max(1)).unwrap_or(&0);
    }
    std::hint::black_box(other) == 0
}
