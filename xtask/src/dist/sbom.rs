//! The software bill of materials of the binary, in the JSON of CycloneDX.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Renders the packages that are linked into a program.
///
/// `metadata` is the output of `cargo metadata`, `lock` the text of the lock file, which has the
/// checksums.
pub(super) fn render(metadata: &Value, lock: &str, program: &str) -> Result<Value, String> {
    let packages: BTreeMap<&str, &Value> = by_id(&metadata["packages"]);
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let is_program = |package: &&&Value| package["name"] == program;
    let root = packages.values().find(is_program);
    let root = root.ok_or_else(|| format!("cargo metadata has no package {program}"))?;
    let sums = checksums(lock)?;
    let (mut components, mut dependencies) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    let mut next = vec![root["id"].as_str().unwrap_or_default()];
    while let Some(id) = next.pop() {
        let (Some(package), Some(node)) = (packages.get(id), nodes.get(id)) else {
            return Err(format!("cargo metadata does not resolve {id}"));
        };
        if !seen.insert(id) {
            continue;
        }
        let linked = linked(node);
        let refs = linked.iter().filter_map(|id| packages.get(id));
        let refs: BTreeSet<String> = refs.map(|package| url(package)).collect();
        dependencies.push(json!({ "ref": url(package), "dependsOn": refs }));
        components.push(component(package, &sums));
        next.extend(linked);
    }
    // The first is the program itself.
    let mut program = components.remove(0);
    program["type"] = json!("application");
    components.sort_by_key(|component| component["bom-ref"].to_string());
    dependencies.sort_by_key(|dependency| dependency["ref"].to_string());
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": program },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn by_id(list: &Value) -> BTreeMap<&str, &Value> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|entry| Some((entry["id"].as_str()?, entry)))
        .collect()
}

/// Returns the dependencies of a node that are neither for its tests nor for its build script.
fn linked(node: &Value) -> Vec<&str> {
    let dependencies = node["deps"].as_array().into_iter().flatten();
    let is_linked = |dependency: &&Value| {
        let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
        kinds.any(|kind| kind["kind"].is_null())
    };
    dependencies
        .filter(is_linked)
        .filter_map(|dependency| dependency["pkg"].as_str())
        .collect()
}

fn component(package: &Value, sums: &BTreeMap<String, String>) -> Value {
    let url = url(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": package["name"],
        "version": package["version"],
        "purl": url,
    });
    if let Some(licence) = package["license"].as_str() {
        // Old manifests separate alternatives by a slash.
        let licence = licence.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(sum) = sums.get(&url) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

fn url(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

/// Returns the checksums of a lock file by the URL of the package.
fn checksums(lock: &str) -> Result<BTreeMap<String, String>, String> {
    let lock: toml::Table = lock
        .parse()
        .map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let sum = |package: &toml::Value| {
        let text = |key| package.get(key).and_then(toml::Value::as_str);
        let url = format!("pkg:cargo/{}@{}", text("name")?, text("version")?);
        Some((url, text("checksum")?.to_owned()))
    };
    Ok(packages.into_iter().flatten().filter_map(sum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bill_lists_what_is_linked_with_licences_checksums_and_edges() {
        let package = |name: &str, licence: &str| {
            json!({ "id": name, "name": name,
            "version": "1.0.0", "license": licence })
        };
        let uses = |pkg: &str, kind: Value| json!({ "pkg": pkg, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                package("tool", "MIT"), package("used", "MIT/Apache-2.0"),
                package("tests", "MIT"), package("script", "MIT"),
            ],
            "resolve": { "nodes": [
                { "id": "tool", "deps": [
                    uses("used", json!(null)), uses("tests", json!("dev")),
                    uses("script", json!("build")),
                ] },
                { "id": "used", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"ab12\"\n";
        let bill = render(&metadata, lock, "tool").expect("it is resolved");
        assert_eq!(bill["metadata"]["component"]["type"], "application");
        let components = bill["components"].as_array().expect("a list");
        assert_eq!(components.len(), 1, "{components:?}");
        assert_eq!(components[0]["purl"], "pkg:cargo/used@1.0.0");
        assert_eq!(
            components[0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(components[0]["hashes"][0]["content"], "ab12");
        let edge = json!({ "ref": "pkg:cargo/tool@1.0.0", "dependsOn": ["pkg:cargo/used@1.0.0"] });
        assert_eq!(bill["dependencies"][0], edge);
        let error = render(&metadata, lock, "other").expect_err("there is none");
        assert!(error.contains("no package other"), "{error}");
    }
}
