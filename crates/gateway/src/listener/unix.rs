//! A unix socket: taken in one step, open to its owner alone.
//!
//! The socket is bound inside a directory that only we may enter, gets its mode there, and is then
//! linked to its name, which fails if the name is taken: at no moment can another user connect,
//! and nobody's socket is overwritten.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::gateway::OpenError;

/// How many sockets this process has bound, so that two at a time do not share a folder.
static BOUND: AtomicU64 = AtomicU64::new(0);

/// Binds a socket at `path`, with mode 0600.
pub(super) fn bind(path: &Path) -> Result<UnixListener, OpenError> {
    let failed = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    make_way(path)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let private = parent.unwrap_or_else(|| Path::new(".")).join(format!(
        ".s{}-{}",
        std::process::id(),
        BOUND.fetch_add(1, Ordering::Relaxed)
    ));
    // A process of the same number may have left one.
    let _ = fs::remove_dir_all(&private);
    DirBuilder::new()
        .mode(0o700)
        .create(&private)
        .map_err(failed)?;
    let inside = private.join("s");
    let bound = UnixListener::bind(&inside).and_then(|listener| {
        fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        fs::hard_link(&inside, path)?;
        Ok(listener)
    });
    let _ = fs::remove_dir_all(&private);
    bound.map_err(failed)
}

/// Removes a socket that nobody answers.
fn make_way(path: &Path) -> Result<(), OpenError> {
    let path = || path.to_owned();
    let failed = |source| OpenError::Io {
        path: path(),
        source,
    };
    match fs::symlink_metadata(path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(OpenError::NotASocket { path: path() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path()) {
        Ok(_) => Err(OpenError::Live { path: path() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path()).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}
