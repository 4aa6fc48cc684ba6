//! Who vouches for a component.
//!
//! A signature is one of Ed25519 over the octets of the component, as `openssl pkeyutl -sign
//! -rawin` makes it; key and signature are written in hexadecimal digits.

use std::fmt;

use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Deserializer};

use crate::digest::octets;

/// The public key of one who signs components.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signer([u8; 32]);

/// What a signer made of the octets of a component.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 64]);

impl Signer {
    /// Reads 64 hexadecimal digits; `None` if they are no key.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let octets = octets(text)?;
        let key = VerifyingKey::from_bytes(&octets).ok()?;
        // Under a weak key many octets have one signature.
        (!key.is_weak()).then_some(Self(octets))
    }

    /// Whether the signature is this signer's, and one of these octets.
    #[must_use]
    pub fn vouches(&self, component: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        let key = VerifyingKey::from_bytes(&self.0);
        key.is_ok_and(|key| key.verify_strict(component, &signature).is_ok())
    }
}

impl Signature {
    /// Reads 128 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        octets(text).map(Self)
    }
}

fn hex(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({self})")
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

impl<'de> Deserialize<'de> for Signer {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let wrong = "is not a public key of Ed25519 in 64 hexadecimal digits";
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} {wrong}")))
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let wrong = "is not a signature of Ed25519 in 128 hexadecimal digits";
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
    fn a_signature_is_one_of_its_octets_and_its_signer() {
        let signer = Signer::parse(KEY).expect("it is a key");
        let signature = Signature::parse(SIGNED).expect("it is a signature");
        assert_eq!(signer.to_string(), KEY);
        assert_eq!(signature.to_string(), SIGNED);
        assert!(signer.vouches(&[0xaf, 0x82], &signature));
        assert!(!signer.vouches(&[0xaf, 0x83], &signature));
        let altered = Signature::parse(&SIGNED.replace("6291", "6292"));
        assert!(!signer.vouches(&[0xaf, 0x82], &altered.expect("it has the form of one")));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        // The neutral point, which is weak, and what is no point or too short.
        let weak = format!("01{}", "0".repeat(62));
        for bad in [&weak[..], &"f".repeat(63), ""] {
            assert_eq!(Signer::parse(bad), None, "{bad}");
        }
        assert_eq!(Signature::parse(KEY), None);
    }
}
