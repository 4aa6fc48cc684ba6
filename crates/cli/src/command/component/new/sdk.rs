//! The crate that components are written with, embedded in the program: a package created in an
//! empty folder builds without a clone of the repository.

/// The name of the crate.
pub(super) const NAME: &str = "strowger-component";

/// The folder of the copy inside a package.
pub(super) const FOLDER: &str = "sdk";

/// The files of the copy.
pub(super) const FILES: [(&str, &str); 5] = [
    ("Cargo.toml", include_str!("../../../../embedded/sdk.toml")),
    ("src/lib.rs", include_str!("../../../../embedded/sdk.rs")),
    (
        "wit/component.wit",
        include_str!("../../../../embedded/component.wit"),
    ),
    ("LICENSE-MIT", include_str!("../../../../LICENSE-MIT")),
    ("LICENSE-APACHE", include_str!("../../../../LICENSE-APACHE")),
];

/// The lock file that the components of the repository are built with.
const LOCK_FILE: &str = include_str!("../../../../embedded/sdk.lock");

/// Returns the lock file of a package with its copy of the crate, so that it is built from the same
/// versions everywhere. Returns `None` if the package has the name of one of its dependencies,
/// since only cargo can write a lock file that tells the two apart.
pub(super) fn lock_file(name: &str) -> Option<String> {
    let mut blocks = LOCK_FILE.split("\n[[package]]\n");
    let head = blocks.next()?;
    // Of the packages without a source, only the crate itself is needed.
    let crates =
        blocks.filter(|block| block.contains("\nsource = ") || package_name(block) == NAME);
    let mut crates: Vec<String> = crates.map(|block| block.trim_end().to_owned()).collect();
    if crates.iter().any(|block| package_name(block) == name) {
        return None;
    }
    crates.push(format!(
        "name = \"{name}\"\nversion = \"0.1.0\"\ndependencies = [\n \"{NAME}\",\n]"
    ));
    // In cargo's order; the sort is stable, so packages with the same name keep theirs.
    crates.sort_by(|a, b| package_name(a).cmp(package_name(b)));
    let each = crates
        .iter()
        .map(|block| format!("\n[[package]]\n{block}\n"));
    Some(format!("{}\n{}", head.trim_end(), each.collect::<String>()))
}

fn package_name(block: &str) -> &str {
    let name = block.strip_prefix("name = \"");
    name.and_then(|rest| rest.split('"').next())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_contract_is_current() {
        let copy = include_str!("../../../../../../components/sdk/wit/component.wit");
        let contract = FILES.iter().find(|(name, _)| *name == "wit/component.wit");
        let (_, contract) = contract.expect("it is a file of the copy");
        assert!(
            *contract == copy,
            "copy wit/component.wit to components/sdk/wit"
        );
    }

    #[test]
    fn copied_crate_refers_to_no_file_outside_its_folder() {
        for (name, text) in FILES {
            if name.starts_with("LICENSE") {
                continue;
            }
            assert!(!text.contains("../"), "{name}");
            assert!(!text.contains("workspace = true"), "{name}");
            assert!(!text.contains("git = "), "{name}");
        }
    }

    #[test]
    fn lock_file_has_exactly_the_needed_packages() {
        let lock = lock_file("hello").expect("no crate has this name");
        let parsed: toml::Table = lock.parse().expect("it is TOML");
        let packages = parsed["package"].as_array().expect("packages");
        let names = packages
            .iter()
            .map(|one| one["name"].as_str().expect("text"));
        let names: Vec<&str> = names.collect();
        assert!(names.is_sorted(), "{names:?}");
        let needs = |package: &toml::Value| -> Vec<String> {
            let list = package.get("dependencies").and_then(toml::Value::as_array);
            let list = list.into_iter().flatten().filter_map(toml::Value::as_str);
            // A name that several packages share is followed by a version.
            list.map(|one| one.split(' ').next().unwrap_or(one).to_owned())
                .collect()
        };
        let mut needed = vec!["hello".to_owned()];
        for package in packages {
            needed.extend(needs(package));
            assert_eq!(
                package.get("source").is_none(),
                ["hello", NAME].contains(&package["name"].as_str().expect("text"))
            );
        }
        for name in &needed {
            assert!(names.contains(&name.as_str()), "{name} is missing");
        }
        for name in names {
            assert!(needed.iter().any(|one| one == name), "{name} is not needed");
        }
        assert_eq!(lock_file("anyhow"), None);
    }
}
