use std::cmp::Ordering;

use super::item::{Item, ItemClass};

/// A pair of elements to compare, or an element that the other message lacks.
pub(super) type Pair<'a, 'b> = (Option<&'b Item<'a>>, Option<&'b Item<'a>>);

/// Pairs the elements of two groups, both sorted by [`Item`] order, and returns the pairs that are
/// not equal: in the order of the left message, followed by the elements that only the right
/// message has.
pub(super) fn unequal_pairs<'a, 'b>(
    left: &'b [Item<'a>],
    right: &'b [Item<'a>],
) -> Vec<Pair<'a, 'b>> {
    let mut pairs = Vec::new();
    // Both groups are sorted by key, so one pass finds the elements of the same class and name.
    let (mut left, mut right) = (left, right);
    loop {
        let next = match (left.first(), right.first()) {
            (None, None) => break,
            (Some(left), Some(right)) if key(left) > key(right) => right,
            (Some(one), _) | (None, Some(one)) => one,
        };
        let next = key(next);
        let lefts = split(&mut left, next);
        let rights = split(&mut right, next);
        pair_similar(lefts, rights, &mut pairs);
    }
    pairs.sort_by_key(|pair| match pair {
        (Some(left), _) => (0, left.part.offset()),
        (None, right) => (1, right.map_or(0, |right| right.part.offset())),
    });
    pairs
}

fn key<'b>(item: &'b Item<'_>) -> (ItemClass, &'b [u8]) {
    (item.class, &item.identifier)
}

/// Takes the items of one class and name from the front.
fn split<'a, 'b>(items: &mut &'b [Item<'a>], kind: (ItemClass, &[u8])) -> &'b [Item<'a>] {
    let count = items.iter().take_while(|item| key(item) == kind).count();
    let (front, rest) = items.split_at(count);
    *items = rest;
    front
}

/// Pairs elements of one class and name: first those with equal content, then the others by
/// position.
fn pair_similar<'a, 'b>(
    left: &'b [Item<'a>],
    right: &'b [Item<'a>],
    pairs: &mut Vec<Pair<'a, 'b>>,
) {
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    if left
        .first()
        .or_else(|| right.first())
        .is_some_and(|item| item.class.positional)
    {
        lefts.extend(left);
        rights.extend(right);
    } else {
        // Both sides are sorted by content, so a merge drops the equal pairs.
        let (mut left, mut right) = (left, right);
        loop {
            let order = match (left.first(), right.first()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.canonical.cmp(&right.canonical),
            };
            if order.is_le()
                && let Some((first, rest)) = left.split_first()
            {
                left = rest;
                lefts.extend(order.is_ne().then_some(first));
            }
            if order.is_ge()
                && let Some((first, rest)) = right.split_first()
            {
                right = rest;
                rights.extend(order.is_ne().then_some(first));
            }
        }
    }
    for side in [&mut lefts, &mut rights] {
        side.sort_by_key(|item| item.type_index);
    }
    let most = lefts.len().max(rights.len());
    let side = |side: &[&'b Item<'a>], place| side.get(place).copied();
    pairs.extend(
        (0..most)
            .map(|place| (side(&lefts, place), side(&rights, place)))
            .filter(|pair| !matches!(pair, (Some(l), Some(r)) if l.canonical == r.canonical)),
    );
}
