//! The grants of a component.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

/// The grants of a component; `[grant]` in its manifest. Access that is not granted is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Grant {
    /// The actors that it may `send` to and `ask`.
    pub send: Vec<NamePattern>,
    /// The actors that it may `request` from.
    pub request: Vec<NamePattern>,
    /// The actors whose streams it may read.
    pub stream: Vec<NamePattern>,
    /// `true` if others may read streams from it.
    pub serve: bool,
    /// The topics on which it may publish.
    pub publish: Vec<NamePattern>,
    /// The topics to which it may subscribe.
    pub subscribe: Vec<NamePattern>,
    /// `true` if it may set timers.
    pub timer: bool,
    /// `true` if it may write to the node's log.
    pub log: bool,
    /// `true` if it may read the time.
    pub clock: bool,
    /// `true` if it may get random bytes.
    pub random: bool,
    /// Its key-value storage; none by default.
    pub kv: Option<KvGrant>,
    /// The directories below which it may access files, by the names that it uses for them.
    pub files: BTreeMap<String, FilesGrant>,
}

/// The access of a component below a directory; `[grant.files.NAME]` in its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesGrant {
    /// The directory, relative to that of the manifest.
    pub path: PathBuf,
    /// `true` if it may also write and remove files.
    #[serde(default)]
    pub write: bool,
    /// Maximum size of all files below the directory, in bytes; writes beyond it fail.
    #[serde(
        default = "default_size",
        deserialize_with = "strowger::deserialize_size"
    )]
    pub size: usize,
    /// Maximum number of files below the directory; creating more fails.
    #[serde(default = "default_files")]
    pub files: usize,
}

const fn default_size() -> usize {
    16 << 20
}

const fn default_files() -> usize {
    1000
}

/// The quota of a component's key-value storage; `[grant.kv]` in its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KvGrant {
    /// Maximum size of keys and values in bytes; each entry counts 64 bytes more.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub size: usize,
    /// Maximum number of keys.
    pub keys: usize,
    /// Maximum number of writes per second; bursts of the same number are allowed.
    pub rate: u32,
}

impl Default for KvGrant {
    fn default() -> Self {
        Self {
            size: 1 << 20,
            keys: 1000,
            rate: 1000,
        }
    }
}

/// A name, or a prefix of names followed by `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(String);

impl NamePattern {
    /// Creates a pattern.
    ///
    /// # Errors
    /// If it is empty, or has a `*` elsewhere than at its end.
    pub fn new(text: impl Into<String>) -> Result<Self, &'static str> {
        let text = text.into();
        let literal = text.strip_suffix('*').unwrap_or(&text);
        if text.is_empty() {
            return Err("a pattern must not be empty");
        }
        if literal.contains('*') {
            return Err("`*` is allowed only at the end of a pattern");
        }
        Ok(Self(text))
    }

    /// Returns `true` if it covers a name. A topic pattern is covered if everything that it matches
    /// is.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        match self.prefix() {
            Some(prefix) => name.starts_with(prefix),
            None => self.0 == name,
        }
    }

    /// Returns the prefix of the names that it covers, if it ends in `*`.
    pub(super) fn prefix(&self) -> Option<&str> {
        self.0.strip_suffix('*')
    }

    /// Returns the pattern without a `*` at its end.
    pub(super) fn literal(&self) -> &str {
        self.prefix().unwrap_or(&self.0)
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for NamePattern {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let quoted = format!("{text:?}");
        Self::new(text).map_err(|why| serde::de::Error::custom(format!("{quoted}: {why}")))
    }
}

impl Grant {
    /// Returns `true` if one of these patterns covers a name.
    pub(crate) fn covers(patterns: &[NamePattern], name: &str) -> bool {
        patterns.iter().any(|pattern| pattern.covers(name))
    }

    /// Returns the grants, in the words of the manifest.
    pub(crate) fn list(&self) -> Vec<(&'static str, String)> {
        let Self {
            send,
            request,
            stream,
            serve,
            publish,
            subscribe,
            timer,
            log,
            clock,
            random,
            kv,
            files,
        } = self;
        let patterns = [
            ("send", send),
            ("request", request),
            ("stream", stream),
            ("publish", publish),
            ("subscribe", subscribe),
        ];
        let patterns = patterns.into_iter().filter(|(_, list)| !list.is_empty());
        let patterns = patterns.map(|(key, list)| {
            let list: Vec<_> = list.iter().map(NamePattern::as_str).collect();
            (key, list.join(", "))
        });
        let flags = [
            ("serve", serve),
            ("timer", timer),
            ("log", log),
            ("clock", clock),
            ("random", random),
        ];
        let flags = flags.into_iter().filter(|(_, granted)| **granted);
        let mut list: Vec<_> = patterns
            .chain(flags.map(|(key, _)| (key, "yes".to_owned())))
            .collect();
        if let Some(KvGrant { size, keys, rate }) = kv {
            let text = format!("{size} bytes, {keys} keys, {rate} writes per second");
            list.push(("kv", text));
        }
        for (name, grant) in files {
            let path = grant.path.display();
            let FilesGrant { size, files, .. } = grant;
            let may = match grant.write {
                true => format!("read and write, {size} bytes, {files} files"),
                false => "read".to_owned(),
            };
            list.push(("files", format!("{name} at {path}: {may}")));
        }
        list
    }

    /// Returns the grant that an imported interface needs, if it is missing.
    pub(crate) fn missing(&self, interface: &str, configured: bool) -> Option<&'static str> {
        let (granted, needs) = match interface {
            "messaging" => (
                self.timer
                    || [
                        &self.send,
                        &self.publish,
                        &self.subscribe,
                        &self.request,
                        &self.stream,
                    ]
                    .iter()
                    .any(|patterns| !patterns.is_empty()),
                "one of `send`, `request`, `stream`, `publish`, `subscribe`, `timer` in [grant]",
            ),
            "rpc" => (!self.request.is_empty(), "`request` in [grant]"),
            "streams" => (
                self.serve || !self.stream.is_empty(),
                "`stream` or `serve` in [grant]",
            ),
            "log" => (self.log, "`log = true` in [grant]"),
            "clock" => (self.clock, "`clock = true` in [grant]"),
            "random" => (self.random, "`random = true` in [grant]"),
            "files" if cfg!(unix) => (!self.files.is_empty(), "a section [grant.files.NAME]"),
            "kv" => (self.kv.is_some(), "a section [grant.kv]"),
            "config" => (configured, "a section [config]"),
            "refusal" | "fault" => (true, ""),
            _ => (false, "an interface that the host provides"),
        };
        (!granted).then_some(needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_covers_names_with_the_prefix() {
        let covers = |pattern: &str, name| NamePattern::new(pattern).expect("good").covers(name);
        assert!(covers("audit", "audit") && !covers("audit", "audit2"));
        assert!(covers("orders/*", "orders/1") && !covers("orders/*", "order"));
        assert!(covers("*", "anything"));
        assert!(
            !covers("orders/*", "**"),
            "a wider subscription is not covered"
        );
    }

    #[test]
    fn invalid_patterns_are_refused() {
        assert!(NamePattern::new("").is_err());
        assert!(NamePattern::new("a*b").is_err());
        assert!(NamePattern::new("**").is_err());
    }

    #[test]
    fn nothing_is_granted_by_default() {
        for interface in [
            "messaging",
            "rpc",
            "streams",
            "log",
            "clock",
            "random",
            "config",
            "kv",
            "files",
            "x",
        ] {
            assert!(
                Grant::default().missing(interface, false).is_some(),
                "{interface}"
            );
        }
    }
}
