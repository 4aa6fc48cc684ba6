//! The comparison of grants by what they allow, not by how they are written.

use std::collections::BTreeMap;

use super::caps::size;
use super::grant::{FilesGrant, Grant, KvGrant, NamePattern};
use super::path::{is_below, resolve};

/// A part of a grant that allows more than another grant does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WiderPart {
    /// The key of the manifest.
    pub(crate) key: &'static str,
    /// The name of the directory, if the key is about one.
    pub(crate) name: Option<String>,
    /// The part that goes beyond.
    pub(crate) asked: String,
    /// The whole of the other grant under this key.
    pub(crate) most: String,
}

impl NamePattern {
    /// Returns `true` if one of `most` covers every name that this pattern covers.
    ///
    /// A single pattern has to cover all of it: a name may continue in any way, so several narrower
    /// patterns never add up to a wider one.
    fn is_within(&self, most: &[Self]) -> bool {
        most.iter().any(|most| match most.prefix() {
            Some(prefix) => self.literal().starts_with(prefix),
            None => self == most,
        })
    }
}

impl Grant {
    /// Returns `true` if the other grant allows everything that this one allows. Directories are
    /// compared as they are written: see [`Grant::resolve`].
    #[must_use]
    pub fn is_within(&self, most: &Self) -> bool {
        self.wider_parts(most).is_empty()
    }

    /// Replaces the path of each directory by its absolute path without links and `..`.
    pub fn resolve(&mut self) {
        for files in self.files.values_mut() {
            files.path = resolve(&files.path);
        }
    }

    /// Returns the parts of this grant that allow more than the other does.
    pub(crate) fn wider_parts(&self, most: &Self) -> Vec<WiderPart> {
        let mut wider = Vec::new();
        for ((key, asked), (_, most)) in self.patterns().into_iter().zip(most.patterns()) {
            let more = asked.iter().filter(|pattern| !pattern.is_within(most));
            let more: Vec<&NamePattern> = more.collect();
            if !more.is_empty() {
                wider.push(WiderPart {
                    key,
                    name: None,
                    asked: listed(more),
                    most: listed(most),
                });
            }
        }
        for ((key, asked), (_, most)) in self.flags().into_iter().zip(most.flags()) {
            if asked && !most {
                wider.push(WiderPart {
                    key,
                    name: None,
                    asked: asked.to_string(),
                    most: most.to_string(),
                });
            }
        }
        if let Some(asked) = self.kv
            && !most.kv.is_some_and(|most| asked.is_within(most))
        {
            wider.push(WiderPart {
                key: "grant.kv",
                name: None,
                asked: asked.to_string(),
                most: most.kv.map_or_else(nothing, |most| most.to_string()),
            });
        }
        self.wider_files(most, &mut wider);
        wider
    }

    /// Appends the directories that the other grant does not include: below none of its
    /// directories, or with a larger quota than the containing directory has left.
    fn wider_files(&self, most: &Self, wider: &mut Vec<WiderPart>) {
        let mut used: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (name, asked) in &self.files {
            let fits = asked.below(name, &most.files).is_some_and(|(root, most)| {
                if !asked.write {
                    return true;
                }
                // Directories within one directory share its quota.
                let used = used.entry(root).or_default();
                used.0 = used.0.saturating_add(asked.size);
                used.1 = used.1.saturating_add(asked.files);
                used.0 <= most.size && used.1 <= most.files
            });
            if !fits {
                let most = most.files.values().map(ToString::to_string);
                let most: Vec<String> = most.collect();
                wider.push(WiderPart {
                    key: "grant.files",
                    name: Some(name.clone()),
                    asked: asked.to_string(),
                    most: if most.is_empty() {
                        nothing()
                    } else {
                        most.join("; ")
                    },
                });
            }
        }
    }

    /// Returns the lists of patterns, with their keys.
    pub(super) fn patterns(&self) -> [(&'static str, &[NamePattern]); 5] {
        [
            ("grant.send", &self.send),
            ("grant.request", &self.request),
            ("grant.stream", &self.stream),
            ("grant.publish", &self.publish),
            ("grant.subscribe", &self.subscribe),
        ]
    }

    /// Returns the boolean grants, with their keys.
    pub(super) const fn flags(&self) -> [(&'static str, bool); 5] {
        // Exhaustive, so that a new grant does not compile until it is compared as well.
        let Self {
            send: _,
            request: _,
            stream: _,
            serve,
            publish: _,
            subscribe: _,
            timer,
            log,
            clock,
            random,
            kv: _,
            files: _,
        } = self;
        [
            ("grant.serve", *serve),
            ("grant.timer", *timer),
            ("grant.log", *log),
            ("grant.clock", *clock),
            ("grant.random", *random),
        ]
    }
}

impl KvGrant {
    const fn is_within(self, most: Self) -> bool {
        let Self { size, keys, rate } = self;
        size <= most.size && keys <= most.keys && rate <= most.rate
    }
}

impl FilesGrant {
    /// Returns the directory of another grant that contains this one with at least the same access:
    /// the one of the same name first, otherwise the deepest.
    fn below<'m>(
        &self,
        name: &str,
        most: &'m BTreeMap<String, Self>,
    ) -> Option<(&'m str, &'m Self)> {
        let reaches = |most: &Self| is_below(&self.path, &most.path) && (most.write || !self.write);
        let own = most.get_key_value(name).filter(|(_, most)| reaches(most));
        let other = || {
            let below = most.iter().filter(|(_, most)| reaches(most));
            below.max_by_key(|(_, most)| (most.path.components().count(), most.size))
        };
        own.or_else(other).map(|(name, most)| (name.as_str(), most))
    }
}

/// Formats patterns for display.
pub(super) fn listed<'p>(patterns: impl IntoIterator<Item = &'p NamePattern>) -> String {
    let each = patterns
        .into_iter()
        .map(|one| format!("{:?}", one.as_str()));
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        return nothing();
    }
    each.join(", ")
}

fn nothing() -> String {
    "nothing".to_owned()
}

impl std::fmt::Display for KvGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            size: most,
            keys,
            rate,
        } = self;
        write!(f, "{}, {keys} keys, {rate} writes per second", size(most))
    }
}

impl std::fmt::Display for FilesGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            path,
            write,
            size: most,
            files,
        } = self;
        match write {
            false => write!(f, "{path:?}, read"),
            true => {
                let most = size(most);
                write!(f, "{path:?}, read and write, {most}, {files} files")
            }
        }
    }
}

#[cfg(test)]
mod tests;
