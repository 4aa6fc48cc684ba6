//! `cargo xtask package`: the packages as registries would get them, and fresh projects outside of
//! the workspace that use them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project::{self, Project};
use crate::step::{self, Step};
use crate::{Outcome, process, typescript};

/// Maximum size of a package on crates.io, in bytes.
const SIZE_LIMIT: u64 = 10 << 20;

/// Files that every package has, and the files of the root that they are copies of.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Runs all steps.
pub(crate) fn run(project: &Project) -> Outcome {
    step::run_all(steps(project).into(), false)
}

/// Returns the steps, in their order: the second uses what the first has packed.
pub(crate) fn steps(project: &Project) -> [Step<'_>; 3] {
    [
        Step::new("package", "cargo xtask ci package", || {
            pack(project).map(Some)
        }),
        Step::new("fresh-crate", "cargo xtask ci fresh-crate", || {
            use_crates(project).map(Some)
        }),
        Step::new("fresh-npm", "cargo xtask ci fresh-npm", || {
            use_tarball(project).map(Some)
        }),
    ]
}

/// Packs and builds the crates, each after those that it depends on, and checks their contents.
fn pack(project: &Project) -> Result<String, String> {
    let (ours, _) = project.packages()?;
    let published = ours.iter().filter(|package| package.publishes);
    // A rehearsal of `publish` keeps no archives.
    let mut package = project.cargo();
    package.args(["package", "--locked", "--allow-dirty", "--quiet"]);
    package.args(published.flat_map(|package| ["--package", &package.name]));
    step::run(&mut package)?;
    let mut publish = project.cargo();
    publish.args(["publish", "--workspace", "--dry-run", "--no-verify"]);
    step::run(publish.args(["--locked", "--allow-dirty", "--quiet"]))?;
    let crates = unpack(project)?;
    let mut wrong = Vec::new();
    for unpacked in &crates {
        let archive = project.target().join("package").join(unpacked.archive());
        let size = std::fs::metadata(&archive).map_or(0, |file| file.len());
        let large = (size > SIZE_LIMIT).then(|| format!("{size} bytes, limit {SIZE_LIMIT}"));
        let found = check(project.root(), &unpacked.folder)?;
        let found = found.into_iter().chain(large);
        wrong.extend(found.map(|what| format!("{}: {what}", unpacked.name)));
    }
    match wrong.is_empty() {
        true => Ok(format!("{} crates", crates.len())),
        false => Err(wrong.join("\n")),
    }
}

/// Lists what a package lacks, and files that its users do not need.
fn check(root: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for licence in LICENCES {
        // A link would be packed as the path that it leads to.
        let is_file = std::fs::symlink_metadata(folder.join(licence)).is_ok_and(|it| it.is_file());
        let text = project::read(&root.join(licence))?;
        if !is_file || project::read(&folder.join(licence))? != text {
            wrong.push(format!("{licence} is not that of the root"));
        }
    }
    if !folder.join("README.md").is_file() {
        wrong.push("no README.md".to_owned());
    }
    for extra in ["tests", "fixtures", "examples", "benches"] {
        if folder.join(extra).exists() {
            wrong.push(format!("users do not need {extra}"));
        }
    }
    Ok(wrong)
}

/// A package that was packed and unpacked again.
struct UnpackedCrate {
    name: String,
    version: String,
    folder: PathBuf,
}

impl UnpackedCrate {
    fn archive(&self) -> String {
        format!("{}-{}.crate", self.name, self.version)
    }
}

/// Unpacks the archives of all published crates anew, and returns them by name.
fn unpack(project: &Project) -> Result<Vec<UnpackedCrate>, String> {
    let place = project.target().join("fresh/crates");
    empty(&place)?;
    let (ours, _) = project.packages()?;
    let mut crates = Vec::new();
    for package in ours.into_iter().filter(|package| package.publishes) {
        let unpacked = UnpackedCrate {
            folder: place.join(format!("{}-{}", package.name, package.version)),
            name: package.name,
            version: package.version,
        };
        let archive = project.target().join("package").join(unpacked.archive());
        let mut tar = Command::new("tar");
        step::run(tar.arg("-xzf").arg(archive).arg("-C").arg(&place))?;
        crates.push(unpacked);
    }
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

/// Builds and runs the examples of the READMEs in a project that depends on the unpacked crates.
fn use_crates(project: &Project) -> Result<String, String> {
    let crates = unpack(project)?;
    let folder = project.target().join("fresh/program");
    empty(&folder.join("src/bin"))?;
    let mut programs = Vec::new();
    for unpacked in &crates {
        let readme = project::read(&unpacked.folder.join("README.md"))?;
        if let Some(program) = first_block(&readme, "rust") {
            let file = folder.join("src/bin").join(format!("{}.rs", unpacked.name));
            project::write(&file, program)?;
            programs.push(unpacked.name.as_str());
        }
    }
    project::write(&folder.join("Cargo.toml"), manifest(&crates, &programs))?;
    // The versions that the tests ran with; cargo removes those that are not used.
    let lock = project::read(&project.root().join("Cargo.lock"))?;
    project::write(&folder.join("Cargo.lock"), lock)?;
    for program in &programs {
        let mut cargo = Command::new("cargo");
        cargo.args(["run", "--quiet", "--bin", program]);
        // Dependencies are built already.
        cargo.env("CARGO_TARGET_DIR", project.target());
        step::run(cargo.current_dir(&folder))?;
    }
    Ok(format!("ran {}", programs.join(", ")))
}

/// Returns the manifest of a program that depends on the crates with an example. The patches stand
/// for the registry.
fn manifest(crates: &[UnpackedCrate], programs: &[&str]) -> String {
    let mut text = "[workspace]\n\n[package]\nname = \"fresh\"\nedition = \"2024\"\n\n\
                    [dependencies]\ntempfile = \"3\"\ntoml = \"1\"\n\
                    tokio = { version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }\n"
        .to_owned();
    let is_used = |unpacked: &&UnpackedCrate| programs.contains(&unpacked.name.as_str());
    for UnpackedCrate { name, version, .. } in crates.iter().filter(is_used) {
        text += &format!("{name} = \"{version}\"\n");
    }
    text += "\n[patch.crates-io]\n";
    for UnpackedCrate { name, folder, .. } in crates {
        text += &format!("{name} = {{ path = {:?} }}\n", folder.display().to_string());
    }
    text
}

/// Installs the npm tarball in a fresh project, and runs the README's first example on every
/// JavaScript runtime that the package promises.
fn use_tarball(project: &Project) -> Result<String, String> {
    let package = project.root().join("packages/strowger");
    if process::output(Command::new("npm").arg("--version")).is_err() {
        return match project::strict() {
            true => Err("CI=true and no npm: install Node 20 or later".to_owned()),
            false => Ok("left out: no npm, install Node 20 or later".to_owned()),
        };
    }
    typescript::prepare(&package)?;
    let npm = |args: &[&str]| {
        let mut npm = Command::new("npm");
        npm.arg("--ignore-scripts").args(args).current_dir(&package);
        npm
    };
    step::run(&mut npm(&["publish", "--dry-run", "--silent"]))?;
    let folder = project.target().join("fresh/npm");
    empty(&folder)?;
    let mut pack = npm(&["pack", "--silent", "--pack-destination"]);
    let archive = step::output(pack.arg(&folder))?;
    project::write(&folder.join("package.json"), "{ \"type\": \"module\" }")?;
    let mut install = Command::new("npm");
    install.args(["install", "--offline", "--silent", archive.trim()]);
    step::run(install.current_dir(&folder))?;
    let readme = project::read(&folder.join("node_modules/strowger/README.md"))?;
    let program = first_block(&readme, "ts").ok_or("the README has no example")?;
    project::write(&folder.join("first.ts"), program)?;
    let mut tsc = Command::new("node");
    tsc.arg(package.join("node_modules/typescript/bin/tsc"));
    tsc.args(["--strict", "--module", "nodenext", "--target", "es2022"]);
    tsc.args(["--types", "node", "--typeRoots"]);
    tsc.arg(package.join("node_modules/@types")).arg("first.ts");
    step::run(tsc.current_dir(&folder))?;
    let mut ran = Vec::new();
    for (name, runtime) in runtimes(project, &package)? {
        let version = step::output(Command::new(&runtime[0]).arg("--version"))?;
        // Deno precedes it by its name.
        let version = version.split_whitespace().find(|word| word.contains('.'));
        let subject = format!("{name} {}", version.unwrap_or_default());
        let mut run = Command::new(&runtime[0]);
        run.args(&runtime[1..]).arg("first.js");
        let printed = step::output(run.current_dir(&folder))?;
        if printed.split_whitespace().ne(["42", "0", "40", "42"]) {
            return Err(format!(
                "the README's example prints on {subject}: {printed}"
            ));
        }
        ran.push(subject);
    }
    Ok(format!("ran on {}", ran.join(", ")))
}

/// Installs the JavaScript runtimes that the package promises, and returns the name and the command
/// of each. Bun is installed with the package, whose tests run on it.
fn runtimes(
    project: &Project,
    package: &Path,
) -> Result<[(&'static str, Vec<PathBuf>); 5], String> {
    let folder = project.root().join("interop/runtimes");
    step::run(Command::new("npm").arg("ci").current_dir(&folder))?;
    let installed = folder.join("node_modules");
    let node = |version: u8| {
        let program = installed.join(format!("node-{version}/bin/node"));
        ("Node", vec![program])
    };
    let bun = ("Bun", vec![package.join("node_modules/.bin/bun")]);
    let deno = vec![installed.join(".bin/deno"), PathBuf::from("run")];
    Ok([node(20), node(22), node(24), bun, ("Deno", deno)])
}

/// Returns the first block of a page in a language.
fn first_block<'a>(page: &'a str, language: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n```{language}\n"))?;
    rest.split_once("```\n").map(|(block, _)| block)
}

/// Creates a folder, without what an earlier run left there.
pub(crate) fn empty(folder: &Path) -> Outcome {
    let failed = |error: std::io::Error| format!("cannot make {}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_block_of_the_language_is_the_example() {
        let page = "a\n```sh\nls\n```\n\n```rust\nfn main() {}\n```\n\n```rust\nb\n```\n";
        assert_eq!(first_block(page, "rust"), Some("fn main() {}\n"));
        assert_eq!(first_block(page, "ts"), None);
    }

    #[test]
    fn fresh_manifest_takes_every_crate_from_its_folder_and_depends_on_those_with_an_example() {
        let unpacked = |name: &str| UnpackedCrate {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            folder: Path::new("/fresh").join(name),
        };
        let text = manifest(&[unpacked("a"), unpacked("b")], &["b"]);
        let parsed: toml::Table = text.parse().expect("it is TOML");
        let dependencies = parsed["dependencies"].as_table().expect("a table");
        assert!(dependencies.contains_key("b") && !dependencies.contains_key("a"));
        let patches = &parsed["patch"]["crates-io"];
        assert_eq!(patches["a"]["path"].as_str(), Some("/fresh/a"));
        assert_eq!(patches["b"]["path"].as_str(), Some("/fresh/b"));
    }

    #[test]
    fn package_without_licences_or_with_tests_is_refused() {
        let place = std::env::temp_dir().join(format!("xtask-package-{}", std::process::id()));
        let (root, folder) = (place.join("root"), place.join("package"));
        empty(&root).expect("a folder of our own");
        empty(&folder.join("tests")).expect("a folder of our own");
        for licence in LICENCES {
            project::write(&root.join(licence), "text").expect("a file of our own");
        }
        project::write(&folder.join("LICENSE-MIT"), "text").expect("a file of our own");
        let found = check(&root, &folder).expect("all can be read");
        std::fs::remove_dir_all(&place).expect("it is there");
        assert_eq!(
            found,
            [
                "LICENSE-APACHE is not that of the root",
                "no README.md",
                "users do not need tests"
            ]
        );
    }
}
