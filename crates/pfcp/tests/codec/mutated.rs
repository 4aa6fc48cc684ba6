//! Messages whose elements were omitted, duplicated, moved, renamed or taken from another message,
//! at every depth: a set of interfaces accepts what each of them accepts, none accepts what a
//! finding forbids there, and accepted messages can be decoded in full.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::{Config as ProptestConfig, TestCaseError};
use strowger_pfcp::ie::descriptor::{Descriptor, describe};
use strowger_pfcp::validate::{findings, tolerate};
use strowger_pfcp::{IeType, Index, Interfaces, MessageType, MessageView, Release, validate};

use crate::bytes::tlv;
use crate::values::{Choices, framed, message, noise};

/// An element, decomposed if it is a group.
#[derive(Clone, Debug)]
struct Element {
    ie: u16,
    value: Vec<u8>,
    inner: Option<Vec<Self>>,
}

fn apart(mut bytes: &[u8]) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        let ie = u16::from_be_bytes([head[0], head[1]]);
        let length = u16::from_be_bytes([head[2], head[3]]);
        let (value, rest) = rest.split_at_checked(usize::from(length))?;
        let is_group = matches!(describe(IeType(ie)), Some(Descriptor::Group(_)));
        elements.push(Element {
            ie,
            value: value.to_vec(),
            inner: is_group.then(|| apart(value)).flatten(),
        });
        bytes = rest;
    }
    Some(elements)
}

fn together(elements: &[Element]) -> Vec<u8> {
    let one = |element: &Element| match &element.inner {
        Some(inner) => tlv(element.ie, &together(inner)),
        None => tlv(element.ie, &element.value),
    };
    elements.iter().flat_map(one).collect()
}

/// Follows a path to the elements of a group.
fn group<'a>(elements: &'a mut Vec<Element>, way: &[u8]) -> &'a mut Vec<Element> {
    let Some((step, way)) = way.split_first() else {
        return elements;
    };
    let groups = (0..elements.len()).filter(|place| elements[*place].inner.is_some());
    let groups: Vec<usize> = groups.collect();
    if groups.is_empty() {
        return elements;
    }
    let place = groups[usize::from(*step) % groups.len()];
    group(elements[place].inner.as_mut().expect("it is a group"), way)
}

/// A change: its kind, the path through the groups, the index of the element, and the replacement.
type Change = (u8, Vec<u8>, u8, u16);

fn change(elements: &mut Vec<Element>, other: &[Element], (what, way, place, new): &Change) {
    let elements = group(elements, way);
    if elements.is_empty() {
        return;
    }
    let place = usize::from(*place) % elements.len();
    match what % 6 {
        0 | 1 => drop(elements.remove(place)),
        2 => elements.push(elements[place].clone()),
        3 => elements.rotate_left(place),
        // Usually the type of some member, with the value unchanged.
        4 => elements[place].ie = IeType::ALL[usize::from(*new) % IeType::ALL.len()].0,
        _ => {
            if let Some(stray) = other.get(usize::from(*new) % other.len().max(1)) {
                elements.insert(place, stray.clone());
            }
        }
    }
}

fn sets() -> impl Iterator<Item = Interfaces> {
    (0..32u8).map(|bits| {
        let ones = Interfaces::ALL.iter().enumerate();
        ones.filter(|(bit, _)| bits >> bit & 1 == 1)
            .fold(Interfaces::NONE, |set, (_, one)| set.with(one))
    })
}

/// Counts the interfaces that accept a message.
fn is_judged_alike(bytes: &[u8]) -> Result<u32, TestCaseError> {
    let mut index = Index::new();
    let Ok(view) = MessageView::decode(bytes, &mut index) else {
        return Ok(0);
    };
    let owned = view.to_message();
    let mut count = 0;
    for release in [Release::R17, Release::R19] {
        let accepts =
            |on: Interfaces| validate(&view, on.in_release(release)).unwrap_or(Interfaces::NONE);
        let ones = Interfaces::ALL.iter().map(accepts);
        let ones = ones.fold(Interfaces::NONE, Interfaces::with);
        count += u32::try_from(ones.iter().count()).expect("at most five");
        for set in sets() {
            prop_assert_eq!(accepts(set), ones.and(set), "{} {}", release, view);
        }
        for one in Interfaces::ALL.iter() {
            let found = findings(&view, one.in_release(release));
            let is_forbidden = found.iter().any(|finding| finding.kind.cause().is_some());
            prop_assert_eq!(ones.contains(one), !is_forbidden, "{} {}", one, view);
            // A message is accepted if it is tolerated without a deviation.
            let strict = tolerate(&view, one.in_release(release))
                .is_ok_and(|tolerated| tolerated.deviations.is_empty());
            prop_assert_eq!(strict, ones.contains(one), "{} {}", one, view);
        }
        // A receiver of an earlier release ignores unknown elements, however broken.
        prop_assert!(
            ones.is_empty() || owned.is_ok() || release != Release::R19,
            "{:?} on {} of {}: {}",
            owned,
            ones,
            release,
            view
        );
    }
    Ok(count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn single_and_cached_checks_agree_on_mutated_messages(
        bytes in vec(any::<u8>(), 0..768),
        changes in vec((any::<u8>(), vec(any::<u8>(), 0..4), any::<u8>(), any::<u16>()), 0..4),
    ) {
        let bodies = MessageType::ALL.iter().filter_map(|kind| {
            let bytes = message(*kind, &mut Choices::new(&bytes));
            let start = if kind.is_session() { 16 } else { 8 };
            Some((*kind, apart(&bytes[start..])?))
        });
        let bodies: Vec<_> = bodies.collect();
        for (place, (kind, body)) in bodies.iter().enumerate() {
            let (_, other) = &bodies[(place + 7) % bodies.len()];
            let mut body = body.clone();
            for one in &changes {
                change(&mut body, other, one);
            }
            is_judged_alike(&framed(*kind, &together(&body)))?;
        }
    }
}

/// Omits each element at every depth, one at a time.
fn without_each(elements: &[Element], mut judge: impl FnMut(&[Element])) {
    fn ways(elements: &[Element], way: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        for (place, element) in elements.iter().enumerate() {
            way.push(place);
            all.push(way.clone());
            ways(element.inner.as_deref().unwrap_or_default(), way, all);
            way.pop();
        }
    }
    let mut all = Vec::new();
    ways(elements, &mut Vec::new(), &mut all);
    for way in all {
        let mut less = elements.to_vec();
        let (last, before) = way.split_last().expect("no way is empty");
        let mut within = &mut less;
        for step in before {
            within = within[*step].inner.as_mut().expect("a way through groups");
        }
        within.remove(*last);
        judge(&less);
    }
}

#[test]
fn checks_agree_when_any_one_element_is_removed() {
    let (mut accepted, mut judged) = (0, 0);
    for kind in MessageType::ALL {
        let bytes = message(*kind, &mut Choices::new(&noise(u64::from(kind.0), 512)));
        let start = if kind.is_session() { 16 } else { 8 };
        let body = apart(&bytes[start..]).expect("well-formed");
        without_each(&body, |less| {
            judged += 1;
            let on = is_judged_alike(&framed(*kind, &together(less)));
            accepted += on.unwrap_or_else(|error| panic!("{kind}: {error}"));
        });
    }
    assert!(
        judged > 100 && accepted > 0,
        "{judged} judged, {accepted} accepted"
    );
}
