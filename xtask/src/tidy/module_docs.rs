//! Every source file opens with what it is for.

use super::report::Problem;
use super::source::SourceFile;

const RULE: &str = "module-doc";

/// Reports source files that do not begin with a module comment.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    files
        .iter()
        .filter(|file| file.crate_name().is_some() || file.path.starts_with("xtask/src/"))
        .filter(|file| !file.text.starts_with("//!"))
        .map(|file| {
            let message = "begin with //! and a sentence on what the module is for";
            Problem::failure(&file.path, 1, RULE, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::found;
    use super::*;

    #[test]
    fn sources_begin_with_their_purpose() {
        let path = "crates/a/src/b/c.rs";
        assert_eq!(found(check, path, "use x;\n//! Late."), [(1, RULE)]);
        assert_eq!(found(check, path, ""), [(1, RULE)]);
        assert_eq!(found(check, path, "//! Purpose.\n"), []);
        assert_eq!(found(check, "crates/a/tests/b.rs", "use x;"), []);
    }
}
