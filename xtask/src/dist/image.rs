//! An image for container engines: the image layout of the OCI Image Specification 1.1 in one
//! archive, made without an engine.
//!
//! It contains the programs, the configuration with all defaults, and the shared libraries of this
//! machine that the programs need; no shell and nothing else. Like the other files it is a function
//! of the commit and of these libraries.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Release, copy};
use crate::package::empty;
use crate::project;
use crate::{Outcome, step};

/// The end of the name of the archive.
pub(super) const ENDING: &str = ".oci.tar";

/// Numbers of the user and the group that run the node.
const USER: &str = "65532:65532";

/// The folder of the node's data, in which it starts.
const STATE: &str = "var/lib/strowger";
/// The folder of its control socket.
const RUN: &str = "run/strowger";
/// The folders to which it may write.
const WRITABLE: [&str; 3] = [STATE, RUN, "tmp"];

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The command and the user of an unpacked image.
pub(super) struct Image {
    /// Entry point and arguments.
    pub(super) command: Vec<String>,
    /// Numbers of the user and the group.
    pub(super) user: String,
}

/// Packs the programs below `prefix`, with the configuration in `config`, and returns the name of
/// the archive.
pub(super) fn pack(
    folder: &Path,
    prefix: &Path,
    config: &str,
    release: &Release,
) -> Result<String, String> {
    let layout = folder.join("image");
    let blobs = layout.join("blobs/sha256");
    empty(&layout)?;
    make_folder(&blobs)?;
    let root = folder.join("image-root");
    empty(&root)?;
    fill(&root, prefix, config)?;
    let layer = folder.join("layer.tar");
    pack_layer(&root, &layer, release)?;
    remove(&root)?;
    let uncompressed = digest(&layer)?;
    step::run(
        Command::new("gzip")
            .args(["--no-name", "--force"])
            .arg(&layer),
    )?;
    let layer = add_file(&blobs, &folder.join("layer.tar.gz"), LAYER)?;
    let config = image_config(release, &uncompressed)?;
    let config = add_json(&blobs, &config, CONFIG)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [layer],
    });
    let mut manifest = add_json(&blobs, &manifest, MANIFEST)?;
    manifest["annotations"] =
        json!({ "org.opencontainers.image.ref.name": format!("strowger:{}", release.version) });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    project::write(&layout.join("index.json"), index.to_string())?;
    let version = json!({ "imageLayoutVersion": "1.0.0" });
    project::write(&layout.join("oci-layout"), version.to_string())?;
    let file = format!("strowger-{}-{}{ENDING}", release.version, release.target);
    let mut tar = release.tar();
    tar.args(["--owner=0", "--group=0", "-cf"])
        .arg(folder.join(&file));
    step::run(
        tar.args(["blobs", "index.json", "oci-layout"])
            .current_dir(&layout),
    )?;
    remove(&layout)?;
    Ok(file)
}

/// Fills the root of the image.
fn fill(root: &Path, prefix: &Path, config: &str) -> Outcome {
    let mut libraries = BTreeSet::new();
    for program in ["bin/strowger", "bin/strowger-pfcp"] {
        let from = prefix.join(program);
        copy_into(root, &from, &Path::new("usr").join(program))?;
        let needed = step::output(Command::new("ldd").arg(&from))?;
        libraries.extend(library_paths(&needed));
    }
    for library in libraries {
        let inside = library.strip_prefix("/").unwrap_or(&library);
        copy_into(root, &library, inside)?;
    }
    let documents = "share/doc/strowger";
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "VERSION", "sbom.cdx.json"] {
        let file = Path::new(documents).join(file);
        copy_into(root, &prefix.join(&file), &Path::new("usr").join(&file))?;
    }
    let file = root.join("etc/strowger/node.toml");
    make_folder(file.parent().unwrap_or(root))?;
    project::write(&file, config)?;
    project::write(
        &root.join("etc/passwd"),
        format!("strowger:x:{USER}::/{STATE}:/sbin/nologin\n"),
    )?;
    WRITABLE
        .iter()
        .try_for_each(|folder| make_folder(&root.join(folder)))
}

/// Returns the paths of the libraries that `ldd` lists: what stands behind the arrow, or the loader
/// itself. Libraries of the kernel have no path.
fn library_paths(listed: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let found = line.split_once("=> ").map_or(line, |(_, found)| found);
        let path = found.trim().split(' ').next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    listed.lines().filter_map(path).collect()
}

/// Packs the files of root first, then the folders of the user that runs the node.
fn pack_layer(root: &Path, layer: &Path, release: &Release) -> Outcome {
    let mut all = release.tar();
    all.args(["--owner=0", "--group=0", "--anchored", "-cf"])
        .arg(layer);
    all.args(WRITABLE.map(|folder| format!("--exclude={folder}")));
    all.args(names(root)?);
    step::run(all.current_dir(root))?;
    let (user, group) = USER.split_once(':').unwrap_or((USER, USER));
    let mut own = release.tar();
    own.args([format!("--owner={user}"), format!("--group={group}")]);
    own.arg("-rf").arg(layer).args(WRITABLE);
    step::run(own.current_dir(root))
}

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<OsString>, String> {
    let failed = |error: std::io::Error| format!("cannot list {}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names: Vec<OsString> = names.collect::<Result<_, _>>().map_err(failed)?;
    names.sort();
    Ok(names)
}

fn image_config(release: &Release, uncompressed: &str) -> Result<Value, String> {
    let mut date = Command::new("date");
    date.args(["--utc", "+%Y-%m-%dT%H:%M:%SZ"]);
    let created = step::output(date.arg(format!("--date=@{}", release.seconds)))?;
    let created = created.trim();
    let architecture = release.target.split('-').next().unwrap_or_default();
    // The specification uses the names of Go.
    let architecture = match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let control = format!("/{RUN}/control.sock");
    Ok(json!({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "ExposedPorts": { "8805/udp": {} },
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["strowger"],
            "Cmd": ["run", "--config", super::install::CONFIG, "--control", control],
            "Volumes": { format!("/{STATE}"): {} },
            "WorkingDir": format!("/{STATE}"),
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "strowger",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                "org.opencontainers.image.source": "https://github.com/strowger/strowger",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [uncompressed] },
        "history": [{ "created": created, "created_by": "cargo xtask dist" }],
    }))
}

/// Unpacks the files of an image into `root`, and compares every digest and size on the way.
pub(super) fn unpack(archive: &Path, root: &Path) -> Result<Image, String> {
    let layout = root.with_extension("layout");
    for folder in [&layout, root] {
        make_folder(folder)?;
    }
    let mut tar = Command::new("tar");
    step::run(tar.arg("-xf").arg(archive).arg("-C").arg(&layout))?;
    let index = read_json(&layout.join("index.json"))?;
    let manifest = read_json(&blob(&layout, &index["manifests"][0])?)?;
    let config = read_json(&blob(&layout, &manifest["config"])?)?;
    for layer in manifest["layers"].as_array().into_iter().flatten() {
        let mut tar = Command::new("tar");
        tar.args(["-xzpf"])
            .arg(blob(&layout, layer)?)
            .arg("--numeric-owner");
        step::run(tar.arg("-C").arg(root))?;
    }
    let config = &config["config"];
    let words = |key: &str| -> Vec<String> {
        let words = config[key].as_array().into_iter().flatten();
        words
            .filter_map(|word| Some(word.as_str()?.to_owned()))
            .collect()
    };
    Ok(Image {
        command: [words("Entrypoint"), words("Cmd")].concat(),
        user: config["User"].as_str().unwrap_or_default().to_owned(),
    })
}

/// Returns the path of a blob, after a look at its contents.
fn blob(layout: &Path, descriptor: &Value) -> Result<PathBuf, String> {
    let named = descriptor["digest"].as_str().unwrap_or_default();
    let path = layout.join("blobs").join(named.replacen(':', "/", 1));
    let found = describe(&path, descriptor["mediaType"].as_str().unwrap_or_default())?;
    match found["digest"] == *named && found["size"] == descriptor["size"] {
        true => Ok(path),
        false => Err(format!("the image has {found} where it names {descriptor}")),
    }
}

fn add_json(blobs: &Path, value: &Value, media_type: &str) -> Result<Value, String> {
    let file = blobs.join("new");
    project::write(&file, value.to_string())?;
    add_file(blobs, &file, media_type)
}

/// Moves a file to the blobs, and returns its descriptor.
fn add_file(blobs: &Path, file: &Path, media_type: &str) -> Result<Value, String> {
    let descriptor = describe(file, media_type)?;
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    let blob = blobs.join(digest.trim_start_matches("sha256:"));
    std::fs::rename(file, &blob)
        .map_err(|error| format!("cannot move {}: {error}", file.display()))?;
    Ok(descriptor)
}

fn describe(file: &Path, media_type: &str) -> Result<Value, String> {
    let size = std::fs::metadata(file).map(|found| found.len());
    let size = size.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Ok(json!({ "mediaType": media_type, "digest": digest(file)?, "size": size }))
}

fn digest(file: &Path) -> Result<String, String> {
    let said = step::output(Command::new("sha256sum").arg(file))?;
    let sum = said.split(' ').next().unwrap_or_default();
    Ok(format!("sha256:{sum}"))
}

fn read_json(file: &Path) -> Result<Value, String> {
    let parsed = serde_json::from_str(&project::read(file)?);
    parsed.map_err(|error| format!("{} is no JSON: {error}", file.display()))
}

fn copy_into(root: &Path, from: &Path, inside: &Path) -> Outcome {
    let to = root.join(inside);
    make_folder(to.parent().unwrap_or(root))?;
    copy(from, &to)
}

fn make_folder(folder: &Path) -> Outcome {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| format!("cannot make {}: {error}", folder.display()))
}

fn remove(folder: &Path) -> Outcome {
    let removed = std::fs::remove_dir_all(folder);
    removed.map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_lists() {
        let listed = "\tlinux-vdso.so.1 (0x00007f03)\n\
                      \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f03)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f03)\n";
        let found = library_paths(listed);
        let found: Vec<&str> = found.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(
            found,
            [
                "/lib/x86_64-linux-gnu/libm.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
        assert!(library_paths("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn changed_blob_is_refused() {
        let layout = std::env::temp_dir().join(format!("xtask-image-{}", std::process::id()));
        let blobs = layout.join("blobs/sha256");
        make_folder(&blobs).expect("a folder of our own");
        let descriptor = add_json(&blobs, &json!({ "a": 1 }), CONFIG).expect("it is added");
        let path = blob(&layout, &descriptor).expect("its digest is right");
        std::fs::write(&path, "{\"a\":2}").expect("its own file");
        let refused = blob(&layout, &descriptor).expect_err("its digest is wrong");
        remove(&layout).expect("it is there");
        assert!(refused.contains("where it names"), "{refused}");
    }
}
