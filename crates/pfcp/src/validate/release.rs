//! Detection and removal of content that an older release of the specification does not define.

use crate::error::{Error, ErrorKind, IePath, PathStep};
use crate::ie::{Descriptor, Field, FieldKind, FieldPresence, Interfaces, Leaf, Release, Value};
use crate::message::{Message, MessageView};
use crate::wire::{Frame, Header, Index, Part};

use super::{Finding, FindingKind, rule};

/// Returns everything in a message that a release does not define: elements, members of groups,
/// flags and values, each as a [`FindingKind::Newer`].
///
/// A receiver of that release ignores them, TS 29.244 §7.6, so they are no reason to refuse the
/// message.
///
/// ```
/// use strowger_pfcp::ie::UpFunctionFeatures;
/// use strowger_pfcp::message::AssociationSetupRequest;
/// use strowger_pfcp::{Index, Message, MessageView, Release, Sequence, validate};
///
/// let node: std::net::IpAddr = [127, 0, 0, 1].into();
/// let body = AssociationSetupRequest::new(node, 1)
///     .up_function_features(UpFunctionFeatures::FTUP | UpFunctionFeatures::DETNET);
/// let bytes = Message::node(Sequence::new(1), body).encode()?;
/// let mut index = Index::new();
/// let view = MessageView::decode(&bytes, &mut index)?;
/// let newer = validate::newer(&view, Release::R17);
/// assert_eq!(
///     newer[0].to_string(),
///     "Association Setup Request: UP Function Features has DETNET, which R17 does not have"
/// );
/// assert!(validate::newer(&view, Release::R19).is_empty());
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[must_use]
pub fn newer(view: &MessageView<'_>, release: Release) -> Vec<Finding> {
    let mut found = Vec::new();
    group(view, view.root(), release, &mut Vec::new(), &mut found);
    found
}

/// Returns `true` if an element, or its membership in the group, was introduced after a release.
pub(super) fn is_newer(part: Part<'_>, release: Release) -> bool {
    // The element may be older than its membership: releases add known elements to further groups.
    let row = part.member();
    part.ie().since() > release
        || row.is_some_and(|row| row.interfaces_in_release(release).is_empty())
}

fn group(
    view: &MessageView<'_>,
    parent: Part<'_>,
    release: Release,
    steps: &mut Vec<PathStep>,
    found: &mut Vec<Finding>,
) {
    let mut places = [0usize; 64];
    for part in parent.parts() {
        let place = places.get_mut(usize::from(part.slot())).map_or(0, |next| {
            *next += 1;
            *next - 1
        });
        let mut note = |what| {
            found.push(Finding {
                kind: FindingKind::Newer { what, release },
                ie: part.ie(),
                path: IePath::new(view.message_type(), steps.iter().rev().copied().collect()),
                on: Interfaces::ALL,
                failed_rule: rule::named_by(parent),
            });
        };
        if is_newer(part, release) {
            // Once for the whole element, not again for everything in it.
            note(None);
            continue;
        }
        match part.descriptor() {
            Some(Descriptor::Leaf(leaf)) => {
                for what in newer_fields(leaf, part.raw(), release) {
                    note(Some(what));
                }
            }
            Some(Descriptor::Group(_)) => {
                let many = part.member().is_some_and(|member| member.many);
                steps.push(PathStep {
                    ie: part.ie(),
                    index: many.then_some(place),
                });
                group(view, part, release, steps, found);
                steps.pop();
            }
            None => {}
        }
    }
}

/// Returns the bits of a head that a release does not define, as shift, width and name.
fn newer_bits(leaf: &Leaf, release: Release) -> impl Iterator<Item = (u8, u32, &'static str)> {
    let newer = leaf
        .fields
        .iter()
        .filter(move |field| field.since > release);
    newer.flat_map(|field: &Field| {
        // A field that a flag announces is found by its flag, which is in the head even if the
        // field is not.
        let flag = match field.when {
            FieldPresence::Flag { name, shift } => Some((shift, 1, name)),
            _ => None,
        };
        let bits = match field.kind {
            FieldKind::Bits { shift, width, .. } => Some((shift, width, field.name)),
            _ => None,
        };
        flag.into_iter().chain(bits)
    })
}

fn head_of(leaf: &Leaf, value: &[u8]) -> u128 {
    let mut head = [0; 16];
    // Flags in bytes that an older peer does not send are zero.
    let there = leaf.head.min(value.len());
    head[..there].copy_from_slice(&value[..there]);
    u128::from_le_bytes(head)
}

/// Returns the names of the flags that are set, and of the fields that have a value, although a
/// release does not define the flag or the value.
pub(super) fn newer_fields(
    leaf: &'static Leaf,
    value: &[u8],
    release: Release,
) -> Vec<&'static str> {
    let head = head_of(leaf, value);
    // Zero is how an older peer would send the bits: as spare.
    let set = |(shift, width, _): &(u8, u32, &str)| head >> shift & ((1 << width) - 1) != 0;
    let bits = newer_bits(leaf, release).filter(set);
    let mut found: Vec<&'static str> = bits.map(|(.., name)| name).collect();
    for (name, _, read) in leaf.read(value) {
        let field = leaf.fields.iter().find(|field| field.name == name);
        if let (Some(since), Value::Number(number)) = (field.and_then(|field| field.values), read)
            && since(number) > release
        {
            found.push(name);
        }
    }
    found
}

/// Encodes a message for a release: without newer elements, members and flags, and without the
/// fields that such flags announce.
///
/// A newer value of a field that must be present stays; [`newer`] finds it.
///
/// # Errors
/// Never fails for a view of at most 65 535 bytes with valid lengths. Otherwise returns the errors
/// of encoding.
pub(crate) fn reduce(view: &MessageView<'_>, release: Release) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let header: Header = *view.header();
    // The length follows when the body is complete.
    header.encode(0, &mut out)?;
    members(view.root(), release, &mut out);
    header.patch(0, &mut out)?;
    Ok(out)
}

fn members(parent: Part<'_>, release: Release, out: &mut Vec<u8>) {
    for part in parent.parts().filter(|part| !is_newer(*part, release)) {
        out.extend_from_slice(&part.ie().0.to_be_bytes());
        let length = out.len();
        out.extend_from_slice(&[0; 2]);
        match part.descriptor() {
            Some(Descriptor::Group(_)) => members(part, release, out),
            Some(Descriptor::Leaf(leaf)) => value(leaf, part.raw(), release, out),
            None => out.extend_from_slice(part.raw()),
        }
        // The reduced value is not longer than the original.
        let bytes = u16::try_from(out.len() - length - 2).unwrap_or(u16::MAX);
        out[length..length + 2].copy_from_slice(&bytes.to_be_bytes());
    }
}

/// Appends the value of a leaf without newer flags and the fields that they announce.
fn value(leaf: &Leaf, raw: &[u8], release: Release, out: &mut Vec<u8>) {
    let masks = newer_bits(leaf, release).map(|(shift, width, _)| ((1 << width) - 1) << shift);
    let unknown: u128 = masks.fold(0, std::ops::BitOr::bitor);
    let head = head_of(leaf, raw);
    // Copied byte for byte, so that spare bits and trailing bytes of others survive.
    if head & unknown == 0 {
        out.extend_from_slice(raw);
        return;
    }
    let mut old = raw.to_vec();
    let there = leaf.head.min(old.len());
    old[..there].copy_from_slice(&(head & !unknown).to_le_bytes()[..there]);
    // Without its flag a field is not read, so encoding the value again leaves it out.
    (leaf.reencode)(&old, out);
}

/// Refuses a message with content that a release does not define.
///
/// # Errors
/// Returns [`ErrorKind::Newer`] with the path of the first such element.
pub(crate) fn refuse_newer(view: &MessageView<'_>, release: Release) -> Result<(), Error> {
    let Some(first) = newer(view, release).into_iter().next() else {
        return Ok(());
    };
    let field = match first.kind {
        FindingKind::Newer { what, .. } => what.unwrap_or("element"),
        _ => "element",
    };
    let kind = ErrorKind::Newer { field, release };
    let steps = first.path.steps().collect::<Vec<_>>();
    let error = Error::new(0, kind).within(first.ie, None);
    let outwards = steps.into_iter().rev();
    let error = outwards.fold(error, |error, step| error.within(step.ie, step.index));
    Err(error.in_message(view.message_type()))
}

/// Returns the encoding of a message for a release, or `None` if it has no newer content or cannot
/// be decoded.
pub(crate) fn encode_for_older(frame: &Frame<'_>, release: Release) -> Option<Vec<u8>> {
    if release == Release::R19 {
        return None;
    }
    let mut index = Index::new();
    let view = MessageView::of(frame, &mut index).ok()?;
    let reduced = reduce(&view, release).ok()?;
    // The caller keeps the original bytes if nothing was removed.
    (reduced != frame.bytes).then_some(reduced)
}

impl Message {
    /// Encodes the message, provided that it has no content that the release does not define.
    ///
    /// # Errors
    /// Returns the errors of [`encode`](Self::encode), and [`ErrorKind::Newer`] with the path of
    /// the first element that is newer or has newer content.
    ///
    /// ```
    /// use strowger_pfcp::ie::Cause;
    /// use strowger_pfcp::message::AssociationUpdateResponse;
    /// use strowger_pfcp::{Message, Release, Sequence};
    ///
    /// let node: std::net::IpAddr = [127, 0, 0, 1].into();
    /// let body = AssociationUpdateResponse::new(node, Cause::PFD_APPLICATION_ID_UNKNOWN);
    /// let message = Message::node(Sequence::new(1), body);
    /// let error = message.encode_in(Release::R17).expect_err("a cause of release 18");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "Association Update Response / Cause: cause is newer than R17"
    /// );
    /// ```
    pub fn encode_in(&self, release: Release) -> Result<Vec<u8>, Error> {
        let bytes = self.encode()?;
        let mut index = Index::new();
        refuse_newer(&MessageView::decode(&bytes, &mut index)?, release)?;
        Ok(bytes)
    }

    /// Removes content that a release does not define: elements, members of groups, flags, and the
    /// fields that such flags announce.
    ///
    /// # Errors
    /// Returns the errors of [`encode`](Self::encode), and an error if a mandatory element is
    /// removed, because the message cannot be expressed in that release.
    pub fn reduced_to(&self, release: Release) -> Result<Self, Error> {
        let bytes = self.encode()?;
        let mut index = Index::new();
        Self::decode(&reduce(&MessageView::decode(&bytes, &mut index)?, release)?)
    }
}
