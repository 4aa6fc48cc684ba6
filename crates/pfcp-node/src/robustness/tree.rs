//! IEs as a tree that can be changed in one place and encoded again.

use strowger_pfcp::IeType;
use strowger_pfcp::ie::descriptor::{Descriptor, Group, Member, Presence};

/// An IE and its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestElement {
    pub(super) ie: IeType,
    pub(super) contents: ElementContents,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ElementContents {
    Bytes(Vec<u8>),
    Elements(Vec<TestElement>),
}

impl TestElement {
    pub(super) fn leaf(ie: IeType, bytes: impl Into<Vec<u8>>) -> Self {
        let contents = ElementContents::Bytes(bytes.into());
        Self { ie, contents }
    }

    pub(super) fn group(ie: IeType, elements: impl Into<Vec<Self>>) -> Self {
        let contents = ElementContents::Elements(elements.into());
        Self { ie, contents }
    }

    /// Returns the IEs of a group.
    pub(super) fn elements(&self) -> &[Self] {
        match &self.contents {
            ElementContents::Bytes(_) => &[],
            ElementContents::Elements(elements) => elements,
        }
    }

    /// Returns the encoded value.
    pub(super) fn value(&self) -> Vec<u8> {
        match &self.contents {
            ElementContents::Bytes(bytes) => bytes.clone(),
            ElementContents::Elements(elements) => written(elements),
        }
    }

    /// Returns the smallest IE for a row: zeros of the minimum length or, for a group, its
    /// mandatory IEs.
    pub(super) fn least(member: &Member) -> Self {
        match member.descriptor {
            Descriptor::Leaf(leaf) => Self::leaf(member.ie, vec![0; leaf.min]),
            Descriptor::Group(group) => Self::group(member.ie, least(group)),
        }
    }
}

/// Returns the mandatory IEs of a group.
fn least(group: &Group) -> Vec<TestElement> {
    let wanted = group.members.iter();
    let wanted = wanted.filter(|member| member.presence == Presence::Mandatory);
    wanted.map(TestElement::least).collect()
}

/// Encodes the IEs as the body of a message.
pub(super) fn written(elements: &[TestElement]) -> Vec<u8> {
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
