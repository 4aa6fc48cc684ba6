//! Places and names of files.

use std::collections::BTreeSet;

use super::Finding;

/// Everything that may be in the root: files that a newcomer reads or a tool needs.
const ROOT_FILES: &str = "\
    .cargo .ci .github .gitignore ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md Cargo.lock \
    Cargo.toml LICENSE-APACHE LICENSE-MIT README.md SECURITY.md bench benches clippy.toml \
    components crates deny.toml docs examples fixtures fuzz interop packages rustfmt.toml \
    wit xtask";

/// Names that say nothing about the contents.
const VAGUE_NAMES: &[&str] = &[
    "core", "common", "utils", "util", "helpers", "types", "traits", "manager", "impl",
];

pub(super) fn check(files: &[String]) -> Vec<Finding> {
    let package_roots: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| {
            let mut manifests = ["Cargo.toml", "package.json"].into_iter();
            manifests.find_map(|name| file.strip_suffix(name))
        })
        .collect();
    let mut findings = Vec::new();
    for path in files {
        let top = path.split('/').next().unwrap_or(path);
        let mut found = |rule, what: &str| findings.push(Finding::new(path, 1, rule, what));
        if !ROOT_FILES.split(' ').any(|known| known == top) {
            found("root", "the root is a closed list (layout.rs)");
        }
        let (folder, name) = path
            .rsplit_once('/')
            .map_or(("", path.as_str()), |parts| parts);
        if name == "mod.rs" {
            found(
                "no-mod-rs",
                "use foo.rs beside foo/; tests share through a folder with a main.rs, or #[path]",
            );
        }
        if name.ends_with(".md") && !may_hold_prose(folder, &package_roots) {
            found(
                "prose",
                "prose belongs in docs/ or in the root of a package",
            );
        }
        if path.ends_with(".rs") || path.ends_with(".ts") {
            let stem = name.split('.').next().unwrap_or(name);
            for part in folder.split('/').chain([stem]) {
                if VAGUE_NAMES.contains(&part) {
                    let what = format!("`{part}` names no idea; say what it holds");
                    found("name", &what);
                }
            }
        }
    }
    findings
}

fn may_hold_prose(folder: &str, package_roots: &BTreeSet<&str>) -> bool {
    let of_package = package_roots.contains(format!("{folder}/").as_str());
    folder.is_empty() || of_package || in_tree(folder, "docs") || in_tree(folder, ".github")
}

fn in_tree(folder: &str, top: &str) -> bool {
    folder.split('/').next() == Some(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misplaced_and_misnamed_files_are_found() {
        for (files, rules) in [
            (
                &[
                    "README.md",
                    "docs/decisions/0001.md",
                    "crates/pfcp/src/ie/rule.rs",
                ][..],
                &[][..],
            ),
            (&["crates/pfcp/Cargo.toml", "crates/pfcp/README.md"], &[]),
            (
                &[
                    "packages/strowger/package.json",
                    "packages/strowger/README.md",
                ],
                &[],
            ),
            (&["STATUS.txt"], &["root"]),
            (&["plans/next.txt"], &["root"]),
            (&["crates/pfcp/src/ie/mod.rs"], &["no-mod-rs"]),
            (
                &["crates/pfcp/Cargo.toml", "crates/pfcp/src/NOTES.md"],
                &["prose"],
            ),
            (&["crates/pfcp/src/utils.rs"], &["name"]),
            (&["crates/pfcp/tests/common/node.rs"], &["name"]),
            (&["packages/strowger/src/types.ts"], &["name"]),
        ] {
            let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
            let found: Vec<&str> = check(&files).iter().map(|finding| finding.rule).collect();
            assert_eq!(found, rules, "{files:?}");
        }
    }
}
