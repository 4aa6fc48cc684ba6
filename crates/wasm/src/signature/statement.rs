//! The text that a signer signs: it names a manifest and a component by their digests.

use std::fmt;

use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

use crate::digest::Digest;
use crate::manifest::ManifestError;

/// The statement that a signer signs: a manifest and a component belong together.
///
/// Its text is what is signed, so any Ed25519 tool can sign it.
///
/// ```
/// # use strowger_wasm::signature::Statement;
/// let statement = Statement::of("[component]\nname = \"a\"", b"the component")?;
/// assert!(statement.to_string().starts_with("strowger component 1\nmanifest sha256 "));
/// // The order of keys, spaces and comments say nothing; every value does.
/// let other = Statement::of("# a comment\ncomponent = { name = \"a\" }", b"the component")?;
/// assert_eq!(other, statement);
/// let other = Statement::of("[component]\nname = \"a\"\n[grant]\nlog = true", b"the component")?;
/// assert_ne!(other, statement);
/// # Ok::<(), strowger_wasm::manifest::ManifestError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statement {
    /// The digest of the content of the manifest, without `component.signature`.
    pub manifest: Digest,
    /// The digest of the component's bytes.
    pub code: Digest,
}

impl Statement {
    /// Creates the statement about a manifest, given as text, and a component.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn of(manifest: &str, component: &[u8]) -> Result<Self, ManifestError> {
        let table: Table = manifest.parse()?;
        Ok(Self::new(content_digest(table), Digest::of(component)))
    }

    pub(crate) const fn new(manifest: Digest, code: Digest) -> Self {
        Self { manifest, code }
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first line separates these signatures from those of any other text.
        let Self { manifest, code } = self;
        writeln!(f, "strowger component 1")?;
        writeln!(f, "manifest sha256 {manifest}")?;
        writeln!(f, "code sha256 {code}")
    }
}

/// Returns the digest of the content of a manifest, without its signature.
pub(crate) fn content_digest(mut manifest: Table) -> Digest {
    if let Some(Value::Table(component)) = manifest.get_mut("component") {
        component.remove("signature");
    }
    let mut canonical = Vec::new();
    table(&manifest, &mut canonical);
    Digest::from_bytes(Sha256::digest(&canonical).into())
}

/// Encodes a table canonically, so that two tables have the same bytes only if their content is the
/// same: keys in order, each value with its kind, each text with its length.
fn table(table: &Table, into: &mut Vec<u8>) {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.as_bytes());
    into.extend(format!("{{{}:", entries.len()).bytes());
    for (key, entry) in entries {
        text('k', key, into);
        value(entry, into);
    }
}

fn value(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::String(string) => text('s', string, into),
        Value::Integer(number) => into.extend(format!("i{number};").bytes()),
        Value::Float(number) => into.extend(format!("f{:016x};", number.to_bits()).bytes()),
        Value::Boolean(truth) => into.push(if *truth { b't' } else { b'f' }),
        Value::Datetime(time) => text('d', &time.to_string(), into),
        Value::Array(values) => {
            into.extend(format!("[{}:", values.len()).bytes());
            values.iter().for_each(|entry| self::value(entry, into));
        }
        Value::Table(inner) => table(inner, into),
    }
}

fn text(kind: char, text: &str, into: &mut Vec<u8>) {
    into.extend(format!("{kind}{}:", text.len()).bytes());
    into.extend(text.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "
        [component]\nname = \"a\"\nfile = \"a.wasm\"\nsigner = \"00\"\n
        [limits]\nmemory = \"1MiB\"\nfuel = 5\n
        [grant]\nsend = [\"a\", \"b\"]\nlog = true\n
        [grant.files.data]\npath = \"data\"\n
        [config]\nrate = 1.5\nsince = 2020-01-01\n[config.deep]\nlist = [[1], [2]]\n";

    fn of(text: &str) -> Digest {
        Statement::of(text, b"").expect("it is TOML").manifest
    }

    #[test]
    fn digest_covers_all_but_signature_and_layout() {
        let signed = WHOLE.replace("signer", "signature = \"ff\"\nsigner");
        assert_eq!(of(&signed), of(WHOLE));
        let commented = WHOLE.replace("log = true", "log=true # yes");
        assert_eq!(of(&commented), of(WHOLE));
    }

    #[test]
    fn any_changed_value_changes_the_digest() {
        for (from, to) in [
            ("name = \"a\"", "name = \"b\""),
            ("a.wasm", "b.wasm"),
            ("signer = \"00\"", "signer = \"01\""),
            ("1MiB", "2MiB"),
            ("fuel = 5", "fuel = 50"),
            ("fuel = 5", "fuel = \"5\""),
            ("log = true", "log = false"),
            ("log = true", ""),
            ("log = true", "clock = true"),
            ("[\"a\", \"b\"]", "[\"b\", \"a\"]"),
            ("[\"a\", \"b\"]", "[\"a\"]"),
            ("[\"a\", \"b\"]", "[\"a, b\"]"),
            ("path = \"data\"", "path = \"/\""),
            ("grant.files.data", "grant.files.date"),
            ("1.5", "1.25"),
            ("2020-01-01", "2020-01-02"),
            ("2020-01-01", "\"2020-01-01\""),
            ("[[1], [2]]", "[[1, 2]]"),
            ("[[1], [2]]", "[[1], [2], []]"),
        ] {
            let altered = WHOLE.replace(from, to);
            assert_ne!(altered, WHOLE, "{from}");
            assert_ne!(of(&altered), of(WHOLE), "{from} -> {to}");
        }
    }

    #[test]
    fn statement_text_is_as_documented() {
        let statement = Statement::of("", b"abc").expect("it is TOML");
        let lines: Vec<String> = statement.to_string().lines().map(str::to_owned).collect();
        let code = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(lines[0], "strowger component 1");
        assert_eq!(lines[1], format!("manifest sha256 {}", statement.manifest));
        assert_eq!(lines[2], format!("code sha256 {code}"));
        assert!(statement.to_string().ends_with('\n') && lines.len() == 3);
    }
}
