//! The differences between what two versions of a component may do.

use std::fmt;
use std::time::Duration;

use super::caps::{ManifestCaps, size};
use super::compare::{WiderPart, listed};
use super::{ComponentLimits, Manifest, RestartRule};
use crate::trust::TrustPolicy;

/// A difference between the access or limits of two versions of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessChange {
    /// The key of the manifest. Keys of directories contain their name, as in `grant.files.data`.
    pub key: String,
    /// The kind of the difference.
    pub kind: AccessChangeKind,
    /// `true` if the later version may do something that the earlier one may not.
    pub wider: bool,
    /// The value in the earlier version, if it has one.
    pub before: Option<String>,
    /// The value in the later version, if it has one.
    pub after: Option<String>,
}

/// The kind of a [`AccessChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessChangeKind {
    /// Only the later version has a value.
    Added,
    /// Only the earlier version has a value.
    Removed,
    /// The later version may do more.
    Widened,
    /// The later version may do less, or the same in a different form.
    Narrowed,
    /// Neither value includes the other.
    Replaced,
}

impl AccessChangeKind {
    /// Returns one word for the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Replaced => "replaced",
        }
    }
}

impl fmt::Display for AccessChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = "nothing";
        let before = self.before.as_deref().unwrap_or(none);
        let after = self.after.as_deref().unwrap_or(none);
        let (key, word) = (&self.key, self.kind.name());
        write!(f, "{key}: {before} -> {after} ({word}")?;
        match self.kind {
            // The word already says that it is wider.
            AccessChangeKind::Widened => f.write_str(")"),
            _ if self.wider => f.write_str(", wider)"),
            _ => f.write_str(")"),
        }
    }
}

impl Manifest {
    /// Returns the differences between what this version and a later one may do, on a host with
    /// these caps and signers.
    pub(crate) fn changes(
        &self,
        later: &Self,
        caps: &ManifestCaps,
        trust: &TrustPolicy,
    ) -> Vec<AccessChange> {
        let mut changes = AccessChanges(Vec::new());
        changes.signer(self, later, trust);
        changes.grants(self, later);
        for (before, after) in self
            .ranked_limits(caps)
            .into_iter()
            .zip(later.ranked_limits(caps))
        {
            if before.rank != after.rank {
                let wider = after.rank > before.rank;
                changes.add(before.key, Some(before.text), Some(after.text), wider);
            }
        }
        changes.0
    }

    /// Returns the effective limits on a host with these caps.
    fn ranked_limits(&self, caps: &ManifestCaps) -> Vec<RankedLimit> {
        // Exhaustive, so that a new limit does not compile until it is compared as well.
        let ComponentLimits {
            memory,
            table,
            payload,
            handles,
            deadline,
            init,
            fuel,
            mailbox,
            send_rate,
            log_rate,
            in_flight,
            streams,
            window,
            answer,
            weight: _,
            cpu: _,
        } = self.limits;
        let RestartRule {
            intensity, period, ..
        } = self.restart;
        let (weight, cpu) = (caps.weight_of(&self.limits), caps.cpu_of(&self.limits));
        let count = |key, value: u128| RankedLimit::new(key, value, value.to_string());
        let bytes = |key, value: usize| RankedLimit::new(key, value as u128, size(&value));
        let time =
            |key, value: Duration| RankedLimit::new(key, value.as_nanos(), format!("{value:?}"));
        vec![
            bytes("limits.memory", memory),
            count("limits.table", table as u128),
            bytes("limits.payload", payload),
            count("limits.handles", handles as u128),
            time("limits.deadline", deadline),
            time("limits.init", init),
            match fuel {
                0 => RankedLimit::new("limits.fuel", u128::MAX, "uncounted".to_owned()),
                fuel => count("limits.fuel", fuel.into()),
            },
            count("limits.mailbox", mailbox as u128),
            count("limits.send_rate", send_rate.into()),
            count("limits.log_rate", log_rate.into()),
            count("limits.in_flight", in_flight as u128),
            count("limits.streams", streams as u128),
            count("limits.window", window.into()),
            time("limits.answer", answer),
            count("limits.weight", weight.into()),
            RankedLimit::new(
                "limits.cpu",
                cpu.cpu_in(Duration::from_secs(1)).as_nanos(),
                cpu.to_string(),
            ),
            count("restart.intensity", intensity.into()),
            // The same number of faults in a shorter period is wider.
            RankedLimit::new(
                "restart.period",
                u128::MAX - period.as_nanos(),
                format!("{period:?}"),
            ),
        ]
    }
}

/// A limit; a higher rank allows more.
struct RankedLimit {
    key: &'static str,
    rank: u128,
    text: String,
}

impl RankedLimit {
    const fn new(key: &'static str, rank: u128, text: String) -> Self {
        Self { key, rank, text }
    }
}

struct AccessChanges(Vec<AccessChange>);

impl AccessChanges {
    fn add(
        &mut self,
        key: impl Into<String>,
        before: Option<String>,
        after: Option<String>,
        wider: bool,
    ) {
        let kind = match (&before, &after) {
            (None, _) => AccessChangeKind::Added,
            (_, None) => AccessChangeKind::Removed,
            _ if wider => AccessChangeKind::Widened,
            _ => AccessChangeKind::Narrowed,
        };
        self.0.push(AccessChange {
            key: key.into(),
            kind,
            wider,
            before,
            after,
        });
    }

    /// Another signer, or none after there was one, is wider unless the host trusts the new signer.
    fn signer(&mut self, before: &Manifest, after: &Manifest, trust: &TrustPolicy) {
        let (before, after) = (before.component.signer, after.component.signer);
        if before == after {
            return;
        }
        let trusted = after.is_some_and(|signer| trust.name(&signer).is_some());
        let [was, is] = [before, after].map(|signer| signer.map(|one| trust.label(&one)));
        self.add("component.signer", was, is, before.is_some() && !trusted);
        if let Some(change) = self.0.last_mut()
            && before.is_some()
            && after.is_some()
        {
            change.kind = AccessChangeKind::Replaced;
        }
    }

    fn grants(&mut self, before: &Manifest, after: &Manifest) {
        let (before, after) = (&before.grant, &after.grant);
        let (more, less) = (after.wider_parts(before), before.wider_parts(after));
        let has = |list: &[WiderPart], key: &str, name: Option<&str>| {
            let mut list = list.iter();
            list.any(|one| one.key == key && one.name.as_deref() == name)
        };
        let lists = before.patterns().into_iter().zip(after.patterns());
        for ((key, was), (_, is)) in lists {
            let wider = has(&more, key, None);
            // The same patterns in another order are no difference.
            if wider || has(&less, key, None) {
                let text = |list: &[_]| (!list.is_empty()).then(|| listed(list));
                self.add(key, text(was), text(is), wider);
            }
        }
        for ((key, was), (_, is)) in before.flags().into_iter().zip(after.flags()) {
            if was != is {
                let text = |granted: bool| granted.then(|| granted.to_string());
                self.add(key, text(was), text(is), is);
            }
        }
        if before.kv != after.kv {
            let [was, is] = [before.kv, after.kv].map(|kv| kv.map(|kv| kv.to_string()));
            self.add("grant.kv", was, is, has(&more, "grant.kv", None));
        }
        let mut names: Vec<&String> = before.files.keys().chain(after.files.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let (was, is) = (before.files.get(name), after.files.get(name));
            let wider = has(&more, "grant.files", Some(name));
            if wider || was != is {
                let [was, is] = [was, is].map(|files| files.map(ToString::to_string));
                self.add(format!("grant.files.{name}"), was, is, wider);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::SigningKey;

    fn manifest(more: &str) -> Manifest {
        let text = format!("[component]\nname = \"a\"\n{more}");
        Manifest::parse(&text).unwrap_or_else(|error| panic!("{error}: {more}"))
    }

    fn changes(before: &str, after: &str) -> Vec<String> {
        let (caps, trust) = (ManifestCaps::unlimited(), TrustPolicy::default());
        let changes = manifest(before).changes(&manifest(after), &caps, &trust);
        changes.iter().map(ToString::to_string).collect()
    }

    /// Returns the kind of the only difference, in both directions.
    fn kinds(less: &str, more: &str) -> [(AccessChangeKind, bool); 2] {
        [(less, more), (more, less)].map(|(before, after)| {
            let (caps, trust) = (ManifestCaps::unlimited(), TrustPolicy::default());
            let changes = manifest(before).changes(&manifest(after), &caps, &trust);
            assert_eq!(changes.len(), 1, "{before} -> {after}: {changes:?}");
            (changes[0].kind, changes[0].wider)
        })
    }

    #[test]
    fn every_limit_is_compared_in_both_directions() {
        use AccessChangeKind::{Narrowed, Widened};
        let limits = [
            ("memory", "\"1MiB\"", "\"2MiB\""),
            ("table", "1", "2"),
            ("payload", "\"1KiB\"", "\"2KiB\""),
            ("handles", "1", "2"),
            ("deadline", "\"1ms\"", "\"2ms\""),
            ("init", "\"1ms\"", "\"2ms\""),
            ("fuel", "1000", "0"),
            ("fuel", "1000", "1001"),
            ("mailbox", "1", "2"),
            ("send_rate", "1", "2"),
            ("log_rate", "1", "2"),
            ("in_flight", "1", "2"),
            ("streams", "1", "2"),
            ("window", "1", "2"),
            ("answer", "\"1s\"", "\"2s\""),
            ("weight", "1", "2"),
            ("cpu", "\"50%\"", "\"51%\""),
        ];
        let of = |table: &str, key: &str, value: &str| format!("[{table}]\n{key} = {value}");
        for (key, less, more) in limits {
            let kinds = kinds(&of("limits", key, less), &of("limits", key, more));
            assert_eq!(kinds, [(Widened, true), (Narrowed, false)], "{key}");
        }
        for (key, less, more) in [("intensity", "2", "3"), ("period", "\"2s\"", "\"1s\"")] {
            let kinds = kinds(&of("restart", key, less), &of("restart", key, more));
            assert_eq!(kinds, [(Widened, true), (Narrowed, false)], "{key}");
        }
    }

    #[test]
    fn every_grant_is_compared_in_both_directions() {
        use AccessChangeKind::{Added, Narrowed, Removed, Widened};
        for key in ["send", "request", "stream", "publish", "subscribe"] {
            let of = |value: &str| format!("[grant]\n{key} = [{value}]");
            assert_eq!(
                kinds("", &of("\"a\"")),
                [(Added, true), (Removed, false)],
                "{key}"
            );
            let kinds = kinds(&of("\"a.*\""), &of("\"*\""));
            assert_eq!(kinds, [(Widened, true), (Narrowed, false)], "{key}");
            assert!(changes(&of("\"a\", \"b\""), &of("\"b\", \"a\"")).is_empty());
        }
        for key in ["serve", "timer", "log", "clock", "random"] {
            let kinds = kinds("", &format!("[grant]\n{key} = true"));
            assert_eq!(kinds, [(Added, true), (Removed, false)], "{key}");
        }
        let files = |more: &str| format!("[grant.files.d]\n{more}");
        let [read, write] = ["path = \"/d\"", "path = \"/d\"\nwrite = true"].map(files);
        assert_eq!(kinds("", &read), [(Added, true), (Removed, false)]);
        assert_eq!(kinds(&read, &write), [(Widened, true), (Narrowed, false)]);
        let kinds = kinds("[grant.kv]", "[grant.kv]\nsize = \"2MiB\"");
        assert_eq!(kinds, [(Widened, true), (Narrowed, false)]);
    }

    #[test]
    fn incomparable_grant_is_wider() {
        let changed = changes(
            "[grant]\nsend = [\"a\", \"c\"]",
            "[grant]\nsend = [\"a\", \"b\"]",
        );
        assert_eq!(
            changed,
            ["grant.send: \"a\", \"c\" -> \"a\", \"b\" (widened)"]
        );
        let changed = changes(
            "[grant.files.d]\npath = \"/d\"",
            "[grant.files.d]\npath = \"/e\"",
        );
        assert_eq!(
            changed,
            ["grant.files.d: \"/d\", read -> \"/e\", read (widened)"]
        );
    }

    #[test]
    fn settings_without_access_are_no_change() {
        let other = "[config]\na = 1\n[run]\nbatch = 5\n[restart]\nkind = \"transient\"";
        assert!(changes("", other).is_empty());
        assert!(changes("[limits]\nweight = 100\ncpu = \"100%\"", "").is_empty());
    }

    #[test]
    fn signer_may_change_only_to_a_trusted_one() {
        let keys = [1, 2].map(|seed| SigningKey::from_seed([seed; 32]).signer());
        let by = |signer| {
            let mut manifest = manifest("");
            manifest.component.signer = signer;
            manifest
        };
        let mut trust = TrustPolicy::default();
        let change = |before, after, trust: &TrustPolicy| {
            let changes = by(before).changes(&by(after), &ManifestCaps::unlimited(), trust);
            let change = changes.first().map(|change| (change.kind, change.wider));
            change.expect("they differ")
        };
        let [one, two] = keys.map(Some);
        assert_eq!(change(None, one, &trust), (AccessChangeKind::Added, false));
        assert_eq!(change(one, None, &trust), (AccessChangeKind::Removed, true));
        assert_eq!(change(one, two, &trust), (AccessChangeKind::Replaced, true));
        trust.signers.insert("two".to_owned(), keys[1]);
        assert_eq!(
            change(one, two, &trust),
            (AccessChangeKind::Replaced, false)
        );
    }
}
