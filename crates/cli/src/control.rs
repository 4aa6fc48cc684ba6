//! The way to a running node: where its control socket is, and how to ask there.

use std::fs::{self, DirBuilder};
use std::future::Future;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use strowger_gateway::{Client, ClientError, Code};

use crate::exit::{Done, Failure};

/// Which node to ask.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ControlArgs {
    /// The control socket of the node; found by itself if it is where nodes put it.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
}

impl ControlArgs {
    /// Where the socket of the node is.
    pub(crate) fn path(&self) -> Done<PathBuf> {
        self.control.clone().map_or_else(place, Ok)
    }

    /// Connects to the node.
    pub(crate) async fn connect(&self) -> Done<Client> {
        let path = self.path()?;
        Client::connect(&path).await.map_err(|error| failed(&error))
    }
}

/// Runs one conversation with a node on a thread of its own making.
pub(crate) fn block_on<T>(conversation: impl Future<Output = Done<T>>) -> Done<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::outside(format!("no runtime: {error}")))?;
    runtime.block_on(conversation)
}

/// What a call that failed means for the user.
pub(crate) fn failed(error: &ClientError) -> Failure {
    match error {
        ClientError::NoNode { .. } => Failure::outside(error.to_string()).hint(
            "start one with `strowger run` or `strowger demo`, or say where its socket is with \
             --control SOCKET",
        ),
        ClientError::Fault(fault) => match fault.code {
            Code::UnknownTarget => Failure::found(&fault.message),
            Code::BadRequest => Failure::input(&fault.message),
            _ => Failure::outside(&fault.message),
        },
        _ => Failure::outside(error.to_string()),
    }
}

/// The socket of a node that was not told where to put it; its folder is made, and is ours alone.
pub(crate) fn usual_socket() -> Done<PathBuf> {
    let path = place()?;
    let Some(folder) = path.parent() else {
        return Ok(path);
    };
    if !folder.exists() {
        let made = DirBuilder::new().mode(0o700).create(folder);
        // Another node may have made it at the same time; it is looked at below.
        if let Err(error) = made
            && !folder.exists()
        {
            return Err(Failure::file(folder, &error));
        }
    }
    let found = fs::symlink_metadata(folder).map_err(|error| Failure::file(folder, &error))?;
    if !found.is_dir() || found.uid() != user()? || found.mode() & 0o077 != 0 {
        let text = format!("{}: not a folder of ours alone", folder.display());
        return Err(Failure::outside(text).hint("remove it, or use --control SOCKET"));
    }
    Ok(path)
}

/// Another socket beside the usual one, for a further node.
pub(crate) fn own_socket(usual: &Path) -> PathBuf {
    usual.with_file_name(format!("strowger-{}.sock", std::process::id()))
}

/// Where nodes put their socket, and clients look for it.
fn place() -> Done<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = match runtime.filter(|folder| folder.is_absolute() && folder.is_dir()) {
        Some(folder) => folder,
        None => std::env::temp_dir().join(format!("strowger-{}", user()?)),
    };
    Ok(folder.join("strowger.sock"))
}

/// The number of the user that we are.
fn user() -> Done<u32> {
    let ourselves = Path::new("/proc/self");
    let found = fs::metadata(ourselves).map_err(|error| Failure::file(ourselves, &error))?;
    Ok(found.uid())
}
