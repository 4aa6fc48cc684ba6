use super::descriptor::{Descriptor, Group, NO_SLOT};
use crate::ie::IeType;
use crate::wire::{Part, Tlvs, Writer};

/// What a group has beside its members: their order, elements that it does not know, spare bits.
///
/// Empty when the members stand in the order of the table and say everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest(Option<Box<Inner>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Inner {
    /// The slot of each element, `NO_SLOT` for the next of `others`.
    order: Vec<u8>,
    others: Vec<Other>,
    residues: Vec<Residue>,
}

/// An element that the group does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Other {
    ie: IeType,
    /// Everything after the length.
    raw: Box<[u8]>,
}

/// What the fields of an element do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Residue {
    /// The place of the element in `order`.
    position: usize,
    /// Bits to flip from the start of the value on.
    flip: Box<[u8]>,
    /// Octets after the fields.
    tail: Box<[u8]>,
}

impl Rest {
    /// Says that there is nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Walks the unknown elements: type and everything after the length, which in a vendor's
    /// element begins with the enterprise number.
    pub fn unknown(&self) -> impl Iterator<Item = (IeType, &[u8])> {
        self.0
            .iter()
            .flat_map(|inner| inner.others.iter().map(|other| (other.ie, &*other.raw)))
    }

    /// Adds an element that the group does not know, after all others.
    pub fn push(&mut self, ie: IeType, raw: impl Into<Box<[u8]>>) {
        let inner = self.0.get_or_insert_default();
        inner.others.push(Other {
            ie,
            raw: raw.into(),
        });
    }

    /// Forgets order, unknown elements and spare bits.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Collects what the rows do not say about a group.
    #[inline]
    pub(crate) fn of(part: Part<'_>) -> Self {
        if part.is_plain() {
            Self(None)
        } else {
            Self(Some(Box::new(Inner::of(part))))
        }
    }

    /// Puts the members that were written from `start` on, in the order of the table, into the
    /// order in which they stood, together with what the group does not know.
    pub(crate) fn arrange(&self, out: &mut Writer<'_>, start: usize, group: &Group) {
        let Some(inner) = &self.0 else { return };
        if out.has_fault() {
            return;
        }
        let members = out.out.split_off(start);
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
        for run in runs {
            out.out.extend_from_slice(&members[run]);
        }
        for other in others {
            out.element(other.ie, |out| out.out.extend_from_slice(&other.raw));
        }
    }
}

impl Inner {
    fn of(part: Part<'_>) -> Self {
        let mut inner = Self::default();
        let mut again = Vec::new();
        for (position, part) in part.parts().enumerate() {
            inner.order.push(part.slot());
            if part.slot() == NO_SLOT {
                inner.others.push(Other {
                    ie: part.ie(),
                    raw: part.raw().into(),
                });
            } else if let Some(Descriptor::Leaf(leaf)) = part.descriptor() {
                again.clear();
                (leaf.again)(part.raw(), &mut again);
                inner
                    .residues
                    .extend(Residue::between(part.raw(), &again, position));
            }
        }
        inner
    }
}

impl Residue {
    fn between(value: &[u8], again: &[u8], position: usize) -> Option<Self> {
        if value == again {
            return None;
        }
        let flip: Vec<u8> = value.iter().zip(again).map(|(a, b)| a ^ b).collect();
        let used = flip
            .iter()
            .rposition(|&bits| bits != 0)
            .map_or(0, |last| last + 1);
        let tail = value.get(again.len()..).unwrap_or_default();
        Some(Self {
            position,
            flip: flip[..used].into(),
            tail: tail.into(),
        })
    }

    fn apply(&self, out: &mut Writer<'_>, start: usize) {
        for (octet, bits) in out.out[start + 4..].iter_mut().zip(&self.flip) {
            *octet ^= bits;
        }
        if !self.tail.is_empty() {
            let ie = IeType(u16::from_be_bytes([out.out[start], out.out[start + 1]]));
            out.out.extend_from_slice(&self.tail);
            out.patch(ie, start);
        }
    }
}
