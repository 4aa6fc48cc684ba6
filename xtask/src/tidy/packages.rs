//! Packages: permitted imports, published metadata, and permitted dependencies.

use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use super::Finding;
use crate::project::Package;

/// Our packages, each with those of our packages that it may import. No package imports the binary.
const PERMITTED_IMPORTS: &[(&str, &str)] = &[
    ("strowger-macros", ""),
    ("strowger-seeded-bug", ""),
    ("strowger", "strowger-macros strowger-seeded-bug"),
    ("strowger-pfcp", "strowger-seeded-bug"),
    ("strowger-durable", "strowger strowger-seeded-bug"),
    (
        "strowger-pfcp-node",
        "strowger strowger-durable strowger-pfcp strowger-seeded-bug",
    ),
    (
        "strowger-pfcp-cli",
        "strowger strowger-pfcp strowger-pfcp-node",
    ),
    ("strowger-gateway", "strowger"),
    ("strowger-wasm", "strowger strowger-seeded-bug"),
    ("strowger-tools", "strowger"),
    (
        "strowger-cli",
        "strowger strowger-durable strowger-pfcp strowger-pfcp-cli strowger-pfcp-node \
         strowger-gateway strowger-tools strowger-wasm",
    ),
    (
        "strowger-examples",
        "strowger strowger-durable strowger-pfcp strowger-pfcp-node strowger-tools",
    ),
    (
        "strowger-examples-code",
        "strowger strowger-tools strowger-wasm",
    ),
    ("strowger-benches", "strowger strowger-pfcp"),
    ("xtask", ""),
];

/// The package without I/O, clock, async and command line, and all permitted dependencies,
/// including those of its tests.
const SMALL_PACKAGE: &str = "strowger-pfcp";
const SMALL_IMPORTS: &str = "litemap proptest rand_xoshiro rustc-hash serde_json strowger-pfcp \
                             strowger-seeded-bug thiserror";

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks our packages: imports point down, a small package stays small, and the metadata that a
/// registry shows is there. A package's tests may depend on the package itself, with its features.
pub(super) fn check_ours(ours: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let empty = |text: &Option<String>| text.as_ref().is_none_or(|text| text.trim().is_empty());
    for package in ours {
        let name = package.name.as_str();
        let mut found = |rule, what: String| {
            findings.push(Finding::new(&package.manifest, 1, rule, what));
        };
        let is_in = |list: &str, asked: &str| list.split(' ').any(|one| one == asked);
        let floor = PERMITTED_IMPORTS.iter().find(|(one, _)| *one == name);
        if floor.is_none() {
            found(
                "floor",
                format!("`{name}` stands on no floor: name it in packages.rs"),
            );
        }
        for asked in &package.asks_for {
            let is_other = asked != name && ours.iter().any(|one| one.name == *asked);
            if is_other && floor.is_some_and(|(_, may)| !is_in(may, asked)) {
                found("floor", format!("`{name}` may not import `{asked}`"));
            }
            if name == SMALL_PACKAGE && !is_in(SMALL_IMPORTS, asked) {
                let what = format!("`{name}` is to be small and may not bring in `{asked}`");
                found("small", what);
            }
        }
        for (what, is_missing) in [
            ("description", empty(&package.description)),
            ("license", empty(&package.licence)),
            ("publish = false", package.publishes && name == "xtask"),
            ("README.md", package.publishes && !package.has_readme),
        ] {
            if is_missing {
                found("metadata", format!("`{name}` lacks `{what}`"));
            }
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
    fn bad_imports_and_missing_metadata_are_found() {
        let bare = Package {
            name: "strowger-macros".to_owned(),
            ..Package::default()
        };
        let ours = [
            package("strowger", &["tokio", "strowger"]),
            package("strowger-pfcp", &["strowger", "thiserror", "tokio"]),
            package("strowger-gateway", &["strowger", "strowger-cli"]),
            package("strowger-cli", &["strowger", "strowger-gateway"]),
            package("strowger-extra", &[]),
            bare,
            Package {
                publishes: true,
                ..package("strowger-tools", &[])
            },
        ];
        let found = check_ours(&ours);
        let said: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(
            said,
            [
                "`strowger-pfcp` may not import `strowger`",
                "`strowger-pfcp` is to be small and may not bring in `strowger`",
                "`strowger-pfcp` is to be small and may not bring in `tokio`",
                "`strowger-gateway` may not import `strowger-cli`",
                "`strowger-extra` stands on no floor: name it in packages.rs",
                "`strowger-macros` lacks `description`",
                "`strowger-macros` lacks `license`",
                "`strowger-tools` lacks `README.md`",
            ],
        );
    }

    #[test]
    fn locked_package_from_elsewhere_is_found() {
        let lock = "name = \"a\"\nsource = \"registry+https://example.org/index\"\n";
        assert_eq!(check_lock("Cargo.lock", lock)[0].line, 2);
        let lock = format!("source = \"{CRATES_IO}\"\n");
        assert_eq!(check_lock("Cargo.lock", &lock), []);
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
    fn forbidden_package_is_found_unless_its_wrapper_is_there() {
        let policy = "[licenses]\nallow = [\"MIT\"]\n\
                      [bans]\ndeny = [{ crate = \"bad\", wrappers = [\"machine\"] }]";
        let unlicensed = Package {
            licence: None,
            ..package("bad", &[])
        };
        for (theirs, rules) in [
            (
                vec![package("good", &[]), unlicensed],
                &["licence", "banned"][..],
            ),
            (vec![package("bad", &[])], &["banned"]),
            (vec![package("bad", &[]), package("machine", &[])], &[]),
        ] {
            let found = check_policy(&theirs, policy).expect("the policy parses");
            let found: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
            assert_eq!(found, rules);
        }
    }
}
