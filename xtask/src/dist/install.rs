//! Installing the files of a release, each in a fresh root, and running the node there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::image;
use crate::package::empty;
use crate::{Outcome, process, project};

const SCRIPT: &str = include_str!("install.sh");

/// Time in which a file is installed, and a node started and stopped.
const LIMIT: Duration = Duration::from_secs(300);

/// Numbers of a user and a group without rights, which exist in every Debian.
const NOBODY: &str = "65534:65534";

/// The configuration in the Debian package and in the image.
pub(super) const CONFIG: &str = "/etc/strowger/node.toml";

/// An installation and the command that runs its node.
struct Installation {
    kind: &'static str,
    file: PathBuf,
    /// Numbers of the user and the group that run the node.
    user: String,
    config: &'static str,
    command: Vec<String>,
}

/// Installs and runs each file. Returns why nothing was installed, if this machine does not allow
/// it.
pub(super) fn check(folder: &Path, made: &[String], unit: &str) -> Result<Option<String>, String> {
    let probe = ["--mount", "true"];
    let may_mount = process::output(Command::new("unshare").args(probe));
    if !may_mount.is_ok_and(|output| output.status.success()) {
        let why = "nothing was installed in a fresh root, which needs root and unshare";
        return match project::strict() {
            true => Err(why.to_owned()),
            false => Ok(Some(why.to_owned())),
        };
    }
    for file in made {
        let work = folder.join("fresh");
        empty(&work)?;
        let found = installation(folder, file, unit, &work)?.run(&work);
        let removed = std::fs::remove_dir_all(&work);
        found.map_err(|error| format!("{file}, installed in a fresh root: {error}"))?;
        removed.map_err(|error| format!("cannot remove {}: {error}", work.display()))?;
    }
    Ok(None)
}

fn installation(
    folder: &Path,
    file: &str,
    unit: &str,
    work: &Path,
) -> Result<Installation, String> {
    let path = folder.join(file);
    let free_port = ["--port", "0"].map(str::to_owned);
    if file.ends_with(image::ENDING) {
        let root = work.join("image");
        let mut image = image::unpack(&path, &root)?;
        image.command.extend(free_port);
        return Ok(Installation {
            kind: "image",
            file: root,
            user: image.user,
            config: CONFIG,
            command: image.command,
        });
    }
    let is_debian = file.ends_with(".deb");
    let line = match is_debian {
        true => unit
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart="))
            .ok_or("the unit has no ExecStart")?,
        false => "strowger run --control /run/strowger/control.sock",
    };
    Ok(Installation {
        kind: if is_debian { "debian" } else { "tarball" },
        file: path,
        user: NOBODY.to_owned(),
        config: if is_debian { CONFIG } else { "" },
        command: line
            .split(' ')
            .map(str::to_owned)
            .chain(free_port)
            .collect(),
    })
}

impl Installation {
    fn run(&self, work: &Path) -> Outcome {
        let mut args = self.command.iter();
        args.find(|arg| *arg == "--control");
        let control = args.next().ok_or("no --control in the command")?;
        let mut script = Command::new("unshare");
        // Whatever the script leaves running ends with it, and nothing stays mounted.
        script.args(["--mount", "--pid", "--fork", "--kill-child"]);
        script.args(["sh", "-c", SCRIPT, "install.sh", self.kind]);
        script.arg(work).arg(&self.file);
        script.args([&self.user, control, self.config]);
        script.args(&self.command);
        let output = process::output_within(&mut script, LIMIT)?;
        let output = output.ok_or_else(|| format!("not over after {} s", LIMIT.as_secs()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}\n{}", output.status, said.trim_end()))
    }
}
