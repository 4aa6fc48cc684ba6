//! Packages: permitted imports, published metadata, and permitted dependencies.

use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use super::Finding;
use crate::project::Package;

/// Our packages, each with those of our packages that it may import. No package imports the binary.
const FLOORS: &[(&str, &[&str])] = &[
    ("strowger-macros", &[]),
    ("strowger-seeded-bug", &[]),
    ("strowger", &["strowger-macros", "strowger-seeded-bug"]),
    ("strowger-pfcp", &["strowger-seeded-bug"]),
    (
        "strowger-pfcp-node",
        &["strowger", "strowger-pfcp", "strowger-seeded-bug"],
    ),
    ("strowger-gateway", &["strowger"]),
    ("strowger-wasm", &["strowger", "strowger-seeded-bug"]),
    ("strowger-tools", &["strowger"]),
    (
        "strowger-cli",
        &[
            "strowger",
            "strowger-pfcp",
            "strowger-pfcp-node",
            "strowger-gateway",
            "strowger-tools",
            "strowger-wasm",
        ],
    ),
    (
        "strowger-examples",
        &[
            "strowger",
            "strowger-pfcp",
            "strowger-pfcp-node",
            "strowger-tools",
        ],
    ),
    (
        "strowger-examples-code",
        &["strowger", "strowger-tools", "strowger-wasm"],
    ),
    ("strowger-benches", &["strowger", "strowger-pfcp"]),
    ("xtask", &[]),
];

/// Packages without I/O, clock, async and command line, with all permitted dependencies, including
/// those of their tests.
const SMALL: &[(&str, &[&str])] = &[(
    "strowger-pfcp",
    &[
        "litemap",
        "proptest",
        "rand_xoshiro",
        "rustc-hash",
        "serde_json",
        "strowger-pfcp",
        "strowger-seeded-bug",
        "thiserror",
    ],
)];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks that packages that must stay small have no dependencies besides those of their list.
pub(super) fn check_small(ours: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, may) in SMALL {
        for package in ours.iter().filter(|package| package.name == *name) {
            for asked in package
                .asks_for
                .iter()
                .filter(|one| !may.contains(&one.as_str()))
            {
                let what = format!("`{name}` is to be small and may not bring in `{asked}`");
                findings.push(Finding::new(&package.manifest, 1, "small", what));
            }
        }
    }
    findings
}

/// Checks that imports point down. A package's tests may depend on the package itself, with its
/// features.
pub(super) fn check_floors(ours: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in ours {
        let mut found = |what: String| {
            findings.push(Finding::new(&package.manifest, 1, "floor", what));
        };
        let Some((_, may)) = FLOORS.iter().find(|(name, _)| *name == package.name) else {
            found(format!(
                "`{}` stands on no floor: name it in packages.rs",
                package.name
            ));
            continue;
        };
        let ours_asked = package
            .asks_for
            .iter()
            .filter(|name| ours.iter().any(|one| one.name == **name));
        // Tests of a package may depend on the package itself, with its test kit.
        let others = ours_asked.filter(|name| **name != package.name);
        for name in others.filter(|name| !may.contains(&name.as_str())) {
            found(format!("`{}` may not import `{name}`", package.name));
        }
    }
    findings
}

/// Checks the metadata that a registry shows for a package.
pub(super) fn check_metadata(ours: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let empty = |text: &Option<String>| text.as_ref().is_none_or(|text| text.trim().is_empty());
    for package in ours {
        let mut missing = Vec::new();
        if empty(&package.description) {
            missing.push("description");
        }
        if empty(&package.licence) {
            missing.push("license");
        }
        if package.publishes && package.name == "xtask" {
            missing.push("publish = false");
        }
        for what in missing {
            let what = format!("`{}` lacks `{what}`", package.name);
            findings.push(Finding::new(&package.manifest, 1, "metadata", what));
        }
    }
    findings
}

/// Checks that locked packages come from the public registry.
pub(super) fn check_lock(path: &str, text: &str) -> Vec<Finding> {
    let sources = text.lines().enumerate().filter_map(|(at, line)| {
        line.strip_prefix("source = \"")
            .map(|rest| (at, rest.trim_end_matches('"')))
    });
    sources
        .filter(|(_, source)| *source != CRATES_IO)
        .map(|(at, source)| Finding::new(path, at + 1, "registry", format!("from `{source}`")))
        .collect()
}

/// The parts of `deny.toml` that are checked without `cargo deny`.
#[derive(Deserialize)]
struct Policy {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    wrappers: Vec<String>,
}

/// Checks licences and bans of `deny.toml`, without a network and without `cargo deny`.
///
/// A banned package is accepted if one of its `wrappers` is present; `cargo deny` also checks
/// whether another package depends on it.
pub(super) fn check_policy(theirs: &[Package], policy: &str) -> Result<Vec<Finding>, String> {
    let policy: Policy = toml::from_str(policy).map_err(|error| format!("deny.toml: {error}"))?;
    let allowed = policy.licenses.allow.iter().map(|licence| {
        Licensee::parse(licence).map_err(|error| format!("deny.toml: `{licence}`: {error}"))
    });
    let allowed = allowed.collect::<Result<Vec<_>, _>>()?;
    let is_present = |wrapper: &String| theirs.iter().any(|one| one.name == *wrapper);
    let mut findings = Vec::new();
    for package in theirs {
        let mut found = |rule, what: String| {
            let what = format!("{} {}: {what}", package.name, package.version);
            findings.push(Finding::new("deny.toml", 1, rule, what));
        };
        let licence = package.licence.as_deref().unwrap_or("none");
        if !satisfies(licence, &allowed) {
            found("licence", format!("licence `{licence}` is not allowed"));
        }
        let mut bans = policy.bans.deny.iter();
        if bans.any(|ban| ban.name == package.name && !ban.wrappers.iter().any(is_present)) {
            found("banned", "this package is banned".to_owned());
        }
    }
    Ok(findings)
}

/// Returns `true` if an SPDX expression can be satisfied with the allowed licences.
fn satisfies(expression: &str, allowed: &[Licensee]) -> bool {
    // Older manifests separate alternatives by `/`.
    Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|asked| allowed.iter().any(|licence| licence.satisfies(asked)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, asks_for: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            asks_for: asks_for.iter().map(|&one| one.to_owned()).collect(),
            licence: Some("MIT".to_owned()),
            description: Some("Something.".to_owned()),
            ..Package::default()
        }
    }

    #[test]
    fn import_that_points_up_is_found() {
        let runtime = package("strowger", &["tokio", "strowger"]);
        let pfcp = package("strowger-pfcp", &["strowger"]);
        let gateway = package("strowger-gateway", &["strowger", "strowger-cli"]);
        let cli = package("strowger-cli", &["strowger", "strowger-gateway"]);
        let found = check_floors(&[runtime, pfcp, gateway, cli]);
        let said: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            said,
            [
                "`strowger-pfcp` may not import `strowger`",
                "`strowger-gateway` may not import `strowger-cli`",
            ],
        );
    }

    #[test]
    fn a_small_package_that_grows_is_found() {
        let found = check_small(&[package("strowger-pfcp", &["thiserror", "tokio"])]);
        let said: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            said,
            ["`strowger-pfcp` is to be small and may not bring in `tokio`"]
        );
        assert_eq!(check_small(&[package("strowger", &["tokio"])]), []);
    }

    #[test]
    fn package_without_a_floor_is_found() {
        assert_eq!(check_floors(&[package("strowger-extra", &[])]).len(), 1);
    }

    #[test]
    fn package_without_metadata_is_found() {
        let bare = Package {
            name: "strowger".to_owned(),
            ..Package::default()
        };
        assert_eq!(check_metadata(&[bare]).len(), 2);
        assert_eq!(check_metadata(&[package("strowger", &[])]), []);
    }

    #[test]
    fn locked_package_from_elsewhere_is_found() {
        let lock = "name = \"a\"\nsource = \"registry+https://example.org/index\"\n";
        assert_eq!(check_lock("Cargo.lock", lock)[0].line, 2);
        assert_eq!(
            check_lock("Cargo.lock", &format!("source = \"{CRATES_IO}\"\n")),
            []
        );
    }

    #[test]
    fn licence_expressions_are_read() {
        let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception"]
            .map(|licence| Licensee::parse(licence).expect("a licence"));
        for good in [
            "MIT",
            "MIT/GPL-2.0",
            "GPL-2.0 OR (MIT AND MIT)",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(satisfies(good, &allowed), "{good}");
        }
        for bad in [
            "GPL-2.0",
            "MIT AND GPL-2.0",
            "Apache-2.0",
            "(MIT OR GPL-2.0) AND GPL-2.0",
            "",
            "MIT MIT",
        ] {
            assert!(!satisfies(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn forbidden_package_is_found() {
        let policy = "[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [{ crate = \"bad\" }]";
        let good = package("good", &[]);
        let bad = Package {
            licence: None,
            ..package("bad", &[])
        };
        let found = check_policy(&[good, bad], policy).expect("the policy parses");
        let rules: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, ["licence", "banned"]);
    }

    #[test]
    fn forbidden_package_may_come_with_its_wrapper() {
        let policy = "[licenses]\nallow = [\"MIT\"]\n\
                      [bans]\ndeny = [{ crate = \"bad\", wrappers = [\"machine\"] }]";
        let found = |theirs: &[Package]| check_policy(theirs, policy).expect("it parses").len();
        assert_eq!(found(&[package("bad", &[])]), 1);
        assert_eq!(found(&[package("bad", &[]), package("machine", &[])]), 0);
    }
}
