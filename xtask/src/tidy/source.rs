//! A tracked file as the checks see it: its text and, for Rust, its code without comments and literals,
//! with the parts that only tests compile marked as such. Checks read this and never the disk.

use super::items::item_end;
use super::lexer::{self, Views};

/// Folders whose files are compiled only for tests, measurements and demonstrations.
const TEST_FOLDERS: &[&str] = &["tests", "benches", "examples"];

/// The attributes that keep an item out of the shipped program.
const TEST_ATTRIBUTES: &[&str] = &["#[cfg(test)]", "#[cfg(all(test"];

/// One tracked file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Relative to the root of the workspace, with `/` between folders.
    pub(crate) path: String,
    /// As on disk.
    pub(crate) text: String,
    /// Empty views for what is not Rust.
    views: Views,
    /// One entry per line: whether only tests compile it.
    test_lines: Vec<bool>,
}

impl SourceFile {
    /// Reads what can be known from one file alone; see [`mark_test_modules`] for the rest.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let views = lexer::split(if path.ends_with(".rs") { text } else { "" });
        let lines = text.lines().count();
        let test_lines = if is_test_path(path) || views.code.contains("#![cfg(test)]") {
            vec![true; lines]
        } else {
            test_lines(&views.code, lines)
        };
        Self { path: path.to_owned(), text: text.to_owned(), views, test_lines }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate whose shipped sources this file is part of; none for tests folders and developer tools.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        (self.is_rust() && rest.starts_with("src/")).then_some(name)
    }

    pub(crate) fn code(&self) -> &str {
        &self.views.code
    }

    /// Numbered lines of code, comments and the inside of literals blanked.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.views.code)
    }

    /// Numbered lines of code that ship, as in [`Self::code_lines`].
    pub(crate) fn shipped_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code_lines().filter(|(line, _)| !self.is_test(*line))
    }

    /// Numbered lines of code that ship, literals readable.
    pub(crate) fn shipped_lines_with_literals(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.views.code_with_literals).filter(|(line, _)| !self.is_test(*line))
    }

    /// Numbered lines with nothing but comments.
    pub(crate) fn comment_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.views.comments)
    }

    /// How many lines the file has that ship.
    pub(crate) fn shipped_line_count(&self) -> usize {
        self.test_lines.iter().filter(|is_test| !**is_test).count()
    }

    /// Whether only tests compile a line.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.test_lines.get(line - 1).copied().unwrap_or(false)
    }

    /// The number of the line at a byte offset into [`Self::code`].
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        line_at(&self.views.code, offset)
    }

    /// The files and folders that hold the children of this module, as a path prefix.
    fn children_folder(&self) -> String {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        match name {
            "lib.rs" | "main.rs" => format!("{folder}/"),
            _ => format!("{}/", self.path.trim_end_matches(".rs")),
        }
    }

    /// The names declared as `#[cfg(test)] mod name;`.
    fn test_modules(&self) -> impl Iterator<Item = &str> {
        self.code_lines().filter(|(line, _)| self.is_test(*line)).filter_map(|(_, code)| {
            let (_, declaration) = code.split_once("mod ")?;
            declaration.trim_end().strip_suffix(';')
        })
    }
}

/// Marks the files that are modules of their own but reachable only from test code.
pub(crate) fn mark_test_modules(files: &mut [SourceFile]) {
    let modules: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let folder = file.children_folder();
            file.test_modules().map(move |name| format!("{folder}{name}")).collect::<Vec<_>>()
        })
        .collect();
    for file in files {
        if modules.iter().any(|module| is_in_module(&file.path, module)) {
            file.test_lines.fill(true);
        }
    }
}

/// Whether `path` is the module `module` (a path without ending) or one of its children.
pub(crate) fn is_in_module(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

fn is_test_path(path: &str) -> bool {
    path.split('/').any(|folder| TEST_FOLDERS.contains(&folder))
}

fn test_lines(code: &str, lines: usize) -> Vec<bool> {
    let mut marked = vec![false; lines];
    for attribute in TEST_ATTRIBUTES {
        for (start, _) in code.match_indices(attribute) {
            let end = item_end(code, start).offset;
            let last_line = line_at(code, end).min(lines);
            marked[line_at(code, start) - 1..last_line].fill(true);
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "\
//! Doc.
fn shipped() {}

#[cfg(test)]
mod tests {
    fn tested() {}
}
fn also_shipped() {}
";

    fn shipped(files: &[SourceFile]) -> Vec<(&str, Vec<usize>)> {
        files
            .iter()
            .map(|file| {
                let lines = file.shipped_lines().filter(|(_, code)| code.contains("fn ")).map(|(line, _)| line);
                (file.path.as_str(), lines.collect())
            })
            .collect()
    }

    #[test]
    fn a_test_module_is_cut_out_and_what_follows_is_not() {
        let file = SourceFile::new("crates/a/src/b.rs", MIXED);
        assert_eq!(file.shipped_line_count(), 4);
        assert_eq!(shipped(&[file]), [("crates/a/src/b.rs", vec![2, 8])]);
    }

    #[test]
    fn an_unclosed_test_module_reaches_the_end() {
        let file = SourceFile::new("crates/a/src/b.rs", "fn a() {}\n#[cfg(test)]\nmod b {\n");
        assert_eq!(file.shipped_line_count(), 1);
    }

    #[test]
    fn files_that_only_tests_declare_are_tests() {
        let mut files = [
            SourceFile::new("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod fakes;\n"),
            SourceFile::new("crates/a/src/fakes.rs", "fn x() {}"),
            SourceFile::new("crates/a/src/fakes/deep.rs", "fn x() {}"),
            SourceFile::new("crates/a/src/fakes_not.rs", "fn x() {}"),
            SourceFile::new("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;\n"),
            SourceFile::new("crates/a/src/b/tests.rs", "fn x() {}"),
            SourceFile::new("crates/a/src/tests.rs", "fn x() {}"),
            SourceFile::new("crates/a/tests/it.rs", "fn x() {}"),
        ];
        mark_test_modules(&mut files);
        let found: Vec<&str> =
            shipped(&files).into_iter().filter(|(_, lines)| !lines.is_empty()).map(|(path, _)| path).collect();
        assert_eq!(found, ["crates/a/src/fakes_not.rs", "crates/a/src/tests.rs"]);
    }

    #[test]
    fn only_sources_of_crates_belong_to_a_crate() {
        let name = |path| SourceFile::new(path, "").crate_name().map(str::to_owned);
        assert_eq!(name("crates/locum/src/desk.rs").as_deref(), Some("locum"));
        assert_eq!(name("crates/locum/tests/desk.rs"), None);
        assert_eq!(name("crates/locum/build.rs"), None);
        assert_eq!(name("xtask/src/main.rs"), None);
    }
}
