//! The codec through its public face.

#[path = "codec/compare.rs"]
mod compare;
#[path = "codec/framing.rs"]
mod framing;
#[path = "codec/generated.rs"]
mod generated;
#[path = "codec/index.rs"]
mod index;
#[cfg(feature = "serde")]
#[path = "codec/json.rs"]
mod json;
#[path = "codec/octets.rs"]
mod octets;
#[path = "codec/proof.rs"]
mod proof;
#[path = "codec/roundtrip.rs"]
mod roundtrip;
#[path = "codec/rows.rs"]
mod rows;
#[path = "codec/validation.rs"]
mod validation;
#[path = "codec/vectors.rs"]
mod vectors;
