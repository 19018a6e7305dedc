//! `find`: paths by their names.

use std::path::Path;

use locum_core::transcript::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::beneath::{Beneath, Kind};
use super::bounded::{BoundedText, count, shown};
use super::path_glob::PathGlob;
use super::reading::Reading;
use super::walk::{Hidden, Walk};

/// Paths that are shown when the model does not say, and at most.
const RESULTS_DEFAULT: u32 = 200;
const RESULTS_MAX: u32 = 2_000;

/// Characters that make a pattern a glob.
const GLOB_CHARACTERS: [char; 5] = ['*', '?', '[', '{', '!'];

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Find {
    pattern: String,
    /// Directory
    path: Option<String>,
    /// Default 200
    max_results: Option<u32>,
}

impl Reading for Find {
    const NAME: &'static str = "find";
    const DESCRIPTION: &'static str = include_str!("find.md");

    fn answer(self, files: &Beneath) -> Result<String, ToolOutput> {
        let pattern = Pattern::parse(&self.pattern)?;
        let start = files.locate_directory(self.path.as_deref())?;
        let results_max = self.max_results.unwrap_or(RESULTS_DEFAULT).clamp(1, RESULTS_MAX);
        let (mut text, mut shown_number, mut unshown) = (BoundedText::default(), 0, 0);
        let mut walk = Walk::new(files, &start.path, hidden(&self.pattern));
        for found in walk.by_ref().filter(|found| pattern.is_match(&found.path, &start.path)) {
            let slash = if found.kind == Kind::Directory { "/" } else { "" };
            if shown_number < results_max && text.push_line(&format!("{}{slash}", shown(&found.path))) {
                shown_number += 1;
            } else {
                unshown += 1;
            }
        }
        files.check_stop()?;
        let mut notices = walk.left_out().notices();
        if text.is_empty() {
            text.push_line("nothing found; ignored and hidden files are left out, ls shows them");
        }
        if unshown > 0 {
            notices.push(format!("{} not shown; narrow the pattern or path", count(unshown, "more path")));
        }
        Ok(text.finish(&notices))
    }
}

/// What is meant by a pattern.
#[derive(Debug)]
enum Pattern {
    Glob(PathGlob),
    /// A part of the name, in lower case.
    PartOfName(String),
    /// A part of the path: the word has a slash in it.
    PartOfPath(String),
}

impl Pattern {
    fn parse(said: &str) -> Result<Self, ToolOutput> {
        if said.is_empty() {
            return Err(ToolOutput::failed("the pattern is empty; use ls or tree to see what is there"));
        }
        if said.contains(GLOB_CHARACTERS) {
            return Ok(Self::Glob(PathGlob::parse(said)?));
        }
        let word = said.strip_prefix("./").unwrap_or(said).to_lowercase();
        Ok(match word.trim_end_matches('/') {
            path if path.contains('/') => Self::PartOfPath(path.to_owned()),
            name => Self::PartOfName(name.to_owned()),
        })
    }

    fn is_match(&self, path: &Path, start: &Path) -> bool {
        match self {
            Self::Glob(glob) => glob.is_match(path, start),
            Self::PartOfName(part) => {
                path.file_name().is_some_and(|name| name.to_string_lossy().to_lowercase().contains(part))
            }
            Self::PartOfPath(part) => path.to_string_lossy().to_lowercase().contains(part),
        }
    }
}

/// Whoever names a hidden file wants to see it.
fn hidden(pattern: &str) -> Hidden {
    let is_hidden = |name: &str| name.starts_with('.') && !matches!(name, "." | "..");
    if pattern.split('/').any(is_hidden) { Hidden::Show } else { Hidden::Skip }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[test]
    fn paths_are_found_by_glob_and_by_word() {
        let mut fixture = Fixture::new(&[
            ("src/main.rs", ""),
            ("src/tools/Grep.rs", ""),
            ("src/tools/grep.md", ""),
            ("tests/main.rs", ""),
            (".github/ci.yml", ""),
            (".gitignore", "/target\n"),
            ("target/main.rs", ""),
            (".git/main.rs", ""),
        ]);
        fixture.link("main.rs", "src/link.rs");
        let nothing = "nothing found; ignored and hidden files are left out, ls shows them";
        for (input, expected) in [
            (json!({"pattern": "**/*.rs"}), "src/link.rs\nsrc/main.rs\nsrc/tools/Grep.rs\ntests/main.rs"),
            (json!({"pattern": "*.rs"}), "src/link.rs\nsrc/main.rs\nsrc/tools/Grep.rs\ntests/main.rs"),
            (json!({"pattern": "src/*.rs"}), "src/link.rs\nsrc/main.rs"),
            (json!({"pattern": "*.{md,yml}"}), "src/tools/grep.md"),
            (json!({"pattern": "GREP"}), "src/tools/Grep.rs\nsrc/tools/grep.md"),
            (json!({"pattern": "tools"}), "src/tools/"),
            (json!({"pattern": "tools/"}), "src/tools/"),
            (json!({"pattern": "tools/grep"}), "src/tools/Grep.rs\nsrc/tools/grep.md"),
            (json!({"pattern": "main.rs", "path": "tests"}), "tests/main.rs"),
            (json!({"pattern": "main.rs", "path": "target"}), "target/main.rs"),
            (json!({"pattern": ".github/*"}), ".github/ci.yml"),
            (json!({"pattern": ".gitignore"}), ".gitignore"),
            (json!({"pattern": "ci.yml"}), nothing),
            (
                json!({"pattern": "*.rs", "max_results": 1}),
                "src/link.rs\n[3 more paths not shown; narrow the pattern or path]",
            ),
            (json!({"pattern": ""}), "failed: the pattern is empty; use ls or tree to see what is there"),
            (json!({"pattern": "a", "path": "src/main.rs"}), "failed: `src/main.rs` is a file, not a directory"),
        ] {
            assert_eq!(fixture.ask::<Find>(input.clone()), expected, "{input}");
        }
        fixture.scope.cwd = "src".into();
        assert_eq!(fixture.ask::<Find>(json!({"pattern": "tools/*.md"})), "src/tools/grep.md");
    }
}
