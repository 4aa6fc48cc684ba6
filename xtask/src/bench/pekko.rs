//! The peer of durable actors on the virtual machine of Java: Pekko Persistence, built with Maven.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::project::Project;
use crate::{process, step, term};

const FOLDER: &str = "bench/durable/pekko";

/// The programs that it needs, each with the argument that prints its version.
const TOOLS: [(&str, &str); 3] = [("java", "-version"), ("javac", "-version"), ("mvn", "-v")];

/// Builds the peer, and returns the environment variable by which the program that measures durable
/// actors finds it. A peer that cannot be built is left out with a note.
pub(super) fn build(project: &Project) -> Option<(&'static str, PathBuf)> {
    let left_out = |error: &String| term::note(&format!("Pekko is left out: {error}"));
    let jars = build_jars(project).inspect_err(left_out).ok()?;
    Some(("STROWGER_BENCH_PEKKO", jars))
}

/// Returns the folder with the jars.
fn build_jars(project: &Project) -> Result<PathBuf, String> {
    let is_missing = |(tool, version): &&(&str, &str)| {
        let mut command = Command::new(tool);
        command.arg(version);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        !process::status(&mut command).is_ok_and(|status| status.success())
    };
    if let Some((tool, _)) = TOOLS.iter().find(is_missing) {
        return Err(format!(
            "no {tool}: install a JDK 17 or later and Maven (Debian: default-jdk-headless, maven)"
        ));
    }
    let folder = project.root().join(FOLDER);
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "package"]);
    step::run(maven.current_dir(&folder))?;
    Ok(folder.join("target"))
}

/// Adds the versions of the peer to those of the bench workspace.
pub(super) fn add_versions(project: &Project, mut versions: Value) -> Value {
    let pom = project.root().join(FOLDER).join("pom.xml");
    let pom = std::fs::read_to_string(pom).unwrap_or_default();
    for (name, property) in [
        ("pekko", "pekko.version"),
        ("pekko-persistence-jdbc", "pekko.jdbc.version"),
    ] {
        if let Some(version) = parse_property(&pom, property) {
            versions[name] = json!(version);
        }
    }
    let java = step::output(Command::new("java").arg("--version")).unwrap_or_default();
    // The first line is `openjdk 17.0.15 2025-04-15`.
    if let Some(version) = java.split_whitespace().nth(1) {
        versions["Java"] = json!(version);
    }
    versions
}

/// Parses the value of a property in a project file of Maven.
fn parse_property<'a>(pom: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = pom.split_once(&format!("<{name}>"))?;
    let (value, _) = value.split_once(&format!("</{name}>"))?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pekko_versions_are_read_from_the_project_file() {
        let project = Project::locate().expect("the repository");
        let versions = add_versions(&project, json!({}));
        for peer in ["pekko", "pekko-persistence-jdbc"] {
            let version = versions[peer].as_str();
            let version = version.unwrap_or_else(|| panic!("no version of {peer}: {versions}"));
            assert!(version.starts_with(|first: char| first.is_ascii_digit()));
        }
        assert_eq!(parse_property("<a>1</a>", "b"), None);
    }
}
