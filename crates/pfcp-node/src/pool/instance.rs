//! Network instances, TS 29.244 §8.2.4.

use xxhash_rust::xxh3::xxh3_64;

/// A network instance, by the digest of its name: a claim has a fixed size, however long the name
/// is. The default stands for rules without a Network Instance.
///
/// The digest is stored with sessions, so it must not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct InstanceKey(pub(crate) u64);

impl InstanceKey {
    /// Returns the key of the value of a Network Instance.
    pub(crate) fn of(value: &[u8]) -> Self {
        match value {
            [] => Self::default(),
            value => Self(xxh3_64(&instance_name(value))),
        }
    }
}

/// Returns the name in the value of a Network Instance: text, or labels like those of an APN/DNN,
/// which are joined by dots. Letter case does not matter in the name of a data network (TS 23.003
/// §9.1).
pub(crate) fn instance_name(value: &[u8]) -> Vec<u8> {
    let mut name = labels(value).map_or_else(|| value.to_vec(), |labels| labels.join(&b'.'));
    name.make_ascii_lowercase();
    name
}

fn labels(mut rest: &[u8]) -> Option<Vec<&[u8]>> {
    let mut labels = Vec::new();
    while let Some((&length, tail)) = rest.split_first() {
        let (label, tail) = tail.split_at_checked(length.into())?;
        if label.is_empty() {
            return None;
        }
        labels.push(label);
        rest = tail;
    }
    Some(labels)
}
