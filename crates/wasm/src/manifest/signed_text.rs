//! The digest of the text that a manifest was parsed from, for signatures.

use toml::Table;

use crate::digest::Digest;
use crate::signature::{Statement, content_digest};

/// The digest of the content of a manifest's text, if it was parsed from text.
///
/// A signature is one of the text. A program or a node's configuration may override the manifest
/// afterwards on its own authority, without a signature.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SignedText(Option<Digest>);

impl SignedText {
    pub(super) fn of(text: Table) -> Self {
        Self(Some(content_digest(text)))
    }

    /// Returns the statement about the manifest and a component, if the manifest has a text.
    pub(crate) fn statement(self, code: Digest) -> Option<Statement> {
        self.0.map(|manifest| Statement::new(manifest, code))
    }
}

/// Manifests with the same content are equal, wherever they come from.
impl PartialEq for SignedText {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
