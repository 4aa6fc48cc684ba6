//! Components in files: a manifest, and the octets that it names.

use std::path::Path;

use strowger_wasm::{HostLimits, LoadError, Manifest, ManifestError};

use crate::exit::{Done, Failure};
use crate::file::read_plain;

/// A manifest, and the octets of the file that it names.
pub(crate) fn by_manifest(path: &Path) -> Done<(Vec<u8>, Manifest)> {
    let manifest = manifest(path)?;
    let Some(file) = &manifest.component.file else {
        let text = format!("{}: does not say `component.file`", path.display());
        return Err(Failure::input(text).hint("say where the component is"));
    };
    Ok((octets(file)?, manifest))
}

/// The octets of a component, as far as one may be long.
pub(crate) fn octets(path: &Path) -> Done<Vec<u8>> {
    read_plain(path, HostLimits::default().component)
}

/// Reads a manifest, whose paths begin at its own folder, and says where it is wrong.
pub(crate) fn manifest(path: &Path) -> Done<Manifest> {
    const MOST: usize = 1 << 20;
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let octets = read_plain(path, MOST)?;
    let text = String::from_utf8(octets).map_err(|error| wrong(error.to_string()))?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let manifest = Manifest::parse(&text).map(|manifest| manifest.within(folder));
    manifest.map_err(|error| match error {
        ManifestError::Parse(error) => wrong(error.to_string()),
        error => wrong(error.to_string()),
    })
}

/// Why a component is not loaded, with what to do about it.
pub(crate) fn not_loaded(file: &Path, error: &LoadError) -> Failure {
    let failure = Failure::input(format!("{}: {error}", file.display()));
    match error {
        LoadError::Denied(_) => {
            failure.hint("grant it in the manifest; `strowger component inspect` shows each import")
        }
        LoadError::Excessive(beyond) => failure.hint(format!(
            "ask for less in the manifest, or allow more: `{}` in [components.caps] of the node's \
             configuration",
            beyond.name()
        )),
        LoadError::Export { .. } => failure.hint("the contract is wit/component.wit"),
        _ => failure,
    }
}
