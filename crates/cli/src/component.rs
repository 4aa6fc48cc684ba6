//! Components in files: a manifest, and the component file that it names.

use std::path::Path;

use strowger_wasm::load::DeniedImport;
use strowger_wasm::manifest::{CapBound, ManifestError};
use strowger_wasm::{HostLimits, LoadError, Manifest};

use crate::exit::{CliResult, Failure};
use crate::file::read_plain;

/// Reads a manifest, and the bytes of the file that it names.
pub(crate) fn read_with_manifest(path: &Path) -> CliResult<(Vec<u8>, Manifest)> {
    let manifest = read_manifest(path)?;
    let Some(file) = &manifest.component.file else {
        let text = format!("{}: no `component.file`", path.display());
        return Err(Failure::input(text).hint("set it to the path of the component"));
    };
    Ok((read_bytes(file)?, manifest))
}

/// Reads the bytes of a component, up to the maximum size of one.
pub(crate) fn read_bytes(path: &Path) -> CliResult<Vec<u8>> {
    read_plain(path, HostLimits::default().component)
}

/// Reads the text of a manifest.
pub(crate) fn read_manifest_text(path: &Path) -> CliResult<String> {
    const MAX_MANIFEST_BYTES: usize = 1 << 20;
    let wrong = |error| Failure::input(format!("{}: {error}", path.display()));
    String::from_utf8(read_plain(path, MAX_MANIFEST_BYTES)?).map_err(wrong)
}

/// Reads a manifest and reports where it is wrong. Its paths are relative to its own folder.
pub(crate) fn read_manifest(path: &Path) -> CliResult<Manifest> {
    parse_manifest(path, &read_manifest_text(path)?)
}

/// Parses the text of a manifest that was read from `path`.
pub(crate) fn parse_manifest(path: &Path, text: &str) -> CliResult<Manifest> {
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let manifest = Manifest::parse(text).map(|manifest| manifest.with_base_dir(folder));
    manifest.map_err(|error| match error {
        ManifestError::Parse(error) => wrong(error.to_string()),
        error => wrong(error.to_string()),
    })
}

/// Returns a hint about imports that no grant gives.
pub(crate) fn foreign_import_hint<'a>(mut imports: impl Iterator<Item = &'a str>) -> &'static str {
    match imports.any(|import| import.starts_with("wasi:")) {
        true => {
            "the host does not provide WASI: a component exports one of the worlds plain, \
             durable, batched or complete of wit/component.wit and may import only its \
             interfaces. Build without WASI: Rust for wasm32-unknown-unknown, C with \
             --target=wasm32 -nostdlib, `componentize-py --stub-wasi`, `jco componentize \
             --disable all`; see docs/components.md"
        }
        false => {
            "the host provides only the interfaces of wit/component.wit; `strowger component \
             inspect` lists each import"
        }
    }
}

/// Converts the error of loading a component to a failure with a hint.
pub(crate) fn load_failure(file: &Path, error: &LoadError) -> Failure {
    let failure = Failure::input(format!("{}: {error}", file.display()));
    match error {
        LoadError::Denied(denied) if denied.iter().all(DeniedImport::is_grantable) => {
            failure.hint("grant it in the manifest; `strowger component inspect` lists each import")
        }
        LoadError::Denied(denied) => failure.hint(foreign_import_hint(
            denied.iter().map(|denied| denied.import.as_str()),
        )),
        LoadError::Module => failure.hint(format!(
            "make a component of it with `strowger component build {}`",
            file.display()
        )),
        LoadError::Parts { .. } => {
            failure.hint("merge its core modules, such as with wasm-merge, or leave out adapters")
        }
        LoadError::Slow { .. } => failure.hint("compiled code is kept: try again later"),
        LoadError::Signature { .. } => failure.hint(format!(
            "sign the manifest and the code again: `strowger component sign {} --key KEY.pem`",
            file.display()
        )),
        LoadError::Untrusted { .. } => failure.hint(format!(
            "sign it with a trusted key (`strowger component sign {} --key KEY.pem`), or add the \
             signer's public key to [components.trust] signers in the node's configuration",
            file.display()
        )),
        LoadError::CapExceeded(beyond) => {
            let remedy = match beyond.bound {
                CapBound::Min => "raise the time in the manifest, or lower the minimum",
                CapBound::Max => "lower the value in the manifest, or raise the cap",
            };
            failure.hint(format!(
                "{remedy}: `{}` in [components.caps] of the node's configuration",
                beyond.cap_key()
            ))
        }
        LoadError::Export { .. } => failure.hint("see the contract in wit/component.wit"),
        _ => failure,
    }
}
