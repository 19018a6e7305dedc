//! Words that may stand only in named places: input and output stay out of the core, and each kind of
//! effect has one module. To let another file use such a word, add a row with the reason to the table; a row
//! that is no longer needed is itself reported, so the lists stay only as long as they must be.

mod table;

use self::table::{CONFINEMENTS, Confinement, Place};
use super::imports::shipped_imports;
use super::report::Problem;
use super::source::{SourceFile, is_in_module};
use super::words::contains_word;

/// Reports confined words elsewhere, and places that no longer need to be listed.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for confinement in CONFINEMENTS {
        problems.extend(escapes(files, confinement));
        problems.extend(stale_places(files, confinement));
    }
    problems
}

fn escapes(files: &[SourceFile], confinement: &Confinement) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files {
        let is_home = |place: &Place| place.covers(&file.path);
        if confinement.applies_to(file) && !confinement.places.iter().any(is_home) {
            for (line, word) in uses(file, confinement.words) {
                let message = format!("`{word}` is not used here; {}", confinement.advice);
                problems.push(Problem::failure(&file.path, line, confinement.rule, message));
            }
        }
    }
    problems
}

fn stale_places(files: &[SourceFile], confinement: &Confinement) -> Vec<Problem> {
    let is_needed = |place: &Place| {
        files
            .iter()
            .filter(|file| confinement.applies_to(file) && place.covers(&file.path))
            .any(|file| !uses(file, confinement.words).is_empty())
    };
    confinement
        .places
        .iter()
        .filter(|place| !is_needed(place))
        .map(|place| {
            let message = format!(
                "listed as \"{}\", but it does not exist or no longer needs to be; \
                 remove its row from the table of this rule",
                place.reason
            );
            Problem::failure(place.path, 1, confinement.rule, message)
        })
        .collect()
}

/// The lines on which any of `words` is written or imported, with the first word found on each.
fn uses<'a>(file: &SourceFile, words: &[&'a str]) -> Vec<(usize, &'a str)> {
    let written = file.shipped_lines().map(|(line, code)| (line, code.to_owned()));
    let mut uses: Vec<(usize, &str)> = written
        .chain(shipped_imports(file))
        .filter_map(|(line, code)| {
            let word = words.iter().find(|word| contains_word(&code, word))?;
            Some((line, *word))
        })
        .collect();
    uses.sort_unstable();
    uses.dedup_by_key(|(line, _)| *line);
    uses
}

impl Confinement {
    fn applies_to(&self, file: &SourceFile) -> bool {
        file.crate_name().is_some() && file.path.starts_with(self.scope)
    }
}

impl Place {
    fn covers(&self, path: &str) -> bool {
        path == self.path || is_in_module(path, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{files, places};
    use super::*;

    fn escaped(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let files = files(&[(path, text)]);
        CONFINEMENTS
            .iter()
            .flat_map(|confinement| escapes(&files, confinement))
            .map(|problem| (problem.line, problem.rule))
            .collect()
    }

    #[test]
    fn the_core_has_no_effects() {
        for text in [
            "pub async fn f() {}",
            "use tokio::time;",
            "use std::fs;",
            "use std::{collections::BTreeMap, env};",
            "let a = std::net::Ipv4Addr::LOCALHOST;",
            "std::process::exit(1)",
            "let now = SystemTime::now();",
            "fn f(at: Instant) {}",
            "let now = jiff::Timestamp::now();",
        ] {
            let path = "crates/locum-core/src/task.rs";
            assert_eq!(escaped(path, text), [(1, "core-is-pure")], "{text}");
            assert_eq!(escaped("crates/locum/src/desk.rs", text), [], "{text}");
        }
    }

    #[test]
    fn comments_literals_and_tests_of_the_core_may_name_effects() {
        let text = "/// No tokio, no async.\nconst A: &str = \"std::fs\";\n#[cfg(test)]\nuse std::fs;\n";
        assert_eq!(escaped("crates/locum-core/src/task.rs", text), []);
    }

    /// One sample per rule: a text that is refused in an ordinary file and accepted at home.
    const SAMPLES: &[(&str, &str, &str)] = &[
        ("one-select", "crates/locum/src/driver/attend.rs", "tokio::select! {}"),
        ("named-spawns", "crates/locum/src/worker.rs", "tokio::spawn(f);"),
        ("named-spawns", "crates/locum/src/pool.rs", "spawn_blocking(f);"),
        ("named-spawns", "crates/locum/src/worker.rs", "use tokio::{task::JoinSet};"),
        ("named-spawns", "crates/locum/src/store/sqlite/writer.rs", "thread::spawn(f);"),
        ("one-printer", "crates/locum-cli/src/output.rs", "println!();"),
        ("one-printer", "crates/locum-cli/src/output/table.rs", "anstream::eprint!();"),
        ("one-printer", "crates/locum-cli/src/output.rs", "std::io::stdout().lock();"),
        ("one-environment-reader", "crates/locum/src/settings/environment.rs", "env::var_os(a);"),
        ("one-sql-speaker", "crates/locum/src/store/sqlite.rs", "use rusqlite::params;"),
        ("one-sql-speaker", "crates/locum/src/store/sqlite/read.rs", "rusqlite::params![];"),
        ("one-process-starter", "crates/locum/src/process.rs", "Command::new(a);"),
        ("one-process-starter", "crates/locum/src/process/group.rs", "use std::process::Command;"),
    ];

    #[test]
    fn effects_stay_at_home() {
        for (rule, home, text) in SAMPLES {
            assert_eq!(escaped("crates/locum/src/desk.rs", text), [(1, *rule)], "{text}");
            assert_eq!(escaped(home, text), [], "{text}");
            assert_eq!(escaped("crates/locum/tests/desk.rs", text), [], "{text}");
            assert_eq!(escaped("xtask/src/ci.rs", text), [], "{text}");
        }
    }

    #[test]
    fn no_place_is_home_to_the_async_trait_macro() {
        let text = "#[async_trait::async_trait]\ntrait A {}";
        assert_eq!(escaped("crates/locum/src/tools.rs", text), [(1, "no-async-trait")]);
        assert_eq!(escaped("crates/locum/src/tools.rs", "trait A {}"), []);
    }

    const RATCHET: Confinement = Confinement {
        rule: "ratchet",
        scope: "crates/",
        words: &["word"],
        places: &[
            Place { path: "crates/a/src/used.rs", reason: "" },
            Place { path: "crates/a/src/module", reason: "" },
            Place { path: "crates/a/src/unused.rs", reason: "" },
            Place { path: "crates/a/src/missing.rs", reason: "" },
        ],
        advice: "",
    };

    #[test]
    fn a_place_without_use_is_reported() {
        let files = files(&[
            ("crates/a/src/used.rs", "word"),
            ("crates/a/src/module/part.rs", "word"),
            ("crates/a/src/unused.rs", "#[cfg(test)]\nfn f() { word }"),
        ]);
        assert_eq!(
            places(&stale_places(&files, &RATCHET)),
            ["crates/a/src/unused.rs:1: ratchet", "crates/a/src/missing.rs:1: ratchet"]
        );
    }
}
