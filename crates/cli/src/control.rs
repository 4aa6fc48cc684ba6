//! Connections to a running node: the path of its control socket, and calls.

use std::fs::{self, DirBuilder};
use std::future::Future;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use strowger::FaultCode;
use strowger_gateway::client::{Client, ClientError};

use crate::exit::{CliResult, Failure};

/// The argument that selects a node.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ControlArgs {
    /// Control socket of the node [default: $XDG_RUNTIME_DIR/strowger.sock, else
    /// /tmp/strowger-UID/strowger.sock].
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
}

impl ControlArgs {
    /// Returns the path of the node's socket.
    pub(crate) fn path(&self) -> CliResult<PathBuf> {
        self.control.clone().map_or_else(default_path, Ok)
    }

    /// Connects to the node.
    pub(crate) async fn connect(&self) -> CliResult<Client> {
        let path = self.path()?;
        Client::connect(&path)
            .await
            .map_err(|error| client_failure(&error))
    }
}

/// Runs a conversation with a node on a single-threaded runtime.
pub(crate) fn block_on<T>(conversation: impl Future<Output = CliResult<T>>) -> CliResult<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::outside(format!("cannot start the async runtime: {error}")))?;
    runtime.block_on(conversation)
}

/// Converts a failed call to a failure for the user.
pub(crate) fn client_failure(error: &ClientError) -> Failure {
    match error {
        ClientError::NoNode { .. } => Failure::outside(error.to_string()).hint(
            "start a node with `strowger run` or `strowger demo`, or pass the path of its socket: \
             --control SOCKET",
        ),
        ClientError::Fault(fault) => match fault.code {
            FaultCode::UnknownTarget | FaultCode::Forbidden => Failure::check(&fault.message),
            FaultCode::BadRequest => Failure::input(&fault.message),
            _ => Failure::outside(&fault.message),
        },
        ClientError::InvalidDeadline(_) => Failure::input(error.to_string()),
        _ => Failure::outside(error.to_string()),
    }
}

/// Returns the default socket of a node, after creating its directory if needed. The directory must
/// belong to this user and be closed to others.
pub(crate) fn default_socket() -> CliResult<PathBuf> {
    let path = default_path()?;
    let Some(folder) = path.parent() else {
        return Ok(path);
    };
    if !folder.exists() {
        let made = DirBuilder::new().mode(0o700).create(folder);
        // Another node may have created it at the same time; it is checked below.
        if let Err(error) = made
            && !folder.exists()
        {
            return Err(Failure::file(folder, &error));
        }
    }
    let found = fs::symlink_metadata(folder).map_err(|error| Failure::file(folder, &error))?;
    if !found.is_dir() || found.uid() != user_id()? || found.mode() & 0o077 != 0 {
        let text = format!(
            "{}: not a directory owned by and private to this user",
            folder.display()
        );
        return Err(Failure::outside(text).hint("remove it, or use --control SOCKET"));
    }
    Ok(path)
}

/// Returns a socket path beside the default one, for a further node.
pub(crate) fn process_socket(default: &Path) -> PathBuf {
    default.with_file_name(format!("strowger-{}.sock", std::process::id()))
}

/// Returns the path at which nodes create their socket, and clients look for it.
fn default_path() -> CliResult<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = match runtime.filter(|folder| folder.is_absolute() && folder.is_dir()) {
        Some(folder) => folder,
        None => std::env::temp_dir().join(format!("strowger-{}", user_id()?)),
    };
    Ok(folder.join("strowger.sock"))
}

/// Returns the user id of this process.
fn user_id() -> CliResult<u32> {
    let ourselves = Path::new("/proc/self");
    let found = fs::metadata(ourselves).map_err(|error| Failure::file(ourselves, &error))?;
    Ok(found.uid())
}
