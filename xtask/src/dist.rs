//! `cargo xtask dist`: the files of a release, each unpacked again and looked at.
//!
//! A tarball has the layout of an installation prefix, the Debian package the same files below
//! `/usr`, and the image what a container needs. All are functions of the commit: their times are
//! that of the commit, and their files are owned by root.

mod image;
mod install;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::package::empty;
use crate::project::{self, Project};
use crate::{Outcome, process, step, term};

/// Options of `cargo xtask dist`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct DistArgs {
    /// Use this prebuilt binary, and `strowger-pfcp` beside it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// The package with the binary.
const PACKAGE: &str = "strowger-cli";
const UNIT: &str = include_str!("dist/strowger.service");

/// The variable that the binary takes its `--version` from; crates/cli/src/command.rs reads it.
const BUILD: &str = "STROWGER_BUILD";

/// The sizes that the programs may have, in bytes.
const MAX_SIZES: [(&str, u64); 2] = [("strowger", 45_000_000), ("strowger-pfcp", 15_000_000)];

/// The commit that is packed.
struct Release {
    /// The version of the package.
    version: String,
    /// The text of `--version`: with the commit and its date.
    build: String,
    /// The time of the commit, in seconds since 1970.
    seconds: String,
    /// The target, such as `x86_64-unknown-linux-gnu`.
    target: String,
}

pub(crate) fn run(project: &Project, args: &DistArgs) -> Outcome {
    let said = make(project, args.binary.as_deref())?;
    term::note(&said);
    Ok(())
}

/// Makes the files in the target folder, and checks them. Returns their names.
pub(crate) fn make(project: &Project, binary: Option<&Path>) -> Result<String, String> {
    let release = Release::of(project)?;
    let binary = match binary {
        Some(binary) => project.root().join(binary),
        None => build(project, &release)?,
    };
    let folder = project.target().join("artifacts");
    empty(&folder)?;
    let name = format!("strowger-{}-{}", release.version, release.target);
    let prefix = folder.join(&name);
    fill(project, &release, &binary, &prefix)?;
    let config = step::output(Command::new(&binary).args(["init", "-"]))?;
    let mut made = vec![
        tarball(&folder, &name, &release)?,
        image::pack(&folder, &prefix, &config, &release)?,
    ];
    let mut left_out = Vec::new();
    match is_installed("dpkg-deb") {
        true => made.push(debian(project, &folder, &prefix, &config, &release)?),
        false => left_out.push("no dpkg-deb, so no Debian package".to_owned()),
    }
    let mut sums = Command::new("sha256sum");
    let sums = step::output(sums.args(&made).current_dir(&folder))?;
    project::write(&folder.join("SHA256SUMS"), sums)?;
    let is_ours = args_version(&binary)? == format!("strowger {}", release.build);
    if !is_ours {
        let why = "the binary is of another commit or was built without cargo xtask dist";
        left_out.push(why.to_owned());
    }
    check(&folder, &name, &made)?;
    left_out.extend(install::check(&folder, &made, UNIT)?);
    let left_out = left_out.iter().map(|what| format!("; left out: {what}"));
    let left_out: String = left_out.collect();
    Ok(format!(
        "{}: {}{left_out}",
        folder.display(),
        made.join(", ")
    ))
}

impl Release {
    fn of(project: &Project) -> Result<Self, String> {
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            step::output(git.args(args).current_dir(project.root()))
                .map(|text| text.trim().to_owned())
        };
        let (ours, _) = project.packages()?;
        let package = ours.into_iter().find(|package| package.name == PACKAGE);
        let version = package.ok_or("no package strowger-cli")?.version;
        let commit = git(&[
            "describe",
            "--always",
            "--exclude=*",
            "--abbrev=8",
            "--dirty",
        ])?;
        let date = git(&["show", "--no-patch", "--format=%cs", "HEAD"])?;
        let said = step::output(Command::new("rustc").arg("-vV"))?;
        let target = said.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(Self {
            build: format!("{version} ({commit} {date})"),
            version,
            seconds: git(&["show", "--no-patch", "--format=%ct", "HEAD"])?,
            target: target.ok_or("rustc -vV names no host")?.to_owned(),
        })
    }

    /// Returns a tar whose archives depend on the contents and the time of the commit only.
    fn tar(&self) -> Command {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--numeric-owner", "--mode=go-w"]);
        tar.arg(format!("--mtime=@{}", self.seconds));
        tar
    }
}

/// Builds the binaries and returns the path of `strowger`; the other one is beside it.
fn build(project: &Project, release: &Release) -> Result<PathBuf, String> {
    let mut cargo = project.cargo();
    cargo.args(["build", "--profile", "dist", "--locked"]);
    cargo.args(["--package", PACKAGE, "--package", "strowger-pfcp-cli"]);
    step::run(cargo.env(BUILD, &release.build))?;
    let binary = project.target().join("dist/strowger");
    for (program, limit) in MAX_SIZES {
        let file = binary.with_file_name(program);
        let size = std::fs::metadata(&file).map(|found| found.len());
        let size = size.map_err(|error| format!("{}: {error}", file.display()))?;
        if size > limit {
            return Err(format!(
                "{}: {size} bytes, limit is {limit}; see whether it is stripped, and profile.dist \
                 in Cargo.toml",
                file.display()
            ));
        }
    }
    Ok(binary)
}

/// Fills the folder of an installation.
fn fill(project: &Project, release: &Release, binary: &Path, prefix: &Path) -> Outcome {
    let place = |folder: &str| {
        let folder = prefix.join(folder);
        let made = std::fs::create_dir_all(&folder);
        made.map(|()| folder.clone())
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))
    };
    let bin = place("bin")?;
    copy(binary, &bin.join("strowger"))?;
    copy(
        &binary.with_file_name("strowger-pfcp"),
        &bin.join("strowger-pfcp"),
    )?;
    let doc = place("share/doc/strowger")?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"] {
        copy(&project.root().join(file), &doc.join(file))?;
    }
    project::write(&doc.join("VERSION"), format!("{}\n", release.build))?;
    let bill = bill(project, release)?;
    project::write(&doc.join("sbom.cdx.json"), format!("{bill:#}\n"))?;
    let man = place("share/man/man1")?;
    step::run(Command::new(binary).arg("man").arg(&man))?;
    for program in ["strowger", "strowger-pfcp"] {
        for (shell, folder, file) in [
            ("bash", "share/bash-completion/completions", program.into()),
            ("zsh", "share/zsh/site-functions", format!("_{program}")),
            (
                "fish",
                "share/fish/vendor_completions.d",
                format!("{program}.fish"),
            ),
        ] {
            let mut completions = Command::new(binary.with_file_name(program));
            let script = step::output(completions.args(["completions", shell]))?;
            project::write(&place(folder)?.join(file), script)?;
        }
    }
    let unit = place("lib/systemd/system")?.join("strowger.service");
    project::write(&unit, UNIT)
}

fn copy(from: &Path, to: &Path) -> Outcome {
    let copied = std::fs::copy(from, to).map(drop);
    copied.map_err(|error| {
        format!(
            "cannot copy {} to {}: {error}",
            from.display(),
            to.display()
        )
    })
}

fn bill(project: &Project, release: &Release) -> Result<Value, String> {
    let mut cargo = project.cargo();
    cargo.args(["metadata", "--format-version", "1", "--locked"]);
    let metadata = step::output(cargo.args(["--filter-platform", &release.target]))?;
    let metadata = serde_json::from_str(&metadata);
    let metadata = metadata.map_err(|error| format!("cargo metadata wrote no JSON: {error}"))?;
    let lock = project::read(&project.root().join("Cargo.lock"))?;
    sbom::render(&metadata, &lock, PACKAGE)
}

/// Packs a folder.
fn tarball(folder: &Path, name: &str, release: &Release) -> Result<String, String> {
    let file = format!("{name}.tar.gz");
    let mut tar = release.tar();
    tar.args(["--owner=0", "--group=0"]);
    tar.args(["--use-compress-program=gzip --no-name", "-cf", &file, name]);
    step::run(tar.current_dir(folder))?;
    Ok(file)
}

/// Packs a Debian package: the prefix below `/usr`, and a configuration with all defaults.
fn debian(
    project: &Project,
    folder: &Path,
    prefix: &Path,
    config: &str,
    release: &Release,
) -> Result<String, String> {
    let root = folder.join("debian");
    let place = |path: &str| {
        let path = root.join(path);
        let made = std::fs::create_dir_all(&path);
        made.map(|()| path.clone())
            .map_err(|error| format!("cannot make {}: {error}", path.display()))
    };
    place("")?;
    step::run(
        Command::new("cp")
            .arg("-r")
            .arg(prefix)
            .arg(root.join("usr")),
    )?;
    project::write(&place("etc/strowger")?.join("node.toml"), config)?;
    let control = place("DEBIAN")?;
    project::write(&control.join("conffiles"), "/etc/strowger/node.toml\n")?;
    let (ours, _) = project.packages()?;
    let package = ours.iter().find(|package| package.name == PACKAGE);
    let about = package.and_then(|package| package.description.clone());
    let architecture = step::output(Command::new("dpkg").arg("--print-architecture"))?;
    let (version, architecture) = (&release.version, architecture.trim());
    let text = format!(
        "Package: strowger\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: The Strowger developers\n\
         Section: net\nPriority: optional\nDepends: libc6, libgcc-s1\n\
         Homepage: https://github.com/strowger/strowger\nDescription: {}\n",
        about.unwrap_or_default().trim_end_matches('.'),
    );
    project::write(&control.join("control"), text)?;
    let file = format!("strowger_{version}_{architecture}.deb");
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--root-owner-group", "--build", "debian", &file]);
    deb.env("SOURCE_DATE_EPOCH", &release.seconds);
    step::run(deb.current_dir(folder))?;
    std::fs::remove_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(file)
}

/// Unpacks the files, compares their checksums, and runs what is in them.
fn check(folder: &Path, name: &str, made: &[String]) -> Outcome {
    let mut sums = Command::new("sha256sum");
    step::run(
        sums.args(["--check", "--quiet", "SHA256SUMS"])
            .current_dir(folder),
    )?;
    let root = folder.join("unpacked");
    empty(&root)?;
    let mut prefixes = Vec::new();
    for file in made.iter().filter(|file| !file.ends_with(image::ENDING)) {
        let (program, args): (_, &[&str]) = match file.ends_with(".deb") {
            true => ("dpkg-deb", &["--extract", file, "unpacked/debian"]),
            false => ("tar", &["-xzf", file, "-C", "unpacked"]),
        };
        step::run(Command::new(program).args(args).current_dir(folder))?;
        prefixes.push(match file.ends_with(".deb") {
            true => root.join("debian/usr"),
            false => root.join(name),
        });
    }
    let mut wrong = Vec::new();
    for prefix in &prefixes {
        let found = check_prefix(prefix)?;
        let prefix = prefix.display();
        wrong.extend(found.into_iter().map(|what| format!("{prefix}: {what}")));
    }
    let config = root.join("debian/etc/strowger/node.toml");
    if config.exists() {
        let program = root.join("debian/usr/bin/strowger");
        step::run(Command::new(program).arg("check").arg(config))?;
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

/// Lists what is missing or wrong below an unpacked prefix.
fn check_prefix(prefix: &Path) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for program in ["strowger", "strowger-pfcp"] {
        let version = args_version(&prefix.join("bin").join(program))?;
        if !version.starts_with(&format!("{program} ")) {
            wrong.push(format!("bin/{program} --version prints `{version}`"));
        }
    }
    for (file, part) in [
        ("share/man/man1/strowger.1", ".TH strowger 1"),
        ("share/man/man1/strowger-pfcp-decode.1", ".SH OPTIONS"),
        (
            "share/bash-completion/completions/strowger",
            "-o default strowger\n",
        ),
        (
            "share/bash-completion/completions/strowger-pfcp",
            "-o default strowger-pfcp\n",
        ),
        ("share/zsh/site-functions/_strowger", "#compdef strowger"),
        (
            "share/zsh/site-functions/_strowger-pfcp",
            "#compdef strowger-pfcp",
        ),
        (
            "share/fish/vendor_completions.d/strowger.fish",
            "complete -c strowger",
        ),
        (
            "share/fish/vendor_completions.d/strowger-pfcp.fish",
            "complete -c strowger-pfcp",
        ),
        ("share/doc/strowger/sbom.cdx.json", "pkg:cargo/tokio@"),
        (
            "share/doc/strowger/LICENSE-MIT",
            "Permission is hereby granted",
        ),
        ("share/doc/strowger/LICENSE-APACHE", "Apache License"),
        (
            "lib/systemd/system/strowger.service",
            "ExecStart=strowger run",
        ),
    ] {
        match std::fs::read_to_string(prefix.join(file)) {
            Ok(text) if text.contains(part) => (),
            Ok(_) => wrong.push(format!("{file} has no `{part}`")),
            Err(error) => wrong.push(format!("{file}: {error}")),
        }
    }
    Ok(wrong)
}

/// Returns the line that a binary prints for `--version`.
fn args_version(binary: &Path) -> Result<String, String> {
    let said = step::output(Command::new(binary).arg("--version"))?;
    Ok(said.trim().to_owned())
}

fn is_installed(program: &str) -> bool {
    process::output(Command::new(program).arg("--version")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_runs_without_rights_and_writes_below_its_own_folders_only() {
        for line in [
            "DynamicUser=yes",
            "CapabilityBoundingSet=",
            "NoNewPrivileges=yes",
            "ProtectSystem=strict",
            "SystemCallFilter=@system-service",
        ] {
            assert!(UNIT.lines().any(|one| one == line), "{line}");
        }
        // It would keep components from running.
        assert!(
            !UNIT
                .lines()
                .any(|one| one.starts_with("MemoryDenyWriteExecute"))
        );
    }

    #[test]
    fn prefix_without_its_files_is_refused() {
        let prefix = std::env::temp_dir().join(format!("xtask-dist-{}", std::process::id()));
        empty(&prefix.join("bin")).expect("a folder of our own");
        for program in ["strowger", "strowger-pfcp"] {
            let link = prefix.join("bin").join(program);
            std::os::unix::fs::symlink("/bin/echo", link).expect("a link");
        }
        let found = check_prefix(&prefix).expect("echo runs");
        std::fs::remove_dir_all(&prefix).expect("it is there");
        assert_eq!(found.len(), 14, "{found:?}");
        assert!(
            found.iter().any(|what| what.contains("strowger.service")),
            "{found:?}"
        );
    }
}
