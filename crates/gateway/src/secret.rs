//! Comparison of secrets.

/// Returns `true` if two secrets are equal. The time taken does not depend on how much of `given`
/// is right.
pub(crate) fn is_same(given: &[u8], secret: &[u8]) -> bool {
    let mut other = u8::from(given.len() != secret.len());
    for (at, octet) in given.iter().enumerate() {
        other |= octet ^ secret.get(at % secret.len().max(1)).unwrap_or(&0);
    }
    std::hint::black_box(other) == 0
}
