//! Packages built in more than one version. Each costs build time and size, so each has a reason here, and
//! the row goes when the reason does.

use std::collections::{BTreeMap, BTreeSet};

use super::report::Problem;

const RULE: &str = "duplicate-version";

/// A package that is known to be built more than once.
struct Duplicate {
    name: &'static str,
    versions: usize,
    reason: &'static str,
}

const DUPLICATES: &[Duplicate] = &[
    Duplicate {
        name: "base64",
        versions: 2,
        reason: "hyper-util encodes proxy credentials with a newer one than ours",
    },
    Duplicate { name: "getrandom", versions: 3, reason: "ring stays on 0.2, rand of opentelemetry on 0.3" },
    Duplicate { name: "io-lifetimes", versions: 2, reason: "fs-set-times, below cap-std, stays on 2" },
    Duplicate { name: "rand", versions: 2, reason: "opentelemetry_sdk stays on 0.9" },
    Duplicate { name: "rand_core", versions: 2, reason: "opentelemetry_sdk stays on 0.9" },
    Duplicate { name: "syn", versions: 2, reason: "tracing-attributes stays on 2; only the compiler runs it" },
];

/// Reports duplicates in the output of `cargo tree --prefix none --format {p}` that the table does not
/// expect, and rows of the table that do not come true.
pub(crate) fn check(tree: &str) -> Vec<Problem> {
    check_with(tree, DUPLICATES)
}

fn check_with(tree: &str, expected: &[Duplicate]) -> Vec<Problem> {
    let versions = versions(tree);
    let mut problems = Vec::new();
    for (name, versions) in &versions {
        let is_expected = expected.iter().any(|row| row.name == *name);
        if versions.len() > 1 && !is_expected {
            let versions: Vec<&str> = versions.iter().copied().collect();
            let message =
                format!("{name} is built as {}; agree on one, or add a row with the reason", versions.join(" and "));
            problems.push(Problem::failure("Cargo.lock", 1, RULE, message));
        }
    }
    for row in expected {
        let count = versions.get(row.name).map_or(0, BTreeSet::len);
        if count != row.versions {
            let message = format!(
                "{} is listed with {} versions because \"{}\", but has {count}; correct its row",
                row.name, row.versions, row.reason
            );
            problems.push(Problem::failure("Cargo.lock", 1, RULE, message));
        }
    }
    problems
}

/// The versions of each package; a line reads `name v1.2.3`, sometimes with more behind it.
fn versions(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "a v1.0.0\nb v1.0.0 (proc-macro)\n\nb v2.0.0\nb v2.0.0 (*)\n";

    fn found(versions: &[usize]) -> Vec<String> {
        let expected: Vec<Duplicate> =
            versions.iter().map(|versions| Duplicate { name: "b", versions: *versions, reason: "c" }).collect();
        check_with(TREE, &expected).into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn an_expected_duplicate_passes() {
        assert_eq!(found(&[2]), [""; 0]);
    }

    #[test]
    fn an_unexpected_duplicate_is_reported() {
        assert_eq!(found(&[]), ["b is built as v1.0.0 and v2.0.0; agree on one, or add a row with the reason"]);
    }

    #[test]
    fn a_row_that_does_not_come_true_is_reported() {
        assert_eq!(found(&[3]), ["b is listed with 3 versions because \"c\", but has 2; correct its row"]);
    }
}
