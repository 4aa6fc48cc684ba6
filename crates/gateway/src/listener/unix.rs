//! A Unix socket that is created atomically and open only to its owner.
//!
//! The socket is bound inside a directory that only its owner may enter, gets its mode there, and
//! is then linked to its name, which fails if the name is taken. Another user can never
//! connect, and no existing socket is overwritten.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::gateway::OpenError;

/// Number of sockets bound by this process, which keeps concurrent calls from sharing a directory.
static SOCKETS_BOUND: AtomicU64 = AtomicU64::new(0);

/// Binds a socket at `path`, with mode 0600.
pub(super) fn bind(path: &Path) -> Result<UnixListener, OpenError> {
    let failed = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    remove_stale_socket(path)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let private = parent.unwrap_or_else(|| Path::new(".")).join(format!(
        ".s{}-{}",
        std::process::id(),
        SOCKETS_BOUND.fetch_add(1, Ordering::Relaxed)
    ));
    // An earlier process with the same number may have left its directory.
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

/// Removes a stale socket, on which no process listens.
fn remove_stale_socket(path: &Path) -> Result<(), OpenError> {
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
