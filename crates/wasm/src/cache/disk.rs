//! A directory of compiled components, for the next process.
//!
//! Compiled code is executed as it is found, so the directory must be private to the user of the
//! process; the host checks that when it starts. Each file names its component, its engine and the
//! hash of its code. A file that is damaged, or belongs to another component or another version of
//! the engine, is compiled again and overwritten.
//!
//! ```text
//!  magic (8) │ hash of the component (32) │ engine (1) │ hash of the code (32) │ code
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::digest::Digest;
use crate::engine::EngineClass;

/// A directory of compiled components.
#[derive(Debug)]
pub(crate) struct CodeDirectory {
    path: PathBuf,
    /// Maximum size of all files together, in bytes.
    max: usize,
}

const MAGIC: &[u8; 8] = b"strowgr1";
const HEADER_LEN: usize = 8 + 32 + 1 + 32;
const EXTENSION: &str = "compiled";

impl CodeDirectory {
    /// Opens the directory, and creates it if it does not exist.
    pub(crate) fn open(path: &Path, max: usize) -> Result<Self, String> {
        let failed = |error: io::Error| format!("directory {}: {error}", path.display());
        create_private_dir(path).map_err(failed)?;
        if !is_private(path).map_err(failed)? {
            let path = path.display();
            return Err(format!(
                "the directory {path} of compiled components is writable by other users; run \
                 chmod 700"
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            max,
        })
    }

    fn file_path(&self, digest: Digest, class: EngineClass) -> PathBuf {
        self.path
            .join(format!("{digest}-{}.{EXTENSION}", class.index()))
    }

    /// Reads the compiled code of a component for an engine, if it is there and intact.
    pub(crate) fn read(
        &self,
        engine: &Engine,
        digest: Digest,
        class: EngineClass,
    ) -> Option<Component> {
        let path = self.file_path(digest, class);
        let found = read(&path, self.max).ok()?;
        let Some(code) = verified_code(&found, digest, class) else {
            tracing::warn!(file = %path.display(), "invalid file in code cache");
            return None;
        };
        match deserialize(engine, code) {
            Ok(component) => {
                // The modification time is the time of last use: `evict` removes the oldest
                // first.
                let now = SystemTime::now();
                drop(File::open(&path).and_then(|file| file.set_modified(now)));
                Some(component)
            }
            Err(error) => {
                let file = path.display();
                let error = format!("{error:#}");
                tracing::info!(%file, %error, "cannot use file in code cache");
                None
            }
        }
    }

    /// Writes a compiled component. A failure is logged only: the component can run without it.
    pub(crate) fn write(&self, component: &Component, digest: Digest, class: EngineClass) {
        let path = self.file_path(digest, class);
        let written = component
            .serialize()
            .map_err(|error| io::Error::other(format!("{error:#}")))
            .and_then(|code| self.write_atomically(&path, &header(&code, digest, class), &code));
        if let Err(error) = written {
            tracing::warn!(file = %path.display(), %error, "cannot write to code cache");
        }
    }

    fn write_atomically(&self, path: &Path, head: &[u8], code: &[u8]) -> io::Result<()> {
        let bytes = head.len() + code.len();
        if bytes > self.max {
            return Ok(());
        }
        self.evict(bytes)?;
        // Write to a temporary file and rename it, so that no reader sees a partial file.
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = File::create(&aside)?;
        let written = file.write_all(head).and_then(|()| file.write_all(code));
        let written = written.and_then(|()| fs::rename(&aside, path));
        if written.is_err() {
            drop(fs::remove_file(&aside));
        }
        written
    }

    /// Removes the least recently used files until `bytes` more bytes fit.
    fn evict(&self, bytes: usize) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if Path::new(&entry.file_name())
                .extension()
                .is_some_and(|end| end == EXTENSION)
            {
                let metadata = entry.metadata()?;
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        files.sort();
        let mut there: u64 = files.iter().map(|(_, len, _)| len).sum();
        for (_, len, path) in files {
            if there + bytes as u64 <= self.max as u64 {
                break;
            }
            fs::remove_file(path)?;
            there -= len;
        }
        Ok(())
    }
}

fn read(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn header(code: &[u8], digest: Digest, class: EngineClass) -> Vec<u8> {
    let class = [u8::try_from(class.index()).unwrap_or(u8::MAX)];
    let sum = Sha256::digest(code);
    [&MAGIC[..], digest.as_bytes(), &class, &sum].concat()
}

/// Returns the code in a file, if its header is right.
fn verified_code(found: &[u8], digest: Digest, class: EngineClass) -> Option<&[u8]> {
    let (before, code) = found.split_at_checked(HEADER_LEN)?;
    (before == header(code, digest, class)).then_some(code)
}

#[expect(unsafe_code, reason = "the machine's own form of code is run as it is")]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must be the output of `Component::serialize`. This program wrote them into
    // a directory that no other user may write to, they match the hash that was stored beside them,
    // and wasmtime checks that they come from its own version and configuration.
    unsafe { Component::deserialize(engine, code) }
}

#[cfg(unix)]
fn create_private_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

#[cfg(not(unix))]
fn create_private_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Returns `true` if the directory belongs to this user and no other user may write to it.
#[cfg(unix)]
fn is_private(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    // A new file belongs to the effective user of the process.
    let probe = path.join(format!("{}.probe", std::process::id()));
    let own = File::create(&probe)?.metadata()?.uid();
    fs::remove_file(&probe)?;
    let metadata = fs::metadata(path)?;
    Ok(metadata.uid() == own && metadata.mode() & 0o022 == 0)
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> io::Result<bool> {
    Ok(true)
}
