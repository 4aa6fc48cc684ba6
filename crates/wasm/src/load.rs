//! Loading: from the bytes of a component to an image that can be started.

use std::collections::BTreeMap;
use std::fmt;

use tokio::time::Instant;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::contract::{ActorExports, PACKAGE, VERSION};
pub use crate::digest::Digest;
use crate::engine::EngineClass;
use crate::fault::printable;
use crate::guest::{StoreData, link};
use crate::host::Host;
use crate::log_limit::LINES_PER_SECOND;
use crate::manifest::{CapExceeded, Manifest, ManifestError, StateMode};
use crate::metric::{self, AUDIT};
use crate::signature::SignerKey;
use crate::trust::audit;

/// The error returned when a component cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The manifest is invalid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The manifest asks for more than the host allows.
    #[error(transparent)]
    CapExceeded(#[from] CapExceeded),
    /// The hash of the component differs from the one that the manifest pins.
    #[error("the component's SHA-256 is {found}, but its manifest pins {pinned}")]
    Digest {
        /// The hash in the manifest.
        pinned: Digest,
        /// The hash of the component.
        found: Digest,
    },
    /// The signature that the manifest promises is missing or wrong.
    #[error("the component is not signed by {signer}: {why}")]
    Signature {
        /// The signer that the manifest names: its key, with the name that the host has for it.
        signer: String,
        /// The flaw of the signature.
        why: &'static str,
    },
    /// The host trusts certain signers, and the manifest names none of them.
    #[error(
        "{}, but the node accepts only components signed by {trusted} \
         (`components.trust.signers`)",
        signer_text(.signer.as_ref())
    )]
    Untrusted {
        /// The signer that the manifest names.
        signer: Option<SignerKey>,
        /// The names of the trusted signers.
        trusted: String,
    },
    /// The component is larger than the host allows.
    #[error("the component is {size} bytes, limit is {max}")]
    Size {
        /// Its size in bytes.
        size: usize,
        /// The limit of the host.
        max: usize,
    },
    /// The bytes are a core module, which first has to be made into a component.
    #[error("a core module, not a component")]
    Module,
    /// The component has more parts, or larger ones, than the host allows.
    #[error("component too large for the host: {text}")]
    Parts {
        /// The part, with the limit of the host.
        text: String,
    },
    /// The bytes are not a valid component.
    #[error("not a valid component: {text}")]
    Invalid {
        /// The message of the validator.
        text: String,
    },
    /// The component has imports that are not granted.
    #[error("imports not granted: {}", denied_list(.0))]
    Denied(Vec<DeniedImport>),
    /// A required export is missing, or has other types.
    #[error("missing export {missing}")]
    Export {
        /// The interface and its function.
        missing: String,
    },
    /// The manifest asks for an interface that the component does not export.
    #[error("`{key}` needs the export `{interface}`, which the component does not have")]
    Unfit {
        /// The key of the manifest.
        key: &'static str,
        /// Interface that the component does not export.
        interface: &'static str,
    },
    /// The compilation, including the wait for others, took longer than the host allows.
    #[error("not compiled within {limit:?}")]
    Slow {
        /// The limit of the host.
        limit: std::time::Duration,
    },
    /// The host cannot run the component.
    #[error("the host cannot run the component: {text}")]
    Host {
        /// Description by the engine.
        text: String,
    },
}

/// An import that is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeniedImport {
    /// Name of the import.
    pub import: String,
    /// The grant that is missing, or the change that the component needs.
    pub needs: &'static str,
}

impl DeniedImport {
    /// Returns `true` if a manifest can grant it; `false` if the host does not have the interface.
    #[must_use]
    pub fn is_grantable(&self) -> bool {
        CompiledComponent::interface(&self.import) != self.import
    }
}

fn signer_text(signer: Option<&SignerKey>) -> String {
    match signer {
        Some(signer) => format!("the component names the signer {signer}"),
        None => "the component names no signer".to_owned(),
    }
}

fn denied_list(denied: &[DeniedImport]) -> String {
    /// A component can have any number of imports; the error shows this many.
    const SHOWN: usize = 16;
    let shown = denied.iter().take(SHOWN);
    let each = shown.map(|one| format!("`{}` (needs {})", printable(&one.import), one.needs));
    let mut text = each.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = denied.len().checked_sub(SHOWN) {
        text.push_str(&format!(", and {more} more"));
    }
    text
}

/// The properties of a component, for display.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspection {
    /// The hash of the component.
    pub digest: Digest,
    /// The signer that the manifest names, if any; the signature was checked.
    pub signer: Option<SignerKey>,
    /// Size of the component in bytes.
    pub size: usize,
    /// The imports; for each denied one, the grant that is missing.
    pub imports: Vec<(String, Option<&'static str>)>,
    /// The grants of the manifest, used or not.
    pub grants: Vec<(&'static str, String)>,
    /// Names of the exports.
    pub exports: Vec<String>,
    /// The engine on which it runs.
    pub engine: &'static str,
    /// `true` if it may wait for answers, which needs a stack of its own.
    pub waits: bool,
}

impl Inspection {
    /// Returns the imports that no manifest can grant, because the host does not have them.
    pub fn ungrantable(&self) -> impl Iterator<Item = &str> {
        let imports = self.imports.iter().map(|(import, _)| import.as_str());
        imports.filter(|import| CompiledComponent::interface(import) == *import)
    }
}

/// A component that was validated, compiled and linked, with its manifest. Its instances start in
/// microseconds.
pub struct Image {
    manifest: Manifest,
    settings: BTreeMap<String, String>,
    digest: Digest,
    waits: bool,
    streams: bool,
    pub(crate) exports: ActorExports,
    pub(crate) pre: InstancePre<StoreData>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} {})", self.manifest.component.name, self.digest)
    }
}

impl Image {
    /// Returns the manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the hash of the component.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns `true` if it may wait for answers, which needs a stack of its own.
    #[must_use]
    pub const fn waits(&self) -> bool {
        self.waits
    }

    /// Returns `true` if it imports the `streams` interface.
    pub(crate) const fn streams(&self) -> bool {
        self.streams
    }

    pub(crate) fn setting(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(String::as_str)
    }
}

/// Compiled code, which can be used with several manifests.
#[derive(Clone)]
pub(crate) struct CompiledComponent {
    component: Component,
    imports: Vec<String>,
    exports: Vec<String>,
}

/// Compiles a component, which takes milliseconds to seconds, unless the code is in the cache
/// directory.
pub(crate) fn compile(
    host: &Host,
    digest: Digest,
    class: EngineClass,
    bytes: &[u8],
) -> Result<CompiledComponent, LoadError> {
    let directory = host.code_directory();
    let limits = host.limits();
    let engine = host.engines().get(class, limits);
    let engine = engine.map_err(|text| LoadError::Host { text })?;
    if let Some(component) = directory.and_then(|directory| directory.read(engine, digest, class)) {
        return Ok(CompiledComponent::of(component));
    }
    if bytes.starts_with(CORE_MODULE_MAGIC) {
        return Err(LoadError::Module);
    }
    let component = Component::new(engine, bytes).map_err(|error| compile_error(&error))?;
    host.count_compilation();
    if let Some(directory) = directory {
        directory.write(&component, digest, class);
    }
    Ok(CompiledComponent::of(component))
}

/// The first bytes of a core module; a component has a different version number after the magic.
const CORE_MODULE_MAGIC: &[u8] = b"\0asm\x01\0\0\0";

/// Classifies an error of the engine. Errors of the pool have no type of their own, but their texts
/// name the limits, which never occur in texts of the validator.
fn compile_error(error: &wasmtime::Error) -> LoadError {
    const LIMITS: [&str; 3] = [
        "exceeds the configured maximum",
        "exceeds the limit of",
        "exceeds the per-instance limit",
    ];
    let text = format!("{error:#}");
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match LIMITS.iter().any(|limit| one_line(&text).contains(limit)) {
        true => LoadError::Parts {
            text: one_line(&text)
                .replace(" in the pooling allocator", "")
                .replace(" does not fit in pooling allocator requirements", ""),
        },
        false => LoadError::Invalid { text },
    }
}

/// Makes all checks that need no compilation; returns the hash of the component.
pub(crate) fn check(host: &Host, bytes: &[u8], manifest: &Manifest) -> Result<Digest, LoadError> {
    manifest.check()?;
    let name = &manifest.component.name;
    host.limits()
        .caps
        .check(manifest)
        .inspect_err(|excessive| {
            audit(host, name, "caps", &excessive.to_string());
        })?;
    let max = host.limits().component;
    if bytes.len() > max {
        return Err(LoadError::Size {
            size: bytes.len(),
            max,
        });
    }
    let found = Digest::of(bytes);
    let pinned = manifest.component.sha256;
    if let Some(pinned) = pinned.filter(|pinned| *pinned != found) {
        audit(host, name, "sha256", &found.to_string());
        return Err(LoadError::Digest { pinned, found });
    }
    let trusted = host
        .limits()
        .trust
        .check_with_digest(manifest, bytes, found);
    trusted.inspect_err(|error| audit(host, name, "signer", &error.to_string()))?;
    Ok(found)
}

/// Returns the advice for an import that no host has and no manifest can grant.
fn advice(import: &str) -> &'static str {
    if import.starts_with("wasi:") {
        return "to be built without WASI, which the host does not provide";
    }
    match import.starts_with(PACKAGE) {
        true => "to be built for version 0.1.0 of the contract",
        false => "to be built without it: the host provides only the interfaces of the contract",
    }
}

/// Logs the denied imports. If there are too many, the last line counts the rest.
fn log_denied(host: &Host, component: &str, refused: &[DeniedImport]) {
    const GRANT: &str = "import";
    let (now, lines) = (Instant::now(), host.audit_lines());
    let most = LINES_PER_SECOND as usize;
    let each = match refused.len() > most {
        true => most - 1,
        false => refused.len(),
    };
    for DeniedImport { import, needs } in &refused[..each] {
        if let Some(omitted) = lines.take(now) {
            let (grant, what) = (GRANT, printable(import));
            tracing::warn!(target: AUDIT, component, grant, what, needs, omitted, "refused");
        }
    }
    lines.omit((refused.len() - each) as u64);
    if refused.len() > each
        && let Some(omitted) = lines.take(now)
    {
        let (grant, what) = (GRANT, "more imports");
        tracing::warn!(target: AUDIT, component, grant, what, omitted, "refused");
    }
    for _ in refused {
        metric::refused(component, GRANT);
    }
}

impl CompiledComponent {
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

    /// Returns the compiled component.
    pub(crate) const fn component(&self) -> &Component {
        &self.component
    }

    /// Returns the size of the code in bytes.
    pub(crate) fn code_size(&self) -> usize {
        let range = self.component.image_range();
        (range.end as usize).saturating_sub(range.start as usize)
    }

    /// Returns the name of an interface of the contract without package and version, or the whole
    /// name of another import.
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
            let interface = Self::interface(import);
            let missing = match interface == import {
                true => Some(advice(import)),
                false => manifest.grant.missing(interface, configured),
            };
            (import.clone(), missing)
        });
        each.collect()
    }

    fn waits(&self) -> bool {
        self.imports_interface("rpc")
    }

    fn imports_interface(&self, interface: &str) -> bool {
        let mut imports = self.imports.iter();
        imports.any(|import| Self::interface(import) == interface)
    }

    pub(crate) fn inspect(
        &self,
        bytes: &[u8],
        manifest: &Manifest,
        class: EngineClass,
    ) -> Inspection {
        Inspection {
            digest: Digest::of(bytes),
            size: bytes.len(),
            signer: manifest.component.signer,
            imports: self.imports(manifest),
            grants: manifest.grant.list(),
            exports: self.exports.clone(),
            engine: class.name(),
            waits: self.waits(),
        }
    }

    /// Checks grants and exports, and links.
    pub(crate) fn image(
        &self,
        host: &Host,
        digest: Digest,
        manifest: Manifest,
    ) -> Result<Image, LoadError> {
        let refused = self
            .imports(&manifest)
            .into_iter()
            .filter_map(|(import, needs)| needs.map(|needs| DeniedImport { import, needs }));
        let refused: Vec<_> = refused.collect();
        if !refused.is_empty() {
            log_denied(host, &manifest.component.name, &refused);
            return Err(LoadError::Denied(refused));
        }
        let exports = ActorExports::find(&self.component);
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
            streams: self.imports_interface("streams"),
            manifest,
            digest,
            exports,
            pre,
        })
    }
}
