//! Elements as a tree that can be changed in one place and written again.

use strowger_pfcp::IeType;
use strowger_pfcp::ie::descriptor::{Descriptor, Group, Member, Presence};

/// An element with what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) ie: IeType,
    pub(super) inside: Inside,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    Octets(Vec<u8>),
    Elements(Vec<Element>),
}

impl Element {
    pub(super) fn leaf(ie: IeType, octets: impl Into<Vec<u8>>) -> Self {
        let inside = Inside::Octets(octets.into());
        Self { ie, inside }
    }

    pub(super) fn group(ie: IeType, elements: impl Into<Vec<Self>>) -> Self {
        let inside = Inside::Elements(elements.into());
        Self { ie, inside }
    }

    /// The elements of a group.
    pub(super) fn elements(&self) -> &[Self] {
        match &self.inside {
            Inside::Octets(_) => &[],
            Inside::Elements(elements) => elements,
        }
    }

    /// The octets of the value.
    pub(super) fn value(&self) -> Vec<u8> {
        match &self.inside {
            Inside::Octets(octets) => octets.clone(),
            Inside::Elements(elements) => written(elements),
        }
    }

    /// An element of a row: as few octets as it may have, all zero; of a group, what it must have.
    pub(super) fn least(member: &Member) -> Self {
        match member.what {
            Descriptor::Leaf(leaf) => Self::leaf(member.ie, vec![0; leaf.min]),
            Descriptor::Group(group) => Self::group(member.ie, least(group)),
        }
    }
}

/// What a group must have.
fn least(group: &Group) -> Vec<Element> {
    let wanted = group.members.iter();
    let wanted = wanted.filter(|member| member.presence == Presence::Mandatory);
    wanted.map(Element::least).collect()
}

/// The octets of elements.
pub(super) fn written(elements: &[Element]) -> Vec<u8> {
    let mut out = Vec::new();
    for element in elements {
        let value = element.value();
        out.extend_from_slice(&element.ie.0.to_be_bytes());
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&value);
    }
    out
}
