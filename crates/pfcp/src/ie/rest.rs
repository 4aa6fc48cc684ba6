use super::descriptor::{Descriptor, Group, NO_SLOT};
use crate::ie::IeType;
use crate::wire::{Part, Tlvs, Writer};

/// The content of a group that its members do not express: the order of the elements, unknown
/// elements, and spare bits.
///
/// It is empty if the members are in table order and express everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupRemainder(Option<Box<GroupRemainderInner>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GroupRemainderInner {
    /// The slot of each element, or `NO_SLOT` for the next of `others`.
    order: Vec<u8>,
    others: Vec<UnknownElement>,
    residues: Vec<Residue>,
}

/// An unknown element of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UnknownElement {
    ie: IeType,
    /// Everything after the length field.
    raw: Box<[u8]>,
}

/// The content of an element that its fields do not express.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Residue {
    /// The position of the element in `order`.
    position: usize,
    /// Bits to flip, from the start of the value.
    flip: Box<[u8]>,
    /// Bytes after the fields.
    tail: Box<[u8]>,
}

impl GroupRemainder {
    /// Returns `true` if there is no such content.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns an iterator over the unknown elements: their type, and everything after the length
    /// field. In a vendor-specific element this starts with the enterprise number.
    pub fn unknown(&self) -> impl Iterator<Item = (IeType, &[u8])> {
        self.0
            .iter()
            .flat_map(|inner| inner.others.iter().map(|other| (other.ie, &*other.raw)))
    }

    /// Appends an unknown element after all others.
    pub fn push(&mut self, ie: IeType, raw: impl Into<Box<[u8]>>) {
        let inner = self.0.get_or_insert_default();
        inner.others.push(UnknownElement {
            ie,
            raw: raw.into(),
        });
    }

    /// Drops the order, the unknown elements and the spare bits.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Collects the content of a group that the tables do not describe.
    #[inline]
    pub(crate) fn of(part: Part<'_>) -> Self {
        if part.is_plain() {
            Self(None)
        } else {
            Self(Some(Box::new(GroupRemainderInner::of(part))))
        }
    }

    /// Reorders the members written from `start` on, which are in table order, to their original
    /// order, and inserts the unknown elements.
    pub(crate) fn arrange(&self, out: &mut Writer<'_>, start: usize, group: &Group) {
        let Some(inner) = &self.0 else { return };
        if out.has_fault() {
            return;
        }
        let members = out.out.split_off(start);
        // The members of a slot are adjacent, and fill this range.
        let mut runs = [const { 0..0 }; 64];
        for tlv in Tlvs::new(&members).map_while(Result::ok) {
            if let Some((slot, _)) = group.find(tlv.ie) {
                let run = &mut runs[usize::from(slot)];
                if run.end == 0 {
                    run.start = tlv.offset;
                }
                run.end = tlv.value_offset() + tlv.value.len();
            }
        }
        let mut others = inner.others.iter();
        let mut residues = inner.residues.iter().peekable();
        for (position, &slot) in inner.order.iter().enumerate() {
            let residue = residues.next_if(|residue| residue.position == position);
            let start = out.out.len();
            if let Some(run) = runs.get_mut(usize::from(slot)) {
                if let Some(tlv) = Tlvs::new(&members[run.clone()]).find_map(Result::ok) {
                    let end = run.start + tlv.value_offset() + tlv.value.len();
                    out.out.extend_from_slice(&members[run.start..end]);
                    run.start = end;
                    if let Some(residue) = residue {
                        residue.apply(out, start);
                    }
                }
            } else if let Some(other) = others.next() {
                out.element(other.ie, |out| out.out.extend_from_slice(&other.raw));
            }
        }
        // Members and unknown elements that were added after decoding.
        for run in runs {
            out.out.extend_from_slice(&members[run]);
        }
        for other in others {
            out.element(other.ie, |out| out.out.extend_from_slice(&other.raw));
        }
    }
}

impl GroupRemainderInner {
    fn of(part: Part<'_>) -> Self {
        let mut inner = Self::default();
        let mut reencoded = Vec::new();
        for (position, part) in part.parts().enumerate() {
            inner.order.push(part.slot());
            if part.slot() == NO_SLOT {
                inner.others.push(UnknownElement {
                    ie: part.ie(),
                    raw: part.raw().into(),
                });
            } else if let Some(Descriptor::Leaf(leaf)) = part.descriptor() {
                reencoded.clear();
                (leaf.reencode)(part.raw(), &mut reencoded);
                inner
                    .residues
                    .extend(Residue::between(part.raw(), &reencoded, position));
            }
        }
        inner
    }
}

impl Residue {
    fn between(value: &[u8], reencoded: &[u8], position: usize) -> Option<Self> {
        if value == reencoded {
            return None;
        }
        let flip: Vec<u8> = value.iter().zip(reencoded).map(|(a, b)| a ^ b).collect();
        let used = flip
            .iter()
            .rposition(|&bits| bits != 0)
            .map_or(0, |last| last + 1);
        let tail = value.get(reencoded.len()..).unwrap_or_default();
        Some(Self {
            position,
            flip: flip[..used].into(),
            tail: tail.into(),
        })
    }

    fn apply(&self, out: &mut Writer<'_>, start: usize) {
        for (byte, bits) in out.out[start + 4..].iter_mut().zip(&self.flip) {
            *byte ^= bits;
        }
        if !self.tail.is_empty() {
            let ie = IeType(u16::from_be_bytes([out.out[start], out.out[start + 1]]));
            out.out.extend_from_slice(&self.tail);
            out.patch(ie, start);
        }
    }
}
