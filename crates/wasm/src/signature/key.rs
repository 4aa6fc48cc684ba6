//! The secret key of a signer.

use std::fmt;
use std::io;

use ed25519_dalek::Signer as _;

use super::{Signature, SignerKey, Statement};

/// The secret key of a signer.
///
/// ```
/// # use strowger_wasm::signature::{SigningKey, Statement};
/// let key = SigningKey::from_seed([7; 32]);
/// let statement = Statement::of("[component]\nname = \"a\"", b"the component")?;
/// let signature = key.sign(&statement);
/// assert!(key.signer().verifies(&statement, &signature));
/// # Ok::<(), strowger_wasm::manifest::ManifestError>(())
/// ```
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Generates a random key.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn generate() -> io::Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self::from_seed(seed))
    }

    /// Creates a key from its seed, which RFC 8032 calls the private key.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// Returns the seed, which is secret.
    #[must_use]
    pub fn to_seed(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Returns the public key.
    #[must_use]
    pub fn signer(&self) -> SignerKey {
        SignerKey(self.0.verifying_key().to_bytes())
    }

    /// Signs a statement.
    #[must_use]
    pub fn sign(&self, statement: &Statement) -> Signature {
        Signature(self.0.sign(statement.to_string().as_bytes()).to_bytes())
    }
}

impl fmt::Debug for SigningKey {
    /// Shows only the public key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(of {})", self.signer())
    }
}
