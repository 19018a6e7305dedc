//! Which licences a dependency may have: those that ask for no more than a notice.

mod expression;

use self::expression::Expression;
use super::metadata::{Metadata, Package};
use super::report::Problem;

const RULE: &str = "licence";

/// SPDX identifiers, with their exception where they have one.
const ACCEPTED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// A package that states no licence in its manifest, and where its licence was found instead.
struct Unstated {
    name: &'static str,
    reason: &'static str,
}

const UNSTATED: &[Unstated] = &[];

/// Reports packages under other licences, and exceptions that are no longer needed.
pub(crate) fn check(metadata: &Metadata) -> Vec<Problem> {
    check_with(metadata, UNSTATED)
}

fn check_with(metadata: &Metadata, unstated: &[Unstated]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let is_listed = unstated.iter().any(|entry| entry.name == package.name);
        let objection = match &package.licence {
            None if is_listed => None,
            None => Some("states no licence; read its sources and list it with what they say".into()),
            Some(licence) => objection(licence),
        };
        if let Some(objection) = objection {
            let Package { name, version, .. } = package;
            let message = format!("{name} {version} {objection}");
            problems.push(Problem::failure("Cargo.lock", 1, RULE, message));
        }
    }
    for entry in unstated {
        let is_needed = |package: &Package| package.name == entry.name && package.licence.is_none();
        if !metadata.packages.iter().any(is_needed) {
            let Unstated { name, reason } = entry;
            let message = format!("{name} is listed as \"{reason}\" without need; remove its row");
            problems.push(Problem::failure("Cargo.lock", 1, RULE, message));
        }
    }
    problems
}

fn objection(licence: &str) -> Option<String> {
    match Expression::parse(licence) {
        Ok(expression) if expression.is_satisfied(&|id| ACCEPTED.contains(&id)) => None,
        Ok(_) => Some(format!("is under {licence}, which is not accepted; use something else")),
        Err(error) => Some(format!("has an unreadable licence, {licence}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::testing::metadata;
    use super::*;

    fn found(licence: Option<&str>, unstated: &[Unstated]) -> Vec<String> {
        let mut metadata = metadata(&[("a", &[])]);
        metadata.packages[0].licence = licence.map(str::to_owned);
        check_with(&metadata, unstated).into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn permissive_licences_are_accepted() {
        for licence in ["MIT", "MIT OR GPL-3.0-only", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
            assert_eq!(found(Some(licence), &[]), [""; 0], "{licence}");
        }
    }

    #[test]
    fn other_licences_are_refused() {
        assert_eq!(
            found(Some("MIT AND GPL-3.0-only"), &[]),
            ["a 1.0.0 is under MIT AND GPL-3.0-only, which is not accepted; use something else"]
        );
        assert_eq!(
            found(Some("MIT OR"), &[]),
            ["a 1.0.0 has an unreadable licence, MIT OR: a licence is missing at the end"]
        );
    }

    #[test]
    fn a_package_without_licence_has_to_be_listed() {
        let listed = [Unstated { name: "a", reason: "MIT in its README" }];
        assert_eq!(found(None, &[]).len(), 1);
        assert_eq!(found(None, &listed), [""; 0]);
        assert_eq!(found(Some("MIT"), &listed), ["a is listed as \"MIT in its README\" without need; remove its row"]);
    }
}
