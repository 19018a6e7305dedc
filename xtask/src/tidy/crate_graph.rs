//! Which crate may depend on which. Each missing arrow makes a sentence of the architecture true: the core
//! cannot do input or output, the engine cannot know a door, and a door sees the engine only.

use std::collections::{BTreeSet, VecDeque};

use super::metadata::{Metadata, Package};
use super::report::Problem;

const RULE: &str = "crate-graph";

/// Each crate of the workspace with the crates of the workspace it may use outside of tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("locum-core", &[]),
    ("locum-models", &["locum-core"]),
    ("locum", &["locum-core", "locum-models"]),
    ("locum-cli", &["locum"]),
    ("locum-bench", &["locum"]),
    ("xtask", &[]),
];

/// What a crate must not reach, however indirectly.
const UNREACHABLE: &[(&str, &str)] = &[("locum-core", "tokio")];

/// Reports arrows that are not in the tables.
pub(crate) fn check(metadata: &Metadata) -> Vec<Problem> {
    let mut problems = Vec::new();
    for member in metadata.members() {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == member.name) else {
            let message = "a new crate; say in the table of this rule what it may depend on";
            problems.push(problem(member, message.to_owned()));
            continue;
        };
        for dependency in metadata.dependencies(member).filter(|package| package.is_member) {
            if !allowed.contains(&dependency.name.as_str()) {
                let message =
                    format!("does not depend on {}; move what is needed to where both can see it", dependency.name);
                problems.push(problem(member, message));
            }
        }
        for (_, target) in UNREACHABLE.iter().filter(|(name, _)| *name == member.name) {
            if let Some(route) = route(metadata, member, target) {
                let message = format!(
                    "must not reach {target}, but does: {}; turn off the feature or drop the dependency",
                    route.join(" -> ")
                );
                problems.push(problem(member, message));
            }
        }
    }
    problems
}

fn problem(member: &Package, message: String) -> Problem {
    let path = match member.name.as_str() {
        "xtask" => "xtask/Cargo.toml".to_owned(),
        name => format!("crates/{name}/Cargo.toml"),
    };
    Problem::failure(&path, 1, RULE, message)
}

/// The shortest way from a package to one called `target`, as names.
fn route<'a>(metadata: &'a Metadata, from: &'a Package, target: &str) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::from([from.id.as_str()]);
    let mut queue = VecDeque::from([(from, vec![from.name.as_str()])]);
    while let Some((package, route)) = queue.pop_front() {
        if package.name == target {
            return Some(route);
        }
        for dependency in metadata.dependencies(package) {
            if seen.insert(&dependency.id) {
                let mut route = route.clone();
                route.push(&dependency.name);
                queue.push_back((dependency, route));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::metadata::testing::metadata;
    use super::*;

    fn found(rows: &[(&str, &[&str])]) -> Vec<String> {
        check(&metadata(rows)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_intended_graph_passes() {
        assert_eq!(
            found(&[
                ("locum-core", &["serde"]),
                ("locum-models", &["locum-core", "tokio"]),
                ("locum", &["locum-core", "locum-models", "tokio"]),
                ("locum-cli", &["locum", "tokio"]),
                ("serde", &[]),
                ("tokio", &[]),
            ]),
            [""; 0]
        );
    }

    #[test]
    fn a_door_sees_the_engine_only() {
        assert_eq!(
            found(&[("locum-core", &[]), ("locum-cli", &["locum-core"])]),
            ["crates/locum-cli/Cargo.toml:1: crate-graph: does not depend on locum-core; \
              move what is needed to where both can see it"]
        );
    }

    #[test]
    fn arrows_do_not_point_back() {
        assert_eq!(found(&[("locum-core", &["locum-models"]), ("locum-models", &[])]).len(), 1);
        assert_eq!(found(&[("locum-models", &["locum"]), ("locum", &[])]).len(), 1);
    }

    #[test]
    fn the_core_does_not_reach_tokio_through_others() {
        assert_eq!(
            found(&[("locum-core", &["a"]), ("a", &["b"]), ("b", &["tokio"]), ("tokio", &[])]),
            ["crates/locum-core/Cargo.toml:1: crate-graph: must not reach tokio, but does: \
              locum-core -> a -> b -> tokio; turn off the feature or drop the dependency"]
        );
    }

    #[test]
    fn a_new_crate_has_to_be_placed() {
        assert_eq!(found(&[("locum-new", &[])]).len(), 1);
    }
}
