//! The signers that a host trusts.

use std::collections::BTreeMap;

use serde::Deserialize;
use tokio::time::Instant;

use crate::digest::Digest;
use crate::host::Host;
use crate::load::LoadError;
use crate::manifest::Manifest;
use crate::metric::{self, AUDIT};
use crate::signature::SignerKey;

/// The trusted signers of components, and the rule for upgrades that widen access;
/// `[components.trust]` in a node's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TrustPolicy {
    /// The trusted public keys by name. If there are any, each component must be signed with one of
    /// them; otherwise a component needs a signature only if its own manifest says so.
    pub signers: BTreeMap<String, SignerKey>,
    /// Allows upgrades that widen access and limits without confirmation, as far as
    /// [`ManifestCaps`](crate::manifest::ManifestCaps) allow it. It has an effect only with
    /// [`ManifestCaps::grant`](crate::manifest::ManifestCaps::grant).
    pub widen: bool,
}

impl TrustPolicy {
    /// Returns the name of a signer.
    #[must_use]
    pub fn name(&self, signer: &SignerKey) -> Option<&str> {
        let mut signers = self.signers.iter();
        let (name, _) = signers.find(|(_, one)| *one == signer)?;
        Some(name)
    }

    /// Formats a signer with its name, if it has one.
    #[must_use]
    pub fn label(&self, signer: &SignerKey) -> String {
        match self.name(signer) {
            Some(name) => format!("{name} ({signer})"),
            None => signer.to_string(),
        }
    }

    /// Checks that a manifest and its component are signed as the manifest says, by a trusted
    /// signer. If any signers are trusted, another signer is not accepted.
    ///
    /// # Errors
    /// [`LoadError::Untrusted`] and [`LoadError::Signature`].
    pub fn check(&self, manifest: &Manifest, component: &[u8]) -> Result<(), LoadError> {
        self.check_with_digest(manifest, component, Digest::of(component))
    }

    /// Like [`TrustPolicy::check`], with a known digest.
    pub(crate) fn check_with_digest(
        &self,
        manifest: &Manifest,
        component: &[u8],
        code: Digest,
    ) -> Result<(), LoadError> {
        match manifest.component.signer {
            None if self.signers.is_empty() => Ok(()),
            Some(signer) if self.signers.is_empty() || self.name(&signer).is_some() => {
                match flaw(manifest, signer, component, code) {
                    None => Ok(()),
                    Some(why) => Err(LoadError::Signature {
                        signer: self.label(&signer),
                        why,
                    }),
                }
            }
            signer => {
                let trusted: Vec<&str> = self.signers.keys().map(String::as_str).collect();
                let trusted = trusted.join(", ");
                Err(LoadError::Untrusted { signer, trusted })
            }
        }
    }
}

/// Returns the flaw of a component's signature, if there is one.
fn flaw(
    manifest: &Manifest,
    signer: SignerKey,
    component: &[u8],
    code: Digest,
) -> Option<&'static str> {
    let Some(signature) = &manifest.component.signature else {
        return Some("its manifest has no signature");
    };
    let Some(statement) = manifest.statement(code) else {
        return Some("its manifest was not loaded from a text that can be signed");
    };
    if signer.verifies(&statement, signature) {
        return None;
    }
    if signer.verifies_bytes(component, signature) {
        return Some("the signature covers only the code, but must cover manifest and code");
    }
    Some("the signature does not match this manifest and this code")
}

/// Logs and counts a refusal before a component is loaded, within the rate of the host.
pub(crate) fn audit(host: &Host, component: &str, grant: &'static str, what: &str) {
    metric::refused(component, grant);
    if let Some(omitted) = host.audit_lines().take(Instant::now()) {
        tracing::warn!(target: AUDIT, component, grant, what, omitted, "refused");
    }
}
