//! Signatures of components.
//!
//! A signature is an Ed25519 signature of a [`Statement`], which names the manifest and the
//! component. Keys and signatures are written in hexadecimal.

mod key;
mod statement;

use std::fmt;

use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Deserializer};

pub use self::key::SigningKey;
pub use self::statement::Statement;
pub(crate) use self::statement::content_digest;
use crate::digest::from_hex;
pub use crate::trust::TrustPolicy;

/// The public key of a signer of components (Ed25519).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SignerKey([u8; 32]);

/// A signature of a manifest and a component.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 64]);

impl SignerKey {
    /// Parses 64 hexadecimal digits; returns `None` if they are not a valid key.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = from_hex(text)?;
        let key = VerifyingKey::from_bytes(&bytes).ok()?;
        // With a weak key, one signature is valid for many messages.
        (!key.is_weak()).then_some(Self(bytes))
    }

    /// Returns `true` if the signature is this signer's signature of the statement.
    #[must_use]
    pub fn verifies(&self, statement: &Statement, signature: &Signature) -> bool {
        self.verifies_bytes(statement.to_string().as_bytes(), signature)
    }

    /// Returns `true` if the signature is this signer's signature of the bytes.
    pub(crate) fn verifies_bytes(&self, bytes: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        let key = VerifyingKey::from_bytes(&self.0);
        key.is_ok_and(|key| key.verify_strict(bytes, &signature).is_ok())
    }
}

impl Signature {
    /// Parses 128 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        from_hex(text).map(Self)
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignerKey({self})")
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

impl<'de> Deserialize<'de> for SignerKey {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let wrong = "is not an Ed25519 public key in 64 hex digits";
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} {wrong}")))
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let wrong = "is not an Ed25519 signature in 128 hex digits";
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} {wrong}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8032 §7.1, TEST 3.
    const KEY: &str = "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025";
    const SIGNED: &str = "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
                          18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a";

    #[test]
    fn signature_is_valid_only_for_its_bytes() {
        let signer = SignerKey::parse(KEY).expect("it is a key");
        let signature = Signature::parse(SIGNED).expect("it is a signature");
        assert_eq!(signer.to_string(), KEY);
        assert_eq!(signature.to_string(), SIGNED);
        assert!(signer.verifies_bytes(&[0xaf, 0x82], &signature));
        assert!(!signer.verifies_bytes(&[0xaf, 0x83], &signature));
        let altered = Signature::parse(&SIGNED.replace("6291", "6292"));
        assert!(!signer.verifies_bytes(&[0xaf, 0x82], &altered.expect("it has the form of one")));
    }

    #[test]
    fn signed_statement_is_verified_by_the_public_key() {
        // RFC 8032 §7.1, TEST 3.
        let seed = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
        let key = SigningKey::from_seed(from_hex(seed).expect("it is a seed"));
        assert_eq!(key.signer().to_string(), KEY);
        assert!(!format!("{key:?}").contains(&seed[..8]));
        let statement = |code: &[u8]| Statement::of("", code).expect("it is TOML");
        let signature = key.sign(&statement(b"a"));
        assert!(key.signer().verifies(&statement(b"a"), &signature));
        assert!(!key.signer().verifies(&statement(b"b"), &signature));
        let other = SigningKey::generate().expect("there are random bytes");
        assert!(!other.signer().verifies(&statement(b"a"), &signature));
    }

    #[test]
    fn invalid_keys_are_refused() {
        // The neutral element, which is weak, then text that is not a point or is too short.
        let weak = format!("01{}", "0".repeat(62));
        for bad in [&weak[..], &"f".repeat(63), ""] {
            assert_eq!(SignerKey::parse(bad), None, "{bad}");
        }
        assert_eq!(Signature::parse(KEY), None);
    }
}
