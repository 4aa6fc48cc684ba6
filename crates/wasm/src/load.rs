//! From octets to a component that can be started.

use std::collections::BTreeMap;
use std::fmt;

use wasmtime::component::{Component, InstancePre, Linker};

use crate::contract::{Exports, PACKAGE, VERSION};
use crate::digest::Digest;
use crate::engine::Class;
use crate::guest::{Guest, link};
use crate::host::Host;
use crate::manifest::{Excessive, Identity, Manifest, ManifestError, StateMode};
use crate::metric::{self, AUDIT};
use crate::signature::Signer;

/// Why a component is not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Its manifest is none.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its manifest asks for more than the host allows.
    #[error(transparent)]
    Excessive(#[from] Excessive),
    /// Its octets are not those that the manifest pins.
    #[error("the component hashes to {found}, and its manifest pins {pinned}")]
    Digest {
        /// What the manifest says.
        pinned: Digest,
        /// What it is.
        found: Digest,
    },
    /// It is not signed as its manifest says that it is.
    #[error("the component is not signed by {signer}: {why}")]
    Signature {
        /// Who must have signed it.
        signer: Signer,
        /// What is wrong.
        why: &'static str,
    },
    /// It is longer than the host takes.
    #[error("the component has {octets} octets, at most {max}")]
    Size {
        /// Its length.
        octets: usize,
        /// The host's limit.
        max: usize,
    },
    /// Its octets are no valid component.
    #[error("not a valid component: {text}")]
    Invalid {
        /// What the validator says.
        text: String,
    },
    /// It imports what it was not granted.
    #[error("not granted: {}", show(.0))]
    Denied(Vec<Denied>),
    /// It does not export what every component does, or with other types.
    #[error("does not export {missing}")]
    Export {
        /// The interface and its function.
        missing: String,
    },
    /// Its manifest asks for what it does not export.
    #[error("`{key}` needs `{interface}`, which the component does not export")]
    Unfit {
        /// The key of the manifest.
        key: &'static str,
        /// The interface.
        interface: &'static str,
    },
    /// Its compilation took longer than the host allows.
    #[error("compilation took longer than {limit:?}")]
    Slow {
        /// The host's limit.
        limit: std::time::Duration,
    },
    /// The host cannot run it.
    #[error("the host cannot run it: {text}")]
    Host {
        /// Why.
        text: String,
    },
}

/// An import that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// What the component imports.
    pub import: String,
    /// What would grant it.
    pub needs: &'static str,
}

fn show(denied: &[Denied]) -> String {
    let each = denied
        .iter()
        .map(|one| format!("`{}` (needs {})", one.import, one.needs));
    each.collect::<Vec<_>>().join(", ")
}

/// What a component wants and has, for people.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspection {
    /// The hash of its octets.
    pub digest: Digest,
    /// Who signed them, if its manifest says who must have; it was checked.
    pub signer: Option<Signer>,
    /// How many octets it has.
    pub octets: usize,
    /// Its imports; with what would grant each that is refused.
    pub imports: Vec<(String, Option<&'static str>)>,
    /// What its manifest grants, whether it is wanted or not.
    pub grants: Vec<(&'static str, String)>,
    /// Its exports.
    pub exports: Vec<String>,
    /// The engine on which it runs.
    pub engine: &'static str,
    /// Whether it may wait for answers, on a stack of its own.
    pub waits: bool,
}

/// A component that was validated, compiled and linked, with its manifest. Instances of it start
/// in microseconds.
pub struct Image {
    manifest: Manifest,
    settings: BTreeMap<String, String>,
    digest: Digest,
    waits: bool,
    streams: bool,
    pub(crate) exports: Exports,
    pub(crate) pre: InstancePre<Guest>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} {})", self.manifest.component.name, self.digest)
    }
}

impl Image {
    /// The manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The hash of the octets.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether it may wait for answers, on a stack of its own.
    #[must_use]
    pub const fn waits(&self) -> bool {
        self.waits
    }

    /// Whether it knows of streams.
    pub(crate) const fn streams(&self) -> bool {
        self.streams
    }

    pub(crate) fn setting(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(String::as_str)
    }
}

/// What was compiled, which other manifests can use.
#[derive(Clone)]
pub(crate) struct Compiled {
    component: Component,
    imports: Vec<String>,
    exports: Vec<String>,
}

/// Compiles octets, which takes milliseconds to seconds, if they were not compiled before.
pub(crate) fn compile(
    host: &Host,
    digest: Digest,
    class: Class,
    octets: &[u8],
) -> Result<Compiled, LoadError> {
    let folder = host.folder();
    let limits = host.limits();
    let engine = host.engines().get(class, limits);
    let engine = engine.map_err(|text| LoadError::Host { text })?;
    if let Some(kept) = folder.and_then(|folder| folder.read(engine, digest, class)) {
        return Ok(Compiled::of(kept));
    }
    let component = Component::new(engine, octets).map_err(|error| LoadError::Invalid {
        text: format!("{error:#}"),
    })?;
    host.count_compilation();
    if let Some(folder) = folder {
        folder.write(&component, digest, class);
    }
    Ok(Compiled::of(component))
}

/// What is known of octets before they are compiled.
pub(crate) fn check(host: &Host, octets: &[u8], manifest: &Manifest) -> Result<Digest, LoadError> {
    manifest.check()?;
    host.limits().caps.check(manifest)?;
    let max = host.limits().component;
    if octets.len() > max {
        return Err(LoadError::Size {
            octets: octets.len(),
            max,
        });
    }
    let found = Digest::of(octets);
    let Identity {
        name,
        sha256,
        signer,
        signature,
        ..
    } = &manifest.component;
    if let Some(pinned) = sha256.filter(|pinned| *pinned != found) {
        metric::refused(name, "sha256");
        tracing::warn!(target: AUDIT, component = name, grant = "sha256", what = %found, "refused");
        return Err(LoadError::Digest { pinned, found });
    }
    if let Some(signer) = *signer {
        let why = match signature {
            None => Some("its manifest has no signature"),
            Some(signature) if signer.vouches(octets, signature) => None,
            Some(_) => Some("the signature is not one of these octets"),
        };
        if let Some(why) = why {
            metric::refused(name, "signer");
            let grant = "signer";
            tracing::warn!(target: AUDIT, component = name, grant, what = why, "refused");
            return Err(LoadError::Signature { signer, why });
        }
    }
    Ok(found)
}

impl Compiled {
    fn of(component: Component) -> Self {
        let (kind, engine) = (component.component_type(), component.engine());
        let imports = kind.imports(engine).map(|(name, _)| name.to_owned());
        let exports = kind.exports(engine).map(|(name, _)| name.to_owned());
        Self {
            imports: imports.collect(),
            exports: exports.collect(),
            component,
        }
    }

    /// What was compiled.
    pub(crate) const fn component(&self) -> &Component {
        &self.component
    }

    /// The octets of its code.
    pub(crate) fn code(&self) -> usize {
        let range = self.component.image_range();
        (range.end as usize).saturating_sub(range.start as usize)
    }

    /// The name of an import of the contract, without package and version; of another its whole
    /// name.
    fn interface(import: &str) -> &str {
        import
            .strip_prefix(PACKAGE)
            .and_then(|rest| rest.strip_prefix('/'))
            .and_then(|rest| rest.strip_suffix(VERSION))
            .and_then(|rest| rest.strip_suffix('@'))
            .unwrap_or(import)
    }

    fn imports(&self, manifest: &Manifest) -> Vec<(String, Option<&'static str>)> {
        let configured = !manifest.config.is_empty();
        let each = self.imports.iter().map(|import| {
            let missing = manifest.grant.missing(Self::interface(import), configured);
            (import.clone(), missing)
        });
        each.collect()
    }

    fn waits(&self) -> bool {
        self.wants("rpc")
    }

    fn wants(&self, interface: &str) -> bool {
        let mut imports = self.imports.iter();
        imports.any(|import| Self::interface(import) == interface)
    }

    pub(crate) fn inspect(&self, octets: &[u8], manifest: &Manifest, class: Class) -> Inspection {
        Inspection {
            digest: Digest::of(octets),
            octets: octets.len(),
            signer: manifest.component.signer,
            imports: self.imports(manifest),
            grants: manifest.grant.list(),
            exports: self.exports.clone(),
            engine: class.name(),
            waits: self.waits(),
        }
    }

    /// Checks grants and types, and links.
    pub(crate) fn image(&self, digest: Digest, manifest: Manifest) -> Result<Image, LoadError> {
        let refused = self
            .imports(&manifest)
            .into_iter()
            .filter_map(|(import, needs)| needs.map(|needs| Denied { import, needs }));
        let refused: Vec<_> = refused.collect();
        if !refused.is_empty() {
            for Denied { import, needs } in &refused {
                let component = &manifest.component.name;
                metric::refused(component, "import");
                let (grant, what) = ("import", import);
                tracing::warn!(target: AUDIT, component, grant, what, needs, "refused");
            }
            return Err(LoadError::Denied(refused));
        }
        let exports = Exports::find(&self.component);
        let exports = exports.map_err(|missing| LoadError::Export { missing })?;
        let unfit = |key, interface| Err(LoadError::Unfit { key, interface });
        if manifest.state.mode != StateMode::None && !exports.is_stateful() {
            return unfit("state.mode", "stateful");
        }
        if manifest.run.batch > 1 && !exports.takes_batches() {
            return unfit("run.batch", "batch");
        }
        let mut linker = Linker::new(self.component.engine());
        let failed = |error: wasmtime::Error| LoadError::Host {
            text: format!("{error:#}"),
        };
        link(&mut linker, self.waits()).map_err(failed)?;
        let pre = linker
            .instantiate_pre(&self.component)
            .map_err(|error| LoadError::Invalid {
                text: format!("{error:#}"),
            })?;
        Ok(Image {
            settings: manifest.settings(),
            waits: self.waits(),
            streams: self.wants("streams"),
            manifest,
            digest,
            exports,
            pre,
        })
    }
}
