//! What cargo knows about the workspace and its dependencies, reduced to what the checks ask for.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The packages of the workspace and all they resolve to, for every target.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
}

/// One package in one version.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    pub(crate) is_member: bool,
    /// The ids of what it needs to run or to be built; what only its tests need is left out.
    pub(crate) dependencies: Vec<String>,
}

impl Metadata {
    /// Reads the output of `cargo metadata --format-version 1`.
    pub(crate) fn parse(json: &str) -> Result<Self> {
        let root: Value = serde_json::from_str(json)?;
        let members = array(&root, "workspace_members")?;
        let mut dependencies = BTreeMap::new();
        for node in array(&root["resolve"], "nodes")? {
            dependencies.insert(text(node, "id")?, shipped_dependencies(node)?);
        }
        let packages = array(&root, "packages")?
            .iter()
            .map(|package| {
                let id = text(package, "id")?;
                Ok(Package {
                    name: text(package, "name")?,
                    version: text(package, "version")?,
                    licence: package["license"].as_str().map(str::to_owned),
                    is_member: members.iter().any(|member| member == id.as_str()),
                    dependencies: dependencies.remove(&id).unwrap_or_default(),
                    id,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self { packages })
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_member)
    }

    /// The packages that `package` depends on directly.
    pub(crate) fn dependencies<'a>(&'a self, package: &'a Package) -> impl Iterator<Item = &'a Package> {
        package.dependencies.iter().filter_map(|id| self.packages.iter().find(|package| package.id == *id))
    }
}

fn shipped_dependencies(node: &Value) -> Result<Vec<String>> {
    let mut dependencies = Vec::new();
    for dependency in array(node, "deps")? {
        let kinds = array(dependency, "dep_kinds")?;
        if kinds.iter().any(|kind| kind["kind"] != "dev") {
            dependencies.push(text(dependency, "pkg")?);
        }
    }
    Ok(dependencies)
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    let array = value[key].as_array().map(Vec::as_slice);
    array.with_context(|| format!("cargo metadata has no list {key}"))
}

fn text(value: &Value, key: &str) -> Result<String> {
    let text = value[key].as_str().map(str::to_owned);
    text.with_context(|| format!("cargo metadata has no text {key}"))
}

/// Metadata for tests of other modules, without cargo.
#[cfg(test)]
pub(crate) mod testing {
    use super::{Metadata, Package};

    /// Packages as `(name, names of dependencies)`; those named `locum…` are members. All are version 1
    /// under the MIT licence.
    pub(crate) fn metadata(rows: &[(&str, &[&str])]) -> Metadata {
        let packages = rows
            .iter()
            .map(|(name, dependencies)| Package {
                id: (*name).to_owned(),
                name: (*name).to_owned(),
                version: "1.0.0".to_owned(),
                licence: Some("MIT".to_owned()),
                is_member: name.starts_with("locum"),
                dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
            })
            .collect();
        Metadata { packages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_are_left_out() {
        let metadata = Metadata::parse(
            r#"{
                "packages": [
                    {"id": "a#1", "name": "a", "version": "1.0.0", "license": null},
                    {"id": "b#2", "name": "b", "version": "2.0.0", "license": "MIT"},
                    {"id": "c#3", "name": "c", "version": "3.0.0", "license": "ISC"}
                ],
                "workspace_members": ["a#1"],
                "resolve": {"nodes": [
                    {"id": "a#1", "deps": [
                        {"pkg": "b#2", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                        {"pkg": "c#3", "dep_kinds": [{"kind": "dev"}]}
                    ]},
                    {"id": "b#2", "deps": [
                        {"pkg": "c#3", "dep_kinds": [{"kind": "build"}]}
                    ]},
                    {"id": "c#3", "deps": []}
                ]}
            }"#,
        )
        .expect("well formed");
        let rows: Vec<_> = metadata
            .packages
            .iter()
            .map(|package| {
                let dependencies = metadata.dependencies(package);
                let names: Vec<&str> = dependencies.map(|package| package.name.as_str()).collect();
                (package.name.as_str(), package.is_member, names)
            })
            .collect();
        assert_eq!(rows, [("a", true, vec!["b"]), ("b", false, vec!["c"]), ("c", false, vec![])]);
    }

    #[test]
    fn a_missing_list_is_named() {
        let error = Metadata::parse("{}").expect_err("not metadata");
        assert_eq!(error.to_string(), "cargo metadata has no list workspace_members");
    }
}
