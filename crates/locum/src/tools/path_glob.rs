//! A glob over paths, read generously: models write the same wish in many ways.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use locum_core::transcript::ToolOutput;

use super::beneath::quoted;

/// Bytes of a glob: it becomes a regular expression many times its size.
const GLOB_BYTES_MAX: usize = 1_000;

/// Which paths are meant.
#[derive(Debug)]
pub(crate) struct PathGlob {
    matcher: GlobMatcher,
    /// A glob with a slash is about the path, one without about the name alone.
    is_about_path: bool,
    /// A glob that begins with `!` means everything else.
    is_negated: bool,
}

impl PathGlob {
    /// Reads a glob.
    pub(crate) fn parse(text: &str) -> Result<Self, ToolOutput> {
        if text.len() > GLOB_BYTES_MAX {
            return Err(ToolOutput::failed(format!("the glob is too long: {} bytes", text.len())));
        }
        let (is_negated, glob) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let glob = glob.strip_prefix("./").unwrap_or(glob).trim_end_matches('/');
        let is_about_path = glob.contains('/');
        let matcher = GlobBuilder::new(glob.trim_start_matches('/'))
            .literal_separator(true)
            .build()
            .map_err(|error| ToolOutput::failed(format!("invalid glob {}: {}", quoted(text), error.kind())))?
            .compile_matcher();
        Ok(Self { matcher, is_about_path, is_negated })
    }

    /// Whether a path from the root is meant by a glob that was said of the directory `start`.
    pub(crate) fn is_match(&self, path: &Path, start: &Path) -> bool {
        let is_match = if self.is_about_path {
            // The tools' own output names paths from the root, so a model may write the glob that way too.
            self.matcher.is_match(path.strip_prefix(start).unwrap_or(path)) || self.matcher.is_match(path)
        } else {
            path.file_name().is_some_and(|name| self.matcher.is_match(name))
        };
        is_match != self.is_negated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_mean_what_models_mean() {
        for (glob, path, expected) in [
            ("*.rs", "src/a/b.rs", true),
            ("*.rs", "src/a/b.py", false),
            ("*.{rs,py}", "src/a/b.py", true),
            ("**/*.rs", "src/b.rs", true),
            ("**/*.rs", "b.rs", true),
            ("a/*.rs", "src/a/b.rs", true),
            ("src/a/*.rs", "src/a/b.rs", true),
            ("a/*.rs", "src/a/c/b.rs", false),
            ("/a/*.rs", "src/a/b.rs", true),
            ("./a/*.rs", "src/a/b.rs", true),
            ("a/", "src/a", true),
            ("!*.rs", "src/a/b.rs", false),
            ("!*.rs", "src/a/b.py", true),
        ] {
            let is_match = PathGlob::parse(glob).unwrap().is_match(Path::new(path), Path::new("src"));
            assert_eq!(is_match, expected, "{glob} {path}");
        }
    }

    #[test]
    fn a_bad_glob_is_explained() {
        let output = PathGlob::parse("a[").unwrap_err();
        assert_eq!(output, ToolOutput::failed("invalid glob `a[`: unclosed character class; missing ']'"));
        let output = PathGlob::parse(&"{".repeat(2_000)).unwrap_err();
        assert_eq!(output, ToolOutput::failed("the glob is too long: 2000 bytes"));
    }
}
