//! Components in files: a manifest, and the component file that it names.

use std::path::Path;

use strowger_wasm::{Bound, Denied, HostLimits, LoadError, Manifest, ManifestError};

use crate::exit::{CliResult, Failure};
use crate::file::read_plain;

/// Reads a manifest, and the bytes of the file that it names.
pub(crate) fn by_manifest(path: &Path) -> CliResult<(Vec<u8>, Manifest)> {
    let manifest = manifest(path)?;
    let Some(file) = &manifest.component.file else {
        let text = format!("{}: does not say `component.file`", path.display());
        return Err(Failure::input(text).hint("say where the component is"));
    };
    Ok((read_bytes(file)?, manifest))
}

/// Reads the bytes of a component, up to the maximum size of one.
pub(crate) fn read_bytes(path: &Path) -> CliResult<Vec<u8>> {
    read_plain(path, HostLimits::default().component)
}

/// Reads the text of a manifest.
pub(crate) fn text(path: &Path) -> CliResult<String> {
    const MOST: usize = 1 << 20;
    let wrong = |error| Failure::input(format!("{}: {error}", path.display()));
    String::from_utf8(read_plain(path, MOST)?).map_err(wrong)
}

/// Reads a manifest and reports where it is wrong. Its paths are relative to its own folder.
pub(crate) fn manifest(path: &Path) -> CliResult<Manifest> {
    read(path, &text(path)?)
}

/// Parses the text of a manifest that was read from `path`.
pub(crate) fn read(path: &Path, text: &str) -> CliResult<Manifest> {
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let manifest = Manifest::parse(text).map(|manifest| manifest.within(folder));
    manifest.map_err(|error| match error {
        ManifestError::Parse(error) => wrong(error.to_string()),
        error => wrong(error.to_string()),
    })
}

/// Returns a hint about imports that no grant gives.
pub(crate) fn foreign<'a>(mut imports: impl Iterator<Item = &'a str>) -> &'static str {
    match imports.any(|import| import.starts_with("wasi:")) {
        true => {
            "no grant gives WASI: a component exports the world plain, durable, batched or \
             complete of wit/component.wit and imports its interfaces alone. Build without WASI: \
             Rust for wasm32-unknown-unknown, C with --target=wasm32 -nostdlib, `componentize-py \
             --stub-wasi`, `jco componentize --disable all`; docs/components.md has more"
        }
        false => {
            "no grant gives what the host does not have: the contract is wit/component.wit; \
             `strowger component inspect` shows each import"
        }
    }
}

/// Converts the error of loading a component to a failure with a hint.
pub(crate) fn not_loaded(file: &Path, error: &LoadError) -> Failure {
    let failure = Failure::input(format!("{}: {error}", file.display()));
    match error {
        LoadError::Denied(denied) if denied.iter().all(Denied::is_grantable) => {
            failure.hint("grant it in the manifest; `strowger component inspect` shows each import")
        }
        LoadError::Denied(denied) => {
            failure.hint(foreign(denied.iter().map(|denied| denied.import.as_str())))
        }
        LoadError::Module => failure.hint(format!(
            "`strowger component build {}` makes a component of it",
            file.display()
        )),
        LoadError::Parts { .. } => failure.hint(
            "join its core modules, such as with wasm-merge, or leave out adapters: each is one",
        ),
        LoadError::Slow { .. } => failure.hint(
            "what was begun of it goes on, and what comes of it is kept: try again in a while",
        ),
        LoadError::Signature { .. } => failure.hint(format!(
            "sign it again, manifest and code: `strowger component sign {} --key KEY.pem`",
            file.display()
        )),
        LoadError::Untrusted { .. } => failure.hint(format!(
            "have one of them sign it (`strowger component sign {} --key KEY.pem`), or add the \
             signer's public key to [components.trust] signers of the node's configuration",
            file.display()
        )),
        LoadError::Excessive(beyond) => {
            let remedy = match beyond.bound {
                Bound::Least => "write a longer time in the manifest, or allow a shorter one",
                Bound::Most => "ask for less in the manifest, or allow more",
            };
            failure.hint(format!(
                "{remedy}: `{}` in [components.caps] of the node's configuration",
                beyond.name()
            ))
        }
        LoadError::Export { .. } => failure.hint("the contract is wit/component.wit"),
        _ => failure,
    }
}
