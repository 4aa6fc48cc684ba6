//! Merging of an update into a rule, TS 29.244 §7.5.4.
//!
//! Data: the encoded members of the rule, which are those of its Create element, and the members of
//! the Update element. The result is a Create element again, so a rule has one form, however it
//! came about, and readers of a rule set need not know updates.
//!
//! An update has three kinds of members:
//!
//! - most replace all members of their type, lists included, and an empty one removes them;
//! - groups such as Update Forwarding Parameters are merged in turn, and remain where the update
//!   says nothing about them (§7.5.4.3);
//! - predefined rules and MBS unicast parameters are added and removed one by one (§7.5.4.2,
//!   §7.5.4.3).
//!
//! Invariants:
//!
//! - The identifier is that of the rule.
//! - Types keep the order of the rule, and new ones follow in the order of the update. So equal
//!   rules that were updated alike have equal bytes.
//! - Members of a type that the update does not name are copied byte for byte, whatever is in them.
//! - Elements that act once, such as the flag to send end markers, are not in the result.
//!
//! Cost: each member of both is visited twice and copied once, and is found through sorted maps, so
//! that thousands of members stay cheap. Nothing is changed in place: if the merge fails, the rule
//! is as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use super::draft::{put, raw};
use super::kind::RuleKind;
use super::refusal::Refusal;
use crate::ie::IeType;
use crate::wire::{Tlv, Tlvs};

/// Merges the value of an update into that of a rule.
///
/// An element of the update replaces all elements of its type, at the position of the first; an
/// empty element removes them. Two kinds of elements differ: groups that are updated member by
/// member, and elements that are added and removed individually.
pub(super) fn merged(kind: RuleKind, rule: &[u8], update: &[u8]) -> Result<Vec<u8>, Refusal> {
    // An update usually changes a rule by a few short members.
    let mut out = Vec::with_capacity(rule.len() + 64);
    // A map for each side, because a type may occur many times and must be found from the other
    // side.
    let mut olds = by_type(rule, |ie| ie)?;
    let mut news = by_type(update, written_as)?;
    // The identifier selects the rule, and is not changed by the update.
    news.remove(&(kind.id(), None));
    // First the types that the rule has, in its order, and then those that the update adds.
    for tlv in Tlvs::new(rule).map_while(Result::ok) {
        // All members of a type are written where the first one was; the others find nothing.
        let key = (tlv.ie, tlv.enterprise);
        if let Some(old) = olds.remove(&key) {
            let new = news.remove(&key).unwrap_or_default();
            write(&mut out, tlv.ie, rule, &old, &new)?;
        }
    }
    for tlv in Tlvs::new(update).map_while(Result::ok) {
        let ie = written_as(tlv.ie);
        if let Some(new) = news.remove(&(ie, tlv.enterprise)) {
            write(&mut out, ie, rule, &[], &new)?;
        }
    }
    Ok(out)
}

/// Elements by type. Vendors use the same numbers, so their types include the Enterprise ID
/// (§8.1.1).
type ByType<'a> = BTreeMap<(IeType, Option<u16>), Vec<Tlv<'a>>>;

fn by_type(bytes: &[u8], as_type: impl Fn(IeType) -> IeType) -> Result<ByType<'_>, Refusal> {
    let mut found = ByType::new();
    for tlv in Tlvs::new(bytes) {
        // The only pass that reports errors. Later ones see the same bytes, and may ignore the
        // rest.
        let tlv = tlv.map_err(|error| Refusal::of(&error, &[]))?;
        let key = (as_type(tlv.ie), tlv.enterprise);
        found.entry(key).or_default().push(tlv);
    }
    Ok(found)
}

/// Returns the element of a rule that an element of an update changes.
const fn written_as(ie: IeType) -> IeType {
    match ie {
        IeType::UPDATE_FORWARDING_PARAMETERS => IeType::FORWARDING_PARAMETERS,
        IeType::UPDATE_DUPLICATING_PARAMETERS => IeType::DUPLICATING_PARAMETERS,
        IeType::UPDATE_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION => {
            IeType::TGPP_ACCESS_FORWARDING_ACTION_INFORMATION
        }
        IeType::UPDATE_NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION => {
            IeType::NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION
        }
        IeType::DEACTIVATE_PREDEFINED_RULES => IeType::ACTIVATE_PREDEFINED_RULES,
        IeType::REMOVE_MBS_UNICAST_PARAMETERS => IeType::ADD_MBS_UNICAST_PARAMETERS,
        other => other,
    }
}

/// Writes all elements of a type that the rule has after the update.
fn write(
    out: &mut Vec<u8>,
    ie: IeType,
    rule: &[u8],
    old: &[Tlv<'_>],
    new: &[Tlv<'_>],
) -> Result<(), Refusal> {
    match ie {
        IeType::FORWARDING_PARAMETERS
        | IeType::DUPLICATING_PARAMETERS
        | IeType::TGPP_ACCESS_FORWARDING_ACTION_INFORMATION
        | IeType::NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION => {
            // Duplicating Parameters may occur several times and have no identifier, so they are
            // matched by position (Table 7.5.4.3-3).
            for at in 0..old.len().max(new.len()) {
                let before = old.get(at).map_or(&[][..], |tlv| tlv.value);
                let update = new.get(at).map_or(&[][..], |tlv| tlv.value);
                put(out, ie, &members(before, update)?)?;
            }
            Ok(())
        }
        IeType::ACTIVATE_PREDEFINED_RULES => {
            let (on, off) = split(new, IeType::ACTIVATE_PREDEFINED_RULES);
            // Deactivation applies to the rule as it was: a name that is both deactivated and
            // activated is active afterwards, once.
            let (mut gone, mut written) = (BTreeSet::new(), BTreeSet::new());
            gone.extend(off.map(|tlv| tlv.value));
            old.iter()
                .filter(|tlv| !gone.contains(tlv.value))
                .chain(on)
                .filter(|tlv| written.insert(tlv.value))
                .try_for_each(|tlv| put(out, ie, tlv.value))
        }
        IeType::ADD_MBS_UNICAST_PARAMETERS => {
            let (on, _) = split(new, IeType::ADD_MBS_UNICAST_PARAMETERS);
            // A group with the same identifier replaces the former one, and removal names it too,
            // so both take the old group away (§8.2.210).
            let mut named = BTreeSet::new();
            named.extend(new.iter().map(mbs_id));
            old.iter()
                .filter(|tlv| !named.contains(mbs_id(tlv)))
                .chain(on)
                .try_for_each(|tlv| put(out, ie, tlv.value))
        }
        _ if new.is_empty() => {
            for tlv in old {
                out.extend_from_slice(raw(rule, tlv));
            }
            Ok(())
        }
        _ => replace(out, new),
    }
}

/// Splits the elements of an update into those that add and those that remove.
fn split<'a, 'b>(
    new: &'a [Tlv<'b>],
    adds: IeType,
) -> (
    impl Iterator<Item = &'a Tlv<'b>>,
    impl Iterator<Item = &'a Tlv<'b>>,
) {
    (
        new.iter().filter(move |tlv| tlv.ie == adds),
        new.iter().filter(move |tlv| tlv.ie != adds),
    )
}

/// Returns the MBS Unicast Parameters ID of a group of parameters, or an empty slice.
fn mbs_id<'a>(tlv: &Tlv<'a>) -> &'a [u8] {
    Tlvs::new(tlv.value)
        .map_while(Result::ok)
        .find(|one| one.ie == IeType::MBS_UNICAST_PARAMETERS_ID)
        .map_or(&[], |one| one.value)
}

/// Merges the members of a group. Each member of the update replaces all members of its type.
fn members(old: &[u8], update: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut news = by_type(update, |ie| ie)?;
    // These flags request a one-time action, sending end markers, and are not stored.
    news.remove(&(IeType::PFCPSMREQ_FLAGS, None));
    let mut out = Vec::with_capacity(old.len() + 32);
    for tlv in Tlvs::new(old).map_while(Result::ok) {
        match news.get_mut(&(tlv.ie, tlv.enterprise)) {
            // The empty vector that is left makes further old members of the type disappear, and
            // keeps the second loop from writing the new ones again.
            Some(new) => replace(&mut out, &mem::take(new))?,
            None => out.extend_from_slice(raw(old, &tlv)),
        }
    }
    for tlv in Tlvs::new(update).map_while(Result::ok) {
        if let Some(new) = news.get_mut(&(tlv.ie, tlv.enterprise)) {
            replace(&mut out, &mem::take(new))?;
        }
    }
    Ok(out)
}

/// Writes the elements of an update. Empty elements are removals, and are not written.
fn replace(out: &mut Vec<u8>, new: &[Tlv<'_>]) -> Result<(), Refusal> {
    new.iter()
        .filter(|tlv| !tlv.value.is_empty())
        .try_for_each(|tlv| match tlv.enterprise {
            None => put(out, tlv.ie, tlv.value),
            Some(number) => {
                // The Enterprise ID is not part of `value`, but of the length (§8.1.1).
                let value = [&number.to_be_bytes()[..], tlv.value].concat();
                put(out, tlv.ie, &value)
            }
        })
}
